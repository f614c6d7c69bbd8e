"""Embedding many rows in single precision, near the rate at which the machine multiplies matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deccs.inference.encoder import DenseEncoder, check_finite
from deccs.inference.heads import LinearHeads

LARGE_INPUT = 1e3  # deviations: sums of such numbers lose digits that others need


class FastEncoder:
    """Scaled rows -> (n, n_latent) doubles, in single precision where every head is sure of its class."""

    def __init__(self, dense: DenseEncoder, heads: Sequence[LinearHeads]) -> None:
        self.dense = dense
        self.heads = [(head.weight, head.bias.astype(np.float32)) for head in heads]

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        Z = self.dense.in_single_precision(inputs)
        close = np.zeros(len(inputs), dtype=bool)
        for weight, bias in self.heads:
            n_heads, widest, n_latent = weight.shape
            flat = weight.reshape(-1, n_latent).astype(np.float32, copy=False)
            close |= are_close((Z @ flat.T).reshape(-1, n_heads, widest) + bias, inputs)
        check_finite(Z)
        exactly = Z.astype(np.float64)
        if close.any():
            exactly[close] = self.dense(inputs[close])
        return exactly


def are_close(logits: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """(n,) whether single precision may have taken another class than double precision would.

    Logits are (n, n_heads, n_classes). Rounding errors are a millionth of the largest of them; rows a thousand
    times nearer to a border than that are asked again, and so are rows with very large inputs.

    >>> logits = np.array([[[1.0, 2.0, 0.0]], [[1.0, 1.0001, 0.0]]])
    >>> are_close(logits, np.zeros((2, 1)))
    array([False,  True])
    """
    if logits.shape[2] < 2:
        return np.zeros(len(logits), dtype=bool)
    second, first = np.moveaxis(np.partition(logits, -2, axis=2)[:, :, -2:], 2, 0)
    close = (first - second <= 1e-3 * (1 + np.abs(first))).any(axis=1)  # (n,), of (n, n_heads)
    return np.asarray(close | (np.abs(inputs).max(axis=1) > LARGE_INPUT))
