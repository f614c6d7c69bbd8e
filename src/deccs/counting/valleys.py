"""Valleys: whether the data is thinner between clusters than inside them.

A cluster that is real has a valley around it, whatever its shape: the density between it and its
neighbors is lower than inside both. A clustering with too many clusters cuts through dense places,
where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from deccs.counting.signs import DEEPEST, SEPARATED
from deccs.members.spanning_tree import SpanningTree

N_TIES = 15  # neighbors a point is tied to
N_NEAR = 10  # neighbors whose distance tells the density at a place
FEW = 0.05  # of a cluster's points may touch another cluster: a bridge, or stray points


@dataclass(frozen=True, eq=False)
class Ties:
    """Pairs of near points, and how dense the data is half-way between them."""

    ends: np.ndarray  # (n_ties, 2) row numbers
    log_density: np.ndarray  # (n_ties,)


def ties_between(X: np.ndarray, tree: SpanningTree) -> Ties:
    """Ties to the nearest neighbors, and along the spanning tree, so that all points are connected."""
    n = len(X)
    search = NearestNeighbors(n_neighbors=min(N_TIES + 1, n)).fit(X)
    distances, neighbors = search.kneighbors(X)
    rows = np.repeat(np.arange(n), neighbors.shape[1])
    ends = np.concatenate([np.stack([rows, neighbors.ravel()], axis=1), tree.edges])
    ends = np.unique(np.sort(ends, axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    middle = (X[ends[:, 0]] + X[ends[:, 1]]) / 2
    radius = search.kneighbors(middle, n_neighbors=min(N_NEAR, n))[0][:, -1]
    known = distances[distances > 0]
    smallest = 1e-3 * np.median(known) if len(known) else 1.0  # copies are not infinitely dense
    n_dimensions = min(intrinsic_dimension(distances[:, 1:]), X.shape[1])
    return Ties(ends, -n_dimensions * np.log(np.maximum(radius, smallest)))


def intrinsic_dimension(distances: np.ndarray) -> float:
    """The dimension of the surface that points lie on (Levina and Bickel), from (n, k) distances.

    >>> round(intrinsic_dimension(np.array([[1.0, 2, 4]])), 3)  # 1 / mean(log 4, log 2)
    0.962
    """
    distances = np.maximum(distances, 1e-12)
    growth = np.log(distances[:, -1:] / distances[:, :-1])
    mean = float(growth.mean()) if growth.size else 0.0
    return 1 / mean if mean > 0 else 1.0


def valleys(ties: Ties, labels: np.ndarray) -> np.ndarray:
    """The depth of the valley around each cluster: (n_clusters,), 0 or less where there is none.

    At a tie to another cluster the depth is the density inside the less dense of both clusters (the
    median over its ties), less that at the tie. A cluster's depth is that of its shallowest ties,
    leaving out those of ``FEW`` of its points. Labels must be 0, 1, ... without gaps.

    >>> ends = np.array([[0, 1], [1, 2], [2, 3]])
    >>> valleys(Ties(ends, np.array([3.0, 1.0, 2.0])), np.array([0, 0, 1, 1]))
    array([1., 1.])
    """
    n_clusters = int(labels.max()) + 1
    first, second = labels[ties.ends].T  # (n_ties,) each
    inside = first == second
    peak = medians(ties.log_density[inside], first[inside], n_clusters)  # (n_clusters,)
    across = ~inside
    depth = np.minimum(peak[first[across]], peak[second[across]]) - ties.log_density[across]
    depth = np.clip(depth, -DEEPEST, DEEPEST)
    shallowest = np.full(len(labels), np.inf)  # of each point's ties to other clusters
    np.minimum.at(shallowest, ties.ends[across].ravel(), np.repeat(depth, 2))
    return np.array([around(shallowest[labels == c]) for c in range(n_clusters)])


def around(shallowest: np.ndarray) -> float:
    """The depth around a cluster from those of its points, infinite for points inside: (n,) -> number.

    >>> around(np.array([np.inf, 0.5, 0.7])), around(np.array([np.inf] * 39 + [0.5]))
    (0.5, 1.0)
    """
    ordered = np.sort(shallowest)
    depth = float(ordered[int(FEW * len(ordered))])
    if np.isfinite(depth):
        return depth
    touching = ordered[np.isfinite(ordered)]
    return max(float(touching.max(initial=SEPARATED)), SEPARATED) if len(touching) else DEEPEST


def medians(values: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
    """The median of each group; minus infinity for an empty one, which is nowhere dense.

    >>> medians(np.array([1.0, 3.0, 9.0]), np.array([0, 0, 2]), 3)
    array([  2., -inf,   9.])
    """
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(1, n_groups))
    parts = np.split(values[order], bounds)
    return np.array([np.median(part) if len(part) else -np.inf for part in parts])
