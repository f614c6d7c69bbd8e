"""Whether there are clusters at all: the signs by hand, and data with and without clusters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.preprocessing import scale

from deccs.counting.one_group import (
    best_split,
    columns_permuted,
    deepest_valley,
    dependence_of,
    large_parts,
    leading_components,
    longer_edges,
    mixture_gain,
    one_box,
    one_cloud,
    parts_with_gaps,
    principal_components,
    signs_of,
)
from deccs.counting.signs import (
    LEAST_DEPENDENCE,
    LEAST_FOR_ONE,
    LEAST_GAIN,
    MARGIN,
    SEPARATED,
    TWO_GROUPS,
    Signs,
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


def signs(depth=-3.0, n_parts=1, n_near_parts=1, gain=0.0, dependence=1.0, **more):
    return Signs(depth, 0.5, n_parts, n_near_parts, gain, dependence, **more)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"depth": 0.5}, False),
        ({"depth": 0.5 + MARGIN / 2, "gain": LEAST_GAIN}, False),  # all at their limits
        ({"depth": 0.5 + 2 * MARGIN}, True),
        ({"n_near_parts": 2, "gain": -1.0}, True),
        ({"gain": LEAST_GAIN + 0.01}, True),
        ({"n_near_parts": 0, "gain": -1.0}, False),  # all parts are small
        ({"depth": 4.0, "n_near_parts": 3, "gain": 1.0}, True),
    ],
)
def test_any_sign_is_enough_where_columns_depend_on_each_other(given, expected):
    assert signs(**given).of_clusters is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"depth": 0.9, "n_near_parts": 2, "gain": 5.0}, False),  # shallow, and nothing falls apart
        ({"depth": SEPARATED}, True),
        ({"n_parts": 2}, True),
        ({"split": TWO_GROUPS}, True),
        ({"split": TWO_GROUPS - 0.01}, False),
    ],
)
def test_independent_columns_need_a_clear_sign(given, expected):
    assert signs(dependence=LEAST_DEPENDENCE - 0.01, **given).of_clusters is expected


def test_a_few_rows_are_never_called_one_group():
    assert signs(n_rows=LEAST_FOR_ONE).of_one_group
    assert not signs(n_rows=LEAST_FOR_ONE - 1).of_one_group
    assert not signs(depth=2.0, n_rows=LEAST_FOR_ONE).of_one_group


def test_columns_of_one_table_depend_on_each_other_and_permuted_ones_do_not():
    X = scale(load_wine().data)
    permuted = columns_permuted(X, rng())
    references = [columns_permuted(X, rng()) for _ in range(2)]
    assert dependence_of(X, references) > 0.2
    assert abs(dependence_of(permuted, references)) < LEAST_DEPENDENCE / 2


def test_what_cannot_be_permuted_fairly_counts_as_dependent():
    X = rng().normal(size=(100, 5))
    of_one_length = X / np.linalg.norm(X, axis=1, keepdims=True)
    for each in (X[:, :1], of_one_length):
        assert dependence_of(each, [columns_permuted(each, rng())]) == np.inf


@pytest.mark.parametrize(
    "load", [load_wine, load_breast_cancer, load_diabetes], ids=lambda load: load.__name__
)
@pytest.mark.parametrize("seed", range(2))
def test_permuted_columns_of_real_tables_are_one_group(load, seed):
    X = scale(load().data)
    assert signs_of(X, X, seed).of_clusters
    permuted = columns_permuted(X, rng(seed))
    assert signs_of(permuted, permuted, seed).of_one_group


def test_clusters_in_a_single_column_count():
    X = rng().normal(size=(200, 4))
    X[:100, 0] += 12
    X = scale(X)
    found = signs_of(X, X, seed=0)
    assert found.dependence < LEAST_DEPENDENCE and found.of_clusters


def test_the_best_split_by_hand():
    column = np.array([0.0] * 6 + [2.0] * 6) + np.linspace(0, 1e-6, 12)
    assert best_split(column[:, None]) == pytest.approx(1)
    assert best_split(np.repeat([0.0, 1.0], 20)[:, None]) == 0  # two categories
    even = np.linspace(0, 1, 2_001)[:, None]
    assert best_split(even) == pytest.approx(0.75, abs=1e-3)
    assert best_split(np.ones((20, 2))) == 0


def test_leading_components_are_those_of_the_full_decomposition():
    X = rng().normal(size=(20, 50)) * np.linspace(3, 1, 50)
    assert_allclose(
        np.abs(leading_components(X, 3)), np.abs(principal_components(X)[0][:, :3]), atol=1e-9
    )


@pytest.mark.parametrize("name", WITHOUT_CLUSTERS)
def test_data_without_clusters_have_no_sign_of_them(name):
    X = WITHOUT_CLUSTERS[name]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert not signs_of(scaled, scaled, seed=0).of_clusters


def test_three_blobs_have_every_sign():
    X = three_blobs(distance=12)
    found = signs_of(X, X, seed=0)
    assert found.of_clusters and found.n_parts == found.n_near_parts == 3
    assert found.depth > found.reference_depth + MARGIN
    assert found.dependence > LEAST_DEPENDENCE
    assert found.gain > 0  # little: each column by itself has clusters, too


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
