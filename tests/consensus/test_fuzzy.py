"""Fuzzy c-means: numbers by hand, laws, and a version in plain loops."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs.consensus.fuzzy import fuzzy_c_means, memberships
from deccs.rules import default_fuzzifier


def fuzzy_c_means_in_loops(X, centers, m, n_iter):
    """The two formulas of Bezdek, a point and a cluster at a time."""
    n, k = len(X), len(centers)

    def degrees(centers):
        U = np.zeros((n, k))
        for i in range(n):
            for j in range(k):
                distance = np.linalg.norm(X[i] - centers[j])
                U[i, j] = 1 / sum(
                    (distance / np.linalg.norm(X[i] - other)) ** (2 / (m - 1)) for other in centers
                )
        return U

    for _ in range(n_iter):
        U = degrees(centers)
        centers = np.stack(
            [sum(U[i, j] ** m * X[i] for i in range(n)) / sum(U[:, j] ** m) for j in range(k)]
        )
    U = degrees(centers)
    objective = sum(
        U[i, j] ** m * np.sum((X[i] - centers[j]) ** 2) for i in range(n) for j in range(k)
    )
    return U, centers, objective


# Memberships


@pytest.mark.parametrize(("m", "expected"), [(2, 0.8), (3, 2 / 3), (1.5, 16 / 17)])
def test_memberships_by_hand(m, expected):
    """Squared distances 1 and 4: shares 1 and 4^(-1 / (m - 1)), which is 1/4, 1/2 and 1/16."""
    U = memberships(np.array([[1.0]]), np.array([[0.0], [3.0]]), m)
    assert_allclose(U, [[expected, 1 - expected]])


@pytest.mark.parametrize("m", [1.01, 1.5, 2, 10])
def test_a_point_on_a_center_belongs_to_it(m):
    centers = np.array([[0.1, 0.2], [5.0, 5.0], [5.0, 5.0], [-3.0, 1.0]])
    assert_allclose(
        memberships(centers[[0, 1]], centers, m), [[1, 0, 0, 0], [0, 0.5, 0.5, 0]], atol=1e-12
    )


def test_far_from_the_origin_a_point_still_belongs_to_its_center():
    centers = np.array([[1e6, 1e6], [1e6 + 1, 1e6]])
    U = memberships(np.array([[1e6, 1e6], [1e6 + 0.5, 1e6]]), centers, 1.2)
    assert_allclose(U, [[1, 0], [0.5, 0.5]], atol=1e-12)


def test_memberships_sum_to_one_whatever_the_distance(blobs):
    centers = np.array([[0.0] * 4, [1e-9] * 4, [1e200**0.5] * 4])
    for m in (1.001, 1.1, 2.0, 50.0):
        U = memberships(blobs.X, centers, m)
        assert np.isfinite(U).all() and (U >= 0).all()
        assert_allclose(U.sum(axis=1), 1)


def test_blocks_change_nothing(monkeypatch, blobs):
    centers = blobs.X[:3]
    whole = memberships(blobs.X, centers, 1.7), fuzzy_c_means(blobs.X, 3, start=centers)
    monkeypatch.setattr("deccs.data.source.rows_at_once", lambda width: 7)
    parts = memberships(blobs.X, centers, 1.7), fuzzy_c_means(blobs.X, 3, start=centers)
    assert_allclose(parts[0], whole[0], atol=1e-12)
    assert_allclose(parts[1].centers, whole[1].centers, atol=1e-9)


# Clusterings


@pytest.mark.parametrize("m", [1.3, 2.0, 3.0])
def test_agrees_with_plain_loops(m):
    X = np.random.default_rng(0).normal(size=(30, 3))
    result = fuzzy_c_means(X, 3, fuzzifier=m, n_iter=4, tol=0, start=X[:3] + 0.01)
    U, centers, objective = fuzzy_c_means_in_loops(X, X[:3] + 0.01, m, n_iter=4)
    assert_allclose(result.memberships, U, atol=1e-10)
    assert_allclose(result.centers, centers, atol=1e-10)
    assert result.objective == pytest.approx(objective)
    assert result.n_iter == 4


def test_one_cluster_is_the_mean():
    X = np.array([[0.0, 1], [2, 3], [4, 8]])
    result = fuzzy_c_means(X, 1, fuzzifier=2)
    assert_allclose(result.centers, [[2, 4]])
    assert_allclose(result.memberships, 1)
    assert result.objective == pytest.approx(4 + 0 + 4 + 9 + 1 + 16)


def test_finds_the_blobs(blobs):
    result = fuzzy_c_means(blobs.X, 3, random_state=0)
    labels = result.memberships.argmax(axis=1)
    assert len({(a, b) for a, b in zip(labels, blobs.y, strict=True)}) == 3
    assert result.fuzzifier == default_fuzzifier(180, 4)


def test_what_comes_back_belongs_together(blobs):
    for n_iter in (1, 2, 100):
        result = fuzzy_c_means(blobs.X, 3, n_iter=n_iter, random_state=0)
        assert_array_equal(
            memberships(blobs.X, result.centers, result.fuzzifier), result.memberships
        )
        assert 1 <= result.n_iter <= n_iter


def test_every_move_lowers_the_objective(blobs):
    objectives = [
        fuzzy_c_means(blobs.X, 4, n_iter=n, tol=0, start=blobs.X[:4]).objective
        for n in range(1, 12)
    ]
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()


def test_order_of_rows_and_of_centers(blobs):
    order, names = np.random.default_rng(0).permutation(180), [2, 0, 1]
    plain = fuzzy_c_means(blobs.X, 3, start=blobs.X[:3])
    mixed = fuzzy_c_means(blobs.X[order], 3, start=blobs.X[:3][names])
    assert_allclose(mixed.memberships, plain.memberships[order][:, names], atol=1e-9)
    assert_allclose(mixed.centers, plain.centers[names], atol=1e-9)


def test_same_seed_same_bits(blobs):
    first, again = (fuzzy_c_means(blobs.X, 5, random_state=3) for _ in range(2))
    assert_array_equal(first.memberships, again.memberships)
    assert not np.array_equal(first.centers, fuzzy_c_means(blobs.X, 5, random_state=4).centers)


def test_more_starts_are_no_worse(blobs):
    """The first start of ten is the single start."""
    one, ten = (fuzzy_c_means(blobs.X, 6, n_init=n, random_state=0).objective for n in (1, 10))
    assert ten <= one


def test_fewer_distinct_points_than_clusters():
    result = fuzzy_c_means(np.array([[0.0], [0], [1], [1]]), 3, fuzzifier=1.2, random_state=0)
    assert np.isfinite(result.centers).all() and np.isfinite(result.objective)
    assert_allclose(result.memberships.sum(axis=1), 1)


# The fuzzifier


def test_the_rule_by_hand():
    """n = 3000, d = 17: 22.5227 / 289 + 0.24711 * 17^-0.43846 = 0.0779 + 0.0713; the authors' R program says 1.15."""
    assert default_fuzzifier(3_000, 17) == pytest.approx(1.149, abs=1e-3)
    assert default_fuzzifier(100, 1) == 2


def test_two_collapses_in_high_dimension_and_the_rule_does_not():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(4, 200)) * 0.5, 60, axis=0) + rng.normal(size=(240, 200))
    spread = {
        m: fuzzy_c_means(X, 4, fuzzifier=m, random_state=0).centers.std(axis=0).mean()
        for m in (2.0, "auto")
    }
    assert spread[2.0] < 0.01 < 0.3 < spread["auto"]


def test_large_data_is_read_in_blocks():
    X = np.random.default_rng(0).standard_normal(
        (20_000, 200), dtype=np.float32
    )  # 16 MB, 32 as doubles
    tracemalloc.start()
    fuzzy_c_means(X, 10, n_iter=2, start=X[:10])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6


# Errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clusters": 5}, "n_clusters=5 is more than the number of points, n_samples=4"),
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1, got 0"),
        ({"n_clusters": True}, "n_clusters must be a whole number of at least 1, got True"),
        ({"fuzzifier": 1}, "fuzzifier must be 'auto' or a number above 1, got 1"),
        ({"fuzzifier": np.inf}, "fuzzifier must be 'auto' or a number above 1, got inf"),
        ({"fuzzifier": "high"}, "fuzzifier must be 'auto' or a number above 1, got 'high'"),
        ({"n_iter": 0}, "n_iter must be a whole number of at least 1, got 0"),
        ({"n_init": 1.5}, "n_init must be a whole number of at least 1, got 1.5"),
        ({"tol": -1}, "tol must be a number of at least 0, got -1"),
        ({"start": np.zeros((3, 2))}, r"start must be of shape \(2, 2\), got \(3, 2\)"),
        ({"X": np.zeros(4)}, r"X must be of shape \(n_points, n_features\), got shape \(4,\)"),
    ],
)
def test_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        fuzzy_c_means(**{"X": np.eye(4)[:, :2], "n_clusters": 2, **changes})
