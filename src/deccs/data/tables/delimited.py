"""CSV and TSV. polars reads them; the csv module rewrites what polars would misread, and names the line of an error."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import polars as pl

from deccs.data.kinds import CODE_WORDS, words_of
from deccs.data.tables.column_types import survey, typed_texts
from deccs.data.tables.dialect import (
    SAMPLE,
    SAMPLE_CHARACTERS,
    Dialect,
    dialect_of,
    long_fields,
    sample_records,
)
from deccs.data.tables.frames import LARGE, POLARS_ERRORS, finished, reason
from deccs.data.tables.raw import RawTable, TableError, check_names, position_names
from deccs.data.tables.readers import PACKED, reader
from deccs.data.tables.scratch import Scratch, scratch
from deccs.data.tables.text_files import (
    Lines,
    check_head,
    open_text,
    survey_of,
    transcode,
    wrong_encoding,
)

ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".data", ".dat")
INFERRED = 20_000_000  # cells at most that types are guessed from
PADDED = re.compile(r"0\d+")
DIRECT = (pl.Int64, pl.Float64, pl.Boolean)  # types that polars reads at once, other cells as text


@reader(*(ending + packed for packed in ("", *PACKED) for ending in ENDINGS))
def read_delimited(
    path: Path,
    *,
    encoding: str = "utf-8",
    header: bool | None = None,
    as_text: Collection[str] = (),
) -> RawTable:
    """Read all columns of a CSV or TSV file. Those in ``as_text`` are text, whatever they hold."""
    name = check_head(path, encoding)
    with scratch() as files:
        place = path
        if name not in ("utf-8", "ascii"):
            place = files.file("utf-8.txt")
            transcode(path, name, place)
        try:
            with long_fields():
                table = opened(path, place, header, files)
        except UnicodeDecodeError as error:
            raise wrong_encoding(path, encoding) from error
        try:
            return read(table, frozenset(as_text), files)
        except POLARS_ERRORS as error:
            raise TableError(
                f"{path} cannot be read: {reason(error)}. Look for cells that are not as in the other lines."
            ) from error


@dataclass(frozen=True)
class Delimited:
    """A delimited file that polars and the csv module read alike."""

    path: Path  # for messages
    source: Path  # as it is, in UTF-8
    place: Path  # that polars reads: the source, or what the csv module made of it
    dialect: Dialect
    names: tuple[str, ...]
    n_records: int  # with the header
    n_bytes: int
    lines_are_rows: bool  # no blank lines, no line breaks in quotes
    codes: frozenset[str] = frozenset()  # columns whose digits are text: 04116 is no number

    @property
    def n_rows(self) -> int:
        return self.n_records - self.dialect.header

    @property
    def is_rewritten(self) -> bool:
        return self.place != self.source

    def scan(self, types: Sequence[pl.DataType] | None) -> pl.LazyFrame:
        """The rows; without types they are guessed, and columns have numbers as names."""
        schema = None if types is None else dict(zip(self.names, types, strict=True))
        rows = max(10, min(1_000, INFERRED // len(self.names)))
        return pl.scan_csv(
            self.place,
            has_header=False,
            skip_rows=int(self.dialect.header),
            separator=self.dialect.delimiter,
            decimal_comma=self.dialect.decimal == ",",
            schema=schema,
            infer_schema_length=rows,
            glob=False,
        ).head(self.n_rows)  # blank lines at the end would be rows

    def line_of(self, row: int) -> int:
        """The line of the file where a row ends, from 1."""
        if self.lines_are_rows:
            return row + 1 + self.dialect.header
        place = row + self.dialect.header
        with open_text(self.source) as file, long_fields():
            records = records_of(Lines(self.path, file), self.dialect)
            return next(line for line, _ in islice(records, place, None))


def opened(path: Path, source: Path, header: bool | None, files: Scratch) -> Delimited:
    """The file's format and names, and the file itself rewritten if polars would misread it."""
    with open_text(source) as file:
        lines = Lines(path, file)
        first = lines.ahead(SAMPLE, SAMPLE_CHARACTERS)
        dialect = dialect_of(path, first, header)
        names = position_names(dialect.width)
        if dialect.header:
            lines.put_back(first)
            _, opening = next(records_of(lines, dialect))
            names = tuple(
                name.strip() or position for name, position in zip(opening, names, strict=True)
            )
    check_names(path, names)
    found = survey_of(source, dialect.delimiter)
    table = Delimited(
        path, source, source, dialect, names, found.n_records, found.n_bytes, not found.has_quotes
    )
    table = replace(table, codes=codes_among(names, sample_records(first, dialect.delimiter)))
    if not found.is_plain:
        table = rewritten(table, files)
    if not table.n_rows:
        raise TableError(
            f"{path} has a header but no rows. Give at least two rows, "
            "or --no-header if the first line is data."
        )
    return table


def codes_among(names: Sequence[str], records: Sequence[Sequence[str]]) -> frozenset[str]:
    """Columns that are named like a code, or have numbers that begin with 0: their digits are kept as they are.

    >>> sorted(codes_among(["zip_code", "part", "size"], [["10115", "007", "0.5"], ["04116", "12", "0"]]))
    ['part', 'zip_code']
    """
    return frozenset(
        name
        for place, name in enumerate(names)
        if CODE_WORDS & set(words_of(name))
        or any(PADDED.fullmatch(record[place].strip()) for record in records if place < len(record))
    )


def rewritten(table: Delimited, files: Scratch) -> Delimited:
    """The table as the csv module reads it, written plainly; an error names the line."""
    n_records, target = 0, files.file("table.csv")
    with (
        long_fields(),
        open_text(table.source) as file,
        target.open("w", encoding="utf-8", newline="") as out,
    ):
        writer = csv.writer(out, delimiter=table.dialect.delimiter, lineterminator="\n")
        for _, record in records_of(Lines(table.path, file), table.dialect):
            writer.writerow(record)
            n_records += 1
    size = target.stat().st_size
    return replace(table, place=target, n_records=n_records, n_bytes=size, lines_are_rows=False)


def records_of(lines: Lines, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """(line number, fields) of the records without blank lines."""
    parser = csv.reader(lines, delimiter=dialect.delimiter, strict=True, skipinitialspace=True)
    try:
        for record in parser:
            if not record:
                continue
            if len(record) != dialect.width:
                raise TableError(
                    f"{lines.path}: line {lines.number} has {len(record)} fields, the first line has "
                    f"{dialect.width}. Correct that line; text that contains {dialect.delimiter!r} must be quoted."
                )
            yield lines.number, record
    except csv.Error as error:
        raise TableError(
            f"{lines.path}: line {lines.number}: {error}. Look for an unclosed quote."
        ) from error


def read(table: Delimited, as_text: frozenset[str], files: Scratch) -> RawTable:
    """The rows with their types. A small file comes into memory, a large one stays where it is."""
    as_text |= table.codes
    is_large = table.n_bytes > LARGE
    try:
        base, types = loaded(table, as_text, is_large)
        is_whole = has_values(base, table.names[-1]) or fields_fit(table)
    except pl.exceptions.PolarsError:
        if table.is_rewritten:
            raise
        is_whole = False
    if not is_whole:  # polars fills short lines with gaps; the csv module says which line it is
        table = rewritten(table, files)
        base, types = loaded(table, as_text, is_large)
    texts = [name for name, dtype in types.items() if dtype == pl.String]
    columns, notes = typed_texts(
        base,
        texts,
        as_text,
        decimal=table.dialect.decimal,
        place=lambda row: f"line {table.line_of(row):,}",
    )
    if is_large:
        files.keep()
    return finished(
        table.path,
        base.with_columns(columns),
        n_rows=table.n_rows,
        has_names=table.dialect.header,
        notes=notes,
        is_large=is_large,
    )


def loaded(
    table: Delimited, as_text: frozenset[str], is_large: bool
) -> tuple[pl.LazyFrame, dict[str, pl.DataType]]:
    """The rows and the types polars could read them with: first as guessed, at last as text."""
    text: Sequence[pl.DataType] = [pl.String()] * len(table.names)
    try:
        guessed: Sequence[pl.DataType] = table.scan(None).collect_schema().dtypes()
    except pl.exceptions.PolarsError:  # a whole number of 40 digits
        guessed = text
    if len(guessed) != len(table.names):  # no line is as long as the header
        guessed = text
    types = {
        name: dtype if dtype in DIRECT and name not in as_text else pl.String()
        for name, dtype in zip(table.names, guessed, strict=True)
    }
    try:
        return whole(table, types, is_large), types
    except pl.exceptions.PolarsError:  # words far down, or a line that is too long
        if not fields_fit(table):
            raise
        direct = [name for name, dtype in types.items() if dtype in DIRECT]
        types |= safe_types(table.scan(text), direct, table.dialect.decimal)
    try:
        return whole(table, types, is_large), types
    except pl.exceptions.PolarsError:
        types = dict.fromkeys(table.names, pl.String())
        return whole(table, types, is_large), types


def whole(table: Delimited, types: dict[str, pl.DataType], is_large: bool) -> pl.LazyFrame:
    """The rows, all of which can be read with these types."""
    frame = table.scan(list(types.values()))
    if is_large:
        checked = frame.select(pl.len().alias("len"), pl.all().null_count().name.prefix("null "))
        n_rows = checked.collect(engine="streaming")["len"][0]
    else:
        rows = frame.collect(engine="streaming")
        n_rows, frame = rows.height, rows.lazy()
    if n_rows != table.n_rows:
        raise pl.exceptions.ComputeError(f"{table.n_rows} rows were counted and {n_rows} read")
    return frame


def has_values(frame: pl.LazyFrame, name: str) -> bool:
    """Whether no row lacks a value in this column. In a short line the last one is missing."""
    return frame.select(pl.col(name).null_count()).collect(engine="streaming").item() == 0


def fields_fit(table: Delimited) -> bool:
    """Whether all lines have as many fields as the first."""
    dialect = table.dialect
    return table.is_rewritten or survey_of(table.place, dialect.delimiter, dialect.width).is_plain


def safe_types(texts: pl.LazyFrame, names: Sequence[str], decimal: str) -> dict[str, pl.DataType]:
    """Types that polars can read all cells of these columns with."""
    types: dict[str, pl.DataType] = {}
    for name, counts in survey(texts, names, decimal).items():
        if counts.present < counts.filled:  # words for a missing value
            types[name] = pl.String()
        elif counts.int64 == counts.present:
            types[name] = pl.Int64()
        elif counts.numbers == counts.present and counts.whole == counts.int64:
            types[name] = pl.Float64()
        else:
            types[name] = pl.String()
    return types
