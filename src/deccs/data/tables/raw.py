"""What every reader returns: all columns of a file, before any is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class TableError(ValueError):
    """A file cannot be read as a table; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class RawTable:
    """A file as it was read."""

    names: tuple[str, ...]
    numbers: np.ndarray  # (n_rows, n_columns), NaN where a value is missing or text
    has_names: bool = True  # False: the file has no names, the columns are numbered
    texts: dict[str, np.ndarray] = field(default_factory=dict)  # (n_rows,) each: not numbers
    reasons: dict[str, str] = field(default_factory=dict)  # why a column is in ``texts``
    extras: dict[str, np.ndarray] = field(default_factory=dict)  # (n_rows,) each: not features
    image_shape: tuple[int, int] | None = None
    all_features: bool = False  # an array or images: no column is left out
    ids: np.ndarray | None = None  # (n_rows,) file names of images
    notes: tuple[str, ...] = ()  # sentences the user should read

    def column(self, name: str) -> np.ndarray:
        """(n_rows,) numbers, or text if the column holds anything else."""
        if name in self.extras:
            return self.extras[name]
        if name in self.texts:
            return self.texts[name]
        return self.numbers[:, self.names.index(name)]

    def features(self, names: Iterable[str]) -> np.ndarray:
        """(n_rows, n_names); nothing is copied if these are all columns."""
        names = tuple(names)
        if names == self.names:
            return self.numbers
        places = {name: place for place, name in enumerate(self.names)}
        return self.numbers[:, [places[name] for name in names]]


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
