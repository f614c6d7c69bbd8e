"""Scores of a clustering: against known classes, and without them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score
from sklearn.metrics.cluster import contingency_matrix

from deccs.labels import NOISE
from deccs.members.agreement import average_agreement, pairwise_agreement

__all__ = [
    "ari",
    "accuracy",
    "agreement",
    "against_truth",
    "nmi",
    "of_members",
    "silhouette",
    "stability",
]


def nmi(truth: ArrayLike, labels: ArrayLike) -> float:
    """Normalized mutual information, arithmetic mean; never above 1 by rounding."""
    return min(1.0, float(normalized_mutual_info_score(truth, labels)))


def ari(truth: ArrayLike, labels: ArrayLike) -> float:
    """Adjusted Rand index."""
    return float(adjusted_rand_score(truth, labels))


def accuracy(truth: ArrayLike, labels: ArrayLike) -> float:
    """Share of correct points under the best one-to-one match of clusters and classes (Hungarian).

    >>> accuracy([0, 0, 1, 1], [1, 1, 0, 2])
    0.75
    """
    table = contingency_matrix(np.asarray(truth), np.asarray(labels))
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / table.sum())


def against_truth(truth: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    """NMI, ARI and accuracy, by name."""
    return {
        "nmi": nmi(truth, labels),
        "ari": ari(truth, labels),
        "accuracy": accuracy(truth, labels),
    }


def of_members(finished: Any, truth: np.ndarray) -> dict[str, dict[str, float]]:
    """Scores of each member of a :class:`deccs.Round`, on the points of the sample it has labeled."""
    classes = np.asarray(truth)[finished.sample]
    return {
        name: against_truth(classes[partition != NOISE], partition[partition != NOISE])
        for name, partition in zip(finished.member_names, finished.base_partitions, strict=True)
    }


def agreement(base_partitions: ArrayLike) -> float:
    """Average pairwise NMI of the partitions, the paper's a(.)."""
    return average_agreement(pairwise_agreement(base_partitions))


def silhouette(
    Z: ArrayLike, labels: ArrayLike, sample_size: int = 2_000, random_state: int = 0
) -> float:
    """Silhouette of the consensus representation, on a sample; NaN for a single cluster."""
    Z, labels = np.asarray(Z), np.asarray(labels)
    sample = np.random.default_rng(random_state).permutation(len(Z))[:sample_size]
    n_found = len(np.unique(labels[sample]))
    if not 1 < n_found < len(sample):
        return math.nan
    return float(silhouette_score(Z[sample], labels[sample]))


def stability(rounds: Sequence[Any]) -> list[float]:
    """For each two successive rounds: how much the members' partitions stay the same.

    The mean over the members of the NMI of a member's two partitions, on the points in both samples.
    """
    values = []
    for before, after in pairwise(rounds):
        _, old, new = np.intersect1d(before.sample, after.sample, return_indices=True)
        scores = []
        for name in before.member_names:
            if name in after.member_names:
                first = before.base_partitions[before.member_names.index(name)][old]
                second = after.base_partitions[after.member_names.index(name)][new]
                both = (first != NOISE) & (second != NOISE)
                if both.any():
                    scores.append(nmi(first[both], second[both]))
        values.append(float(np.mean(scores)) if scores else math.nan)
    return values
