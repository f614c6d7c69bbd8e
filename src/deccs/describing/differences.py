"""In which columns a cluster differs from all rows, and how: most different first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deccs.describing import words
from deccs.describing.columns import Described
from deccs.describing.effects import (
    MEDIUM,
    STANDARD_ERRORS,
    of_ranks,
    of_shares,
    quantiles,
    shares_of,
    sizes_of,
)

MOST_COLUMNS = 100  # that are looked at with all rows
SCREEN_ROWS = 2_000  # by which those are found where there are more
RARER = 0.4  # that a level is rare says less than that another is frequent
MIDDLE_HALF = (0.25, 0.5, 0.75)
MOST_ROWS = (0.1, 0.9)


class Said(NamedTuple):
    """A difference in words: of what, here, and of all rows."""

    what: str
    here: str
    everywhere: str
    form: str  # "median", "span" (of half of the rows), "share" or "share in"

    def __str__(self) -> str:
        joint = " in" if self.form == "share in" else ""
        half = "half of them; " if self.form == "span" else ""
        return f"{self.what}{joint} {self.here} ({half}all: {self.everywhere})"


class Quartiles(NamedTuple):
    """The middle half of some values, and their median."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True, eq=False)
class Difference:
    """One claim on a cluster, such as "its incomes are higher", with how true it is of every cluster."""

    column: Described
    cluster: int
    effects: np.ndarray  # (n_clusters,), in Cohen's unit; see ``effects``
    n: int  # rows of the cluster that the claim is about

    @property
    def said(self) -> Said:
        """The difference in words."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.said)

    @property
    def effect(self) -> float:
        """How different the cluster is from all rows; never below 0."""
        return float(self.effects[self.cluster])

    @property
    def stands_out(self) -> bool:
        """Whether the difference is at least medium and hardly chance."""
        return self.effect >= max(MEDIUM, STANDARD_ERRORS / np.sqrt(self.n))


@dataclass(frozen=True, eq=False)
class Amount(Difference):
    """Numbers or dates that are higher (1), lower (-1) or nearer to the middle (0) than those of all."""

    direction: int
    here: Quartiles
    everywhere: Quartiles
    beyond: float  # share of the cluster above the median of all (1), or not above it (-1)
    beyond_everywhere: float

    @property
    def said(self) -> Said:
        """The median; the middle half, or a share, where medians are equal."""
        column, written = self.column, self.column.written
        here, everywhere = written(self.here.middle), written(self.everywhere.middle)
        spans = between(column, self.here), between(column, self.everywhere)
        if self.direction == 0 or (column.kind == "date" and spans[0] != spans[1]):
            return Said(column.words, *spans, "span")
        if here != everywhere:
            return Said(column.words, here, everywhere, "median")
        what = f"{column.words} {'above' if self.direction > 0 else 'at most'} {everywhere}"
        return Said(what, words.share(self.beyond), words.share(self.beyond_everywhere), "share in")


@dataclass(frozen=True, eq=False)
class Period(Difference):
    """Dates that lie closer together than those of all rows."""

    here: Quartiles
    everywhere: Quartiles
    most: tuple[float, float]  # between them are 80 % of the cluster

    @property
    def said(self) -> Said:
        """The middle half."""
        spans = between(self.column, self.here), between(self.column, self.everywhere)
        return Said(self.column.words, *spans, "span")


@dataclass(frozen=True, eq=False)
class LevelShare(Difference):
    """A level, or all from one level on, that is more or less frequent than in all rows."""

    codes: range
    here: float  # share of the cluster's rows with a value
    everywhere: float

    @property
    def levels(self) -> str:
        """The levels in words: "Berlin", "medium or more"."""
        first, last = self.codes[0], self.codes[-1]
        if len(self.codes) == 1:
            return self.column.level(first)
        return (
            f"{self.column.level(last)} or less"
            if first == 0
            else f"{self.column.level(first)} or more"
        )

    @property
    def is_rarer(self) -> bool:
        return self.here < self.everywhere

    @property
    def said(self) -> Said:
        """The share of the level."""
        what = f"{self.column.words} {self.levels}"
        return Said(what, words.share(self.here), words.share(self.everywhere), "share")


@dataclass(frozen=True, eq=False)
class GapShare(Difference):
    """A column that is missing more or less often than in all rows."""

    here: float
    everywhere: float

    @property
    def is_rarer(self) -> bool:
        return self.here < self.everywhere

    @property
    def said(self) -> Said:
        """The share of gaps."""
        what = f"no {self.column.words}"
        return Said(what, words.share(self.here), words.share(self.everywhere), "share in")


def between(column: Described, values: Quartiles) -> str:
    """The middle half of some values."""
    if column.kind == "date":
        return words.span(values.low, values.high)
    # A quarter may end between two whole numbers.
    ends = np.round([values.low, values.high]) if column.whole else (values.low, values.high)
    low, high = (column.written(float(end)) for end in ends)
    return low if low == high else f"{low} to {high}"


def differences(
    columns: Sequence[Described], labels: np.ndarray, n_clusters: int
) -> list[list[Difference]]:
    """Per cluster its differences from all rows, most different first; none for an empty cluster.

    Of more than 100 columns the 100 that differ most in 2,000 rows are looked at.

    >>> income = Described("income", "number", np.array([1.0, 2.0, 7.0, 9.0]), whole=True)
    >>> city = Described("city", "category", np.array([0.0, 0.0, 0.0, 1.0]), ("Bonn", "Rome"))
    >>> low, high = differences([income, city], np.array([0, 0, 1, 1]), 2)
    >>> [str(each) for each in low]
    ['city Bonn 100 % (all: 75 %)', 'income 1.5 (all: 4.5)']
    """
    labels = np.asarray(labels)
    if len(columns) > MOST_COLUMNS:
        columns = screened(columns, labels, n_clusters)
    found: list[list[Difference]] = [[] for _ in range(n_clusters)]
    for column in columns:
        for each in of_column(column, labels, n_clusters):
            found[each.cluster].append(each)
    # Rounding must not decide between columns that differ as much.
    return [sorted(line, key=lambda each: -round(each.effect, 9)) for line in found]


def screened(columns: Sequence[Described], labels: np.ndarray, n_clusters: int) -> list[Described]:
    """The columns that differ most in some cluster, by rows that are spread over all clusters."""
    order = np.argsort(labels, kind="stable")  # (n,)
    rows = order[
        np.arange(min(SCREEN_ROWS, len(order))) * len(order) // min(SCREEN_ROWS, len(order))
    ]
    most = np.zeros(len(columns))
    for place, column in enumerate(columns):
        few = Described(column.name, column.kind, column.values[rows], column.levels, column.whole)
        effects = [each.effect for each in of_column(few, labels[rows], n_clusters)]
        most[place] = round(max(effects, default=0.0), 9)
    kept = np.argsort(-most, kind="stable")[:MOST_COLUMNS]
    return [columns[place] for place in np.sort(kept)]


def of_column(column: Described, labels: np.ndarray, n_clusters: int) -> Iterator[Difference]:
    """What each cluster differs in; nothing for clusters that do not."""
    known = ~column.missing
    values, known_labels = column.values[known], labels[known]
    if len(values):
        of_values = (
            of_levels if column.has_levels else of_dates if column.kind == "date" else of_amounts
        )
        yield from of_values(column, values, known_labels, n_clusters)
    if column.missing.any() and len(values):
        yield from of_gaps(column, labels, n_clusters)


def of_amounts(
    column: Described, values: np.ndarray, labels: np.ndarray, n_clusters: int
) -> Iterator[Amount]:
    """Higher or lower by ranks, or, where that does not stand out, nearer to the middle."""
    n_rows = sizes_of(labels, n_clusters)
    shifts = of_ranks(values, labels, n_clusters)
    everywhere = Quartiles(*quantiles(values, np.zeros(len(values), int), 1, MIDDLE_HALF)[0])
    in_middle = (values >= everywhere.low) & (values <= everywhere.high)
    nearer = of_shares(*shares_of(in_middle, labels, n_clusters))
    above, above_everywhere = shares_of(values > everywhere.middle, labels, n_clusters)
    here = quantiles(values, labels, n_clusters, MIDDLE_HALF)
    for cluster in np.flatnonzero(n_rows).tolist():
        direction = int(np.sign(shifts[cluster]))
        if abs(shifts[cluster]) < MEDIUM and nearer[cluster] > abs(shifts[cluster]):
            direction = 0
        middle = Quartiles(*here[cluster].tolist())
        same = (middle.low, middle.high) == (everywhere.low, everywhere.high)
        effects = direction * shifts if direction else nearer
        if round(effects[cluster], 9) <= 0 or (same and not direction):
            continue
        down = direction < 0
        yield Amount(
            column,
            cluster,
            effects,
            int(n_rows[cluster]),
            direction,
            middle,
            everywhere,
            beyond=float(1 - above[cluster] if down else above[cluster]),
            beyond_everywhere=1 - above_everywhere if down else above_everywhere,
        )


def of_dates(
    column: Described, values: np.ndarray, labels: np.ndarray, n_clusters: int
) -> Iterator[Difference]:
    """A period that holds most rows of a cluster and few others, or earlier and later."""
    n_rows = sizes_of(labels, n_clusters)
    by_ranks = {each.cluster: each for each in of_amounts(column, values, labels, n_clusters)}
    spans = quantiles(values, labels, n_clusters, MOST_ROWS)
    here = quantiles(values, labels, n_clusters, MIDDLE_HALF)
    everywhere = Quartiles(*quantiles(values, np.zeros(len(values), int), 1, MIDDLE_HALF)[0])
    for cluster in np.flatnonzero(n_rows).tolist():
        low, high = spans[cluster].tolist()
        within = (values >= low) & (values <= high)
        effects = of_shares(*shares_of(within, labels, n_clusters))
        shifted = by_ranks.get(cluster)
        # A period says more than "early": it is told even where it differs somewhat less.
        if effects[cluster] >= max(MEDIUM, shifted.effect / 2 if shifted else 0.0):
            middle, n = Quartiles(*here[cluster].tolist()), int(n_rows[cluster])
            yield Period(column, cluster, effects, n, middle, everywhere, (low, high))
        elif shifted is not None:
            yield shifted


def of_levels(
    column: Described, values: np.ndarray, labels: np.ndarray, n_clusters: int
) -> Iterator[LevelShare]:
    """The level whose share differs most; of ordered levels also all up to one, or from one on."""
    codes, n_levels = values.astype(np.int64), len(column.levels)
    n_rows = sizes_of(labels, n_clusters)
    totals = np.bincount(codes, minlength=n_levels)  # (n_levels,)
    in_cluster = labels >= 0
    counts = np.bincount(
        labels[in_cluster] * n_levels + codes[in_cluster], minlength=n_clusters * n_levels
    ).reshape(n_clusters, n_levels)
    groups = [range(code, code + 1) for code in range(n_levels)]
    if column.kind == "ordered":
        groups += [range(code + 1) for code in range(1, n_levels - 1)]
        groups += [range(code, n_levels) for code in range(1, n_levels - 1)]
        counts = np.stack([counts[:, group].sum(axis=1) for group in groups], axis=1)
        totals = np.array([totals[group].sum() for group in groups])
    here = counts / np.maximum(n_rows, 1)[:, None]  # (n_clusters, n_groups)
    everywhere = totals / len(codes)
    effects = of_shares(here, everywhere)
    told = np.where(effects > 0, effects, -RARER * effects).round(9)
    for cluster in np.flatnonzero(n_rows).tolist():
        best = int(told[cluster].argmax())
        if told[cluster, best] <= 0:
            continue
        sign = np.sign(effects[cluster, best])
        yield LevelShare(
            column,
            cluster,
            sign * effects[:, best],
            int(n_rows[cluster]),
            groups[best],
            float(here[cluster, best]),
            float(everywhere[best]),
        )


def of_gaps(column: Described, labels: np.ndarray, n_clusters: int) -> Iterator[GapShare]:
    """The share of gaps, where it differs."""
    n_rows = sizes_of(labels, n_clusters)
    here, everywhere = shares_of(column.missing, labels, n_clusters)
    effects = of_shares(here, everywhere)
    for cluster in np.flatnonzero(n_rows).tolist():
        if round(effects[cluster], 9):
            signed = np.sign(effects[cluster]) * effects
            yield GapShare(
                column, cluster, signed, int(n_rows[cluster]), float(here[cluster]), everywhere
            )
