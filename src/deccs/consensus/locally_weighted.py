"""Locally weighted ensemble clustering (Huang, Wang and Lai 2018): clusters that others confirm count more."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans

from deccs.consensus.evidence import similarities
from deccs.consensus.partitions import (
    TOO_FEW_ROWS,
    DistinctRows,
    each_row_alone,
    found_clusters,
    rows_and_clusters,
)
from deccs.consensus.tree import merge_tree
from deccs.seeds import root_seed, seed_for


def lwea(
    base_partitions: ArrayLike,
    n_clusters: int | None = None,
    *,
    theta: float = 0.4,
    weights: ArrayLike | None = None,
    random_state: object = None,
) -> np.ndarray:
    """Locally weighted evidence accumulation: average linkage on the locally weighted co-association.

    Exact: the same tree as of the N x N matrix, but that points with the same labels stay together (there,
    two of them may end up apart if ``n_clusters`` comes near the number of distinct label vectors).
    Ties are broken by row order.

    >>> lwea([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [2, 2, 2, 0, 0]], n_clusters=2)
    array([0, 0, 0, 1, 1])
    """
    rows, k = rows_and_clusters(base_partitions, n_clusters, weights)
    tree = merge_tree(similarities(rows, cluster_index(rows, theta)))
    return found_clusters(rows.spread(tree.cut(k)), k, TOO_FEW_ROWS)


def lwgp(
    base_partitions: ArrayLike,
    n_clusters: int | None = None,
    *,
    theta: float = 0.4,
    weights: ArrayLike | None = None,
    random_state: int | None = None,
) -> np.ndarray:
    """Locally weighted graph partitioning: normalized cut of the graph between points and weighted clusters.

    The cut's eigenvectors are exact, by the transfer cut: those of a graph of the clusters alone. What
    follows, k-means on them, is a heuristic here as there; rows count as often as they have points.

    >>> lwgp([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [2, 2, 2, 0, 0]], n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1])
    """
    rows, k = rows_and_clusters(base_partitions, n_clusters, weights)
    if k >= len(rows):
        return each_row_alone(rows, k)
    B = (
        rows.membership * (cluster_index(rows, theta) * rows.weights[rows.member_of])[None, :]
    )  # (n_rows, n_all)
    degree = B.sum(axis=1)  # (n_rows,)
    between = (
        B.T @ (B * (rows.counts / degree)[:, None])
    ).toarray()  # (n_all, n_all) clusters over points
    scale = 1 / np.sqrt(between.sum(axis=1))
    _, vectors = np.linalg.eigh(scale[:, None] * between * scale)
    of_clusters = scale[:, None] * vectors[:, -k:]  # (n_all, k)
    Z = (B @ of_clusters) / degree[:, None]  # (n_rows, k) each point the mean of its clusters
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)
    kmeans = KMeans(k, n_init=10, random_state=seed_for(root_seed(random_state), "lwgp"))
    return found_clusters(
        rows.spread(kmeans.fit_predict(Z, sample_weight=rows.counts)), k, "two of them became one."
    )


def cluster_index(rows: DistinctRows, theta: float) -> np.ndarray:
    """(n_all_clusters,) the ensemble-driven cluster index exp(-H / (theta n_members)).

    H is the entropy of a cluster's points over the clusters of each member, summed over the members: 0
    for a cluster that no member breaks up.

    >>> from deccs.consensus.partitions import distinct_rows
    >>> cluster_index(distinct_rows([[0, 0, 1, 1], [0, 1, 2, 2]]), theta=0.5).round(3)
    array([0.368, 1.   , 1.   , 1.   , 1.   ])
    """
    if not theta > 0:
        raise ValueError(f"theta must be a number above 0, got {theta!r}; the authors use 0.4.")
    n_members = len(rows.weights)
    entropy = np.zeros(len(rows.member_of))  # (n_all_clusters,)
    for member in range(n_members):
        shared = rows.overlaps[
            :, rows.member_of == member
        ]  # (n_all_clusters, n_clusters of the member)
        labeled = shared.sum(axis=1, keepdims=True)
        share = np.divide(shared, labeled, out=np.zeros_like(shared), where=labeled > 0)
        entropy -= (share * np.log2(np.where(share > 0, share, 1))).sum(axis=1)
    return np.exp(-entropy / (theta * n_members))
