"""CSV and TSV with the standard library, in blocks of rows: only numbers are kept after a block is parsed.

Nothing in the file can make memory grow without bound: no line or quoted text may be longer than
``MAX_LINE``, and what is read ahead has a bound, too.
"""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from threading import RLock
from typing import TextIO

import numpy as np

from deccs.data.tables.raw import RawTable, TableError, check_names, position_names
from deccs.data.tables.readers import reader

MAX_LINE = 10 * 2**20  # characters
SAMPLE = 200  # lines that delimiter, decimal mark and header are guessed from
SAMPLE_CHARACTERS = 4 * 2**20  # at most, and two lines at least
BLOCK = 1_000  # rows
BLOCK_CHARACTERS = 16 * 2**20  # at most, and two lines at least
LONG_FIELDS = RLock()
DELIMITERS = ("\t", ";", ",")  # in this order: 1,5;2,5 has commas as regularly as semicolons
MISSING = frozenset(("", "na", "n/a", "#n/a", "nan", "null", "none", "?"))
TRUTH = {"true": 1.0, "false": 0.0}
SWAP_MARKS = str.maketrans(",.", ".,")  # with decimal commas, 1.5 is not a number
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r"[+-]?\d+,\d+"), re.compile(r"[+-]?\d*\.\d+")
DATE = re.compile(r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ].*)?")
OTHER_FORMATS = {
    b"PAR1": "Parquet",
    b"ARROW1": "Feather",
    b"PK\x03\x04": "a zip archive (.npz or .xlsx)",
    b"\x1f\x8b": "gzip",
    b"\x93NUMPY": ".npy",
    b"\x89PNG": "a PNG image",
}


@dataclass(frozen=True)
class Dialect:
    """The format of a file, guessed from its first lines."""

    delimiter: str
    decimal: str
    header: bool
    width: int  # fields of the first record


@reader(".csv", ".tsv", ".tab", ".txt", ".data", ".dat")
def read_delimited(
    path: Path,
    *,
    encoding: str = "utf-8",
    header: bool | None = None,
    as_text: Collection[str] = (),
) -> RawTable:
    """Read all columns of a CSV or TSV file. Those in ``as_text`` are text, whatever they hold."""
    text = dict.fromkeys(as_text, "ids")
    with open_text(path, encoding) as file, long_fields():
        try:
            while True:
                raw, late_text = parse(path, file, header, text)
                if not late_text:
                    return raw
                # Numbers at first and a word further down: read again, to get that column as it is written.
                text |= late_text
                file.seek(0)
        except UnicodeDecodeError as error:
            raise wrong_encoding(path, encoding) from error


@contextmanager
def long_fields() -> Iterator[None]:
    """Let the csv module read fields of up to ``MAX_LINE`` characters; its own limit is 131,072.

    The limit belongs to the whole process: it is put back, and one thread at a time may change it.
    """
    with LONG_FIELDS:
        before = csv.field_size_limit(MAX_LINE)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def open_text(path: Path, encoding: str) -> TextIO:
    try:
        name = codecs.lookup(encoding).name
    except LookupError as error:
        raise TableError(
            f"Unknown --encoding {encoding}. Give one such as utf-8, cp1252 or utf-16."
        ) from error
    with path.open("rb") as file:
        head = file.read(8192)
    if not head.strip():
        raise TableError(f"{path} is empty. Give a table with one row per line.")
    for magic, file_format in OTHER_FORMATS.items():
        if head.startswith(magic):
            raise TableError(
                f"{path} is {file_format}, not text. Give it the right ending, or unpack it."
            )
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and name == "utf-8":
        raise TableError(f"{path} is UTF-16. Add --encoding utf-16.")
    if b"\0" in head and not name.startswith(("utf-16", "utf-32")):
        raise TableError(
            f"{path} is not text: there is a zero byte at position {head.index(0)}. Give a CSV or TSV "
            "file; if it is UTF-16 text, add --encoding utf-16."
        )
    return path.open(encoding="utf-8-sig" if name == "utf-8" else name, newline="")


class Lines:
    """The lines of a file, none longer than ``MAX_LINE``; lines read ahead can be put back."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path, self.file = path, file
        self.number = 0  # of the line read last, from 1
        self.put_aside = deque[str]()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.put_aside.popleft() if self.put_aside else self.file.readline(MAX_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > MAX_LINE:
            raise TableError(
                f"{self.path}: line {self.number} is longer than {MAX_LINE // 2**20} MB. Give a file "
                "with one row per line."
            )
        return line

    def ahead(self, n_lines: int, n_characters: int) -> list[str]:
        """The next lines, as many as these bounds allow; at least two if there are any."""
        lines: list[str] = []
        left = n_characters
        for line in islice(self, n_lines):
            lines.append(line)
            left -= len(line)
            if left <= 0 and len(lines) > 1:
                break
        return lines

    def put_back(self, lines: Sequence[str]) -> None:
        self.put_aside.extendleft(reversed(lines))
        self.number -= len(lines)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows; columns are identified by their position."""

    numbers: np.ndarray  # (n_rows, n_columns), NaN where missing or text
    texts: dict[int, list[str]]  # place -> (n_rows,) cells
    reasons: dict[int, str]  # place -> why it is text, for columns that were not text before


def parse(
    path: Path, file: TextIO, header: bool | None, as_text: Mapping[str, str]
) -> tuple[RawTable, dict[str, str]]:
    """The columns, and those (with the reason) that turned out to be text only after blocks of numbers."""
    lines = Lines(path, file)
    first = lines.ahead(SAMPLE, SAMPLE_CHARACTERS)
    dialect = dialect_of(path, first, header)
    lines.put_back(first)
    names = position_names(dialect.width)
    if dialect.header:
        _, opening = records_of(lines, 1, dialect)[0]
        names = tuple(
            name.strip() or position for name, position in zip(opening, names, strict=True)
        )
    check_names(path, names)

    texts: dict[int, list[str]] = {place: [] for place, name in enumerate(names) if name in as_text}
    reasons = {place: as_text[names[place]] for place in texts}
    late_text: dict[str, str] = {}
    blocks: list[np.ndarray] = []
    while ahead := lines.ahead(BLOCK, BLOCK_CHARACTERS):
        block = fast_block(ahead, texts, dialect)
        if block is None:
            lines.put_back(ahead)
            block = careful_block(records_of(lines, len(ahead), dialect), texts, dialect)
        if blocks:
            late_text |= {names[place]: reason for place, reason in block.reasons.items()}
        reasons |= block.reasons
        for place, cells in block.texts.items():
            texts.setdefault(place, []).extend(cells)
        blocks.append(block.numbers)
    if not sum(map(len, blocks)):
        raise TableError(
            f"{path} has a header but no rows. Give at least two rows, "
            "or --no-header if the first line is data."
        )
    columns = (
        {}
        if late_text
        else {names[place]: np.array(cells, dtype=object) for place, cells in texts.items()}
    )
    named_reasons = {names[place]: reason for place, reason in reasons.items()}
    raw = RawTable(
        names, joined(blocks), has_names=dialect.header, texts=columns, reasons=named_reasons
    )
    return raw, late_text


def fast_block(lines: Sequence[str], text: Collection[int], dialect: Dialect) -> Block | None:
    """Rows by NumPy's parser; None if a value is missing, quoted or out of place."""
    if dialect.decimal != "." or any('"' in line for line in lines):
        return None
    runs = [
        (is_text, len(list(places)))
        for is_text, places in groupby(range(dialect.width), text.__contains__)
    ]
    kinds = [
        (f"run {start}", object if is_text else np.float64, (width,))
        for start, (is_text, width) in enumerate(runs)
    ]
    try:
        with warnings.catch_warnings(action="error"):
            rows = np.loadtxt(
                lines, np.dtype(kinds), comments=None, delimiter=dialect.delimiter, ndmin=1
            )
    except (ValueError, UserWarning):  # a word, a gap, a ragged row; or nothing but blank lines
        return None
    numbers, texts, place = np.full((len(rows), dialect.width), np.nan), dict[int, list[str]](), 0
    for (is_text, width), (run, _, _) in zip(runs, kinds, strict=True):
        if is_text:
            texts |= {
                place + column: [cell.strip() for cell in cells]
                for column, cells in enumerate(rows[run].T)
            }
        else:
            numbers[:, place : place + width] = rows[run]
        place += width
    return Block(numbers, texts, {})


def careful_block(
    records: Sequence[tuple[int, list[str]]], text: Collection[int], dialect: Dialect
) -> Block:
    """Rows cell by cell: missing values, decimal commas, and why a column is text."""
    block = Block(np.full((len(records), dialect.width), np.nan), {}, {})
    for place, cells in enumerate(zip(*(record for _, record in records), strict=True)):
        values = None if place in text else numbers_of(cells, dialect.decimal)
        if values is not None:
            block.numbers[:, place] = values
        else:
            block.texts[place] = [cell.strip() for cell in cells]
            if place not in text:
                block.reasons[place] = reason_for_text(
                    [line for line, _ in records], cells, dialect.decimal
                )
    return block


def records_of(lines: Lines, n_lines: int, dialect: Dialect) -> list[tuple[int, list[str]]]:
    """(line number, fields) of the next records without blank lines: ``n_lines`` lines, more if quoted text goes on."""
    before = lines.number
    parser = csv.reader(lines, delimiter=dialect.delimiter, strict=True, skipinitialspace=True)
    records: list[tuple[int, list[str]]] = []
    try:
        while parser.line_num < n_lines and (record := next(parser, None)) is not None:
            if not record:
                n_lines += not records  # blank lines may come before the header
                continue
            if len(record) != dialect.width:
                raise TableError(
                    f"{lines.path}: line {lines.number} has {len(record)} fields, the first line has "
                    f"{dialect.width}. Correct that line; text that contains {dialect.delimiter!r} must be quoted."
                )
            records.append((lines.number, record))
    except csv.Error as error:
        raise TableError(
            f"{lines.path}: line {before + parser.line_num}: {error}. Look for an unclosed quote."
        ) from error
    return records


def dialect_of(path: Path, lines: Sequence[str], header: bool | None) -> Dialect:
    """Delimiter, decimal mark and header, from the first lines.

    >>> dialect_of(Path("a.csv"), ["name;size", "ann;1,5", "bob;2,5"], None)
    Dialect(delimiter=';', decimal=',', header=True, width=2)
    """
    parsed = {delimiter: sample_records(lines, delimiter) for delimiter in DELIMITERS}
    if path.suffix.lower() in (".tsv", ".tab"):
        delimiter = "\t"
    else:
        regular = [
            mark
            for mark, records in parsed.items()
            if len({len(record) for record in records}) == 1 and len(records[0]) > 1
        ]
        widest = max(
            DELIMITERS[::-1],
            key=lambda mark: max((len(record) for record in parsed[mark][:1]), default=0),
        )
        delimiter = regular[0] if regular else widest
    records = parsed[delimiter]
    if not records:
        raise TableError(f"{path} is empty. Give a table with one row per line.")
    cells = [cell.strip() for record in records for cell in record]
    decimal = "."
    if (
        delimiter != ","
        and any(map(DECIMAL_COMMA.fullmatch, cells))
        and not any(map(DECIMAL_POINT.fullmatch, cells))
    ):
        decimal = ","
    return Dialect(
        delimiter,
        decimal,
        has_header(records, decimal) if header is None else header,
        len(records[0]),
    )


def sample_records(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The records without blank lines; quoted text that goes on after the sample is left out."""
    records: list[list[str]] = []
    with suppress(csv.Error):  # a quote without an end: the parser of all lines will say where
        for record in csv.reader(lines, delimiter=delimiter, skipinitialspace=True):
            if record:
                records.append(record)
    goes_on = sum(line.count('"') for line in lines) % 2 == 1
    return records[:-1] if goes_on and len(records) > 1 else records


def has_header(records: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the first record names the columns: a word above numbers, or only distinct words.

    >>> has_header([["id", "1"], ["7", "0.5"]], "."), has_header([["ann", "1"], ["bob", "2"]], ".")
    (True, False)
    """
    first, rest = records[0], records[1:]
    words = [number(cell, decimal) is None for cell in first]
    for place, is_word in enumerate(words):
        below = [number(record[place], decimal) for record in rest if place < len(record)]
        if is_word and below and None not in below and not np.isnan(below).all():  # type: ignore[arg-type]
            return True
    return all(words) and len(set(first)) == len(first)


def numbers_of(cells: Sequence[str], decimal: str) -> np.ndarray | None:
    """(n,) with NaN for missing values; None if a cell is not a number.

    >>> numbers_of(("1", "NA", "2.5"), "."), numbers_of(("1", "one"), ".")
    (array([1. , nan, 2.5]), None)
    """
    if decimal == "." and "_" not in "".join(cells):  # Python reads 2020_01 as a number
        try:
            return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        except ValueError:
            pass
    values = [number(cell, decimal) for cell in cells]
    return None if None in values else np.array(values, dtype=np.float64)


def number(cell: str, decimal: str) -> float | None:
    word = cell.strip().lower()
    if word in MISSING:
        return np.nan
    try:
        return float("_" if "_" in word else word.translate(SWAP_MARKS) if decimal == "," else word)
    except ValueError:
        return TRUTH.get(word)


def reason_for_text(line_numbers: Sequence[int], cells: Sequence[str], decimal: str) -> str:
    words = [
        (line, cell.strip())
        for line, cell in zip(line_numbers, cells, strict=True)
        if number(cell, decimal) is None
    ]
    if all(DATE.fullmatch(word) for _, word in words):
        return "dates"
    line, word = words[0]
    return f"text ({word if len(word) <= 30 else word[:29] + '…'!r} in line {line})"


def joined(blocks: list[np.ndarray]) -> np.ndarray:
    """One array of all blocks; each block is freed once copied, so that memory does not double."""
    table = np.empty((sum(map(len, blocks)), blocks[0].shape[1]))
    end = len(table)
    while blocks:
        block = blocks.pop()
        table[end - len(block) : end] = block
        end -= len(block)
    return table


def wrong_encoding(path: Path, encoding: str) -> TableError:
    """An error with the position in the file: the decoder knows only the position in its buffer."""
    decoder = codecs.getincrementaldecoder(encoding)()
    done, line = 0, 1
    with path.open("rb") as file:
        while True:
            block = file.read(2**20)
            pending = len(decoder.getstate()[0])
            try:
                line += decoder.decode(block, final=not block).count("\n")
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                return TableError(
                    f"{path} is not {encoding}: byte 0x{error.object[error.start]:02x} at position "
                    f"{done - pending + error.start} (line {line}). Give its encoding, e.g. --encoding cp1252."
                )
            done += len(block)
            if not block:
                return TableError(
                    f"{path} is not {encoding}. Give its encoding, e.g. --encoding cp1252."
                )
