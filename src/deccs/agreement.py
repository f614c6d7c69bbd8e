"""Partitions: their form, how far they agree (NMI), and the weights that gives their members."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score

NOISE = -1  # "no label": noise of DBSCAN and the like, and points of clusters too small to count


def pairwise_agreement(base_partitions: ArrayLike) -> np.ndarray:
    """NMI of every two partitions, over the points both have labelled.

    >>> pairwise_agreement([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    partitions = np.asarray(base_partitions)                       # (n_members, n_points)
    matrix = np.eye(len(partitions))                               # (n_members, n_members)
    for i, j in combinations(range(len(partitions)), 2):
        both = (partitions[i] != NOISE) & (partitions[j] != NOISE)
        if both.any():
            matrix[i, j] = matrix[j, i] = normalized_mutual_info_score(partitions[i][both], partitions[j][both])
    return matrix


def nmi_of_counts(contingency: np.ndarray) -> float:
    """NMI (arithmetic mean of the entropies) of two partitions from the points their clusters share.

    As scikit-learn's, but from counts: those of a million points come from one ``bincount``.

    >>> nmi_of_counts(np.array([[2, 0], [0, 2]])), nmi_of_counts(np.array([[1, 1], [1, 1]]))
    (1.0, 0.0)
    """
    n = contingency.sum()
    if not n:
        return 0.0
    joint = contingency / n
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    if min((rows > 0).sum(), (columns > 0).sum()) == 1:                # one cluster tells nothing; two such are alike
        return float((rows > 0).sum() == (columns > 0).sum())
    there = joint > 0
    information = (joint[there] * np.log(joint[there] / np.outer(rows, columns)[there])).sum()
    entropies = [-(share[share > 0] * np.log(share[share > 0])).sum() for share in (rows, columns)]
    return float(max(0.0, information) / np.mean(entropies))


def average_agreement(agreement_matrix: ArrayLike) -> float:
    """The paper's a(.): the mean over the pairs of members (Eq. 2).

    >>> average_agreement([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    0.3333333333333333
    """
    matrix = np.asarray(agreement_matrix, dtype=float)
    if len(matrix) < 2:
        raise ValueError(f"Agreement needs at least two ensemble members, got {len(matrix)}.")
    return float(matrix[np.triu_indices(len(matrix), k=1)].mean())


def member_weights(agreement_matrix: ArrayLike, power: float = 1.0, floor: float = 0.01) -> np.ndarray:
    """lambda_i: the mean NMI of a member with the *others*, 0 at or below ``floor``, to a power.

    The paper's sum includes j = i, which would give weights above 1. The floor leaves out
    members no better than chance. A power above 1 lets those count more whom the others confirm
    most; the mean of the weights stays what it is, and so the strength of the losses.

    >>> member_weights([[1, 0.8, 0.001], [0.8, 1, 0.001], [0.001, 0.001, 1]])
    array([0.4005, 0.4005, 0.    ])
    >>> member_weights([[1, 0.8, 0.4], [0.8, 1, 0.4], [0.4, 0.4, 1]], power=2)      # 0.6, 0.6, 0.4: 9 to 9 to 4
    array([0.65454545, 0.65454545, 0.29090909])
    """
    matrix = np.asarray(agreement_matrix, dtype=float)
    weights = (matrix.sum(axis=1) - np.diag(matrix)) / (len(matrix) - 1)
    weights = np.where(weights > floor, weights, 0.0)
    sharp = (weights / max(weights.max(), floor)) ** power
    return sharp * (weights.sum() / max(sharp.sum(), floor)) if power != 1 else weights


def align_labels(labels: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """Rename clusters so that they meet the reference's as well as one-to-one renaming can.

    Clusters without a partner take the numbers that are left; noise stays noise.

    >>> align_labels([2, 2, 0, 0, 1], [0, 0, 1, 1, 1])
    array([0, 0, 1, 1, 2])
    """
    labels, reference = np.asarray(labels), np.asarray(reference)
    both = (labels != NOISE) & (reference != NOISE)
    n_own, n_reference = labels.max(initial=-1) + 1, reference.max(initial=-1) + 1
    overlap = np.zeros((n_own, max(n_own, n_reference)))
    np.add.at(overlap, (labels[both], reference[both]), 1)
    own, partner = linear_sum_assignment(-overlap)
    # With more clusters than the reference some get a number beyond its own; those stay dense.
    renamed = np.empty(n_own, dtype=np.int64)
    renamed[own] = partner
    return np.where(labels == NOISE, NOISE, renamed[labels])


def majority_map(labels: np.ndarray, reference: np.ndarray, n_clusters: int) -> np.ndarray:
    """For each cluster the reference cluster that most of its points are in; -1 for an empty one.

    >>> majority_map(np.array([0, 0, 1, 1]), np.array([2, 2, 0, 0]), n_clusters=3)
    array([ 2,  0, -1])
    """
    overlap = np.zeros((n_clusters, int(reference.max()) + 1))
    np.add.at(overlap, (labels, reference), 1)
    return np.where(overlap.sum(axis=1) > 0, overlap.argmax(axis=1), NOISE)


def canonical(labels: np.ndarray) -> np.ndarray:
    """Number the clusters by first appearance, so that names given by a member change nothing.

    >>> canonical(np.array([7, 7, -1, 2, 7]))
    array([ 0,  0, -1,  1,  0])
    """
    names, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.where(names == NOISE, -1, first))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names)) - (NOISE in names)
    return rank[inverse.reshape(-1)]


def as_labelling(name: str, labels: Any, n_points: int) -> np.ndarray:
    """A labelling made elsewhere: NaN, None and -1 mean no label."""
    try:
        given = np.asarray(labels)
        if given.dtype.kind == "f":
            given = np.where(np.isnan(given), NOISE, given)
        flat = given.reshape(-1)
        names, numbers = np.unique(flat.astype(str), return_inverse=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Member {name!r} has no fit_predict and is no array of labels: {labels!r}.") from error
    if given.ndim != 1 or len(flat) != n_points:
        raise ValueError(
            f"Member {name!r} must have fit_predict or be one label per point, shape ({n_points},); "
            f"got {type(labels).__name__} of shape {given.shape}."
        )
    none = np.isin(names, ["-1", "-1.0", "nan", "None", "<NA>"])
    return canonical(np.where(none[numbers], NOISE, numbers))
