"""Ways to cluster a table with categories, dates and gaps: ours, and what people do instead.

Each is one function of a :class:`TableTask`, which has no true labels. ``@way("name")`` adds one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype
from sklearn.cluster import KMeans
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.preprocessing import StandardScaler

from deccs.estimator import DECCS
from deccs_paper.mixed.variants import MAIN_SHARE, RECIPE, Variant
from deccs_paper.yardstick.methods import Clustering, Method, adds_to, fitted

REFERENCE = "deccs"
FILLED = "mean"  # on a complete table, all methods that fill or drop are this one
FEWEST_ROWS, FEWEST_ROWS_PER_CLUSTER = 30, 3  # that dropping must leave
MISSING_LEVEL = "missing"


@dataclass(frozen=True)
class TableTask:
    """What a method is given: the table as it is, the number of clusters and a seed."""

    frame: pd.DataFrame  # (n, d)
    k: int
    seed: int


@dataclass(frozen=True)
class Way(Method):
    """A way to cluster a table. ``complete_as`` names the method that it is on a complete table."""

    recipe: int = RECIPE
    complete_as: str = ""  # none: it has runs of its own on complete tables
    in_short: bool = False  # no bar names it: 20 % missing and one seed are enough

    @property
    def reference(self) -> str:
        """Whose result on the complete table its result is compared with."""
        return self.complete_as or self.name

    def n_seeds(self, variant: Variant, most: int) -> int:
        """How many seeds it is run with on a variant, of ``most``; 0 if it is not run there.

        Shares other than 20 % have one seed: no bar depends on them, and all runs are to take an
        hour.
        """
        if not variant.share:
            return 0 if self.complete_as else most
        if variant.share != MAIN_SHARE:
            return 0 if self.in_short else 1
        return 1 if self.in_short else most


METHODS: dict[str, Way] = {}  # by name, filled by the functions below
way = adds_to(METHODS, Way)


@way(REFERENCE)
def deccs(task: TableTask) -> Clustering:
    """The table as it is."""
    return fitted(DECCS(task.k, random_state=task.seed), task.frame)


@way(FILLED)
def mean(task: TableTask) -> Clustering:
    """Gaps filled with the mean or the most frequent level, then DECCS."""
    return of_cells(coded(filled(task.frame)), task)


@way("drop", complete_as=FILLED)
def drop(task: TableTask) -> Clustering:
    """DECCS on the rows without a gap; all others are one more group."""
    whole = task.frame.notna().all(axis=1).to_numpy()  # (n,)
    fewest = max(FEWEST_ROWS, FEWEST_ROWS_PER_CLUSTER * task.k)
    if whole.sum() < fewest:
        raise TooFewRowsError(
            f"{whole.sum()} of {len(whole)} rows have no gap. Dropping the others needs to leave "
            f"at least {fewest}."
        )
    labels = np.full(len(whole), task.k)
    labels[whole] = of_cells(coded(task.frame[whole]), task).labels
    return Clustering(labels, covered=whole)


class TooFewRowsError(ValueError):
    """Nearly every row has a gap."""


@way("knn + deccs", complete_as=FILLED, in_short=True)
def knn(task: TableTask) -> Clustering:
    """Gaps filled from the five nearest rows."""
    return of_cells(KNNImputer(keep_empty_features=True).fit_transform(coded(task.frame)), task)


@way("iterative + deccs", complete_as=FILLED, in_short=True)
def iterative(task: TableTask) -> Clustering:
    """Gaps filled by regressions on the other columns, in turn."""
    model = IterativeImputer(random_state=task.seed, keep_empty_features=True)
    return of_cells(model.fit_transform(coded(task.frame)), task)


@way("k-prototypes", needs=("kmodes",))
def k_prototypes(task: TableTask) -> Clustering:
    """Huang's k-prototypes; k-means where there are only numbers, k-modes where there are none."""
    from kmodes.kmodes import KModes
    from kmodes.kprototypes import KPrototypes

    categories = task.frame[[name for name, each in task.frame.items() if is_category(each)]]
    # A level of its own, as people do: nothing is known about the row, and k-modes takes no gaps.
    levels = categories.astype(object).fillna(MISSING_LEVEL).to_numpy()  # (n, n_categories)
    rest = task.frame.drop(columns=categories.columns)
    numbers = standardized(coded(filled(rest)))  # (n, n_numbers)
    if not levels.shape[1]:
        return Clustering(KMeans(task.k, n_init=10, random_state=task.seed).fit_predict(numbers))
    settings = {"init": "Cao", "n_init": 3, "random_state": task.seed}
    if not numbers.shape[1]:
        return Clustering(KModes(task.k, **settings).fit_predict(levels))
    table = np.hstack([numbers.astype(object), levels])
    places = list(range(numbers.shape[1], table.shape[1]))
    return Clustering(KPrototypes(task.k, **settings).fit_predict(table, categorical=places))


# What they have in common


def of_cells(cells: np.ndarray, task: TableTask) -> Clustering:
    """DECCS on numbers without gaps: (n, n_cells)."""
    return fitted(DECCS(task.k, random_state=task.seed), standardized(cells))


def is_category(column: pd.Series) -> bool:
    """Whether a column is neither numbers nor dates."""
    return not (is_numeric_dtype(column) or is_datetime64_any_dtype(column))


def filled(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers and dates by their mean, categories by their most frequent level; no empty columns.

    >>> filled(pd.DataFrame({"a": [1.0, None, 3.0], "b": ["x", "x", None]})).to_numpy().tolist()
    [[1.0, 'x'], [2.0, 'x'], [3.0, 'x']]
    """
    known = frame.dropna(axis=1, how="all")
    values = {
        name: column.mode().iloc[0] if is_category(column) else column.mean()
        for name, column in known.items()
    }
    return known.fillna(values)


def coded(frame: pd.DataFrame) -> np.ndarray:
    """Numbers and dates standardized, categories one-hot, gaps NaN: (n, n_cells).

    >>> coded(pd.DataFrame({"a": [1.0, 3.0, None], "b": ["x", "y", None]}))
    array([[-1.,  1.,  0.],
           [ 1.,  0.,  1.],
           [nan, nan, nan]])
    """
    parts = [
        one_hot(column) if is_category(column) else standardized(day_numbers(column)[:, None])
        for _, column in frame.items()
    ]
    return np.hstack([np.empty((len(frame), 0)), *parts])


def one_hot(column: pd.Series) -> np.ndarray:
    """A cell for each level: (n, n_levels)."""
    cells = pd.get_dummies(column, dtype=float).to_numpy()
    return np.where(column.isna().to_numpy()[:, None], np.nan, cells)


def day_numbers(column: pd.Series) -> np.ndarray:
    """Numbers as they are, dates in days: (n,).

    >>> day_numbers(pd.Series(pd.to_datetime(["1970-01-03", None])))
    array([ 2., nan])
    """
    if is_datetime64_any_dtype(column):
        column = (column - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return column.to_numpy(dtype=np.float64)


def standardized(cells: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and deviation 1, gaps left out: (n, n_cells)."""
    if not cells.shape[1]:
        return cells
    scaled: np.ndarray = StandardScaler().fit_transform(cells)
    return scaled
