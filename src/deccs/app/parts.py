"""Labels and embedding of a large table, written as Parquet in parts while they are made.

``labels/part-00000.parquet`` has the rows of the first million, ``embedding/part-00000.parquet`` what the
network makes of them. A part is complete or not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deccs.answer import Answer
from deccs.app.run_error import RunError
from deccs.data.tables import Table
from deccs.labeling import ROWS_OF_PART
from deccs.storage.atomic import replacing

LABELS_PARTS, EMBEDDING_PARTS = "labels", "embedding"


def part_file(number: int) -> str:
    """The name of a part, in both folders.

    >>> part_file(3)
    'part-00003.parquet'
    """
    return f"part-{number:05d}.parquet"


class PartsWriter:
    """Writes the answers of a fit, or of a prediction, part by part."""

    def __init__(
        self,
        folder: Path,
        table: Table,
        names: Sequence[str] | None,
        *,
        with_columns: bool = False,
    ) -> None:
        self.folder, self.table, self.names = folder, table, names
        self.with_columns = with_columns
        self.kept = None if table.kept.all() else np.flatnonzero(table.kept)
        self.n_done = 0  # rows in finished parts
        self.n_rows = 0  # with those of the next part
        self.waiting: list[dict[str, Any]] = []  # columns of answers of the next part

    def start_after(self, n_rows: int) -> None:
        """Go on after so many rows, which an earlier process has written."""
        for place in (LABELS_PARTS, EMBEDDING_PARTS):
            (self.folder / place).mkdir(parents=True, exist_ok=True)
        parts = range(-(-n_rows // ROWS_OF_PART))
        absent = [
            path
            for place in (LABELS_PARTS, EMBEDDING_PARTS)
            for number in parts
            if not (path := self.folder / place / part_file(number)).is_file()
        ]
        if absent:
            raise RunError(
                f"{absent[0]}, which an interrupted fit has written, is not there any more. Start again with "
                "--overwrite."
            )
        self.n_done = self.n_rows = n_rows

    def write(self, answer: Answer) -> None:
        """The answer for the next rows, all of one part."""
        columns: dict[str, Any] = {"label": answer.labels.astype(np.int32)}
        if answer.confidence is not None:
            columns["confidence"] = answer.confidence.astype(np.float32)
        columns["Z"] = answer.Z.astype(np.float32)
        self.waiting.append(columns)
        self.n_rows += len(answer)

    def finish_part(self) -> None:
        """Write the answers so far as a part."""
        import polars as pl

        if not self.waiting:
            return
        columns = {
            name: np.concatenate([part[name] for part in self.waiting]) for name in self.waiting[0]
        }
        Z = columns.pop("Z")
        start, stop = self.n_done, self.n_done + len(Z)
        rows = np.arange(start, stop) if self.kept is None else self.kept[start:stop]
        key = pl.Series(self.table.key, self.table.ids[rows])
        labels = pl.DataFrame([key, *(pl.Series(name, some) for name, some in columns.items())])
        if self.names:
            numbered = dict(enumerate(self.names))
            name = pl.col("label").replace_strict(numbered, default="", return_dtype=pl.String)
            labels = labels.insert_column(2, labels.select(name.alias("name")).to_series())
        if self.with_columns:
            beside = self.table.columns_of(rows, labels.columns)
            labels = pl.concat([labels, beside], how="horizontal")
        embedding = pl.DataFrame(
            [key, *(pl.Series(f"z{at}", Z[:, at]) for at in range(Z.shape[1]))]
        )
        number = (stop - 1) // ROWS_OF_PART
        for place, frame in ((EMBEDDING_PARTS, embedding), (LABELS_PARTS, labels)):
            with replacing(self.folder / place / part_file(number)) as file:
                frame.write_parquet(file)
        self.n_done, self.waiting = stop, []


def labels_in_parts(folder: Path) -> Any:
    """The labels of a large run, as a lazy frame in the order of the rows."""
    import polars as pl

    return pl.scan_parquet(sorted((folder / LABELS_PARTS).glob("part-*.parquet")), glob=False)


def confidence_in_parts(folder: Path) -> np.ndarray | None:
    """(n_rows,) the confidence of all rows, None where the method has none."""
    frame = labels_in_parts(folder)
    if "confidence" not in frame.collect_schema():
        return None
    return frame.select("confidence").collect().to_series().to_numpy()
