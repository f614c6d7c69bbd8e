"""Consensus by partitioning graphs: Strehl and Ghosh's three, and the bipartite graph of Fern and Brodley.

Their partitioners keep the parts of like size, in points. A row of many points is therefore several
vertices, each a small share of a part: the balance is that of the original methods.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack

from deccs.consensus.evidence import co_association_rows
from deccs.consensus.partitioners import partition_graph, partition_hypergraph
from deccs.consensus.partitions import (
    DistinctRows,
    each_row_alone,
    found_clusters,
    rows_and_clusters,
)
from deccs.data.source import blocks
from deccs.labels import NOISE, canonical
from deccs.seeds import root_seed, seed_for

GRAIN = 0.02  # of an even part: the heaviest a vertex may be
MOST_EDGES = (
    700_000  # each vertex of CSPA's graph keeps its share of these; ties and the other end add some
)


@dataclass(frozen=True, eq=False)
class Vertices:
    """Rows, the heavy ones in pieces."""

    row: np.ndarray  # (n_vertices,) the row a vertex is made of
    weight: np.ndarray  # (n_vertices,) its points

    def spread(self, rows: DistinctRows, parts: np.ndarray) -> np.ndarray:
        """Parts of vertices -> labels of points; the points of a row go to its pieces in their order."""
        labels = np.full(len(rows.row_of), NOISE)
        labeled = np.flatnonzero(rows.row_of != NOISE)
        labels[labeled[np.argsort(rows.row_of[labeled], kind="stable")]] = np.repeat(
            parts, self.weight
        )
        return canonical(labels)


def vertices_of(counts: np.ndarray, n_parts: int) -> Vertices:
    """Pieces of at most ``GRAIN`` of an even part each.

    >>> vertices_of(np.array([250, 3]), n_parts=1).weight.tolist()[:2], vertices_of(np.array([3, 2]), 1).row.tolist()
    ([5, 5], [0, 0, 0, 1, 1])
    """
    most = max(1.0, GRAIN * counts.sum() / n_parts)
    pieces = np.ceil(counts / most).astype(np.int64)
    row = np.repeat(np.arange(len(counts)), pieces)
    place = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    weight = counts[row] // pieces[row] + (place < counts[row] % pieces[row])
    return Vertices(row, weight)


def cspa(
    base_partitions: ArrayLike,
    n_clusters: int | None = None,
    *,
    weights: ArrayLike | None = None,
    random_state: int | None = None,
) -> np.ndarray:
    """Cluster-based similarity partitioning: METIS on the graph whose edges are the co-associations.

    An edge between two vertices weighs what all edges between their points weigh together, so that a cut
    of this graph is a cut of the N x N one. The cut itself is METIS's heuristic. Beyond 700,000
    edges each vertex keeps its heaviest.

    >>> cspa([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [2, 2, 2, 0, 0, 0]], n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    rows, k = rows_and_clusters(base_partitions, n_clusters, weights)
    if k > len(rows):
        return each_row_alone(rows, k)
    vertices = vertices_of(rows.counts, k)
    parts = partition_graph(
        similarity_graph(rows, vertices), vertices.weight, k, seed(random_state, "cspa")
    )
    return vertices.spread(rows, parts)


def similarity_graph(
    rows: DistinctRows, vertices: Vertices, most_edges: int = MOST_EDGES
) -> csr_array:
    """(n_vertices, n_vertices) co-association times the points at both ends."""
    n = len(vertices.row)
    each = DistinctRows(rows.labels[vertices.row], vertices.weight, vertices.row, rows.weights)
    most = max(1, most_edges // n)
    parts = []
    for some in blocks(n, max(1, 1_000_000 // n)):
        weight = co_association_rows(each, some=some, dtype=np.float32)  # (block, n_vertices)
        weight *= vertices.weight.astype(np.float32)
        if most < n:
            limit = np.partition(weight, n - most, axis=1)[:, n - most]
            weight[weight < limit[:, None]] = 0
        weight *= vertices.weight[some, None].astype(np.float32)
        parts.append(csr_array(weight))
    graph = vstack(parts, format="csr")
    return csr_array(
        graph.maximum(graph.T)
    )  # both ends alike: float32 products depend on their order


def hgpa(
    base_partitions: ArrayLike,
    n_clusters: int | None = None,
    *,
    weights: ArrayLike | None = None,
    random_state: int | None = None,
) -> np.ndarray:
    """Hypergraph partitioning: every cluster is a hyperedge; as few as may be are cut (Mt-KaHyPar, KM1).

    The hypergraph is that of the N points with equal ones contracted; the partition is a heuristic.

    >>> hgpa([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [2, 2, 2, 0, 0, 0]], n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    rows, k = rows_and_clusters(base_partitions, n_clusters, weights)
    if k > len(rows):
        return each_row_alone(rows, k)
    vertices = vertices_of(rows.counts, k)
    parts = partition_hypergraph(
        rows.membership[vertices.row],
        vertices.weight,
        rows.weights[rows.member_of],
        k,
        seed(random_state, "hgpa"),
    )
    return vertices.spread(rows, parts)


def mcla(
    base_partitions: ArrayLike,
    n_clusters: int | None = None,
    *,
    weights: ArrayLike | None = None,
    random_state: int | None = None,
) -> np.ndarray:
    """Meta-clustering: METIS groups the clusters by overlap (Jaccard), a point joins the group it is most in.

    Overlaps and memberships are exact; the grouping is METIS's heuristic. A group that wins no point is
    a cluster less, with a warning.

    >>> mcla([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [2, 2, 2, 0, 0, 0]], n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    rows, k = rows_and_clusters(base_partitions, n_clusters, weights)
    if k > len(rows):
        return each_row_alone(rows, k)
    sizes = np.diag(rows.overlaps)
    jaccard = rows.overlaps / (sizes[:, None] + sizes - rows.overlaps)  # (n_all, n_all)
    weight = rows.weights[rows.member_of]
    graph = csr_array(jaccard * weight[:, None] * weight)
    group = partition_graph(
        graph, np.ones(len(sizes), dtype=np.int64), k, seed(random_state, "mcla")
    )
    share = np.zeros((len(sizes), k))  # (n_all, k) mean over a group
    share[np.arange(len(sizes)), group] = weight / np.bincount(group, weight, minlength=k)[group]
    belongs = rows.membership @ share  # (n_rows, k)
    return found_clusters(
        rows.spread(belongs.argmax(axis=1)), k, "a group of clusters won no point."
    )


def hbgf(
    base_partitions: ArrayLike,
    n_clusters: int | None = None,
    *,
    weights: ArrayLike | None = None,
    random_state: int | None = None,
) -> np.ndarray:
    """Hybrid bipartite graph: points and clusters are vertices, a point is tied to its clusters; METIS cuts it.

    A cut of this graph weighs what it weighs with one vertex per point. The cut is METIS's heuristic.

    >>> hbgf([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [2, 2, 2, 0, 0, 0]], n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    rows, k = rows_and_clusters(base_partitions, n_clusters, weights)
    if k > len(rows):
        return each_row_alone(rows, k)
    vertices = vertices_of(rows.counts, k)
    ties = bipartite_ties(rows, vertices)  # (n_vertices, n_all)
    graph = both_ways(ties)
    vertex_weights = np.concatenate([vertices.weight, np.ones(ties.shape[1], dtype=np.int64)])
    parts = partition_graph(graph, vertex_weights, k, seed(random_state, "hbgf"))[
        : len(vertices.row)
    ]
    labels = vertices.spread(rows, parts)
    return found_clusters(labels, k, "a part of the graph holds clusters and no point.")


def bipartite_ties(rows: DistinctRows, vertices: Vertices) -> csr_array:
    """(n_vertices, n_all_clusters) a tie per point and cluster, times the weight of the member."""
    weight = rows.weights[rows.member_of] * len(rows.weights)
    return csr_array(rows.membership[vertices.row] * vertices.weight[:, None] * weight[None, :])


def both_ways(ties: csr_array) -> csr_array:
    """(n + m, n + m) the graph of (n, m) ties between two kinds of vertices."""
    n, m = ties.shape
    there = ties.tocoo()
    near, far = there.row, there.col + n
    ends = np.concatenate([near, far]), np.concatenate([far, near])
    return csr_array((np.concatenate([there.data, there.data]), ends), shape=(n + m, n + m))


def seed(random_state: int | None, function: str) -> int:
    return seed_for(root_seed(random_state), function)
