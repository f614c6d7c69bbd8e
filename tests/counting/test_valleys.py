"""Valleys between clusters: by hand, and where there are some and where there are none."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs.counting.valleys import (
    DEEPEST,
    N_NEAR,
    N_TIES,
    SEPARATED,
    Ties,
    around,
    intrinsic_dimension,
    medians,
    ties_between,
    valleys,
)
from deccs.members.spanning_tree import spanning_tree

PAIRS = np.array([0, 0, 1, 1, 2, 2])
ENDS = np.array([[0, 1], [2, 3], [4, 5], [1, 2], [3, 4]])  # one inside each pair, two between


def ties_of(X):
    return ties_between(X, spanning_tree(X))


def two_blobs(distance, n=60, seed=0):
    """Two round clusters, and the half each row is in."""
    X = np.random.default_rng(seed).normal(size=(2 * n, 2))
    X[n:, 0] += distance
    return X, np.repeat([0, 1], n)


# ---- by hand


def test_the_depth_is_that_below_the_less_dense_cluster():
    depth = valleys(Ties(ENDS, np.array([3.0, 2.0, 5.0, 1.0, 0.0])), PAIRS)
    assert_array_equal(depth, [1, 1, 2])  # min(3, 2) - 1 left, min(2, 5) - 0 right


def test_depths_have_limits():
    steep = valleys(Ties(ENDS, np.array([3.0, 2.0, 5.0, -100.0, 100.0])), PAIRS)
    assert_array_equal(steep, [DEEPEST, -DEEPEST, -DEEPEST])


def test_a_cluster_without_ties_inside_is_nowhere_dense():
    ties = Ties(np.array([[0, 1], [1, 2]]), np.array([3.0, 1.0]))
    assert_array_equal(valleys(ties, np.array([0, 0, 1])), [-DEEPEST, -DEEPEST])


def test_a_single_cluster_touches_no_other():
    assert_array_equal(valleys(Ties(ENDS, np.ones(5)), np.zeros(6, dtype=int)), [DEEPEST])


def test_a_few_touching_points_do_not_decide():
    inside = np.full(38, np.inf)
    assert around(np.array([*inside, 0.5, 0.7])) == SEPARATED  # 2 of 40 are few
    assert around(np.array([*inside, 0.5, 3.5])) == 3.5  # deeper than that is kept
    assert around(np.array([*inside[:37], 0.5, 0.9, 0.7])) == 0.9  # of 3, all but 2 count
    assert around(np.full(7, np.inf)) == DEEPEST


def test_medians_equal_a_slow_loop():
    rng = np.random.default_rng(0)
    values, groups = rng.normal(size=50), rng.integers(0, 6, size=50)
    groups[groups == 3] = 4
    slow = [np.median(values[groups == g]) if g in groups else -np.inf for g in range(8)]
    assert_array_equal(medians(values, groups, 8), slow)


def test_the_dimension_of_a_line_and_of_a_plane_in_space():
    rng = np.random.default_rng(0)
    flat = np.pad(rng.uniform(size=(400, 2)), ((0, 0), (0, 3)))
    for rows, dimension in ((flat[:, [0, 2, 3]], 1), (flat, 2)):
        distances = np.sort(np.linalg.norm(rows[:, None] - rows, axis=2), axis=1)[:, 1:16]
        assert intrinsic_dimension(distances) == pytest.approx(dimension, rel=0.25)
    assert intrinsic_dimension(np.zeros((5, 3))) == 1  # copies only


# ---- laws of the ties


def test_ties_connect_all_points_once():
    X, _ = two_blobs(50)
    ends = ties_of(X).ends
    assert (ends[:, 0] < ends[:, 1]).all() and len(np.unique(ends, axis=0)) == len(ends)
    tree = np.sort(spanning_tree(X).edges, axis=1)
    assert {tuple(edge) for edge in tree.tolist()} <= {tuple(edge) for edge in ends.tolist()}


def test_the_density_is_that_half_way_between_two_points():
    X, _ = two_blobs(5, n=20)
    ties = ties_of(X)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    dimension = intrinsic_dimension(np.sort(distances, axis=1)[:, 1 : N_TIES + 1])
    for (a, b), log_density in zip(ties.ends, ties.log_density, strict=True):
        radius = np.sort(np.linalg.norm(X - (X[a] + X[b]) / 2, axis=1))[N_NEAR - 1]
        assert log_density == pytest.approx(-min(dimension, 2) * np.log(radius))


def test_copies_are_not_infinitely_dense():
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 2)), 30, axis=0)
    ties = ties_of(X)
    assert np.isfinite(ties.log_density).all()
    assert np.isfinite(valleys(ties, np.arange(150) // 30)).all()
    assert np.isfinite(ties_of(np.zeros((20, 2))).log_density).all()


# ---- where there are valleys and where not


@pytest.mark.parametrize("seed", range(3))
def test_separated_blobs_have_a_deep_valley_and_halves_of_one_have_none(seed):
    X, half = two_blobs(12, seed=seed)
    assert valleys(ties_of(X), half).min() >= SEPARATED
    X = X[:60]
    assert valleys(ties_of(X), (X[:, 0] > np.median(X[:, 0])).astype(int)).max() <= 0


@pytest.mark.parametrize("seed", range(3))
def test_a_ring_cut_in_two_has_no_valley_but_a_ring_around_a_blob_has(seed):
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(200) / 200  # evenly: chance makes thin places
    ring = 5 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * rng.normal(size=(200, 2))
    assert valleys(ties_of(ring), (ring[:, 0] > 0).astype(int)).max() <= 0
    X = np.concatenate([ring, 0.5 * rng.normal(size=(100, 2))])
    assert valleys(ties_of(X), (np.arange(300) >= 200).astype(int)).min() >= 1


def test_relabeling_permutes_the_valleys():
    X, half = two_blobs(4)
    labels = 2 * half + (X[:, 1] > 0)  # (120,) of 0, 1, 2, 3
    ties, names = ties_of(X), np.array([2, 0, 3, 1])
    assert_array_equal(valleys(ties, names[labels])[names], valleys(ties, labels))


def test_scale_and_place_of_the_data_do_not_matter():
    X, half = two_blobs(4)
    expected = valleys(ties_of(X), half)
    assert_allclose(valleys(ties_of(1000 * X), half), expected, atol=1e-9)
    assert_allclose(valleys(ties_of(X + 50), half), expected, atol=1e-6)
    turned = X @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    assert_allclose(valleys(ties_of(turned), half), expected, atol=1e-6)
