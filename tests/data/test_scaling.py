"""Scaling: one mean and deviation for pixels, one per column for mixed data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deccs.data.scaling import fit_scaler as fit_source_scaler
from deccs.data.scaling import share_one_range
from deccs.data.source import source_of


def fit_scaler(X, scale="auto"):
    return fit_source_scaler(source_of(X), scale)


def pixels(n=50, d=9, seed=0):
    X = np.random.default_rng(seed).integers(0, 256, (n, d))
    X[0], X[1] = 0, 255  # every pixel is black once and white once
    return X


def mixed(n=50, seed=0):
    """Age, income and a share: three columns on three scales."""
    return np.random.default_rng(seed).uniform(size=(n, 3)) * [80, 1e5, 1] + [0, 1e4, 0]


def test_pixels_get_one_mean_and_deviation():
    X = pixels()
    scaler = fit_scaler(X)
    assert scaler.kind == "global"
    assert_allclose([scaler.mean, scaler.deviation], [X.mean(), X.std()])
    assert_allclose([scaler(X).mean(), scaler(X).std()], [0, 1], atol=1e-12)


def test_pixels_with_black_borders_are_still_pixels():
    X = pixels()
    X[:, :3] = 0
    scaler = fit_scaler(X)
    assert scaler.kind == "global"
    assert_allclose([scaler.mean, scaler.deviation], [X.mean(), X.std()])


def test_mixed_columns_get_their_own():
    X = mixed()
    scaler = fit_scaler(X)
    assert scaler.kind == "columns"
    assert_allclose(scaler(X).mean(axis=0), 0, atol=1e-12)
    assert_allclose(scaler(X).std(axis=0), 1)


def test_standardized_data_is_left_alone():
    for X, scale in ((mixed(), "columns"), (pixels(), "global")):
        standard = fit_scaler(X, scale)(X)
        again = fit_scaler(standard)
        assert again.kind == "none"
        assert again(standard) is standard


def test_the_user_decides():
    assert fit_scaler(pixels(), "columns").kind == "columns"
    assert fit_scaler(mixed(), "global").kind == "global"
    assert fit_scaler(mixed(), None).kind == "none"


def test_share_one_range():
    assert share_one_range(np.array([0, 0, 0]), np.array([1, 1, 0.96]))
    assert not share_one_range(np.array([0, 0, 0]), np.array([1, 1, 9]))  # one column sticks out
    assert not share_one_range(np.array([0, 0]), np.array([1, 1]))  # two columns are a coincidence


def test_a_constant_column_is_centered_and_not_blown_up():
    X = mixed()
    X[:, 1] = 1e6 / 3
    scaled = fit_scaler(X, "columns")(X)
    assert_allclose(scaled[:, 1], 0, atol=1e-6)
    assert np.isfinite(fit_scaler(np.full((4, 3), 5.0))(np.full((4, 3), 5.0))).all()


def test_a_column_with_a_large_mean_keeps_its_digits():
    """Seconds since 1970, an hour apart: the mean is a million deviations."""
    steps = np.random.default_rng(0).normal(size=(6_000, 1))
    scaler = fit_scaler(np.hstack([1.7e9 + 1000 * steps, steps]), "columns")
    scaled = scaler(np.hstack([1.7e9 + 1000 * steps, steps]))
    assert_allclose(scaled[:, 0], scaled[:, 1], atol=1e-8)


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6, 1e12])
def test_the_unit_of_a_column_changes_nothing(unit):
    X = mixed()
    assert_allclose(fit_scaler(X * unit, "columns")(X * unit), fit_scaler(X, "columns")(X))


def test_moments_over_many_blocks_equal_numpy():
    X = np.random.default_rng(0).normal(3, 2, (8_199, 2)) * [1, 10]
    scaler = fit_scaler(X, "columns")
    assert_allclose(scaler.mean, X.mean(axis=0))
    assert_allclose(scaler.deviation, X.std(axis=0))
    assert_allclose(fit_scaler(X, "global").deviation, X.std())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_missing_or_infinite_are_named(value):
    X = mixed()
    X[7, 2] = value
    with pytest.raises(ValueError, match="Column 2 has values that are missing, infinite"):
        fit_scaler(X)
