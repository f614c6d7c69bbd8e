"""What every reader hands over: all columns of a file, before any is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class TableError(ValueError):
    """A file cannot be read as a table; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Source:
    """A file as it was read."""

    names: tuple[str, ...]
    numbers: np.ndarray  # (n_rows, n_columns), NaN where missing or text
    named: bool = True  # the file itself has the names
    texts: dict[str, np.ndarray] = field(default_factory=dict)  # (n_rows,) each: what is no number
    reasons: dict[str, str] = field(default_factory=dict)  # why a column is among the texts
    beside: dict[str, np.ndarray] = field(
        default_factory=dict
    )  # (n_rows,) each: arrays that are no features
    image_shape: tuple[int, int] | None = None
    chosen: bool = False  # an array or images: every column is meant
    ids: np.ndarray | None = None  # file names of images
    notes: tuple[str, ...] = ()


def position_names(n_columns: int) -> tuple[str, ...]:
    """
    >>> position_names(2)
    ('column 1', 'column 2')
    """
    return tuple(f"column {place + 1}" for place in range(n_columns))


def pixel_names(height: int, width: int) -> tuple[str, ...]:
    """
    >>> pixel_names(1, 2)
    ('pixel 0,0', 'pixel 0,1')
    """
    return tuple(f"pixel {row},{column}" for row in range(height) for column in range(width))


def check_names(path: object, names: Iterable[str]) -> None:
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in seen:
            raise TableError(
                f"{path}: the column name {name!r} comes twice, in columns {seen[name]} and {place}. "
                "Rename one of them."
            )
        seen[name] = place


def listed(words: Iterable[Any], most: int = 8) -> str:
    """
    >>> listed("abcd", most=2)
    'a, b and 2 more'
    """
    every = [str(word) for word in words]
    more = len(every) - most
    return ", ".join(every) if more <= 0 else f"{', '.join(every[:most])} and {more} more"
