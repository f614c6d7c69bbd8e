"""Is a confidence of 0.8 right in 8 of 10 cases? Confidence against what turned out to be true."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

N_BINS = 10


@dataclass(frozen=True, eq=False)
class Bins:
    """Rows by their confidence, in bins of equal width."""

    counts: np.ndarray  # (n_bins,) rows
    confidence: np.ndarray  # (n_bins,) their mean confidence, NaN where there are none
    share_right: np.ndarray  # (n_bins,) how many of them are right, NaN where there are none

    @property
    def error(self) -> float:
        """The expected calibration error: the mean gap between confidence and the share right."""
        gaps = np.abs(self.confidence - self.share_right)
        return float(np.nansum(gaps * self.counts) / self.counts.sum())


def bins_of(confidence: ArrayLike, is_right: ArrayLike, n_bins: int = N_BINS) -> Bins:
    """Rows with a confidence from 0 to 1, and whether they are right, (n,) each, in bins.

    >>> bins = bins_of([0.25, 0.2, 0.9, 0.8], [True, False, True, True], n_bins=2)
    >>> bins.counts, bins.confidence, bins.share_right
    (array([2, 2]), array([0.225, 0.85 ]), array([0.5, 1. ]))
    >>> round(bins.error, 4)  # the mean of 0.275 and 0.15
    0.2125
    """
    values = np.asarray(confidence, dtype=np.float64)
    right = np.asarray(is_right, dtype=np.float64)
    if values.ndim != 1 or values.shape != right.shape or not len(values):
        raise ValueError(
            "confidence and is_right must have one value for each of at least one row, "
            f"got shapes {values.shape} and {right.shape}."
        )
    if not (values.min() >= 0 and values.max() <= 1):  # False for NaN
        raise ValueError(
            f"confidence must be from 0 to 1, got {values.min():.3g} to {values.max():.3g}."
        )
    if not np.isin(right, (0, 1)).all():
        raise ValueError("is_right must say of each row whether it is right: True or False.")
    places = np.minimum((values * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(places, minlength=n_bins)
    with np.errstate(invalid="ignore"):  # empty bins have no mean
        means = [np.bincount(places, each, minlength=n_bins) / counts for each in (values, right)]
    return Bins(counts, *means)


def calibration_error(confidence: ArrayLike, is_right: ArrayLike, n_bins: int = N_BINS) -> float:
    """The mean gap between confidence and the share of right rows, over bins of confidence.

    >>> calibration_error([0.9, 0.9], [True, False])
    0.4
    """
    return bins_of(confidence, is_right, n_bins).error


__all__ = ["Bins", "bins_of", "calibration_error"]
