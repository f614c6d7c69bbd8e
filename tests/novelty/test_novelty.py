"""How unusual rows are: the curve of surprise, the evidence, and fitted models."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import deccs
from deccs.novelty import learned
from deccs.novelty.evidence import LEAST_KEPT, Kept, Seen, fit_axes
from deccs.novelty.learned import WEIGHTS, learn_novelty
from deccs.novelty.neighbors import nearest
from deccs.novelty.surprise import MOST_KNOTS, Surprise
from tests.helpers.small import far_blobs, small_deccs


def seen_of(points, labels=None):
    """Rows whose representation is themselves."""
    labels = np.zeros(len(points), dtype=np.int64) if labels is None else labels
    return Seen(points, points, labels)


# The curve


def test_a_surprise_is_the_log_of_the_share_above_by_hand():
    curve = Surprise.of(np.array([3.0, 1.0, 4.0, 2.0]))
    # A fifth new value is above the first of four with probability 4/5, ..., above all with 1/5.
    assert_allclose(curve(np.array([1.0, 2, 3, 4])), -np.log(np.array([4, 3, 2, 1]) / 5))
    assert_allclose(curve.share(np.array([1.0, 4.0])), [0.2, 0.8])


def test_a_curve_keeps_few_points_and_hardly_changes():
    values = np.random.default_rng(0).normal(size=5_000)
    curve = Surprise.of(values)
    assert len(curve.values) <= MOST_KNOTS
    ordered, exact = np.sort(values), np.arange(1, 5_001) / 5_001
    assert_allclose(curve.share(ordered), exact, atol=0.006)
    assert_allclose(np.log(1 - curve.share(ordered)), np.log(1 - exact), atol=0.1)


@pytest.mark.parametrize("values", [np.zeros(30), np.arange(30.0), np.repeat([0.0, 1], 15)])
def test_order_is_kept_far_beyond_all_held_out_values(values):
    curve = Surprise.of(values)
    far = values.max() + np.array([0.0, 1e-3, 1, 1e3, 1e6])
    for shares in (curve(far), curve.share(far)):
        assert (np.diff(shares) > 0).all()
    assert (curve.share(far) < 1).all()


def test_shares_of_new_values_are_even():
    rng = np.random.default_rng(0)
    draws = [rng.exponential(size=(2, 2_000)) for _ in range(40)]
    shares = np.array([Surprise.of(held_out).share(new) for held_out, new in draws])
    for rate in (0.5, 0.1, 0.01):
        assert (shares > 1 - rate).mean() == pytest.approx(rate, rel=0.1)


# The evidence


def test_nearest_is_what_all_distances_say():
    rng = np.random.default_rng(0)
    points, kept = rng.normal(size=(700, 3)), rng.normal(size=(50, 3))
    distances, places = nearest(points, kept, 4)
    every = cdist(points, kept)
    assert_allclose(distances, np.sort(every, axis=1)[:, :4])
    assert_array_equal(places, np.argsort(every, axis=1)[:, :4])


def test_a_row_left_out_is_judged_as_if_it_had_never_been_kept():
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(60, 3)), np.arange(60) % 2
    kept = Kept.of(seen_of(points, labels), 2)
    row = seen_of(points, labels).rows(np.array([7]))
    others = np.delete(np.arange(60), 7)
    # The same axes and units: only the row itself is missing.
    slow = Kept.of(seen_of(points[others], labels[others]), 2)
    slow = replace(slow, axes=kept.axes, shape=kept.shape, usual=kept.usual)
    shaped = points @ kept.shape
    slow = replace(
        slow,
        spread=nearest(shaped[others], shaped[others], 11, without=np.arange(59))[0][:, -2:],
    )
    fast, expected = kept.terms(row, without=np.array([7])), slow.terms(row)
    for name in WEIGHTS:
        assert_allclose(fast[name], expected[name], atol=1e-5, err_msg=name)


def test_principal_components_of_few_wide_rows_leave_what_they_should():
    rng = np.random.default_rng(0)
    for n in (40, 300):
        scaled = rng.normal(size=(n, 100)) + 3
        axes = fit_axes(scaled)
        points, rest = axes(scaled)
        squares = np.square(scaled - scaled.mean(axis=0)).sum(axis=1)
        assert points.shape == (n, min(50, n // 2))
        assert_allclose(np.square(points).sum(axis=1) + rest**2, squares, rtol=1e-4)
        variances = points.var(axis=0)
        assert (np.diff(variances) <= 1e-4).all()


@pytest.mark.parametrize(("n", "d"), [(500, 2), (500, 30), (300, 120)])
def test_false_rejects_of_fresh_rows_come_at_the_rate_asked_for(n, d):
    """Of rows of the same kind, over several draws: with many columns the kept rows are overfitted."""
    rates = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        mixing = rng.normal(size=(d, d)) * rng.exponential(size=d)
        points, labels = rng.normal(size=(n + 1_000, d)) @ mixing, np.arange(n + 1_000) % 2
        points[labels == 1] += 3 * mixing[0]
        model = learn_novelty(seen_of(points[:n], labels[:n]), 2, seed)
        fresh = model(seen_of(points[n:], labels[n:]))
        rates.append([(fresh > 0.99).mean(), (fresh > 0.9).mean()])
    low, high = np.mean(rates, axis=0)
    assert 0.005 < low < 0.02
    assert high == pytest.approx(0.1, abs=0.03)


# Fitted models


@pytest.fixture(scope="module")
def fitted():
    blobs = far_blobs()
    return SimpleNamespace(X=blobs.X, model=small_deccs().fit(blobs.X))


def test_rows_between_and_beyond_the_clusters_are_new(fitted):
    unusual = np.array([[4.0, 4, 4, 4], [30, 0, 0, 0], [1e9, 0, 0, 0], [1e200, -1e200, 0, 0]])
    novelty = fitted.model.novelty(unusual)
    assert (novelty > 0.99).all() and (novelty < 1).all()
    assert (fitted.model.predict(unusual, reject=0.01) == -1).all()
    assert fitted.model.novelty(fitted.X).mean() < 0.6


def test_fewer_rows_are_rejected_at_a_lower_rate(fitted):
    predicted = {rate: fitted.model.predict(fitted.X, reject=rate) for rate in (0.01, 0.2)}
    assert (predicted[0.2] == -1).sum() > (predicted[0.01] == -1).sum()
    kept = predicted[0.2] >= 0
    assert_array_equal(predicted[0.2][kept], fitted.model.labels_[kept])


def test_a_row_alone_gets_what_it_gets_among_others(fitted):
    novelty = fitted.model.novelty(fitted.X)
    alone = [fitted.model.novelty(row[None])[0] for row in fitted.X[:20]]
    assert_array_equal(novelty[:20], alone)


def test_answers_tell_novelty_only_when_asked(fitted):
    assert fitted.model.answer(fitted.X[:5]).novelty is None
    answer = fitted.model.answer(fitted.X[:5], novelty=True)
    assert_array_equal(answer.novelty, fitted.model.novelty(fitted.X[:5]))
    assert_array_equal(answer.labels, fitted.model.predict(fitted.X[:5]))


def test_a_saved_model_tells_the_same(fitted, tmp_path):
    fitted.model.save(tmp_path / "model")
    loaded = deccs.DECCS.load(tmp_path / "model")
    assert_array_equal(loaded.novelty(fitted.X), fitted.model.novelty(fitted.X))


def test_a_model_without_novelty_says_why(fitted):
    old = small_deccs().fit(fitted.X[: LEAST_KEPT - 1])
    with pytest.raises(AttributeError, match="20 are needed"):
        old.novelty(fitted.X)
    del old.novelty_
    with pytest.raises(AttributeError, match="older deccs"):
        old.predict(fitted.X, reject=0.1)
    with pytest.raises(AttributeError, match="no network"):
        deccs.ConsensusClustering(3, random_state=0).fit(fitted.X).novelty(fitted.X)
    with pytest.raises(ValueError, match="reject"):
        fitted.model.predict(fitted.X, reject=1.5)


def test_deep_methods_tell_novelty_too():
    X = far_blobs().X
    model = deccs.deep.IDEC(3, network=deccs.Network(layers=(8, 2)), n_steps=5, random_state=0).fit(
        X
    )
    assert model.novelty([[30.0, 0, 0, 0]])[0] > 0.99 > model.novelty(X).mean()


def test_tables_with_categories_and_gaps_tell_novelty():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 150)
    frame = pd.DataFrame(
        {
            "size": rng.normal(5.0 * kind, 0.5),
            "weight": np.where(rng.random(150) < 0.1, np.nan, rng.normal(-5.0 * kind, 0.5)),
            "color": np.array(["red", "green", "blue"])[kind],
        }
    )
    model = small_deccs().fit(frame)
    fits = {"size": 0.0, "weight": 0.0, "color": "red"}
    odd = pd.DataFrame([fits, {**fits, "color": "blue"}, {**fits, "size": 40.0}])
    fine, color, size = model.novelty(odd)
    assert fine < 0.95 < min(color, size)


def test_the_sample_is_bounded(monkeypatch):
    monkeypatch.setattr("deccs.base.MOST_JUDGED", 30)
    model = small_deccs().fit(far_blobs().X)
    assert len(model.novelty_.kept.points) == 30
    assert learned.MOST_JUDGED >= 1_000
