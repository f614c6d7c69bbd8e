"""Members by name."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from deccs.members.asking import fresh_copy
from deccs.members.default import DEFAULT_MEMBERS, MEMBERS, default_members, member
from deccs.scores import ari


def test_the_default_ensemble_is_the_papers():
    assert DEFAULT_MEMBERS == ("kmeans", "spectral", "agglomerative", "mixture")
    assert list(MEMBERS)[:4] == list(DEFAULT_MEMBERS)
    members = default_members(5)
    assert [name for name, _ in members] == list(DEFAULT_MEMBERS)
    assert repr(members) == (
        "[('kmeans', KMeans(n_clusters=5, n_init=10)), "
        "('spectral', NeighborSpectral(n_clusters=5)), "
        "('agglomerative', Agglomerative(n_clusters=5)), "
        "('mixture', GaussianMixture(n_components=5, n_init=3, reg_covar=1e-05))]"
    )


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_finds_clear_blobs(name, blobs):
    labels = fresh_copy(MEMBERS[name](3), seed=0).fit_predict(blobs.X)
    assert labels.shape == (180,)
    kept = labels >= 0  # HDBSCAN leaves out some points
    assert kept.mean() > 0.9 and ari(blobs.y[kept], labels[kept]) == 1


def test_a_new_member_is_known_by_its_name(monkeypatch):
    monkeypatch.setitem(MEMBERS, "one start", None)  # removed after the test

    @member("one start")
    def one_start(n_clusters):
        return KMeans(n_clusters, n_init=1)

    assert MEMBERS["one start"] is one_start
    assert MEMBERS["one start"](4).n_clusters == 4
    assert "one start" not in dict(default_members(4))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("spectral", {"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1, got 0"),
        ("spectral", {"n_components": 0}, "n_components must be .* at least 1 or None, got 0"),
        ("agglomerative", {"linkage": "wards"}, "linkage must be 'auto' or .* got 'wards'"),
        ("agglomerative", {"n_clusters": True}, "n_clusters must be .* at least 1, got True"),
        ("agglomerative", {"share": 1.5}, r"share must be a share in \[0, 1\], got 1.5"),
    ],
)
def test_wrong_parameters_are_named(name, changes, message):
    with pytest.raises(ValueError, match=message):
        MEMBERS[name](2).set_params(**changes).fit(np.arange(10.0)[:, None])
