"""Labels and embedding of a large table, written as Parquet in parts while they are made.

``labels/part-00000.parquet`` has the first 262,144 rows, ``embedding/part-00000.parquet`` what the network makes
of them. A part is complete or not there.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deccs.answer import Answer
from deccs.app.run_error import RunError
from deccs.data.tables import Table
from deccs.labeling import number_of
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
        self.waiting: list[dict[str, Any]] = []  # columns of answers of the part under way

    def start(self, *, anew: bool) -> None:
        """Make room for parts. ``anew`` says that none of those that may be there is to be kept."""
        for place in (LABELS_PARTS, EMBEDDING_PARTS):
            if anew and (self.folder / place).exists():
                shutil.rmtree(self.folder / place)
            (self.folder / place).mkdir(parents=True, exist_ok=True)

    def write(self, answer: Answer) -> None:
        """The answer for the next rows of a part."""
        columns: dict[str, Any] = {"label": answer.labels.astype(np.int32)}
        if answer.confidence is not None:
            columns["confidence"] = answer.confidence.astype(np.float32)
        columns["Z"] = answer.Z.astype(np.float32)
        self.waiting.append(columns)

    def finish(self, part: range) -> None:
        """Write the answers so far as a part; one without answers must be there from before."""
        import polars as pl

        if not self.waiting:
            self._check_written(part)
            return
        columns = {
            name: np.concatenate([part[name] for part in self.waiting]) for name in self.waiting[0]
        }
        Z = columns.pop("Z")
        rows = np.arange(part.start, part.stop)
        rows = rows if self.kept is None else self.kept[rows]
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
        number = number_of(part)
        for place, frame in ((EMBEDDING_PARTS, embedding), (LABELS_PARTS, labels)):
            with replacing(self.folder / place / part_file(number)) as file:
                frame.write_parquet(file)
        self.waiting = []

    def _check_written(self, part: range) -> None:
        for place in (LABELS_PARTS, EMBEDDING_PARTS):
            path = self.folder / place / part_file(number_of(part))
            if not path.is_file():
                raise RunError(
                    f"{path}, which an interrupted fit has written, is not there any more. Start again with "
                    "--overwrite."
                )


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
