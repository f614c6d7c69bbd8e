"""The encoder of the usual networks in double precision, without torch.

A float32 matrix product gives a row another last digit in another batch. A point that is predicted alone must get
what it got among thousands, so public results are computed in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deccs.data.source import blocks
from deccs.inference.single import SLOPE, SingleEncoder

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

    >>> DenseEncoder([np.eye(2), np.array([[1.0, 1.0]])], [np.zeros(2), np.zeros(1)])(np.array([[3.0, -1.0]]))
    array([[2.99]])
    """

    weights: Sequence[np.ndarray]  # (n_out, n_in) doubles each
    biases: Sequence[np.ndarray]  # (n_out,)

    @property
    def n_inputs(self) -> int:
        return int(self.weights[0].shape[1])

    @property
    def n_latent(self) -> int:
        return int(self.weights[-1].shape[0])

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """(n, n_inputs) scaled rows -> (n, n_latent), in double precision."""
        at_once = max(1, MOST_VALUES // max(weight.shape[0] for weight in self.weights))
        Z = np.empty((len(rows), self.n_latent))
        for place in blocks(len(rows), at_once):
            Z[place] = self._embedded(rows[place])
        check_finite(Z)
        return Z

    def _embedded(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
                if place:
                    np.maximum(x, SLOPE * x, out=x)
                x = x @ weight.T  # (n, n_out)
                x += bias
        return x

    @cached_property
    def single(self) -> SingleEncoder:
        """The same in single precision."""
        return SingleEncoder(self.weights, self.biases)
