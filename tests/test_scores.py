"""Scores by hand, against scikit-learn, and laws."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

from deccs.scores import accuracy, against_truth, agreement, ari, nmi, silhouette, stability


def test_accuracy_by_hand():
    truth = [0, 0, 0, 1, 1, 2]
    assert accuracy(truth, [2, 2, 2, 0, 0, 1]) == 1  # only the names differ
    assert accuracy(truth, [0, 0, 1, 1, 1, 1]) == pytest.approx(
        4 / 6
    )  # 2 + 2; class 2 has no cluster left
    assert accuracy(truth, [0, 0, 0, 0, 0, 0]) == pytest.approx(3 / 6)


def test_accuracy_takes_the_best_naming_not_the_greedy_one():
    # Contingency [[4, 3], [3, 0]]: greedy takes 4 + 0, the best is 3 + 3.
    truth, labels = [0] * 7 + [1] * 3, [0] * 4 + [1] * 3 + [0] * 3
    assert accuracy(truth, labels) == 0.6


def test_nmi_and_ari_equal_scikit_learn():
    truth, labels = np.random.default_rng(0).integers(0, 4, (2, 100))
    assert nmi(truth, labels) == normalized_mutual_info_score(truth, labels)
    assert ari(truth, labels) == adjusted_rand_score(truth, labels)
    assert nmi([0, 0, 1, 1], [0, 1, 0, 1]) == pytest.approx(0, abs=1e-12)
    assert ari([0, 0, 1, 1], [0, 1, 0, 1]) == -0.5  # by hand: (0 - 2/3) / (2 - 2/3)


def test_nmi_is_at_most_1():
    labels = np.repeat([0, 1], [2, 28])
    assert normalized_mutual_info_score(labels, 1 - labels) >= 1  # above it, in some versions
    assert nmi(labels, 1 - labels) == 1


def test_scores_do_not_see_names():
    truth, labels = np.random.default_rng(0).integers(0, 4, (2, 100))
    assert against_truth(truth, 3 - labels) == pytest.approx(against_truth(truth, labels))
    assert set(against_truth(truth, labels)) == {"nmi", "ari", "accuracy"}
    assert against_truth(np.array(list("abcd"))[truth], truth) == pytest.approx(
        {"nmi": 1, "ari": 1, "accuracy": 1}
    )


def test_agreement_by_hand():
    assert agreement([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]]) == pytest.approx(1 / 3)


def test_silhouette():
    Z = np.array([[0.0], [1], [10], [11]])
    assert silhouette(Z, [0, 0, 1, 1]) == pytest.approx(silhouette_score(Z, [0, 0, 1, 1]))
    assert math.isnan(silhouette(Z, [0, 0, 0, 0]))
    assert math.isnan(silhouette(Z, [0, 1, 2, 3]))


def finished(sample, **partitions):
    return SimpleNamespace(
        sample=np.array(sample),
        member_names=tuple(partitions),
        base_partitions=np.array(list(partitions.values())),
    )


def test_stability_by_hand():
    rounds = [
        finished([0, 1, 2, 3, 4], a=[0, 0, 1, 1, 1], b=[0, 1, 0, 1, 1]),
        finished([1, 2, 3, 4, 9], b=[1, 0, 1, 1, 0], a=[1, 1, 0, 0, 0]),  # the same b, another a
        finished([20, 21], a=[0, 1], b=[0, 1]),  # no point in common
    ]
    a = normalized_mutual_info_score([0, 1, 1, 1], [1, 1, 0, 0])
    first, second = stability(rounds)
    assert first == pytest.approx((a + 1) / 2)
    assert math.isnan(second)


def test_stability_leaves_noise_out():
    rounds = [
        finished([0, 1, 2, 3, 4], a=[0, 0, 1, 1, -1]),
        finished([0, 1, 2, 3, 4], a=[0, 0, 1, 1, 0]),
    ]
    assert stability(rounds) == pytest.approx([1])
