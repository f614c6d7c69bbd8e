"""Parquet, Feather and Arrow files: scanned, and read into memory if they are small."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import polars as pl

from deccs.data.tables.frames import LARGE, POLARS_ERRORS, finished, reason
from deccs.data.tables.isolated import IsolatedError, isolated
from deccs.data.tables.raw import RawTable, TableError
from deccs.data.tables.readers import reader

PARQUET, ARROW = b"PAR1", b"ARRO"  # first bytes
CELL, TEXT_CELL = 8, 32  # bytes in memory, about


@reader(".parquet", ".pq")
def read_parquet(path: Path, *, as_text: Collection[str] = ()) -> RawTable:
    if first_bytes(path) != PARQUET:
        raise TableError(f"{path} is not Parquet. Give it the ending of what it is.")
    return checked(path, "parquet", as_text)


@reader(".feather", ".arrow")
def read_arrow(path: Path, *, as_text: Collection[str] = ()) -> RawTable:
    first = first_bytes(path)
    if first == PARQUET:
        raise TableError(f"{path} is Parquet. Rename it, so that it ends in .parquet.")
    if first != ARROW and path.stat().st_size > LARGE:
        raise TableError(
            f"{path} is a stream of Arrow data, too large to be read as a whole. Save it as Parquet."
        )
    return checked(path, "arrow" if first == ARROW else "stream", as_text)


def checked(path: Path, kind: str, as_text: Collection[str]) -> RawTable:
    """The table, after all of it could be read in another process: polars ends the process over some damage."""
    try:
        n_rows = isolated(f"{__name__}:count_rows", str(path.absolute()), kind)
        frame = scan(path, kind)
        cells = sum(
            CELL if dtype.is_numeric() else TEXT_CELL for dtype in frame.collect_schema().dtypes()
        )
        # A few bytes may stand for many equal rows: their size in memory decides.
        return finished(
            path, frame, n_rows=n_rows, as_text=as_text, is_large=n_rows * cells > LARGE
        )
    except (IsolatedError, *POLARS_ERRORS) as error:
        raise TableError(
            f"{path} cannot be read: {reason(error)}. Check that the file is complete and has the right ending."
        ) from error


def count_rows(path: str, kind: str) -> int:
    """How many rows there are, after every value was read."""
    return sum(rows.height for rows in scan(Path(path), kind).collect_batches(maintain_order=False))


def scan(path: Path, kind: str) -> pl.LazyFrame:
    if kind == "parquet":
        # A folder named a=1 would become a column, and a star in the name other files.
        return pl.scan_parquet(path, glob=False, hive_partitioning=False)
    return pl.scan_ipc(path, glob=False) if kind == "arrow" else pl.read_ipc_stream(path).lazy()


def first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)
