"""Embedding many rows in single precision, near the rate at which the machine multiplies matrices."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self, TypeVar

import numpy as np
import torch
from torch import nn

from deccs.network.by_hand import SLOPE
from deccs.seeds import one_thread_each

ROWS_AT_ONCE = 1024  # what the layers make of so many rows stays in the cache
LARGE_INPUT = 1e3  # deviations: sums of such numbers lose digits that others need

T = TypeVar("T")
R = TypeVar("R")


class SingleEncoder:
    """An encoder of linear layers with LeakyReLU between them: (n, n_inputs) -> (n, n_latent)."""

    def __init__(self, layers: list[nn.Linear]) -> None:
        self.weights = [layer.weight.detach().float().cpu() for layer in layers]
        self.biases = [layer.bias.detach().float().cpu() for layer in layers]

    @classmethod
    def of(cls, encoder: nn.Module) -> Self | None:
        """None for an encoder with layers of other kinds, whose rounding errors nobody knows."""
        if not isinstance(encoder, nn.Sequential):
            return None
        layers = [layer for layer in encoder if not isinstance(layer, nn.Dropout)]
        linear = [layer for layer in layers[::2] if type(layer) is nn.Linear]
        between = [layer for layer in layers[1::2] if type(layer) is nn.LeakyReLU]
        is_plain = len(linear) + len(between) == len(layers) and len(linear) > len(between)
        has_biases = all(layer.bias is not None for layer in linear)
        is_leaky = all(layer.negative_slope == SLOPE for layer in between)
        return cls(linear) if is_plain and has_biases and is_leaky else None

    @torch.no_grad()
    def __call__(self, inputs: np.ndarray) -> torch.Tensor:
        x = torch.from_numpy(inputs.astype(np.float32))
        return torch.cat([self._embedded(part) for part in x.split(ROWS_AT_ONCE)])

    def _embedded(self, x: torch.Tensor) -> torch.Tensor:
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if place:
                nn.functional.leaky_relu_(x, SLOPE)
            x = torch.addmm(bias, x, weight.T)  # (n, n_out)
        return x


def are_close(logits: torch.Tensor, inputs: np.ndarray) -> np.ndarray:
    """(n,) whether single precision may have taken another class than double precision would.

    Logits are (n, n_heads, n_classes). Rounding errors are a millionth of the largest of them; rows a thousand
    times nearer to a border than that are asked again, and so are rows with very large inputs.

    >>> logits = torch.tensor([[[1.0, 2.0, 0.0]], [[1.0, 1.0001, 0.0]]])
    >>> are_close(logits, np.zeros((2, 1)))
    array([False,  True])
    """
    if logits.shape[2] < 2:
        return np.zeros(len(logits), dtype=bool)
    first, second = logits.topk(2, dim=2).values.unbind(2)  # (n, n_heads) each
    close = (first - second <= 1e-3 * (1 + first.abs())).any(1).numpy()
    return np.asarray(close | (np.abs(inputs).max(axis=1) > LARGE_INPUT))


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """``work`` of each item, in their order: as many at a time as torch has threads, with one thread each.

    Work on some thousand rows is many small steps, which threads can hardly share.

    >>> list(in_threads(abs, [-1, 2]))
    [1, 2]
    """
    n_threads = torch.get_num_threads()
    if n_threads == 1:
        yield from map(work, items)
        return
    coming: deque[Future[R]] = deque()
    try:
        with (
            one_thread_each(),
            ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,)) as pool,
        ):
            for item in items:
                coming.append(pool.submit(work, item))
                if len(coming) > n_threads:  # no more in memory than is needed to keep all busy
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
    finally:
        torch.set_num_threads(n_threads)


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items; the next one is made in another thread while one is used."""
    with ThreadPoolExecutor(1) as thread:
        end = object()
        coming = thread.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, items, end)
            yield item  # type: ignore[misc]
