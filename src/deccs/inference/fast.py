"""Embedding many rows in single precision, near the rate at which the machine multiplies matrices.

A label must be that of double precision. How far single precision can be from it follows from the weights: a row whose
two highest classes are nearer to each other than that is embedded again in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deccs.inference.encoder import DenseEncoder, check_finite
from deccs.inference.heads import LinearHeads

UNIT = 2.0**-24  # the rounding error of a single, relative
SQUARINGS = (
    4  # of a matrix whose norm is bounded: the bound is a tenth too high at most for 1,000 columns
)
PADDED = -1e8  # biases below belong to clusters that a member lacks
ROOM = 1.01  # for the rounding errors of the bounds themselves


class FastEncoder:
    """Scaled rows -> (n, n_latent) doubles, in single precision where every head is sure of its class."""

    def __init__(self, dense: DenseEncoder, heads: Sequence[LinearHeads]) -> None:
        self.dense = dense
        self.heads = [single_head for head in heads for single_head in heads_of(dense, head)]

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        Z, close = self._embedded(inputs)
        exactly = Z.astype(np.float64)
        exactly[close] = self.dense(inputs[close])
        check_finite(exactly)
        return exactly

    def labels(self, inputs: np.ndarray) -> np.ndarray:
        """(n,) the classes of the first head, those of double precision."""
        Z, close = self._embedded(inputs)
        head = self.heads[0]
        labels = head.logits(Z).argmax(axis=1)
        weight, bias = head.weight.astype(np.float64), head.bias.astype(np.float64)
        labels[close] = (self.dense(inputs[close]) @ weight.T + bias).argmax(axis=1)
        return labels

    def _embedded(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, n_latent) in single precision, and (n,) where a head is not sure of its class."""
        Z = self.dense.in_single_precision(inputs)
        lengths = np.sqrt(np.einsum("nd,nd->n", inputs, inputs))
        close = ~np.isfinite(lengths)
        with np.errstate(over="ignore", invalid="ignore"):
            for head in self.heads:
                close |= ~(
                    head.lead(Z) > head.slope * lengths + head.offset
                )  # also where it is NaN
        return Z, close


@dataclass(frozen=True, eq=False)
class SingleHead:
    """A head in single precision; a lead of more than ``slope * |x| + offset`` has no error that could turn it."""

    weight: np.ndarray  # (n_classes, n_latent)
    bias: np.ndarray  # (n_classes,)
    slope: float
    offset: float

    def logits(self, Z: np.ndarray) -> np.ndarray:
        """(n, n_latent) -> (n, n_classes)."""
        return Z @ self.weight.T + self.bias

    def lead(self, Z: np.ndarray) -> np.ndarray:
        """By how much the highest logit is above the second: (n,), infinite for a single class."""
        logits = self.logits(Z)
        if logits.shape[1] == 1:
            return np.full(len(Z), np.inf)
        second, first = np.partition(logits, -2, axis=1)[:, -2:].T
        return np.asarray(first - second)


def heads_of(dense: DenseEncoder, heads: LinearHeads) -> list[SingleHead]:
    """Each head in single precision, with what its errors can be."""
    error, size = rounding_of(dense)
    singles = []
    for weight, bias in zip(*heads.exact, strict=True):
        slope, offset = ROOM * lead_error(weight[bias > PADDED], bias[bias > PADDED], error, size)
        single = weight.astype(np.float32), bias.astype(np.float32)
        singles.append(SingleHead(*single, float(slope), float(offset) + 1e-30))
    return singles


def rounding_of(dense: DenseEncoder) -> tuple[np.ndarray, np.ndarray]:
    """The error of a row's embedding in single precision, and its length, at most; (2,) each.

    Both grow with the length of the row x: ``bound[0] * |x| + bound[1]``. A sum of n products is off by n units of
    the sum of their absolute values, whatever the order of summation (Higham, Accuracy and Stability of Numerical
    Algorithms, 3.1); what came in wrong grows by the norm of the matrix.
    """
    size = np.array([1.0, 0.0])
    error = UNIT * size
    for place, (weight, bias) in enumerate(zip(dense.weights, dense.biases, strict=True)):
        if place:
            error = error + 2 * UNIT * size  # of LeakyReLU: its slope is rounded, and the product
        norm, length = norm_bound(weight), np.array([0.0, np.linalg.norm(bias.astype(np.float64))])
        local = gamma(weight.shape[1] + 1) * (norm_bound(np.abs(weight)) * size + length)
        error = norm * error + local
        size = norm * size + length + local
    return error, size


def lead_error(
    weight: np.ndarray, bias: np.ndarray, error: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """How wrong the difference of two logits can be, as a bound (2,): weight is (n_classes, n_latent)."""
    lengths = np.linalg.norm(weight, axis=1)
    apart = 2 * lengths.max(initial=0.0)  # of the weights of any two classes
    of_sums = lengths.max(initial=0.0) * size + np.array([0.0, np.abs(bias).max(initial=0.0)])
    return np.asarray(apart * error + 2 * gamma(weight.shape[1] + 1) * of_sums)


def gamma(n: int) -> float:
    """The relative error of a sum of n terms in single precision, at most.

    >>> round(gamma(100) / 2**-24, 3)
    100.001
    """
    return n * UNIT / (1 - n * UNIT)


def norm_bound(weight: np.ndarray) -> float:
    """A bound of the 2-norm of a matrix, close to it: of the squares of W W^T, whose Frobenius norm is higher.

    >>> W = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> bool(np.linalg.norm(W, 2) <= norm_bound(W) < 1.001 * np.linalg.norm(W, 2))
    True
    """
    W = weight.astype(np.float64)
    square = W @ W.T if len(W) <= W.shape[1] else W.T @ W
    log = 0.0  # of what was divided by, so that no power overflows
    for turn in range(SQUARINGS + 1):
        square = square @ square if turn else square
        scale = float(np.linalg.norm(square))
        if not scale:
            return 0.0
        square, log = square / scale, 2 * log + np.log(scale) if turn else np.log(scale)
    return float(np.exp(log / 2 ** (SQUARINGS + 1)) * (1 + 1e-9))
