"""ConCURL: the losses on numbers worked out by hand, the contract, and real images."""

import copy
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.deep.concurl import (
    ConCURL,
    TwoViews,
    balanced,
    consensus_loss,
    final_prototypes,
    info_nce,
    shape_of_images,
    small_convolutions,
)
from deccs.storage.models import from_old

QUICK = {"n_clusters": 3, "n_steps": 60, "batch_size": 32, "random_state": 0}


def test_balanced_assignments_by_hand():
    # Columns to 1: (e/(e+1), 1/2), (1/(e+1), 1/2). Rows to 1: those over their sums.
    first, e = torch.tensor([[1.0, 0.0], [0.0, 0.0]]), math.e
    row = np.array([e / (e + 1), 0.5])
    assert_allclose(balanced(first, epsilon=1.0, n_iterations=1)[0], row / row.sum(), rtol=1e-6)


def test_balanced_assignments_add_up():
    scores = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(0))
    q = balanced(scores, epsilon=0.5, n_iterations=200)
    assert_allclose(q.sum(-1), 1, rtol=1e-5)
    assert_allclose(q.sum(-2), 40 / 5, rtol=1e-3)
    huge = balanced(1e4 * scores)
    assert torch.isfinite(huge).all()
    assert_allclose(huge.sum(-1), 1, rtol=1e-5)


def test_the_consensus_loss_is_nothing_for_equal_sharp_assignments_and_large_for_opposite_ones():
    prototypes = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    projections = torch.eye(2).repeat(3, 1, 1)
    view = prototypes[[0, 1, 1, 0]]
    same, opposite = torch.stack([view, view]), torch.stack([view, -view])
    assert float(consensus_loss(same, prototypes, projections, 0.1)) == pytest.approx(0, abs=1e-6)
    assert float(consensus_loss(opposite, prototypes, projections, 0.1)) == pytest.approx(
        2 / 0.1
    )  # cosines 1 and -1


def test_the_consensus_loss_is_the_mean_over_projections_views_and_points():
    rng = torch.Generator().manual_seed(0)
    z, prototypes = torch.randn(2, 6, 4, generator=rng), torch.randn(3, 4, generator=rng)
    projections = torch.randn(5, 4, 2, generator=rng)
    unit = nn.functional.normalize
    q = [balanced(unit(view) @ unit(prototypes).T) for view in z]
    slow = []
    for projection in projections:
        for view, target in ((z[0], q[1]), (z[1], q[0])):
            p = torch.softmax(unit(view @ projection) @ unit(prototypes @ projection).T / 0.1, 1)
            slow += [-float((t * torch.log(s)).sum()) for t, s in zip(target, p, strict=True)]
    assert float(consensus_loss(z, prototypes, projections, 0.1)) == pytest.approx(
        np.mean(slow), rel=1e-5
    )


def test_info_nce_by_hand():
    view = torch.eye(2)  # cosines 1 and 0, over 1/2
    assert float(info_nce(torch.stack([view, view]))) == pytest.approx(math.log(1 + math.exp(-2)))
    mixed_up = torch.stack([view, view.flip(0)])
    assert float(info_nce(mixed_up)) == pytest.approx(math.log(1 + math.exp(2)))


def test_prototypes_without_points_give_way_to_k_means():
    Z = nn.functional.normalize(torch.tensor([[1.0, 0.1], [1.0, -0.1], [0.1, -1.0], [-0.1, -1.0]]))
    assert_allclose(
        final_prototypes(Z, torch.tensor([[2.0, 0.0], [0.0, -3.0]]), 0), [[1, 0], [0, -1]]
    )
    found = final_prototypes(Z, torch.tensor([[1.0, 0.0], [1.0, 0.0]]), 0)
    assert_allclose(sorted(found.round(5).tolist()), [[0, -1], [1, 0]], atol=1e-6)


def test_shapes_of_images():
    with pytest.warns(UserWarning, match="Set image_shape="):
        assert shape_of_images("auto", 6) == (1, 1, 6)
    with pytest.raises(ValueError, match=r"must have 8 values in all.* got \(3, 3\) with 9"):
        shape_of_images((3, 3), 8)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 7), (3, 30, 50), (1, 100, 100)])
def test_the_small_network_takes_any_image(shape):
    assert small_convolutions(*shape)(torch.zeros(2, *shape)).shape == (2, 128)


@pytest.fixture(scope="module")
def bars():
    """Three kinds of 8 x 8 images with noise: a bar across, a bar down, a cross; 60 each."""
    rng = np.random.default_rng(0)
    X, y = np.zeros((180, 8, 8)), np.arange(180) % 3
    X[y != 1, 3:5], X[y != 0, :, 3:5] = 1, 1
    return X + 0.1 * rng.normal(size=X.shape), y


@pytest.fixture(scope="module")
def fitted(bars):
    return ConCURL(**QUICK).fit(bars[0])


def test_predict_gives_the_labels_of_the_training_data(fitted, bars):
    X = bars[0]
    assert_array_equal(fitted.predict(X), fitted.labels_)
    assert_array_equal([fitted.predict(X[i : i + 1])[0] for i in range(10)], fitted.labels_[:10])
    assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)
    Z = fitted.transform(X)
    assert Z.shape == (180, 64) and len(fitted.get_feature_names_out()) == 64
    cosines = Z @ fitted.cluster_centers_.T / 0.1
    assert_allclose(fitted.predict_proba(X), torch.softmax(torch.from_numpy(cosines), 1), atol=1e-9)


def test_an_encoder_of_ones_own_is_copied_and_used(bars):
    own = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.Tanh())
    before = own[1].weight.clone()
    model = ConCURL(**(QUICK | {"n_steps": 3}), encoder=own, image_shape=(2, 4, 8)).fit(bars[0])
    assert torch.equal(own[1].weight, before)
    assert model.autoencoder_.encoder[1][1].weight.shape == (5, 64)
    with pytest.raises(ValueError, match=r"must give \(n, n_features\), got \(2, 1, 8, 8\)"):
        ConCURL(**QUICK, encoder=nn.Identity()).fit(bars[0])
    with pytest.raises(ValueError, match=r"does not take images of shape \(1, 8, 8\)"):
        ConCURL(**QUICK, encoder=nn.Linear(3, 3)).fit(bars[0])


@pytest.mark.parametrize("wrong", [(64,), "square", (1, 1, 8, 8), (-8, -8), 64])
def test_a_shape_that_is_none_is_refused(bars, wrong):
    words = r"'auto' or \(height, width\) or \(channels, height, width\)"
    with pytest.raises(
        ValueError, match=rf"image_shape must be {words}, got {re.escape(repr(wrong))}"
    ):
        ConCURL(**QUICK, image_shape=wrong).fit(bars[0])


def learner_of(bars, n_steps):
    source = source_of(bars[0].reshape(180, 64))
    rows = Rows(source, fit_scaler(source))
    method = ConCURL(**(QUICK | {"n_steps": n_steps}))
    return TwoViews(method._network(SimpleNamespace(root=0), rows), rows, method, root=0)


def test_the_consensus_begins_at_half_time(bars):
    learner = learner_of(bars, n_steps=5)
    for step in (1, 2):
        learner.before_step(step)
        assert not learner.prototypes.any()
        learner.loss(step).backward()
        assert learner.prototypes.grad is None
    learner.before_step(3)
    assert_allclose(learner.prototypes.detach().norm(dim=1), 1, atol=0.2)  # means of unit vectors
    learner.loss(3).backward()
    assert learner.prototypes.grad.any()
    first = learner.prototypes.detach().clone()
    learner.before_step(4)
    assert torch.equal(learner.prototypes, first)  # only once


def test_going_back_to_the_first_half_finds_new_prototypes(bars):
    learner = learner_of(bars, n_steps=4)
    before = copy.deepcopy(learner.learned_state())
    learner.before_step(3)
    learner.load_learned(before)
    assert not learner.prototypes.any()
    learner.before_step(4)
    assert learner.prototypes.any()


def test_the_rate_follows_one_cycle(bars):
    learner = learner_of(bars, n_steps=19)
    (optimizer,) = learner.start(0.01)
    schedule = learner.schedule(optimizer, 19)
    rates = []
    for _ in range(19):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates[5] == pytest.approx(0.01)  # the peak is after 0.3 of the steps
    assert rates[:6] == sorted(rates[:6]) and rates[5:] == sorted(rates[5:], reverse=True)
    assert rates[0] < 0.001 > rates[-1]


def test_the_weight_of_the_consensus_had_another_name():
    assert from_old(ConCURL, {"n_clusters": 2, "lambda_consensus": 3.0}).lambda_cons == 3.0


@pytest.mark.parametrize(
    "changes", [{"n_clusters": 0}, {"batch_size": 1}, {"n_latent": 0}, {"n_projections": 0}]
)
def test_errors_say_what_was_given(bars, changes):
    [(name, value)] = changes.items()
    with pytest.raises(
        ValueError, match=f"{name} must be a whole number of at least .*, got {value}"
    ):
        ConCURL(**(QUICK | changes)).fit(bars[0])
