"""How far the members agree: NMI of their partitions, and the weights it gives them."""

from __future__ import annotations

from itertools import combinations

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


def average_agreement(agreement_matrix: ArrayLike) -> float:
    """The paper's a(.): the mean over the pairs of members (Eq. 2).

    >>> average_agreement([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    0.3333333333333333
    """
    matrix = np.asarray(agreement_matrix, dtype=float)
    if len(matrix) < 2:
        raise ValueError(f"Agreement needs at least two ensemble members, got {len(matrix)}.")
    return float(matrix[np.triu_indices(len(matrix), k=1)].mean())


def member_weights(agreement_matrix: ArrayLike, floor: float = 0.01) -> np.ndarray:
    """lambda_i: the mean NMI of a member with the *others*, 0 at or below ``floor``.

    The paper's sum includes j = i, which would give weights above 1. The floor leaves out
    members no better than chance.

    >>> member_weights([[1, 0.8, 0.001], [0.8, 1, 0.001], [0.001, 0.001, 1]])
    array([0.4005, 0.4005, 0.    ])
    """
    matrix = np.asarray(agreement_matrix, dtype=float)
    weights = (matrix.sum(axis=1) - np.diag(matrix)) / (len(matrix) - 1)
    return np.where(weights > floor, weights, 0.0)


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
