"""Which function reads which file.

A new format is one function in a file of its own, imported in ``deccs/data/tables/__init__.py``::

    @reader(".xlsx")
    def read_excel(path: Path) -> RawTable:
        ...

``read_table``, the command line, its help and its error messages then know the ending.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deccs.data.tables.raw import RawTable, TableError

FOLDER = "a folder of images"  # registered like an ending
OPTIONS = ("encoding", "header", "as_text")  # what a reader may ask for by keyword

Read = Callable[..., RawTable]


@dataclass(frozen=True)
class Reader:
    """A registered function and the options it takes."""

    read: Read
    options: tuple[str, ...]


READERS: dict[str, Reader] = {}  # ending in lower case, or FOLDER


def reader(*endings: str) -> Callable[[Read], Read]:
    """Register a function that reads files with these endings.

    The function takes the path. It may also take, by keyword, ``encoding`` (str), ``header`` (bool, or None to guess)
    and ``as_text`` (names of columns to return as text even if they hold numbers).

    Parameters
    ----------
    endings : such as ".csv"; ``FOLDER`` for a folder
    """
    for ending in endings:
        if ending != FOLDER and not (ending.startswith(".") and ending == ending.lower()):
            raise ValueError(f'An ending looks like ".csv", in lower case; got {ending!r}.')
        if ending in READERS:
            raise ValueError(f"{ending} already has a reader, {READERS[ending].read.__name__}.")

    def register(read: Read) -> Read:
        _, *options = inspect.signature(read).parameters
        if unknown := sorted(set(options) - set(OPTIONS)):
            raise ValueError(
                f"{read.__name__} takes {', '.join(unknown)}. After the path a reader can take "
                f"{', '.join(OPTIONS)}."
            )
        READERS.update(dict.fromkeys(endings, Reader(read, tuple(options))))
        return read

    return register


def readable() -> str:
    """What can be read, for help and error messages."""
    endings = [ending for ending in READERS if ending != FOLDER]
    return f"{', '.join(endings)}, or {FOLDER}"


def read_raw(path: Path, encoding: str, header: bool | None, as_text: Collection[str]) -> RawTable:
    """Read a file with the reader for its ending."""
    if not path.exists():
        raise TableError(f"There is no file {path}. Give a file that ends in {readable()}.")
    if not (path.is_file() or path.is_dir()):  # reading a pipe or a device may never end
        raise TableError(
            f"{path} is a device, a pipe or the like, not a file. Save the data to a file and give that."
        )
    if path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty. Give a table with one row per line.")
    ending = FOLDER if path.is_dir() else path.suffix.lower()
    if ending not in READERS:
        raise TableError(
            f"{path} ends in {ending or 'nothing'!r}, which is not a known format. "
            f"Known formats are {readable()}."
        )
    given: dict[str, Any] = {"encoding": encoding, "header": header, "as_text": as_text}
    chosen = READERS[ending]
    return chosen.read(path, **{name: given[name] for name in chosen.options})
