"""Filling gaps: worked values, EM that never gets worse, known cells untouched, a row alone as among others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs.data.filling import (
    DIGITS,
    LEAST_NOISE,
    Filling,
    factors_of,
    first_loadings,
    fit_filling,
    next_model,
)

NAN = np.nan


def low_rank(n=400, d=10, rank=2, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d))
    return (X - X.mean(axis=0)) / X.std(axis=0)


def with_gaps(X, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, NAN, X)


def slow_expected(row, model):
    """The conditional mean of a normal distribution, by the covariance of all columns."""
    known = ~np.isnan(row)
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    pull = np.linalg.solve(covariance[np.ix_(known, known)], (row - model.mean)[known])
    return model.mean + covariance[:, known] @ pull


def log_likelihood(X, model):
    """Of the known values, row by row."""
    total = 0.0
    covariance = model.loadings @ model.loadings.T + np.diag(model.noise)
    for row in X:
        known = ~np.isnan(row)
        if not known.any():
            continue
        part, apart = covariance[np.ix_(known, known)], (row - model.mean)[known]
        total -= 0.5 * np.linalg.slogdet(2 * np.pi * part)[1]
        total -= 0.5 * apart @ np.linalg.solve(part, apart)
    return total


def penalty(model):
    """What a weight for loadings of 0 takes from the likelihood, see the prior of ``next_model``."""
    return 0.5 * (np.square(model.loadings) / model.noise[:, None]).sum()


def test_one_factor_by_hand():
    """Precision 1 + 2 * 1 * 1/0.5 = 5, pull (1 + 2) / 0.5 = 6: z = 6/5; of one value 2/3."""
    model = Filling(np.zeros(3), np.ones((3, 1)), np.full(3, 0.5))
    z, covariance = factors_of(np.array([[1, 2, NAN], [1, NAN, NAN], [NAN] * 3]), model)
    assert_allclose(z[:, 0], [6 / 5, 2 / 3, 0])
    assert_allclose(covariance[:, 0, 0], [1 / 5, 1 / 3, 1])


@pytest.mark.parametrize("seed", range(3))
def test_what_is_filled_in_is_the_conditional_mean(seed):
    rng = np.random.default_rng(seed)
    model = Filling(rng.normal(size=6), rng.normal(size=(6, 2)), rng.uniform(0.1, 1, 6))
    rows = with_gaps(rng.normal(size=(50, 6)), 0.5)
    expected = np.array([slow_expected(row, model) for row in rows])
    assert_allclose(model(rows)[np.isnan(rows)], expected[np.isnan(rows)], atol=10**-DIGITS)


def test_known_cells_are_not_changed_and_no_gap_is_left():
    X = with_gaps(low_rank(), 0.4)
    filled = fit_filling(X)(X)
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert np.isfinite(filled).all()
    complete = low_rank()
    assert fit_filling(X)(complete) is complete


@pytest.mark.parametrize("seed", range(5))
def test_a_row_is_filled_alone_as_among_others(seed):
    X = with_gaps(low_rank(n=120, seed=seed), 0.4, seed)
    filling = fit_filling(X)
    together = filling(X)
    alone = np.vstack([filling(row[None]) for row in X])
    assert_allclose(alone, together, atol=1e-8, rtol=0)
    assert (alone == together).mean() > 0.999  # and nearly always to the last bit


def test_a_matrix_of_rank_2_is_recovered_much_better_than_by_the_mean():
    X = low_rank()
    gaps = np.isnan(with_gaps(X))
    error = np.square(fit_filling(np.where(gaps, NAN, X))(np.where(gaps, NAN, X)) - X)[gaps].mean()
    assert error < 0.1  # of the mean it is 1, the variance


def test_noise_is_filled_with_about_its_mean():
    """Columns that know nothing of each other: what is filled in must not be far from 0."""
    X = np.random.default_rng(0).normal(size=(2_000, 6))
    gaps = np.isnan(with_gaps(X))
    filled = fit_filling(np.where(gaps, NAN, X))(np.where(gaps, NAN, X))
    assert np.square(filled[gaps]).mean() < 0.1


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_never_falls(share, seed):
    """Expectation maximization: each round is as good as the last one, weight for small loadings included."""
    X = with_gaps(low_rank(n=80, d=5, noise=0.5, seed=seed), share)
    known, counts = ~np.isnan(X), (~np.isnan(X)).sum(axis=0)
    centered = np.where(known, X - np.nanmean(X, axis=0), 0)
    model = Filling(np.nanmean(X, axis=0), first_loadings(centered, 2), np.full(5, 0.5))
    values = []
    for _ in range(15):
        values.append(log_likelihood(X, model) - penalty(model))
        model = next_model(X, known, counts, model, np.full(5, 1e-9))
    assert np.diff(values).min() > -1e-6 * abs(values[0])
    assert values[-1] > values[0] + 1


def test_noise_has_a_floor():
    """Of twins each is known from the other; a gap must not be filled as if that were certain."""
    column = np.random.default_rng(0).normal(size=300)
    model = fit_filling(with_gaps(np.column_stack([column, column, column])))
    assert (model.noise >= 0.99 * LEAST_NOISE).all()


@pytest.mark.parametrize(
    "X",
    [
        np.full((5, 3), NAN),
        np.array([[1.0, NAN], [NAN, NAN], [NAN, NAN]]),
        np.column_stack([np.arange(9.0), np.full(9, NAN)]),
        np.zeros((6, 3)),
        np.where(np.eye(4) == 1, NAN, 1e9),
        np.array([[NAN], [1.0], [2.0]]),
    ],
    ids=["nothing", "one value", "an empty column", "constants", "huge", "one column"],
)
def test_odd_tables_are_filled_with_finite_numbers(X):
    model = fit_filling(X)
    filled = model(X)
    assert np.isfinite(filled).all()
    for array in (model.mean, model.loadings, model.noise):
        assert np.isfinite(array).all()
    empty = np.isnan(X).all(axis=0)
    assert_allclose(filled[:, empty], 0, atol=1e-6)


def test_wide_rows_in_blocks_equal_rows_at_once(monkeypatch):
    from deccs.data import filling

    X = with_gaps(low_rank(n=200))
    at_once = fit_filling(X)
    monkeypatch.setattr(filling, "rows_at_once", lambda width: 7)
    in_blocks = fit_filling(X)
    assert_allclose(in_blocks.noise, at_once.noise)
    assert_allclose(in_blocks(X), at_once(X), atol=1e-8)
