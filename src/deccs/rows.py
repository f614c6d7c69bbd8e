"""The data as the networks see it: scaled float rows, read where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from deccs.files import stored

SCALES = ("auto", "global", "columns", None)


@stored
@dataclass(frozen=True)
class Scaler:
    """``(x - mean) / deviation``, a number each (pixels) or one per column."""

    kind: str                # "none", "global" or "columns"
    mean: np.ndarray         # () or (n_features,)
    deviation: np.ndarray    # () or (n_features,), never 0

    def __call__(self, block: np.ndarray) -> np.ndarray:
        return block if self.kind == "none" else (block - self.mean) / self.deviation


def dense_block(X: Any, index: Any) -> np.ndarray:
    """Some rows of an array, a memory map or a sparse matrix as a dense array of doubles."""
    block: Any = X[index]
    return (block.toarray() if sp.issparse(X) else np.asarray(block)).astype(np.float64, copy=False)


def rows_at_once(n_features: int) -> int:
    """As many as fit into 32 MB of doubles: wide sparse data must not become gigabytes.

    >>> rows_at_once(784), rows_at_once(50_000)
    (4096, 83)
    """
    return max(64, min(4096, 2**22 // n_features))


def blocks(n_rows: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def draw_rows(n_rows: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """(size,) row numbers without replacement, in order; all of them if there are no more."""
    return torch.randperm(n_rows, generator=generator)[:size].sort().values


def fit_scaler(X: Any, scale: str | None = "auto") -> Scaler:
    """How to bring the columns to one scale, learned in one pass over the rows.

    ``"auto"`` takes one mean and deviation for the whole table where the columns share one
    range (pixels), else one per column, and leaves data alone that is already so.
    """
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {SCALES}, got {scale!r}.")
    if scale is None:
        return Scaler("none", np.zeros(()), np.ones(()))
    n_rows, n_features = X.shape
    total, square = np.zeros(n_features), np.zeros(n_features)
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    shift = dense_block(X, slice(0, 1))[0]  # sums around a data point lose no digits to a large mean
    for index in blocks(n_rows, rows_at_once(n_features)):
        block = dense_block(X, index)
        low, high = np.minimum(low, block.min(0)), np.maximum(high, block.max(0))
        block = block - shift
        total, square = total + block.sum(0), square + (block * block).sum(0)
    mean = total / n_rows                                         # (n_features,), of the shifted columns
    variance = np.maximum(square / n_rows - mean**2, 0)           # (n_features,)
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


class Rows:
    """``rows[index]`` gives scaled float32 rows as a tensor.

    An array in memory is scaled once. A memory map or a sparse matrix is read batch by batch,
    so that a file larger than memory can be clustered.
    """

    def __init__(self, X: Any, scaler: Scaler, device: str | torch.device = "cpu") -> None:
        self.X, self.scaler, self.device = X, scaler, torch.device(device)
        self.n_rows, self.n_features = X.shape
        self._table: torch.Tensor | None = None
        if not sp.issparse(X) and not is_memory_map(X):
            table = torch.empty((self.n_rows, self.n_features), dtype=torch.float32)
            for index in blocks(self.n_rows, rows_at_once(self.n_features)):
                table[index] = torch.from_numpy(scaler(dense_block(X, index)).astype(np.float32))
            self._table = table.to(self.device)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, index: torch.Tensor | slice) -> torch.Tensor:
        if self._table is not None:
            return self._table[index]
        where = index if isinstance(index, slice) else index.numpy()
        block = self.scaler(dense_block(self.X, where))
        return torch.from_numpy(block.astype(np.float32)).to(self.device)


def is_memory_map(X: Any) -> bool:
    """Whether the array, or what it is a view of, lives in a file."""
    while X is not None:
        if isinstance(X, np.memmap):
            return True
        X = getattr(X, "base", None)
    return False
