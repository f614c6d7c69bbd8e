"""What the columns of a fit looked like, in a few numbers that a model keeps.

Of each column some values (cuts) with the share of rows at or below each: quantiles of a number, all
values of one with few, the codes of levels. Shares of new rows at the same cuts are compared with them
exactly; nothing is interpolated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from deccs.checks import whole
from deccs.describing.columns import Described
from deccs.storage import reals, stored

N_CUTS = 32
MOST_COLUMNS = 2_000  # of a sketch; of wider rows it has some, evenly spaced
MOST_SKETCHED = 20_000  # rows
MOST_VALUES = 4_000_000  # of all columns: sorting more takes seconds
LARGEST = 1e99  # a larger number is as good as this


@stored
@dataclass(frozen=True, eq=False)
class Sketch:
    """The columns of a fit."""

    n_rows: Annotated[int, whole(at_least=1)]
    names: tuple[str, ...]
    cuts: Annotated[np.ndarray, reals("n_columns", "n_cuts")]  # rising; the last is repeated
    below: Annotated[np.ndarray, reals("n_columns", "n_cuts", least=0, most=1)]  # or at the cut
    missing: Annotated[np.ndarray, reals("n_columns", least=0, most=1)]  # shares of gaps

    def check_stored(self) -> None:
        """Raise a ValueError for columns without a name."""
        if len(self.names) != len(self.cuts) or not self.cuts.shape[1]:
            raise ValueError("Sketch must have a name and a cut for each column")

    @classmethod
    def of(cls, columns: Sequence[Described]) -> Sketch | None:
        """The sketch of columns with the same rows; None without any."""
        chosen = chosen_columns(columns)
        if not chosen or not len(chosen[0].values):
            return None
        cuts = np.stack([cuts_of(column) for column in chosen])
        below = np.stack([shares_below(c.values, cut) for c, cut in zip(chosen, cuts, strict=True)])
        missing = np.array([column.missing.mean() for column in chosen])
        names = tuple(column.name for column in chosen)
        return cls(len(chosen[0].values), names, cuts, below, missing)


def rows_to_sketch(n_rows: int, n_features: int) -> int:
    """How many rows of a fit are sketched.

    >>> rows_to_sketch(10**6, 10), rows_to_sketch(10**6, 784), rows_to_sketch(500, 10)
    (20000, 5102, 500)
    """
    return min(n_rows, max(1_000, min(MOST_SKETCHED, MOST_VALUES // n_features)))


def chosen_columns(columns: Sequence[Described]) -> list[Described]:
    """All columns, or some evenly spaced where they are very many."""
    step = -(-len(columns) // MOST_COLUMNS) or 1
    return list(columns[::step])


def cuts_of(column: Described) -> np.ndarray:
    """At most 32 values that divide those of a column: (N_CUTS,)."""
    if column.has_levels:
        return np.minimum(np.arange(N_CUTS), max(len(column.levels) - 1, 0)).astype(np.float64)
    known = np.clip(column.values[~column.missing], -LARGEST, LARGEST)
    if not len(known):
        return np.zeros(N_CUTS)
    values = np.unique(known)
    if len(values) > N_CUTS:
        # The largest value is no cut: all rows are below it.
        shares = np.arange(1, N_CUTS + 1) / (N_CUTS + 1)
        values = np.unique(np.quantile(known, shares, method="inverted_cdf"))
    return np.concatenate([values, np.full(N_CUTS - len(values), values[-1])])


def shares_below(values: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """The share of the known values at or below each cut.

    >>> shares_below(np.array([1.0, 2, 2, 9, np.nan]), np.array([1.0, 2, 5]))
    array([0.25, 0.75, 0.75])
    """
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return np.ones(len(cuts))
    return np.searchsorted(known, cuts, side="right") / len(known)
