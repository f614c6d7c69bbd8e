"""Consensus functions as textbooks have them, a vertex or a row per point, for ``consensus_speed`` to compare with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform

from deccs.consensus.graphs import both_ways
from deccs.consensus.locally_weighted import cluster_index
from deccs.consensus.partitioners import partition_graph, partition_hypergraph
from deccs.consensus.partitions import distinct_rows
from deccs.seeds import seed_for


def memberships(base_partitions: np.ndarray) -> np.ndarray:
    """(n_points, n_all_clusters) ones where a point is in a cluster."""
    return np.concatenate([np.eye(member.max() + 1)[member] for member in base_partitions], axis=1)


def by_linkage(similarity: np.ndarray, k: int) -> np.ndarray:
    distance = 1 - similarity
    np.fill_diagonal(distance, 0)
    return fcluster(linkage(squareform(distance, checks=False), "average"), k, "maxclust")


def eac(base_partitions: np.ndarray, k: int) -> np.ndarray:
    H = memberships(base_partitions)
    return by_linkage(H @ H.T / len(base_partitions), k)


def lwea(base_partitions: np.ndarray, k: int) -> np.ndarray:
    H = memberships(base_partitions)
    index = cluster_index(distinct_rows(base_partitions), 0.4)
    # The rows number the clusters by first appearance, the memberships by label.
    order = np.concatenate(
        [
            first_appearance(member) + offset
            for member, offset in zip(
                base_partitions,
                np.cumsum([0, *(member.max() + 1 for member in base_partitions[:-1])]),
                strict=True,
            )
        ]
    )
    weights = np.empty(len(order))
    weights[order] = index
    return by_linkage((H * weights) @ H.T / len(base_partitions), k)


def first_appearance(labels: np.ndarray) -> np.ndarray:
    names, first = np.unique(labels, return_index=True)
    return names[np.argsort(first)]


def nmf(base_partitions: np.ndarray, k: int, n_iter: int = 200) -> np.ndarray:
    H = memberships(base_partitions)
    S = H @ H.T / len(base_partitions)  # (n_points, n_points)
    Q = np.random.default_rng(0).random((len(S), k))
    D = np.eye(k)
    for _ in range(n_iter):
        SQD = S @ Q @ D
        Q = Q * np.sqrt(SQD / (Q @ (Q.T @ SQD) + 1e-12))
        D = D * np.sqrt((Q.T @ S @ Q) / (Q.T @ Q @ D @ Q.T @ Q + 1e-12))
    return Q.argmax(axis=1)


def cspa(base_partitions: np.ndarray, k: int) -> np.ndarray:
    H = memberships(base_partitions)
    return partition_graph(
        csr_array(H @ H.T), np.ones(len(H), dtype=np.int64), k, seed_for(0, "cspa")
    )


def hbgf(base_partitions: np.ndarray, k: int) -> np.ndarray:
    H = csr_array(memberships(base_partitions))
    graph = both_ways(H)
    return partition_graph(graph, np.ones(graph.shape[0], dtype=np.int64), k, seed_for(0, "hbgf"))[
        : H.shape[0]
    ]


def hgpa(base_partitions: np.ndarray, k: int) -> np.ndarray:
    H = csr_array(memberships(base_partitions))
    return partition_hypergraph(
        H, np.ones(H.shape[0], dtype=np.int64), np.ones(H.shape[1]), k, seed_for(0, "hgpa")
    )


TEXTBOOK: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "cspa": cspa,
    "hgpa": hgpa,
    "hbgf": hbgf,
    "nmf": nmf,
    "eac": eac,
    "lwea": lwea,
}
