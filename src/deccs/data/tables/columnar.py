"""Parquet, Feather and Arrow files: scanned, and read into memory if they are small."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from deccs.data.scanned import SurveyedFrame, joined, survey_part
from deccs.data.tables.frames import LARGE, POLARS_ERRORS, finished, plain_columns, reason
from deccs.data.tables.isolated import SECONDS, IsolatedError, isolated
from deccs.data.tables.raw import OpenedFile, RawTable, TableError, listed
from deccs.data.tables.readers import PARQUET_ENDINGS, PARTS, reader
from deccs.data.tables.scratch import scratch
from deccs.group.group import ALONE, Group, check_same, share

PARQUET, ARROW = b"PAR1", b"ARRO"  # first bytes
SLOWEST = 10 * 2**20  # bytes a second: even a slow network drive reads so fast
CELL, TEXT_CELL = 8, 32  # bytes in memory, about
NO_DATA = (".md", ".crc", ".json", ".yaml", ".yml")  # what describes data beside them
SAMPLE, CURRENT = "sample.arrow", "current.txt"  # what the other process leaves behind


@reader(*PARQUET_ENDINGS)
def read_parquet(path: Path, *, as_text: Collection[str] = (), group: Group = ALONE) -> RawTable:
    check_parquet(path)
    return checked(path, [path], "parquet", as_text, group)


@reader(".feather", ".arrow")
def read_arrow(path: Path, *, as_text: Collection[str] = (), group: Group = ALONE) -> RawTable:
    first = first_bytes(path)
    if first == PARQUET:
        raise TableError(f"{path} is Parquet. Rename it, so that it ends in .parquet.")
    if first != ARROW and path.stat().st_size > LARGE:
        raise TableError(
            f"{path} is a stream of Arrow data, too large to be read as a whole. Save it as Parquet."
        )
    return checked(path, [path], "arrow" if first == ARROW else "stream", as_text, group)


@reader(PARTS)
def read_parts(path: Path, *, as_text: Collection[str] = (), group: Group = ALONE) -> RawTable:
    """All Parquet files below a folder, or of a pattern, in the order of their names, as one table."""
    if (path / "_delta_log").is_dir():
        raise TableError(
            f"{path} is a Delta table: its files also hold rows that were deleted. Write its rows to a "
            "Parquet file, and give that."
        )
    files = files_of(path)
    for file in files:
        check_parquet(file)
    return checked(path, files, "parquet", as_text, group)


def files_of(path: Path) -> list[Path]:
    """The files of a folder or a pattern, in order; those that begin with a dot or an underscore are not data."""
    if path.is_dir():
        found, root = path.rglob("*"), path
    else:
        root = Path(path.anchor)
        found = root.glob(str(path.relative_to(root) if path.is_absolute() else path))
    files = sorted(
        file
        for file in found
        if file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(root).parts)
        and file.suffix.lower() not in NO_DATA
    )
    others = [file for file in files if file.suffix.lower() not in PARQUET_ENDINGS]
    if not files or others:
        what = f"{listed(others, 3)} is not Parquet" if others else "no file is there"
        raise TableError(
            f"{path} must name Parquet files, but {what}. Give a folder of them alone, or a pattern such as "
            f"{(path if path.is_dir() else path.parent) / '*.parquet'}."
        )
    return files


def check_parquet(path: Path) -> None:
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty. Copy or make it again.")
    if first_bytes(path) != PARQUET:
        raise TableError(f"{path} is not Parquet. Give it the ending of what it is.")


def checked(
    place: Path, files: Sequence[Path], kind: str, as_text: Collection[str], group: Group
) -> RawTable:
    """The table, after all of it could be read in another process: polars ends the process over some damage.

    That process also draws a sample of a table that is too large for memory, so that one pass does for both.
    In a group each has such a process, which reads its part of a large table.
    """
    opened = tuple(OpenedFile.of(file) for file in files)
    check_same(group, {file.path.name: f"{file.size} bytes" for file in opened})
    names = [str(file.absolute()) for file in files]
    seconds = SECONDS + sum(file.size for file in opened) // SLOWEST
    with scratch() as there:
        folder = there.file(SAMPLE).parent
        try:
            request = (names, kind, list(as_text), str(folder), group.rank, group.size)
            seen = group.each(lambda: isolated(f"{__name__}:look", *request, seconds=seconds))[
                group.rank
            ]
            frame, notes = scan(names, kind)
            raw = finished(
                place,
                frame,
                n_rows=seen["n_rows"],
                as_text=as_text,
                notes=notes,
                is_large=seen["is_large"],
                survey=survey_from(folder, seen, group),
                files=opened if seen["is_large"] else (),
            )
        except (IsolatedError, *POLARS_ERRORS) as error:
            raise TableError(
                f"{damaged(place, names, kind, folder, seconds)} cannot be read: {reason(error)}. Check that the "
                "file is complete and has the right ending."
            ) from error
        raw.check()
    return raw


def damaged(place: Path, names: list[str], kind: str, folder: Path, seconds: int) -> object:
    """Which of several files cannot be read."""
    if len(names) == 1:
        return place
    try:
        isolated(f"{__name__}:read_each", names, kind, str(folder), seconds=seconds)
    except IsolatedError:
        return (folder / CURRENT).read_text()
    return place


def look(
    names: list[str], kind: str, as_text: list[str], folder: str, rank: int, size: int
) -> dict[str, Any]:
    """Read every value once: how many rows there are, and of large tables what is missing, and a sample.

    Of a large table one of several processes reads its share.
    """
    frame, _ = scan(names, kind)
    n_rows = int(frame.select(pl.len()).collect().item())  # what the ends of the files say
    schema = frame.collect_schema()
    cells = sum(CELL if dtype.is_numeric() else TEXT_CELL for dtype in schema.dtypes())
    # A few bytes may stand for many equal rows: their size in memory decides.
    is_large = n_rows * cells > LARGE
    columns, _ = plain_columns(schema, as_text)
    if not is_large or not columns:
        return {"n_rows": read_each(names, kind, folder), "is_large": is_large}
    part = share(n_rows, rank, size)
    surveyed = survey_part(frame.select(columns.values()), n_rows, part)
    if surveyed.n_rows != part.stop - part.start:
        raise ValueError(
            f"it should have {n_rows:,} rows, and {part.start + surveyed.n_rows:,} were read"
        )
    surveyed.sample.write_ipc(Path(folder) / SAMPLE)
    return {
        "n_rows": n_rows,
        "is_large": True,
        "n_missing": surveyed.n_missing,
        "part": [part.start, part.stop],
    }


def read_each(names: list[str], kind: str, folder: str) -> int:
    """Read all values of files one after the other; how many rows there are."""
    n_rows = 0
    for name in names:
        (Path(folder) / CURRENT).write_text(name)  # which file it was, if it ends the process
        batches = scan_one(name, kind).collect_batches(maintain_order=False)
        n_rows += sum(rows.height for rows in batches)
    return n_rows


def survey_from(folder: Path, seen: dict[str, Any], group: Group) -> SurveyedFrame | None:
    """What the other processes have seen of a large table."""
    if not seen["is_large"] or not (folder / SAMPLE).exists():
        return None
    sample = pl.read_ipc((folder / SAMPLE).read_bytes())
    if group.size == 1:
        return SurveyedFrame.of_sample(sample, seen["n_missing"], seen["n_rows"])
    start, stop = seen["part"]
    return joined(SurveyedFrame(sample, np.arange(0), seen["n_missing"], stop - start), group)


def scan(names: Sequence[str], kind: str) -> tuple[pl.LazyFrame, tuple[str, ...]]:
    """Files as one frame, with what to tell the user; columns are found by name."""
    frames = [scan_one(name, kind) for name in names]
    schemas = [frame.collect_schema() for frame in frames] if len(frames) > 1 else []
    if all(schema == schemas[0] and list(schema) == list(schemas[0]) for schema in schemas):
        if len(frames) == 1:
            return frames[0], ()
        return pl.scan_parquet(list(names), glob=False, hive_partitioning=False), ()
    first = schemas[0]
    for name, schema in zip(names, schemas, strict=True):
        check_alike(name, schema, names[0], first)
    more = {name for schema in schemas for name in schema if name not in first}
    notes = (f"Left out, for not all files have them: {listed(sorted(more))}.",) if more else ()
    alike = [frame.select(list(first)) for frame in frames]
    return pl.concat(alike, how="vertical_relaxed"), notes


def check_alike(name: str, schema: pl.Schema, first_name: str, first: pl.Schema) -> None:
    """Raise a ValueError if a file lacks columns of the first one, or has other types."""
    absent = [column for column in first if column not in schema]
    if absent:
        raise TableError(
            f"{name} has no column {listed(map(repr, absent))}, and {first_name} has. "
            "Leave the file out, or add what is missing."
        )
    for column, dtype in first.items():
        other = schema[column]
        if group_of(other) != group_of(dtype) and pl.Null not in (other, dtype):
            raise TableError(
                f"{name}: column {column!r} holds {other}, and that of {first_name} {dtype}. "
                "Convert one of them."
            )


def group_of(dtype: pl.DataType) -> object:
    """Types of one group have a type that can hold the values of all of them.

    >>> group_of(pl.Int8()) == group_of(pl.Float64()), group_of(pl.Int8()) == group_of(pl.String())
    (True, False)
    """
    if dtype.is_numeric():
        return "number"
    is_text = dtype in (pl.String, pl.Categorical, pl.Enum)
    return "text" if is_text else dtype.base_type() if dtype == pl.Datetime else dtype


def scan_one(name: str, kind: str) -> pl.LazyFrame:
    if kind == "parquet":
        # A folder named a=1 would become a column, and a star in the name other files.
        return pl.scan_parquet(name, glob=False, hive_partitioning=False)
    return pl.scan_ipc(name, glob=False) if kind == "arrow" else pl.read_ipc_stream(name).lazy()


def first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)
