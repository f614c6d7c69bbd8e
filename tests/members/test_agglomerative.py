"""Agglomerative clustering: single linkage where gaps separate the clusters, Ward's elsewhere."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import make_blobs

from deccs.labels import canonical
from deccs.members.agglomerative import Agglomerative, parts_between_gaps, ward
from deccs.scores import ari


def test_parts_between_gaps_by_hand():
    line = np.array([[0.0], [1], [2], [9], [10], [11], [20], [21], [22]])
    assert_array_equal(parts_between_gaps(line, n_parts=3, min_size=3), [0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert_array_equal(
        parts_between_gaps(line, n_parts=2, min_size=3), [0, 0, 0, 0, 0, 0, 1, 1, 1]
    )  # the wider gap
    assert parts_between_gaps(line, n_parts=4, min_size=3) is None  # only two gaps
    assert parts_between_gaps(line, n_parts=2, min_size=5) is None  # only 3 beyond


def test_stray_points_are_no_part():
    stray = np.array([[0.0], [1], [2], [9], [10], [11], [500]])
    assert_array_equal(parts_between_gaps(stray, n_parts=2, min_size=2), [0, 0, 0, 1, 1, 1, 1])


def test_parts_equal_single_linkage_where_gaps_are_clean():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(center, 0.3, (30, 2)) for center in (0, 10, 30)])
    expected = AgglomerativeClustering(3, linkage="single").fit_predict(X)
    assert_array_equal(parts_between_gaps(X, 3, min_size=10), canonical(expected))


def test_agglomerative_takes_single_linkage_for_rings_and_ward_for_touching_blobs():
    angle = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    rings = Agglomerative(2).fit(np.concatenate([ring, 5 * ring]))
    assert rings.linkage_ == "single"
    assert_array_equal(rings.labels_, np.repeat([0, 1], 80))
    touching = np.random.default_rng(1).normal(size=(300, 2))
    assert Agglomerative(3).fit(touching).linkage_ == "ward"
    assert Agglomerative(3, linkage="complete").fit(touching).linkage_ == "complete"


def test_agglomerative_finds_as_many_clusters_as_wanted():
    """A gap below other merges must not split what was merged above it."""
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(100, 2))
        assert len(np.unique(Agglomerative(2).fit(X).labels_)) == 2


@pytest.mark.parametrize("seed", range(3))
def test_ward_is_scikit_learns(seed):
    X, _ = make_blobs(300, centers=5, n_features=4, cluster_std=3.0, random_state=seed)
    for k in (1, 2, 5, 9, 300):
        assert ari(ward(X, k), AgglomerativeClustering(k).fit_predict(X)) == 1


def test_ward_of_equal_points():
    labels = ward(np.repeat([[0.0], [5.0]], 4, axis=0), 2)
    assert_array_equal(labels, [0, 0, 0, 0, 1, 1, 1, 1])


def sum_of_squares(X, labels):
    clusters = [X[labels == label] for label in np.unique(labels)]
    return sum(np.square(cluster - cluster.mean(axis=0)).sum() for cluster in clusters)


def places(seed, n=40):
    """Some points, and which of them each of 300 rows is at."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.integers(n, size=300), rng


def duplicates(seed):
    place, at, _ = places(seed)
    return place[at]


def near_duplicates(seed, spread=1e-9):
    place, at, rng = places(seed)
    return place[at] + spread * rng.normal(size=(300, 3))


def huge_offset(seed):
    return near_duplicates(seed, spread=1e-3) + 1e9


def integers(seed):
    """So many values that there are no ties between distinct rows."""
    place, at, _ = places(seed)
    return np.round(1e6 * place[at])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("make", [duplicates, near_duplicates, huge_offset, integers])
def test_ward_is_scipys_where_rounding_is_hard(make, seed):
    X = make(seed)
    tree = linkage(X - X.mean(axis=0), "ward")  # SciPy loses digits to an offset too
    for k in (2, 7, 30):
        expected = fcluster(tree, k, "maxclust")
        ours = ward(X, k)
        assert len(np.unique(ours)) == k
        assert_allclose(sum_of_squares(X, ours), sum_of_squares(X, expected), rtol=1e-6)


@pytest.mark.parametrize("spread", [1e-16, 1e-15, 1e-12, 1e-8])
def test_ward_tells_near_duplicates_apart(spread):
    """Two points 60 times each: their distance is far below the rounding of squares and products."""
    sign = np.random.default_rng(0).choice([-1.0, 1.0], size=120)
    close = np.column_stack([spread * sign, np.zeros(120)])
    far = np.array([[1.0, 1.0], [-1.0, -1.0]])
    assert ari(ward(np.concatenate([close, far]), 4)[:120], sign) == 1


@pytest.mark.parametrize("values", [1, 2, 3, 5])
@pytest.mark.parametrize("n_features", [1, 2, 10])
def test_ward_ends_on_ties(values, n_features):
    """Few integers make nearly all distances ties: any order of merges is right, but it must end."""
    X = np.random.default_rng(values).integers(0, values, (400, n_features)).astype(float)
    distinct = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    k = min(4, distinct.max() + 1)
    labels = ward(X, k)
    assert len(np.unique(labels)) == k
    assert len(np.unique(np.column_stack([distinct, labels]), axis=0)) == distinct.max() + 1
    expected = AgglomerativeClustering(k).fit_predict(X) if k > 1 else labels
    assert sum_of_squares(X, labels) <= 1.15 * sum_of_squares(X, expected) + 1e-9


def test_ward_of_a_few_rows():
    assert_array_equal(ward(np.array([[3.0]]), 1), [0])
    assert_array_equal(ward(np.array([[3.0], [3.0]]), 1), [0, 0])
    assert_array_equal(ward(np.array([[3.0], [3.0]]), 2), [0, 1])
