"""Cluster labels: their form, their numbering, and "no label"."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

NOISE = -1  # "no label": noise of DBSCAN and the like, and points of clusters too small to count


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


def as_labeling(name: str, labels: Any, n_points: int) -> np.ndarray:
    """A labeling made elsewhere: NaN, None and -1 mean no label."""
    try:
        given = np.asarray(labels)
        if given.dtype.kind == "f":
            given = np.where(np.isnan(given), NOISE, given)
        flat = given.reshape(-1)
        names, numbers = np.unique(flat.astype(str), return_inverse=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Member {name!r} has no fit_predict and is no array of labels: {labels!r}."
        ) from error
    if given.ndim != 1 or len(flat) != n_points:
        raise ValueError(
            f"Member {name!r} must have fit_predict or be one label per point, shape ({n_points},); "
            f"got {type(labels).__name__} of shape {given.shape}."
        )
    none = np.isin(names, ["-1", "-1.0", "nan", "None", "<NA>"])
    return canonical(np.where(none[numbers], NOISE, numbers))
