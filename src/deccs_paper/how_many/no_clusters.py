"""Data without clusters: the right answer is 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deccs.datasets.sources import content_sha256
from deccs.seeds import seed_for

EXPERIMENT = "no clusters"
COLUMNS, ROWS, N_DRAWS = (2, 5, 10, 30, 100), (400, 1_000), 4
CORRELATION = 0.8  # of columns next to each other; of those i apart it is the i-th power


def uniform(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.uniform(size=(n, d))


def gaussian(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.normal(size=(n, d))


def correlated(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """One Gaussian; each column is .8 of the one before and noise, with variance 1."""
    columns = [rng.normal(size=n)]
    for _ in range(d - 1):
        noise = rng.normal(size=n)
        columns.append(CORRELATION * columns[-1] + np.sqrt(1 - CORRELATION**2) * noise)
    return np.stack(columns, axis=1)  # (n, d)


KINDS: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "uniform noise": uniform,
    "one Gaussian": gaussian,
    "correlated Gaussian": correlated,
}


@dataclass(frozen=True)
class NoClusters:
    """A draw of data without clusters; all rows are of one class."""

    kind: str
    n: int
    d: int
    draw: int
    k: int = 1

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.n} x {self.d}, draw {self.draw}"

    @cached_property
    def sha256(self) -> str:
        return content_sha256(*self.arrays())

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Rounded, so that the values do not depend on how a machine adds up."""
        rng = np.random.default_rng(seed_for(0, self.name))
        X = np.round(KINDS[self.kind](rng, self.n, self.d), 4)  # (n, d)
        return X, np.zeros(self.n, dtype=np.int64)


def no_cluster_sets() -> list[NoClusters]:
    """Four draws of each kind and size: 20 of a kind with 400 rows, and 20 with 1,000."""
    return [
        NoClusters(kind, n, d, draw)
        for n in ROWS
        for kind in KINDS
        for d in COLUMNS
        for draw in range(N_DRAWS)
    ]


def kind_of(dataset: str) -> str:
    """The kind in the name of a draw.

    >>> kind_of(NoClusters("one Gaussian", 400, 2, draw=0).name)
    'one Gaussian'
    """
    return dataset.split(",")[0]
