"""deccs.scanpy: what is written where, from what, and that a file can hold it."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import deccs
from deccs.scanpy import categories_of, consensus, plain
from tests.helpers.quick_count import quick_counts
from tests.helpers.small import far_blobs

ad = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")
# As few steps as there can be: what is found is tested elsewhere.
FEW = {
    "views": None,
    "network": deccs.Network(layers=(4, 2)),
    "pretraining": deccs.Pretraining(n_epochs=1, batch_size=64),
    "rounds": deccs.Rounds(n_rounds=0, n_init=1),
    "members": ["kmeans", "agglomerative"],
}


def cells(X=None, **parts):
    """An AnnData object of three far blobs; its names are objects, which all versions can write."""
    X = far_blobs().X if X is None else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own about the type of names
        names = pd.Index([f"cell {number}" for number in range(X.shape[0])], dtype=object)
        genes = pd.Index([f"gene {number}" for number in range(X.shape[1])], dtype=object)
        return ad.AnnData(X, obs=pd.DataFrame(index=names), var=pd.DataFrame(index=genes), **parts)


@pytest.fixture(scope="module")
def clustered():
    adata = cells()
    assert consensus(adata, 3, **FEW) is None
    return adata


def test_results_are_those_of_the_estimator(clustered):
    X = far_blobs().X
    model = deccs.DECCS(3, random_state=0, **FEW).fit(X)
    assert_array_equal(clustered.obs["deccs"].astype(int), model.labels_)
    assert_array_equal(clustered.obs["deccs_confidence"], model.consensus_confidence(X))
    assert_array_equal(clustered.obsm["X_deccs"], model.transform(X).astype(np.float32))
    facts = clustered.uns["deccs"]
    assert facts["agreement"] == model.agreement_ and facts["n_clusters"] == 3
    assert facts["label_source"] == model.label_source_
    assert facts["versions"]["deccs"] == deccs.__version__
    assert facts["params"] == {
        "n_clusters": 3,
        "random_state": 0,
        "use_rep": "X",
        "network": plain(FEW["network"]),
        "pretraining": plain(FEW["pretraining"]),
        "rounds": plain(FEW["rounds"]),
        "members": "['kmeans', 'agglomerative']",
    }


def test_clusters_are_categories_in_the_order_of_their_numbers(clustered):
    column = clustered.obs["deccs"]
    assert list(column.cat.categories) == ["0", "1", "2"]
    made = categories_of(np.array([2, 10, -1, 2]))
    assert list(made.categories) == ["2", "10"]  # "10" before "2" in the order of the alphabet
    assert list(made.codes) == [0, 1, -1, 0] and not made.ordered


def test_a_file_holds_all_of_it(clustered, tmp_path):
    path = tmp_path / "cells.h5ad"
    clustered.write_h5ad(path)
    again = ad.read_h5ad(path)
    assert list(again.obs["deccs"]) == list(clustered.obs["deccs"])
    assert list(again.obs["deccs"].cat.categories) == ["0", "1", "2"]
    assert_array_equal(again.obs["deccs_confidence"], clustered.obs["deccs_confidence"])
    assert_array_equal(again.obsm["X_deccs"], clustered.obsm["X_deccs"])
    assert again.uns["deccs"] == clustered.uns["deccs"]


def test_the_number_of_clusters_is_found_and_the_others_are_kept(tmp_path):
    adata = cells(far_blobs().X[:90])
    with quick_counts():
        consensus(adata, "2-4", key_added="groups", **FEW)
    candidates = adata.uns["groups"]["k_candidates"]
    assert candidates["k"][0] == adata.uns["groups"]["n_clusters"] == 3
    assert len(candidates["support"]) == len(candidates["reasons"]) == len(candidates["k"])
    assert adata.uns["groups"]["params"]["n_clusters"] == "2-4"
    assert {"groups", "groups_confidence"} <= set(adata.obs) and "X_groups" in adata.obsm
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = ad.read_h5ad(tmp_path / "cells.h5ad").uns["groups"]["k_candidates"]
    assert list(again["reasons"]) == list(candidates["reasons"])


@pytest.fixture
def seen(monkeypatch):
    """What fits are given; they end there."""
    given = []

    class Interrupted(deccs.DECCS):
        def fit(self, X, y=None):
            given.append(X)
            raise KeyboardInterrupt

    monkeypatch.setattr("deccs.scanpy.DECCS", Interrupted)
    return given


def test_what_is_clustered(seen):
    X = far_blobs().X
    adata = cells(X, obsm={"X_pca": X[:, :2]}, layers={"log": -X})
    adata.obsm["frame"] = pd.DataFrame(X[:, 2:], index=adata.obs_names)
    given = {
        "X_pca": {},
        "X": {"use_rep": "X"},
        "frame": {"use_rep": "frame"},
        "log": {"layer": "log"},
    }
    for options in given.values():
        with pytest.raises(KeyboardInterrupt):
            consensus(adata, 3, **options)
    for found, expected in zip(seen, (X[:, :2], X, X[:, 2:], -X), strict=True):
        assert type(found) is np.ndarray
        assert_array_equal(found, expected)
    assert "deccs" not in adata.obs and "deccs" not in adata.uns  # a fit that fails leaves nothing


def test_a_sparse_matrix_gives_what_the_dense_one_gives(clustered):
    adata = cells(sp.csr_matrix(far_blobs().X))
    copied = consensus(adata, 3, copy=True, **FEW)
    assert list(adata.obs) == [] and sp.issparse(copied.X)
    assert list(copied.obs["deccs"]) == list(clustered.obs["deccs"])


def test_gaps_are_no_obstacle():
    X = far_blobs().X[:60].copy()
    X[::7, 1] = np.nan
    adata = cells(X)
    consensus(adata, 3, **FEW)
    assert adata.obs["deccs"].notna().all() and np.isfinite(adata.obsm["X_deccs"]).all()


def test_a_view_becomes_an_object_of_its_own_with_a_warning():
    whole = cells(far_blobs().X[:60])
    part = whole[::2]
    with pytest.warns(UserWarning, match="view"):
        consensus(part, 3, **FEW)
    assert not part.is_view and part.obs["deccs"].notna().all()
    assert "deccs" not in whole.obs


def test_errors_say_what_to_do(tmp_path):
    adata = cells(obsm={"X_pca": far_blobs().X})
    with pytest.raises(ValueError, match=r"AnnData object, got ndarray. Use deccs.DECCS"):
        consensus(np.eye(4))
    with pytest.raises(ValueError, match="3 cells, and at least 4"):
        consensus(adata[:3])
    with pytest.raises(ValueError, match="adata.obsm has no 'X_scvi', only 'X_pca'"):
        consensus(adata, use_rep="X_scvi")
    with pytest.raises(ValueError, match="adata.layers has no 'counts', only nothing"):
        consensus(adata, layer="counts")
    with pytest.raises(ValueError, match="Give one of them"):
        consensus(adata, use_rep="X_pca", layer="counts")
    with pytest.raises(ValueError, match="has no X"):
        consensus(ad.AnnData(obs=adata.obs))
    with pytest.raises(ValueError, match="Invalid parameter 'resolution'"):
        consensus(adata, resolution=1.0)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = ad.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ValueError, match="to_memory"):
        consensus(backed)
    backed.file.close()


def test_many_columns_without_components_are_told(seen):
    adata = cells(np.zeros((5, 51)))
    with pytest.warns(UserWarning, match="all 51 columns of X"), pytest.raises(KeyboardInterrupt):
        consensus(adata)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyboardInterrupt):
            consensus(adata, use_rep="X")
    assert len(seen) == 2
