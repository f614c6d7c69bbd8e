"""The graph of nearest neighbors, and how much of it a partition cuts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from deccs.labels import NOISE


def neighbor_graph(X: np.ndarray, n_neighbors: int = 10) -> sp.csr_array:
    """(n_points, n_points) 1 for mutual neighbors, 0.5 for one-sided ones; a point is its own neighbor."""
    n_neighbors = max(1, min(n_neighbors, len(X) - 1))  # a single point has itself
    graph = kneighbors_graph(X, n_neighbors, include_self=True)
    return sp.csr_array(0.5 * (graph + graph.T))


def between_copies(graph: sp.csr_array, copies: np.ndarray) -> sp.csr_array:
    """The graph of distinct rows, with ties as strong as their numbers of copies: (n, n).

    A tie is multiplied by the root of the product of both numbers. So a row's degree grows with its
    copies, and no row is tied to itself more than to its neighbors because it has many.

    >>> pair = sp.csr_array(np.ones((2, 2)))
    >>> between_copies(pair, np.array([1, 4])).toarray()
    array([[1., 2.],
           [2., 4.]])
    """
    roots = sp.diags_array(np.sqrt(copies))
    return sp.csr_array(roots @ graph @ roots)


def with_tiny_parts_joined(
    graph: sp.csr_array, X: np.ndarray, copies: np.ndarray, smallest: float, n_neighbors: int = 10
) -> sp.csr_array:
    """The graph without connected parts of fewer than ``smallest`` rows, unless it is all of it.

    Each row of a tiny part is tied to its nearest neighbors outside the part. One tie for the whole
    part would connect it, but the part would still have an eigenvector almost to itself. ``copies``
    (n,) counts a distinct row as often as it is in the data.

    >>> X = np.array([[0.0], [1], [2], [9]])
    >>> graph = sp.csr_array(np.kron(np.diag([1, 0]), np.ones((2, 2))) + np.eye(4))
    >>> joined = with_tiny_parts_joined(graph, X, np.ones(4), smallest=2, n_neighbors=1)
    >>> joined.toarray()[2]  # its nearest is row 1; row 9 chose row 2
    array([0. , 0.5, 1. , 0.5])
    """
    while True:
        n_parts, part = connected_components(graph, directed=False)
        tiny = np.flatnonzero(np.bincount(part, weights=copies) < smallest)
        if n_parts == 1 or len(tiny) == 0:
            return graph
        rows, columns = [], []
        for number in tiny:
            inside, outside = np.flatnonzero(part == number), np.flatnonzero(part != number)
            # Not a tree: each part has other points outside, and would have to build its own.
            nearest = NearestNeighbors(
                n_neighbors=min(n_neighbors, len(outside)), algorithm="brute"
            )
            found = nearest.fit(X[outside]).kneighbors(X[inside], return_distance=False)
            rows.append(np.repeat(inside, found.shape[1]))
            columns.append(outside[found.ravel()])
        places = np.concatenate(rows), np.concatenate(columns)
        ties = sp.csr_array(sp.coo_array((np.full(len(places[0]), 0.5), places), graph.shape))
        graph = sp.csr_array(graph + ties + ties.T)


def normalized_cut(graph: sp.csr_array, labels: np.ndarray) -> float:
    """The share of a cluster's ties that leave it, mean over clusters; 0 where no tie is cut.

    >>> line = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> normalized_cut(line, np.array([0, 0, 1]))  # 1 of 3 ties, and 1 of 1
    0.6666666666666666
    """
    return float(cuts_by_cluster(graph, labels).mean())


def kept_share(graph: sp.csr_array, labels: np.ndarray, n_clusters: int) -> float:
    """The share of a cluster's ties that stay inside it, from 0 to 1: 1 less the normalized cut.

    A cluster without points keeps nothing, so that fewer clusters than ``n_clusters`` are never an
    advantage. Noise is no cluster: ties to it are cut, and the result is multiplied by the share of
    points that have a label.

    >>> line = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> kept_share(line, np.array([0, 0, 1]), n_clusters=2)  # 2 of 3 ties, and 0 of 1
    0.33333333333333337
    >>> kept_share(line, np.array([0, 0, 0]), n_clusters=2)  # all, but the other cluster is empty
    0.5
    """
    is_noise = labels == NOISE
    if is_noise.all():
        return 0.0
    kept = 1 - cuts_by_cluster(graph, labels + 1)[int(is_noise.any()) :]  # without that of noise
    return float(kept.sum() / max(len(kept), n_clusters) * (1 - is_noise.mean()))


def cuts_by_cluster(graph: sp.csr_array, labels: np.ndarray) -> np.ndarray:
    """The share of each cluster's ties that leave it: (n_clusters,), without empty clusters."""
    ends = graph.tocoo()
    n_clusters = int(labels.max()) + 1
    volume = np.bincount(labels[ends.row], ends.data, minlength=n_clusters)
    leaves = np.where(labels[ends.row] != labels[ends.col], ends.data, 0)
    cut = np.bincount(labels[ends.row], leaves, minlength=n_clusters)
    used = volume > 0
    return np.asarray(cut[used] / volume[used])


def nearest_neighbors(X: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances and row numbers of the nearest points, nearest first: twice (n, n_neighbors).

    A point is among its own neighbors, unless it has many duplicates. Blocks of all pairs in torch,
    in single precision, were no faster than scikit-learn from 2,000 to 70,000 rows of 50 columns.

    >>> nearest_neighbors(np.array([[0.0], [1], [3]]), n_neighbors=2)[1]
    array([[0, 1],
           [1, 0],
           [2, 1]])
    """
    distances, indices = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(X)
    return distances, indices
