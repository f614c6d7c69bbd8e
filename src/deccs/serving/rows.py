"""From the body of a request to the numbers that a model reads, with what ``deccs predict`` does to a file.

Each row is read by itself: what becomes of it does not depend on the others of its request.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deccs.data.coding import Coding, Column
from deccs.data.frames import column as frame_column
from deccs.data.frames import settled
from deccs.data.source import ArrayRows
from deccs.data.tables.raw import listed
from deccs.serving.limits import Limits, Problem, check_size
from deccs.serving.npy import array_of

if TYPE_CHECKING:
    import polars as pl

MOST_UNKNOWN = 1_000  # columns of a request that the model does not know
NOT_WHOLE = 2.0**53  # from here on doubles are not all whole numbers
DAY = "2024-01-31"
ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?Z?)?", re.ASCII)
SHAPES = (
    'The body must be JSON with "rows" (a list of lists or of objects), "columns" (an object with a list for '
    'each column) or "row" (a single one), such as {"rows": [{"a": 1.5, "b": null}]}'
)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a request as a model reads them."""

    cells: np.ndarray  # (n_kept, n_cells) doubles
    kept: np.ndarray | None = (
        None  # (n_rows,) False for rows without a label; None where all have one
    )
    notes: tuple[str, ...] = ()  # what the client should know

    def __len__(self) -> int:
        """How many rows the request has."""
        return len(self.cells if self.kept is None else self.kept)


@dataclass(frozen=True, eq=False)
class Words:
    """The rows of a request whose columns are not numbers yet: (n,) values of JSON each, by name."""

    columns: dict[str, list[Any]]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, eq=False)
class RowReader:
    """Reads the rows of requests for one model."""

    model: Any
    preprocessing: Mapping[str, Any]
    limits: Limits

    @cached_property
    def coding(self) -> Coding | None:
        """How the columns of the fit became numbers; None for an array."""
        coding: Coding | None = getattr(self.model, "coding_", None)
        return coding

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the model; () where nobody has named them."""
        if self.coding is not None:
            return self.coding.names
        given = self.preprocessing.get("feature_names")
        return tuple(map(str, getattr(self.model, "feature_names_in_", given or ())))

    @property
    def n_columns(self) -> int:
        return int(self.model.n_features_in_)

    @cached_property
    def takes_gaps(self) -> bool:
        """Whether the fit has learned from missing values."""
        return hasattr(self.model.scaler_, "n_scaled")

    # The bodies

    def json(self, body: bytes) -> Rows | Words:
        """Rows by name (records or columns), or as lists in the order of the model."""
        document = self.document(body)
        (shape, value), *_ = document.items()
        if shape == "columns":
            return self.by_name(*self.columns_of(value))
        rows = [value] if shape == "row" else value
        if not isinstance(rows, list):
            raise Problem(422, f"{SHAPES}; {shape!r} is {name_of(type(rows))}.")
        kinds = set(map(type, rows))
        if kinds - {list} and kinds - {dict}:
            raise Problem(422, f"{SHAPES}; {shape!r} holds {listed(sorted(map(name_of, kinds)))}.")
        check_size(len(rows), self.n_columns, self.limits)
        if kinds == {dict}:
            return self.by_name(*self.columns_of_records(rows))
        lengths = set(map(len, rows)) - {self.n_columns}
        if lengths:
            raise Problem(
                422,
                f"Each row must have {self.n_columns:,} values, in this order: {self.order}. There are rows "
                f"with {listed(sorted(lengths))} values.",
            )
        values = list(chain.from_iterable(rows))
        if self.is_plain and (numbers := as_numbers(values)) is not None:
            return self.settled(numbers.reshape(len(rows), self.n_columns))
        check_single(values)
        columns = zip(*rows, strict=True) if rows else ((),) * self.n_columns
        return self.by_name(
            {name: list(part) for name, part in zip(self.known, columns, strict=True)}
        )

    def document(self, body: bytes) -> dict[str, Any]:
        """The JSON of a body: an object with one of three names."""
        # Empty lists and objects take 30 times the room of their text.
        n_nested = body.count(b"[") + body.count(b"{")
        if n_nested > self.limits.rows + self.n_columns + MOST_UNKNOWN:
            raise Problem(
                413, f"The body has more lists and objects than {self.limits.rows:,} rows need."
            )
        import orjson

        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise Problem(400, f"The body is no valid JSON: {error}.") from None
        if isinstance(value, list):
            value = {"rows": value}
        if (
            not isinstance(value, dict)
            or len(value) != 1
            or not {*value} <= {"row", "rows", "columns"}
        ):
            raise Problem(422, f"{SHAPES}.")
        return value

    def array(self, body: bytes) -> Rows:
        """Rows of a .npy file, in the order of the model."""
        values = array_of(body)
        check_size(len(values), values.shape[1], self.limits)
        if not self.is_plain:
            raise Problem(
                422,
                "An array holds numbers only, and the model was fitted on columns of several kinds. Send JSON "
                "or CSV with these columns.",
            )
        if values.shape[1] != self.n_columns:
            raise Problem(
                422,
                f"The array has {values.shape[1]:,} columns, and the model needs {self.n_columns:,}: {self.order}.",
            )
        with np.errstate(over="ignore"):
            return self.settled(values.astype(np.float64))

    def csv(self, body: bytes, *, header: bool = True) -> Rows:
        """Rows of a CSV file, read by what reads it for ``deccs predict``."""
        from deccs.data.tables import TableError, read_like

        n_lines, n_columns = body.count(b"\n"), body.split(b"\n", 1)[0].count(b",") + 1
        check_size(n_lines - 1, min(n_columns, self.n_columns), self.limits)
        if n_columns > self.n_columns + MOST_UNKNOWN:
            raise Problem(
                413, f"{n_columns:,} columns are too many: the model needs {self.n_columns:,}."
            )
        if not body.strip():
            raise Problem(
                422, "The body is empty. Send CSV with the names of columns in its first line."
            )
        handle, name = tempfile.mkstemp(prefix="deccs-serve-", suffix=".csv")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(body)
            like = {"missing": "auto", **self.preprocessing, "id_column": None, "encoding": "utf-8"}
            like["feature_names"] = list(self.names)
            table = read_like(Path(name), like, self.coding, header=header)
        except (TableError, UnicodeError) as error:
            raise Problem(422, str(error).replace(name, "The body")) from None
        finally:
            os.unlink(name)
        n_rows, n_cells = table.rows.shape
        if not self.names and n_cells != self.n_columns:
            raise Problem(
                422, f"The body has {n_cells:,} columns, and the model needs {self.n_columns:,}."
            )
        check_size(n_rows, self.n_columns, self.limits)
        cells = table.rows.read(slice(0, table.rows.shape[0]))
        notes = tuple(note.replace(name, "The body") for note in table.notes)
        kept = None if table.kept.all() else table.kept
        return self.without_gaps(Rows(cells, kept, notes))

    # Columns by name

    @cached_property
    def is_plain(self) -> bool:
        """Whether every cell is a number that stands for a column."""
        return self.coding is None or self.coding.is_plain

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The names of the columns, or numbers where they have none."""
        return self.names or tuple(f"column {place + 1}" for place in range(self.n_columns))

    @property
    def order(self) -> str:
        return listed(map(repr, self.names)) if self.names else "that of the data of the fit"

    def check_names(self) -> None:
        if not self.names:
            raise Problem(
                422,
                "The model was fitted on an array, so its columns have no names. Send rows as lists of "
                f"{self.n_columns:,} numbers.",
            )

    def columns_of_records(
        self, records: Sequence[dict[str, Any]]
    ) -> tuple[dict[str, list[Any]], list[str]]:
        """Records -> the model's columns, and the names of others. Every record must have every column."""
        self.check_names()
        pick = itemgetter(*self.names)
        try:
            picked = [pick(record) for record in records]
        except KeyError:
            self.raise_incomplete(records)
        if len(self.names) == 1:
            columns = {self.names[0]: picked}
        else:
            columns = {
                name: list(values)
                for name, values in zip(self.names, zip(*picked, strict=True), strict=True)
            }
        unknown: dict[str, None] = {}
        n_known = len(self.names)
        for record in records:
            if len(record) > n_known:
                unknown.update(dict.fromkeys(record.keys() - columns.keys()))
            if len(unknown) > MOST_UNKNOWN:
                raise Problem(
                    413,
                    f"The rows have more than {MOST_UNKNOWN:,} columns that the model does not know.",
                )
        return columns, sorted(unknown)

    def raise_incomplete(self, records: Sequence[dict[str, Any]]) -> None:
        """Raise a Problem that names what the first incomplete record lacks."""
        for place, record in enumerate(records):
            if absent := [name for name in self.names if name not in record]:
                raise Problem(
                    422,
                    f"Row {place} (counted from 0) lacks columns the model needs: {quoted(absent)}. A missing "
                    "value is null.",
                )

    def columns_of(self, value: Any) -> tuple[dict[str, list[Any]], list[str]]:
        """Columns of equal length -> those of the model, and the names of others."""
        self.check_names()
        if not isinstance(value, dict) or not all(
            isinstance(part, list) for part in value.values()
        ):
            raise Problem(422, f"{SHAPES}.")
        if absent := [name for name in self.names if name not in value]:
            raise Problem(422, f"The columns {quoted(absent)} are missing; the model needs them.")
        if len(value) > len(self.names) + MOST_UNKNOWN:
            raise Problem(
                413, f"There are more than {MOST_UNKNOWN:,} columns that the model does not know."
            )
        if len(set(map(len, value.values()))) > 1:
            raise Problem(422, "The columns must have one length. A missing value is null.")
        check_size(len(value[self.names[0]]), self.n_columns, self.limits)
        return {name: value[name] for name in self.names}, sorted(value.keys() - set(self.names))

    def by_name(self, columns: dict[str, list[Any]], unknown: Sequence[str] = ()) -> Rows | Words:
        """Columns of the model, as JSON has them."""
        notes = (f"Not in the model, ignored: {quoted(unknown)}.",) if unknown else ()
        if self.is_plain:
            numbers = [as_numbers(values) for values in columns.values()]
            if all(values is not None for values in numbers):
                return self.settled(np.column_stack(numbers), notes)  # type: ignore[arg-type]
        for column, values in zip(self.by_kind.columns, columns.values(), strict=True):
            check_single(values)
            if column.kind == "date" and not column.form:
                check_dates(column.name, values)
        return Words(columns, notes)

    @cached_property
    def by_kind(self) -> Coding:
        """How columns become numbers, also where the fit had nothing but numbers."""
        return self.coding or Coding(tuple(Column(name, "number") for name in self.known))

    def coded(self, several: Sequence[Words]) -> list[Rows]:
        """Words, dates and the like of several requests, coded as those of the fit.

        All at once, since polars takes as long for one row as for a thousand.
        """
        import polars as pl

        from deccs.data.tables.frames import POLARS_ERRORS

        coding = self.by_kind
        joined = [
            series_of(column, list(chain(*(words.columns[column.name] for words in several))))
            for column in coding.columns
        ]
        frame = settled(pl.DataFrame(joined).lazy()).collect()
        gaps = frame.select(frame_column(name).is_null() for name in coding.names).to_numpy()
        gaps[:, [column.is_flag for column in coding.columns]] = False  # nothing is a "no" there
        try:
            cells = coding(frame)
        except (ValueError, *POLARS_ERRORS) as error:
            raise Problem(422, str(error)) from None
        ends = np.cumsum([len(words) for words in several])
        return [
            self.settled(
                cells[start:stop],
                self.notes_on(words, cells[start:stop], gaps[start:stop]),
                gaps[start:stop],
            )
            for words, start, stop in zip(several, [0, *ends], ends, strict=False)
        ]

    def notes_on(self, words: Words, cells: np.ndarray, gaps: np.ndarray) -> tuple[str, ...]:
        """What to tell of a request, values that the model has not seen included."""
        coding = self.by_kind
        unseen = np.isnan(cells[:, list(coding.first_cells)]).sum(0) - gaps.sum(0)
        if not (unseen > 0).any():
            return words.notes
        counts = [f"{name} {n}" for name, n in zip(coding.names, unseen, strict=True) if n > 0]
        note = f"Values the model has not seen count as missing: {listed(counts)}."
        return (*words.notes, note)

    # Missing values

    def settled(
        self, cells: np.ndarray, notes: tuple[str, ...] = (), gaps: np.ndarray | None = None
    ) -> Rows:
        """Cells without infinite values; rows with gaps are treated as the fit has treated them.

        cells is (n, n_cells), gaps is (n, n_columns): which values were missing in the request.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            total = cells.sum()
        if np.isfinite(total):  # which one sum tells of nearly all requests
            return Rows(cells, None, notes)
        infinite = np.isinf(cells).any(axis=0)
        if infinite.any():
            places = np.flatnonzero(infinite)
            raise Problem(
                422, f"There are infinite values in {quoted([self.known[at] for at in places])}."
            )
        gaps = np.isnan(cells) if gaps is None else gaps
        missing = self.preprocessing.get("missing", "auto")
        kept: np.ndarray | None = None
        has_gap = np.asarray(gaps.any(axis=1))
        if missing == "error" and has_gap.any():
            raise Problem(
                422,
                f"{has_gap.sum():,} of {len(cells):,} rows have missing values "
                f"({quoted([self.known[at] for at in np.flatnonzero(gaps.any(axis=0))])}), and the fit has "
                "refused them (--missing error).",
            )
        if missing == "drop" and has_gap.any():
            kept, cells = ~has_gap, cells[~has_gap]
            notes += (
                f"{has_gap.sum():,} of {len(has_gap):,} rows have missing values and get no label.",
            )
        means = self.preprocessing.get("means")
        if missing == "mean" and means:
            cells = np.where(np.isnan(cells), np.asarray(means, dtype=np.float64), cells)
        return self.without_gaps(Rows(cells, kept, notes))

    def without_gaps(self, rows: Rows) -> Rows:
        """Gaps count as the mean where the data of the fit had none."""
        cells = rows.cells
        n_gaps = 0 if self.takes_gaps else int(np.isnan(cells).sum())
        if not n_gaps:
            return rows
        mean = np.broadcast_to(np.asarray(self.model.scaler_.mean, dtype=np.float64), cells.shape)
        note = f"Missing values: {n_gaps:,}. The data of the fit had none; each counts as the mean of its column."
        return Rows(np.where(np.isnan(cells), mean, cells), rows.kept, (*rows.notes, note))

    def source(self, cells: np.ndarray) -> ArrayRows:
        """Cells as the model reads them."""
        return ArrayRows(cells, coding=self.coding)


def as_numbers(values: Sequence[Any]) -> np.ndarray | None:
    """(n,) doubles, NaN for null; None where there is anything else.

    >>> as_numbers([1, 2.5, None]), as_numbers([1, "2"])
    (array([1. , 2.5, nan]), None)
    """
    if set(map(type, values)) <= {int, float, bool, type(None)}:
        return np.array(values, dtype=np.float64)
    return None


def series_of(column: Column, values: Sequence[Any]) -> pl.Series:
    """A column of JSON: numbers where it is one of numbers, else text as in a CSV file.

    What becomes of a value does not depend on the others.
    """
    import polars as pl

    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return pl.Series(column.name, values, dtype=pl.Null)
    if column.kind == "number" and kinds <= {int, float, bool}:
        return pl.Series(column.name, as_numbers(values)).fill_nan(None)
    texts = [None if value is None else word_of(value) for value in values]
    return pl.Series(column.name, texts, dtype=pl.String)


def word_of(value: str | float | bool) -> str:
    """A value as it is written in a CSV file; 3.0 is 3.

    >>> word_of("a"), word_of(True), word_of(3.0), word_of(0.5), word_of(1e-7)
    ('a', 'true', '3', '0.5', '1e-7')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < NOT_WHOLE:
        return str(int(value))
    digits, e, exponent = str(value).partition("e")
    return f"{digits}e{int(exponent)}" if e else digits


def check_dates(name: str, values: Sequence[Any]) -> None:
    """Raise a Problem for what is no date as ISO 8601 has it: others could be read in several ways."""
    for value in values:
        if value is not None and not (
            isinstance(value, str) and ISO.fullmatch(value.strip() or DAY)
        ):
            raise Problem(
                422,
                f"Column {name!r} must be dates such as 2024-01-31, got {quoted([str(value)])}.",
            )


def check_single(values: Sequence[Any]) -> None:
    """Raise a Problem for lists and objects where values should be."""
    if nested := set(map(type, values)) & {list, dict}:
        raise Problem(
            422,
            f"A value must be a number, a text, true, false or null; got {name_of(nested.pop())}.",
        )


def name_of(kind: type) -> str:
    """What JSON calls a type of Python.

    >>> name_of(dict), name_of(float)
    ('an object', 'a number')
    """
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(kind, "a number")


def quoted(names: Sequence[str]) -> str:
    """Names in quotes, as a text that stays short.

    >>> quoted(["a", "b" * 99])
    "'a', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…'"
    """
    return listed(repr(name if len(name) <= 60 else f"{name[:59]}…") for name in names)
