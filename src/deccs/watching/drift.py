"""``deccs.drift(model, X)``: whether new rows still look like those of the fit, and what has changed.

Three questions: are more rows rejected as unlike any of the fit than should be, have clusters grown or
shrunk, and which columns have moved? An answer counts as drift if it is too large for chance and large
enough to matter: a million rows make everything significant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deccs.answer import Answer
from deccs.checks import check_value, share
from deccs.data.source import ArrayRows, RowSource, each_block
from deccs.describing.columns import Described
from deccs.labels import NOISE
from deccs.novelty.learned import Novelty
from deccs.watching.evidence import by_counts, holm, kolmogorov, too_many_rejected
from deccs.watching.sketch import Sketch, chosen_columns, shares_below

ALPHA = 0.01  # chance of a false alarm, of all questions together
N_QUESTIONS = 3
LEAST_EFFECT = 0.1  # a tenth of the rows: of a column or of the clusters
LEAST_RATIO = 2.0  # of rejected rows to those expected
MOST_CHECKED = 20_000  # rows of a file, evenly spaced
N_BINS = 8  # of a picture of a column


@dataclass(frozen=True)
class ColumnDrift:
    """How far one column has moved since the fit."""

    name: str
    what: str  # "values", or "missing": the share of gaps
    effect: float  # from 0 to 1: the largest difference of cumulative shares, or the share of rows that differ
    p: float  # corrected for the number of columns
    then: str
    now: str
    bins: tuple[tuple[str, float, float], ...] = ()  # what, its share in the fit, and now

    @property
    def has_moved(self) -> bool:
        return self.p < ALPHA / N_QUESTIONS and self.effect >= LEAST_EFFECT


@dataclass(frozen=True)
class ClusterDrift:
    """The share of a cluster, in the fit and now."""

    cluster: int
    name: str
    then: float
    now: float


@dataclass(frozen=True)
class Rejected:
    """Rows unlike any of the fit."""

    n: int
    n_rows: int
    expected: float  # the share that is rejected of data like those of the fit
    p: float

    @property
    def share(self) -> float:
        return self.n / max(self.n_rows, 1)

    @property
    def has_moved(self) -> bool:
        return self.p < ALPHA / N_QUESTIONS and self.share >= LEAST_RATIO * self.expected


@dataclass(frozen=True)
class Drift:
    """What has changed since the fit. ``str(drift)`` is a text for people."""

    n_rows: int  # of the data
    n_checked: int
    rejected: Rejected | None  # None for a model that does not tell novelty
    clusters: tuple[ClusterDrift, ...]
    cluster_effect: float  # the share of rows that would have to be in another cluster
    cluster_p: float
    columns: tuple[ColumnDrift, ...]  # those that have moved most come first

    @property
    def clusters_moved(self) -> bool:
        return self.cluster_p < ALPHA / N_QUESTIONS and self.cluster_effect >= LEAST_EFFECT

    @property
    def moved(self) -> tuple[ColumnDrift, ...]:
        """The columns that have moved."""
        return tuple(column for column in self.columns if column.has_moved)

    @property
    def is_drift(self) -> bool:
        """Whether anything has changed beyond chance, and by enough to matter."""
        rejected = self.rejected is not None and self.rejected.has_moved
        return rejected or self.clusters_moved or bool(self.moved)

    def summary(self) -> str:
        """A few lines for people."""
        lines = [("Drift" if self.is_drift else "No drift") + f" in {self.n_rows:,} rows."]
        if self.n_checked < self.n_rows:
            lines[0] += f" {self.n_checked:,} of them were checked."
        if self.rejected is not None:
            lines.append(f"Rejected: {rejected_words(self.rejected)}.")
        mark = "" if self.clusters_moved else "not more than by chance, or too little: "
        lines.append(f"Clusters: {mark}{cluster_words(self)}.")
        moved = self.moved
        lines.append(f"Columns that moved: {len(moved)} of {len({c.name for c in self.columns})}.")
        lines += [f"  {column_words(column)}" for column in moved[:10]]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def line(self) -> str:
        """One line: what has changed, or that nothing has."""
        parts = []
        if self.rejected is not None and self.rejected.has_moved:
            parts.append(f"{rejected_words(self.rejected)}")
        if self.clusters_moved:
            parts.append(f"clusters: {cluster_words(self)}")
        moved = self.moved
        if moved:
            some = "; ".join(column_words(column) for column in moved[:3])
            more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
            parts.append(f"columns that moved: {some}{more}")
        return f"Drift: {'; '.join(parts)}." if parts else "No drift since the fit."


def rejected_words(rejected: Rejected) -> str:
    return f"{rejected.share:.1%} of the rows are unlike any of the fit, {rejected.expected:.1%} expected"


def cluster_words(drift: Drift) -> str:
    changed = sorted(drift.clusters, key=lambda each: -abs(each.now - each.then))
    return ", ".join(f"{each.name} {each.then:.0%} -> {each.now:.0%}" for each in changed[:3])


def column_words(column: ColumnDrift) -> str:
    what = " (gaps)" if column.what == "missing" else ""
    return f"{column.name}{what}: {column.then} -> {column.now}, effect {column.effect:.2f}"


def drift(model: Any, X: Any, *, reject: float = 0.01) -> Drift:
    """How new rows differ from those that a model was fitted on.

    Parameters
    ----------
    model : a fitted estimator of deccs, also one that was loaded
    X : the new rows, in any form that ``model.predict`` takes; at most 20,000 of them are checked
    reject : the share of rows like those of the fit that count as unlike them, as for ``predict``

    Returns
    -------
    Drift : ``is_drift``, ``rejected``, ``clusters``, ``columns``; ``print(drift)`` tells it in words
    """
    check_value("reject", reject, share())
    return drift_of(model, model._checked(X), reject)


def drift_of(model: Any, source: RowSource, reject: float = 0.01) -> Drift:
    """The same for rows that were read already; they are read once, in their order."""
    rows = evenly_read(source, MOST_CHECKED)
    novelty: Novelty | None = getattr(model, "novelty_", None)
    tell = model._answers if novelty is None else model._answers_with_novelty
    answer = Answer.joined(tell(ArrayRows(rows)))
    rejected = None
    if novelty is not None and answer.novelty is not None:
        rejected = rejected_of(answer.novelty, reject, novelty.n_held_out)
    clusters, effect, p = compared_clusters(model, answer.labels)
    return Drift(
        n_rows=source.shape[0],
        n_checked=len(rows),
        rejected=rejected,
        clusters=clusters,
        cluster_effect=effect,
        cluster_p=p,
        columns=compared_columns(model, rows),
    )


def evenly_read(source: RowSource, most: int) -> np.ndarray:
    """At most so many rows, evenly spaced: (n, n_cells). Sources are read in order, as all of them can be."""
    n_rows = source.shape[0]
    wanted = np.unique(np.linspace(0, n_rows - 1, min(n_rows, most)).astype(np.int64))
    parts = []
    for place, block in each_block(source):
        low, high = np.searchsorted(wanted, (place.start, place.stop))
        parts.append(block[wanted[low:high] - place.start])
    return np.concatenate(parts)


def rejected_of(novelty: np.ndarray, rate: float, n_held_out: int) -> Rejected:
    n = int((novelty > 1 - rate).sum())
    return Rejected(n, len(novelty), rate, too_many_rejected(n, len(novelty), rate, n_held_out))


def compared_clusters(
    model: Any, labels: np.ndarray
) -> tuple[tuple[ClusterDrift, ...], float, float]:
    """The clusters of the fit and of new rows, with effect and p."""
    known = np.asarray(model.labels_)
    numbers = np.union1d(np.unique(known), np.unique(labels))
    then = np.array([(known == number).sum() for number in numbers])
    now = np.array([(labels == number).sum() for number in numbers])
    names = getattr(model, "cluster_names_", ())
    clusters = tuple(
        ClusterDrift(int(number), name_of(names, int(number)), float(a), float(b))
        for number, a, b in zip(numbers, then / then.sum(), now / now.sum(), strict=True)
    )
    return clusters, *by_counts(then, now)


def name_of(names: Sequence[str], number: int) -> str:
    if number == NOISE:
        return "no cluster"
    return names[number] if number < len(names) else f"cluster {number}"


def compared_columns(model: Any, rows: np.ndarray) -> tuple[ColumnDrift, ...]:
    """All columns of the sketch, those that have moved most first."""
    sketch: Sketch | None = getattr(model, "sketch_", None)
    if sketch is None:
        return ()
    columns = chosen_columns(model._described(ArrayRows(rows)))
    found = [
        each
        for place, column in enumerate(columns)
        for each in (values_of(sketch, place, column), gaps_of(sketch, place, column))
        if each is not None
    ]
    corrected = holm([each.p for each in found])
    found = [replace(each, p=float(p)) for each, p in zip(found, corrected, strict=True)]
    return tuple(sorted(found, key=lambda each: (not each.has_moved, -each.effect)))


def values_of(sketch: Sketch, place: int, column: Described) -> ColumnDrift:
    """The known values of a column."""
    cuts, then = sketch.cuts[place], sketch.below[place]
    now = shares_below(column.values, cuts)
    n_then = sketch.n_rows * (1 - sketch.missing[place])
    n_now = int((~column.missing).sum())
    if column.has_levels:
        # The last place is for levels beyond the cuts.
        shares = [np.diff(line, prepend=0.0, append=1.0) for line in (then, now)]
        effect, p = by_counts(np.round(shares[0] * n_then), np.round(shares[1] * n_now))
        bins = level_bins(column, *shares)
        most = max(bins, key=lambda each: abs(each[1] - each[2]), default=("", 0.0, 0.0))
        words = f"{most[0]} {most[1]:.0%}", f"{most[2]:.0%}"
    else:
        effect = float(np.abs(then - now).max())
        p = kolmogorov(effect, n_then, n_now)
        bins = number_bins(column, cuts, then, now)
        middle = column.written(float(cuts[min(np.searchsorted(then, 0.5), len(cuts) - 1)]))
        known = column.values[~column.missing]
        words = f"median {middle}", column.written(float(np.median(known))) if n_now else "none"
    if not n_now:
        effect, p = 0.0, 1.0  # the gaps tell it
    return ColumnDrift(column.name, "values", effect, p, *words, bins)


def gaps_of(sketch: Sketch, place: int, column: Described) -> ColumnDrift | None:
    """The share of gaps of a column; None if it has none."""
    then, now = float(sketch.missing[place]), float(column.missing.mean())
    if then == now == 0:
        return None
    n_then, n_now = sketch.n_rows, len(column.values)
    counts = [
        np.round(np.array([share, 1 - share]) * n) for share, n in ((then, n_then), (now, n_now))
    ]
    effect, p = by_counts(*counts)
    return ColumnDrift(column.name, "missing", effect, p, f"{then:.0%}", f"{now:.0%}")


def level_bins(
    column: Described, then: np.ndarray, now: np.ndarray
) -> tuple[tuple[str, float, float], ...]:
    """The levels with the largest shares."""
    n_levels = min(len(column.levels), len(then))
    order = np.argsort(-(then + now)[:n_levels], kind="stable")[:N_BINS]
    return tuple((column.level(int(code)), float(then[code]), float(now[code])) for code in order)


def number_bins(
    column: Described, cuts: np.ndarray, then: np.ndarray, now: np.ndarray
) -> tuple[tuple[str, float, float], ...]:
    """Ranges with about an eighth of the rows of the fit each; the last one has no end."""
    last = np.unique(np.searchsorted(then, np.arange(1, N_BINS) / N_BINS).clip(0, len(cuts) - 1))
    bins, before = [], (0.0, 0.0)
    for place in last:
        shares = float(then[place]), float(now[place])
        label = f"to {column.written(float(cuts[place]))}"
        bins.append((label, shares[0] - before[0], shares[1] - before[1]))
        before = shares
    bins.append((f"above {column.written(float(cuts[last[-1]]))}", 1 - before[0], 1 - before[1]))
    return tuple(bins)
