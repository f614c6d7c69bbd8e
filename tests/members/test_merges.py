"""What gives every k at once: merges of trees and eigenpairs; and members made from names."""

from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import linkage
from sklearn.cluster import DBSCAN, KMeans

from deccs.counting.panel import eigenpairs_of
from deccs.labels import canonical
from deccs.members.agglomerative import ward, ward_merges
from deccs.members.checks import members_for, with_names_made
from deccs.members.default import MEMBERS
from deccs.members.genie import genie_merges, gini_index, merged
from deccs.members.neighbors import neighbor_graph
from deccs.members.spanning_tree import parts_of, spanning_tree
from deccs.members.spectral import leading_eigenpairs


def points(n=60, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def clusters_over_merges(merges):
    """The clusters before each merge, as (those merged, all of them)."""
    clusters = {point: frozenset([point]) for point in range(len(merges) + 1)}
    for a, b in merges:
        yield clusters[a], clusters[b], set(clusters.values())
        joined = clusters[a] | clusters[b]
        clusters |= dict.fromkeys(joined, joined)


# ---- parts


def test_parts_by_hand():
    assert parts_of(np.empty((0, 2), dtype=int), 3).tolist() == [0, 1, 2]
    assert parts_of(np.array([[2, 1], [1, 2], [3, 3]]), 4).tolist() == [0, 1, 1, 2]
    assert parts_of(np.array([[4, 0], [0, 2]]), 5).tolist() == [0, 1, 0, 2, 0]


# ---- Ward


@pytest.mark.parametrize("seed", range(3))
def test_wards_merges_have_scipys_heights_the_lowest_first(seed):
    X = points(seed=seed)
    heights = []
    for first, second, _ in clusters_over_merges(ward_merges(X)):
        a, b = X[list(first)], X[list(second)]
        distance = np.linalg.norm(a.mean(axis=0) - b.mean(axis=0))
        heights.append(np.sqrt(2 * len(a) * len(b) / (len(a) + len(b))) * distance)
    assert_allclose(heights, linkage(X, "ward")[:, 2], rtol=1e-9)


def test_wards_merges_by_hand_and_of_few_rows():
    merges = ward_merges(np.array([[0.0], [1], [5], [6.5], [20]]))
    assert [sorted(merge) for merge in merges[:2].tolist()] == [[0, 1], [2, 3]]
    assert ward_merges(np.zeros((1, 2))).shape == (0, 2)
    assert sorted(ward_merges(np.array([[0.0], [3]]))[0].tolist()) == [0, 1]


def test_every_cut_of_wards_merges_is_ward():
    X = points()
    merges = ward_merges(X)
    for k in (1, 2, 7, 60):
        assert_array_equal(parts_of(merges[: 60 - k], 60), ward(X, k))
        assert ward(X, k).max() + 1 == k


# ---- Genie


@pytest.mark.parametrize("gini", [0.0, 0.3, 1.0])
def test_genie_merges_one_of_the_smallest_where_sizes_are_unequal(gini):
    edges = spanning_tree(points(40)).edges
    merges = genie_merges(edges, gini)
    assert_array_equal(np.unique(merges, axis=0), np.unique(edges, axis=0))  # each edge once
    n_unequal = 0
    for first, second, clusters in clusters_over_merges(merges):
        assert first != second
        sizes = [len(cluster) for cluster in clusters]
        if gini_index(Counter(sizes), len(sizes)) > gini:
            n_unequal += 1
            assert min(sizes) in (len(first), len(second))
    assert (n_unequal > 0) == (gini < 1)


def test_without_a_limit_edges_are_merged_in_order():
    edges = spanning_tree(points(30)).edges
    assert_array_equal(genie_merges(edges, gini=1.0), edges)


def test_merges_for_some_clusters_are_the_first_of_all_merges():
    edges = spanning_tree(points(40)).edges
    everything = genie_merges(edges, 0.3)
    for k in (1, 2, 9, 40):
        assert_array_equal(genie_merges(edges, 0.3, k), everything[: 40 - k])
        assert_array_equal(parts_of(everything[: 40 - k], 40), merged(edges, k, 0.3))


# ---- eigenpairs


def test_eigenpairs_of_a_connected_graph_are_those_of_the_dense_matrix():
    graph = neighbor_graph(points(80), 10)
    values, vectors = leading_eigenpairs(graph, 6)
    expected = eigenpairs_of(graph, 6)
    assert_allclose(values, expected.values, atol=1e-9)
    assert_allclose(np.abs((vectors * expected.vectors).sum(axis=0)), 1, atol=1e-6)


def test_each_part_has_the_eigenvalue_1_and_a_vector_of_its_own():
    parts = [np.ones((3, 3)), np.ones((4, 4)), np.eye(1)]
    values, vectors = leading_eigenpairs(sp.csr_array(sp.block_diag(parts)), 5)
    assert_allclose(values, [1, 1, 1, 0, 0], atol=1e-9)
    inside = np.abs(vectors[:, :3]) > 1e-9
    assert_array_equal(canonical(inside.argmax(axis=1)), np.repeat([0, 1, 2], (3, 4, 1)))
    assert (inside.sum(axis=1) == 1).all()


def test_large_graphs_are_solved_by_iterations_with_the_same_result():
    X = points(700, 2)  # above 500 it is not solved dense
    graph = neighbor_graph(X, 10)
    values, vectors = leading_eigenpairs(graph, 4, random_state=0)
    assert_allclose(values, eigenpairs_of(graph, 4).values, atol=1e-6)
    assert (np.diff(values) <= 1e-9).all() and vectors.shape == (700, 4)


def test_more_eigenpairs_than_points_are_all_of_them():
    values, vectors = leading_eigenpairs(sp.csr_array(np.ones((3, 3))), 9)
    assert values.shape == (3,) and vectors.shape == (3, 3)


# ---- members made from names


def test_names_become_clusterers_with_the_number_of_the_fit():
    mine = ("mine", KMeans(7))
    made = with_names_made(["kmeans", mine, "mixture"], 4)
    assert [name for name, _ in made] == ["kmeans", "mine", "mixture"]
    assert made[0][1].n_clusters == 4 and made[1] is mine and made[2][1].n_components == 4


@pytest.mark.parametrize("name", MEMBERS)
def test_every_name_is_known_and_one_cluster_or_none_asks_for_two(name):
    for n_clusters in (None, 1):
        ((_, member),) = with_names_made([name], n_clusters)
        assert hasattr(member, "fit_predict")
        assert getattr(member, "n_clusters", 2) == 2


def test_what_is_no_list_of_names_stays_as_it_is():
    assert with_names_made(None, 3) is None
    assert with_names_made("kmeans", 3) == "kmeans"  # a later check says what is wrong
    pairs = [("a", DBSCAN()), ("b", [0, 1], "raw")]
    assert with_names_made(pairs, 3) == pairs


def test_an_unknown_name_is_told_with_those_that_exist():
    with pytest.raises(ValueError, match="no member named 'k-means'. Choose from kmeans, .*pair"):
        members_for(3, ["k-means", "spectral"], 10)
    with pytest.raises(ValueError, match=r"at least two ensemble members, got 1: \['kmeans'\]"):
        members_for(3, ["kmeans"], 10)
    with pytest.raises(ValueError, match=r"different names, got \['kmeans', 'kmeans'\]"):
        members_for(3, ["kmeans", ("kmeans", KMeans(4))], 10)
