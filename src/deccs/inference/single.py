"""Embedding many rows in single precision, near the rate at which the machine multiplies matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ROWS_AT_ONCE = 1024  # what the layers make of so many rows stays in the cache
LARGE_INPUT = 1e3  # deviations: sums of such numbers lose digits that others need
SLOPE = 0.01  # of LeakyReLU below 0


class SingleEncoder:
    """Linear layers with LeakyReLU between them: (n, n_inputs) -> (n, n_latent)."""

    def __init__(self, weights: Sequence[np.ndarray], biases: Sequence[np.ndarray]) -> None:
        self.weights = [np.ascontiguousarray(weight.T, dtype=np.float32) for weight in weights]
        self.biases = [bias.astype(np.float32) for bias in biases]

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        Z = np.empty((len(inputs), self.weights[-1].shape[1]), dtype=np.float32)
        for start in range(0, len(inputs), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            Z[part] = self._embedded(inputs[part].astype(np.float32))
        return Z

    def _embedded(self, x: np.ndarray) -> np.ndarray:
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if place:
                np.maximum(x, SLOPE * x, out=x)
            x = x @ weight  # (n, n_out)
            x += bias
        return x


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
