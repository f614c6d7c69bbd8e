"""The manifold embedding: worked numbers of its graph, its steps, and laws of the result."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from deccs.members import manifold
from deccs.members.manifold import (
    SLOTS,
    A,
    B,
    attraction,
    drawn_tails,
    fuzzy_graph,
    layout,
    manifold_embedding,
    memberships,
    repulsion,
    spectral_start,
)
from deccs.members.neighbors import nearest_neighbors

STEPS = 300  # enough for laws, and fast


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(120, 3))


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0, 0], [20, 0, 0], [0, 20, 0]])
    return np.repeat(centers, 40, axis=0) + rng.normal(size=(120, 3)), np.repeat([0, 1, 2], 40)


def test_memberships_add_up_to_log2_of_k(points):
    distances, neighbors = nearest_neighbors(points, 15)
    weights = memberships(distances, neighbors != np.arange(120)[:, None])
    assert_allclose(weights.sum(axis=1), np.log2(15), atol=1e-6)
    assert_array_equal(weights.max(axis=1), 1)  # the nearest neighbor


def test_memberships_by_hand():
    # 1 + x + x^2 = log2(4) = 2 with x = exp(-1 / sigma), so x = (sqrt(5) - 1) / 2
    weights = memberships(np.array([[0.0, 1, 2, 3]]), np.array([[False, True, True, True]]))
    x = (np.sqrt(5) - 1) / 2
    assert_allclose(weights, [[0, 1, x, x**2]], atol=1e-9)


def test_one_sided_and_mutual_edges_are_joined_by_the_fuzzy_union():
    distances = np.array([[0.0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]])
    neighbors = np.array([[0, 1, 2, 3], [1, 0, 2, 3], [2, 3, 0, 1], [3, 2, 1, 0]])
    x = (np.sqrt(5) - 1) / 2
    graph = fuzzy_graph(distances, neighbors).toarray()
    assert graph[0, 1] == 1
    assert graph[0, 2] == pytest.approx(x + x - x * x)  # both call the other the second nearest
    assert graph[1, 2] == pytest.approx(x + x**2 - x**3)
    assert_array_equal(graph, graph.T)
    assert_array_equal(np.diag(graph), 0)


def test_drawn_tails_follow_the_weights():
    graph = sp.csr_array(np.array([[0, 3, 1], [3, 0, 0], [1, 0, 0.0]]))
    tails = drawn_tails(graph, np.random.default_rng(0))
    assert tails.shape == (SLOTS, 3)
    assert_array_equal(np.bincount(tails[:, 0], minlength=3), [0, 48, 16])  # 3 : 1 of 64
    assert_array_equal(tails[:, 1:], 0)


def test_attraction_equals_a_loop_over_edges():
    rng = np.random.default_rng(0)
    Y, tails = rng.normal(size=(2, 6)).astype(np.float32), np.array([1, 0, 1, 1, 5, 2])
    shares = rng.uniform(size=6).astype(np.float32)
    expected = np.zeros((2, 6))
    for head, tail in enumerate(tails):
        gap = Y[:, tail].astype(float) - Y[:, head]
        square = gap @ gap
        pull = 2 * A * B * square ** (B - 1) / (1 + A * square**B) * gap
        expected[:, head] += (2 - shares[head]) * pull
        expected[:, tail] -= shares[head] * pull
    assert_allclose(attraction(Y, tails, shares), expected, rtol=1e-4, atol=1e-5)


def test_repulsion_equals_a_loop_over_points():
    rng = np.random.default_rng(0)
    Y, others = rng.normal(size=(2, 6)).astype(np.float32), np.array([1, 0, 1, 3, 5, 2])
    Y[:, 0] = Y[:, 1] + 0.05  # so near that the push is cut off
    expected = np.zeros((2, 6))
    for point, other in enumerate(others):
        gap = Y[:, point].astype(float) - Y[:, other]
        square = gap @ gap
        push = 2 * B / ((0.001 + square) * (1 + A * square**B)) * gap
        expected[:, point] = np.clip(push, -4, 4)
    assert_allclose(repulsion(Y, others), expected, rtol=1e-4, atol=1e-5)
    assert_array_equal(expected[:, 0], 4)
    assert_array_equal(expected[:, 3], 0)  # itself


def test_attraction_between_equal_points_moves_no_center():
    Y = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    tails = np.random.default_rng(1).integers(50, size=50)
    move = attraction(Y, tails, np.ones(50, dtype=np.float32))
    assert_allclose(move.sum(axis=1), 0, atol=1e-4)


def test_the_same_seed_gives_the_same_bits_with_any_number_of_threads(points):
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(manifold_embedding(points, 2, seed=3, n_steps=STEPS))
    assert_array_equal(*results)
    assert not np.allclose(results[0], manifold_embedding(points, 2, seed=4, n_steps=STEPS))


def test_given_neighbors_change_nothing(points):
    neighbors = nearest_neighbors(points, 15)
    given = manifold_embedding(points, 2, seed=0, neighbors=neighbors, n_steps=STEPS)
    assert_array_equal(given, manifold_embedding(points, 2, seed=0, n_steps=STEPS))
    assert given.shape == (120, 2) and given.dtype == np.float64


def test_the_layout_leaves_the_graph_alone(points):
    graph = fuzzy_graph(*nearest_neighbors(points, 15))
    before = graph.copy()
    start = spectral_start(graph, points, 2, np.random.default_rng(0))
    layout(start, graph, 80, np.random.default_rng(0))
    assert_array_equal(graph.toarray(), before.toarray())


@pytest.mark.parametrize("n_dimensions", [1, 2, 5])
def test_separated_blobs_stay_separated(blobs, n_dimensions):
    X, y = blobs  # 3 parts: more than twice 1 dimension, no more than twice 2
    Z = manifold_embedding(X, n_dimensions, seed=0, n_steps=1000)
    nearest = NearestNeighbors(n_neighbors=6).fit(Z).kneighbors(return_distance=False)
    assert (y[nearest] == y[:, None]).mean() > 0.99


def test_the_start_lies_between_0_and_10(blobs):
    graph = fuzzy_graph(*nearest_neighbors(blobs[0], 15))
    start = spectral_start(graph, blobs[0], 2, np.random.default_rng(0))
    assert_allclose([start.min(axis=0), start.max(axis=0)], [[0, 0], [10, 10]])


@pytest.mark.parametrize("copies", [2, 40])
def test_duplicate_rows_give_finite_numbers(copies):
    X = np.repeat(np.random.default_rng(0).normal(size=(6, 2)), copies, axis=0)
    assert np.isfinite(manifold_embedding(X, 2, seed=0, n_steps=STEPS)).all()


def test_identical_rows_only():
    assert np.isfinite(manifold_embedding(np.ones((50, 4)), 3, seed=0, n_steps=STEPS)).all()


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_fewer_points_than_neighbors(n):
    Z = manifold_embedding(np.random.default_rng(0).normal(size=(n, 4)), 3, seed=0, n_steps=STEPS)
    assert Z.shape == (n, 3) and np.isfinite(Z).all()


def copies(seed, n=266):
    """Rows of a small grid, each many times: the graph has parts of points that are all alike."""
    return np.random.default_rng(seed).integers(0, 4, size=(n, 2)).astype(float)


@pytest.mark.parametrize("n_dimensions", [2, 5, 10])
def test_copies_of_rows_are_laid_out(n_dimensions):
    """Equal eigenvalues make LAPACK's routine for some of them fail, or find too few."""
    for seed in range(25):
        X = copies(seed)
        assert np.isfinite(manifold_embedding(X, n_dimensions, 0, n_steps=1)).all()


def test_some_eigenpairs_are_those_of_the_whole_matrix(monkeypatch):
    matrix = np.cov(np.random.default_rng(0).normal(size=(8, 40)))
    values, vectors = manifold.some_eigenpairs(matrix, 5, 7)
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)

    def too_few(matrix, subset_by_index=None, driver=None):
        if subset_by_index is not None:
            raise manifold.LinAlgError("Internal Error.")
        return eigh(matrix, driver=driver)

    monkeypatch.setattr(manifold, "eigh", too_few)
    again = manifold.some_eigenpairs(matrix, 5, 7)
    assert_allclose(again[0], values)
    assert_allclose(np.abs((again[1] * vectors).sum(axis=0)), 1)
