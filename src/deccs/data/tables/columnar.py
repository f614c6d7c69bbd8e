"""Parquet and Feather, with pyarrow."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from deccs.data.tables.raw import RawTable, TableError, check_names
from deccs.data.tables.readers import reader


@reader(".parquet", ".pq", ".feather", ".arrow")
def read_columnar(path: Path, *, as_text: Collection[str] = ()) -> RawTable:
    table = read_arrow(path)
    names = tuple(table.column_names)
    check_names(path, names)
    numbers = np.full((table.num_rows, len(names)), np.nan)
    texts: dict[str, np.ndarray] = {}
    reasons: dict[str, str] = {}
    for place, name in enumerate(names):
        column = table.column(place)
        reason = "ids" if name in as_text else reason_for_text(column.type)
        if reason is None:
            # Whole numbers above 2^53 are rounded: whoever uses the column is told.
            values = column.cast("float64", safe=False).fill_null(np.nan)
            numbers[:, place] = values.to_numpy(zero_copy_only=False)
        else:
            cells = ["" if value is None else str(value) for value in column.to_pylist()]
            texts[name], reasons[name] = np.array(cells, dtype=object), reason
    return RawTable(names, numbers, texts=texts, reasons=reasons)


def read_arrow(path: Path) -> Any:
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError as error:
        raise TableError(
            f'{path} needs pyarrow: pip install "deccs[tables]". Or save the table as CSV.'
        ) from error
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            # In this thread: pyarrow waits for ever where there is no memory to start its own.
            with parquet.ParquetFile(path, pre_buffer=False) as file:
                return file.read(use_threads=False)
        return feather.read_table(path)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(
            f"{path} cannot be read: {error}. Check that the file is complete and has the right ending."
        ) from error


def reason_for_text(kind: Any) -> str | None:
    """Why a column of this Arrow type is text to us; None for numbers and booleans."""
    from pyarrow import types

    is_number = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(check(kind) for check in is_number):
        return None
    if types.is_temporal(kind):
        return "dates"
    if types.is_nested(kind):
        return "lists or records"
    return "no values" if types.is_null(kind) else "text"
