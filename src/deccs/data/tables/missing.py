"""Missing values, where users do not leave them to the method: refused, dropped with their row, or filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deccs.data.source import ArrayRows, FilledRows, RowSource, each_block, source_of
from deccs.data.tables.raw import TableError, listed

MISSING_CHOICES = ("auto", "error", "drop", "mean")


@dataclass(frozen=True, eq=False)
class Complete:
    """The values of an array after missing ones were dealt with."""

    values: np.ndarray | RowSource  # (n_rows, n_features)
    kept: np.ndarray  # (n_rows,) False where a row is dropped
    means: tuple[float, ...]  # (n_features,) of the values that are not missing
    notes: tuple[str, ...] = ()


def check_choice(missing: str) -> None:
    """Raise a TableError for a word that is no choice."""
    if missing not in MISSING_CHOICES:
        raise TableError(f"--missing must be one of {', '.join(MISSING_CHOICES)}, got {missing!r}.")


def complete(
    path: object,
    values: np.ndarray | RowSource,
    names: Sequence[str],
    missing: str,
    means: Sequence[float] | None = None,
) -> Complete:
    """Deal with missing values of an array; ``means`` are used instead of the file's."""
    n_rows, n_features = values.shape
    totals = np.zeros(n_features)
    n_missing, n_infinite = np.zeros(n_features, int), np.zeros(n_features, int)
    kept = np.ones(n_rows, dtype=bool)
    source = source_of(values)
    for place, block in each_block(source):
        is_missing = np.isnan(block)
        n_missing += is_missing.sum(0)
        n_infinite += np.isinf(block).sum(0)
        with np.errstate(over="ignore"):
            totals += np.where(np.isfinite(block), block, 0).sum(0)
        kept[place] = ~is_missing.any(1)
    if n_infinite.any():
        raise TableError(f"{path} has infinite values: {counts(names, n_infinite)}. Replace them.")
    n_known = np.maximum(n_rows - n_missing, 1)
    means_of_file = totals / n_known  # (n_features,)
    for column in np.flatnonzero(~np.isfinite(means_of_file)):  # the sum is larger than any double
        shares = (block[:, column] / n_known[column] for _, block in each_block(source))
        means_of_file[column] = sum(np.nansum(share) for share in shares)
    file_means = tuple(means_of_file.tolist())
    if kept.all():
        return Complete(values, kept, file_means)
    per_column = counts(names, n_missing)
    if missing == "auto":
        note = (
            f"Missing: {n_missing.sum() / (n_rows * n_features):.1%} of the values ({per_column})."
        )
        return Complete(values, np.ones(n_rows, dtype=bool), file_means, (note,))
    if missing == "error":
        raise missing_error(path, int((~kept).sum()), n_rows, per_column)
    if missing == "drop":
        note = dropped_note(int((~kept).sum()), n_rows, per_column)
        return Complete(values, kept, file_means, (note,))
    if means is None and (n_missing == n_rows).any():
        empty = [name for name, count in zip(names, n_missing, strict=True) if count == n_rows]
        raise TableError(
            f"{path}: columns without any value have no mean: {listed(empty)}. Leave them out."
        )
    usual = np.asarray(file_means if means is None else means)
    filled: np.ndarray | RowSource = FilledRows(source, usual)
    if isinstance(values, np.ndarray):
        filled = np.where(np.isnan(values), usual, values)
    note = f"{n_missing.sum()} missing values are filled with their column's mean: {per_column}."
    return Complete(filled, np.ones(n_rows, dtype=bool), file_means, (note,))


def missing_error(path: object, n_rows: int, of_rows: int, per_column: str) -> TableError:
    return TableError(
        f"{path} has missing values in {n_rows} of {of_rows} rows: {per_column}. Choose --missing auto to let "
        "the method deal with them, --missing drop to leave these rows without a label, or --missing mean "
        "to fill in the column's mean."
    )


def dropped_note(n_rows: int, of_rows: int, per_column: str) -> str:
    return f"{n_rows} of {of_rows} rows have missing values and get no label: {per_column}."


def counts(names: Sequence[str], numbers: np.ndarray) -> str:
    """Names with their numbers, without those of 0.

    >>> counts(["a", "b", "c"], np.array([1, 0, 2]))
    'a 1, c 2'
    """
    return listed(f"{name} {number}" for name, number in zip(names, numbers, strict=True) if number)


def usual_values(rows: ArrayRows) -> np.ndarray:
    """What is usual in each cell: the mean of numbers, the most frequent of levels: (n_cells,).

    >>> from deccs.data.coding import Coding, Column
    >>> coding = Coding((Column("size", "number"), Column("city", "category", ("Ulm", "Kiel"))))
    >>> cells = np.array([[1.0, 0], [2, 1], [np.nan, 1], [3, np.nan]])
    >>> usual_values(ArrayRows(cells, coding=coding))
    array([2., 1.])
    """
    cells = rows.read(slice(0, rows.shape[0]))
    usual = np.zeros(cells.shape[1])
    for place, cell in enumerate(rows.coding.cells):
        known = cells[~np.isnan(cells[:, place]), place]
        if len(known):
            levels = np.bincount(known.astype(np.int64)) if cell.n_levels else None
            usual[place] = known.mean() if levels is None else levels.argmax()
    return usual
