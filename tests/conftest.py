"""Small data, and models fitted once for all tests that only look at them.

Heavy imports are in the fixtures: pytest reads this file in every process, and the one that only hands out the
tests to the others would load torch for nothing.
"""

from __future__ import annotations

import os

import pytest

# Importing a plug-in registers it: only tests/test_plugins.py does, in processes of their own.
collect_ignore_glob = ["helpers/plugins/*"]

if os.environ.get("DECCS_DATA"):  # tests change the working folder
    os.environ["DECCS_DATA"] = os.path.abspath(os.environ["DECCS_DATA"])


def pytest_collection_modifyitems(config):
    """Warnings to ignore. In pyproject.toml they would be imported, and torch with them, by every process."""
    config.addinivalue_line(
        "filterwarnings", "ignore:Member .* is left out:deccs.members.asking.MemberWarning"
    )
    config.addinivalue_line("filterwarnings", "ignore::sklearn.exceptions.ConvergenceWarning")
    # No good state may be set aside: the fit would still end with the same bits.
    config.addinivalue_line("filterwarnings", "error::deccs.storage.checkpoints.CheckpointWarning")


@pytest.fixture
def load_real():
    """``datasets.load`` where the data sets are at hand; elsewhere the test is skipped: it must not download."""
    if not os.environ.get("DECCS_DATA"):
        pytest.skip("set DECCS_DATA to run on real data")
    from deccs import datasets

    return datasets.load


@pytest.fixture(scope="session")
def blobs():
    """Three far blobs of 60 points in four dimensions, in a mixed order, numbered by first appearance."""
    from tests.helpers.small import far_blobs

    return far_blobs()


@pytest.fixture(scope="session")
def small():
    """``small(n_rounds=2)``: the paper's DECCS, without views, that fits in less than a second."""
    from tests.helpers.small import small_deccs

    return small_deccs


@pytest.fixture(scope="session")
def fitted(small, blobs):
    """The small model fitted on the blobs. Do not change it."""
    return small(n_rounds=2).fit(blobs.X)


@pytest.fixture(scope="module")
def quick_classifiers():
    """50 steps instead of 300, which take most of a small fit, where fits are compared with each other."""
    from deccs.rounds import classifiers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifiers, "MOST_STEPS", 50)
        yield


@pytest.fixture(scope="module")
def quick_manifold():
    """40 steps instead of 4,000, which take a second even for a few points."""
    from functools import partial

    from deccs.members import views

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views, "manifold_embedding", partial(views.manifold_embedding, n_steps=40))
        yield


@pytest.fixture(scope="session")
def rows(blobs):
    """The blobs, scaled."""
    from tests.helpers.small import rows_of

    return rows_of(blobs.X)


@pytest.fixture(scope="session")
def trained(rows):
    """A small autoencoder of the blobs. Do not change it."""
    from tests.helpers.small import trained_on

    return trained_on(rows)


@pytest.fixture(scope="module")
def dask_client():
    pytest.importorskip("distributed", reason="pip install 'deccs[dask]'")
    from distributed import Client, LocalCluster

    with (
        LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray", reason="pip install 'deccs[ray]'")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    yield ray
    ray.shutdown()


@pytest.fixture(
    params=["loky", *(pytest.param(name, marks=pytest.mark.slow) for name in ("dask", "ray"))]
)
def elsewhere(request):
    """joblib with two workers of some kind."""
    from joblib import parallel_config

    if request.param == "loky":
        config = parallel_config(backend="loky", n_jobs=2)
    elif request.param == "dask":
        request.getfixturevalue("dask_client")
        config = parallel_config(backend="dask")
    else:
        request.getfixturevalue("ray_cluster")
        config = parallel_config(backend="ray", n_jobs=-1)
    with config:
        yield request.param
