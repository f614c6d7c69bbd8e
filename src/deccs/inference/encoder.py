"""The encoder of the usual networks in double precision, without torch.

A float32 matrix product gives a row another last digit in another batch. A point that is predicted alone must get
what it got among thousands, so public results are computed in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deccs.data.source import blocks

Layers = list[tuple[np.ndarray, np.ndarray]]

SLOPE = 0.01  # of LeakyReLU below 0
ROWS_AT_ONCE = 1024  # in single precision
MOST_VALUES = 2**25  # that a layer may make at once when rows are embedded: 256 MB


class TrainingError(ValueError):
    """A network gives numbers that are not finite; the message says where, and what to do."""


def check_finite(Z: np.ndarray) -> None:
    """Raise a TrainingError for an embedding that no cluster can be found in."""
    finite = np.isfinite(Z)
    if not finite.all():
        n_bad = int((~finite).any(axis=-1).sum())
        raise TrainingError(
            f"The network embeds {n_bad:,} of {len(Z):,} rows as NaN or infinity. Use a lower "
            "learning_rate, or scale='auto'; with a network of your own, check what it computes."
        )


@dataclass(frozen=True, eq=False)
class DenseEncoder:
    """Linear layers with LeakyReLU between them: (n, n_inputs) -> (n, n_latent).

    >>> encoder = DenseEncoder((np.eye(2), np.array([[1.0, 1.0]])), (np.zeros(2), np.zeros(1)))
    >>> encoder(np.array([[3.0, -1.0]]))
    array([[2.99]])
    """

    weights: tuple[np.ndarray, ...]  # (n_out, n_in) each
    biases: tuple[np.ndarray, ...]  # (n_out,)

    @property
    def n_inputs(self) -> int:
        return int(self.weights[0].shape[1])

    @property
    def n_latent(self) -> int:
        return int(self.weights[-1].shape[0])

    @property
    def is_single(self) -> bool:
        """Whether the weights are singles, so that they are the same in both precisions."""
        return all(part.dtype == np.float32 for part in (*self.weights, *self.biases))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """(n, n_inputs) scaled rows -> (n, n_latent), in double precision."""
        at_once = max(1, MOST_VALUES // max(weight.shape[0] for weight in self.weights))
        Z = np.empty((len(rows), self.n_latent))
        for place in blocks(len(rows), at_once):
            Z[place] = through(self._double, rows[place])
        check_finite(Z)
        return Z

    def in_single_precision(self, rows: np.ndarray) -> np.ndarray:
        """The same in single precision, not checked; rows in blocks whose layers stay in the cache."""
        Z = np.empty((len(rows), self.n_latent), dtype=np.float32)
        for place in blocks(len(rows), ROWS_AT_ONCE):
            with np.errstate(over="ignore"):
                single = rows[place].astype(np.float32)
            Z[place] = through(self._single, single)
        return Z

    @cached_property
    def _double(self) -> Layers:
        return layers_of(self.weights, self.biases, np.float64)

    @cached_property
    def _single(self) -> Layers:
        return layers_of(self.weights, self.biases, np.float32)


def layers_of(
    weights: Sequence[np.ndarray], biases: Sequence[np.ndarray], dtype: type[np.floating[Any]]
) -> Layers:
    """The layers with numbers of this type."""
    parts = zip(weights, biases, strict=True)
    return [
        (weight.astype(dtype, copy=False), bias.astype(dtype, copy=False)) for weight, bias in parts
    ]


def through(layers: Layers, x: np.ndarray) -> np.ndarray:
    """What the layers make of rows (n, n_inputs)."""
    with np.errstate(over="ignore", invalid="ignore"):
        for place, (weight, bias) in enumerate(layers):
            if place:
                np.maximum(x, SLOPE * x, out=x)
            x = x @ weight.T  # (n, n_out)
            x += bias
    return x
