"""Parquet, Feather and Arrow files: scanned, and read into memory if they are small."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import polars as pl

from deccs.data.tables.frames import LARGE, POLARS_ERRORS, finished, reason
from deccs.data.tables.raw import RawTable, TableError
from deccs.data.tables.readers import reader

PARQUET, ARROW = b"PAR1", b"ARROW1"
CELL, TEXT_CELL = 8, 32  # bytes in memory, about


@reader(".parquet", ".pq")
def read_parquet(path: Path, *, as_text: Collection[str] = ()) -> RawTable:
    if first_bytes(path) != PARQUET[:4]:
        raise TableError(f"{path} is not Parquet. Give it the ending of what it is.")
    try:
        # A folder named a=1 would become a column, and a star in the name other files.
        return scanned(path, pl.scan_parquet(path, glob=False, hive_partitioning=False), as_text)
    except POLARS_ERRORS as error:
        raise damaged(path, error) from error


@reader(".feather", ".arrow")
def read_arrow(path: Path, *, as_text: Collection[str] = ()) -> RawTable:
    first = first_bytes(path)
    if first == PARQUET[:4]:
        raise TableError(f"{path} is Parquet. Rename it, so that it ends in .parquet.")
    try:
        if first == ARROW[:4]:
            return scanned(path, pl.scan_ipc(path, glob=False), as_text)
        if path.stat().st_size > LARGE:
            raise TableError(
                f"{path} is a stream of Arrow data, too large to be read as a whole. Save it as Parquet."
            )
        return finished(path, pl.read_ipc_stream(path).lazy(), as_text=as_text)
    except POLARS_ERRORS as error:
        raise damaged(path, error) from error


def first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def scanned(path: Path, frame: pl.LazyFrame, as_text: Collection[str]) -> RawTable:
    """The table; a few bytes may hold many equal rows, so that its size in memory decides."""
    n_rows = int(frame.select(pl.len()).collect(engine="streaming").item())
    cells = sum(CELL if dtype.is_numeric() else TEXT_CELL for dtype in frame.collect_schema().dtypes())
    return finished(path, frame, n_rows=n_rows, as_text=as_text, is_large=n_rows * cells > LARGE)


def damaged(path: Path, error: BaseException) -> TableError:
    return TableError(
        f"{path} cannot be read: {reason(error)}. Check that the file is complete and has the right ending."
    )
