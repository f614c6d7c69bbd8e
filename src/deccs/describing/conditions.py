"""Conditions on one column, in words, and the rows that meet them.

A gap meets no condition that does not say so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from deccs.describing import words
from deccs.describing.columns import Described

MOST_LEVELS = 4  # named in a condition; more are counted


@dataclass(frozen=True, eq=False)
class Between:
    """Numbers above ``low`` and up to ``high``; dates from ``low`` on and before ``high``.

    >>> age = Described("age", "number", np.array([20.0, 35.0, np.nan]), whole=True)
    >>> str(Between(age, 25.0, 40.0)), Between(age, 25.0, 40.0).holds.tolist()
    ('25 < age <= 40', [False, True, False])
    >>> str(Between(age, low=25.0, or_missing=True)), str(Between(age, 34.0, 35.0))
    ('age > 25 or missing', 'age is 35')
    """

    column: Described
    low: float = -math.inf
    high: float = math.inf
    or_missing: bool = False

    @property
    def is_free(self) -> bool:
        """Whether every row meets it."""
        return self.low == -math.inf and self.high == math.inf and self.or_missing

    @property
    def is_empty(self) -> bool:
        """Whether no value meets it."""
        return self.low >= self.high

    def up_to(self, limit: float, with_missing: bool) -> Between:
        """The part on the left of a limit."""
        missing = self.or_missing and with_missing
        return replace(self, high=min(self.high, limit), or_missing=missing)

    def beyond(self, limit: float, with_missing: bool) -> Between:
        """The part on the right of a limit."""
        missing = self.or_missing and with_missing
        return replace(self, low=max(self.low, limit), or_missing=missing)

    @cached_property
    def holds(self) -> np.ndarray:
        """(n,) mask of the rows that meet it."""
        values, low, high = self.column.values, self.low, self.high
        if self.column.kind == "date":
            within = (values >= low) & (values < high)
        else:
            within = ((values > low) | (low == -math.inf)) & (values <= high)
        known = within & ~self.column.missing & (not self.is_empty)
        return known | self.column.missing if self.or_missing else known

    def __str__(self) -> str:
        name = self.column.words
        if self.is_empty:
            return f"{name} is missing"
        if self.low == -math.inf and self.high == math.inf:
            return f"{name} is given"
        text = in_dates(self) if self.column.kind == "date" else in_numbers(self)
        return f"{text} or missing" if self.or_missing else text


def in_numbers(condition: Between) -> str:
    column, low, high = condition.column, condition.low, condition.high
    name, exactly = column.words, column.exactly
    if high == math.inf:
        return f"{name} > {exactly(low)}"
    if low == -math.inf:
        return f"{name} <= {exactly(high)}"
    if column.whole and math.floor(low) + 1 == math.floor(high):
        return f"{name} is {exactly(math.floor(high))}"
    return f"{exactly(low)} < {name} <= {exactly(high)}"


def in_dates(condition: Between) -> str:
    """Dates, by the name of a year or a month where it is exactly that.

    >>> column = Described("joined", "date", np.zeros(1))
    >>> str(Between(column, words.day_of(2019), words.day_of(2020)))
    'joined in 2019'
    >>> str(Between(column, words.day_of(2019), words.day_of(2019, 3)))
    'joined from 2019-01-01 to 2019-02-28'
    """
    name, low, high = condition.column.words, condition.low, condition.high
    if high == math.inf:
        return f"{name} from {words.moment(low)} on"
    if low == -math.inf:
        return f"{name} before {words.moment(high)}"
    if words.is_day(low) and words.is_day(high):
        year, month, _ = words.calendar(low)
        if low == words.day_of(year) and high == words.day_of(year + 1):
            return f"{name} in {year}"
        if low == words.day_of(year, month) and high == words.day_of(year, month + 1):
            return f"{name} in {words.MONTHS[month - 1]} {year}"
        if low == math.floor(low) and high == low + 1:
            return f"{name} on {words.moment(low)}"
        if high == math.floor(high):
            return f"{name} from {words.moment(low)} to {words.moment(high - 1)}"
    return f"{name} from {words.moment(low)} to before {words.moment(high)}"


@dataclass(frozen=True, eq=False)
class OneOf:
    """Some levels, by code.

    >>> city = Described("city", "category", np.array([0.0, 1.0, 2.0, np.nan]), ("Bonn", "Köln", "Rome"))
    >>> str(OneOf(city, frozenset({0, 2}))), OneOf(city, frozenset({0, 2})).holds.tolist()
    ('city is not Köln', [True, False, True, False])
    """

    column: Described
    codes: frozenset[int]
    or_missing: bool = False

    @property
    def is_free(self) -> bool:
        """Whether every row meets it."""
        return len(self.codes) == len(self.column.levels) and self.or_missing

    @property
    def is_empty(self) -> bool:
        """Whether no value meets it."""
        return not self.codes

    def among(self, codes: Iterable[int], with_missing: bool) -> OneOf:
        """The part with these levels."""
        missing = self.or_missing and with_missing
        return replace(self, codes=self.codes & frozenset(codes), or_missing=missing)

    @cached_property
    def holds(self) -> np.ndarray:
        """(n,) mask of the rows that meet it."""
        met = np.zeros(len(self.column.levels) + 1, dtype=bool)
        met[list(self.codes)] = True
        met[-1] = self.or_missing
        places = np.where(self.column.missing, len(met) - 1, self.column.values)
        return met[places.astype(np.int64)]

    def __str__(self) -> str:
        name, n_levels = self.column.words, len(self.column.levels)
        if self.is_empty:
            return f"{name} is missing"
        if len(self.codes) == n_levels:
            return f"{name} is given"
        text = f"{name} is {self._levels(n_levels)}"
        return f"{text} or missing" if self.or_missing else text

    def _levels(self, n_levels: int) -> str:
        codes = sorted(self.codes)
        if self.column.kind == "ordered" and len(codes) > 1:
            if codes[-1] == len(codes) - 1:
                return f"{self.column.level(codes[-1])} or less"
            if codes[0] == n_levels - len(codes):
                return f"{self.column.level(codes[0])} or more"
        others = sorted(set(range(n_levels)) - self.codes)
        # Of two levels the one that is met is named; of more the side with fewer.
        if n_levels > 2 and len(others) < len(codes):
            return f"not {self._some(others)}"
        return self._some(codes)

    def _some(self, codes: list[int]) -> str:
        """Levels in words, those beyond the most frequent few by their number."""
        named = [self.column.level(code) for code in codes]
        if len(named) <= MOST_LEVELS:
            return words.listed(named)
        frequent = np.bincount(
            self.column.values[~self.column.missing].astype(np.int64),
            minlength=len(self.column.levels),
        )
        kept = sorted(codes, key=lambda code: (-frequent[code], code))[: MOST_LEVELS - 1]
        first = [self.column.level(code) for code in kept]
        return words.listed([*first, f"{len(codes) - len(first)} others"])


Condition = Between | OneOf


def anything(column: Described) -> Condition:
    """The condition that every row meets."""
    if column.has_levels:
        return OneOf(column, frozenset(range(len(column.levels))), or_missing=True)
    return Between(column, or_missing=True)


# ---- limits between two values


def limit_between(low: float, high: float) -> float:
    """The number with the fewest digits that is at least ``low`` and below ``high``.

    Of several with as few digits, the one in the middle.

    >>> limit_between(51_873.0, 52_110.0), limit_between(3.0, 4.0), limit_between(-2.0, 7.0)
    (52000.0, 3.0, 0.0)
    >>> limit_between(0.1 + 0.2, 0.3 + 1e-9)
    0.3000000005
    """
    if low <= 0 < high:
        return 0.0
    if not (math.isfinite(low) and math.isfinite(high)):
        return low
    middle = low / 2 + high / 2
    for digits in range(1, 18):
        limit = float(f"{middle:.{digits}g}")
        if low <= limit < high:
            return limit
        if (ends := float(f"{low:.{digits}g}")) == low:
            return ends
    return low


def date_between(low: float, high: float) -> float:
    """The first day of a year after ``low`` and up to ``high``; else of a month; else a day or a time.

    >>> words.moment(date_between(words.day_of(2018, 5, 3), words.day_of(2019, 2, 1)))
    '2019-01-01'
    >>> words.moment(date_between(words.day_of(2019, 5, 3), words.day_of(2019, 5, 9)))
    '2019-05-06'
    """
    if not (words.is_day(low) and words.is_day(high)):
        return high
    middle = (low + high) / 2
    year, month, _ = words.calendar(middle)
    years = [words.day_of(year), words.day_of(year + 1)]
    months = [words.day_of(year, month), words.day_of(year, month + 1)]
    times = [math.floor(middle * parts + 0.5) / parts for parts in (1, 24, 24 * 60)]
    for each in sorted(years, key=lambda at: abs(at - middle)):
        if low < each <= high:
            return float(each)
    for each in sorted(months, key=lambda at: abs(at - middle)):
        if low < each <= high:
            return float(each)
    return next((at for at in times if low < at <= high), high)
