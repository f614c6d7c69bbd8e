"""Spectral clustering of the graph of nearest neighbors."""

import warnings

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.neighbors import kneighbors_graph

from deccs.labels import canonical
from deccs.members.spectral import NeighborSpectral, leading_eigenvectors
from deccs.scores import ari


def test_spectral_of_a_tiny_sample():
    X = np.array([[0.0], [0.1], [0.2], [9], [9.1], [9.2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a graph in parts is no reason to warn
        labels = NeighborSpectral(2, n_neighbors=2, random_state=0).fit_predict(X)
        more_neighbors_than_points = NeighborSpectral(2, random_state=0)
        assert more_neighbors_than_points.fit_predict(X).shape == (6,)
    assert_array_equal(canonical(labels), [0, 0, 0, 1, 1, 1])


def test_leading_eigenvectors_are_those_of_the_dense_matrix():
    """Two parts, one large enough for Lanczos; products of rows do not depend on the basis."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(600, 3)), rng.normal(size=(40, 3)) + 50])
    graph = kneighbors_graph(X, 10, include_self=True)
    graph = 0.5 * (graph + graph.T)
    degree = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    values, vectors = np.linalg.eigh(graph.toarray() / degree / degree[:, None])
    slow = vectors[:, -6:] * values[-6:] ** 20
    fast = leading_eigenvectors(graph, 6, random_state=0)
    assert_allclose(fast @ fast.T, slow @ slow.T, atol=1e-6)


def test_spectral_finds_two_moons():
    X, y = make_moons(1_000, noise=0.05, random_state=0)
    assert ari(y, NeighborSpectral(2, random_state=0).fit_predict(X)) == 1


def test_spectral_does_not_halve_a_long_cluster():
    """A strip with two blobs beside it: beyond the third, eigenvectors only wave along the strip."""
    rng = np.random.default_rng(0)
    strip = np.column_stack([rng.uniform(0, 40, 800), 0.3 * rng.normal(size=800)])
    blobs = [0.5 * rng.normal(size=(100, 2)) + place for place in ([5, 6], [12, 6])]
    X, y = np.concatenate([strip, *blobs]), np.repeat([0, 1, 2], [800, 100, 100])
    few, many = (
        ari(y, NeighborSpectral(3, n_components=n, random_state=0).fit_predict(X)) for n in (3, 6)
    )
    assert ari(y, NeighborSpectral(3, random_state=0).fit_predict(X)) == few == 1 > many
