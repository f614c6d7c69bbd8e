"""``labels.csv``: a line per row of a table, written block by block and read with suspicion."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, TextIO

from deccs.answer import Answer
from deccs.app.run_error import RunError
from deccs.data.tables import Table

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


class LabelsFile:
    """A CSV file with a line per row of a table, in its order, written block by block.

    Rows that were dropped because of missing values have empty fields. Ids that a spreadsheet would
    take for a formula get an apostrophe, unless they are wanted as they are (``raw_ids``).
    """

    def __init__(self, out: TextFile, table: Table, *, raw_ids: bool = False) -> None:
        self.writer = csv.writer(out, lineterminator="\n")
        self.quoting_writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
        self.key = "row" if table.ids.dtype.kind == "i" else "id"
        plain = raw_ids or self.key == "row"
        names = table.ids if plain else map(without_formula, table.ids)
        self.rows = zip(names, table.kept, strict=True)
        self.fields: list[str] = []

    def write(self, answer: Answer) -> None:
        """The labels of the next rows, and their confidence if the method has one."""
        self._begin(["label"] if answer.confidence is None else ["label", "confidence"])
        columns: list[Any] = [answer.labels.tolist()]
        if answer.confidence is not None:
            columns.append([f"{value:.4f}" for value in answer.confidence])
        for values in zip(*columns, strict=True):
            for name, kept in self.rows:
                self._write_row(name, values if kept else self._empty)
                if kept:
                    break

    def finish(self) -> None:
        """The dropped rows after the last label."""
        self._begin(["label", "confidence"])
        for name, _ in self.rows:
            self._write_row(name, self._empty)

    def _write_row(self, name: Any, values: Iterable[Any]) -> None:
        # Python before 3.13 does not quote a carriage return, which ends a line when it is read.
        writer = self.quoting_writer if "\r" in str(name) else self.writer
        writer.writerow([name, *values])

    def _begin(self, fields: list[str]) -> None:
        if not self.fields:
            self.fields = fields
            self.writer.writerow([self.key, *fields])

    @property
    def _empty(self) -> list[str]:
        return [""] * len(self.fields)


def read_labels(path: Path, *, raw_ids: bool) -> tuple[str, dict[str, int]]:
    """What rows are named by, "id" or "row", and the labels of those that have one."""
    labels: dict[str, int] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(short_lines(file, path))
            header = next(reader, [])
            if header[:1] not in (["id"], ["row"]) or header[1:2] != ["label"]:
                raise RunError(
                    f"{path}: the first line must name the columns id (or row), label and "
                    f"confidence, got {header[:3]!r:.100}."
                )
            for row in reader:
                name, label = checked_row(row, len(header), path, reader.line_num)
                name = name if raw_ids else with_formula(name)
                if name in labels:
                    raise RunError(
                        f"{path}, line {reader.line_num}: the {header[0]} {name!r:.60} occurs twice."
                    )
                if label is not None:
                    labels[name] = label
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}.") from error
    return header[0], labels


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
