"""What every reader returns: all columns of a file, before any is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from deccs.data.scanned import SurveyedFrame
from deccs.data.source import RowSource


class TableError(ValueError):
    """A file cannot be read as a table; the message says why and what to do."""


class GoneError(TableError, OSError):
    """A file that was there cannot be read any more: what was learned until then is worth keeping."""


@dataclass(frozen=True)
class OpenedFile:
    """A file that is read again and again, as it was at first."""

    path: Path
    size: int
    changed: int  # nanoseconds

    @classmethod
    def of(cls, path: Path) -> Self:
        status = path.stat()
        return cls(path, status.st_size, status.st_mtime_ns)

    def check(self) -> None:
        """Raise a TableError if the file is not what it was."""
        try:
            is_same = OpenedFile.of(self.path) == self
        except OSError as error:
            raise GoneError(
                f"{self.path} was there when the fit began and cannot be read now: {error.strerror}. "
                "Put it back, and give the same command again."
            ) from error
        if not is_same:
            raise TableError(
                f"{self.path} has changed since it was opened: half of the labels would be of other rows. "
                "Wait until nothing writes to it, and start again."
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class RawTable:
    """A file as it was read: a frame, or an array if it holds nothing but numbers of one kind.

    Columns of ``frame`` are Boolean, numbers (up to 64 bits), String, Categorical or Enum, Date, Datetime, Time or
    Duration. A missing value is null, never NaN.
    """

    frame: pl.LazyFrame | None = None  # None for arrays and images
    array: np.ndarray | RowSource | None = (
        None  # (n_rows, n_columns) numbers: .npy, .npz, .h5ad, Zarr, images
    )
    names: tuple[str, ...]  # of the columns, in order, of frame or array
    has_names: bool = True  # False: the file has no names, the columns are numbered
    extras: dict[str, np.ndarray] = field(default_factory=dict)  # (n_rows,) each: not features
    image_shape: tuple[int, int] | None = None
    ids: np.ndarray | None = None  # (n_rows,) file names of images, names of cells
    notes: tuple[str, ...] = ()  # sentences the user should read
    n_rows: int
    is_large: bool = False  # frame or array is read from disk, and must not be in memory as a whole
    files: tuple[OpenedFile, ...] = ()  # that a large frame is scanned from
    survey: SurveyedFrame | None = (
        None  # of a large frame, if somebody has looked at all rows already
    )

    def check(self) -> None:
        """Raise a TableError if a file has changed since it was opened."""
        for file in self.files:
            file.check()


def position_names(n_columns: int) -> tuple[str, ...]:
    """Names for columns without names.

    >>> position_names(2)
    ('column 1', 'column 2')
    """
    return tuple(f"column {place + 1}" for place in range(n_columns))


def pixel_names(height: int, width: int) -> tuple[str, ...]:
    """Names for the pixels of an image, row by row.

    >>> pixel_names(1, 2)
    ('pixel 0,0', 'pixel 0,1')
    """
    return tuple(f"pixel {row},{column}" for row in range(height) for column in range(width))


def as_unicode(text: str) -> str:
    """Text that can be written as UTF-8: what stands for other bytes of a file name is spelled out.

    >>> as_unicode("plain"), as_unicode("\\udcff.png")
    ('plain', '\\\\udcff.png')
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def check_names(path: object, names: Iterable[str]) -> None:
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in seen:
            raise TableError(
                f"{path}: the column name {name!r} occurs twice, in columns {seen[name]} and {place}. "
                "Rename one of them."
            )
        seen[name] = place


def listed(words: Iterable[Any], most: int = 8) -> str:
    """Words as a text that stays short.

    >>> listed("abcd", most=2)
    'a, b and 2 more'
    """
    texts = [str(word) for word in words]
    n_more = len(texts) - most
    return ", ".join(texts) if n_more <= 0 else f"{', '.join(texts[:most])} and {n_more} more"


def shortened(text: str, most: int = 30) -> str:
    """A cell as a message quotes it.

    >>> shortened("abc"), shortened("x" * 99, most=4)
    ('abc', 'xxx…')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
