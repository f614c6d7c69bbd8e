"""Cluster labels: their form, their numbering, and "no label"."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

NOISE = -1  # "no label": noise of DBSCAN and others, and points of clusters too small to count


def align_labels(labels: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """Renumber clusters one-to-one so that they match the reference's as well as possible.

    Clusters without a partner get the numbers that are left; noise stays noise.

    >>> align_labels([2, 2, 0, 0, 1], [0, 0, 1, 1, 1])
    array([0, 0, 1, 1, 2])
    """
    labels, reference = np.asarray(labels), np.asarray(reference)
    both = (labels != NOISE) & (reference != NOISE)
    n_clusters, n_reference = labels.max(initial=-1) + 1, reference.max(initial=-1) + 1
    # With more clusters than the reference, some get numbers beyond it, without gaps.
    overlap = np.zeros((n_clusters, max(n_clusters, n_reference)))
    np.add.at(overlap, (labels[both], reference[both]), 1)
    clusters, partners = linear_sum_assignment(-overlap)
    number_of = np.empty(n_clusters + 1, dtype=np.int64)
    number_of[clusters], number_of[NOISE] = partners, NOISE  # -1 is the last place
    return np.asarray(number_of[labels])


def majority_map(labels: np.ndarray, reference: np.ndarray, n_clusters: int) -> np.ndarray:
    """For each cluster, the reference cluster of most of its points; -1 for an empty cluster.

    >>> majority_map(np.array([0, 0, 1, 1]), np.array([2, 2, 0, 0]), n_clusters=3)
    array([ 2,  0, -1])
    """
    overlap = np.zeros((n_clusters, int(reference.max(initial=0)) + 1))
    np.add.at(overlap, (labels, reference), 1)
    return np.where(overlap.sum(axis=1) > 0, overlap.argmax(axis=1), NOISE)


def canonical(labels: np.ndarray) -> np.ndarray:
    """Number the clusters by first appearance, so that a member's numbering changes nothing.

    >>> canonical(np.array([7, 7, -1, 2, 7]))
    array([ 0,  0, -1,  1,  0])
    """
    names, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.where(names == NOISE, -1, first))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names)) - (NOISE in names)
    return rank[inverse.reshape(-1)]


def as_labeling(name: str, labels: Any, n_points: int) -> np.ndarray:
    """Existing labels as whole numbers; NaN, None and -1 mean no label."""
    try:
        given = np.asarray(labels)
        if given.dtype.kind == "f":
            given = np.where(np.isnan(given), NOISE, given)
        flat = given.reshape(-1)
        names, numbers = np.unique(flat.astype(str), return_inverse=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Member {name!r} has no fit_predict and is not an array of labels: {labels!r}."
        ) from error
    if given.ndim != 1 or len(flat) != n_points:
        raise ValueError(
            f"Member {name!r} must have fit_predict, or be an array with one label per point, "
            f"shape ({n_points},); got {type(labels).__name__} of shape {given.shape}."
        )
    no_label = np.isin(names, ["-1", "-1.0", "nan", "None", "<NA>"])
    return canonical(np.where(no_label[numbers], NOISE, numbers))
