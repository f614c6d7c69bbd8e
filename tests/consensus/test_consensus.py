"""Consensus functions: the laws all obey, cases worked by hand, and those without a partitioner against all pairs."""

import warnings
from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from deccs import consensus
from deccs.consensus import (
    FUNCTIONS,
    FewerClusters,
    average_nmi,
    choice,
    co_association,
    consensus_function,
    cspa,
    eac,
    evidence,
    hgpa,
    supra,
)
from deccs.consensus import locally_weighted as lw
from deccs.consensus.evidence import similarities
from deccs.consensus.factorization import factorize, factors, nmf, residual
from deccs.consensus.functions import on_distinct_rows
from deccs.consensus.locally_weighted import cluster_index, lwea, lwgp
from deccs.consensus.partitions import distinct_rows
from deccs.consensus.tree import Dense, Factored, merge_tree
from deccs.labels import canonical
from deccs.members.agreement import nmi_of_counts
from deccs.seeds import seed_for
from tests.helpers.consensus_references import (
    bipartite,
    closest_pairs,
    cluster_indices_by_loops,
    co_association_by_loops,
    factorize_all_points,
    locally_weighted_by_loops,
    noisy,
    repeated,
    whole_graph,
)

every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
TRUTH = np.repeat([0, 1, 2], 20)  # balanced: HGPA and CSPA keep parts of one size


def rows_tree(partitions, weights=None, linkage="average"):
    rows = distinct_rows(partitions, weights)
    return rows, merge_tree(similarities(rows, np.ones(rows.membership.shape[1]), linkage))


def heights(partitions, weights=None, linkage="average"):
    """(n_points - 1,) of all merges of points; those with the same labels meet at height 0."""
    rows, tree = rows_tree(partitions, weights, linkage)
    return np.sort(np.concatenate([np.zeros(rows.counts.sum() - len(rows)), 1 - tree.similarity]))


def linkage_of(S, linkage="average"):
    return hierarchy.linkage(squareform(1 - S, checks=False), linkage)


def assert_same_clusters(a, b):
    assert_array_equal(canonical(np.asarray(a)), canonical(np.asarray(b)))


# What every function obeys


@every_function
def test_labels_are_numbered_by_first_appearance(function):
    labels = function(noisy(0)[1], 3, random_state=0)
    assert labels.shape == (90,)
    assert_array_equal(labels, canonical(labels))
    assert_array_equal(np.unique(labels), [0, 1, 2])


@every_function
def test_names_of_clusters_change_nothing(function):
    _, partitions = noisy(1)
    renamed = np.array(
        [np.random.default_rng(m).permutation(50)[member] for m, member in enumerate(partitions)]
    )
    assert_array_equal(
        function(renamed, 3, random_state=0), function(partitions, 3, random_state=0)
    )


@every_function
def test_names_may_be_words(function):
    _, partitions = noisy(1)
    words = np.array(["red", "green", "blue"])[partitions]
    assert_array_equal(function(words, 3, random_state=0), function(partitions, 3, random_state=0))


@every_function
def test_same_seed_same_bits(function):
    _, partitions = noisy(2, noise=0.5)
    assert_array_equal(
        function(partitions, 4, random_state=7), function(partitions, 4, random_state=7)
    )


@every_function
def test_weight_0_is_leaving_out(function):
    _, partitions = noisy(3, n_members=6)
    weights = np.array([1, 2, 0, 1, 0, 3])
    left = weights > 0
    assert_array_equal(
        function(partitions, weights=weights, random_state=0),
        function(partitions[left], weights=weights[left], random_state=0),
    )


@every_function
def test_weights_of_twice_the_size_change_nothing(function):
    _, partitions = noisy(4)
    weights = np.array([0.3, 1, 2, 0.7, 1.1])
    assert_array_equal(
        function(partitions, 3, weights=weights, random_state=0),
        function(partitions, 3, weights=2 * weights, random_state=0),
    )


@every_function
def test_a_member_that_weighs_most_decides(function):
    truth, partitions = noisy(5, n_points=60)
    crossed = np.arange(60) // 20  # the truth is i % 3: nothing in common
    ensemble = np.vstack([partitions, crossed])
    assert_same_clusters(
        function(ensemble, 3, weights=[1, 1, 1, 1, 1, 1e4], random_state=0), crossed
    )
    without = function(ensemble, 3, weights=[1, 1, 1, 1, 1, 1e-4], random_state=0)
    assert adjusted_rand_score(truth, without) > 0.3 > adjusted_rand_score(crossed, without)


@every_function
def test_perfect_agreement_comes_back(function):
    partitions = np.tile(TRUTH, (4, 1))
    assert_array_equal(function(partitions, 3, random_state=0), TRUTH)
    assert_array_equal(function(partitions, random_state=0), TRUTH)  # 3 is what most members have


@every_function
def test_a_renamed_copy_is_no_other_opinion(function):
    assert_array_equal(function([TRUTH, TRUTH, 2 - TRUTH], random_state=0), TRUTH)


@every_function
@pytest.mark.parametrize("seed", range(3))
def test_one_random_member_is_outvoted(function, seed):
    chance = np.random.default_rng(seed).integers(0, 3, 60)
    assert_array_equal(function([chance, *[TRUTH] * 5], 3, random_state=0), TRUTH)


@every_function
def test_nan_and_minus_one_are_no_label(function):
    _, partitions = noisy(6, missing=0.2)
    nan = np.where(partitions == -1, np.nan, partitions)
    assert_array_equal(function(nan, 3, random_state=0), function(partitions, 3, random_state=0))


@every_function
def test_points_no_member_labeled_have_none(function):
    partitions = np.tile(TRUTH, (4, 1))
    partitions[:, [0, 25, 50]] = -1  # of all members: one point of each cluster
    partitions[0, [1, 2]] = partitions[1, [30, 31]] = -1  # of one member
    labels = function(partitions, 3, random_state=0)
    assert_array_equal(np.flatnonzero(labels == -1), [0, 25, 50])
    assert_array_equal(np.delete(labels, [0, 25, 50]), np.delete(TRUTH, [0, 25, 50]))


@every_function
def test_partial_members_fill_each_others_gaps(function):
    # Each knows two thirds of every cluster, and every two of them share a third.
    partitions = np.tile(TRUTH, (3, 1))
    for gap, member in enumerate(partitions):
        member[np.arange(60) % 3 == gap] = -1
    assert_array_equal(function(partitions, 3, random_state=0), TRUTH)


@every_function
def test_one_cluster(function):
    assert_array_equal(function(noisy(7)[1], 1, random_state=0), np.zeros(90))
    assert_array_equal(function([[0, 0, 0, 0]], random_state=0), np.zeros(4))


@every_function
def test_more_clusters_than_distinct_rows(function):
    partitions = [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 2]]  # rows (0, 0), (1, 1), (1, 2)
    with pytest.warns(FewerClusters, match="3 clusters instead of 4"):
        labels = function(partitions, 4, random_state=0)
    assert_array_equal(labels, [0, 0, 0, 1, 1, 2])


@pytest.mark.parametrize(
    "function", [f for name, f in FUNCTIONS.items() if name not in ("mcla", "supra")]
)
def test_as_many_clusters_as_points(function):
    # In MCLA a group of clusters may win no point, so there may be fewer clusters.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(function([[0, 0, 1, 1], [0, 1, 0, 1]], 4, random_state=0), [0, 1, 2, 3])


@every_function
def test_a_member_without_labels_has_no_say(function):
    nothing = np.full(60, -1)
    assert_array_equal(function([nothing, TRUTH, TRUTH], 3, random_state=0), TRUTH)
    assert_array_equal(
        function([nothing, nothing, TRUTH], random_state=0), TRUTH
    )  # nor in how many clusters


@every_function
def test_nobody_puts_any_two_together(function):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = function([[0, 1, 2, 3], [3, 2, 1, 0]], 2, random_state=0)
    assert set(labels) == {0, 1}


@pytest.mark.parametrize("function", [eac, lwea, nmf, lwgp])
@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_points_changes_nothing(function, seed):
    _, partitions = noisy(seed, n_points=60, n_members=9, noise=0.15)
    rng = np.random.default_rng(seed)
    weights, order = rng.uniform(0.5, 2, 9), rng.permutation(60)  # such weights leave few ties
    labels = function(partitions, 3, weights=weights, random_state=0)
    moved = function(partitions[:, order], 3, weights=weights, random_state=0)
    assert_array_equal(moved, canonical(labels[order]))


# What is refused


@every_function
@pytest.mark.parametrize(
    ("partitions", "n_clusters", "weights", "message"),
    [
        ([0, 1, 2], 2, None, r"\(n_members, n_points\).*got shape \(3,\)"),
        (np.zeros((2, 2, 2)), 2, None, r"got shape \(2, 2, 2\)"),
        ([[]], 2, None, r"got shape \(1, 0\)"),
        ([[0, 1, 2], [0, 1]], 2, None, r"same points, one row each.*\(2,\)"),
        ([[0, 1, np.inf]], 2, None, "holds infinity"),
        ([[0, 1, 0.5]], 2, None, "0.5 is no label"),
        ([[0, 1, -2]], 2, None, "holds -2"),
        ([[-1, np.nan, -1]], 1, None, "No member has labeled any point"),
        ([[0, 1, 1]], 4, None, "n_clusters=4 is more than the 3 labeled points.*transposed"),
        ([[0, 1, -1]], 3, None, "n_clusters=3 is more than the 2 labeled points"),
        ([[0, 1, 1]], 0, None, "n_clusters must be .* at least 1 or None, got 0"),
        ([[0, 1, 1]], 2.0, None, "whole number.*got 2.0"),
        ([[0, 1, 1]], True, None, "whole number.*got True"),
        ([[0, 1, 1], [0, 0, 1]], 2, [1, -1], r"2 numbers of at least 0.*got \[1, -1\]"),
        ([[0, 1, 1], [0, 0, 1]], 2, [0, 0], r"not all 0; got \[0, 0\]"),
        ([[0, 1, 1], [0, 0, 1]], 2, [1, 1, 1], r"2 numbers.*got \[1, 1, 1\]"),
        ([[0, 1, 1], [0, 0, 1]], 2, [1, np.nan], r"got \[1, nan\]"),
    ],
)
def test_what_is_wrong_is_said(function, partitions, n_clusters, weights, message):
    with pytest.raises(ValueError, match=message):
        function(partitions, n_clusters, weights=weights)


def test_settings_that_are_wrong_are_said():
    with pytest.raises(ValueError, match="'average' or 'single', got 'ward'"):
        eac([[0, 1]], 1, linkage="ward")
    for function in (lwea, lwgp):
        with pytest.raises(ValueError, match="theta must be a number above 0, got 0"):
            function([[0, 0, 1], [0, 1, 1]], 2, theta=0)
    with pytest.raises(ValueError, match="n_iter must be a whole number of at least 0, got 0.5"):
        nmf([[0, 0, 1], [0, 1, 1]], 2, n_iter=0.5)
    with pytest.raises(TypeError, match="cspa.* unexpected keyword argument 'theta'"):
        cspa([[0, 0, 1], [0, 1, 1]], 2, theta=0.4)


# The registry


def test_every_function_of_the_package_is_registered_by_its_name():
    names = {"cspa", "eac", "hbgf", "hgpa", "lwea", "lwgp", "mcla", "nmf", "supra"}
    assert names <= set(FUNCTIONS) and names <= set(consensus.__all__)
    for name in names:
        assert getattr(consensus, name) is FUNCTIONS[name]
        assert FUNCTIONS[name].__name__ == name


@every_function
def test_help_shows_what_a_function_takes(function):
    names = list(signature(function).parameters)
    assert names[:2] == ["base_partitions", "n_clusters"]
    assert names[-2:] == ["weights", "random_state"]
    special = {"eac": ["linkage"], "lwea": ["theta"], "lwgp": ["theta"], "nmf": ["n_iter"]}
    assert names[2:-2] == special.get(function.__name__, [])
    assert function.__doc__


def test_a_function_on_distinct_rows_gets_rows_clusters_a_seed_and_its_options(monkeypatch):
    monkeypatch.setitem(FUNCTIONS, "in_turn", None)  # removed after the test
    given = []

    @consensus_function
    @on_distinct_rows
    def in_turn(rows, n_clusters, seed, *, n_labels=2):
        given.append((len(rows), n_clusters, seed))
        return rows.spread(np.arange(len(rows)) % n_labels)

    partitions = [[0, 0, 1, 1], [0, 0, 0, 1]]
    assert_array_equal(FUNCTIONS["in_turn"](partitions, random_state=5), [0, 0, 1, 0])
    assert_array_equal(in_turn(partitions, 2, n_labels=3, random_state=5), [0, 0, 1, 2])
    assert given == [(3, 2, seed_for(5, "in_turn"))] * 2
    with pytest.warns(FewerClusters, match="3 clusters instead of 4"):
        in_turn(partitions, 4)
    assert len(given) == 2  # with more clusters than rows it is not called


@pytest.mark.parametrize("function", [eac, nmf, hgpa])
def test_a_warning_points_to_the_line_of_the_caller(function):
    with pytest.warns(FewerClusters) as caught:
        function([[0, 0, 1]], 3, random_state=0)
    assert caught[0].filename == __file__


# Distinct rows


@pytest.mark.parametrize("n_members", [3, 12, 80])  # 80 label vectors fit no 64-bit number
def test_distinct_rows_are_those_of_numpy(n_members):
    rng = np.random.default_rng(0)
    partitions = rng.integers(-1, 3, (n_members, 30))[:, rng.integers(0, 30, 100)]
    partitions[:, :20] = partitions[:, 20:40]
    partitions[0, :20] = (partitions[0, :20] + 2) % 4 - 1  # they differ in the first member alone
    rows = distinct_rows(partitions)
    vectors = np.array([canonical(member) for member in partitions]).T  # (n_points, n_members)
    assert len(rows) == len(np.unique(vectors[(vectors != -1).any(axis=1)], axis=0))
    assert_array_equal(rows.labels[rows.row_of[rows.row_of >= 0]], vectors[rows.row_of >= 0])
    assert_array_equal(vectors[rows.row_of == -1], -1)
    assert_array_equal(rows.counts, np.bincount(rows.row_of[rows.row_of >= 0]))


def test_overlaps_by_hand():
    rows = distinct_rows([[0, 0, 0, 1], [0, 0, 1, -1]])
    assert_array_equal(rows.overlaps, [[3, 0, 2, 1], [0, 1, 0, 0], [2, 0, 2, 0], [1, 0, 0, 1]])


# Evidence accumulation


@pytest.mark.parametrize("linkage", ["average", "single"])
@pytest.mark.parametrize("missing", [0, 0.15])
@pytest.mark.parametrize("seed", range(8))
def test_eac_has_the_heights_of_all_points(seed, missing, linkage):
    partitions, weights = repeated(seed, missing=missing)
    tree = linkage_of(co_association_by_loops(partitions, weights), linkage)
    assert_allclose(heights(partitions, weights, linkage), np.sort(tree[:, 2]), atol=1e-9)
    for k in (2, 3, 5) if linkage == "average" else ():
        assert_same_clusters(
            eac(partitions, k, weights=weights), hierarchy.cut_tree(tree, k).ravel()
        )


@pytest.mark.parametrize("linkage", ["average", "single"])
@pytest.mark.parametrize("missing", [0, 0.15])
@pytest.mark.parametrize("seed", range(3))
def test_eac_merges_the_closest_where_there_are_ties(seed, missing, linkage):
    # Equal members give many equal pairs, and the heights of average linkage then depend on the order of the
    # points (scipy's too). What holds in any order: no two clusters are ever closer than the two that are merged.
    _, partitions = noisy(seed, n_points=36, n_members=4, noise=0.35, missing=missing)
    rows, tree = rows_tree(partitions, linkage=linkage)
    assert 12 < len(rows) < 36
    replayed = closest_pairs(co_association_by_loops(partitions), rows.row_of, tree.pairs, linkage)
    assert_allclose(replayed[:, 0], tree.similarity, atol=1e-9)
    assert_allclose(replayed[:, 0], replayed[:, 1], atol=1e-9)


@pytest.mark.parametrize("missing", [0, 0.15])
@pytest.mark.parametrize("seed", range(6))
def test_single_linkage_has_the_heights_of_all_points_in_spite_of_ties(seed, missing):
    _, partitions = noisy(seed, n_points=40, noise=0.4, missing=missing)
    expected = linkage_of(co_association_by_loops(partitions), "single")[:, 2]
    assert_allclose(heights(partitions, linkage="single"), np.sort(expected), atol=1e-9)


def test_eac_by_hand():
    # Rows a (points 0, 1), b (point 2), c (points 3, 4). a-b: members 0 and 2 of 3; b-c: member 1; a-c: none.
    # a and b meet at 1 - 2/3; then c is 1 - (2 * 0 + 1 * 1/3) / 3 away on average, and 1 - 1/3 by its nearest.
    partitions = [[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [2, 2, 2, 0, 0]]
    assert_allclose(heights(partitions), [0, 0, 1 / 3, 8 / 9])
    assert_allclose(heights(partitions, linkage="single"), [0, 0, 1 / 3, 2 / 3])
    assert_array_equal(eac(partitions, 2), [0, 0, 0, 1, 1])
    assert_array_equal(eac(partitions, 3), [0, 0, 1, 2, 2])
    assert_array_equal(
        eac(partitions, 2, weights=[1, 3, 1]), [0, 0, 1, 1, 1]
    )  # member 1 has 3 of 5


def test_multiplicities_count():
    # Row b lies between a and c. c is nearer to b alone, but a has many points that b has met before.
    partitions = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 1, 1, 1], [0, 1, 1, 2]])
    many = partitions[:, [0] * 5 + [1, 2, 3]]
    assert_allclose(
        heights(many), np.sort(linkage_of(co_association_by_loops(many))[:, 2]), atol=1e-12
    )
    assert not np.allclose(heights(many)[4:], heights(partitions))


@pytest.mark.parametrize("function", [eac, lwea])
def test_without_the_matrix_of_pairs_the_tree_is_the_same(function, monkeypatch):
    for seed in range(5):
        partitions, weights = repeated(seed, n_rows=20, n_points=60)
        monkeypatch.setattr(evidence, "DENSE_BYTES", 8 * 20**2)
        assert isinstance(similarities(distinct_rows(partitions), np.ones(60)), Dense)
        dense = (
            heights(partitions, weights),
            [function(partitions, k, weights=weights) for k in (2, 4, 9)],
        )
        monkeypatch.setattr(evidence, "DENSE_BYTES", 8 * 20**2 - 1)
        assert isinstance(similarities(distinct_rows(partitions), np.ones(60)), Factored)
        factored = (
            heights(partitions, weights),
            [function(partitions, k, weights=weights) for k in (2, 4, 9)],
        )
        assert_allclose(factored[0], dense[0], atol=1e-12)
        assert_array_equal(factored[1], dense[1])


def test_too_large_for_pairs_says_what_to_use_instead(monkeypatch):
    monkeypatch.setattr(evidence, "DENSE_BYTES", 100)
    with pytest.raises(
        MemoryError, match="4 distinct label vectors.*single linkage.*hbgf, nmf, mcla and lwgp"
    ):
        eac([[0, 0, 1, 1], [0, 1, 0, 1]], 2, linkage="single")
    for function in (eac, lwea):
        with pytest.raises(
            MemoryError, match="average linkage with partial labels.*hbgf, nmf, mcla and lwgp"
        ):
            function([[0, 0, 1, 1, -1], [0, 1, 0, 1, 1]], 2)


# The co-association matrix


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0, 0.3])
def test_co_association_is_that_of_loops(missing, weighted):
    for seed in range(4):
        partitions, weights = repeated(seed, n_members=5, missing=missing)
        partitions[:, -2:] = -1 if missing else partitions[:, -2:]  # two points without labels
        weights = weights if weighted else None
        expected = co_association_by_loops(partitions, weights)
        matrix = co_association(partitions, weights=weights)
        assert matrix.shape == (40, 40)
        assert_allclose(matrix.toarray(), expected, atol=1e-12)
        assert_allclose(matrix.tosparse().toarray(), expected, atol=1e-12)
        assert matrix.tosparse().nnz == (expected > 0).sum()
        points = [39, 3, 3, 17]
        assert_allclose(matrix.of(points), expected[np.ix_(points, points)], atol=1e-12)


def test_co_association_of_points_without_labels():
    matrix = co_association([[0, 0, -1, 1]])
    assert_array_equal(matrix.of([2, 0]), [[0, 0], [0, 1]])
    assert_array_equal(matrix.of([2]), [[0]])


def test_co_association_that_does_not_fit_is_refused():
    matrix = co_association([[0, 0, 1, 1], [0, 1, 1, 1]])  # 10 pairs are ever put together, of 16
    with pytest.raises(
        MemoryError, match=r"4 points needs 0.0 GB, more than max_bytes=0.0 GB.*of\(points\)"
    ):
        matrix.toarray(max_bytes=8 * 16 - 1)
    with pytest.raises(MemoryError, match="raise max_bytes"):
        matrix.tosparse(max_bytes=12 * 12 - 1)
    assert (
        matrix.toarray(max_bytes=8 * 16).shape == matrix.tosparse(max_bytes=12 * 12).shape == (4, 4)
    )


# Locally weighted


def test_cluster_index_by_hand():
    partitions = [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1]]
    quarter, third = (
        2 - 0.75 * np.log2(3),
        np.log2(3) - 2 / 3,
    )  # bits of (3/4, 1/4) and of (2/3, 1/3)
    bits = [1 + quarter, 0, 0, 1, 0, third, 2 * third]
    # {0 1 2 3}: halves in the second, 3 to 1 in the third. {3 4 5}: 1 to 2 in both others.
    assert_allclose(
        cluster_index(distinct_rows(partitions), theta=0.4), np.exp(-np.array(bits) / (0.4 * 3))
    )


@pytest.mark.parametrize("missing", [0, 0.2])
def test_cluster_index_is_that_of_loops(missing):
    for seed in range(5):
        _, partitions = noisy(seed, missing=missing)
        expected = [index for _, _, index in cluster_indices_by_loops(partitions, theta=0.7)]
        assert_allclose(cluster_index(distinct_rows(partitions), theta=0.7), expected)


@pytest.mark.parametrize("missing", [0, 0.1])
@pytest.mark.parametrize("seed", range(6))
def test_lwea_is_linkage_of_all_points(seed, missing):
    truth, partitions = noisy(seed, n_points=60, n_members=8, noise=0.25, missing=missing)
    weights = np.random.default_rng(seed).uniform(0.5, 2, 8) if seed % 2 else None
    tree = linkage_of(locally_weighted_by_loops(partitions, weights))
    for k in (2, 3, 4):
        assert_same_clusters(
            lwea(partitions, k, weights=weights), hierarchy.cut_tree(tree, k).ravel()
        )
    assert adjusted_rand_score(truth, lwea(partitions, 3, weights=weights)) > 0.7


def test_theta_counts():
    _, partitions = noisy(0, n_points=60, n_members=8, noise=0.6)
    for theta in (0.1, 2):
        tree = linkage_of(locally_weighted_by_loops(partitions, theta=theta))
        assert_same_clusters(lwea(partitions, 4, theta=theta), hierarchy.cut_tree(tree, 4).ravel())
    assert adjusted_rand_score(lwea(partitions, 4, theta=0.1), lwea(partitions, 4, theta=2)) < 1


def dense_transfer(partitions, weights, k):
    """(N, k) points, (k,) eigenvalues: the largest of the normalized graph of all points and clusters."""
    indices = cluster_indices_by_loops(partitions, theta=0.4)
    B = bipartite(
        partitions, [index * weights[member] / weights.sum() for member, _, index in indices]
    )
    W = whole_graph(B)
    degree = W.sum(axis=1)
    values, vectors = np.linalg.eigh(W / np.sqrt(np.outer(degree, degree)))
    assert values[-k] - values[-k - 1] > 1e-3  # else the k-th vector is any of many
    return (vectors[:, -k:] / np.sqrt(degree)[:, None])[: len(B)], values[-k:]


@pytest.mark.parametrize("missing", [0, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_lwgp_has_the_eigenvectors_of_the_whole_graph(seed, missing, monkeypatch):
    truth, partitions = noisy(seed, n_members=6, noise=0.15, missing=missing)
    weights = np.random.default_rng(seed).uniform(0.5, 2, 6)
    seen = {}

    class Recorded(KMeans):
        def fit_predict(self, Z, y=None, sample_weight=None):
            seen.update(Z=Z, counts=sample_weight)
            return super().fit_predict(Z, y, sample_weight)

    monkeypatch.setattr(lw, "KMeans", Recorded)
    labels = lwgp(partitions, 3, weights=weights, random_state=0)
    rows = distinct_rows(partitions, weights)
    assert_array_equal(seen["counts"], rows.counts)
    # A point is the mean of its clusters: the eigenvector of the whole graph times its eigenvalue.
    vectors, values = dense_transfer(partitions, weights, 3)
    Z = vectors * values
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    ours = seen["Z"][rows.row_of]
    assert_allclose(ours @ ours.T, Z @ Z.T, atol=1e-8)  # the same up to sign and rotation
    assert_same_clusters(labels, KMeans(3, n_init=10, random_state=0).fit_predict(Z))
    assert adjusted_rand_score(truth, labels) > 0.8


# Factorization


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_nmf_makes_the_updates_of_all_points(seed, weighted):
    partitions, weights = repeated(seed)
    weights = weights if weighted else None
    rows = distinct_rows(partitions, weights)
    F, S = factors(rows), co_association_by_loops(partitions, weights)
    assert_allclose((F @ F.T)[np.ix_(rows.row_of, rows.row_of)], S, atol=1e-12)
    start = np.random.default_rng(seed).uniform(0.1, 1, (len(rows), 3))
    for n_iter in (1, 30):
        Q, D = factorize(F, rows.counts, start, n_iter)
        all_Q, all_D = factorize_all_points(S, start[rows.row_of], n_iter)
        assert_allclose(Q[rows.row_of], all_Q, atol=1e-8)
        assert_allclose(D, all_D, atol=1e-8)
        assert residual(F, rows.counts, Q, D) == pytest.approx(
            ((S - all_Q @ all_D @ all_Q.T) ** 2).sum(), rel=1e-8
        )


def test_factors_of_partial_labels_are_cosines():
    # Points 0 and 1: members 0 and 1 labeled both, one puts them together; 0 has three labels, 1 has two.
    rows = distinct_rows([[0, 0], [0, 1], [0, -1]])
    S = factors(rows) @ factors(rows).T
    assert_allclose(S, [[1, 1 / np.sqrt(6)], [1 / np.sqrt(6), 1]])


def test_nmf_finds_the_truth_in_noise():
    for seed in range(4):
        truth, partitions = noisy(seed, n_members=9, noise=0.25)
        assert adjusted_rand_score(truth, nmf(partitions, 3, random_state=0)) > 0.9


# Scoring and choosing


@pytest.mark.parametrize("missing", [0, 0.3])
def test_average_nmi_is_that_of_scikit_learn(missing):
    for seed in range(5):
        _, partitions = noisy(seed, n_clusters=4, noise=0.5, missing=missing)
        labels = noisy(seed + 50, n_clusters=5, missing=missing)[1][0]
        both = [(labels != -1) & (member != -1) for member in partitions]
        expected = [
            normalized_mutual_info_score(member[common], labels[common])
            for member, common in zip(partitions, both, strict=True)
        ]
        assert average_nmi(labels, partitions) == pytest.approx(np.mean(expected))
        weights = np.arange(5)
        assert average_nmi(labels, partitions, weights=weights) == pytest.approx(
            weights @ expected / 10
        )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([0, 0, 0], [0, 0, 0]),
        ([0, 0, 0], [0, 0, 1]),
        ([0, 1, 2], [0, 0, 0]),
        ([0, 1, 2], [2, 1, 0]),
        ([0, 0, 1, 1], [0, 1, 0, 1]),
        ([0, 0, 1, 1, 2], [0, 0, 1, 2, 2]),
    ],
)
def test_nmi_of_counts_is_that_of_scikit_learn(a, b):
    counts = np.zeros((4, 3), dtype=int)  # with empty rows and columns
    np.add.at(counts, (a, b), 1)
    assert nmi_of_counts(counts) == pytest.approx(normalized_mutual_info_score(a, b))
    assert average_nmi(a, [b]) == pytest.approx(normalized_mutual_info_score(a, b))


def test_no_common_point_is_no_agreement():
    assert nmi_of_counts(np.zeros((2, 2), dtype=int)) == 0
    assert average_nmi([0, 1, -1, -1], [[-1, -1, 0, 1], [0, 1, 1, 1]]) == 0.5


def test_average_nmi_wants_a_label_per_point():
    with pytest.raises(ValueError, match=r"shape \(3,\); got shape \(2,\)"):
        average_nmi([0, 1], [[0, 1, 1]])


@pytest.mark.parametrize("seed", range(4))
def test_supra_is_the_one_that_agrees_most(seed):
    _, partitions = noisy(seed, n_points=60, noise=0.6)
    answers = [
        FUNCTIONS[name](partitions, 3, random_state=seed) for name in ("cspa", "hgpa", "mcla")
    ]
    best = max(average_nmi(labels, partitions) for labels in answers)
    chosen = supra(partitions, 3, random_state=seed)
    assert average_nmi(chosen, partitions) == best
    assert any(np.array_equal(chosen, labels) for labels in answers)


@pytest.mark.parametrize("best", ["cspa", "hgpa", "mcla"])
def test_supra_may_choose_any_of_the_three(best, monkeypatch):
    crossed = np.arange(60) % 3
    for name in ("cspa", "hgpa", "mcla"):
        monkeypatch.setattr(
            choice, name, lambda *_, answer=TRUTH if name == best else crossed, **__: answer
        )
    assert_array_equal(supra([TRUTH, TRUTH, crossed], 3), TRUTH)
    assert_array_equal(supra([TRUTH, TRUTH, crossed], 3, weights=[0, 0, 1]), crossed)
