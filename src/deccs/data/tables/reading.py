"""From a file to the table of numbers that is clustered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from deccs.data.tables.columns import (
    check_numeric,
    choose_columns,
    notes_on_long_numbers,
    row_ids,
)
from deccs.data.tables.missing import Complete, complete
from deccs.data.tables.raw import RawTable, TableError, listed
from deccs.data.tables.readers import read_raw


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers to cluster, and what is needed to read another file in the same way."""

    values: np.ndarray  # (n_rows, n_features), NaN only in rows that are not kept
    feature_names: tuple[str, ...]
    ids: np.ndarray  # (n_rows,) text, or row numbers from 0
    kept: np.ndarray  # (n_rows,) False where a row was dropped because of missing values
    id_column: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)  # column -> reason
    others: dict[str, np.ndarray] = field(default_factory=dict)  # (n_rows,) each, to color by
    image_shape: tuple[int, int] | None = None
    missing: str = "error"
    means: tuple[float, ...] = ()  # (n_features,) of the values that are not missing
    encoding: str = "utf-8"
    header: bool | None = None
    notes: tuple[str, ...] = ()  # sentences the user should read

    @cached_property
    def X(self) -> np.ndarray:
        """The rows that are kept: (n_kept, n_features). Copied at most once."""
        return self.values if self.kept.all() else self.values[self.kept]

    def preprocessing(self) -> dict[str, Any]:
        """What a model must remember to read next month's file: plain JSON, for ``deccs.storage.save``."""
        return {
            "feature_names": list(self.feature_names),
            "id_column": self.id_column,
            "missing": self.missing,
            "means": list(self.means),
            "image_shape": None if self.image_shape is None else list(self.image_shape),
            "encoding": self.encoding,
            "header": self.header,
        }


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    missing: str = "error",
    encoding: str = "utf-8",
    header: bool | None = None,
) -> Table:
    """Read a file for a fit.

    Parameters
    ----------
    path : CSV, TSV, Parquet, Feather, .npy, .npz (array X), a folder of images of one size, or a file with an
        ending that another reader has registered
    columns : names of the columns to cluster; None takes the numeric ones and says which were left out, and why
    id_column : a column that names the rows; without it they are numbered from 0 (images: their file names)
    missing : "error", "drop" (rows with missing values get no label) or "mean" (of the column)
    encoding : of CSV and TSV
    header : whether CSV and TSV begin with column names; None to guess

    Raises
    ------
    TableError : the message says what was wrong, where, and what to do
    """
    raw = read_raw(Path(path), encoding, header, as_text(id_column))
    if len(raw.numbers) < 2:
        raise TableError(f"{path} has one row. Clustering needs at least two rows.")
    ids = row_ids(raw, id_column, path)
    names, left_out = choose_columns(raw, columns, id_column, path)
    checked = complete(path, raw.features(names), names, missing)
    if checked.kept.sum() < 2:
        raise TableError(
            f"{path}: {checked.kept.sum()} of {len(ids)} rows are without missing values, and clustering "
            "needs at least two. Leave out the emptiest columns with --columns, or use --missing mean."
        )
    notes = (*raw.notes, *notes_on_long_numbers(raw, names), *checked.notes)
    if len(names) == 1:
        notes = (*notes, f"Only one column is clustered, {names[0]!r}: the clusters are ranges.")
    how = {"missing": missing, "encoding": encoding, "header": header, "ids": ids}
    return as_table(
        raw, checked, names, id_column, left_out, means=checked.means, notes=notes, **how
    )


def read_like(
    path: str | Path,
    preprocessing: Mapping[str, Any],
    *,
    missing: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> Table:
    """Read another file as the model's file was read: its columns by name, its ids, its missing values.

    Columns may be in another order, and there may be more. An array, or a CSV file without a header, has no names: it
    must have as many columns as the model, in the model's order.

    Parameters
    ----------
    path : the file
    preprocessing : ``Table.preprocessing()`` of the table the model was fitted on
    missing, encoding, header : as in ``read_table``; None for the same as in the fit
    """
    encoding = encoding or preprocessing.get("encoding") or "utf-8"
    header = preprocessing.get("header") if header is None else header
    missing = missing or preprocessing.get("missing", "error")
    names, id_column = tuple(preprocessing["feature_names"]), preprocessing.get("id_column")
    raw = read_raw(Path(path), encoding, header, as_text(id_column))
    check_image_shape(raw, preprocessing.get("image_shape"), path)
    notes: tuple[str, ...] = raw.notes
    if id_column is not None and id_column not in (*raw.names, *raw.extras):
        notes = (*notes, f"There is no column {id_column!r}: rows are numbered from 0.")
        id_column = None
    values, left_out, column_notes = model_columns(raw, names, id_column, path)
    checked = complete(path, values, names, missing, preprocessing.get("means"))
    how = {"missing": missing, "encoding": encoding, "header": header}
    how |= {"means": tuple(preprocessing.get("means", ())), "ids": row_ids(raw, id_column, path)}
    notes = (*notes, *column_notes, *checked.notes)
    return as_table(raw, checked, names, id_column, left_out, notes=notes, **how)


def as_table(
    raw: RawTable,
    checked: Complete,
    names: tuple[str, ...],
    id_column: str | None,
    left_out: dict[str, str],
    **rest: Any,
) -> Table:
    """The table of the columns that are clustered, with the others beside it."""
    return Table(
        values=checked.values,
        feature_names=names,
        kept=checked.kept,
        id_column=id_column,
        left_out=left_out,
        others=other_columns(raw, left_out, id_column),
        image_shape=raw.image_shape,
        **rest,
    )


def as_text(id_column: str | None) -> tuple[str, ...]:
    """Ids are kept as they are written: 007 is not 7."""
    return () if id_column is None else (id_column,)


def other_columns(
    raw: RawTable, left_out: Iterable[str], id_column: str | None
) -> dict[str, np.ndarray]:
    """(n_rows,) each: what is neither clustered nor the id."""
    return {name: raw.column(name) for name in (*left_out, *raw.extras) if name != id_column}


def check_image_shape(raw: RawTable, expected: Sequence[int] | None, path: object) -> None:
    if expected and raw.image_shape and tuple(expected) != raw.image_shape:
        raise TableError(
            f"{path}: the images are {raw.image_shape}, the model needs {tuple(expected)} (height, width). "
            "Resize them."
        )


def model_columns(
    raw: RawTable, names: tuple[str, ...], id_column: str | None, path: object
) -> tuple[np.ndarray, dict[str, str], tuple[str, ...]]:
    """The model's columns of a file, why others are left out, and what to tell the user."""
    if not raw.has_names and raw.names != names:
        if len(raw.names) != len(names):
            raise TableError(
                f"{path} has {len(raw.names)} columns and no names; the model needs {len(names)}: "
                f"{listed(names)}. Give a file with these names, or exactly these columns in this order."
            )
        note = "The file has no column names: its columns are taken in the model's order."
        return raw.numbers, {}, (note,)
    known = set(raw.names)
    if absent := [name for name in names if name not in known]:
        raise TableError(
            f"{path} lacks columns the model needs: {listed(absent)}. It has {listed(raw.names)}."
        )
    used = {*names, id_column}
    left_out = {name: "not in the model" for name in raw.names if name not in used}
    check_numeric(raw, names, path)
    notes = (f"Not in the model, ignored: {listed(left_out)}.",) if left_out else ()
    return raw.features(names), left_out, notes
