"""Data sets with one class left out: what a fit sees, fresh rows of the same classes, and the unknown class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deccs.labels import NOISE
from deccs.seeds import seed_for
from deccs_paper.yardstick.pool import DataSet

MOST_ROWS = 4_000
BETWEEN = " without class "  # the name of a data set and the class left out
LEAST_CLASS = 8  # rows, for a class to be left out
MANY = 1_000  # known rows: half of them are kept aside, of fewer a fifth


@dataclass(frozen=True, eq=False)
class Split:
    """Three kinds of rows."""

    train: np.ndarray  # (n_train, d)
    fresh: np.ndarray  # (n_fresh, d) of the same classes
    novel: np.ndarray  # (n_novel, d) of the class left out
    k: int  # classes of the first two


@dataclass(frozen=True)
class LeftOut:
    """A data set with one class left out, as a data set of the yardstick."""

    file: DataSet
    left: int  # the class
    draw: int

    @property
    def name(self) -> str:
        return f"{self.file.name}{BETWEEN}{self.left}"

    @property
    def sha256(self) -> str:
        return self.file.sha256

    @property
    def n(self) -> int:
        return min(self.file.n, MOST_ROWS)

    @property
    def d(self) -> int:
        return self.file.d

    @property
    def k(self) -> int:
        """The number of classes that the fit sees."""
        return self.file.k - 1

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """At most 4,000 rows with a class, in random order."""
        X, y = self.file.arrays()
        rows = np.random.default_rng(seed_for(self.draw, self.name)).permutation(
            np.flatnonzero(y != NOISE)
        )
        return X[rows[:MOST_ROWS]], y[rows[:MOST_ROWS]]

    @cached_property
    def split(self) -> Split:
        """The rows by kind; those of the known classes are divided at random."""
        X, y = self.arrays()
        known = np.flatnonzero(y != self.left)
        n_fresh = len(known) // (2 if len(known) > MANY else 5)
        train, fresh = known[n_fresh:], known[:n_fresh]
        return Split(X[train], X[fresh], X[y == self.left], len(np.unique(y[train])))


def set_of(case: str) -> str:
    """The data set of a record.

    >>> set_of("usps without class 3")
    'usps'
    """
    return case.split(BETWEEN)[0]


def cases(files: Iterable[DataSet], n_classes: int) -> list[LeftOut]:
    """So many classes of each data set, chosen at random; the first of all sets come first."""
    chosen = []
    for file in files:
        y = file.arrays()[1]
        classes, counts = np.unique(y[y != NOISE], return_counts=True)
        if len(classes) < 3:  # one class is no clustering
            continue
        large = classes[counts >= LEAST_CLASS]
        order = np.random.default_rng(seed_for(0, file.name, "left out")).permutation(large)
        chosen += [
            (draw, LeftOut(file, int(left), draw)) for draw, left in enumerate(order[:n_classes])
        ]
    return [case for _, case in sorted(chosen, key=lambda pair: pair[0])]
