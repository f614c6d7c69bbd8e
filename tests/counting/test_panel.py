"""Members for every k: cuts of trees, eigenvectors, and what a panel holds."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import cut_tree, linkage

from deccs.counting import panel as module
from deccs.counting.panel import (
    MOST_CAREFUL,
    by_eigenvectors,
    by_genie,
    by_kmeans,
    by_mixture,
    by_ward,
    eigenpairs_of,
    panel_of,
    tree_cuts,
)
from deccs.labels import canonical
from deccs.members.agreement import adjusted_rand
from deccs.members.genie import Genie, genie_merges
from deccs.members.neighbors import neighbor_graph
from deccs.members.spanning_tree import spanning_tree

KS = [2, 3, 5, 8, 13]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(90, 4))


@pytest.fixture(scope="module")
def panel(X):
    eigenpairs = eigenpairs_of(neighbor_graph(X, 10), 40)
    return panel_of(X, X[:, :2], spanning_tree(X), eigenpairs, [2, 3, MOST_CAREFUL + 1], 0)


def is_nested(coarse, fine):
    """Whether each fine cluster lies in one coarse one."""
    return len(np.unique(np.stack([coarse, fine]), axis=1).T) == len(np.unique(fine))


def test_cuts_by_hand():
    merges = np.array([[0, 3], [1, 2], [3, 1], [0, 4]])  # 03, 12, 0312, all
    cuts = tree_cuts(merges, [1, 2, 3, 4, 5])
    assert [cut.tolist() for cut in cuts] == [
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
        [0, 1, 1, 0, 2],
        [0, 1, 2, 0, 3],
        [0, 1, 2, 3, 4],
    ]


@pytest.mark.parametrize("seed", range(3))
def test_wards_cuts_are_scipys(seed):
    X = np.random.default_rng(seed).normal(size=(70, 3))
    theirs = cut_tree(linkage(X, "ward"), KS)  # (n, n_ks)
    for ours, expected in zip(by_ward(X, KS), theirs.T, strict=True):
        assert_array_equal(ours, canonical(expected))


def test_genies_cuts_are_those_of_genie_for_each_k(X):
    for k, labels in zip(KS, by_genie(spanning_tree(X), KS), strict=True):
        assert_array_equal(labels, Genie(k).fit_predict(X))


@pytest.mark.parametrize("cuts", [by_ward, lambda X, ks: by_genie(spanning_tree(X), ks)])
def test_cuts_are_nested_over_k(X, cuts):
    found = cuts(X, list(range(1, 20)))
    assert [len(np.unique(labels)) for labels in found] == list(range(1, 20))
    for coarse, fine in pairwise(found):
        assert is_nested(coarse, fine)
    assert not is_nested(found[4], np.arange(len(X)) % 7)  # the check can fail


def test_every_partition_has_numbers_without_gaps(panel):
    for k, partitions in zip(panel.ks, panel.at, strict=True):
        for name, labels in partitions.items():
            assert labels.shape == (90,)
            assert_array_equal(canonical(labels), labels, err_msg=f"{name}, k = {k}")
            assert labels.max() + 1 == k, name


def test_costly_members_take_part_for_few_clusters_only(panel):
    names = {
        f"{view} {kind}" for view in ("raw", "manifold") for kind in ("kmeans", "ward", "genie")
    }
    assert set(panel.at[2]) == names
    assert set(panel.at[0]) == names | {"raw spectral", "raw mixture", "manifold mixture"}
    assert_array_equal(panel.by("raw ward")[1], panel.at[1]["raw ward"])


def test_a_mixture_sees_few_columns_only():
    X = np.random.default_rng(0).normal(size=(60, 21))
    eigenpairs = eigenpairs_of(neighbor_graph(X, 10), 6)
    at = panel_of(X, X[:, :2], spanning_tree(X), eigenpairs, [2], 0).at[0]
    assert "raw mixture" not in at and "manifold mixture" in at


def test_a_mixture_that_cannot_be_fitted_is_left_out(X, monkeypatch):
    def collapsed(*_, **__):
        raise ValueError("a cluster has collapsed")

    monkeypatch.setattr(module.GaussianMixture, "fit_predict", collapsed)
    assert by_mixture(X, [2, 3], 0) == [None, None]
    eigenpairs = eigenpairs_of(neighbor_graph(X, 10), 6)
    at = panel_of(X, X[:, :2], spanning_tree(X), eigenpairs, [2], 0).at[0]
    assert not [name for name in at if "mixture" in name]


def test_members_have_the_same_bits_with_the_same_seed(X):
    for cluster in (by_kmeans, by_mixture):
        for first, second in zip(cluster(X, [3, 4], 7), cluster(X, [3, 4], 7), strict=True):
            assert_array_equal(first, second)


def test_eigenpairs_solve_their_equation_the_largest_first(X):
    graph = neighbor_graph(X, 10)
    pairs = eigenpairs_of(graph, 12)
    assert pairs.values[0] == pytest.approx(1) and (np.diff(pairs.values) <= 1e-12).all()
    root = np.sqrt(graph.sum(axis=1))
    matrix = graph.toarray() / root[:, None] / root
    assert_allclose(matrix @ pairs.vectors, pairs.vectors * pairs.values, atol=1e-9)
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(12), atol=1e-9)


def test_each_part_of_a_graph_is_a_cluster_of_its_eigenvectors():
    graph = sp.csr_array(sp.block_diag([np.ones((n, n)) for n in (4, 6, 9)]))
    pairs = eigenpairs_of(graph, 6)
    assert_allclose(pairs.values, [1, 1, 1, 0, 0, 0], atol=1e-9)  # one for each part
    (labels,) = by_eigenvectors(pairs.values, pairs.vectors, [3], 0)
    assert_array_equal(labels, np.repeat([0, 1, 2], (4, 6, 9)))


def test_genie_merges_are_the_whole_tree(X):
    edges = spanning_tree(X).edges
    merges = genie_merges(edges, 0.3)
    assert_array_equal(np.unique(merges, axis=0), np.unique(edges, axis=0))
    assert adjusted_rand(tree_cuts(merges, [1])[0], np.zeros(len(X), dtype=int)) == 1
