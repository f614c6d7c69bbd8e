"""The error of rows given back: worked values, gradients against autograd, kinds of the same weight."""

import numpy as np
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose

from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import ArrayRows
from deccs.data.tabulate import tabulated
from deccs.network.reconstruction import SQUARED, TableError, cost_of, error_for
from tests.helpers.frames import mixed


def table(frame=None):
    """A scaler, its rows as networks see them, and the error; all in doubles."""
    rows = tabulated(mixed(n=150) if frame is None else frame).rows()
    scaler = fit_scaler(rows)
    error = TableError(scaler)
    error.is_number, error.costs = error.is_number.double(), error.costs.double()
    return scaler, torch.from_numpy(scaler.inputs(rows.X)), error


def slow_error(scaler, back, x):
    """Value by value, as the page of the method says it."""
    total, n_known = 0.0, 0
    masked = {int(scaler.column[cell]): place for place, cell in enumerate(scaler.masked)}
    for row, given in zip(x.numpy(), back.detach().numpy(), strict=True):
        for column in np.unique(scaler.column):
            if column in masked and row[scaler.n_scaled + masked[column]]:
                continue
            n_known += 1
            for cell in np.flatnonzero(scaler.column == column):
                start, n_levels = scaler.starts[cell], scaler.n_levels[cell]
                if n_levels == 0:
                    total += (given[start] - row[start]) ** 2
                    continue
                place = slice(start, start + n_levels)
                level = int(row[place].argmax())
                log_p = given[place] - np.log(np.exp(given[place]).sum())
                cost = cost_of(scaler.shares[place], float(scaler.weight[cell]))
                total -= cost * log_p[level]
    return total / n_known


def random_back(scaler, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, scaler.n_scaled, generator=generator, dtype=torch.float64)


def test_squared_error_by_hand():
    back, x = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 4.0]])
    assert SQUARED(back, x) == 2.5  # (1 + 4) / 2
    assert SQUARED.gradient(back, x, weight=3.0).tolist() == [[3.0, -6.0]]


def test_complete_numbers_have_the_squared_error():
    X = np.random.default_rng(0).normal(size=(40, 3))
    gaps = X.copy()
    gaps[0, 1] = np.nan
    scaler = fit_scaler(ArrayRows(gaps))
    x, back = torch.from_numpy(scaler.inputs(X)), random_back(scaler, 40)
    assert (x[:, 3:] == 0).all()  # one mask, and nothing is missing here
    error = TableError(scaler)
    assert_allclose(error(back, x), SQUARED(back, x[:, :3]))
    assert_allclose(error.gradient(back, x), SQUARED.gradient(back.clone(), x[:, :3]))


@pytest.mark.parametrize("seed", range(3))
def test_the_error_equals_its_slow_reference(seed):
    scaler, x, error = table(mixed(n=40, seed=seed))
    back = random_back(scaler, 40, seed)
    assert_allclose(error(back, x), slow_error(scaler, back, x))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_the_gradient_is_that_of_autograd(seed, weight):
    scaler, x, error = table(mixed(n=80, seed=seed))
    back = random_back(scaler, 80, seed).requires_grad_()
    (weight * error(back, x)).backward()
    assert_allclose(error.gradient(back, x, weight), back.grad, rtol=1e-10, atol=1e-15)


def test_a_missing_value_has_no_gradient_and_does_not_count():
    scaler, x, error = table()
    back = random_back(scaler, len(x))
    gradient = error.gradient(back, x)
    cells = np.repeat(np.arange(len(scaler.n_levels)), np.maximum(scaler.n_levels, 1))
    for place, cell in enumerate(scaler.masked):
        of_column = torch.from_numpy(np.flatnonzero(scaler.column[cells] == scaler.column[cell]))
        missing = x[:, scaler.n_scaled + place] == 1
        assert missing.any()
        assert (gradient[missing][:, of_column] == 0).all()
        assert (gradient[~missing][:, of_column] != 0).any()
    changed = torch.where(gradient == 0, back + 7, back)  # of what is missing, only
    assert_allclose(error(changed, x), error(back, x))


def test_rows_without_any_value_have_no_error():
    scaler, x, error = table()
    nothing = x[:4].clone()
    nothing[:, scaler.n_scaled :] = 1
    back = random_back(scaler, 4)
    assert error(back, nothing) == 0
    assert (error.gradient(back, nothing) == 0).all()


def test_the_right_answer_has_the_least_error():
    scaler, x, error = table()
    sure = x[:, : scaler.n_scaled].clone()
    for cell in scaler.levels:
        start, n_levels = scaler.starts[cell], scaler.n_levels[cell]
        sure[:, start : start + n_levels] *= 50 / scaler.weight[cell]
    assert 0 <= error(sure, x) < 1e-12
    assert error(sure + 0.1 * random_back(scaler, len(x)), x) > 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_who_knows_only_shares_and_means_errs_by_the_variance_of_each_column(seed):
    """The weight of a column does not depend on whether it holds numbers or levels."""
    rng = np.random.default_rng(seed)
    n = 500
    columns = {
        "size": rng.gamma(9, 1, n),
        "city": rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1]),
        "flag": rng.choice(["yes", "no"], n, p=[0.2, 0.8]),
    }
    for name in columns:  # the others are constant, so that all of the error is this column's
        scaler, x, error = table(pl.DataFrame(columns))
        scaled = x[:, : scaler.n_scaled]
        back = scaled.clone()
        place = list(columns).index(name)
        for cell in range(3):
            start, width = scaler.starts[cell], max(scaler.n_levels[cell], 1)
            of_cell = slice(start, start + width)
            if cell == place and scaler.n_levels[cell]:
                back[:, of_cell] = torch.from_numpy(np.log(scaler.shares[of_cell]))
            elif cell == place:
                back[:, of_cell] = scaled[:, of_cell].mean()
            else:
                back[:, of_cell] = scaled[:, of_cell] * (1 if width == 1 else 1e4)
        start, width = scaler.starts[place], max(scaler.n_levels[place], 1)
        variance = scaled[:, start : start + width].var(dim=0, correction=0).sum()
        assert_allclose(3 * error(back, x), variance, rtol=1e-6)


def test_the_cost_of_rare_levels_is_bounded():
    """Of a level that nearly all rows have, the entropy vanishes; its cost must not explode."""
    costs = [cost_of(np.array([1 - rare, rare]), 1.0) for rare in (0.5, 0.1, 1e-3, 1e-9, 0.0)]
    assert max(costs) < 5 and costs[-1] == 0
    assert cost_of(np.array([0.5, 0.5]), 2.0) == pytest.approx(4 * costs[0])


def test_rows_say_which_error_they_have():
    X = np.random.default_rng(0).normal(size=(20, 2))
    assert error_for(Rows(ArrayRows(X), fit_scaler(ArrayRows(X)))) is SQUARED
    rows = tabulated(mixed()).rows()
    assert isinstance(error_for(Rows(rows, fit_scaler(rows))), TableError)
