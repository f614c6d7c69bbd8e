"""A number as a surprise: minus the log of the share of held-out rows that have at least as much of it.

Terms of different units are added as surprises, and the sum is turned into one again. Beyond the
largest held-out value there are no rows to count, so a tail goes on from there and order is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from deccs.checks import number
from deccs.storage import reals, stored

MOST_KNOTS = 200  # a curve of so many points is as good as all held-out rows
TAIL = 0.05  # share of the held-out values that tells how fast the tail falls
LEAST_SLOPE_UNIT = 1e-6  # of the range of values: a tail never falls at once


@stored
@dataclass(frozen=True, eq=False)
class Surprise:
    """A curve through held-out values, and a tail beyond them."""

    values: Annotated[np.ndarray, reals("n_knots")]  # rising
    nats: Annotated[np.ndarray, reals("n_knots", least=0)]  # the surprise of each
    unit: Annotated[
        float, number(above=0)
    ]  # of the tail: how far values beyond the last are spread

    def check_stored(self) -> None:
        """Raise a ValueError for a curve that does not rise."""
        if not len(self.values) or (np.diff(self.values) <= 0).any():
            raise ValueError("Surprise must have values that rise")
        if (np.diff(self.nats) < 0).any():
            raise ValueError("Surprise must not fall as values rise")

    @classmethod
    def of(cls, held_out: np.ndarray) -> Self:
        """The curve of (n_held_out,) values. Copies of a value have one surprise, that of their middle.

        A new value is above the r-th of n with probability 1 - r / (n + 1), whatever they are spread like.

        >>> curve = Surprise.of(np.array([1.0, 2, 2, 3]))
        >>> np.exp(-curve(np.array([1.0, 2, 3])))  # r is 1, 2.5 and 4
        array([0.8, 0.5, 0.2])
        """
        ordered = np.sort(held_out)
        n = len(ordered)
        values, first, counts = np.unique(ordered, return_index=True, return_counts=True)
        nats = -np.log(1 - (first + (counts + 1) / 2) / (n + 1))
        kept = knots(nats)
        top = ordered[-max(1, int(TAIL * n)) :]
        spread = (
            float((top - ordered[-len(top) - 1 : n - len(top)][-1]).mean()) if n > len(top) else 0.0
        )
        least = LEAST_SLOPE_UNIT * max(float(ordered[-1] - ordered[0]), 1.0)
        return cls(values[kept], nats[kept], max(spread, least))

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """(n,) nats; the tail is that of an exponential distribution."""
        return self._curve(values) + self._beyond(values)

    def share(self, values: np.ndarray) -> np.ndarray:
        """(n,) from 0 to 1: the share of held-out rows with less; the tail is a heavy one.

        No two values that differ in their first twelve digits or so get the same share, unless both
        are below the smallest held-out one.
        """
        return 1 - np.exp(-self._curve(values)) / (1 + self._beyond(values))

    def _curve(self, values: np.ndarray) -> np.ndarray:
        return np.interp(values, self.values, self.nats)

    def _beyond(self, values: np.ndarray) -> np.ndarray:
        return np.maximum(values - self.values[-1], 0) / self.unit


def knots(nats: np.ndarray) -> np.ndarray:
    """Which points of a curve to keep: all of a short one, else half at even ranks, half at even surprises.

    Even steps in surprise are wide where rows are many, and even ranks miss the rare values.
    """
    n = len(nats)
    if n <= MOST_KNOTS:
        return np.arange(n)
    wanted = np.linspace(nats[0], nats[-1], MOST_KNOTS // 2)
    by_surprise = np.searchsorted(nats, wanted).clip(0, n - 1)
    by_rank = np.linspace(0, n - 1, MOST_KNOTS // 2).astype(np.int64)
    return np.unique(np.concatenate([by_surprise, by_rank]))
