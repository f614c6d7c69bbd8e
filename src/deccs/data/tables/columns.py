"""Names of columns that users give, and the column that names the rows."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from deccs.data.source import each_block, source_of
from deccs.data.tables.raw import RawTable, TableError, as_unicode, listed


def row_ids(raw: RawTable, id_column: str | None, path: object) -> np.ndarray:
    """(n_rows,) row numbers, or the ids as text, each of them once."""
    if id_column is None:
        return np.arange(raw.n_rows) if raw.ids is None else raw.ids
    if raw.is_large:
        return many_ids(raw, id_column, path)
    ids = np.array(
        [as_unicode(str(value).strip()) for value in id_values(raw, id_column)], dtype=object
    )
    if (ids == "").any():
        row = int(np.flatnonzero(ids == "")[0])
        raise TableError(
            f"{path}: {(ids == '').sum()} rows have no id in column {id_column!r}, the first is row {row} "
            "(counted from 0). Give every row an id, or leave --id out."
        )
    distinct, counts = np.unique(ids.astype(str), return_counts=True)
    if (counts > 1).any():
        repeated = distinct[counts > 1]
        raise TableError(
            f"{path}: ids must be unique, but {len(repeated)} ids in column {id_column!r} occur more than "
            f"once: {listed(repeated, 5)}. Correct them, or leave --id out."
        )
    return ids


def many_ids(raw: RawTable, id_column: str, path: object) -> np.ndarray:
    """The same for a table on disk, checked by polars: a hundred bytes a row."""
    import polars as pl

    assert raw.frame is not None
    words = pl.col(id_column).cast(pl.String).str.strip_chars().fill_null("").alias("id")
    ids = raw.frame.select(words).collect(engine="streaming")["id"]
    n_empty, n_repeated = int((ids == "").sum()), len(ids) - ids.n_unique()
    if n_empty or n_repeated:
        what = f"{n_empty:,} rows have no id" if n_empty else f"{n_repeated:,} rows repeat an id"
        raise TableError(
            f"{path}: {what} in column {id_column!r}. Give every row an id of its own, or leave --id out."
        )
    return ids.to_numpy()


def id_values(raw: RawTable, id_column: str) -> Sequence[object]:
    """The values of the column that names the rows, "" where there is none."""
    if id_column in raw.extras:
        return list(raw.extras[id_column])
    if raw.frame is None:
        assert raw.array is not None
        place = raw.names.index(id_column)
        blocks = each_block(source_of(raw.array))
        return [value for _, block in blocks for value in block[:, place]]
    values = raw.frame.select(id_column).collect(engine="streaming" if raw.is_large else "auto")
    return ["" if value is None else value for value in values[id_column].to_list()]


def check_known(path: object, given: Sequence[str], names: Sequence[str]) -> None:
    """Raise a TableError for names that are no columns."""
    known = set(names)
    if absent := [name for name in given if name not in known]:
        raise unknown_column(path, absent, names)


def unknown_column(path: object, absent: Sequence[str], names: Sequence[str]) -> TableError:
    close = get_close_matches(absent[0], names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return TableError(
        f"{path} has no column {', '.join(map(repr, absent))}.{hint} It has {listed(names, 20)}."
    )
