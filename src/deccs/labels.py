"""Cluster labels: their form, their numbering, and "no label"."""

from __future__ import annotations

import warnings
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

NOISE = -1  # "no label": noise of DBSCAN and others, and points of clusters too small to count
NO_LABEL = ("-1", "-1.0", "nan", "None", "<NA>", "NaT")  # in text, and as text


class FewerClusters(UserWarning):
    """There are fewer clusters than were asked for."""


def warn_of_empty_clusters(labels: np.ndarray, n_clusters: int) -> None:
    """Say so if no point has some of the labels below ``n_clusters``."""
    n_found = np.count_nonzero(np.bincount(labels[labels != NOISE]))
    if n_found < n_clusters:
        warnings.warn(
            f"{n_found} cluster(s) instead of {n_clusters}: no row is in the others. Ask for fewer, "
            "or look for copies of rows, and for extreme values that leave all others alike.",
            FewerClusters,
            stacklevel=3,
        )


def align_labels(labels: ArrayLike, reference: ArrayLike) -> np.ndarray:
    """Renumber clusters one-to-one so that they match the reference's as well as possible.

    Clusters without a partner get the numbers that are left; noise stays noise.

    >>> align_labels([2, 2, 0, 0, 1], [0, 0, 1, 1, 1])
    array([0, 0, 1, 1, 2])
    """
    from scipy.optimize import (
        linear_sum_assignment,  # half a second to load, and predictions need none
    )

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


def as_labels(given: Any) -> np.ndarray:
    """A column of labels of any kind, whole numbers or names, numbered by first appearance.

    NaN, None and -1 mean no label. Numbers that are not whole are a ValueError.

    >>> as_labels([3.0, float("nan"), 7.0]), as_labels(["cat", None, "dog", "cat"])
    (array([ 0, -1,  1]), array([ 0, -1,  1,  0]))
    """
    if np.ma.isMA(given):
        given = np.array(given.tolist(), dtype=object)  # None where it is masked
    values = np.asarray(given)
    if values.dtype.kind in "biu":
        return canonical(values)
    if values.dtype.kind == "f":
        no_label = np.isnan(values)
        check_all(no_label | (np.isfinite(values) & (values == np.round(values))), values)
        return canonical(np.where(no_label, NOISE, values))
    if values.dtype.kind == "O":
        check_all(np.array([may_be_label(value) for value in values], dtype=bool), values)
        values = np.array([name_of(value) for value in values])
    check_all(np.full(values.shape, values.dtype.kind != "c"), values)
    names, numbers = np.unique(values.astype(str), return_inverse=True)
    return canonical(np.where(np.isin(names, NO_LABEL)[numbers.reshape(-1)], NOISE, numbers))


def check_all(may_be: np.ndarray, values: np.ndarray) -> None:
    """Raise a ValueError that shows the first value that cannot be a label."""
    if not may_be.all():
        wrong = values[~may_be][0]
        raise ValueError(f"{wrong} is no label: labels are whole numbers or names, or NaN for none")


def may_be_label(value: Any) -> bool:
    """Whether a number is whole or NaN, or this is no number.

    >>> may_be_label(3.0), may_be_label("3.5"), may_be_label(3.5), may_be_label(1j)
    (True, True, False, False)
    """
    if isinstance(value, complex | np.complexfloating):
        return False
    return not isinstance(value, Number) or value != value or value == value // 1  # type: ignore[operator]


def name_of(value: Any) -> str:
    """A label as text; equal numbers have one name.

    >>> name_of(3.0), name_of(3), name_of(None), name_of("3.0")
    ('3', '3', 'None', '3.0')
    """
    is_number = isinstance(value, Number) and value == value
    return str(int(value) if is_number else value)


def as_labeling(name: str, labels: Any, n_points: int) -> np.ndarray:
    """Existing labels as whole numbers; NaN, None and -1 mean no label."""
    try:
        shape = tuple(np.shape(labels))
        numbers = as_labels(labels) if shape == (n_points,) else None
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Member {name!r} has no fit_predict and is not an array of labels: {error}. "
            f"Got {labels!r:.200}."
        ) from error
    if numbers is None:
        raise ValueError(
            f"Member {name!r} must have fit_predict, or be an array with one label per point, "
            f"shape ({n_points},); got {type(labels).__name__} of shape {shape}."
        )
    return numbers
