"""The losses for all members at once, beside slow loops over members and points."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from deccs.rounds.losses import cluster_centers, consensus, cross_entropy, move_centers, ramp_up

K = [2, 3, 4]  # clusters per member, padded to 4


@pytest.fixture
def batch():
    """20 points in 3 dimensions, three members of different k, every fourth label or so noise."""
    rng = np.random.default_rng(0)
    z = torch.tensor(rng.normal(size=(20, 3)))
    labels = np.stack([rng.integers(-1, k, 20) for k in K], axis=1)
    logits = rng.normal(size=(20, 3, 4))
    for member, k in enumerate(K):
        logits[:, member, k:] = -1e9
    assert (labels == -1).any(axis=0).all()
    return z, torch.tensor(labels), torch.tensor(logits)


def slow_centers(z, labels):
    """A dictionary {(member, cluster): center} of the clusters that have points."""
    found = {}
    for member, k in enumerate(K):
        for cluster in range(k):
            points = [z[i].numpy() for i in range(len(z)) if labels[i, member] == cluster]
            if points:
                found[member, cluster] = np.mean(points, axis=0)
    return found


def test_cross_entropy_by_hand():
    # One point, logits (0, log 3): probabilities 1/4 and 3/4.
    logits = torch.tensor([[[0.0, math.log(3)], [0.0, math.log(3)]]])
    assert_allclose(
        cross_entropy(logits, torch.tensor([[0, 1]])), [math.log(4), math.log(4 / 3)], rtol=1e-6
    )


def test_cross_entropy_equals_a_slow_loop(batch):
    _, labels, logits = batch
    expected = []
    for member, k in enumerate(K):
        losses = []
        for i in range(len(labels)):
            if labels[i, member] >= 0:
                own = [math.exp(float(value)) for value in logits[i, member, :k]]
                losses.append(-math.log(own[labels[i, member]] / sum(own)))
        expected.append(sum(losses) / len(losses))
    assert_allclose(cross_entropy(logits, labels), expected)


def test_consensus_by_hand():
    # Points 0 and 2 on a line, both in the cluster with center 1, with probabilities 1 and 1/2.
    z, labels = torch.tensor([[0.0], [2.0]]), torch.tensor([[0], [0]])
    centers, probabilities = torch.tensor([[[1.0]]]), torch.tensor([[[1.0]], [[0.5]]])
    assert float(consensus(z, labels, centers, probabilities)) == 0.75
    assert float(consensus(z, labels, centers, None)) == 1


@pytest.mark.parametrize("weighted", [True, False])
def test_consensus_equals_a_slow_loop(batch, weighted):
    z, labels, logits = batch
    centers, _ = cluster_centers(z, labels, 4)
    probabilities = logits.softmax(2)
    expected = []
    for member in range(len(K)):
        terms = []
        for i in range(len(z)):
            own = int(labels[i, member])
            if own >= 0:
                square = sum(float(z[i, d] - centers[member, own, d]) ** 2 for d in range(3)) / 3
                terms.append(square * (float(probabilities[i, member, own]) if weighted else 1))
        expected.append(sum(terms) / len(terms))
    assert_allclose(consensus(z, labels, centers, probabilities if weighted else None), expected)


def test_consensus_pulls_points_to_their_centers_and_leaves_the_classifier_alone(batch):
    z, labels, logits = batch
    centers, _ = cluster_centers(z, labels, 4)
    z.requires_grad_(), logits.requires_grad_()
    before = consensus(z, labels, centers, logits.softmax(2)).sum()
    before.backward()
    assert logits.grad is None  # alpha is detached
    with torch.no_grad():
        after = consensus(z - 0.1 * z.grad, labels, centers, logits.softmax(2)).sum()
    assert after < before


def test_a_member_that_labels_no_point_of_the_batch_costs_nothing(batch):
    z, labels, logits = batch
    labels[:, 1] = -1
    centers, counts = cluster_centers(z, labels, 4)
    assert counts[1].sum() == 0
    assert cross_entropy(logits, labels)[1] == 0
    assert consensus(z, labels, centers, logits.softmax(2))[1] == 0


def test_centers_equal_a_slow_loop(batch):
    z, labels, _ = batch
    centers, counts = cluster_centers(z, labels, 4)
    slow = slow_centers(z, labels)
    assert {tuple(place) for place in (counts > 0).nonzero().tolist()} == set(slow)
    for (member, cluster), expected in slow.items():
        assert_allclose(centers[member, cluster], expected)
        assert counts[member, cluster] == (labels[:, member] == cluster).sum()


def test_median_center_by_hand():
    z = torch.tensor([[0.0, 5], [1, 7], [100, 6], [9, 9]])
    centers, _ = cluster_centers(z, torch.tensor([[0], [0], [0], [-1]]), 1, center="median")
    assert_array_equal(centers[0, 0], [1, 6])  # the mean would be (33.7, 6)


def test_median_of_an_even_number_of_points_lies_between_the_middle_two():
    centers, _ = cluster_centers(
        torch.tensor([[0.0], [1.0]]), torch.tensor([[0], [0]]), 1, center="median"
    )
    assert float(centers) == 0.5


@pytest.mark.parametrize("how", ["mean", "median"])
def test_moved_centers_are_half_old_and_half_new(how):
    old = torch.tensor([[[0.0, 0.0], [8.0, 8.0]]])
    z, labels = torch.tensor([[2.0, 4.0], [2.0, 4.0], [50.0, 50.0]]), torch.tensor([[0], [0], [-1]])
    assert_array_equal(
        move_centers(old, z, labels, how), [[[1, 2], [8, 8]]]
    )  # no point of cluster 1: it stays


def test_moved_centers_equal_a_slow_loop(batch):
    z, labels, _ = batch
    old, _ = cluster_centers(z, labels, 4)
    moved = move_centers(old, z[:5], labels[:5])
    slow = slow_centers(z[:5], labels[:5])
    for member, k in enumerate(K):
        for cluster in range(k):
            before = old[member, cluster].numpy()
            expected = (before + slow[member, cluster]) / 2 if (member, cluster) in slow else before
            assert_allclose(moved[member, cluster], expected)


@pytest.mark.parametrize("n_rounds", [1, 5, 10])
def test_ramp_up_rises_to_one(n_rounds):
    values = [ramp_up(t, n_rounds) for t in range(n_rounds + 1)]
    assert values[0] == pytest.approx(math.exp(-5))
    assert values == sorted(values)
    assert values[-1] == pytest.approx(1, abs=1e-9) or n_rounds == 1
