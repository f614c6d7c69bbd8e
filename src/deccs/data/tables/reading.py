"""From a file to the table of numbers that is clustered: which columns, which rows, whose ids."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from deccs.data.tables.arrays import read_npy, read_npz
from deccs.data.tables.columnar import read_columnar
from deccs.data.tables.delimited import read_delimited
from deccs.data.tables.images import read_images
from deccs.data.tables.source import Source, TableError, listed

MISSING_CHOICES = ("error", "drop", "mean")
DELIMITED, COLUMNAR = (
    (".csv", ".tsv", ".tab", ".txt", ".data", ".dat"),
    (".parquet", ".pq", ".feather", ".arrow"),
)
ID_NAME = re.compile(
    r"(.*[ _.-])?(id|ids|uuid|guid|index|idx|key|row)|unnamed: \d+|column 1", re.IGNORECASE
)
ENOUGH_TO_COUNT = 10  # a column 1, 2, 3 of three rows may be chance
BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers to cluster, and what is needed to read another file alike."""

    values: np.ndarray  # (n_rows, n_features), NaN only in rows that are not kept
    feature_names: tuple[str, ...]
    ids: np.ndarray  # (n_rows,) text, or row numbers from 0
    kept: np.ndarray  # (n_rows,) False where a row was dropped for missing values
    id_column: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)  # column -> reason
    others: dict[str, np.ndarray] = field(
        default_factory=dict
    )  # (n_rows,) each: columns to color by
    image_shape: tuple[int, int] | None = None
    missing: str = "error"
    means: tuple[float, ...] = ()  # (n_features,) of the values that are there
    encoding: str = "utf-8"
    header: bool | None = None
    notes: tuple[str, ...] = ()  # sentences the user should read

    @property
    def X(self) -> np.ndarray:
        """The rows that are kept: (n_kept, n_features)."""
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
    path : CSV, TSV, Parquet, Feather, .npy, .npz (array X), or a folder of images of one size
    columns : names of the columns to cluster; None takes the numeric ones and says which it left out, and why
    id_column : a column that names the rows; without it they are numbered from 0 (images: their file names)
    missing : "error", "drop" (rows with missing values get no label) or "mean" (of the column)
    encoding : of CSV and TSV
    header : whether CSV and TSV begin with names; None looks

    Raises
    ------
    TableError : the message says what was wrong, where, and what to do
    """
    source = read_source(Path(path), id_column, encoding, header)
    if len(source.numbers) < 2:
        raise TableError(f"{path} has one row. Clusters need at least two rows.")
    ids = ids_of(source, id_column, path)
    names, left_out = chosen_columns(source, columns, id_column, path)
    values = picked(source, names)
    values, kept, means, notes = without_gaps(path, values, names, missing)
    if kept.sum() < 2:
        raise TableError(
            f"{path}: {kept.sum()} of {len(kept)} rows are without missing values, and clusters need at "
            "least two. Leave out the emptiest columns with --columns, or take --missing mean."
        )
    if len(names) == 1:
        notes = (
            *notes,
            f"Only one column is clustered, {names[0]!r}: the clusters are ranges of it.",
        )
    others = {
        name: values_of(source, name)
        for name in source.names
        if name not in names and name != id_column
    }
    others |= {name: array for name, array in source.beside.items() if name != id_column}
    return Table(
        values,
        names,
        ids,
        kept,
        id_column,
        left_out,
        others,
        source.image_shape,
        missing,
        means,
        encoding,
        header,
        (*source.notes, *notes),
    )


def read_like(
    path: str | Path,
    preprocessing: Mapping[str, Any],
    *,
    missing: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> Table:
    """Read another file the way a model was fitted: its columns by name, its ids, its missing values.

    ``preprocessing`` is that of the fit's table. Columns may stand in another order, and more may be there. An array
    or a CSV file without a header has no names: it must have as many columns as the model, in its order. What is not
    given is as in the fit.
    """
    encoding = encoding or preprocessing.get("encoding") or "utf-8"
    header = preprocessing.get("header") if header is None else header
    features, id_column = tuple(preprocessing["feature_names"]), preprocessing.get("id_column")
    missing = missing or preprocessing.get("missing", "error")
    source = read_source(Path(path), id_column, encoding, header)
    wanted_shape = preprocessing.get("image_shape")
    if wanted_shape and source.image_shape and tuple(wanted_shape) != source.image_shape:
        raise TableError(
            f"{path}: the images are {source.image_shape}, the model knows {tuple(wanted_shape)} (height, "
            "width). Bring them to that size."
        )
    notes: tuple[str, ...] = source.notes
    if id_column is not None and id_column not in (*source.names, *source.beside):
        notes = (*notes, f"There is no column {id_column!r}: rows are numbered from 0.")
        id_column = None
    ids = ids_of(source, id_column, path)
    if not source.named and source.names != features:
        if len(source.names) != len(features):
            raise TableError(
                f"{path} has {len(source.names)} columns and no names; the model needs {len(features)}: "
                f"{listed(features)}. Give a file with these names, or exactly these columns in order."
            )
        notes = (
            *notes,
            "The file has no column names: its columns are taken in the model's order.",
        )
        values, left_out = source.numbers, {}
    else:
        if absent := [name for name in features if name not in source.names]:
            raise TableError(
                f"{path} lacks columns the model needs: {listed(absent)}. It has {listed(source.names)}."
            )
        left_out = {
            name: "not in the model"
            for name in source.names
            if name not in features and name != id_column
        }
        if left_out:
            notes = (*notes, f"Not in the model, ignored: {listed(left_out)}.")
        check_numeric(source, features, path)
        values = picked(source, features)
    values, kept, _, told = without_gaps(
        path, values, features, missing, preprocessing.get("means")
    )
    others = {name: values_of(source, name) for name in left_out} | dict(source.beside)
    return Table(
        values,
        features,
        ids,
        kept,
        id_column,
        left_out,
        others,
        source.image_shape,
        missing,
        tuple(preprocessing.get("means", ())),
        encoding,
        header,
        (*notes, *told),
    )


def read_source(path: Path, id_column: str | None, encoding: str, header: bool | None) -> Source:
    """The reader that fits the ending."""
    ids = () if id_column is None else (id_column,)
    ending = path.suffix.lower()
    if not path.exists():
        raise TableError(
            f"There is no file {path}. Give a table (CSV, TSV, Parquet, Feather, .npy, .npz) or a folder "
            "of images."
        )
    if path.is_dir():
        return read_images(path)
    if path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty. Give a table with a row per line.")
    if ending in DELIMITED:
        return read_delimited(path, encoding=encoding, header=header, as_text=ids)
    if ending in COLUMNAR:
        return read_columnar(path, as_text=ids)
    if ending == ".npy":
        return read_npy(path)
    if ending == ".npz":
        return read_npz(path)
    known = (*DELIMITED, *COLUMNAR, ".npy", ".npz")
    raise TableError(
        f"{path} ends with {ending or 'nothing'!r}, which says no format. Known are {', '.join(known)} "
        "and folders of images."
    )


def ids_of(source: Source, id_column: str | None, path: object) -> np.ndarray:
    """(n_rows,) as text, each once."""
    if id_column is None:
        return np.arange(len(source.numbers)) if source.ids is None else source.ids
    if id_column not in (*source.names, *source.beside):
        raise unknown(path, [id_column], (*source.names, *source.beside))
    ids = np.array([str(value).strip() for value in values_of(source, id_column)], dtype=object)
    if (ids == "").any():
        row = int(np.flatnonzero(ids == "")[0])
        raise TableError(
            f"{path}: {(ids == '').sum()} rows have no id in column {id_column!r}, the first is row {row} "
            "from 0. Give every row one, or leave --id out."
        )
    seen, times = np.unique(ids.astype(str), return_counts=True)
    if (times > 1).any():
        twice = seen[times > 1]
        raise TableError(
            f"{path}: ids must differ, {len(twice)} of column {id_column!r} come more than once: "
            f"{listed(twice, 5)}. Correct them, or leave --id out."
        )
    return ids


def values_of(source: Source, name: str) -> np.ndarray:
    """(n_rows,) of a column, as text if it is none of numbers."""
    if name in source.beside:
        return source.beside[name]
    return (
        source.texts[name] if name in source.texts else source.numbers[:, source.names.index(name)]
    )


def picked(source: Source, names: Sequence[str]) -> np.ndarray:
    """(n_rows, len(names)); nothing is copied if all columns are wanted."""
    if tuple(names) == source.names:
        return source.numbers
    places = {name: place for place, name in enumerate(source.names)}
    return source.numbers[:, [places[name] for name in names]]


def chosen_columns(
    source: Source, columns: Sequence[str] | None, id_column: str | None, path: object
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The names of the columns to cluster, and why the others are left out."""
    if columns is not None:
        if absent := [name for name in columns if name not in source.names]:
            raise unknown(path, absent, source.names)
        if len(set(columns)) < len(columns) or not columns:
            raise TableError(
                f"--columns names each column once, got {', '.join(columns) or 'none'}."
            )
        check_numeric(source, columns, path)
        chosen = tuple(columns)
        return chosen, {
            name: "not asked for"
            for name in source.names
            if name not in chosen and name != id_column
        }
    if source.chosen:
        return source.names, {}
    reasons = {
        name: source.reasons.get(name) or why_useless(name, source.numbers[:, place])
        for place, name in enumerate(source.names)
    }
    chosen = tuple(name for name, reason in reasons.items() if reason is None and name != id_column)
    left_out = {
        name: reason for name, reason in reasons.items() if reason is not None and name != id_column
    }
    if not chosen:
        told = listed(f"{name}: {reason}" for name, reason in left_out.items())
        raise TableError(
            f"{path} has no column of numbers to cluster ({told or 'only the ids'}). Turn text into "
            "numbers first, or name columns with --columns."
        )
    return chosen, left_out


def why_useless(name: str, column: np.ndarray) -> str | None:
    """Why a column of numbers says nothing about clusters; None if it may.

    >>> why_useless("size", np.array([3.0, 3.0])), why_useless("user_id", np.array([17.0, 4.0]))
    ('all values are 3', 'named like an id, every value once')
    """
    values = column[~np.isnan(column)]
    if len(values) == 0:
        return "no values"
    if (values == values[0]).all():
        return f"all values are {values[0]:g}"
    if len(values) == len(column):
        steps = np.diff(values)
        if len(values) >= ENOUGH_TO_COUNT and values[0] in (0, 1) and (steps == 1).all():
            return "counts the rows"
        whole = (values == np.floor(values)).all()
        if (
            ID_NAME.fullmatch(name)
            and name != "column 1"
            and whole
            and len(np.unique(values)) == len(values)
        ):
            return "named like an id, every value once"
    return None


def check_numeric(source: Source, names: Sequence[str], path: object) -> None:
    words = [f"{name}: {source.reasons[name]}" for name in names if name in source.texts]
    if words:
        raise TableError(
            f"{path}: columns must be numbers, these are not: {listed(words)}. Correct the file, or leave "
            "them out."
        )


def unknown(path: object, absent: Sequence[str], names: Sequence[str]) -> TableError:
    close = get_close_matches(absent[0], names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return TableError(
        f"{path} has no column {', '.join(map(repr, absent))}.{hint} It has {listed(names, 20)}."
    )


def without_gaps(
    path: object,
    values: np.ndarray,
    names: Sequence[str],
    missing: str,
    means: Sequence[float] | None = None,
) -> tuple[np.ndarray, np.ndarray, tuple[float, ...], tuple[str, ...]]:
    """The values with missing ones dealt with, the rows that are kept, the columns' means, and what to tell."""
    if missing not in MISSING_CHOICES:
        raise TableError(f"--missing must be one of {', '.join(MISSING_CHOICES)}, got {missing!r}.")
    totals, gaps, infinite = (
        np.zeros(values.shape[1]),
        np.zeros(values.shape[1], int),
        np.zeros(values.shape[1], int),
    )
    complete = np.ones(len(values), dtype=bool)
    for start in range(0, len(values), BLOCK):  # a file larger than memory is read in parts
        block = np.asarray(values[start : start + BLOCK], dtype=np.float64)
        there = ~np.isnan(block)
        gaps += (~there).sum(0)
        infinite += np.isinf(block).sum(0)
        totals += np.where(np.isfinite(block), block, 0).sum(0)
        complete[start : start + BLOCK] = there.all(1)
    if infinite.any():
        raise TableError(f"{path} has infinite values: {counts(names, infinite)}. Replace them.")
    found = tuple(float(mean) for mean in totals / np.maximum(len(values) - gaps, 1))
    if complete.all():
        return values, complete, found, ()
    if missing == "error":
        raise TableError(
            f"{path} has missing values in {(~complete).sum()} of {len(values)} rows: "
            f"{counts(names, gaps)}. Choose: --missing drop leaves these rows without a label, --missing "
            "mean fills in the column's mean; or leave columns out with --columns."
        )
    if missing == "drop":
        return (
            values,
            complete,
            found,
            (
                f"{(~complete).sum()} of {len(values)} rows have missing values and get no "
                f"label: {counts(names, gaps)}.",
            ),
        )
    if means is None and (gaps == len(values)).any():
        empty = [name for name, gap in zip(names, gaps, strict=True) if gap == len(values)]
        raise TableError(
            f"{path}: no mean can be had of columns without any value: {listed(empty)}. Leave them out."
        )
    filled = np.where(np.isnan(values), found if means is None else np.asarray(means), values)
    return (
        filled,
        np.ones(len(values), dtype=bool),
        found,
        (
            f"{gaps.sum()} missing values are filled with their column's mean: {counts(names, gaps)}.",
        ),
    )


def counts(names: Sequence[str], numbers: np.ndarray) -> str:
    return listed(f"{name} {number}" for name, number in zip(names, numbers, strict=True) if number)
