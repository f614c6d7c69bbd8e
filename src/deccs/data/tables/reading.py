"""From a file to the rows that are clustered: what each column is, which are left out, what is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deccs.data.coding import Coding, Column
from deccs.data.kinds import ColumnKind, KindError, kinds_of
from deccs.data.learning_rows import LearningRows, Survey
from deccs.data.scanned import ScannedRows, SurveyedFrame, survey_by_group, survey_frame
from deccs.data.source import (
    ArrayRows,
    ColumnRows,
    RowSource,
    SelectedRows,
    gaps_in,
    source_of,
)
from deccs.data.tables.columns import check_known, row_ids
from deccs.data.tables.frames import LARGE
from deccs.data.tables.missing import (
    check_choice,
    complete,
    counts,
    dropped_note,
    missing_error,
    usual_values,
)
from deccs.data.tables.raw import RawTable, TableError, listed
from deccs.data.tables.readers import read_raw
from deccs.data.tables.scratch import scratch
from deccs.data.tabulate import FrameTable, coded_rows
from deccs.group.group import ALONE, Group

if TYPE_CHECKING:
    import polars as pl

MOST_TO_COLOR_BY = 60  # columns of a page


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Rows to cluster, and what is needed to read another file in the same way."""

    rows: RowSource  # (n_kept, n_cells) numbers, NaN where a value is missing
    feature_names: tuple[str, ...]
    ids: np.ndarray  # (n_rows,) text, or row numbers from 0
    kept: np.ndarray  # (n_rows,) False where a row was dropped because of missing values
    frame: pl.LazyFrame | None = None  # all columns of all rows, as they were read; None for arrays
    kinds: tuple[ColumnKind, ...] = ()  # of the columns of a frame, also of those that are left out
    id_column: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)  # column -> reason
    extras: dict[str, np.ndarray] = field(default_factory=dict)  # (n_rows,) each, beside an array
    image_shape: tuple[int, int] | None = None
    missing: str = "auto"
    means: tuple[float, ...] = ()  # (n_cells,) what gaps are filled with if ``missing`` is "mean"
    encoding: str = "utf-8"
    header: bool | None = None
    notes: tuple[str, ...] = ()  # sentences the user should read
    is_large: bool = False  # the frame is scanned from disk
    sample: SurveyedFrame | None = None  # of a large frame

    @property
    def key(self) -> str:
        """What names the rows: "id" or "row"."""
        return "row" if self.ids.dtype.kind == "i" else "id"

    @property
    def coding(self) -> Coding | None:
        """How the columns of a frame became numbers."""
        return getattr(self.rows, "coding", None)

    def others(self) -> dict[str, np.ndarray]:
        """(n_rows,) each: columns to color by, the clustered ones too if they are not too many."""
        extras = {name: some for name, some in self.extras.items() if name != self.id_column}
        if self.frame is None or self.is_large:
            return extras
        names = [name for name in self.frame.collect_schema().names() if name != self.id_column]
        if len(names) > MOST_TO_COLOR_BY:
            names = list(self.left_out)[:MOST_TO_COLOR_BY]
        chosen = self.frame.select(names).collect()
        return extras | {name: as_array(chosen[name]) for name in names}

    def of_rows(self, index: np.ndarray) -> Table:
        """The table of some of the rows that are clustered, in memory: (n_some,) places among them, in order."""
        rows = np.flatnonzero(self.kept)[index]
        frame = None if self.frame is None else self.columns_of(rows).lazy()
        coding = self.coding
        if frame is not None and coding is not None:
            chosen: RowSource = coded_rows(frame, coding)
        else:
            chosen = ArrayRows(self.rows.read(index), getattr(self.rows, "image_shape", None))
        return replace(
            self,
            rows=chosen,
            ids=self.ids[rows],
            kept=np.ones(len(rows), dtype=bool),
            frame=frame,
            extras={name: values[rows] for name, values in self.extras.items()},
            is_large=False,
            sample=None,
        )

    def columns_of(self, rows: np.ndarray) -> pl.DataFrame:
        """All columns of these rows of a frame, in order."""
        assert self.frame is not None
        if self.sample is not None and len(rows) <= len(self.sample.index):
            places = np.searchsorted(self.sample.index, rows).clip(max=len(self.sample.index) - 1)
            if np.array_equal(self.sample.index[places], rows):
                return self.sample.sample[places]
        start, stop = int(rows[0]), int(rows[-1]) + 1
        part = self.frame.slice(start, stop - start)
        return survey_frame(part, stop - start, rows - start).sample

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
    exclude: Collection[str] = (),
    kinds: Mapping[str, str] | None = None,
    id_column: str | None = None,
    missing: str = "auto",
    encoding: str = "utf-8",
    header: bool | None = None,
    query: str | None = None,
    group: Group = ALONE,
) -> Table:
    """Read a file for a fit.

    Parameters
    ----------
    path : CSV, TSV, Excel, JSON lines, Parquet, Feather, .npy, .npz (array X), .h5ad, a folder of images, the address
        of a database, or a file with an ending that another reader has registered
    columns : names of the columns to cluster; None takes those that can be, and says which were left out, and why
    exclude : names of columns that take no part
    kinds : what columns are, where their data do not tell: {"zip": "category"}
    id_column : a column that names the rows; without it they are numbered from 0 (images: their file names)
    missing : "auto" (a part of the method), "error", "drop" (rows with gaps get no label), "mean" (of the column, or
        its most frequent level)
    encoding : of text files
    header : whether the file begins with column names; None to guess
    query : what to ask a database
    group : the processes that read a large table together, each a part of its rows; all get the same table

    Raises
    ------
    TableError : the message says what was wrong, where, and what to do
    """
    check_choice(missing)
    how: dict[str, Any] = {"encoding": encoding, "header": header, "query": query, "group": group}
    raw = read_raw(path, as_text=as_text(id_column), **how)
    if raw.n_rows < 2:
        raise TableError(f"{path} has one row. Clustering needs at least two rows.")
    named = (*columns, *exclude) if columns is not None else tuple(exclude)
    check_known(path, [*named, *(kinds or {}), *as_text(id_column)], [*raw.names, *raw.extras])
    if columns is not None and (len(set(columns)) < len(columns) or not columns):
        raise TableError(
            f"{path}: --columns must name each column once, got {', '.join(columns) or 'none'}."
        )
    ids = row_ids(raw, id_column, path)
    about: dict[str, Any] = {
        "ids": ids,
        "id_column": id_column,
        "missing": missing,
        "header": header,
    }
    about |= {"encoding": encoding, "extras": raw.extras, "image_shape": raw.image_shape}
    if raw.array is not None:
        chosen = [name for name in columns or raw.names if name not in exclude]
        table = table_of_array(path, raw, raw.array, chosen, missing, None, about)
    else:
        raw = columnar(raw)
        table = table_of_frame(path, raw, columns, exclude, kinds or {}, about, group)
    if table.rows.shape[0] < 2:
        raise TableError(
            f"{path}: {table.rows.shape[0]} of {raw.n_rows} rows are without missing values, and clustering "
            "needs at least two. Use --missing auto, or leave out the emptiest columns with --exclude."
        )
    if len(table.feature_names) == 1:
        only = f"Only one column is clustered, {table.feature_names[0]!r}: the clusters are ranges."
        table = replace(table, notes=(*table.notes, only))
    return table


def columnar(raw: RawTable) -> RawTable:
    """A large text as a temporary Parquet file: every pass that follows takes a tenth of the time."""
    frame = raw.frame
    if frame is None or not raw.is_large or raw.files:
        return raw
    import polars as pl

    with scratch() as files:
        place = files.file("rows.parquet")
        frame.sink_parquet(place)
        files.keep()
    return replace(raw, frame=pl.scan_parquet(place))


def table_of_frame(
    path: object,
    raw: RawTable,
    columns: Sequence[str] | None,
    exclude: Collection[str],
    given: Mapping[str, str],
    about: Mapping[str, Any],
    group: Group,
) -> Table:
    """The table of a file with columns of all kinds."""
    frame, id_column = raw.frame, about["id_column"]
    assert frame is not None
    names = [
        name
        for name in (raw.names if columns is None else columns)
        if name != id_column and name not in exclude
    ]
    surveyed = raw.survey
    if surveyed is None and raw.is_large:
        surveyed = survey_by_group(frame, raw.n_rows, group)
    try:
        seen = frame if surveyed is None else surveyed.sample.lazy()
        kinds = kinds_of(seen.select(names), given)
        if columns is not None:
            kinds = tuple(asked_for(kind) for kind in kinds)
        if surveyed is not None:
            kinds = tuple(replace(kind, n_missing=surveyed.n_missing[kind.name]) for kind in kinds)
        whole = FrameTable(seen.select(names), kinds)
        coding = whole.coding
    except KindError as error:
        raise TableError(f"{path}: {error}") from error
    left_out = whole.left_out | {
        name: "not asked for" for name in raw.names if name not in (*names, id_column)
    }
    kept, note = kept_rows(path, frame, coding, kinds, about["missing"], raw)
    fills = about["missing"] == "mean"
    rows: RowSource
    try:
        if surveyed is not None:
            coding = lenient(coding, frame.collect_schema())
            rows, means, surveyed = scanned_rows(frame, coding, kept, surveyed, raw, fills)
        else:
            rows, means = rows_in_memory(frame, coding, kept, fills)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error
    return Table(
        rows=rows,
        feature_names=coding.names,
        kept=np.ones(raw.n_rows, dtype=bool) if kept is None else kept,
        frame=frame,
        kinds=kinds,
        left_out=left_out,
        means=tuple(means.tolist()),
        notes=(*raw.notes, *notes_on_words(kinds), *note),
        is_large=raw.is_large,
        sample=surveyed,
        **about,
    )


def rows_in_memory(
    frame: pl.LazyFrame, coding: Coding, kept: np.ndarray | None, fills: bool
) -> tuple[ArrayRows, np.ndarray]:
    """The coded rows that stay, and what gaps were filled with, if they were."""
    rows = coded_rows(frame if kept is None else frame.filter(is_complete(coding.names)), coding)
    means = usual_values(rows) if fills else np.zeros(0)
    return filled(rows, means, coding) if fills else rows, means


def scanned_rows(
    frame: pl.LazyFrame,
    coding: Coding,
    kept: np.ndarray | None,
    surveyed: SurveyedFrame,
    raw: RawTable,
    fills: bool,
) -> tuple[ScannedRows, np.ndarray, SurveyedFrame]:
    """The same of a frame on disk, with a sample in memory, whose places are those of the whole frame."""
    sample = surveyed
    if kept is not None:
        frame = frame.filter(is_complete(coding.names))
        surveyed = survey_frame(frame, int(kept.sum()))
        sample = replace(surveyed, index=np.flatnonzero(kept)[surveyed.index])
    survey, n_rows, means = surveyed.of_cells(coding), surveyed.n_rows, None
    if fills:
        learned = survey.learning_rows
        assert isinstance(learned.source, ArrayRows)
        means = usual_values(learned.source)
        complete_rows = LearningRows(filled(learned.source, means, coding), learned.index)
        survey = Survey(complete_rows, np.zeros_like(survey.n_missing), (0, -1))
    rows = ScannedRows(frame, coding, n_rows, survey=survey, usual=means, check=raw.check)
    return rows, np.zeros(0) if means is None else means, sample


def lenient(coding: Coding, schema: Mapping[str, Any]) -> Coding:
    """Words in a column whose sample holds nothing but numbers count as gaps: they are too few to be seen."""
    import polars as pl

    return Coding(
        tuple(
            replace(
                column, skips_words=column.kind == "number" and schema[column.name] == pl.String
            )
            for column in coding.columns
        )
    )


def asked_for(kind: ColumnKind) -> ColumnKind:
    """The kind of a column that the user has named in --columns: it is clustered if it can be."""
    if kind.is_used or kind.kind == "constant":
        return kind
    is_number = kind.kind == "id" and not any(letter.isalpha() for letter in kind.values[:20])
    used_as = "number" if is_number else "category" if kind.kind in ("code", "id") else "text"
    return replace(kind, kind=used_as, given=True)


def notes_on_words(kinds: Iterable[ColumnKind]) -> tuple[str, ...]:
    """What to tell of columns that would be numbers but for a few words."""
    few = [kind for kind in kinds if kind.why.startswith("numbers, but also text")]
    return tuple(
        f"{kind.name}: {kind.why}. Correct the file, or take words for missing values with "
        f"--kind {kind.name}=number."
        for kind in few
    )


def kept_rows(
    path: object,
    frame: pl.LazyFrame,
    coding: Coding,
    kinds: Sequence[ColumnKind],
    missing: str,
    raw: RawTable,
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """The rows that stay, None for all of them, and what to tell the user."""
    by_column = {kind.name: kind.n_missing for kind in kinds if kind.is_used and kind.n_missing}
    if not by_column:
        return None, ()
    per_column = counts(list(by_column), np.array(list(by_column.values())))
    if missing == "auto":
        n_cells = raw.n_rows * len(coding.names)
        share = sum(by_column.values()) / n_cells
        return None, (f"Missing: {share:.1%} of the values ({per_column}).",)
    if missing == "mean":
        note = f"{sum(by_column.values())} missing values are filled with what is usual in their column: {per_column}."
        return None, (note,)
    engine: Any = "streaming" if raw.is_large else "auto"
    kept = frame.select(is_complete(coding.names).alias("kept")).collect(engine=engine)["kept"]
    if missing == "error":
        raise missing_error(path, int((~kept).sum()), raw.n_rows, per_column)
    return kept.to_numpy(), (dropped_note(int((~kept).sum()), raw.n_rows, per_column),)


def is_complete(names: Sequence[str]) -> pl.Expr:
    """Whether a row has a value in each of these columns."""
    import polars as pl

    return pl.all_horizontal(pl.col(name).is_not_null() for name in names)


def filled(rows: ArrayRows, means: np.ndarray, coding: Coding) -> ArrayRows:
    """Rows whose gaps hold what is usual."""
    cells = rows.read(slice(0, rows.shape[0]))
    return ArrayRows(np.where(np.isnan(cells), means, cells), coding=coding)


def table_of_array(
    path: object,
    raw: RawTable,
    array: np.ndarray | RowSource,
    names: Sequence[str],
    missing: str,
    means: Sequence[float] | None,
    about: Mapping[str, Any],
) -> Table:
    """The table of a file that holds nothing but numbers."""
    if isinstance(array, np.memmap) and array.nbytes > LARGE:  # a part of it would be a copy
        array = source_of(array)
    if tuple(names) != raw.names:
        numbered = {name: place for place, name in enumerate(raw.names)}
        places = [numbered[name] for name in names]
        array = array[:, places] if isinstance(array, np.ndarray) else ColumnRows(array, places)
    checked = complete(path, array, names, missing, means)
    values = checked.values
    if not checked.kept.all():
        if isinstance(values, np.ndarray):
            values = values[checked.kept]
        else:
            values = SelectedRows(values, np.flatnonzero(checked.kept))
    left_out = {name: "not asked for" for name in raw.names if name not in set(names)}
    return Table(
        rows=source_of(values),
        feature_names=tuple(names),
        kept=checked.kept,
        left_out=left_out,
        means=checked.means if missing == "mean" else (),
        notes=(*raw.notes, *checked.notes),
        is_large=raw.is_large,
        **about,
    )


def read_like(
    path: str | Path,
    preprocessing: Mapping[str, Any],
    coding: Coding | None = None,
    *,
    missing: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    query: str | None = None,
) -> Table:
    """Read another file as the model's file was read: its columns by name, its ids, its missing values.

    Columns may be in another order, and there may be more. An array, or a file without a header, has no names: it must
    have as many columns as the model, in the model's order.

    Parameters
    ----------
    path : the file, or the address of a database
    preprocessing : ``Table.preprocessing()`` of the table the model was fitted on; without names, all columns are taken
    coding : ``model.coding_``
    missing, encoding, header : as in ``read_table``; None for the same as in the fit
    query : what to ask a database
    """
    encoding = encoding or preprocessing.get("encoding") or "utf-8"
    header = preprocessing.get("header") if header is None else header
    missing = missing or preprocessing.get("missing", "error")
    check_choice(missing)
    id_column = preprocessing.get("id_column")
    raw = read_raw(path, encoding=encoding, header=header, as_text=as_text(id_column), query=query)
    raw = columnar(raw)
    names = tuple(preprocessing["feature_names"] or raw.names)
    check_image_shape(raw, preprocessing.get("image_shape"), path)
    notes: tuple[str, ...] = raw.notes
    if id_column is not None and id_column not in (*raw.names, *raw.extras):
        notes = (*notes, f"There is no column {id_column!r}: rows are numbered from 0.")
        id_column = None
    raw, note = named_like(path, raw, names)
    if absent := [name for name in names if name not in set(raw.names)]:
        raise TableError(
            f"{path} lacks columns the model needs: {listed(absent)}. It has {listed(raw.names)}."
        )
    left_out = {name: "not in the model" for name in raw.names if name not in {*names, id_column}}
    if left_out and not note:
        note = (f"Not in the model, ignored: {listed(left_out)}.",)
    about: dict[str, Any] = {"ids": row_ids(raw, id_column, path), "id_column": id_column}
    about |= {"missing": missing, "encoding": encoding, "header": header, "extras": raw.extras}
    about["image_shape"] = raw.image_shape
    means = preprocessing.get("means") or None
    if raw.array is not None:
        if coding is not None and not coding.is_plain:
            raise TableError(
                f"{path} holds numbers only, and the model was fitted on columns of several kinds. "
                "Give a file with these columns, such as CSV or Parquet."
            )
        table = table_of_array(path, raw, raw.array, names, missing, means, about)
    else:
        table = frame_like(path, raw, names, coding, missing, means, about)
    return replace(table, left_out=left_out, notes=(*notes, *note, *table.notes))


def named_like(
    path: object, raw: RawTable, names: tuple[str, ...]
) -> tuple[RawTable, tuple[str, ...]]:
    """A file without names of columns, with those of the model; and what to tell the user."""
    if raw.has_names or raw.names == names:
        return raw, ()
    if len(raw.names) != len(names):
        raise TableError(
            f"{path} has {len(raw.names)} columns and no names; the model needs {len(names)}: "
            f"{listed(names)}. Give a file with these names, or exactly these columns in this order."
        )
    frame = raw.frame
    if frame is not None:
        frame = frame.rename(dict(zip(raw.names, names, strict=True)))
    note = "The file has no column names: its columns are taken in the model's order."
    return replace(raw, names=names, frame=frame), (note,)


def frame_like(
    path: object,
    raw: RawTable,
    names: tuple[str, ...],
    coding: Coding | None,
    missing: str,
    means: Sequence[float] | None,
    about: Mapping[str, Any],
) -> Table:
    """The table of a file with columns of all kinds, coded as the model needs it."""
    import polars as pl

    frame = raw.frame
    assert frame is not None
    by_numbers = coding or Coding(tuple(Column(name, "number") for name in names))
    if raw.survey is not None:
        n_missing = [raw.survey.n_missing[name] for name in names]
    else:
        engine: Any = "streaming" if raw.is_large else "auto"
        n_missing = list(frame.select(pl.col(names).null_count()).collect(engine=engine).row(0))
    kinds = [
        ColumnKind(column.name, column.kind, n_missing=count)
        for column, count in zip(by_numbers.columns, n_missing, strict=True)
        if not column.is_flag
    ]
    kept, note = kept_rows(path, frame, by_numbers, kinds, missing, raw)
    some = frame if kept is None else frame.filter(is_complete(names))
    if raw.is_large:
        check_dtypes(path, frame, by_numbers)
        n_rows = raw.n_rows if kept is None else int(kept.sum())
        usual = np.asarray(means) if missing == "mean" and means is not None else None
        scanned = ScannedRows(some, by_numbers, n_rows, usual=usual, check=raw.check)
        scanned.coding = coding
        rows: RowSource = scanned
    else:
        rows, told = small_frame_like(path, some, by_numbers, missing, means, kept, n_missing)
        note += told
        if coding is None:  # the model was fitted on an array
            rows = ArrayRows(rows.X)
    return Table(
        rows=rows,
        feature_names=names,
        kept=np.ones(raw.n_rows, dtype=bool) if kept is None else kept,
        frame=frame,
        means=tuple(means or ()),
        notes=note,
        is_large=raw.is_large,
        sample=raw.survey,
        **about,
    )


def small_frame_like(
    path: object,
    frame: pl.LazyFrame,
    coding: Coding,
    missing: str,
    means: Sequence[float] | None,
    kept: np.ndarray | None,
    n_missing: Sequence[int],
) -> tuple[ArrayRows, tuple[str, ...]]:
    """The coded rows of a frame in memory, and what to tell of values that the model has not seen."""
    try:
        rows = coded_rows(frame, coding)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error
    n_known_gaps = np.array(n_missing if kept is None else [0] * len(n_missing))
    note = notes_on_unseen(rows, coding, n_known_gaps)
    if missing == "mean":
        usual = usual_values(rows) if means is None else np.asarray(means)
        rows = filled(rows, usual, coding)
    return rows, note


def check_dtypes(path: object, frame: pl.LazyFrame, coding: Coding) -> None:
    """Raise a TableError for types that no value of a column can have, before rows are read."""
    try:
        coding(frame.select(coding.names).head(0).collect())
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error


def notes_on_unseen(rows: ArrayRows, coding: Coding, n_missing: np.ndarray) -> tuple[str, ...]:
    """What to tell of levels that became gaps, which they were not in the file: (n_columns,) of these."""
    n_unseen = gaps_in(rows)[list(coding.first_cells)] - n_missing
    if not (n_unseen > 0).any():
        return ()
    told = counts(coding.names, n_unseen.clip(0))
    return (f"Values the model has not seen count as missing: {told}.",)


def as_text(id_column: str | None) -> tuple[str, ...]:
    """Ids are kept as they are written: 007 is not 7."""
    return () if id_column is None else (id_column,)


def check_image_shape(raw: RawTable, expected: Sequence[int] | None, path: object) -> None:
    if expected and raw.image_shape and tuple(expected) != raw.image_shape:
        raise TableError(
            f"{path}: the images are {raw.image_shape}, the model needs {tuple(expected)} (height, width). "
            "Resize them."
        )


def as_array(values: pl.Series) -> np.ndarray:
    """A column to color by: numbers with NaN for gaps, or words with "" for them."""
    import polars as pl

    if values.dtype == pl.Boolean or not values.dtype.is_numeric():
        return values.cast(pl.String, strict=False).fill_null("").to_numpy().astype(object)
    if values.null_count() or values.dtype.is_float():
        return values.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return values.to_numpy()
