"""The tables with known classes: which ones choices may be made on, and which ones only judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine

from deccs import datasets
from deccs.datasets.sources import content_sha256
from deccs.seeds import seed_for
from deccs_paper.yardstick.pool import read_arrays

MOST_ROWS, MOST_COLUMNS = 1_000, 40  # so that all runs together take an hour of one core

# Written down before the first run. Choices (coding, weights of categories, filling) may be made on
# the first group only. The second judges them; nothing is chosen by its results.
DEVELOPMENT = (
    "other-iris",
    "zoo",  # its columns are yes or no in truth, but for the number of legs
    "breast_tissue",
    "parkinsons",
    "uci-glass",
    "vehicle",
    "uci-statlog",
)
JUDGING = ("wine", "breast cancer", "fcps-hepta", "weather", "uci-yeast", "pendigits")
GROUPS = {"development": DEVELOPMENT, "judging": JUDGING}

Arrays = tuple[np.ndarray, np.ndarray]  # X (n, d), y (n,)
LOADERS: dict[str, Callable[[], Arrays]] = {  # of tables that are not in the folder
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "pendigits": lambda: datasets.load("pendigits", return_X_y=True, normalize=False),
}


@dataclass(frozen=True, eq=False)
class KnownTable:
    """A table of numbers without gaps, with its classes."""

    name: str
    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,), for scoring only

    @cached_property
    def sha256(self) -> str:
        return content_sha256(self.X, self.y)

    @property
    def k(self) -> int:
        return len(np.unique(self.y))


def read_table(name: str, folder: Path) -> KnownTable:
    """A table by name; of a large one, a draw of the rows and the first columns."""
    X, y = LOADERS[name]() if name in LOADERS else read_arrays(folder / f"{name}.npz")
    rows = np.sort(some_rows(len(X), name))
    return KnownTable(name, np.asarray(X, dtype=np.float64)[rows, :MOST_COLUMNS], y[rows])


def some_rows(n_rows: int, name: str) -> np.ndarray:
    """Row numbers, at most 1,000: the same ones with every seed of a run.

    >>> len(some_rows(150, "other-iris")), len(some_rows(2310, "uci-statlog"))
    (150, 1000)
    """
    return np.random.default_rng(seed_for(0, name)).permutation(n_rows)[:MOST_ROWS]


def read_tables(names: Sequence[str], folder: Path) -> list[KnownTable]:
    """Those with few rows first."""
    return sorted((read_table(name, folder) for name in names), key=lambda table: len(table.X))
