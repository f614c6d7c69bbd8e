"""The graph of nearest neighbors, and how much of it a partition cuts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph


def neighbor_graph(X: np.ndarray, n_neighbors: int = 10) -> sp.csr_array:
    """(n_points, n_points) 1 for mutual neighbors, 0.5 for one-sided ones; a point is its own neighbor."""
    graph = kneighbors_graph(X, min(n_neighbors, len(X) - 1), include_self=True)
    return sp.csr_array(0.5 * (graph + graph.T))


def normalized_cut(graph: sp.csr_array, labels: np.ndarray) -> float:
    """The share of a cluster's ties that leave it, mean over clusters; 0 where no tie is cut.

    >>> line = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> normalized_cut(line, np.array([0, 0, 1]))  # 1 of 3 ties, and 1 of 1
    0.6666666666666666
    """
    ends = graph.tocoo()
    n_clusters = int(labels.max()) + 1
    volume = np.bincount(labels[ends.row], ends.data, minlength=n_clusters)
    leaves = np.where(labels[ends.row] != labels[ends.col], ends.data, 0)
    cut = np.bincount(labels[ends.row], leaves, minlength=n_clusters)
    used = volume > 0
    return float((cut[used] / volume[used]).mean())


def nearest_neighbors(X, n_neighbors):
    from sklearn.neighbors import NearestNeighbors
    return NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(X)
