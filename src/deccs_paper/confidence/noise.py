"""Data without clusters: three kinds that are made up, and real tables whose columns are permuted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer

from deccs import datasets
from deccs.seeds import seed_for
from deccs_paper.how_many.no_clusters import KINDS as MADE_UP
from deccs_paper.how_many.no_clusters import NoClusters

EXPERIMENT = "confidence in noise"
PERMUTED = {"permuted breast cancer": (2, 5, 10, 20, 30), "permuted MICE": (2, 5, 10, 30, 77)}
COLUMNS = (2, 5, 10, 30, 100)
ROWS, N_DRAWS, N_CLUSTERS = 400, 4, 5


@cache
def table(kind: str) -> np.ndarray:
    """The real table that a kind permutes: (n, d)."""
    if kind == "permuted MICE":
        return np.asarray(datasets.load("mice", return_X_y=True)[0], dtype=float)
    return np.asarray(load_breast_cancer().data, dtype=float)


@dataclass(frozen=True)
class Noise(NoClusters):
    """A draw of data without clusters, of which a fit is asked for five."""

    k: int = N_CLUSTERS

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """As of the base, or a real table with its columns permuted."""
        if self.kind in MADE_UP:
            return super().arrays()
        rng = np.random.default_rng(seed_for(0, self.name))
        whole = table(self.kind)
        rows = rng.permutation(len(whole))[: self.n]
        columns = rng.choice(whole.shape[1], self.d, replace=False)
        X = np.stack([rng.permutation(whole[rows, column]) for column in columns], axis=1)
        return np.round(X, 4), np.zeros(self.n, dtype=np.int64)


def noise_sets() -> list[Noise]:
    """20 draws of each of the five kinds, with 2 to 100 columns."""
    columns = {**dict.fromkeys(MADE_UP, COLUMNS), **PERMUTED}
    return [
        Noise(kind, ROWS, d, draw)
        for kind, ds in columns.items()
        for d in ds
        for draw in range(N_DRAWS)
    ]
