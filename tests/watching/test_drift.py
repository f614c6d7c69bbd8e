"""Drift: no alarm on data of the same kind, planted changes found and named, effects that do not grow with n."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import deccs
from deccs.describing.columns import Described
from deccs.watching import drift as drifting
from deccs.watching.drift import compared_columns, drift
from deccs.watching.evidence import by_counts, holm, kolmogorov, too_many_rejected
from deccs.watching.sketch import MOST_COLUMNS, N_CUTS, Sketch, shares_below
from tests.helpers.small import small_deccs

COLORS = np.array(["red", "green", "blue"])


def customers(n, seed):
    """Three kinds of customers, with a category, a gap here and there, and columns that say nothing."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "size": rng.normal(6.0 * kind, 1.0),
            "weight": np.where(rng.random(n) < 0.1, np.nan, rng.normal(-6.0 * kind, 1.0)),
            "color": COLORS[kind],
            "visits": rng.poisson(2.0, n).astype(float),
        }
    )


@pytest.fixture(scope="module")
def fitted():
    frame = customers(500, 0)
    return SimpleNamespace(model=small_deccs().fit(frame), frame=frame)


# Tests


def test_holm_by_hand():
    assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    assert_allclose(holm([0.6, 0.9]), [1, 1])


def test_a_g_test_is_that_of_scipy():
    then, now = np.array([30, 50, 40]), np.array([60, 40, 20])
    effect, p = by_counts(then, now)
    assert p == pytest.approx(stats.chi2_contingency([then, now], lambda_="log-likelihood").pvalue)
    assert effect == pytest.approx((0.25 + 0.25) / 2)
    assert by_counts(np.array([5, 0]), np.array([7, 0])) == (0, 1)


def test_kolmogorov_is_near_that_of_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=300), rng.normal(0.2, size=400)
    exact = stats.ks_2samp(a, b)
    assert kolmogorov(exact.statistic, 300, 400) == pytest.approx(exact.pvalue, rel=0.1)


def test_many_held_out_rows_make_the_exact_binomial_test():
    exact = stats.binomtest(7, 200, 0.01, alternative="greater").pvalue
    assert too_many_rejected(7, 200, 0.01, 10**8) == pytest.approx(exact, rel=1e-4)
    assert too_many_rejected(7, 200, 0.01, 100) > 2 * exact


# The sketch


def test_a_sketch_is_small_and_exact_at_its_cuts():
    values = np.random.default_rng(0).normal(size=10_000)
    columns = [Described("x", "number", values), Described("n", "number", np.round(values))]
    sketch = Sketch.of(columns)
    assert sketch.cuts.shape == (2, N_CUTS)
    for column, cuts, below in zip(columns, sketch.cuts, sketch.below, strict=True):
        assert_allclose(below, (column.values[:, None] <= cuts).mean(axis=0))
    assert set(sketch.cuts[1]) == set(np.unique(np.round(values)))


def test_very_wide_rows_are_sketched_in_some_columns():
    wide = [Described(f"x{i}", "number", np.arange(3.0)) for i in range(3 * MOST_COLUMNS - 1)]
    assert len(Sketch.of(wide).names) == MOST_COLUMNS
    assert Sketch.of([]) is None
    assert_allclose(shares_below(np.full(3, np.nan), np.zeros(2)), 1)


def test_false_alarms_of_columns_come_at_most_at_the_rate_asked_for():
    alarms = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        then, now = rng.exponential(size=(2, 200, 4))
        model = SimpleNamespace(
            sketch_=Sketch.of([Described(str(i), "number", then[:, i]) for i in range(4)]),
            _described=lambda source: [
                Described(str(i), "number", source.X[:, i]) for i in range(4)
            ],
        )
        alarms += min(column.p for column in compared_columns(model, now)) < 0.05
    assert alarms / 300 < 0.08


# Models


def test_fresh_rows_of_the_same_kind_are_no_drift(fitted):
    drifts = [drift(fitted.model, customers(400, seed)) for seed in range(1, 13)]
    assert sum(each.is_drift for each in drifts) == 0
    assert np.mean([each.rejected.share for each in drifts]) < 0.03
    assert drifts[0].summary().startswith("No drift in 400 rows.")


def test_a_moved_column_is_found_and_named(fitted):
    other = customers(400, 1)
    other["visits"] += 3
    found = drift(fitted.model, other)
    assert found.is_drift
    assert [column.name for column in found.moved] == ["visits"]
    assert "visits" in found.summary() and "visits" in found.line()


def test_gaps_and_levels_that_became_usual_are_found(fitted):
    other = customers(400, 1)
    other.loc[:199, "weight"] = np.nan
    other["color"] = "red"
    moved = {(column.name, column.what): column for column in drift(fitted.model, other).moved}
    assert moved["weight", "missing"].effect == pytest.approx(0.45, abs=0.1)
    assert moved["color", "values"].effect == pytest.approx(2 / 3, abs=0.1)


def test_a_cluster_that_has_grown_is_found(fitted):
    other = customers(900, 1)
    other = other[(other["color"] == "red") | (np.arange(900) % 4 == 0)]
    found = drift(fitted.model, other)
    assert found.clusters_moved and found.cluster_effect > 0.2
    assert sum(each.then for each in found.clusters) == pytest.approx(1)


def test_unlike_rows_are_counted(fitted):
    other = customers(400, 1)
    other.loc[:39, "size"] = 60.0
    found = drift(fitted.model, other)
    assert found.rejected.has_moved and found.rejected.share >= 0.1


def test_the_effect_does_not_grow_with_the_number_of_rows(fitted):
    other = customers(200, 1)
    other["visits"] += 0.3
    once = drift(fitted.model, other)
    often = drift(fitted.model, pd.concat([other] * 30, ignore_index=True))
    effects = [{(c.name, c.what): c.effect for c in each.columns} for each in (once, often)]
    assert effects[0] == pytest.approx(effects[1])
    assert once.cluster_effect == pytest.approx(often.cluster_effect)
    # ... and a small one is no drift in any number of rows.
    small = {c.name: c for c in often.columns if c.what == "values"}["visits"]
    assert small.p < 1e-3 or small.effect < drifting.LEAST_EFFECT
    assert not small.has_moved or small.effect >= drifting.LEAST_EFFECT


def test_arrays_and_saved_models_are_watched_too(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) + 8 * rng.integers(0, 3, (300, 1))
    model = small_deccs().fit(X)
    model.save(tmp_path / "model")
    loaded = deccs.DECCS.load(tmp_path / "model")
    assert str(deccs.drift(loaded, X + 2)) == str(deccs.drift(model, X + 2))
    assert deccs.drift(loaded, X + 2).is_drift and not deccs.drift(loaded, X).is_drift


def test_a_model_without_sketch_and_novelty_still_tells_its_clusters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 9 * (np.arange(60) % 2)[:, None]
    old = deccs.ConsensusClustering(2, random_state=0).fit(X)
    del old.sketch_
    found = deccs.drift(old, X)
    assert found.rejected is None and found.columns == () and len(found.clusters) == 2
    with pytest.raises(ValueError, match="reject"):
        deccs.drift(old, X, reject=2)
