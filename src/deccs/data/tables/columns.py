"""Which columns of a file are clustered, and which one names the rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from deccs.data.tables.raw import RawTable, TableError, as_unicode, listed

ID_NAME = re.compile(r"(.*[ _.-])?(id|ids|uuid|guid|index|idx|key|row)|unnamed: \d+", re.IGNORECASE)
ENOUGH_TO_COUNT = 10  # in three rows, 1, 2, 3 may be chance
EXACT, KEYS_BELOW = 2.0**53, 2.0**64  # between them whole numbers are rounded, and are mostly keys


def row_ids(raw: RawTable, id_column: str | None, path: object) -> np.ndarray:
    """(n_rows,) row numbers, or the ids as text, each of them once."""
    if id_column is None:
        return np.arange(len(raw.numbers)) if raw.ids is None else raw.ids
    if id_column not in (*raw.names, *raw.extras):
        raise unknown_column(path, [id_column], (*raw.names, *raw.extras))
    ids = np.array(
        [as_unicode(str(value).strip()) for value in raw.column(id_column)], dtype=object
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


def choose_columns(
    raw: RawTable, columns: Sequence[str] | None, id_column: str | None, path: object
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The names of the columns to cluster, and why the others are left out."""
    if columns is not None:
        return requested_columns(raw, columns, id_column, path)
    if raw.all_features:
        return raw.names, {}
    reasons = {
        name: raw.reasons.get(name) or reason_to_leave_out(name, raw.numbers[:, place])
        for place, name in enumerate(raw.names)
        if name != id_column
    }
    chosen = tuple(name for name, reason in reasons.items() if reason is None)
    left_out = {name: reason for name, reason in reasons.items() if reason is not None}
    if not chosen:
        why = listed(f"{name}: {reason}" for name, reason in left_out.items())
        raise TableError(
            f"{path} has no column of numbers to cluster ({why or 'only the ids'}). Convert text to "
            "numbers first, or choose columns with --columns."
        )
    return chosen, left_out


def requested_columns(
    raw: RawTable, columns: Sequence[str], id_column: str | None, path: object
) -> tuple[tuple[str, ...], dict[str, str]]:
    known = set(raw.names)
    if absent := [name for name in columns if name not in known]:
        raise unknown_column(path, absent, raw.names)
    if len(set(columns)) < len(columns) or not columns:
        raise TableError(
            f"--columns must name each column once, got {', '.join(columns) or 'none'}."
        )
    check_numeric(raw, columns, path)
    used = {*columns, id_column}
    left_out = {name: "not asked for" for name in raw.names if name not in used}
    return tuple(columns), left_out


def reason_to_leave_out(name: str, column: np.ndarray) -> str | None:
    """Why a column of numbers says nothing about clusters; None if it may.

    >>> reason_to_leave_out("size", np.array([3.0, 3.0]))
    'all values are 3'
    >>> reason_to_leave_out("user_id", np.array([17.0, 4.0]))
    'named like an id, every value once'
    >>> reason_to_leave_out("account key", np.array([2.0**60, 2.0**60]) + [0, 256])
    'named like an id, whole numbers above 2^53'
    """
    values = column[~np.isnan(column)]
    if len(values) == 0:
        return "no values"
    if (values == values[0]).all():
        return f"all values are {values[0]:g}"
    if len(values) < len(column):
        return None
    rows = np.arange(len(values))
    if len(rows) >= ENOUGH_TO_COUNT and values[0] in (0, 1) and (values == rows + values[0]).all():
        return "counts the rows"
    if not ID_NAME.fullmatch(name) or (values != np.floor(values)).any():
        return None
    if has_long_numbers(values):  # rounded, so that two ids may have become one
        return "named like an id, whole numbers above 2^53"
    return "named like an id, every value once" if len(np.unique(values)) == len(values) else None


def has_long_numbers(values: np.ndarray) -> bool:
    """Whether there are whole numbers that are rounded here, such as 64-bit keys."""
    size = np.abs(values)
    return bool(((size > EXACT) & (size <= KEYS_BELOW)).any())


def notes_on_long_numbers(raw: RawTable, names: Sequence[str]) -> tuple[str, ...]:
    """What to tell of columns that are clustered although their numbers have more than 16 digits."""
    if raw.all_features:
        return ()
    long = [name for name in names if has_long_numbers(raw.column(name))]
    if not long:
        return ()
    note = (
        f"Whole numbers above 2^53 are rounded to 16 digits: {listed(long)}. If they are keys, leave "
        "them out with --columns, or keep one with --id."
    )
    return (note,)


def check_numeric(raw: RawTable, names: Sequence[str], path: object) -> None:
    not_numeric = [f"{name}: {raw.reasons[name]}" for name in names if name in raw.texts]
    if not_numeric:
        raise TableError(
            f"{path}: columns must be numbers, these are not: {listed(not_numeric)}. Correct the file, or "
            "leave them out."
        )


def unknown_column(path: object, absent: Sequence[str], names: Sequence[str]) -> TableError:
    close = get_close_matches(absent[0], names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return TableError(
        f"{path} has no column {', '.join(map(repr, absent))}.{hint} It has {listed(names, 20)}."
    )
