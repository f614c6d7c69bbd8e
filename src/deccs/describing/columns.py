"""A column as people know it: its name, its kind and its values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deccs.describing import words

LEVELS = ("yes/no", "category", "ordered")  # kinds whose values are codes of levels
MOST_LETTERS = 40  # of a column or a level, wherever it is named
MOST_ANONYMOUS = 20  # with more columns, names made of "column 17" tell nobody anything
YEARS = (1500, 2200)  # whole numbers between them are written like years
ANONYMOUS = re.compile(
    r"(unnamed|column|col|pixel|px|feature|feat|variable|var|attribute|attr|component|dim|pc"
    r"|f|v|x|z)?[\s_:.\-]*\d+([\s,_x.\-]+\d+)*",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class Described:
    """One column of a table."""

    name: str
    kind: str  # "number", "yes/no", "category", "ordered" or "date"
    # (n,) doubles: the number; the code of the level; days since 1970-01-01, with the time of day as
    # a fraction; NaN where missing
    values: np.ndarray
    levels: tuple[str, ...] = ()  # by code
    whole: bool = False  # numbers that are all whole numbers

    @cached_property
    def words(self) -> str:
        """The name as plain words."""
        return words.as_words(self.name, MOST_LETTERS)

    @property
    def has_levels(self) -> bool:
        return self.kind in LEVELS

    @cached_property
    def missing(self) -> np.ndarray:
        """(n,) mask of the gaps."""
        return np.isnan(self.values)

    @cached_property
    def _grouped(self) -> bool:
        known = self.values[~self.missing]
        low, high = YEARS
        return not (self.whole and len(known) and known.min() >= low and known.max() <= high)

    def level(self, code: int) -> str:
        """A level as plain text."""
        return words.plain(self.levels[code], MOST_LETTERS)

    def written(self, value: float) -> str:
        """A value of a column of numbers, or the day of one of dates."""
        if self.kind == "date":
            return words.moment(np.floor(value))
        return words.number(value, self._grouped)

    def exactly(self, value: float) -> str:
        """A number with all its digits.

        >>> Described("x", "number", np.zeros(1)).exactly(52_000.5)
        '52,000.5'
        """
        if value == 0 or not 1e-4 <= abs(value) < 1e15:
            return f"{value + 0:.17g}" if float(f"{value:.15g}") != value else f"{value:.15g}"
        digits = next(n for n in range(1, 18) if float(f"{value:.{n}g}") == value)
        decimals = max(0, digits - 1 - words.exponent(value))
        return words.digits_of(value, decimals, self._grouped)


def nameable(columns: Sequence[Described]) -> bool:
    """Whether names made of these columns tell anybody anything.

    They do not for images and tables of many columns that are only numbered.

    >>> pixels = [Described(f"pixel {i},{j}", "number", np.zeros(1)) for i in range(9) for j in range(9)]
    >>> nameable(pixels), nameable(pixels[:9]), nameable([])
    (False, True, False)
    """
    n_named = sum(not ANONYMOUS.fullmatch(column.name.strip()[:100]) for column in columns)
    return 2 * n_named > len(columns) or 0 < len(columns) <= MOST_ANONYMOUS
