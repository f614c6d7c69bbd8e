"""From a data frame to coded rows: what kind each column is, what is left out and why."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from deccs.data.coding import Coding, each_batch, fit_coding
from deccs.data.frames import as_polars, column
from deccs.data.kinds import ColumnKind, kinds_of
from deccs.data.source import ArrayRows, MemmapRows, rows_at_once

if TYPE_CHECKING:
    import polars as pl


class TableWarning(UserWarning):
    """Something about a table that its owner should know."""


@dataclass(frozen=True, eq=False)
class FrameTable:
    """A frame, the kinds of its columns, and how they are coded."""

    frame: pl.LazyFrame
    kinds: tuple[ColumnKind, ...]
    is_large: bool = False  # scanned from disk, and never in memory as a whole

    @cached_property
    def coding(self) -> Coding:
        return fit_coding(self.frame, self.kinds, is_large=self.is_large)

    @property
    def is_plain(self) -> bool:
        """Whether all columns are complete numbers, so that there is nothing to code."""
        plain = all(kind.kind == "number" and not kind.n_missing for kind in self.kinds)
        return plain and bool(self.kinds) and not self.is_large

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that are not clustered, and why."""
        return {kind.name: kind.why or kind.kind for kind in self.kinds if not kind.is_used}

    def rows(self) -> ArrayRows:
        """The coded rows, in memory or, of a large frame, in a temporary file."""
        return coded_rows(self.frame, self.coding, is_large=self.is_large)

    def warn_of_what_is_left_out(self) -> None:
        """One warning for all columns that are left out without the user having said so."""
        told = [kind for kind in self.kinds if not kind.is_used and not kind.given]
        if told:
            words = [f"{kind.name!r} ({kind.kind}: {kind.why})" for kind in told[:8]]
            more = f" and {len(told) - 8} more" if len(told) > 8 else ""
            warnings.warn(
                f"Left out: {', '.join(words)}{more}. To use one, say what it is: "
                f"kinds={{{told[0].name!r}: 'category'}}; to leave it out without a word: 'id'.",
                TableWarning,
                stacklevel=6,
            )


def tabulated(
    X: Any,
    kinds: Mapping[str, str] | None = None,
    *,
    exclude: Collection[str] = (),
    is_large: bool = False,
) -> FrameTable:
    """The table of a frame of any library; columns in ``exclude`` do not take part."""
    frame = as_polars(X)
    if exclude:
        frame = frame.drop(list(exclude))
    return FrameTable(frame, kinds_of(frame, kinds, is_large=is_large), is_large)


def coded_rows(X: Any, coding: Coding, *, is_large: bool = False) -> ArrayRows:
    """The rows of a frame, coded as those of the fit; columns are found by name."""
    frame = as_polars(X)
    coding.check_columns(frame.collect_schema().names())
    chosen = frame.select(column(name) for name in coding.names)
    if not is_large:
        return ArrayRows(coding(chosen.collect()), coding=coding)
    return MemmapRows(in_temporary_file(chosen, coding), coding=coding)


def in_temporary_file(frame: pl.LazyFrame, coding: Coding) -> np.ndarray:
    """(n_rows, n_cells) doubles in a file without a name, which goes when nobody uses it."""
    width = len(coding.cells)
    file = tempfile.TemporaryFile()  # noqa: SIM115, the array keeps it
    n_rows = 0
    for batch in each_batch(frame, rows_at_once(width)):
        cells = coding(batch)
        file.write(cells.tobytes())
        n_rows += len(cells)
    file.flush()
    if not n_rows:
        return np.empty((0, width))
    return np.memmap(file, dtype=np.float64, mode="r", shape=(n_rows, width))
