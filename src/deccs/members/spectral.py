"""Spectral clustering on the graph of nearest neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans

from deccs.checks import NONE, Parameters, check_parameters, whole
from deccs.members.neighbors import (
    between_copies,
    neighbor_graph,
    normalized_cut,
    with_tiny_parts_joined,
)

DIFFUSION = 20  # steps of the random walk whose probabilities spectral clustering compares
TINY = 0.2  # of an even cluster: a connected part that is smaller is no cluster


@dataclass(eq=False, repr=False)
class NeighborSpectral(ClusterMixin, Parameters, BaseEstimator):
    """Spectral clustering of the graph of nearest neighbors, with no more parts than clusters.

    It does not use scikit-learn's solver, which takes twenty times as long on such graphs. k-means
    sees twice as many eigenvectors as clusters, because two digits that touch are often separated
    only by one beyond the k-th. Some of these split a long cluster in two, which shows in the
    normalized cut: where the first k eigenvectors, or 1.5 k, give less than half the cut, their
    labels are taken. Eigenvectors are weighted by their eigenvalue to the 20th power (diffusion
    maps), and each point is scaled to length 1 (Ng, Jordan and Weiss).

    Rounds make clusters compact, and a graph of 10 neighbors may then have more parts than there are
    clusters. Its first eigenvectors would choose among the parts at random. So the number of
    neighbors doubles, three times at most, until there are no more parts than clusters. Parts of
    less than a fifth of an even cluster are then tied to their neighbors, or they would take the
    first eigenvectors.

    Copies of a row would be each other's only neighbors, and so a part for themselves. The graph is
    therefore one of distinct rows, with ties that grow with the copies.
    """

    n_clusters: Annotated[int, whole(at_least=1)] = 8
    n_neighbors: Annotated[int, whole(at_least=1)] = 10
    n_components: Annotated[int | None, whole(at_least=1) | NONE] = None
    random_state: Annotated[int | None, whole(at_least=0) | NONE] = None

    def fit(self, X: np.ndarray, y: object = None) -> NeighborSpectral:
        check_parameters(self)
        points, place, copies = distinct_rows(X)
        if len(points) == len(X) or len(points) <= 2 * self.n_clusters:
            points, place, copies = X, np.arange(len(X)), np.ones(len(X))
        graph = self._graph(points, copies)
        wanted = self.n_components or 2 * self.n_clusters
        vectors = leading_eigenvectors(graph, min(wanted, len(points)), self.random_state)
        labels = self._clustered(vectors, copies)  # (n_distinct,)
        if self.n_components is None:
            sizes = self.n_clusters, self.n_clusters * 3 // 2
            fewer = [self._clustered(vectors[:, :size], copies) for size in sizes]
            cut, *cuts = (normalized_cut(graph, each) for each in (labels, *fewer))
            if min(cuts) < 0.5 * cut:
                labels = fewer[int(np.argmin(cuts))]
        self.labels_ = labels[place]
        return self

    def _graph(self, points: np.ndarray, copies: np.ndarray) -> sp.csr_array:
        """(n_distinct, n_distinct) of so many neighbors that there are no more parts than clusters."""
        self.n_neighbors_ = min(self.n_neighbors, len(points) - 1)
        most = min(8 * self.n_neighbors, len(points) - 1)  # more would need too much memory
        while True:
            graph = neighbor_graph(points, self.n_neighbors_)
            n_parts = connected_components(graph, directed=False)[0]
            if n_parts <= self.n_clusters or self.n_neighbors_ == most:
                break
            self.n_neighbors_ = min(2 * self.n_neighbors_, most)
        smallest = TINY * copies.sum() / self.n_clusters
        graph = with_tiny_parts_joined(graph, points, copies, smallest, self.n_neighbors)
        return between_copies(graph, copies) if copies.max() > 1 else graph

    def _clustered(self, vectors: np.ndarray, copies: np.ndarray) -> np.ndarray:
        """(n_points, n_components) -> (n_points,); 30 starts cost a tenth of finding the neighbors."""
        n_init = max(1, min(30, 3_000 // self.n_clusters))  # but not for hundreds of clusters
        kmeans = KMeans(self.n_clusters, n_init=n_init, random_state=self.random_state)
        weights = copies if copies.max() > 1 else None
        return kmeans.fit_predict(of_length_one(vectors), sample_weight=weights)


def distinct_rows(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n_distinct, d) rows, (n,) which of them each row is, (n_distinct,) how many copies.

    >>> rows, place, copies = distinct_rows(np.array([[5, 1], [0, 2], [5, 1]]))
    >>> rows.tolist(), place.tolist(), copies.tolist()
    ([[0, 2], [5, 1]], [1, 0, 1], [1, 2])
    """
    rows, place, copies = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    return rows, place.ravel(), copies


def leading_eigenvectors(
    graph: Any, n_components: int, random_state: int | None = None
) -> np.ndarray:
    """Eigenvectors of D^-1/2 W D^-1/2 weighted by diffusion, the largest first: (n_points, n_components).

    >>> graph = sp.csr_array(np.kron(np.eye(2), np.ones((2, 2))))  # two pairs
    >>> first, second, third, fourth = of_length_one(leading_eigenvectors(graph, 2))
    >>> np.allclose(first, second), np.allclose(third, fourth), bool(abs(first @ third) < 1e-9)
    (True, True, True)
    """
    values, vectors = leading_eigenpairs(graph, n_components, random_state)
    return np.asarray(vectors * np.maximum(values, 0) ** DIFFUSION)


def leading_eigenpairs(
    graph: Any, n_components: int, random_state: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(n_components,) eigenvalues of D^-1/2 W D^-1/2, the largest first, and (n_points, n_components) vectors.

    ``graph`` is W, symmetric and sparse. Each of its connected parts is solved by itself, because
    Lanczos iterations miss repeated eigenvalues, and each part has the eigenvalue 1.

    >>> leading_eigenpairs(sp.csr_array(np.ones((2, 2))), 2)[0].round(6)
    array([1., 0.])
    """
    graph = sp.csr_array(graph)
    root_degree = np.sqrt(graph.sum(axis=1))  # (n_points,)
    scaled = sp.csr_array(sp.diags_array(1 / root_degree) @ graph @ sp.diags_array(1 / root_degree))
    part = connected_components(graph, directed=False)[1]
    values, vectors = [], []
    for number in range(part.max() + 1):
        inside = np.flatnonzero(part == number)
        part_values, part_vectors = largest_eigenpairs(
            scaled[inside][:, inside], n_components, random_state
        )
        values.append(part_values)
        vectors.append(np.zeros((len(part), len(part_values))))
        vectors[-1][inside] = part_vectors
    value, vector = np.concatenate(values), np.hstack(vectors)
    top = np.argsort(-value, kind="stable")[:n_components]
    return value[top], vector[:, top]


def of_length_one(points: np.ndarray) -> np.ndarray:
    """Each row scaled to length 1: (n, d) -> (n, d).

    >>> of_length_one(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)


def largest_eigenpairs(
    matrix: Any, wanted: int, random_state: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """(wanted,) eigenvalues, (n, wanted) eigenvectors of a connected part; fewer if it is smaller."""
    n = matrix.shape[0]
    if n <= max(4 * wanted, 500):
        values, vectors = np.linalg.eigh(matrix.toarray())
        return values[-wanted:], vectors[:, -wanted:]
    settings = {"v0": np.random.default_rng(random_state).normal(size=n), "ncv": 4 * wanted}
    try:
        return eigsh(matrix, wanted, which="LA", maxiter=300, **settings)
    except ArpackNoConvergence:
        # Eigenvalues are close to each other where clusters are long. Inverting around 1 is slower
        # but converges.
        return eigsh(matrix, wanted, sigma=1 + 1e-6, **settings)
