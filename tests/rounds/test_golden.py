"""Our losses against the authors' program: three small cases worked out with it."""

import json
from pathlib import Path

import pytest
import torch
from numpy.testing import assert_allclose

from deccs.members.agreement import average_agreement, member_weights, pairwise_agreement
from deccs.rounds.classifiers import Classifiers
from deccs.rounds.losses import cluster_centers, cross_entropy, move_centers, ramp_up
from deccs.rounds.objective import consensus_of_batch

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
CLOSE = {"rtol": 0, "atol": 1e-5}


class Case:
    """One case of the file as tensors; members have 3, 3 and 4 clusters."""

    def __init__(self, case):
        self.expect = case["expect"]
        self.partitions = case["partitions"]  # (n_members, n_points)
        self.embedding = torch.tensor(case["embedding"])  # (n_points, n_latent)
        self.unclustered = torch.tensor(case["unclustered"])  # (n_other, n_latent)
        self.labels = torch.tensor(case["partitions"]).T  # (n_points, n_members)
        self.batch = torch.tensor(case["batch"])
        self.consensus_weight = case["consensus_weight"]
        present = torch.tensor(
            [[k < len(bias) for k in range(4)] for bias in case["classifier_bias"]]
        )
        self.classifiers = Classifiers(self.embedding.shape[1], present)
        with torch.no_grad():
            for i, (weight, bias) in enumerate(
                zip(case["classifier_weight"], case["classifier_bias"], strict=True)
            ):
                self.classifiers.weight[i, : len(bias)] = torch.tensor(weight)
                self.classifiers.bias[i, : len(bias)] = torch.tensor(bias)

    @property
    def start(self):
        return cluster_centers(self.embedding, self.labels, n_clusters=4)[
            0
        ]  # (n_members, 4, n_latent)

    @property
    def moved(self):
        return move_centers(self.start, self.embedding[self.batch], self.labels[self.batch])

    @torch.no_grad()
    def batch_losses(self):
        y = self.labels[self.batch]
        z = torch.cat([self.embedding[self.batch], self.unclustered])
        logits = self.classifiers(z)
        cons = consensus_of_batch(z, logits, y, self.moved, weight_by_probability=True)
        return cross_entropy(logits[: len(y)], y), cons


@pytest.fixture(params=range(len(GOLDEN["cases"])), ids=lambda number: f"case{number}")
def case(request):
    return Case(GOLDEN["cases"][request.param])


def assert_centers(ours, theirs):
    """Ours are padded to 4 clusters, theirs are not."""
    for own, expected in zip(ours, theirs, strict=True):
        assert_allclose(own[: len(expected)], expected, **CLOSE)


def test_agreement_and_weights(case):
    matrix = pairwise_agreement(case.partitions)
    assert_allclose(average_agreement(matrix), case.expect["average_agreement"], **CLOSE)
    assert_allclose(member_weights(matrix), case.expect["member_weights"], **CLOSE)


def test_cross_entropy(case):
    with torch.no_grad():
        assert_allclose(
            cross_entropy(case.classifiers(case.embedding), case.labels),
            case.expect["cross_entropy_all"],
            **CLOSE,
        )
    assert_allclose(case.batch_losses()[0], case.expect["cross_entropy_batch"], **CLOSE)


def test_centers(case):
    assert_centers(case.start, case.expect["centers_start"])
    assert_centers(case.moved, case.expect["centers_after_batch"])


def test_consensus_loss(case):
    assert_allclose(case.batch_losses()[1], case.expect["consensus_batch"], **CLOSE)


def test_weighted_sum_over_members(case):
    ce, cons = case.batch_losses()
    weights = torch.tensor(member_weights(pairwise_agreement(case.partitions))) / 3
    total = (weights * (ce + case.consensus_weight * cons)).sum()
    assert_allclose(total, case.expect["weighted_sum_over_members"], **CLOSE)


def test_ramp_up():
    assert_allclose([ramp_up(t, 10) for t in range(11)], GOLDEN["ramp_up_T10_lambda1"], **CLOSE)
