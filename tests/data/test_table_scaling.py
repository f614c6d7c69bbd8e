"""Coded rows on one scale: worked values, and laws that hold whatever weight a level has."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs.data.coding import Coding, Column
from deccs.data.scalers import fit_scaler
from deccs.data.scaling import FARTHEST, Scaler
from deccs.data.source import ArrayRows, SparseRows
from deccs.data.table_scaling import (
    TableScaler,
    bent,
    check_coding,
    share_of_tails,
    shares_of,
    spread_of,
    tails_of,
)
from deccs.data.tabulate import coded_rows, tabulated
from tests.helpers.frames import mixed

NAN = np.nan


def fitted(frame, scale="auto"):
    rows = tabulated(frame).rows()
    return fit_scaler(rows, scale), rows


def numbers_and_levels(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "size": rng.normal(3, 2, n),
            "city": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]),
            "flag": rng.choice(["yes", "no"], n),
        }
    )


def test_numbers_have_mean_0_and_variance_1():
    scaler, rows = fitted(numbers_and_levels())
    size = scaler(rows.X)[:, 0]
    assert_allclose([size.mean(), size.std()], [0, 1], atol=1e-9)


def test_a_level_has_its_weight_in_its_place_and_0_elsewhere():
    scaler, _ = fitted(numbers_and_levels())
    assert scaler.n_levels.tolist() == [0, 3, 2] and scaler.starts.tolist() == [0, 1, 4]
    assert (scaler.n_scaled, scaler.n_inputs) == (6, 6)  # nothing is missing: no masks
    row = scaler(np.array([[3.0, 2, 0]]))[0]
    assert_allclose(row[1:], [0, 0, scaler.weight[1], scaler.weight[2], 0])


def test_shares_of_levels_by_hand():
    assert_array_equal(shares_of(np.array([0, 0, 1, NAN]), 3), [2 / 3, 1 / 3, 0])
    assert_array_equal(shares_of(np.array([NAN, NAN]), 2), [0, 0])
    assert_array_equal(shares_of(np.array([5.0, 6]), 0), [0])


@pytest.mark.parametrize("seed", range(3))
def test_all_levels_of_a_column_are_equally_far_from_each_other(seed):
    scaler, _ = fitted(numbers_and_levels(seed=seed))
    rows = scaler(np.array([[0.0, level, 0] for level in range(3)]))
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    assert_allclose(distances[~np.eye(3, dtype=bool)], distances[0, 1])
    assert distances[0, 1] > 0


def test_gaps_are_filled_and_networks_are_told_of_them():
    scaler, rows = fitted(mixed(n=200))
    assert len(scaler.masked) == 6  # columns with gaps, not cells: a date has one mask
    seen = scaler.inputs(rows.X)
    assert seen.shape == (200, scaler.n_inputs) and np.isfinite(seen).all()
    assert_array_equal(seen[:, : scaler.n_scaled], scaler(rows.X))
    first = np.array(rows.coding.first_cells)
    assert_array_equal(seen[:, scaler.n_scaled :], np.isnan(rows.X[:, first]))


def test_known_cells_do_not_depend_on_the_gaps_of_their_row():
    scaler, rows = fitted(mixed(n=200))
    with_gaps, filled = scaler.with_gaps(rows.X), scaler(rows.X)
    known = ~np.isnan(with_gaps)
    assert_array_equal(filled[known], with_gaps[known])
    per_cell = np.repeat(np.isnan(rows.X), np.maximum(scaler.n_levels, 1), axis=1)
    assert_array_equal(np.isnan(with_gaps), per_cell)


@pytest.mark.parametrize("seed", range(3))
def test_a_row_alone_is_scaled_as_among_others(seed):
    scaler, rows = fitted(mixed(seed=seed))
    alone = np.vstack([scaler(row[None]) for row in rows.X])
    assert_allclose(alone, scaler(rows.X), atol=1e-8, rtol=0)
    assert scaler(rows.X[:0]).shape == (0, scaler.n_scaled)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_a_number_changes_nothing(factor):
    frame = mixed(n=200)
    scaler, rows = fitted(frame)
    other, other_rows = fitted(frame.with_columns(pl.col("size") * factor))
    assert_allclose(other(other_rows.X), scaler(rows.X), atol=1e-6)


def test_complete_numbers_keep_the_scaler_of_arrays():
    X = np.random.default_rng(0).normal(5, 2, (50, 3)) * [1, 10, 100]
    assert type(fit_scaler(ArrayRows(X))) is Scaler
    coding = Coding(tuple(Column(name, "number") for name in "abc"))
    assert type(fit_scaler(ArrayRows(X, coding=coding))) is Scaler


def test_numbers_with_a_few_gaps_are_scaled_like_complete_ones():
    X = np.random.default_rng(0).normal(5, 2, (2_000, 3)) * [1, 10, 100]
    gaps = X.copy()
    gaps[::50, 1] = NAN
    whole, scaler = fit_scaler(ArrayRows(X)), fit_scaler(ArrayRows(gaps))
    assert isinstance(scaler, TableScaler) and (scaler.unit == 0).all()
    assert_allclose(scaler(X), whole(X), atol=0.05)


@pytest.mark.parametrize(
    ("scale", "kind"), [("global", "one"), ("columns", "each"), (None, "as is")]
)
def test_the_user_decides_of_numbers(scale, kind):
    X = np.random.default_rng(0).normal(5, 2, (500, 2)) * [1, 10]
    X[3, 0] = NAN
    scaler = fit_scaler(ArrayRows(X), scale)
    expected = {"one": np.nanstd(X), "each": np.nanstd(X, axis=0), "as is": 1.0}[kind]
    assert_allclose(scaler.deviation, np.broadcast_to(expected, 2))
    assert_allclose(scaler(X)[4:] * scaler.deviation + scaler.mean, X[4:])


def test_scales_that_need_complete_rows_say_so():
    X = np.array([[1.0, NAN], [2, 3], [0, 1]])
    with pytest.raises(ValueError, match="scale='rows' needs rows of numbers without gaps"):
        fit_scaler(ArrayRows(X), "rows")
    import scipy.sparse as sp

    with pytest.raises(ValueError, match="scale='robust' needs a dense X"):
        fit_scaler(SparseRows(sp.csr_matrix(np.eye(3))), "robust")


def test_long_tails_are_bent_and_normal_ones_are_not():
    rng = np.random.default_rng(0)
    sample = np.column_stack([rng.normal(size=5_000), rng.lognormal(0, 2.5, 5_000)])
    center, unit = tails_of(sample, np.array([True, True]))
    assert unit[0] == 0 and unit[1] > 0
    assert (
        share_of_tails(bent(sample, center, unit)[:, 1]) < 0.2 < 0.5 < share_of_tails(sample[:, 1])
    )


def test_bending_keeps_the_order_of_values():
    values = np.sort(np.random.default_rng(0).lognormal(0, 3, 1_000))[:, None]
    curved = bent(values, np.array([np.median(values)]), np.array([1.0]))
    assert (np.diff(curved[:, 0]) > 0).all()
    assert_allclose(bent(np.array([[5.0]]), np.array([5.0]), np.array([2.0])), 0)


def test_a_constant_beside_gaps_is_centered_and_not_blown_up():
    values = np.array([[1e6 / 3], [NAN], [1e6 / 3]])
    mean, deviation = spread_of(values, np.array([True]), "columns")
    assert abs((1e6 / 3 - mean[0]) / deviation[0]) < 1e-6


@pytest.mark.parametrize("size", [1e-300, 1e300, 8e307])
@pytest.mark.parametrize("scale", ["auto", "columns", "global", "robust"])
def test_numbers_of_any_size_are_scaled(size, scale):
    X = np.random.default_rng(0).uniform(-2, 2, (300, 2))
    X[:3, 0] = NAN
    expected, scaler = (fit_scaler(ArrayRows(X * unit), scale) for unit in (1, size))
    assert_allclose(scaler(X * size), expected(X), atol=1e-9)
    scaler.check_stored()


@pytest.mark.parametrize("value", [1e300, -1e300, 1e30])
def test_a_far_value_stays_within_what_networks_compute(value):
    scaler, _ = fitted(numbers_and_levels())
    row = scaler(np.array([[value, 0, 0]]))
    assert np.abs(row).max() == FARTHEST


def test_cells_learned_from_one_frame_are_those_of_another():
    frame = mixed(n=200)
    whole = tabulated(frame)
    scaler = fit_scaler(whole.rows())
    new = coded_rows(frame.sample(fraction=1, shuffle=True, seed=0), whole.coding)
    assert np.isfinite(scaler(new.X)).all()


def test_scalers_and_codings_of_different_fits_are_refused():
    scaler, rows = fitted(mixed())
    n_cells = len(rows.coding.cells)
    check_coding(scaler, rows.coding, n_cells)
    other = tabulated(numbers_and_levels()).coding
    with pytest.raises(ValueError, match="scaler_ must be for 3 cells"):
        check_coding(scaler, other, 3)
    with pytest.raises(ValueError, match="must be that of a table"):
        check_coding(Scaler("none", np.zeros(()), np.ones(())), rows.coding, n_cells)
    swapped = Coding(rows.coding.columns[::-1])
    with pytest.raises(ValueError, match="have other levels"):
        check_coding(scaler, swapped, n_cells)
