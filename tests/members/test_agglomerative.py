"""Agglomerative clustering: single linkage where gaps separate the clusters, Ward's elsewhere."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
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
