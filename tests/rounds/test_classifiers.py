"""Linear heads: padding, learning, and the standardization folded into them."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from deccs.inference.heads import softmax
from deccs.rounds.classifiers import (
    Classifiers,
    Heads,
    classify,
    cross_entropy_gradient,
    logits,
    only_member,
    present_clusters,
)
from deccs.rounds.losses import cross_entropy
from deccs.training.engine import train


@pytest.fixture
def points():
    """120 points in three blobs far from 0 and on two scales; members of 3 and 2 clusters."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    centers = np.array([[100, 0.0], [110, 0.02], [120, -0.02]])
    Z = centers[y] + rng.normal(size=(120, 2)) * [0.5, 0.001]
    labels = np.stack([y, y > 0], axis=1).astype(np.int64)
    return torch.tensor(Z, dtype=torch.float32), torch.tensor(labels)


def learn(Z, labels, seed=0):
    """``classify`` on every second point, held against the others."""
    places = torch.arange(len(Z))
    generator = torch.Generator().manual_seed(seed)
    return classify(Z, labels, places[::2], places[1::2], generator)


def heads_of(Z, labels, n_steps, **options):
    """The heads themselves, without the standardization folded into them."""
    heads, places = Classifiers(Z.shape[1], present_clusters(labels)), torch.arange(len(Z))
    generator = torch.Generator().manual_seed(0)
    learner = Heads(heads, Z, labels, places[::2], places[1::2], generator)
    train(learner, n_steps, rate=0.1, **options)
    return heads


def test_forward_is_one_product_per_member():
    heads = Classifiers(2, torch.tensor([[True, True, False], [True, True, True]]))
    with torch.no_grad():
        heads.weight.copy_(torch.arange(12.0).view(2, 3, 2))
        heads.bias.copy_(torch.arange(6.0).view(2, 3))
    z = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    for i, point in enumerate(z):
        for member in range(2):
            expected = heads.weight[member] @ point + heads.bias[member]
            assert_allclose(heads(z)[i, member].detach(), expected.detach())


def test_a_padded_cluster_is_never_predicted(points):
    Z, labels = points
    heads = learn(Z, labels)
    assert heads.n_clusters == [3, 2]
    anywhere = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0)) * 1e4
    with torch.no_grad():
        assert heads(anywhere)[:, 1].argmax(1).max() == 1
        assert_array_equal(heads(anywhere).softmax(2)[:, 1, 2], 0)
        assert heads(anywhere)[:, 0].argmax(1).max() == 2  # the head that has three uses them


def test_separable_blobs_are_learned(points):
    Z, labels = points
    assert_array_equal(learn(Z, labels)(Z).detach().argmax(2), labels)


def test_noise_is_not_learned(points):
    """A third of the labels of one member are noise: the rest decides."""
    Z, labels = points
    partly = labels.clone()
    partly[::3, 1] = -1
    assert_array_equal(learn(Z, partly)(Z).detach().argmax(2), labels)


def test_folded_heads_equal_the_heads_on_standardized_columns(points):
    Z, labels = points
    standard = (Z - Z.mean(0)) / Z.std(0)  # (n_points, n_latent)
    unfolded = heads_of(standard, labels, 300, check_every=25, patience=2)
    folded = learn(Z, labels)
    with torch.no_grad():
        expected, found = unfolded(standard), folded(Z)
    assert_allclose(found[:, 0], expected[:, 0], atol=2e-2)  # digits of z near 100 in float32
    assert_array_equal(found.argmax(2), expected.argmax(2))


def test_a_constant_column_does_no_harm(points):
    Z, labels = points
    Z = torch.cat([Z, torch.full((len(Z), 1), 7.0)], dim=1)
    logits = learn(Z, labels)(Z).detach()
    assert torch.isfinite(logits).all()
    assert_array_equal(logits.argmax(2), labels)


def test_same_seed_same_bits(points):
    Z, labels = (part.repeat(5, 1) for part in points)  # 300 points: more than a batch
    first, again, other = learn(Z, labels), learn(Z, labels), learn(Z, labels, seed=1)
    assert torch.equal(first.weight, again.weight)
    assert not torch.equal(first.weight, other.weight)


def test_the_weights_with_the_least_held_out_loss_stay(points):
    """Held-out labels are the train labels turned round: every step makes it worse, so little is learned."""
    Z, labels = points
    Z = (Z - Z.mean(0)) / Z.std(0)
    wrong = labels.clone()
    wrong[1::2] = torch.tensor([2, 1]) - labels[1::2]  # 0 <-> 2 and 0 <-> 1
    heads, first_only = (heads_of(Z, wrong, steps, check_every=1) for steps in (50, 1))
    assert torch.equal(heads.weight, first_only.weight)


def test_the_gradient_by_hand_is_autograds(points):
    Z, labels = points
    labels = labels.clone()
    labels[::7, 0] = -1
    heads = Classifiers(2, present_clusters(labels))
    torch.nn.init.normal_(heads.weight, std=0.1)
    cross_entropy(heads(Z), labels).sum().backward()
    expected = heads.weight.grad.clone(), heads.bias.grad.clone()
    known = (labels >= 0).float()
    with torch.no_grad():
        weight = known / known.sum(0)
        to_logits = cross_entropy_gradient(heads(Z).softmax(2), labels, weight)
        heads.set_gradients(to_logits, Z)
    torch.testing.assert_close((heads.weight.grad, heads.bias.grad), expected, rtol=1e-4, atol=1e-4)


def test_one_member_by_itself_says_what_it_said_among_the_others(points):
    Z, labels = points
    heads, points = learn(Z, labels), Z.double().numpy()
    for member, n_clusters in ((0, 3), (1, 2)):
        single = only_member(heads, member)
        assert single.n_clusters == [n_clusters]
        expected = logits(heads, points)[:, member, :n_clusters]
        assert_array_equal(logits(single, points)[:, 0], expected)


def test_softmax_by_hand():
    assert_allclose(softmax(np.log([[1.0, 3.0], [2.0, 2.0]])), [[0.25, 0.75], [0.5, 0.5]])
    assert_array_equal(softmax(np.array([[1000.0, -1000.0]])), [[1, 0]])  # no overflow
