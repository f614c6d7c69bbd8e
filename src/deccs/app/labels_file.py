"""``labels.csv``: a line per row of a table, written block by block and read with suspicion."""

from __future__ import annotations

import codecs
import csv
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOBase
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO

import numpy as np

from deccs.answer import Answer
from deccs.app.parts import LABELS_PARTS, PartsWriter, labels_in_parts, names_beside, spread
from deccs.app.run_error import RunError
from deccs.data.tables import Table
from deccs.data.tables.readers import read_raw
from deccs.group.group import ALONE
from deccs.labeling import ROWS_OF_PART, own_parts
from deccs.storage.atomic import replacing

LABELS_NAMES = ("labels.csv", "labels.parquet", "labels.xlsx")
MOST_EXCEL_ROWS = 2**20 - 1

# What a spreadsheet takes for a formula, perhaps after apostrophes of ours or others.
FORMULA = re.compile(r"'*[=+\-@\t\r\n]", re.DOTALL)
NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
MOST_LINE = 2**20  # characters
MOST_CLUSTERS = 1_000_000


class TextFile(Protocol):
    """Anything text can be written to."""

    def write(self, text: str, /) -> object: ...


def without_formula(name: str) -> str:
    """An id with an apostrophe before it if a spreadsheet would take it for a formula.

    >>> [without_formula(name) for name in ("=1+1", "-5", "-a", "b", "'=1")]
    ["'=1+1", '-5', "'-a", 'b', "''=1"]
    """
    return f"'{name}" if FORMULA.match(name) and not NUMBER.fullmatch(name) else name


def with_formula(name: str) -> str:
    """The id that :func:`without_formula` was given.

    >>> [with_formula(name) for name in ("'=1+1", "-5", "'b", "''=1")]
    ['=1+1', '-5', "'b", "'=1"]
    """
    return name[1:] if name.startswith("'") and FORMULA.match(name) else name


class LabelsWriter(Protocol):
    """Writes labels block by block, in the order of the rows."""

    def write(self, answer: Answer) -> None:
        """The labels of the next rows."""

    def finish(self) -> None:
        """What comes after the last label."""


@dataclass(frozen=True)
class LabelsFormat:
    """How labels are written."""

    kind: str = "csv"  # or "parquet", "xlsx"
    with_columns: bool = False
    raw_ids: bool = False

    @classmethod
    def of(cls, request: Any) -> LabelsFormat:
        return cls(request.labels, request.with_columns, request.raw_ids)

    @classmethod
    def for_file(cls, path: Path | None, request: Any) -> LabelsFormat:
        """The format that the name of a file asks for; CSV for stdout."""
        kind = "csv" if path is None else path.suffix.lower().removeprefix(".")
        if kind in ("parquet", "xlsx"):
            return cls(kind, request.with_columns, request.raw_ids)
        return cls("csv", request.with_columns, request.raw_ids)

    @property
    def name(self) -> str:
        return f"labels.{self.kind}"

    def check(self, table: Table) -> None:
        """Raise a RunError where this format cannot hold the labels of a table."""
        if self.with_columns and table.frame is None:
            raise RunError(
                "--with-columns writes the columns of a table beside the labels, and arrays and images have "
                "none. Leave it out."
            )
        if self.kind == "xlsx" and len(table.kept) > MOST_EXCEL_ROWS:
            raise RunError(
                f"A spreadsheet has at most {MOST_EXCEL_ROWS:,} rows below its header, and there are "
                f"{len(table.kept):,}. Write Parquet or CSV."
            )

    def opened(self, file: Any, table: Table, names: Sequence[str] | None) -> LabelsWriter:
        """What writes to a file that is open; stdout takes text, other files bytes."""
        self.check(table)
        if self.kind == "csv" and not self.with_columns:
            text = file if isinstance(file, TextIOBase) else codecs.getwriter("utf-8")(file)
            return LabelsFile(text, table, raw_ids=self.raw_ids, names=names)
        out = getattr(file, "buffer", file)
        is_large = table.is_large or len(table.kept) > ROWS_OF_PART
        if is_large and self.kind != "xlsx" and table.kept.any():
            return PartsFile(out, table, self, names)
        return LabelsTable(out, table, self, names)


class LineWriter:
    """Writes lines of CSV."""

    def __init__(self, out: TextFile) -> None:
        self.writer = csv.writer(out, lineterminator="\n")
        self.quoting_writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)

    def write(self, cells: Sequence[Any]) -> None:
        # Python before 3.13 does not quote a carriage return, which ends a line when it is read.
        is_risky = any(isinstance(cell, str) and "\r" in cell for cell in cells)
        (self.quoting_writer if is_risky else self.writer).writerow(cells)


class LabelsFile:
    """A CSV file with a line per row of a table, in its order, written block by block.

    Rows that were dropped because of missing values have empty fields. Ids that a spreadsheet would
    take for a formula get an apostrophe, unless they are wanted as they are (``raw_ids``).
    """

    def __init__(
        self,
        out: TextFile,
        table: Table,
        *,
        raw_ids: bool = False,
        names: Sequence[str] | None = None,
    ) -> None:
        self.lines = LineWriter(out)
        self.key = table.key
        plain = raw_ids or self.key == "row"
        ids = table.ids if plain else map(without_formula, table.ids)
        self.rows = zip(ids, table.kept, strict=True)
        self.names = names  # of the clusters
        self.fields: list[str] = []

    def write(self, answer: Answer) -> None:
        """The labels of the next rows, and their confidence if the method has one."""
        columns = label_columns(answer, self.names)
        self._begin(list(columns))
        if answer.confidence is not None:
            columns["confidence"] = [f"{value:.4f}" for value in answer.confidence]
        if answer.novelty is not None:
            columns["novelty"] = [f"{value:.6f}" for value in answer.novelty]
        for values in zip(*columns.values(), strict=True):
            for row_id, kept in self.rows:
                self._write_row(row_id, values if kept else self._empty)
                if kept:
                    break

    def finish(self) -> None:
        """The dropped rows after the last label."""
        self._begin(["label", *(["name"] if self.names else []), "confidence"])
        for row_id, _ in self.rows:
            self._write_row(row_id, self._empty)

    def _write_row(self, row_id: Any, values: Iterable[Any]) -> None:
        self.lines.write([row_id, *values])

    def _begin(self, fields: list[str]) -> None:
        if not self.fields:
            self.fields = fields
            self.lines.write([self.key, *fields])

    @property
    def _empty(self) -> list[str]:
        return [""] * len(self.fields)


def label_columns(answer: Answer, names: Sequence[str] | None) -> dict[str, list[Any]]:
    """Labels, names of their clusters, confidence and novelty, what there is of them."""
    columns: dict[str, list[Any]] = {"label": answer.labels.tolist()}
    if names:
        columns["name"] = [names[label] if label >= 0 else "" for label in columns["label"]]
    if answer.confidence is not None:
        columns["confidence"] = answer.confidence.tolist()
    if answer.novelty is not None:
        columns["novelty"] = answer.novelty.tolist()
    return columns


class PartsFile:
    """A file of any size, put together from parts that are written while rows are labeled."""

    def __init__(
        self, out: BinaryIO, table: Table, form: LabelsFormat, names: Sequence[str] | None
    ) -> None:
        self.out, self.form = out, form
        self.files = tempfile.TemporaryDirectory(prefix="deccs-labels-")
        folder, with_columns = Path(self.files.name), form.with_columns
        self.parts = PartsWriter(
            folder, table, names, with_columns=with_columns, with_embedding=False
        )
        self.parts.start()
        self.n_labels = 0  # so far
        self.coming = own_parts(int(table.kept.sum()), ALONE)[::-1]  # the next one is the last

    def write(self, answer: Answer) -> None:
        """The labels of the next rows."""
        start, stop = self.n_labels, self.n_labels + len(answer)
        while start < stop:
            part = self.coming[-1]
            end = min(part.stop, stop)
            self.parts.write(answer.rows(np.arange(start, end) - self.n_labels))
            if end == part.stop:
                self.parts.finish(self.coming.pop())
            start = end
        self.n_labels = stop

    def finish(self) -> None:
        """Write the file."""
        import polars as pl

        labels = labels_in_parts(self.parts.folder)
        schema = labels.collect_schema()
        if "confidence" in schema:
            labels = labels.with_columns(pl.col("confidence").round(4))
        if self.form.kind == "parquet":
            labels.sink_parquet(self.out)
        else:
            texts = [name for name, dtype in schema.items() if dtype == pl.String]
            if not self.form.raw_ids:
                labels = labels.with_columns(safe_text(name) for name in texts if name != "name")
            labels.sink_csv(self.out)
        self.files.cleanup()


class LabelsTable:
    """Labels as CSV, Parquet or Excel, with the columns of the file beside them if that is wanted."""

    def __init__(
        self, out: BinaryIO, table: Table, form: LabelsFormat, names: Sequence[str] | None
    ) -> None:
        self.out, self.table, self.form, self.names = out, table, form, names
        self.columns: dict[str, list[Any]] = {}

    def write(self, answer: Answer) -> None:
        """Kept until all are there: these formats are not written row by row."""
        for name, values in label_columns(answer, self.names).items():
            self.columns.setdefault(name, []).extend(values)

    def finish(self) -> None:
        """Write the file."""
        import polars as pl

        kept = self.table.kept
        named = self._columns_of_file()
        key = self.table.key
        labels = {key: self._ids(key)}
        for name, values in (self.columns or {"label": []}).items():
            some = pl.Series(name, values, dtype=None if values else pl.Int64)
            if name == "confidence":
                some = some.round(4)
            labels[name] = spread(some, kept) if len(some) else pl.Series(name, [None] * len(kept))
        frame = pl.DataFrame([values.alias(name) for name, values in labels.items()])
        if named is not None:
            if self.table.id_column == key:  # it is there already
                named = named.drop(key)
            named = named.rename(names_beside(labels, named.collect_schema().names()))
        if self.form.kind == "xlsx":
            whole = (
                frame if named is None else pl.concat([frame, named.collect()], how="horizontal")
            )
            whole.write_excel(self.out, autofit=True)
            return
        lazy = frame.lazy()
        if named is not None:
            lazy = pl.concat([lazy, named], how="horizontal")
        if self.form.kind == "parquet":
            lazy.sink_parquet(self.out)
        else:
            lazy.sink_csv(self.out)

    def _ids(self, key: str) -> Any:
        import polars as pl

        ids = self.table.ids.tolist()
        if key == "id" and not self.form.raw_ids and self.form.kind == "csv":
            ids = [without_formula(name) for name in ids]
        return pl.Series(key, ids)

    def _columns_of_file(self) -> Any:
        """The columns of the file, lazily; None if they are not wanted."""
        import polars as pl

        if not self.form.with_columns:
            return None
        frame = self.table.frame
        assert frame is not None
        schema = frame.collect_schema()
        if self.form.kind != "csv" or self.form.raw_ids:  # cells of others say that they are text
            return frame
        texts = [name for name, dtype in schema.items() if dtype == pl.String]
        return frame.with_columns(safe_text(name) for name in texts)


def safe_text(name: str) -> Any:
    """A column whose cells a spreadsheet takes for text, as :func:`without_formula` does it."""
    import polars as pl

    cell = pl.col(name)
    is_formula = cell.str.contains(r"^'*[=+\-@\t\r\n]") & ~cell.str.contains(
        f"^(?:{NUMBER.pattern})$"
    )
    return pl.when(is_formula).then("'" + cell).otherwise(cell).alias(name)


def rename_in_labels(path: Path, names: Sequence[str]) -> None:
    """Write the names of clusters into a file of labels that has them."""
    if path.suffix == ".csv":
        rename_in_csv(path, names)
        return
    import polars as pl

    labels_frame(path)  # it may come from anyone
    excel: Any = {"infer_schema_length": None, "drop_empty_rows": False, "drop_empty_cols": False}
    is_excel = path.suffix == ".xlsx"
    frame = pl.read_excel(path, **excel) if is_excel else pl.read_parquet(path)
    if "name" not in frame.columns:
        return
    name = frame["label"].replace_strict(dict(enumerate(names)), default="", return_dtype=pl.String)
    frame = frame.with_columns(pl.when(frame["label"].is_not_null()).then(name).alias("name"))
    with replacing(path) as file:
        if is_excel:
            frame.write_excel(file, autofit=True)
        else:
            frame.write_parquet(file)


def rename_in_csv(path: Path, names: Sequence[str]) -> None:
    with readable(path), path.open(encoding="utf-8", newline="") as old, replacing(path) as file:
        reader = csv.reader(short_lines(old, path))
        out = LineWriter(codecs.getwriter("utf-8")(file))
        header = next(reader, [])
        check_header(path, header)
        out.write(header)
        place = header.index("name") if "name" in header else None
        for row in reader:
            _, label = checked_row(row, len(header), path, reader.line_num)
            if place is not None and label is not None and label >= 0:
                row[place] = names[label] if label < len(names) else ""
            out.write(row)


def labels_frame(path: Path) -> Any:
    """What rows are named by, and their labels, of a Parquet or Excel file; both are checked."""
    import polars as pl
    import polars.selectors as cs

    raw = read_raw(path, as_text=("id",))
    check_header(path, list(raw.names))
    assert raw.frame is not None
    labels = raw.frame.select(raw.names[:2]).collect()
    known = labels["label"].drop_nulls()
    # A spreadsheet has no whole numbers.
    is_whole = known.dtype.is_integer() or (known.dtype.is_float() and (known % 1 == 0).all())
    if len(known) and not (is_whole and known.is_between(-1, MOST_CLUSTERS - 1).all()):
        raise RunError(
            f"{path}: label must be a whole number from -1 to {MOST_CLUSTERS - 1:,} in every row."
        )
    return labels.with_columns(cs.float().cast(pl.Int64, strict=False))


def read_labels(path: Path, *, raw_ids: bool) -> tuple[str, dict[str, int]]:
    """What rows are named by, "id" or "row", and the labels of those that have one."""
    if path.name == LABELS_PARTS:
        return read_parts(path)
    if path.suffix == ".csv":
        return read_csv_labels(path, raw_ids=raw_ids)
    frame = labels_frame(path)
    key = frame.columns[0]
    names = frame[key].cast(str).to_list()
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise RunError(f"{path}: the {key} {twice!r:.60} occurs twice.")
    labels = zip(names, frame["label"].to_list(), strict=True)
    return key, {name: label for name, label in labels if label is not None}


def read_parts(folder: Path) -> tuple[str, dict[str, int]]:
    """The labels of a large run; each part is checked."""
    labels: dict[str, int] = {}
    key, n_rows = "", 0
    for path in sorted(folder.glob("part-*.parquet")):
        part_key, part = read_labels(path, raw_ids=True)
        labels |= part
        n_rows += len(part)
        if part_key != (key or part_key) or len(labels) < n_rows:
            raise RunError(f"{path}: its rows are named otherwise, or are in an earlier part, too.")
        key = part_key
    if not key:
        raise RunError(f"{folder} has no part-*.parquet. Is it from a finished run?")
    return key, labels


def read_csv_labels(path: Path, *, raw_ids: bool) -> tuple[str, dict[str, int]]:
    """The labels of a CSV file, of which every line is checked."""
    labels: dict[str, int] = {}
    with readable(path), path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(short_lines(file, path))
        header = next(reader, [])
        check_header(path, header)
        for row in reader:
            name, label = checked_row(row, len(header), path, reader.line_num)
            name = name if raw_ids else with_formula(name)
            if name in labels:
                raise RunError(
                    f"{path}, line {reader.line_num}: the {header[0]} {name!r:.60} occurs twice."
                )
            if label is not None:
                labels[name] = label
    return header[0], labels


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Name the file where its content is no text, or no CSV."""
    try:
        yield
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}.") from error


def check_header(path: Path, header: Sequence[str]) -> None:
    if header[:1] not in (["id"], ["row"]) or header[1:2] != ["label"]:
        raise RunError(
            f"{path}: the first line must name the columns id (or row), label and "
            f"confidence, got {header[:3]!r:.100}."
        )


def short_lines(file: TextIO, path: Path) -> Iterator[str]:
    """The lines of a file; one that would fill the memory is an error."""
    while line := file.readline(MOST_LINE):
        if len(line) == MOST_LINE:
            raise RunError(f"{path} has a line of more than {MOST_LINE:,} characters.")
        yield line


def checked_row(row: list[str], n_fields: int, path: Path, line: int) -> tuple[str, int | None]:
    """The name and the label of a line; None where a row has no label."""
    if len(row) != n_fields:
        raise RunError(f"{path}, line {line}: {n_fields} fields are expected, got {len(row)}.")
    name, text = row[:2]
    if text == "":
        return name, None
    if not re.fullmatch(r"-1|[0-9]{1,7}", text) or int(text) >= MOST_CLUSTERS:
        raise RunError(
            f"{path}, line {line}: label must be a whole number from -1 to {MOST_CLUSTERS - 1:,}, "
            f"got {text!r:.60}."
        )
    return name, int(text)
