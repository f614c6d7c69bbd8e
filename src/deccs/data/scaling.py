"""Bringing the columns to one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deccs.data.source import RowSource, each_block
from deccs.storage import stored

SCALES = ("auto", "global", "columns", None)


@stored
@dataclass(frozen=True)
class Scaler:
    """``(x - mean) / deviation``, a number each (pixels) or one per column."""

    kind: str  # "none", "global" or "columns"
    mean: np.ndarray  # () or (n_features,)
    deviation: np.ndarray  # () or (n_features,), never 0

    def __call__(self, block: np.ndarray) -> np.ndarray:
        return block if self.kind == "none" else (block - self.mean) / self.deviation


def fit_scaler(source: RowSource, scale: str | None = "auto") -> Scaler:
    """How to bring the columns to one scale, learned in one pass over the rows.

    ``"auto"`` takes one mean and deviation for the whole table where the columns share one
    range (pixels), else one per column, and leaves data alone that already has that scale.
    """
    if scale is None:
        return Scaler("none", np.zeros(()), np.ones(()))
    n_rows, n_features = source.shape
    total, square = np.zeros(n_features), np.zeros(n_features)
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    shift = source.read(slice(0, 1))[0]  # sums around a data point lose no digits to a large mean
    for _, block in each_block(source):
        low, high = np.minimum(low, block.min(0)), np.maximum(high, block.max(0))
        block = block - shift
        total, square = total + block.sum(0), square + (block * block).sum(0)
    if not np.isfinite(total).all():
        column = int(np.flatnonzero(~np.isfinite(total))[0])
        raise ValueError(
            f"Column {column} has values that are missing, infinite or too large to add up. "
            "Fill or remove them first."
        )
    mean = total / n_rows  # (n_features,), of the shifted columns
    variance = np.maximum(square / n_rows - mean**2, 0)  # (n_features,)
    mean = mean + shift
    deviation = np.sqrt(variance)
    overall_mean = mean.mean()
    overall_deviation = np.sqrt(variance.mean() + mean.var())
    varies = deviation > 1e-9 * np.abs(mean)

    if scale == "auto":
        columns_done = np.all(np.abs(mean) < 1e-2) and np.all(np.abs(deviation[varies] - 1) < 1e-2)
        globally_done = abs(overall_mean) < 1e-2 and abs(overall_deviation - 1) < 1e-2
        if columns_done or globally_done:
            return Scaler("none", np.zeros(()), np.ones(()))
        scale = "global" if share_one_range(low[varies], high[varies]) else "columns"
    if scale == "global":
        return Scaler("global", np.asarray(overall_mean), np.asarray(overall_deviation or 1.0))
    return Scaler("columns", mean, np.where(varies, deviation, 1.0))


def share_one_range(low: np.ndarray, high: np.ndarray, tolerance: float = 0.05) -> bool:
    """Whether most columns run from the same least to the same greatest value.

    >>> share_one_range(np.array([0, 0, 0]), np.array([255, 255, 250]))
    True
    >>> share_one_range(np.array([0, 0]), np.array([1, 1000]))
    False
    """
    if len(low) < 3:  # two columns with the same range are a coincidence, not an image
        return False
    bottom, top = np.median(low), np.median(high)
    slack = tolerance * (top - bottom)
    same = (np.abs(low - bottom) <= slack) & (np.abs(high - top) <= slack)
    return bool(same.mean() > 0.5 and low.min() >= bottom - slack and high.max() <= top + slack)
