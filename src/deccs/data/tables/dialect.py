"""The format of a delimited file, guessed from its first lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

import numpy as np

from deccs.data.tables.raw import TableError
from deccs.data.tables.text_files import MAX_LINE

SAMPLE = 200  # lines that delimiter, decimal mark and header are guessed from
SAMPLE_CHARACTERS = 4 * 2**20  # at most, and two lines at least
DELIMITERS = ("\t", ";", ",")  # in this order: 1,5;2,5 has commas as regularly as semicolons
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "?")
SWAP_MARKS = str.maketrans(",.", ".,")  # with decimal commas, 1.5 is not a number
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r"[+-]?\d+,\d+"), re.compile(r"[+-]?\d*\.\d+")
LONG_FIELDS = RLock()


@dataclass(frozen=True)
class Dialect:
    """How a file is written."""

    delimiter: str
    decimal: str
    header: bool
    width: int  # fields of the first record


def dialect_of(path: Path, lines: Sequence[str], header: bool | None) -> Dialect:
    """Delimiter, decimal mark and header, from the first lines.

    >>> dialect_of(Path("a.csv"), ["name;size", "ann;1,5", "bob;2,5"], None)
    Dialect(delimiter=';', decimal=',', header=True, width=2)
    """
    parsed = {delimiter: sample_records(lines, delimiter) for delimiter in DELIMITERS}
    if {".tsv", ".tab"} & {suffix.lower() for suffix in path.suffixes[-2:]}:
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


def has_header(records: Sequence[Sequence[str]], decimal: str = ".") -> bool:
    """Whether the first record names the columns: a word above numbers, or only distinct words.

    >>> has_header([["id", "1"], ["7", "0.5"]]), has_header([["ann", "1"], ["bob", "2"]])
    (True, False)
    """
    first, rest = records[0], records[1:]
    words = [number(cell, decimal) is None for cell in first]
    for place, is_word in enumerate(words):
        below = [number(record[place], decimal) for record in rest if place < len(record)]
        if is_word and below and None not in below and not np.isnan(below).all():  # type: ignore[arg-type]
            return True
    return all(words) and len(set(first)) == len(first)


def number(cell: str, decimal: str) -> float | None:
    """The number in a cell, NaN if it says that there is none, None for a word.

    >>> number("1,5", ","), number("NA", "."), number("1_000", ".")
    (1.5, nan, None)
    """
    word = cell.strip().lower()
    if word in MISSING:
        return np.nan
    try:
        return float("_" if "_" in word else word.translate(SWAP_MARKS) if decimal == "," else word)
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(word)


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
