"""Spectral clustering on the graph of nearest neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans

from deccs.members.neighbors import neighbor_graph, normalized_cut

DIFFUSION = (
    20  # steps of the random walk on the neighbors whose probabilities spectral clustering compares
)


class NeighborSpectral(ClusterMixin, BaseEstimator):
    """Spectral clustering of the graph of nearest neighbors, which never has more parts than clusters.

    Own code instead of scikit-learn's, whose solver takes twenty times as long on such graphs. And k-means sees
    twice as many eigenvectors as clusters: two digits that touch are often told apart by one beyond the k-th. Others
    halve a long cluster, which shows: where the first k, or half as many more, give less than half the normalized
    cut, their answer counts. Eigenvectors are weighted by their eigenvalue to the 20th power (diffusion maps), and
    each point is scaled to length 1 (Ng, Jordan and Weiss).

    Rounds make clusters compact, and 10 neighbors then leave a graph in more parts than there
    are clusters. Its first eigenvectors are an arbitrary choice among the parts, and a member that
    was right turns to chance. So the number of neighbors doubles, three times at most, until there
    are no more parts than clusters wanted.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        n_neighbors: int = 10,
        n_components: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_clusters, self.n_neighbors, self.n_components = n_clusters, n_neighbors, n_components
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: object = None) -> NeighborSpectral:
        self.n_neighbors_ = min(self.n_neighbors, len(X) - 1)
        most = min(8 * self.n_neighbors, len(X) - 1)  # beyond, the graph would fill the memory
        while True:
            graph = neighbor_graph(X, self.n_neighbors_)
            n_parts = connected_components(graph, directed=False)[0]
            if n_parts <= self.n_clusters or self.n_neighbors_ == most:
                break
            self.n_neighbors_ = min(2 * self.n_neighbors_, most)
        wanted = self.n_components or 2 * self.n_clusters
        vectors = leading_eigenvectors(graph, min(wanted, len(X)), self.random_state)
        self.labels_ = self._of(vectors)
        if self.n_components is None:
            fewer = [self._of(vectors[:, :n]) for n in (self.n_clusters, self.n_clusters * 3 // 2)]
            cut, *cuts = (normalized_cut(graph, labels) for labels in (self.labels_, *fewer))
            if min(cuts) < 0.5 * cut:
                self.labels_ = fewer[int(np.argmin(cuts))]
        return self

    def _of(self, vectors: np.ndarray) -> np.ndarray:
        kmeans = KMeans(
            self.n_clusters, n_init=30, random_state=self.random_state
        )  # 30 cost a tenth of the neighbors
        return kmeans.fit_predict(of_length_one(vectors))


def leading_eigenvectors(
    graph: Any, n_components: int, random_state: int | None = None
) -> np.ndarray:
    """Those of D^-1/2 W D^-1/2 with the largest eigenvalues, weighted: (n_points, n_components), the largest first.

    ``graph`` is W, symmetric and sparse. Each of its connected parts is solved by itself, because Lanczos
    iterations miss eigenvalues that come more than once, and 1 comes once per part.

    >>> graph = sp.csr_array(np.kron(np.eye(2), np.ones((2, 2))))       # two pairs
    >>> first, second, third, fourth = of_length_one(leading_eigenvectors(graph, 2))
    >>> bool(np.allclose(first, second)), bool(np.allclose(third, fourth)), bool(abs(first @ third) < 1e-9)
    (True, True, True)
    """
    graph = sp.csr_array(graph)
    root_degree = np.sqrt(graph.sum(axis=1))  # (n_points,)
    scaled = sp.csr_array(sp.diags_array(1 / root_degree) @ graph @ sp.diags_array(1 / root_degree))
    part = connected_components(graph, directed=False)[1]
    values, vectors = [], []
    for number in range(part.max() + 1):
        inside = np.flatnonzero(part == number)
        own_values, own_vectors = largest_eigenpairs(
            scaled[inside][:, inside], n_components, random_state
        )
        values.append(own_values)
        vectors.append(np.zeros((len(part), len(own_values))))
        vectors[-1][inside] = own_vectors
    value, vector = np.concatenate(values), np.hstack(vectors)
    top = np.argsort(-value, kind="stable")[:n_components]
    return np.asarray(vector[:, top] * np.maximum(value[top], 0) ** DIFFUSION)


def of_length_one(points: np.ndarray) -> np.ndarray:
    """Each row scaled to length 1: (n, d) -> (n, d).

    >>> of_length_one(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)


def largest_eigenpairs(
    matrix: Any, wanted: int, random_state: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """(wanted,) eigenvalues and (n, wanted) eigenvectors of a connected part, fewer if it is smaller."""
    n = matrix.shape[0]
    if n <= max(4 * wanted, 500):
        values, vectors = np.linalg.eigh(matrix.toarray())
        return values[-wanted:], vectors[:, -wanted:]
    settings = {"v0": np.random.default_rng(random_state).normal(size=n), "ncv": 4 * wanted}
    try:
        return eigsh(matrix, wanted, which="LA", maxiter=300, **settings)
    except (
        ArpackNoConvergence
    ):  # eigenvalues crowd where clusters are long: invert around 1, slower and safe
        return eigsh(matrix, wanted, sigma=1 + 1e-6, **settings)
