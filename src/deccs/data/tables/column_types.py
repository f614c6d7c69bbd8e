"""Which columns of text are numbers, truth values or dates. A word is never turned into a gap."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from deccs.data.tables.dialect import MISSING
from deccs.data.tables.raw import shortened

HEAD = 1_000  # rows in which most columns of text show that they are text
MOSTLY = 0.9  # share of numbers from which on a word may be a mistake
MOST_NOTES = 8  # columns; each takes a look at the file
ROW = "row number of deccs"

NO_VALUE, TRUTH = f"(?i)^({'|'.join(map(re.escape, MISSING))})$", "(?i)^(true|false)$"
WHOLE, PADDED = r"^[+-]?\d+$", r"^[+-]?0\d+$"
DATE = r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ].*)?$"
DAYS = tuple(
    sep.join(order)
    for sep in "-/."
    for order in (("%Y", "%m", "%d"), ("%d", "%m", "%Y"), ("%m", "%d", "%Y"))
)
TIMES = ("T%H:%M:%S%.f", "T%H:%M", "T%H:%M:%S%.f%#z", "T%H:%M%#z")
DATE_FORMATS = (*DAYS, *(day + time for time in TIMES for day in DAYS))


@dataclass(frozen=True)
class Counts:
    """How many cells of a column are what."""

    filled: int  # not empty
    present: int  # not empty and not a word for a missing value
    numbers: int
    whole: int
    int64: int
    uint64: int
    padded: int  # whole numbers such as 007
    truth: int  # true, false
    dates: int  # look like a date with a year of four digits


def cells(name: str) -> pl.Expr:
    """The column without spaces around its cells; null for a missing value."""
    cell = pl.col(name).str.strip_chars()
    return pl.when(~cell.str.contains(NO_VALUE)).then(cell).alias(name)


def words(name: str) -> pl.Expr:
    """The column as it is written, without spaces around; null if it is empty."""
    cell = pl.col(name).str.strip_chars()
    return pl.when(cell != "").then(cell).alias(name)


def with_point(cell: pl.Expr, decimal: str) -> pl.Expr:
    """Cells with a decimal point; null for those that have one where a comma is the mark."""
    if decimal == ".":
        return cell
    has_point = cell.str.contains(".", literal=True)
    return pl.when(~has_point).then(cell.str.replace(",", ".", literal=True))


def as_float(cell: pl.Expr, decimal: str) -> pl.Expr:
    return with_point(cell, decimal).cast(pl.Float64, strict=False)


def survey(frame: pl.LazyFrame, names: Sequence[str], decimal: str) -> dict[str, Counts]:
    """The counts of columns of text, in one pass over the rows.

    >>> frame = pl.LazyFrame({"a": ["1", "NA", "2.5", ""]})
    >>> survey(frame, ["a"], ".")["a"]
    Counts(filled=3, present=2, numbers=2, whole=1, int64=1, uint64=1, padded=0, truth=0, dates=0)
    """
    if not names:
        return {}
    cell = pl.col("cell")
    counts = (
        frame.select(names)
        .unpivot(variable_name="column", value_name="cell")  # 100,000 columns are one expression
        .select("column", filled=cell != "", cell=cells("cell"))
        .group_by("column")
        .agg(
            filled=pl.col("filled").sum(),
            present=cell.count(),
            numbers=as_float(cell, decimal).count(),
            whole=cell.str.contains(WHOLE).sum(),
            int64=cell.cast(pl.Int64, strict=False).count(),
            uint64=cell.cast(pl.UInt64, strict=False).count(),
            padded=cell.str.contains(PADDED).sum(),
            truth=cell.str.contains(TRUTH).sum(),
            dates=cell.str.contains(DATE).sum(),
        )
        .collect(engine="streaming")
    )
    found = {name: Counts(*(count or 0 for count in numbers)) for name, *numbers in counts.rows()}
    return {name: found[name] for name in names}


def typed_texts(
    frame: pl.LazyFrame,
    names: Sequence[str],
    as_text: Collection[str] = (),
    *,
    decimal: str = ".",
    padded_is_text: bool = False,
    only_dates: bool = False,
    place: Callable[[int], str],
) -> tuple[list[pl.Expr], tuple[str, ...]]:
    """What makes columns of text what they are, and what to tell of them.

    Parameters
    ----------
    names : of the columns of text
    as_text : those that are text, whatever they hold
    padded_is_text : a column with 007 is text: the format has numbers, and these were written as text
    only_dates : numbers and truth values in text are text: the format has both
    place : where a row is, in words: "line 7"
    """
    open_names = [name for name in names if name not in as_text]
    found = survey(frame.head(HEAD), open_names, decimal)
    open_names = [name for name in open_names if not is_text(found[name])]
    found = survey(frame, open_names, decimal)
    dates = [name for name, counts in found.items() if 0 < counts.present == counts.dates]
    formats = date_formats(frame, dates)

    columns: dict[str, pl.Expr] = {}
    notes: list[str] = []
    mixed: list[str] = []
    for name, counts in found.items():
        if counts.present == 0:
            columns[name] = cells(name)
        elif name in formats:
            column, note = dated(name, formats[name])
            columns[name] = column
            notes += note
        elif MOSTLY * counts.present <= counts.numbers < counts.present:
            mixed.append(name)
        elif only_dates or (padded_is_text and counts.padded):
            continue
        elif counts.truth == counts.present:
            columns[name] = (cells(name).str.to_lowercase() == "true").alias(name)
        elif counts.numbers == counts.present:
            column, note = numbered(name, counts, decimal)
            columns[name] = column
            notes += note
    notes += [
        f"{name}: text ({first_word(frame, name, decimal, place)}), {found[name].numbers:,} other values "
        "are numbers. Correct the file if it is a column of numbers."
        for name in mixed[:MOST_NOTES]
    ]
    if len(mixed) > MOST_NOTES:
        notes.append(f"{len(mixed) - MOST_NOTES} more columns are text because of a few words.")
    return [columns[name] if name in columns else words(name) for name in names], tuple(notes)


def is_text(counts: Counts) -> bool:
    """Whether these cells show that a column is text, and no words among numbers."""
    return (
        counts.numbers < MOSTLY * counts.present
        and counts.truth < counts.present
        and counts.dates < counts.present
    )


def numbered(name: str, counts: Counts, decimal: str) -> tuple[pl.Expr, tuple[str, ...]]:
    """A column of numbers, as narrow as it can be without losing a digit."""
    if counts.whole < counts.present:
        return with_point(cells(name), decimal).cast(pl.Float64).fill_nan(None).alias(name), ()
    if counts.int64 == counts.present:
        return cells(name).cast(pl.Int64), ()
    if counts.uint64 == counts.present:
        return cells(name).cast(pl.UInt64), ()
    note = f"{name}: whole numbers beyond 64 bits are kept as text, digit by digit."
    return words(name), (note,)


def first_word(frame: pl.LazyFrame, name: str, decimal: str, place: Callable[[int], str]) -> str:
    """The first cell that is no number, and where it is."""
    cell = cells(name)
    rows = (
        frame.select(cell)
        .with_row_index(ROW)
        .filter(pl.col(name).is_not_null() & as_float(pl.col(name), decimal).is_null())
        .head(1)
        .collect(engine="streaming")
    )
    row, word = rows.row(0)
    return f"{shortened(word)!r} in {place(row)}"


def date_formats(frame: pl.LazyFrame, names: Sequence[str]) -> dict[str, list[str]]:
    """For each column of dates the formats that all its cells have."""
    head = full_formats(frame.head(HEAD), dict.fromkeys(names, DATE_FORMATS))
    return full_formats(frame, head)


def full_formats(frame: pl.LazyFrame, formats: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    wanted = [
        (as_date(cells(name), form).count() == cells(name).count()).alias(f"{place} {form}")
        for place, (name, forms) in enumerate(formats.items())
        for form in forms
    ]
    if not wanted:
        return {name: [] for name in formats}
    fits = iter(frame.select(wanted).collect(engine="streaming").row(0))
    return {name: [form for form in forms if next(fits)] for name, forms in formats.items()}


def as_date(cell: pl.Expr, form: str) -> pl.Expr:
    """Dates, or datetimes if the format has a time; null for what does not fit."""
    if form in DAYS:
        return cell.str.to_date(form, strict=False)
    zone = "UTC" if form.endswith("%#z") else None
    joined = cell.str.replace(r"^(\S+)\s+", "${1}T")
    return joined.str.to_datetime(form, strict=False, time_unit="us", time_zone=zone)


def dated(name: str, formats: Sequence[str]) -> tuple[pl.Expr, tuple[str, ...]]:
    """A column of dates, or of text if their form is not clear."""
    if len(formats) == 1:
        return as_date(cells(name), formats[0]).alias(name), ()
    why = "have no form in common" if not formats else "may have the day or the month first"
    return words(name), (f"{name}: the dates {why}, so they are text. Write them like 2020-01-31.",)
