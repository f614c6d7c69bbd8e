"""Spectral clustering of the graph of nearest neighbors."""

import warnings

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.neighbors import kneighbors_graph

from deccs.labels import canonical
from deccs.members.neighbors import neighbor_graph, with_tiny_parts_joined
from deccs.members.spectral import NeighborSpectral, leading_eigenvectors
from deccs.scores import ari, nmi


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


def few_integers(n=4000, k=4, n_features=5, seed=0):
    """Answers from 0 to 2 to a few questions: most rows have dozens of copies."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    X = 1.5 * rng.normal(size=(k, n_features))[y] + rng.normal(size=(n, n_features))
    return (X > -0.7).astype(float) + (X > 0.7), y


def test_copies_take_no_eigenvectors():
    """k-means is right for these clusters. Where each copy was a point, a third of its NMI was left."""
    simple, spectral = [], []
    for seed in range(5):
        X, y = few_integers(seed=seed)
        assert len(np.unique(X, axis=0)) < 300
        simple.append(nmi(y, KMeans(4, n_init=3, random_state=0).fit_predict(X)))
        spectral.append(nmi(y, NeighborSpectral(4, random_state=0).fit_predict(X)))
    assert np.mean(spectral) > 0.9 * np.mean(simple)


def test_copies_of_a_row_have_one_label():
    X, _ = few_integers(n=500)
    labels = NeighborSpectral(4, random_state=0).fit_predict(X)
    distinct = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    assert len(np.unique(np.column_stack([distinct, labels]), axis=0)) == distinct.max() + 1


def test_the_same_copies_of_all_rows_change_nothing():
    X, y = make_moons(300, noise=0.05, random_state=0)
    twice = NeighborSpectral(2, random_state=0).fit_predict(np.repeat(X, 30, axis=0))
    assert ari(np.repeat(y, 30), twice) == 1


def test_fewer_distinct_rows_than_clusters():
    X = np.repeat([[0.0], [1], [5]], 20, axis=0)
    labels = NeighborSpectral(3, random_state=0).fit_predict(X)
    assert_array_equal(canonical(labels), np.repeat([0, 1, 2], 20))


def test_a_tiny_part_takes_no_cluster():
    """Twelve close points far from two blobs are a part of the graph, but not one of two clusters."""
    X, y = make_blobs(600, centers=[[0, 0], [7, 0]], cluster_std=1.2, random_state=0)
    stray = np.random.default_rng(0).normal([3.5, 40], 0.01, (12, 2))
    labels = NeighborSpectral(2, random_state=0).fit_predict(np.concatenate([X, stray]))
    assert ari(y, labels[:600]) > 0.95


def test_a_graph_without_tiny_parts_stays_as_it_is():
    X, _ = make_blobs(200, centers=[[0, 0], [50, 0]], random_state=0)
    graph = neighbor_graph(X, 10)
    assert with_tiny_parts_joined(graph, X, np.ones(200), smallest=20) is graph


def test_tiny_parts_are_joined_until_none_is_left():
    """Forty parts of three points, all of them tiny."""
    X = np.repeat(np.arange(40.0) ** 2, 3)[:, None] + np.tile([0, 0.1, 0.2], 40)[:, None]
    graph = sp.csr_array(np.kron(np.eye(40), np.ones((3, 3))))
    joined = with_tiny_parts_joined(graph, X, np.ones(120), smallest=30, n_neighbors=2)
    part = connected_components(joined, directed=False)[1]
    assert np.bincount(part).min() >= 30
    assert abs(joined - joined.T).max() == 0
