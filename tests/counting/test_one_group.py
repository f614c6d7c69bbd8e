"""Whether there are clusters at all: the signs by hand, and data with and without clusters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs.counting.one_group import (
    LEAST_GAIN,
    MARGIN,
    Signs,
    columns_permuted,
    deepest_valley,
    large_parts,
    longer_edges,
    mixture_gain,
    one_box,
    one_cloud,
    parts_with_gaps,
    principal_components,
    signs_of,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def three_blobs(n=100, d=2, distance=8.0):
    X = rng().normal(size=(3 * n, d))
    X[:n, 0] += distance
    X[n : 2 * n, 1] += distance
    return X


WITHOUT_CLUSTERS = {
    "square": rng().uniform(size=(300, 2)),
    "gaussian": rng().normal(size=(300, 4)),
    "correlated gaussian": rng().multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 300),
    "lognormal": rng().lognormal(size=(300, 4)),
    "one column": rng().normal(size=(300, 1)),
}


@pytest.mark.parametrize(
    ("depth", "n_parts", "gain", "expected"),
    [
        (0.5, 1, 0.0, False),
        (0.5 + MARGIN / 2, 1, LEAST_GAIN, False),  # all at their limits
        (0.5 + 2 * MARGIN, 1, 0.0, True),
        (-3.0, 2, -1.0, True),
        (-3.0, 1, LEAST_GAIN + 0.01, True),
        (-3.0, 0, -1.0, False),  # all parts are small
        (4.0, 3, 1.0, True),
    ],
)
def test_any_sign_is_enough(depth, n_parts, gain, expected):
    assert Signs(depth, 0.5, n_parts, gain).of_clusters is expected


@pytest.mark.parametrize("name", WITHOUT_CLUSTERS)
def test_data_without_clusters_have_no_sign_of_them(name):
    X = WITHOUT_CLUSTERS[name]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert not signs_of(scaled, scaled, seed=0).of_clusters


def test_three_blobs_have_every_sign():
    X = three_blobs(distance=12)
    signs = signs_of(X, X, seed=0)
    assert signs.of_clusters and signs.n_parts == 3
    assert signs.depth > signs.reference_depth + MARGIN
    assert signs.gain > 0  # little: each column by itself has clusters, too


def test_signs_have_the_same_bits_with_the_same_seed():
    X = three_blobs(12)
    assert signs_of(X, X, seed=3) == signs_of(X, X, seed=3)


# ---- references without clusters


@pytest.mark.parametrize("make", [one_cloud, one_box])
def test_references_have_the_shape_of_the_data_and_are_drawn(make):
    X = three_blobs(10, d=5)
    first, again = make(X, rng()), make(X, rng())
    assert first.shape == X.shape
    assert_array_equal(first, again)


def test_one_cloud_has_the_covariance_of_the_data():
    X = three_blobs(5_000, d=3) @ np.array([[1.0, 0.5, 0], [0, 1, 0.3], [0, 0, 0.2]])
    made = one_cloud(X, rng())
    assert_allclose(np.cov(made.T), np.cov(X.T), atol=0.05 * np.cov(X.T).max())  # 15,000 rows


def test_one_box_is_filled_evenly_between_the_ends_of_the_data():
    X = rng().uniform(size=(4_000, 2)) * [10, 1]
    made = principal_components(one_box(X, rng()))[0][:, 0]
    assert np.ptp(made) == pytest.approx(10, rel=0.05)
    counts = np.histogram(made, bins=4)[0]
    assert_allclose(counts, 1_000, atol=120)  # four deviations of a binomial


def test_principal_components_by_hand():
    X = np.array([[0.0, 0], [3, 4], [6, 8]])  # on a line of direction (0.6, 0.8)
    components, axes = principal_components(X)
    assert_allclose(np.abs(components), [[5, 0], [0, 0], [5, 0]], atol=1e-9)
    assert_allclose(np.abs(axes[0]), [0.6, 0.8])
    assert_allclose(components @ axes, X - X.mean(axis=0), atol=1e-9)


def test_permuted_columns_keep_their_values_and_lose_what_they_say_together():
    X = np.repeat(np.arange(500.0)[:, None], 3, axis=1)  # three equal columns
    made = columns_permuted(X, rng())
    assert_array_equal(np.sort(made, axis=0), X)
    off = np.corrcoef(made.T)[np.triu_indices(3, 1)]
    assert (np.abs(off) < 0.18).all()  # four deviations


# ---- the signs


def test_small_parts_do_not_count():
    near = np.concatenate([np.zeros((88, 1)), np.full((12, 1), 100.0)])
    spread = near + np.linspace(0, 1, 100)[:, None]
    assert large_parts(spread) == 2  # 88 and 12 of 100
    assert large_parts(np.concatenate([spread, spread[:88] + 0.001])) == 1  # 12 of 188 are few


def test_a_mixture_gains_nothing_on_one_cloud_and_much_on_two():
    cloud = rng().normal(size=(300, 3))
    assert mixture_gain(cloud, seed=0) == 0
    cloud[150:, 0] += 10
    # far clouds: log 10-fold spread saved in a column, less log 2 for the choice, twice for the BIC
    assert mixture_gain(cloud, seed=0) > 1


def test_valleys_are_deep_between_blobs_and_not_inside_one():
    X = three_blobs(40)
    assert deepest_valley(X, seed=0) > 1.5 > 0.5 > deepest_valley(X[80:], seed=0)
    assert deepest_valley(X, seed=0) == pytest.approx(deepest_valley(7 * X, seed=0), abs=0.01)


def test_a_few_rows_are_no_error():
    X = three_blobs(2)
    assert np.isfinite(deepest_valley(X, seed=0))
    assert np.isfinite(deepest_valley(X[:5], seed=0))  # two clusters are always tried


def test_three_spirals_have_gaps_though_ten_neighbors_reach_across():
    turn = np.linspace(1.5, 9, 100)
    arms = [
        turn[:, None] * np.stack([np.cos(turn / 2 + a), np.sin(turn / 2 + a)], axis=1)
        for a in 2 * np.pi * np.arange(3) / 3
    ]
    X = np.concatenate(arms)
    assert parts_with_gaps(X) == 3 and longer_edges(X) == 0


@pytest.mark.parametrize("seed", range(3))
def test_noise_has_no_gaps_between_large_parts(seed):
    normal = rng(seed).normal(size=(200, 2))
    line = normal @ np.array([[1, 1], [0.05, -0.05]])
    for X in (normal, line, rng(seed).uniform(size=(200, 2))):
        assert parts_with_gaps(X) <= 1
