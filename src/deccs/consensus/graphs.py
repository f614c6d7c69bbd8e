"""Consensus by partitioning graphs: Strehl and Ghosh's three, and Fern and Brodley's bipartite graph.

The partitioners keep the parts equal in size, counted in points. So a row of many points becomes
several vertices, each a small share of a part: the balance is that of the original methods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, vstack

from deccs.consensus.evidence import co_association_rows
from deccs.consensus.functions import consensus_function, on_distinct_rows
from deccs.consensus.partitioners import partition_graph, partition_hypergraph
from deccs.consensus.partitions import DistinctRows, warn_if_fewer
from deccs.data.source import blocks
from deccs.labels import NOISE, canonical

GRAIN = 0.02  # most points of a vertex, as a share of an even part
MOST_EDGES = 700_000  # of CSPA's graph, divided among its vertices; ties may add some


@dataclass(frozen=True, eq=False)
class Vertices:
    """Rows as vertices of a graph; a heavy row becomes several."""

    row: np.ndarray  # (n_vertices,) the row of each vertex
    weight: np.ndarray  # (n_vertices,) its number of points

    def spread(self, rows: DistinctRows, parts: np.ndarray) -> np.ndarray:
        """Parts of vertices -> labels of points; a row's points go to its vertices in order."""
        labels = np.full(len(rows.row_of), NOISE)
        labeled = np.flatnonzero(rows.row_of != NOISE)
        by_row = labeled[np.argsort(rows.row_of[labeled], kind="stable")]
        labels[by_row] = np.repeat(parts, self.weight)
        return canonical(labels)


def vertices_of(counts: np.ndarray, n_parts: int) -> Vertices:
    """Rows in pieces of at most ``GRAIN`` of an even part each.

    >>> vertices_of(np.array([250, 3]), n_parts=1).weight.tolist()[:2]
    [5, 5]
    >>> vertices_of(np.array([3, 2]), n_parts=1).row.tolist()
    [0, 0, 0, 1, 1]
    """
    most = max(1.0, GRAIN * counts.sum() / n_parts)
    pieces = np.ceil(counts / most).astype(np.int64)
    row = np.repeat(np.arange(len(counts)), pieces)
    place = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    weight = counts[row] // pieces[row] + (place < counts[row] % pieces[row])
    return Vertices(row, weight)


@consensus_function
@on_distinct_rows
def cspa(rows: DistinctRows, n_clusters: int, seed: int) -> np.ndarray:
    """Cluster-based similarity partitioning: METIS on the graph of co-associations.

    An edge between two vertices weighs as much as all edges between their points, so every cut
    weighs the same as in the N x N graph. The choice of the cut is METIS's heuristic. Beyond 700,000
    edges each vertex keeps its heaviest ones.

    >>> partitions = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [2, 2, 2, 0, 0, 0]]
    >>> cspa(partitions, n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    vertices = vertices_of(rows.counts, n_clusters)
    graph = similarity_graph(rows, vertices)
    return vertices.spread(rows, partition_graph(graph, vertices.weight, n_clusters, seed))


def similarity_graph(
    rows: DistinctRows, vertices: Vertices, most_edges: int = MOST_EDGES
) -> csr_array:
    """(n_vertices, n_vertices) co-association times the points at both ends."""
    n = len(vertices.row)
    pieces = DistinctRows(rows.labels[vertices.row], vertices.weight, vertices.row, rows.weights)
    most = max(1, most_edges // n)
    parts = []
    for block in blocks(n, max(1, 1_000_000 // n)):
        weight = co_association_rows(pieces, block=block, dtype=np.float32)  # (n_block, n_vertices)
        weight *= vertices.weight.astype(np.float32)
        if most < n:
            limit = np.partition(weight, n - most, axis=1)[:, n - most]
            weight[weight < limit[:, None]] = 0
        weight *= vertices.weight[block, None].astype(np.float32)
        parts.append(csr_array(weight))
    graph = vstack(parts, format="csr")
    # Both directions get the same weight: float32 products depend on their order.
    return csr_array(graph.maximum(graph.T))


@consensus_function
@on_distinct_rows
def hgpa(rows: DistinctRows, n_clusters: int, seed: int) -> np.ndarray:
    """Hypergraph partitioning: every cluster is a hyperedge, and few are cut (Mt-KaHyPar, KM1).

    The hypergraph is that of the N points, with equal points contracted. The partition is a heuristic.

    >>> partitions = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [2, 2, 2, 0, 0, 0]]
    >>> hgpa(partitions, n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    vertices = vertices_of(rows.counts, n_clusters)
    membership = rows.membership[vertices.row]  # (n_vertices, n_all_clusters)
    edge_weights = rows.weights[rows.member_of]  # (n_all_clusters,)
    parts = partition_hypergraph(membership, vertices.weight, edge_weights, n_clusters, seed)
    return vertices.spread(rows, parts)


@consensus_function
@on_distinct_rows
def mcla(rows: DistinctRows, n_clusters: int, seed: int) -> np.ndarray:
    """Meta-clustering: METIS groups clusters by overlap; a point joins the group it is in most.

    Overlaps (Jaccard) and memberships are exact; the grouping is METIS's heuristic. If a group wins
    no point, there is one cluster fewer, and a warning says so.

    >>> partitions = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [2, 2, 2, 0, 0, 0]]
    >>> mcla(partitions, n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    sizes = np.diag(rows.overlaps)  # (n_all_clusters,)
    jaccard = rows.overlaps / (sizes[:, None] + sizes - rows.overlaps)
    weight = rows.weights[rows.member_of]
    graph = csr_array(jaccard * weight[:, None] * weight)
    group = partition_graph(graph, np.ones(len(sizes), dtype=np.int64), n_clusters, seed)
    group_weight = np.bincount(group, weight, minlength=n_clusters)
    share = np.zeros((len(sizes), n_clusters))  # of each cluster in the mean over its group
    share[np.arange(len(sizes)), group] = weight / group_weight[group]
    belongs = rows.membership @ share  # (n_rows, n_clusters)
    labels = rows.spread(belongs.argmax(axis=1))
    return warn_if_fewer(labels, n_clusters, "a group of clusters won no point.")


@consensus_function
@on_distinct_rows
def hbgf(rows: DistinctRows, n_clusters: int, seed: int) -> np.ndarray:
    """Hybrid bipartite graph: METIS on a graph of points and clusters, with a tie for each membership.

    A cut weighs the same as in the graph with one vertex per point. Its choice is METIS's heuristic.

    >>> partitions = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [2, 2, 2, 0, 0, 0]]
    >>> hbgf(partitions, n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    vertices = vertices_of(rows.counts, n_clusters)
    ties = bipartite_ties(rows, vertices)  # (n_vertices, n_all_clusters)
    weights = np.concatenate([vertices.weight, np.ones(ties.shape[1], dtype=np.int64)])
    parts = partition_graph(both_ways(ties), weights, n_clusters, seed)
    labels = vertices.spread(rows, parts[: len(vertices.row)])
    return warn_if_fewer(labels, n_clusters, "a part of the graph has clusters but no points.")


def bipartite_ties(rows: DistinctRows, vertices: Vertices) -> csr_array:
    """(n_vertices, n_all_clusters) a tie per point and cluster, times the weight of the member."""
    weight = rows.weights[rows.member_of] * len(rows.weights)
    return csr_array(rows.membership[vertices.row] * vertices.weight[:, None] * weight[None, :])


def both_ways(ties: csr_array) -> csr_array:
    """(n + m, n + m) the graph of (n, m) ties between two kinds of vertices."""
    n, m = ties.shape
    edges = ties.tocoo()
    first, second = edges.row, edges.col + n
    ends = np.concatenate([first, second]), np.concatenate([second, first])
    return csr_array((np.concatenate([edges.data, edges.data]), ends), shape=(n + m, n + m))
