"""JSON lines: an object a line, whose keys are the columns."""

from __future__ import annotations

import glob
import json
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from deccs.data.tables.column_types import typed_texts
from deccs.data.tables.frames import LARGE, POLARS_ERRORS, finished, reason
from deccs.data.tables.raw import RawTable, TableError, listed, shortened
from deccs.data.tables.readers import PACKED, reader
from deccs.data.tables.scratch import scratch
from deccs.data.tables.text_files import (
    check_head,
    check_utf_8,
    has_mark,
    open_bytes,
    open_text,
    transcode,
    whole_lines,
)

NESTED = "nested"
TYPES: dict[frozenset[str], pl.DataType] = {
    frozenset(): pl.String(),
    frozenset({"bool"}): pl.Boolean(),
    frozenset({"int"}): pl.Int64(),
    frozenset({"float"}): pl.Float64(),
    frozenset({"int", "float"}): pl.Float64(),
}


@reader(*(ending + packed for packed in ("", *PACKED) for ending in (".jsonl", ".ndjson")))
def read_json_lines(
    path: Path, *, encoding: str = "utf-8", as_text: Collection[str] = ()
) -> RawTable:
    name = check_head(path, encoding)
    with scratch() as files:
        place = path
        if name != "utf-8" or has_mark(path):
            place = files.file("utf-8.jsonl")
            transcode(path, name, place)
        is_large = checked_size(place) > LARGE
        try:
            frame, notes = opened(path, place, is_large)
            texts = [name for name, dtype in frame.collect_schema().items() if dtype == pl.String]
            columns, more_notes = typed_texts(
                frame,
                texts,
                as_text,
                only_dates=True,
                place=lambda row: f"line {line_of(place, row):,}",
            )
            table = finished(
                path,
                frame.with_columns(columns),
                as_text=as_text,
                notes=(*notes, *more_notes),
                is_large=is_large,
            )
        except POLARS_ERRORS as error:
            raise TableError(
                f'{path} cannot be read: {reason(error)}. Give an object a line, such as {{"size": 1.5}}.'
            ) from error
        if is_large:
            files.keep()
        return table


def checked_size(path: Path) -> int:
    """Bytes of text, all of them UTF-8 and no line too long."""
    size = 0
    with open_bytes(path) as file:
        for block in whole_lines(path, file, quotes=False):
            if not block.isascii():
                check_utf_8(path, block)
            size += len(block)
    return size


def opened(path: Path, place: Path, is_large: bool) -> tuple[pl.LazyFrame, tuple[str, ...]]:
    """The rows, and what to tell. polars finds the types of a small file, which it has in memory as a whole."""
    source = glob.escape(str(place))
    if not is_large:
        try:
            frame = pl.scan_ndjson(source, infer_schema_length=None)
            return frame.collect(engine="streaming").lazy(), ()
        except pl.exceptions.PolarsError:  # a broken line, or types that do not go together
            pass
    types, nested = types_of(path, place)
    frame = pl.scan_ndjson(source, schema=types)
    notes = (f"Left out, for they hold lists or records: {listed(nested)}.",) if nested else ()
    if is_large:
        frame.select(pl.all().null_count()).collect(engine="streaming")
        return frame, notes
    return frame.collect(engine="streaming").lazy(), notes


def types_of(path: Path, place: Path) -> tuple[dict[str, pl.DataType], list[str]]:
    """The type of each key over all lines, text if they differ; and the keys with lists or records."""
    kinds: dict[str, set[str]] = {}
    for _, value in objects(path, place):
        for name, cell in value.items():
            kinds.setdefault(name, set())
            if cell is not None:
                kinds[name].add(kind_of(cell))
    if not kinds:
        raise TableError(f"{path} has no columns: its lines are empty objects.")
    nested = [name for name, found in kinds.items() if NESTED in found]
    types = {
        name: TYPES.get(frozenset(found), pl.String())
        for name, found in kinds.items()
        if name not in nested
    }
    if not types:
        raise TableError(f"{path} holds only lists or records: {listed(nested)}. Flatten them.")
    return types, nested


def kind_of(cell: Any) -> str:
    """What a value is; a whole number beyond 64 bits is text, to keep its digits.

    >>> kind_of(True), kind_of(2), kind_of(2**70), kind_of([1])
    ('bool', 'int', 'str', 'nested')
    """
    if isinstance(cell, list | dict):
        return NESTED
    if isinstance(cell, int) and not -(2**63) <= cell < 2**63:
        return "str"
    return type(cell).__name__


def objects(path: Path, place: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of all lines that are not blank; an error names the line."""
    with open_text(place) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line, parse_constant=refuse_constant)
            except (ValueError, RecursionError) as error:
                raise TableError(
                    f"{path}: line {number} is not JSON: {error}. Correct that line: {shortened(line.strip())!r}."
                ) from error
            if not isinstance(value, dict):
                raise TableError(
                    f"{path}: line {number} is not an object but {shortened(line.strip())!r}. Give an object a line, "
                    'such as {"size": 1.5}.'
                )
            yield number, value


def refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON; write null for a missing value")


def line_of(place: Path, row: int) -> int:
    with open_text(place) as file:
        filled = (number for number, line in enumerate(file, start=1) if line.strip())
        return next(islice(filled, row, None))
