"""The loss of pairs: numbers worked out by hand, autograd beside it, and what it does to an embedding."""

import math

import numpy as np
import pytest
import torch

from deccs import Autoencoder
from deccs.constraints.given import constraints_of
from deccs.rounds import objective
from deccs.rounds.classifiers import Classifiers, present_clusters, renumbered
from deccs.rounds.pairs import TINY, Pairs, pair_gradient, pair_loss

TOGETHER = torch.tensor([True, False, True, False, False])


def probabilities(n_pairs=5):
    torch.manual_seed(0)
    return torch.randn(2, n_pairs, 3, 4, dtype=torch.float64).mul(2)


def test_the_loss_by_hand():
    p = torch.tensor([[[[0.75, 0.25]]], [[[0.5, 0.5]]]])  # s = 3/8 + 1/8
    assert float(pair_loss(p, torch.tensor([True]))) == pytest.approx(-math.log(0.5 + TINY))
    sure = torch.tensor([[[[1.0, 0.0]]], [[[1.0, 0.0]]]])
    assert float(pair_loss(sure, torch.tensor([True]))) == pytest.approx(0, abs=2 * TINY)
    assert float(pair_loss(sure, torch.tensor([False]))) == pytest.approx(-math.log(TINY), rel=1e-4)


def test_the_gradient_is_autograds():
    logits = probabilities().requires_grad_()
    pair_loss(logits.softmax(3), TOGETHER).backward()
    torch.testing.assert_close(pair_gradient(logits.detach().softmax(3), TOGETHER), logits.grad)


def by_autograd(network):
    """The same weights in a network whose gradients come from autograd."""
    return Autoencoder(torch.nn.Sequential(*network.encoder), torch.nn.Sequential(*network.decoder))


@pytest.mark.parametrize("changes", [{}, {"rec_weight": 0.0}, {"weight_by_probability": False}])
@pytest.mark.parametrize("n_clustered", [12, 20])  # of 20 points beside the pairs
def test_gradients_by_hand_are_autograds(changes, n_clustered):
    torch.manual_seed(0)
    ours = Autoencoder.feed_forward(6, (5, 3))
    y = torch.randint(-1, 3, (n_clustered, 2))
    heads = Classifiers(3, present_clusters(torch.tensor([[0, 0], [1, 1], [2, 2], [3, -1]])))
    torch.nn.init.normal_(heads.weight)
    x, centers = torch.randn(20 + 10, 6), torch.randn(2, 4, 3)
    given = {
        "lambda_ce": 0.7,
        "consensus_weight": 2.0,
        "rec_weight": 3.0,
        "weight_by_probability": True,
    }
    loss = objective.Objective(
        torch.tensor([0.4, 0.2]), **(given | changes), moving="mean", lambda_pairs=1.5
    )
    found = []
    for network in (ours, by_autograd(ours)):
        network.zero_grad(set_to_none=True)
        moved, terms = loss.gradients(network, heads, x, y, centers, TOGETHER)
        weights = [*network.parameters(), *heads.parameters()]
        grads = [torch.zeros(()) if w.grad is None else w.grad.clone() for w in weights]
        found.append([moved, terms, *grads])
    assert by_autograd(ours).by_hand() is None
    for by_hand, autograds in zip(*found, strict=True):
        torch.testing.assert_close(by_hand, autograds)
    without = loss.gradients(ours, heads, x[:20], y, centers)[1]
    torch.testing.assert_close(without[:3], found[0][1][:3])  # pairs are in the total alone
    assert float(found[0][1][3]) > float(without[3])


def test_pairs_of_constraints():
    given = constraints_of(6, must_link=[[4, 5]], cannot_link=[[0, 1], [2, 3]])
    pairs = Pairs.of(given)
    assert pairs.index.tolist() == [[4, 5], [0, 1], [2, 3]]
    assert pairs.together.tolist() == [True, False, False]
    assert Pairs.of(constraints_of(2, partial=[0, 1])) is None
    assert Pairs.of(None) is None


def test_a_renumbered_classifier_says_the_same_by_other_names():
    heads = Classifiers(2, torch.ones(1, 3, dtype=torch.bool))
    torch.nn.init.normal_(heads.weight)
    z, number_of = torch.randn(20, 2), np.array([2, 0, 1])
    before = heads(z)[:, 0].argmax(1).numpy()
    assert (renumbered(heads, number_of)(z)[:, 0].argmax(1).numpy() == number_of[before]).all()
