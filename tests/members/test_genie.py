"""Genie: its tree, its merges, and when it differs from single linkage."""

from collections import Counter

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import adjusted_rand_score

from deccs.members.genie import Genie, gini_index, merged
from deccs.members.spanning_tree import single_linkage, spanning_tree


def plain_genie(X: np.ndarray, n_clusters: int, gini: float) -> list[set[int]]:
    """The algorithm as published: the nearest two clusters, one of them smallest if sizes are too unequal."""
    distances = squareform(pdist(X))
    clusters = [{point} for point in range(len(X))]
    while len(clusters) > n_clusters:
        sizes = [len(cluster) for cluster in clusters]
        smallest = min(sizes)
        unequal = gini_index(Counter(sizes), len(sizes)) > gini
        pairs = [
            (distances[np.ix_(list(a), list(b))].min(), i, j)
            for i, a in enumerate(clusters)
            for j, b in enumerate(clusters[:i])
            if not unequal or smallest in (len(a), len(b))
        ]
        _, i, j = min(pairs)
        clusters[j] |= clusters.pop(i)
    return clusters


@pytest.mark.parametrize("gini", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_same_clusters_as_the_plain_algorithm(gini, seed):
    X = np.random.default_rng(seed).normal(size=(40, 3))
    expected = np.empty(40, dtype=int)
    for number, cluster in enumerate(plain_genie(X, 4, gini)):
        expected[list(cluster)] = number
    assert adjusted_rand_score(expected, Genie(4, gini).fit_predict(X)) == 1


def test_the_tree_is_that_of_single_linkage():
    X = np.random.default_rng(0).normal(size=(200, 5)) + 1e6
    edges, lengths = spanning_tree(X)
    exact = np.linalg.norm(X[edges[:, 0]] - X[edges[:, 1]], axis=1)
    np.testing.assert_allclose(exact, linkage(X, "single")[:, 2], atol=1e-6)
    np.testing.assert_allclose(lengths, exact, atol=1e-6)


def test_single_linkage_is_that_of_scipy():
    X = np.random.default_rng(3).normal(size=(100, 4))
    np.testing.assert_allclose(single_linkage(X), linkage(X, "single"), rtol=1e-9)


def test_without_a_limit_it_is_single_linkage():
    X = np.random.default_rng(1).normal(size=(150, 2))
    expected = fcluster(linkage(X, "single"), 5, "maxclust")
    assert adjusted_rand_score(expected, merged(spanning_tree(X)[0], 5, gini=1.0)) == 1


def test_stray_points_are_not_clusters():
    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 12, [[40.0, 40], [-40, 0]]])
    assert np.bincount(Genie(2, gini=1.0).fit_predict(X)).min() == 1  # single linkage
    assert np.bincount(Genie(2).fit_predict(X)).min() == 51


def test_equal_points_and_as_many_clusters_as_points():
    assert len(np.unique(Genie(3).fit_predict(np.zeros((9, 2))))) == 3
    assert Genie(3).fit_predict(np.eye(3)).tolist() == [0, 1, 2]
