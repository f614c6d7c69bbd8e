"""Frames of all formats made alike: plain columns, gaps as null, small ones in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from deccs.data.scanned import SurveyedFrame
from deccs.data.tables.raw import OpenedFile, RawTable, TableError, check_names, listed

LARGE = 256 * 2**20  # bytes of text or of cells from which on a table stays on the disk
# What polars raises for damaged files; a panic is an error in polars itself.
POLARS_ERRORS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    OSError,
    MemoryError,
    OverflowError,
)
WIDE_NUMBERS = (pl.Int128, pl.UInt128)


def reason(error: BaseException) -> str:
    """The first line of an error: what polars adds is advice about its parameters."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def finished(
    path: object,
    frame: pl.LazyFrame,
    *,
    n_rows: int | None = None,
    as_text: Collection[str] = (),
    has_names: bool = True,
    notes: Sequence[str] = (),
    is_large: bool = False,
    survey: SurveyedFrame | None = None,
    files: tuple[OpenedFile, ...] = (),
) -> RawTable:
    """The table of a frame. Columns that no method could use are dropped, with a note."""
    schema = frame.collect_schema()
    check_names(path, schema)
    columns, dropped = plain_columns(schema, as_text)
    if not columns:
        raise TableError(
            f"{path} has no column of numbers, text or dates ({listed(dropped) or 'no column at all'})."
        )
    frame = frame.select(columns.values()) if dropped else frame.with_columns(columns.values())
    if dropped:
        what = listed(f"{name} ({dtype})" for name, dtype in dropped.items())
        notes = (*notes, f"Left out, for they hold lists, records or bytes: {what}.")
    if not is_large:
        rows = frame.collect(engine="streaming")
        n_rows, frame = rows.height, rows.lazy()
    elif n_rows is None:
        n_rows = int(frame.select(pl.len()).collect(engine="streaming").item())
    if n_rows == 0:
        raise TableError(f"{path} has no rows. Give at least two.")
    return RawTable(
        frame=frame,
        names=tuple(columns),
        has_names=has_names,
        notes=tuple(notes),
        n_rows=n_rows,
        is_large=is_large,
        survey=survey,
        files=files,
    )


def plain_columns(
    schema: pl.Schema, as_text: Collection[str] = ()
) -> tuple[dict[str, pl.Expr], dict[str, pl.DataType]]:
    """Name -> the column as a plain type, and name -> type of those that have none.

    >>> columns, dropped = plain_columns(pl.Schema({"a": pl.Int8, "b": pl.List(pl.Int8)}))
    >>> list(columns), dropped
    (['a'], {'b': List(Int8)})
    """
    columns: dict[str, pl.Expr] = {}
    dropped: dict[str, pl.DataType] = {}
    for name, dtype in schema.items():
        column = plain(pl.col(name), dtype, as_text=name in as_text)
        if column is None:
            dropped[name] = dtype
        else:
            columns[name] = column
    return columns, dropped


def plain(column: pl.Expr, dtype: pl.DataType, *, as_text: bool) -> pl.Expr | None:
    """The column as a plain type without NaN; None for lists, records, bytes and the like."""
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
        return None
    if as_text or dtype == pl.Null or dtype in WIDE_NUMBERS:  # beyond 64 bits: exact as text
        return column.cast(pl.String)
    if dtype.is_decimal():
        return column.cast(pl.Float64)
    if dtype.is_float():
        return column.fill_nan(None)
    is_known = dtype.is_integer() or dtype.is_temporal()
    return column if is_known or dtype in (pl.Boolean, pl.String, pl.Categorical, pl.Enum) else None
