"""Months drawn from a data set with known classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deccs.seeds import seed_for

N_MONTHS = 12
APPEARS, LEAVES = 5, 9  # months, from 1
MOST_ROWS = 1_500  # of a month
STAYS = 0.7  # of a month's rows are there in the next one, too
DRIFT_OF_ALL, DRIFT_OF_CLASS, NOISE_OF_ROW = 0.3, 0.2, 0.02  # deviations of a column, over the year


@dataclass(frozen=True, eq=False)
class Month:
    """One month's rows."""

    number: int  # from 1
    ids: np.ndarray  # (n,) which rows of the data set they are
    X: np.ndarray  # (n, n_columns)
    y: np.ndarray  # (n,) for scores only


def months_of(X: np.ndarray, y: np.ndarray, seed: int) -> Iterator[Month]:
    """Twelve months. All columns drift, those of each class in a direction of its own."""
    rng = np.random.default_rng(seed_for(seed, "months"))
    classes, y = np.unique(y, return_inverse=True)
    coming, leaving = rng.choice(len(classes), 2, replace=False)
    deviations = X.std(axis=0)
    of_all = rng.normal(size=X.shape[1]) * DRIFT_OF_ALL
    of_class = rng.normal(size=(len(classes), X.shape[1])) * DRIFT_OF_CLASS
    n_rows = min(MOST_ROWS, int(0.6 * len(X)))
    present = np.zeros(0, dtype=np.int64)
    for number in range(1, N_MONTHS + 1):
        allowed = np.ones(len(X), dtype=bool)
        allowed[y == coming] = number >= APPEARS
        allowed[y == leaving] = number < LEAVES
        present = present[allowed[present]]
        stays = rng.permutation(present)[: int(STAYS * n_rows)]
        others = rng.permutation(np.setdiff1d(np.flatnonzero(allowed), stays))
        if number == APPEARS:  # as many as the class should have
            new = np.flatnonzero(y == coming)
            n_new = max(1, round(len(new) / len(X) * n_rows))
            others = np.concatenate([new[:n_new], np.setdiff1d(others, new, assume_unique=True)])
        present = np.sort(np.concatenate([stays, others[: n_rows - len(stays)]]))
        drift = (of_all + of_class[y[present]]) * (number - 1) / N_MONTHS
        noise = rng.normal(size=(len(present), X.shape[1])) * NOISE_OF_ROW
        yield Month(number, present, X[present] + (drift + noise) * deviations, y[present])
