"""Real tables made from tables of numbers: some columns become categories or dates, cells go missing.

Everything is a function of the numbers and a seed. The same cells are hidden in all variants of a
table, and those hidden at 5 % are hidden at 20 %, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import rankdata

from deccs.seeds import seed_for

RECIPE = 1  # raised when a table is made in another way: older records do not count then
NUMBERS, MIXED, CATEGORIES = "numbers", "mixed", "categories"
AT_RANDOM, BY_VALUE = "at random", "not at random"
SHARES, MAIN_SHARE = (0.05, 0.2, 0.4), 0.2
N_LEVELS = 5
STEEPNESS = (
    6.0  # with 20 % missing, the largest values are hidden 100 times as often as the smallest
)
FIRST_DAY, N_DAYS = np.datetime64("2019-01-01", "s"), 2_192  # to the end of 2024
LEVELS = ("amber", "basil", "cedar", "fjord", "grove", "jasper", "maple", "raven", "tulip", "zinc")


@dataclass(frozen=True)
class Variant:
    """What is done to a table: the kinds of its columns, and the share of cells that is hidden."""

    kinds: str  # numbers, mixed, categories
    share: float = 0.0
    mechanism: str = AT_RANDOM

    @property
    def name(self) -> str:
        """Its name in records.

        >>> Variant("mixed", 0.2, "not at random").name, Variant("numbers").name
        ('mixed, 20 % missing not at random', 'numbers')
        """
        return f"{self.kinds}, {gap_name(self.share, self.mechanism)}" if self.share else self.kinds

    @property
    def complete(self) -> Variant:
        return Variant(self.kinds)

    def frame(self, X: np.ndarray, seed: int) -> pd.DataFrame:
        """The table as people have it: numbers, text for categories, dates, gaps."""
        whole = KINDS[self.kinds](X, seed)
        return whole.mask(hidden(X, self.share, self.mechanism, seed)) if self.share else whole


def gap_name(share: float, mechanism: str) -> str:
    """What is missing, in words.

    >>> gap_name(0.05, "at random")
    '5 % missing at random'
    """
    return f"{share:.0%} missing {mechanism}".replace("%", " %", 1)


# The kinds of columns


def as_numbers(X: np.ndarray, _seed: int) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"column {number}" for number in range(X.shape[1])])


def as_categories(X: np.ndarray, seed: int) -> pd.DataFrame:
    """All columns binned."""
    frame = as_numbers(X, seed)
    for name, column in zip(frame.columns, X.T, strict=True):
        frame[name] = words_of(column, seed_for(seed, "words", name))
    return frame


def as_mixed(X: np.ndarray, seed: int) -> pd.DataFrame:
    """A third of the columns binned, a sixth dates, the rest numbers."""
    frame = as_numbers(X, seed)
    binned, dated = roles(X, seed)
    categories = as_categories(X, seed)
    for number, name in enumerate(frame.columns):
        if number in binned:
            frame[name] = categories[name]
        elif number in dated:
            frame[name] = dates_of(X[:, number])
    return frame


KINDS = {NUMBERS: as_numbers, MIXED: as_mixed, CATEGORIES: as_categories}


def roles(X: np.ndarray, seed: int) -> tuple[set[int], set[int]]:
    """Which columns become categories and which become dates, drawn by the seed.

    Columns with few values come first in the draw: such columns are the categories of real tables,
    and hardly ever dates.

    >>> X = np.stack([np.arange(12.0), np.arange(12) % 2, np.arange(12) ** 2, -np.arange(12)], 1)
    >>> roles(X, seed=0)[0], len(roles(X, seed=0)[1]), len(roles(X[:, :3], seed=0)[1])
    ({1}, 1, 0)
    """
    d = X.shape[1]
    drawn = np.random.default_rng(seed_for(seed, "kinds of columns")).permutation(d).tolist()
    drawn.sort(key=lambda number: len(np.unique(X[:, number])) > N_LEVELS)
    n_binned, n_dated = max(1, d // 3), max(1, d // 6) if d >= 4 else 0
    return set(drawn[:n_binned]), set(drawn[d - n_dated :])


def levels_of(column: np.ndarray) -> np.ndarray:
    """Five levels of as many rows each: (n,) numbers from 0; equal values have the same level.

    >>> levels_of(np.array([10, 3, 7, 8, 1])), levels_of(np.array([0, 0, 0, 1]))
    (array([4, 1, 2, 3, 0]), array([1, 1, 1, 4]))
    """
    return (N_LEVELS * middle_ranks(column)).astype(int)


def middle_ranks(column: np.ndarray) -> np.ndarray:
    """Where a value stands in its column, between 0 and 1: (n,).

    >>> middle_ranks(np.array([9, 5, 9, 2]))
    array([0.75 , 0.375, 0.75 , 0.125])
    """
    ranks: np.ndarray = (rankdata(column) - 0.5) / len(column)
    return ranks


def words_of(column: np.ndarray, seed: int) -> np.ndarray:
    """Levels as words whose spelling says nothing about their order: (n,)."""
    names = np.random.default_rng(seed).choice(LEVELS, N_LEVELS, replace=False)
    return np.asarray(names[levels_of(column)])


def dates_of(column: np.ndarray) -> np.ndarray:
    """Days from 2019 to 2024 at the same distances as the numbers: (n,).

    >>> dates_of(np.array([5.0, 7.0, 6.0])).astype("datetime64[D]").astype(str).tolist()
    ['2019-01-01', '2024-12-31', '2022-01-01']
    """
    width = np.ptp(column) or 1.0
    days = np.rint((column - column.min()) / width * (N_DAYS - 1)).astype(int)
    return np.asarray(FIRST_DAY + days * np.timedelta64(86_400, "s"))


# Gaps


def hidden(X: np.ndarray, share: float, mechanism: str, seed: int) -> np.ndarray:
    """Which cells are missing: (n, d). By chance, a row or a column may be missing as a whole."""
    draws = np.random.default_rng(seed_for(seed, "gaps", mechanism)).uniform(size=X.shape)
    return np.asarray(draws < chances(X, share, mechanism))


def chances(X: np.ndarray, share: float, mechanism: str) -> np.ndarray:
    """How likely each cell goes missing: (n, d), with ``share`` as the mean of each column.

    >>> chances(np.array([[1.0], [2.0]]), 0.2, "at random").ravel()
    array([0.2, 0.2])
    >>> chances(np.array([[1.0], [2.0], [3.0]]), 0.5, "not at random").ravel().round(3)
    array([0.119, 0.5  , 0.881])
    """
    if mechanism == AT_RANDOM:
        return np.full(X.shape, share)
    return np.stack([rising(middle_ranks(column), share) for column in X.T], axis=1)


def rising(ranks: np.ndarray, share: float) -> np.ndarray:
    """A logistic function of ranks (n,), moved until its mean is ``share``."""

    def curve(center: float) -> np.ndarray:
        return np.asarray(expit(STEEPNESS * (ranks - center)))

    return curve(brentq(lambda center: curve(center).mean() - share, -5.0, 5.0))


VARIANTS = tuple(
    [Variant(kinds) for kinds in KINDS]
    + [
        Variant(kinds, share, mechanism)
        for share in (MAIN_SHARE, *(each for each in SHARES if each != MAIN_SHARE))
        for mechanism in (AT_RANDOM, BY_VALUE)
        for kinds in (NUMBERS, MIXED)
    ]
)
