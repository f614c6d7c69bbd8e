"""The minimum spanning tree of points, and single linkage from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from deccs.labels import canonical

DIGITS_LOST = 1e-8  # a squared distance below this share of the squared lengths keeps 8 digits


class SpanningTree(NamedTuple):
    """Edges between all points, the shortest first."""

    edges: np.ndarray  # (n - 1, 2) places of their ends
    lengths: np.ndarray  # (n - 1,)


def gap_of(tree: SpanningTree, labels: np.ndarray) -> float:
    """The least distance between two clusters, as a share of the longest edge.

    No two points of different clusters are nearer than the nearest two that the tree joins.

    >>> gap_of(SpanningTree(np.array([[0, 1], [1, 2]]), np.array([1.0, 4.0])), np.array([0, 0, 1]))
    1.0
    """
    ends = labels[tree.edges]  # (n - 1, 2)
    apart = tree.lengths[ends[:, 0] != ends[:, 1]]
    return float(apart.min() / tree.lengths[-1]) if len(apart) and tree.lengths[-1] > 0 else 0.0


def parts_of(edges: np.ndarray, n_points: int) -> np.ndarray:
    """The connected parts that (n_edges, 2) edges make of the points: (n_points,) labels.

    >>> parts_of(np.array([[0, 2], [3, 4]]), n_points=5)
    array([0, 1, 0, 2, 2])
    """
    graph = sp.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (n_points, n_points))
    return canonical(connected_components(graph, directed=False)[1])


def spanning_tree(X: np.ndarray) -> SpanningTree:
    """A minimum spanning tree of all points, the shortest edge first.

    Prim's algorithm: each step is one product, and there is no matrix of all pairs. The product loses
    the digits of points that are near for their lengths: their distances are made of differences.

    >>> spanning_tree(np.array([[0.0], [1], [10], [12]]))
    SpanningTree(edges=array([[0, 1],
           [2, 3],
           [1, 2]]), lengths=array([1., 2., 9.]))
    """
    X = X.astype(np.float64) - X.mean(axis=0)  # products lose digits to a large mean
    n = len(X)
    squares = np.square(X).sum(axis=1)
    outside = np.ones(n, dtype=bool)
    nearest, distance = np.zeros(n, dtype=np.int64), np.full(n, np.inf)  # in the tree, so far
    edges, lengths = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    newest = 0
    for step in range(n - 1):
        outside[newest] = False
        distance[newest] = np.inf
        to_newest = squares - 2 * (X @ X[newest]) + squares[newest]
        near = np.flatnonzero(to_newest < DIGITS_LOST * (squares + squares[newest]))
        to_newest[near] = np.square(X[near] - X[newest]).sum(axis=1)
        nearer = outside & (to_newest < distance)
        nearest[nearer], distance[nearer] = newest, to_newest[nearer]
        reached = int(distance.argmin())
        edges[step], lengths[step] = (nearest[reached], reached), distance[reached]
        newest = reached
    order = np.argsort(lengths, kind="stable")
    return SpanningTree(edges[order], np.sqrt(lengths[order]))


def single_linkage(X: np.ndarray) -> np.ndarray:
    """Single linkage in the form of SciPy's: (n - 1, 4) rows of two clusters, distance and size.

    SciPy's needs all pairs of points, 0.4 GB for 10,000 of them.

    >>> single_linkage(np.array([[0.0], [1], [10], [12]]))
    array([[0., 1., 1., 2.],
           [2., 3., 2., 2.],
           [4., 5., 9., 4.]])
    """
    edges, lengths = spanning_tree(X)
    n = len(X)
    parent, name, size = list(range(n)), list(range(n)), [1] * n

    def root(point: int) -> int:
        while parent[point] != point:
            parent[point] = parent[parent[point]]
            point = parent[point]
        return point

    merges = np.empty((n - 1, 4))
    for step, (first, second) in enumerate(edges.tolist()):
        a, b = root(first), root(second)
        size[a] += size[b]
        merges[step] = *sorted((name[a], name[b])), lengths[step], size[a]
        parent[b], name[a] = a, n + step
    return merges
