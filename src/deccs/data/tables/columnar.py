"""Parquet and Feather, with pyarrow."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from deccs.data.tables.source import Source, TableError, check_names


def read_columnar(path: Path, *, as_text: Collection[str] = ()) -> Source:
    table = read_arrow(path)
    names = tuple(table.column_names)
    check_names(path, names)
    numbers = np.full((table.num_rows, len(names)), np.nan)
    texts, reasons = {}, {}
    for place, name in enumerate(names):
        column = table.column(place)
        reason = "ids" if name in as_text else why_no_number(column.type)
        if reason is None:
            numbers[:, place] = (
                column.cast("float64").to_numpy(zero_copy_only=False)
                if column.null_count == 0
                else column.cast("float64").fill_null(np.nan).to_numpy(zero_copy_only=False)
            )
        else:
            values = ["" if value is None else str(value) for value in column.to_pylist()]
            texts[name], reasons[name] = np.array(values, dtype=object), reason
    return Source(names, numbers, texts=texts, reasons=reasons)


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
            return parquet.read_table(path)
        return feather.read_table(path)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(
            f"{path} cannot be read: {error}. Is it whole, and is its ending right?"
        ) from error


def why_no_number(kind: Any) -> str | None:
    """None for numbers and true/false."""
    from pyarrow import types

    if (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    ):
        return None
    if types.is_temporal(kind):
        return "dates"
    if types.is_nested(kind):
        return "lists or records"
    return "no values" if types.is_null(kind) else "text"
