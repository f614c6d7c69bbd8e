"""Labels and embedding of a large table, written as Parquet in parts while they are made.

``labels/part-00000.parquet`` has the first 262,144 rows, ``embedding/part-00000.parquet`` what the network makes
of them. A part is complete or not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deccs.answer import Answer
from deccs.data.tables import Table
from deccs.group.group import ALONE
from deccs.labeling import number_of, own_parts
from deccs.storage.atomic import replacing

if TYPE_CHECKING:
    import polars as pl

LABELS_PARTS, EMBEDDING_PARTS = "labels", "embedding"


def part_file(number: int) -> str:
    """The name of a part, in both folders.

    >>> part_file(3)
    'part-00003.parquet'
    """
    return f"part-{number:05d}.parquet"


class PartsWriter:
    """Writes the answers of a fit, or of a prediction, part by part.

    A part has all rows of the table up to its last one; those that were dropped have no label there, and are not in the
    embedding.
    """

    def __init__(
        self,
        folder: Path,
        table: Table,
        names: Sequence[str] | None,
        *,
        with_columns: bool = False,
        with_embedding: bool = True,
    ) -> None:
        self.folder, self.table, self.names = folder, table, names
        self.with_columns, self.with_embedding = with_columns, with_embedding
        self.kept = kept_places(table)
        self.waiting: list[dict[str, Any]] = []  # columns of answers of the part under way

    def start(self) -> None:
        """Make room for parts."""
        for place in (LABELS_PARTS, EMBEDDING_PARTS) if self.with_embedding else (LABELS_PARTS,):
            (self.folder / place).mkdir(parents=True, exist_ok=True)

    def write(self, answer: Answer) -> None:
        """The answer for the next rows of a part."""
        columns: dict[str, Any] = {"label": answer.labels.astype(np.int32)}
        if answer.confidence is not None:
            columns["confidence"] = answer.confidence.astype(np.float32)
        if answer.novelty is not None:
            columns["novelty"] = answer.novelty
        if self.with_embedding:
            columns["Z"] = answer.Z.astype(np.float32)
        self.waiting.append(columns)

    def finish(self, part: range) -> None:
        """Write the answers so far as a part; one without answers is there from before."""
        import polars as pl

        if not self.waiting:
            return
        columns = {
            name: np.concatenate([part[name] for part in self.waiting]) for name in self.waiting[0]
        }
        Z = columns.pop("Z", None)
        rows = rows_of_labels(self.kept, part, len(self.table.kept))
        kept = self.table.kept[rows.start : rows.stop]
        key = pl.Series(self.table.key, self.table.ids[rows.start : rows.stop])
        labels = pl.DataFrame(
            [key, *(spread(pl.Series(name, some), kept) for name, some in columns.items())]
        )
        if self.names:
            numbered = dict(enumerate(self.names))
            name = pl.col("label").replace_strict(numbered, default="", return_dtype=pl.String)
            named = pl.when(pl.col("label").is_not_null()).then(name).alias("name")
            labels = labels.insert_column(2, labels.select(named).to_series())
        if self.with_columns:
            beside = self.table.columns_of(np.arange(rows.start, rows.stop))
            if self.table.id_column == self.table.key:  # it is there already
                beside = beside.drop(self.table.key)
            beside = beside.rename(names_beside(labels.columns, beside.columns))
            labels = pl.concat([labels, beside], how="horizontal")
        number = number_of(part)
        if Z is not None:
            numbers = [pl.Series(f"z{at}", Z[:, at]) for at in range(Z.shape[1])]
            self._write(EMBEDDING_PARTS, number, pl.DataFrame([key.filter(kept), *numbers]))
        self._write(LABELS_PARTS, number, labels)
        self.waiting = []

    def _write(self, place: str, number: int, frame: pl.DataFrame) -> None:
        with replacing(self.folder / place / part_file(number)) as file:
            frame.write_parquet(file)


def kept_places(table: Table) -> np.ndarray | None:
    """(n_kept,) the rows that are labeled; None for all."""
    return None if table.kept.all() else np.flatnonzero(table.kept)


def rows_of_labels(kept: np.ndarray | None, part: range, n_rows: int) -> range:
    """The rows of a table that the labels of a part belong to, with dropped ones between them.

    Dropped rows are written with the label after them, and those at the end with the last one.

    >>> rows_of_labels(np.array([1, 2, 4]), range(2), 6), rows_of_labels(np.array([1, 2, 4]), range(2, 3), 6)
    (range(0, 3), range(3, 6))
    """
    if kept is None:
        return part
    first = int(kept[part.start - 1]) + 1 if part.start else 0
    return range(first, int(kept[part.stop - 1]) + 1 if part.stop < len(kept) else n_rows)


def spread(values: pl.Series, kept: np.ndarray) -> pl.Series:
    """The values of rows that are kept, with nothing for the others: kept is (n_rows,).

    >>> import polars as pl
    >>> spread(pl.Series([7, 8]), np.array([True, False, True])).to_list()
    [7, None, 8]
    """
    import polars as pl

    if kept.all():
        return values
    index = pl.Series(np.cumsum(kept) - 1).set(pl.Series(~kept), None)
    return values.gather(index)


def names_beside(ours: Iterable[str], theirs: Sequence[str]) -> dict[str, str]:
    """Names of columns of a file that are not those of labels, nor each other's. A spreadsheet ignores case.

    >>> names_beside(["id", "label"], ["size", "label", "label (file)", "ID"])
    {'size': 'size', 'label': 'label (file)', 'label (file)': 'label (file) (file)', 'ID': 'ID (file)'}
    """
    taken, found = {name.lower() for name in ours}, {}
    for name in theirs:
        free = name
        while free.lower() in taken:
            free = f"{free} (file)"
        taken.add(free.lower())
        found[name] = free
    return found


def unusable_parts(folder: Path, table: Table, *, with_columns: bool) -> Iterator[range]:
    """Parts that an interrupted fit has not written, or of other rows or columns than are wanted now."""
    kept = kept_places(table)
    n_labels = len(table.kept) if kept is None else len(kept)
    for part in own_parts(n_labels, ALONE):
        rows, name = rows_of_labels(kept, part, len(table.kept)), part_file(number_of(part))
        ids = table.ids[rows.start : rows.stop]
        labels = folder / LABELS_PARTS / name
        there = (folder / EMBEDDING_PARTS / name).is_file() and labels.is_file()
        if not (there and is_part_of(labels, table.key, ids, with_columns=with_columns)):
            yield part


def is_part_of(path: Path, key: str, ids: np.ndarray, *, with_columns: bool) -> bool:
    """Whether a part has the labels of these rows, and columns of the file beside them only if these are wanted."""
    import polars as pl

    try:
        columns = pl.read_parquet_schema(path)
        if key not in columns:
            return False
        written = pl.read_parquet(path, columns=[key], glob=False)[key]
    except (pl.exceptions.PolarsError, OSError):
        return False
    has_columns = bool(set(columns) - {key, "label", "name", "confidence", "novelty"})
    return has_columns == with_columns and np.array_equal(written.to_numpy(), ids)


def labels_in_parts(folder: Path) -> Any:
    """The labels of a large run, as a lazy frame in the order of the rows."""
    import polars as pl

    return pl.scan_parquet(sorted((folder / LABELS_PARTS).glob("part-*.parquet")), glob=False)


def answer_in_parts(folder: Path, *, with_embedding: bool = False) -> Answer:
    """Labels and confidence of all rows that are labeled, and the embedding if it is wanted."""
    labels = labels_in_parts(folder)
    chosen = [name for name in ("label", "confidence") if name in labels.collect_schema()]
    columns = labels.select(chosen).drop_nulls("label").collect(engine="streaming")
    known = columns["label"].to_numpy()
    Z = np.empty((len(known), 0))
    if with_embedding:
        Z = embedding_in_parts(folder)
    confidence = columns["confidence"].to_numpy() if "confidence" in columns else None
    return Answer(Z, known, confidence=confidence)


def embedding_in_parts(folder: Path) -> np.ndarray:
    """(n_rows, n_latent) of all rows that are labeled."""
    import polars as pl

    frames = map(pl.read_parquet, sorted((folder / EMBEDDING_PARTS).glob("part-*.parquet")))
    return np.concatenate([frame[:, 1:].to_numpy() for frame in frames])
