"""Rows of a frame that is scanned from disk: coded while they are read, and never in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from deccs.data.coding import Coding, each_batch
from deccs.data.frames import column
from deccs.data.learning_rows import (
    LearningRows,
    Survey,
    most_rows,
    rows_to_learn_from,
)
from deccs.data.source import ArrayRows
from deccs.group.group import Group

if TYPE_CHECKING:
    import polars as pl

AT_ONCE = 2**22  # values that are read at once


def nothing() -> None:
    """Files that nobody watches."""


class ScannedRows:
    """The coded rows of a frame on disk, in order: ``stream`` reads them, ``read`` has to look for its rows.

    Parameters
    ----------
    frame : lazy, with all columns of ``coding``
    coding : how columns become numbers
    n_rows : how many rows there are
    survey : what one pass over them has found
    usual : (n_cells,) what gaps are filled with, None where they stay
    check : raises an error if the files have changed since they were opened
    """

    is_sequential = True

    def __init__(
        self,
        frame: pl.LazyFrame,
        coding: Coding,
        n_rows: int,
        *,
        survey: Survey | None = None,
        usual: np.ndarray | None = None,
        check: Callable[[], None] = nothing,
    ) -> None:
        self.frame = frame.select(column(name) for name in coding.names)
        self.columns, self.n_rows, self.usual, self.check = coding, n_rows, usual, check
        self.coding: Coding | None = coding  # None for a model that was fitted on an array
        self.survey = survey

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, len(self.columns.cells)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def stream(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[np.ndarray]:
        """The rows from ``start`` to ``stop`` - 1, in blocks of ``size``."""
        stop = self.n_rows if stop is None else stop
        self.check()
        at_once = max(size, AT_ONCE // self.shape[1])
        frame = (
            self.frame
            if (start, stop) == (0, self.n_rows)
            else self.frame.slice(start, stop - start)
        )
        n_read = 0
        for block in reblocked(map(self._coded, self._batches(frame, at_once)), size):
            n_read += len(block)
            yield block
        self.check()
        if n_read != stop - start:
            raise ValueError(
                f"{stop - start:,} rows were expected and {n_read:,} were read: a file has changed while it was "
                "read. Fit the model again."
            )

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        """Some rows; all before the last of them are read, too."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.n_rows))
        block = np.empty((len(rows), self.shape[1]))
        if not len(rows):
            return block
        order = np.argsort(rows, kind="stable")
        in_order, start = rows[order], int(rows.min())
        for part in self.stream(2**14, start, int(rows.max()) + 1):
            low, high = np.searchsorted(in_order, (start, start + len(part)))
            block[order[low:high]] = part[in_order[low:high] - start]
            start += len(part)
        return block

    def _batches(self, frame: pl.LazyFrame, size: int) -> Iterator[pl.DataFrame]:
        """The rows of a frame; a file that cannot be read any more is named."""
        import polars as pl

        try:
            yield from each_batch(frame, size)
        except (pl.exceptions.PolarsError, OSError) as error:
            self.check()
            raise OSError(f"Not all rows can be read any more: {error}") from error

    def _coded(self, batch: pl.DataFrame) -> np.ndarray:
        cells = self.columns(batch)
        return cells if self.usual is None else np.where(np.isnan(cells), self.usual, cells)


def reblocked(blocks: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """The same rows in blocks of ``size``; the last one may be shorter.

    >>> [block.tolist() for block in reblocked([np.arange(3), np.arange(3, 5)], 2)]
    [[0, 1], [2, 3], [4]]
    """
    rest: list[np.ndarray] = []
    n_rest = 0
    for block in blocks:
        start = 0
        while n_rest + len(block) - start >= size:
            stop = start + size - n_rest
            yield block[start:stop] if not rest else np.concatenate([*rest, block[start:stop]])
            rest, n_rest, start = [], 0, stop
        if start < len(block):
            rest.append(block[start:])
            n_rest += len(block) - start
    if rest:
        yield rest[0] if len(rest) == 1 else np.concatenate(rest)


@dataclass(frozen=True, eq=False)
class SurveyedFrame:
    """A sample of the rows of a frame on disk, and what is missing in all of them."""

    sample: pl.DataFrame
    index: np.ndarray  # (n_sample,) row numbers, in order
    n_missing: dict[str, int]
    n_rows: int

    @classmethod
    def of_sample(cls, sample: pl.DataFrame, n_missing: dict[str, int], n_rows: int) -> Self:
        """What :func:`survey_frame` found in another process; the same rows are drawn here."""
        index = rows_to_learn_from(n_rows, most_rows(sample.width))
        return cls(sample, index, n_missing, n_rows)

    def of_cells(self, coding: Coding) -> Survey:
        """The same of coded rows, to learn from."""
        cells = coding(self.sample.select(coding.names))
        missing = np.array([self.n_missing[coding.names[cell.column]] for cell in coding.cells])
        gaps = np.isnan(cells).sum(axis=0)  # also levels that are too rare to count
        bare = int(np.isnan(cells).all(axis=1).sum())
        first = int(self.index[np.isnan(cells).all(axis=1).argmax()]) if bare else -1
        learned = LearningRows(ArrayRows(cells, coding=coding), self.index)
        return Survey(learned, np.maximum(missing, gaps), (bare, first))


def survey_by_group(frame: pl.LazyFrame, n_rows: int, group: Group) -> SurveyedFrame:
    """``survey_frame`` by several processes, each of which reads its own rows."""
    if group.size == 1:
        return survey_frame(frame, n_rows)
    return joined(survey_part(frame, n_rows, group.own(n_rows)), group)


def survey_part(frame: pl.LazyFrame, n_rows: int, part: slice) -> SurveyedFrame:
    """What one process sees of its rows of a frame: their sample has the numbers that it has in the whole frame."""
    whole = rows_to_learn_from(n_rows, most_rows(len(frame.collect_schema())))
    index = whole[slice(*np.searchsorted(whole, (part.start, part.stop)))]
    rows = frame.slice(part.start, part.stop - part.start)
    seen = survey_frame(rows, part.stop - part.start, index - part.start)
    return replace(seen, index=index)


def joined(part: SurveyedFrame, group: Group) -> SurveyedFrame:
    """What all processes have seen of a frame, each of its own rows."""
    import polars as pl

    out = BytesIO()
    part.sample.write_ipc(out)
    sizes = group.each(lambda: (len(out.getvalue()), part.n_missing, part.n_rows))
    content = group.joined(np.frombuffer(out.getvalue(), np.uint8)).tobytes()
    stops = np.cumsum([0, *(size for size, _, _ in sizes)])
    samples = [pl.read_ipc(content[start:stop]) for start, stop in pairwise(stops.tolist())]
    n_missing = {name: sum(missing[name] for _, missing, _ in sizes) for name in part.n_missing}
    n_rows = sum(n_part for _, _, n_part in sizes)
    return SurveyedFrame.of_sample(pl.concat(samples), n_missing, n_rows)


def survey_frame(
    frame: pl.LazyFrame, n_rows: int, index: np.ndarray | None = None
) -> SurveyedFrame:
    """Look at all rows once: how many gaps each column has, and a sample to learn from, or the rows of ``index``."""
    import polars as pl

    names = frame.collect_schema().names()
    if index is None:
        index = rows_to_learn_from(n_rows, most_rows(len(names)))
    n_missing = dict.fromkeys(names, 0)
    parts: list[pl.DataFrame] = []
    start = 0
    for batch in each_batch(frame, max(2**12, AT_ONCE // len(names))):
        low, high = np.searchsorted(index, (start, start + batch.height))
        parts.append(batch[index[low:high] - start])
        for name, count in batch.null_count().row(0, named=True).items():
            n_missing[name] += count
        start += batch.height
    sample = pl.concat(parts) if parts else frame.limit(0).collect()  # a process may have no rows
    return SurveyedFrame(sample, index, n_missing, start)
