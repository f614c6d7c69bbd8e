"""CSPA, HGPA, MCLA and HBGF against the graphs of their papers, one vertex per point; and the partitioners."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from deccs import scores
from deccs.consensus import FUNCTIONS, FewerClusters, cspa, graphs, hbgf, hgpa, mcla, partitioners
from deccs.consensus.graphs import GRAIN, bipartite_ties, both_ways, similarity_graph, vertices_of
from deccs.consensus.partitioners import (
    exchanged,
    partition_graph,
    partition_hypergraph,
    whole_numbers,
    with_all_parts,
)
from deccs.consensus.partitions import distinct_rows
from deccs.labels import canonical
from tests.helpers.consensus_references import (
    bipartite,
    clusters_of,
    co_association_by_loops,
    cut_of_hyperedges,
    cut_of_pairs,
    cut_of_ties,
    intervals,
    noisy,
    whole_graph,
)

with_a_partitioner = pytest.mark.parametrize("name", ["cspa", "hgpa", "mcla", "hbgf", "supra"])


def ones_of(partitions):
    """(N, n_all_clusters) one where a point is in a cluster."""
    return bipartite(partitions, np.ones(len(clusters_of(partitions))))


def co_association_of(partitions):
    H = ones_of(partitions)  # loops over 600 x 600 pairs would take a minute
    return H @ H.T / len(partitions)


def contracted(partitions, n_parts):
    rows = distinct_rows(partitions)
    vertices = vertices_of(rows.counts, n_parts)
    assert len(vertices.row) < partitions.shape[1] / 2  # else there is nothing to test
    return rows, vertices


def all_points(partitions):
    return np.ones(partitions.shape[1], dtype=np.int64)


# The original graphs, and what our parts cut of them


def original_cspa(partitions, k, seed):
    return partition_graph(
        csr_array(co_association_of(partitions)), all_points(partitions), k, seed
    )


def original_hbgf(partitions, k, seed):
    graph = csr_array(whole_graph(ones_of(partitions)))
    return partition_graph(graph, np.ones(graph.shape[0], dtype=np.int64), k, seed)[
        : partitions.shape[1]
    ]


def original_hgpa(partitions, k, seed):
    H = csr_array(ones_of(partitions))
    return partition_hypergraph(H, all_points(partitions), np.ones(H.shape[1]), k, seed)


def cut_of_co_association(partitions, labels):
    return cut_of_pairs(co_association_of(partitions), labels)


def by_chance(partitions, k, seed):
    return np.random.default_rng(seed).permutation(partitions.shape[1]) % k


def total_cut(function, cut, ensembles, n_seeds):
    """The weights cut in all ensembles together, in each by the best of a few seeds."""
    return sum(
        min(cut(partitions, function(partitions, k, seed)) for seed in range(n_seeds))
        for partitions, k in ensembles
    )


def ours(function):
    return lambda partitions, k, seed: function(partitions, k, random_state=seed)


LINES = [(intervals(seed), 3) for seed in range(4)] + [
    (intervals(seed, n_points=800), 4) for seed in range(2)
]
NOISY = [(noisy(seed, n_points=600, n_members=4, noise=0.3)[1], 3) for seed in range(4)]


@pytest.mark.parametrize("ensembles", [LINES, NOISY], ids=["lines", "noisy"])
@pytest.mark.parametrize(
    ("function", "original", "cut"),
    [(cspa, original_cspa, cut_of_co_association), (hbgf, original_hbgf, cut_of_ties)],
    ids=["cspa", "hbgf"],
)
def test_we_cut_no_more_than_the_original_graph(function, original, cut, ensembles):
    best = total_cut(original, cut, ensembles, 3)
    assert total_cut(ours(function), cut, ensembles, 3) <= 1.01 * best
    assert best < 0.9 * total_cut(by_chance, cut, ensembles, 3)  # there is something to find


def test_hgpa_cuts_no_more_than_the_original_hypergraph():
    best = total_cut(original_hgpa, cut_of_hyperedges, LINES, 1)
    assert total_cut(ours(hgpa), cut_of_hyperedges, LINES, 1) <= 1.01 * best


@pytest.mark.parametrize("function", [cspa, hgpa, hbgf])
def test_parts_are_of_like_size(function):
    for partitions, k in LINES + NOISY:
        sizes = np.bincount(function(partitions, k, random_state=0))
        # METIS allows 3 % (in HBGF of points and clusters together), and the last vertex may be too heavy by a grain.
        assert len(sizes) == k and sizes.max() <= (1.03 + 2 * GRAIN) * sizes.sum() / k


@pytest.mark.parametrize("function", [cspa, hgpa, hbgf])
def test_a_heavy_row_is_divided(function):
    # 300 of 400 points have the same labels: two even parts cannot keep them together.
    partitions = np.array([np.repeat([0, 1, 2], [300, 50, 50])] * 3)
    assert_allclose(np.bincount(function(partitions, 2, random_state=0)), [200, 200], atol=10)


def test_mcla_does_not_divide_a_heavy_row():
    partitions = np.array([np.repeat([0, 1, 2], [300, 50, 50])] * 3)
    assert_array_equal(mcla(partitions, 3, random_state=0), partitions[0])


# A cut weighs the same with fewer vertices


@pytest.mark.parametrize("ensemble", [LINES[0], NOISY[0]], ids=["line", "noisy"])
def test_a_cut_of_cspas_graph_is_a_cut_of_all_pairs(ensemble):
    partitions, k = ensemble
    rows, vertices = contracted(partitions, k)
    graph = similarity_graph(rows, vertices).toarray()
    for seed in range(3):
        parts = np.random.default_rng(seed).integers(0, k, len(vertices.row))
        labels = vertices.spread(rows, parts)
        assert cut_of_pairs(graph.astype(float), parts) == cut_of_co_association(
            partitions, labels
        )  # quarters: exact


def test_a_cut_of_cspas_graph_is_a_cut_of_all_pairs_with_weights_and_gaps(monkeypatch):
    monkeypatch.setattr(graphs, "GRAIN", 0.5)
    _, partitions = noisy(0, n_points=60, n_members=3, missing=0.1)
    partitions[:, 0] = -1
    weights = [1, 2, 0.5]
    rows = distinct_rows(partitions, weights)
    vertices = vertices_of(rows.counts, 3)
    assert len(vertices.row) < 40
    S, graph = (
        co_association_by_loops(partitions, weights),
        similarity_graph(rows, vertices).toarray(),
    )
    for seed in range(3):
        parts = np.random.default_rng(seed).integers(0, 3, len(vertices.row))
        labels = vertices.spread(rows, parts)
        assert labels[0] == -1
        assert cut_of_pairs(graph, parts) == pytest.approx(
            cut_of_pairs(S[1:, 1:], labels[1:]), rel=1e-6
        )


def test_a_cut_of_hbgfs_graph_is_a_cut_of_all_ties():
    for partitions, k in (LINES[0], NOISY[0]):
        rows, vertices = contracted(partitions, k)
        graph = both_ways(bipartite_ties(rows, vertices)).toarray()
        whole = whole_graph(ones_of(partitions))
        n_all = rows.membership.shape[1]
        for seed in range(3):
            parts = np.random.default_rng(seed).integers(0, k, len(vertices.row) + n_all)
            of_points = np.empty(partitions.shape[1], dtype=int)
            of_points[np.argsort(rows.row_of, kind="stable")] = np.repeat(
                parts[:-n_all], vertices.weight
            )
            everything = np.concatenate([of_points, parts[-n_all:]])
            assert cut_of_pairs(graph, parts) == pytest.approx(
                cut_of_pairs(whole, everything), rel=1e-12
            )


def test_weights_of_members_weigh_their_ties():
    rows = distinct_rows([[0, 0, 0, 1], [0, 0, 1, 1]], weights=[3, 1])
    ties = bipartite_ties(
        rows, vertices_of(rows.counts, 4)
    ).toarray()  # of 2 members: 3/4 and 1/4 of 2
    assert_allclose(ties, [[1.5, 0, 0.5, 0], [1.5, 0, 0.5, 0], [1.5, 0, 0, 0.5], [0, 1.5, 0, 0.5]])


def test_hgpas_hypergraph_is_that_of_the_points(monkeypatch):
    partitions, k = LINES[1]
    given = {}

    def record(membership, vertex_weights, edge_weights, n_parts, seed):
        given.update(membership=membership.toarray(), weights=vertex_weights, edges=edge_weights)
        return np.arange(len(vertex_weights)) % n_parts

    monkeypatch.setattr(graphs, "partition_hypergraph", record)
    labels = hgpa(partitions, k, weights=[1, 2, 3, 4])
    assert given["weights"].sum() == 600
    assert_allclose(given["edges"], np.repeat([0.1, 0.2, 0.3, 0.4], 8))
    sizes = given["weights"] @ given["membership"]
    assert_array_equal(sizes, [len(points) for _, points in clusters_of(partitions)])
    parts = np.arange(len(given["weights"])) % k
    spread = [len(set(parts[column > 0])) - 1 for column in given["membership"].T]
    assert sum(spread) == cut_of_hyperedges(partitions, labels)


# Vertices


@pytest.mark.parametrize("seed", range(4))
def test_vertices_keep_totals_and_limits(seed):
    counts = np.random.default_rng(seed).geometric(0.01, 40)
    for n_parts in (1, 2, 7):
        vertices = vertices_of(counts, n_parts)
        assert_array_equal(np.bincount(vertices.row, vertices.weight), counts)
        most = max(1, GRAIN * counts.sum() / n_parts)
        assert vertices.weight.min() >= 1 and vertices.weight.max() <= np.ceil(most)
        for row in range(40):  # as few as may be, and of like weight
            pieces = vertices.weight[vertices.row == row]
            assert len(pieces) == np.ceil(counts[row] / most) and np.ptp(pieces) <= 1


def test_spread_gives_points_to_pieces_in_order():
    rows = distinct_rows([[0, 1, 0, -1, 0, 1]])
    vertices = graphs.Vertices(np.array([0, 0, 1]), np.array([2, 1, 2]))
    assert_array_equal(vertices.spread(rows, np.array([5, 3, 5])), [0, 0, 0, -1, 1, 0])


def test_a_graph_with_fewer_edges_keeps_the_heaviest():
    _, partitions = noisy(0, n_points=2_000, n_clusters=10, n_members=8, noise=0.1)
    rows = distinct_rows(partitions)
    vertices = vertices_of(rows.counts, 10)
    whole = similarity_graph(rows, vertices)
    kept = similarity_graph(rows, vertices, most_edges=whole.nnz // 2)
    assert 0.95 * whole.sum() <= kept.sum() < whole.sum() and kept.nnz < 0.7 * whole.nnz
    assert (kept != kept.T).nnz == 0
    most = whole.nnz // 2 // whole.shape[0]
    whole, kept = whole.toarray(), kept.toarray()
    assert_array_equal(kept[kept > 0], whole[kept > 0])
    heaviest_lost = np.where(kept == 0, whole, 0).max(axis=1)
    assert (heaviest_lost > 0).any()
    assert (
        (whole > heaviest_lost[:, None] * (1 - 1e-6)).sum(axis=1)[heaviest_lost > 0] >= most
    ).all()


def test_cspa_with_fewer_edges_finds_the_truth(monkeypatch):
    truth, partitions = noisy(0, n_points=600, n_clusters=4, n_members=5)
    function = graphs.similarity_graph
    monkeypatch.setattr(
        graphs, "similarity_graph", lambda rows, vertices: function(rows, vertices, 6_000)
    )
    labels = cspa(partitions, 4, random_state=0)
    overlap = np.zeros((4, 4))
    np.add.at(overlap, (labels, truth), 1)
    assert overlap.max(axis=0).sum() > 0.95 * 600


# MCLA


def mcla_by_sets(partitions, weights, group, k):
    """A point goes to the group whose clusters hold it most, on (weighted) average."""
    clusters = clusters_of(partitions)
    labels = []
    for point in range(partitions.shape[1]):
        belongs = []
        for number in range(k):
            mine = [
                (weights[member], point in points)
                for (member, points), group_of_cluster in zip(clusters, group, strict=True)
                if group_of_cluster == number
            ]
            belongs.append(sum(w * inside for w, inside in mine) / sum(w for w, _ in mine))
        labels.append(int(np.argmax(np.round(belongs, 12))) if max(belongs) > 0 else -1)
    return canonical(np.array(labels))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0, 0.2])
def test_mcla_is_that_of_sets(missing, weighted, monkeypatch):
    _, partitions = noisy(1, n_members=6, noise=0.3, missing=missing)
    partitions[:, 4] = -1 if missing else partitions[:, 4]
    weights = np.array([1.0, 2, 0.5, 1, 1.5, 0.25]) if weighted else np.ones(6)
    given = {}

    def record(graph, vertex_weights, n_parts, seed):
        given.update(graph=graph.toarray(), weights=vertex_weights)
        given["group"] = partition_graph(graph, vertex_weights, n_parts, seed)
        return given["group"]

    monkeypatch.setattr(graphs, "partition_graph", record)
    labels = mcla(partitions, 3, weights=weights, random_state=0)
    clusters, share = clusters_of(partitions), weights / weights.sum()
    expected = [
        [share[m] * share[n] * len(a & b) / len(a | b) for n, b in clusters] for m, a in clusters
    ]
    assert_allclose(given["graph"], expected, atol=1e-12)
    assert_array_equal(given["weights"], np.ones(18))  # groups of as many clusters each
    assert_array_equal(labels, mcla_by_sets(partitions, weights, given["group"], 3))


def test_mcla_by_hand(monkeypatch):
    # Groups: {A0 B0} and {A1 B1 B2}. Point 2 is in A0 and B1: half of the first, a third of the second.
    # Point 3 is in A1 and B1: none of the first, two thirds of the second.
    partitions = [[0, 0, 0, 1, 1], [0, 0, 1, 1, 2]]
    monkeypatch.setattr(graphs, "partition_graph", lambda *_: np.array([0, 1, 0, 1, 1]))
    assert_array_equal(mcla(partitions, 2), [0, 0, 0, 1, 1])
    # With B three times A's weight: 1/4 of the first group, 3/7 of the second.
    assert_array_equal(mcla(partitions, 2, weights=[1, 3]), [0, 0, 1, 1, 1])


def test_a_group_that_wins_no_point_is_said(monkeypatch):
    # A0 alone, A1 and B0 together, B1 alone: point 0 is in A0 and B0, point 1 in A0 and B1, point 2 in A1 and B0.
    monkeypatch.setattr(graphs, "partition_graph", lambda *_: np.array([0, 1, 1, 2]))
    with pytest.warns(
        FewerClusters, match="2 clusters instead of 3: a group of clusters won no point"
    ):
        assert_array_equal(mcla([[0, 0, 1], [0, 1, 0]], 3), [0, 0, 1])


# The partitioners


def ring_of_cliques(n_cliques=4, size=10):
    """Cliques with one light edge to the next: the best cut is known."""
    n = n_cliques * size
    graph = np.kron(np.eye(n_cliques), np.ones((size, size))) * 5
    for first in range(0, n, size):
        graph[first, first - 1] = graph[first - 1, first] = 1
    return csr_array(graph), np.ones(n, dtype=np.int64), np.repeat(np.arange(n_cliques), size)


def without(monkeypatch, *missing):
    original = partitioners.module
    monkeypatch.setattr(
        partitioners, "module", lambda name: None if name in missing else original(name)
    )


@pytest.mark.parametrize("missing", [(), ("pymetis",)], ids=["all", "no pymetis"])
def test_a_ring_of_cliques_is_cut_between_them(missing, monkeypatch):
    without(monkeypatch, *missing)
    graph, weights, cliques = ring_of_cliques()
    assert_array_equal(canonical(partition_graph(graph, weights, 4, seed=0)), cliques)


@pytest.mark.parametrize("missing", [(), ("pymetis",)], ids=["all", "no pymetis"])
def test_same_seed_same_parts(missing, monkeypatch):
    without(monkeypatch, *missing)
    weights = np.ones(60, dtype=np.int64)
    random = np.triu(np.random.default_rng(0).integers(0, 4, (60, 60)), 1)
    graph = csr_array((random + random.T).astype(float))
    first = partition_graph(graph, weights, 5, seed=3)
    assert_array_equal(partition_graph(graph, weights, 5, seed=3), first)
    edges = csr_array((random[:, :12] > 1).astype(float))
    of_edges = partition_hypergraph(edges, weights, np.ones(12), 3, seed=3)
    assert_array_equal(partition_hypergraph(edges, weights, np.ones(12), 3, seed=3), of_edges)


@pytest.mark.parametrize("function", [cspa, hbgf])
def test_without_pymetis_mtkahypar_does_it(function, monkeypatch):
    original, cut = {
        cspa: (original_cspa, cut_of_co_association),
        hbgf: (original_hbgf, cut_of_ties),
    }[function]
    best = total_cut(original, cut, NOISY[:2], 2)
    without(monkeypatch, "pymetis")
    monkeypatch.setattr(partitioners, "by_metis", None)  # whoever calls it fails
    assert total_cut(ours(function), cut, NOISY[:2], 2) <= 1.02 * best
    for partitions, k in NOISY[:2]:
        sizes = np.bincount(function(partitions, k, random_state=0))
        assert len(sizes) == k and sizes.max() <= (1.03 + 2 * GRAIN) * sizes.sum() / k


@pytest.mark.parametrize("name", ["cspa", "mcla", "hbgf"])
def test_without_pymetis_perfect_agreement_comes_back(name, monkeypatch):
    without(monkeypatch, "pymetis")
    truth = np.repeat([0, 1, 2], 20)
    assert_array_equal(FUNCTIONS[name]([truth, truth, 2 - truth], random_state=0), truth)


@with_a_partitioner
def test_without_any_partitioner_it_is_said(name, monkeypatch):
    without(monkeypatch, "pymetis", "mtkahypar")
    with pytest.raises(ImportError, match=r"deccs\[partition\].*eac, lwea, lwgp and nmf need none"):
        FUNCTIONS[name](noisy(0)[1], 3)


@pytest.mark.parametrize("name", ["eac", "lwea", "lwgp", "nmf"])
def test_those_that_need_no_partitioner(name, monkeypatch):
    without(monkeypatch, "pymetis", "mtkahypar")
    assert FUNCTIONS[name](noisy(0)[1], 3, random_state=0).max() == 2


def test_a_missing_module_is_none():
    assert partitioners.module("no_such_partitioner") is None
    assert partitioners.module("json").loads("1") == 1


@pytest.mark.parametrize("function", ["by_metis", "by_kahypar"])
def test_parts_that_stayed_empty_are_filled(function, monkeypatch):
    if function == "by_kahypar":
        without(monkeypatch, "pymetis")
    original = getattr(partitioners, function)
    asked = []

    def lazy(*given):
        asked.append(given[-2])  # parts asked for: never more than two come back
        return original(*given[:-2], min(given[-2], 2), given[-1])

    monkeypatch.setattr(partitioners, function, lazy)
    graph, weights, cliques = ring_of_cliques()
    parts = partition_graph(graph, weights, 4, seed=0)
    assert_array_equal(canonical(parts), cliques)  # halves of the ring, and halves of those
    assert asked == [4, 2, 2]


def test_the_heaviest_part_is_cut():
    weights = np.array([1, 1, 1, 1, 5, 5])
    seen = []

    def split(vertices, n_parts):
        seen.append(vertices.tolist())
        return np.array([0, 0, 0, 0, 2, 2])

    assert_array_equal(with_all_parts(split, weights, 3), [0, 0, 0, 0, 2, 1])  # 10 against 4
    assert seen == [[0, 1, 2, 3, 4, 5]]  # two vertices need no partitioner


def test_a_partitioner_that_does_not_cut_is_helped():
    parts = with_all_parts(
        lambda vertices, n_parts: np.zeros(len(vertices), dtype=int), np.ones(9), 3
    )
    assert_array_equal(np.sort(np.bincount(parts)), [2, 3, 4])
    heavy = with_all_parts(
        lambda vertices, n_parts: np.zeros(len(vertices), dtype=int), np.array([9, 1, 1]), 2
    )
    assert_array_equal(heavy, [0, 1, 1])


def cut(weight, parts):
    return weight[parts[:, None] != parts].sum() / 2


@pytest.mark.parametrize("seed", range(5))
def test_exchanges_cut_no_more_keep_the_balance_and_leave_nothing_to_gain(seed):
    rng = np.random.default_rng(seed)
    weight = rng.random((14, 14)) ** 4
    weight = weight + weight.T
    heavy = rng.integers(1, 4, size=14)
    before = np.arange(14) % 3
    after = exchanged(weight, before, heavy)
    load_before, load = np.bincount(before, heavy), np.bincount(after, heavy)
    limit = max(load_before.max(), np.ceil(1.03 * heavy.sum() / 3))
    assert cut(weight, after) < cut(weight, before) and load.max() <= limit and len(load) == 3
    for i, j in itertools.combinations(range(14), 2):  # the slow way: try every swap
        other = after.copy()
        other[i], other[j] = after[j], after[i]
        assert (
            np.bincount(other, heavy).max() > limit
            or cut(weight, other) >= cut(weight, after) - 1e-9
        )


def test_mcla_is_not_at_the_mercy_of_metis_on_few_clusters():
    """Four members of six uneven clusters: METIS alone left a part empty and cut three times too much."""
    rng = np.random.default_rng(1)
    truth = np.repeat(np.arange(6), [800, 400, 480, 60, 560, 20])
    partitions = np.stack(
        [
            np.where(rng.random(len(truth)) < 0.05, rng.integers(6, size=len(truth)), truth)
            for _ in range(4)
        ]
    )
    assert scores.nmi(truth, mcla(partitions, 6, random_state=0)) > 0.95


def test_nothing_to_cut():
    assert_array_equal(with_all_parts(None, np.ones(3), 1), [0, 0, 0])
    assert_array_equal(with_all_parts(None, np.ones(3), 3), [0, 1, 2])
    assert_array_equal(with_all_parts(None, np.ones(3), 5), [0, 1, 2])


def test_whole_numbers_by_hand():
    given = csr_array(
        np.array([[9.0, 2, 0], [2, 0, 7], [0, 7, 4]])
    )  # whole already: loops go, no more
    assert_array_equal(whole_numbers(given).toarray(), [[0, 2, 0], [2, 0, 7], [0, 7, 0]])
    shares = whole_numbers(csr_array(np.array([[0, 0.25, 0], [0.25, 0, 1e-15], [0, 1e-15, 0]])))
    assert_array_equal(
        shares.toarray(), [[0, 2**29, 0], [2**29, 0, 1], [0, 1, 0]]
    )  # 1 is the least


def test_whole_numbers_of_a_graph_without_edges():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (np.float32, np.float64):
            assert whole_numbers(csr_array(np.eye(3, dtype=dtype))).nnz == 0


@pytest.mark.parametrize("seed", range(4))
def test_both_ends_of_an_edge_give_one_weight(seed):
    # METIS reads an edge from either end, and float32 products depend on the order of their factors.
    _, partitions = noisy(seed, n_points=900, n_members=7, noise=0.3)
    rows = distinct_rows(partitions, np.random.default_rng(seed).uniform(0.5, 2, 7))
    graph = whole_numbers(similarity_graph(rows, vertices_of(rows.counts, 3)))
    assert (graph != graph.T).nnz == 0
