"""From a data frame to coded rows: what kind each column is, what is left out and why."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from deccs.data.coding import Coding, fit_coding
from deccs.data.frames import as_polars, column
from deccs.data.kinds import ColumnKind, kinds_of
from deccs.data.source import ArrayRows

if TYPE_CHECKING:
    import polars as pl


class TableWarning(UserWarning):
    """Something about a table that its owner should know."""


@dataclass(frozen=True, eq=False)
class FrameTable:
    """A frame, the kinds of its columns, and how they are coded."""

    frame: pl.LazyFrame
    kinds: tuple[ColumnKind, ...]

    @cached_property
    def coding(self) -> Coding:
        return fit_coding(self.frame, self.kinds)

    @property
    def is_plain(self) -> bool:
        """Whether all columns are complete numbers, so that there is nothing to code."""
        plain = all(kind.kind == "number" and not kind.n_missing for kind in self.kinds)
        return plain and bool(self.kinds)

    @property
    def left_out(self) -> dict[str, str]:
        """The columns that are not clustered, and why."""
        return {kind.name: kind.why or kind.kind for kind in self.kinds if not kind.is_used}

    def rows(self) -> ArrayRows:
        """The coded rows."""
        return coded_rows(self.frame, self.coding)

    def warn_of_what_is_left_out(self) -> None:
        """See :func:`warn_of_what_is_left_out`."""
        warn_of_what_is_left_out(self.kinds, stacklevel=7)


def warn_of_what_is_left_out(kinds: Sequence[ColumnKind], *, stacklevel: int) -> None:
    """One warning for all columns that are left out without the user having said so."""
    told = [kind for kind in kinds if not kind.is_used and not kind.given]
    if told:
        words = [f"{kind.name!r} ({kind.kind}: {kind.why})" for kind in told[:8]]
        more = f" and {len(told) - 8} more" if len(told) > 8 else ""
        warnings.warn(
            f"Left out: {', '.join(words)}{more}. To use one, say what it is: "
            f"kinds={{{told[0].name!r}: 'category'}}; to leave it out without a word: 'id'.",
            TableWarning,
            stacklevel=stacklevel,
        )


def tabulated(
    X: Any,
    kinds: Mapping[str, str] | None = None,
    *,
    exclude: Collection[str] = (),
) -> FrameTable:
    """The table of a frame of any library; columns in ``exclude`` do not take part."""
    frame = as_polars(X)
    if exclude:
        frame = frame.drop(list(exclude))
    return FrameTable(frame, kinds_of(frame, kinds))


def coded_rows(X: Any, coding: Coding) -> ArrayRows:
    """The rows of a frame, coded as those of the fit; columns are found by name."""
    frame = as_polars(X)
    coding.check_columns(frame.collect_schema().names())
    chosen = frame.select(column(name) for name in coding.names)
    return ArrayRows(coding(chosen.collect()), coding=coding)
