"""The rows a fit learns from: all of them, or a sample that is as large as learning can use.

A fit sees about a million rows while it pretrains, and 10,000 at a time in its rounds. So a sample of
262,144 rows teaches it what ten million would, and training costs the same for any number of rows. All
rows are read twice: once to look for gaps and to draw the sample, once to be labeled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from deccs.data.source import (
    ArrayRows,
    RowSource,
    SparseRows,
    in_order,
    is_sequential,
    rows_at_once,
)
from deccs.group.group import ALONE, Group

MOST_ROWS = 2**18
MOST_VALUES = 2**26  # half a gigabyte of doubles; the 70,000 images of MNIST are just below it
LEAST_ROWS = 2**14  # of wide data


@dataclass(frozen=True, eq=False)
class LearningRows:
    """Rows in memory, and which of all rows they are."""

    source: RowSource
    index: np.ndarray  # (n_rows,) row numbers, in order


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over all rows has found."""

    learning_rows: LearningRows
    n_missing: np.ndarray  # (n_features,)
    bare: tuple[int, int]  # rows without any value: how many, and the first


def most_rows(n_features: int) -> int:
    """How many rows a fit learns from at most, where they must be brought into memory.

    >>> most_rows(64), most_rows(784), most_rows(100_000)
    (262144, 85598, 16384)
    """
    return max(LEAST_ROWS, min(MOST_ROWS, MOST_VALUES // n_features))


def rows_to_learn_from(n_rows: int, most: int) -> np.ndarray:
    """Their numbers, in order: always the same of so many rows."""
    # Imported here: reading a small table needs no torch, which takes seconds to import.
    from deccs.data.sampling import draw_rows
    from deccs.seeds import generator_for

    return draw_rows(n_rows, most, generator_for(0, "learning rows")).numpy()


def learning_rows(source: RowSource, group: Group = ALONE) -> LearningRows | None:
    """A sample of the rows; None where a fit can learn from all of them as they are.

    Every process of a group reads its share of the sample, and gets all of it.
    """
    surveyed: Survey | None = getattr(source, "survey", None)
    if surveyed is not None:
        return surveyed.learning_rows
    n_rows, n_features = source.shape
    in_memory = type(source) in (ArrayRows, SparseRows)
    most = MOST_ROWS if in_memory else most_rows(n_features)
    if n_rows <= most:
        return None
    index = rows_to_learn_from(n_rows, most)
    if isinstance(source, SparseRows):
        return LearningRows(SparseRows(source.X[index]), index)
    shape, coding = getattr(source, "image_shape", None), getattr(source, "coding", None)
    if in_memory:
        rows = source.X[index]  # type: ignore[attr-defined]
    else:
        own = index[group.own(len(index))]
        rows = group.joined(read_in_parts(source, own))
    return LearningRows(ArrayRows(rows, shape, coding), index)


def read_in_parts(source: RowSource, index: np.ndarray) -> np.ndarray:
    """The rows of these numbers, in single precision if that is how they are stored: no digit is lost."""
    n_features = source.shape[1]
    rows = np.empty((len(index), n_features), single_if_stored_so(source))
    size = rows_at_once(n_features)
    for start in range(0, len(index), size):
        rows[start : start + size] = source.read(index[start : start + size])
    return rows


def single_if_stored_so(source: RowSource) -> Any:
    return np.float32 if source.dtype == np.float32 else np.float64


def survey(source: RowSource, group: Group = ALONE) -> Survey:
    """Look at all rows once, in order: what is missing, and a sample to learn from.

    Every process of a group looks at its own rows.
    """
    n_rows, n_features = source.shape
    whole = rows_to_learn_from(n_rows, most_rows(n_features))
    own = group.own(n_rows)
    index = whole[slice(*np.searchsorted(whole, (own.start, own.stop)))]
    rows = np.empty((len(index), n_features), single_if_stored_so(source))
    n_missing = np.zeros(n_features, dtype=np.int64)
    n_bare, first_bare = 0, -1
    blocks_of_rows = in_order(source, rows_at_once(n_features), own.start, own.stop)
    for start, block in numbered(blocks_of_rows, own.start):
        low, high = np.searchsorted(index, (start, start + len(block)))
        rows[low:high] = block[index[low:high] - start]
        gaps = np.isnan(block)
        if gaps.any():
            n_missing += gaps.sum(axis=0)
            bare = np.flatnonzero(gaps.all(axis=1))
            if len(bare):
                first_bare = start + int(bare[0]) if n_bare == 0 else first_bare
                n_bare += len(bare)
    shape, coding = getattr(source, "image_shape", None), getattr(source, "coding", None)
    parts = group.each(lambda: (n_missing, n_bare, first_bare))
    learned = LearningRows(ArrayRows(group.joined(rows), shape, coding), whole)
    first = next((first for _, _, first in parts if first >= 0), -1)
    n_missing = np.sum([part[0] for part in parts], axis=0)
    return Survey(learned, n_missing, (sum(part[1] for part in parts), first))


def numbered(
    blocks_of_rows: Iterator[np.ndarray], start: int = 0
) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks with the number of their first row."""
    for block in blocks_of_rows:
        yield start, block
        start += len(block)


def needs_survey(source: RowSource) -> bool:
    """Whether a source is read in order, and nobody has looked at it yet."""
    return is_sequential(source) and getattr(source, "survey", None) is None
