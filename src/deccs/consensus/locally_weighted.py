"""Locally weighted ensemble clustering (Huang, Wang and Lai 2018).

Clusters that the other members confirm count more.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from deccs.checks import check_value, number
from deccs.consensus.evidence import similarities
from deccs.consensus.functions import consensus_function, on_distinct_rows
from deccs.consensus.partitions import DistinctRows, one_cluster_per_row, warn_if_fewer
from deccs.consensus.tree import merge_tree
from deccs.members.spectral import of_length_one
from deccs.seeds import reproducible_threads

THETA = number(above=0)


@consensus_function
@on_distinct_rows
def lwea(rows: DistinctRows, n_clusters: int, *, theta: float = 0.4) -> np.ndarray:
    """Locally weighted evidence accumulation: average linkage on the weighted co-association.

    Exact: the same tree as with the N x N matrix, except that points with the same labels always
    stay together. (With the matrix, two of them may be separated if ``n_clusters`` is close to the
    number of distinct label vectors.) Ties are broken by row order.

    >>> lwea([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [2, 2, 2, 0, 0]], n_clusters=2)
    array([0, 0, 0, 1, 1])
    """
    tree = merge_tree(similarities(rows, cluster_index(rows, theta)))
    return rows.spread(tree.cut(n_clusters))


@consensus_function
@on_distinct_rows
def lwgp(rows: DistinctRows, n_clusters: int, seed: int, *, theta: float = 0.4) -> np.ndarray:
    """Locally weighted graph partitioning: normalized cut of points and weighted clusters.

    The eigenvectors of the cut are exact: the transfer cut computes them from a graph of the
    clusters alone. The k-means on them is a heuristic, as in the paper; each row counts as often as
    it has points.

    >>> lwgp([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [2, 2, 2, 0, 0]], n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1])
    """
    if n_clusters == len(rows):
        return one_cluster_per_row(rows, n_clusters)
    cluster_weights = cluster_index(rows, theta) * rows.weights[rows.member_of]  # (n_all_clusters,)
    B = rows.membership * cluster_weights[None, :]  # (n_rows, n_all_clusters)
    degree = B.sum(axis=1)  # (n_rows,)
    # Paths from cluster to cluster over points: (n_all_clusters, n_all_clusters).
    between = (B.T @ (B * (rows.counts / degree)[:, None])).toarray()
    scale = 1 / np.sqrt(between.sum(axis=1))
    _, vectors = np.linalg.eigh(scale[:, None] * between * scale)
    of_clusters = scale[:, None] * vectors[:, -n_clusters:]  # (n_all_clusters, n_clusters)
    # Each point is the mean of its clusters: (n_rows, n_clusters).
    Z = of_length_one((B @ of_clusters) / degree[:, None])
    kmeans = KMeans(n_clusters, n_init=10, random_state=seed)
    with reproducible_threads():
        labels = kmeans.fit_predict(Z, sample_weight=rows.counts)
    return warn_if_fewer(rows.spread(labels), n_clusters, "two clusters became one.")


def cluster_index(rows: DistinctRows, theta: float) -> np.ndarray:
    """(n_all_clusters,) the ensemble-driven cluster index exp(-H / (theta n_members)).

    H is the entropy of how a member divides the cluster's points, summed over all members: 0 for a
    cluster that no member divides.

    >>> from deccs.consensus.partitions import distinct_rows
    >>> cluster_index(distinct_rows([[0, 0, 1, 1], [0, 1, 2, 2]]), theta=0.5).round(3)
    array([0.368, 1.   , 1.   , 1.   , 1.   ])
    """
    check_value("theta", theta, THETA)
    n_members = len(rows.weights)
    entropy = np.zeros(len(rows.member_of))  # (n_all_clusters,)
    for member in range(n_members):
        shared = rows.overlaps[:, rows.member_of == member]  # (n_all_clusters, n_member_clusters)
        labeled = shared.sum(axis=1, keepdims=True)
        share = np.divide(shared, labeled, out=np.zeros_like(shared), where=labeled > 0)
        entropy -= (share * np.log2(np.where(share > 0, share, 1))).sum(axis=1)
    return np.exp(-entropy / (theta * n_members))
