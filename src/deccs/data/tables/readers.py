"""Which function reads which file.

A new format is one function in a file of its own, imported in ``deccs/data/tables/__init__.py``::

    @reader(".ods")
    def read_spreadsheet(path: Path) -> RawTable:
        ...

``read_table``, the command line, its help and its error messages then know the ending.
"""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deccs.data.tables.raw import RawTable, TableError
from deccs.group.group import ALONE, Group

FOLDER = "a folder of images"  # registered like an ending
PARTS = "a folder or a pattern of Parquet files (sales/*.parquet)"
DATABASE = "a database (sqlite:///FILE, postgresql://...)"
ZARR = "a folder of Zarr"
NO_ENDINGS = (FOLDER, PARTS, DATABASE, ZARR)
ZARR_FILES = ("zarr.json", ".zarray", ".zgroup")  # one of them is in each folder of Zarr
PARQUET_ENDINGS = (".parquet", ".pq")
IMAGE_ENDINGS = frozenset(
    (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
)
PACKED = (".gz", ".zst")  # compressed text: .csv.gz
# What a reader may ask for by keyword.
OPTIONS = ("encoding", "header", "as_text", "query", "group")

Read = Callable[..., RawTable]


@dataclass(frozen=True)
class Reader:
    """A registered function and the options it takes."""

    read: Read
    options: tuple[str, ...]


READERS: dict[str, Reader] = {}  # ending in lower case, FOLDER or DATABASE


def reader(*endings: str) -> Callable[[Read], Read]:
    """Register a function that reads files with these endings.

    The function takes the path. It may also take, by keyword, ``encoding`` (str), ``header`` (bool, or None to guess),
    ``as_text`` (names of columns to return as text even if they hold numbers), ``query`` (SQL, or None) and ``group``
    (the processes that read a large table together).

    Parameters
    ----------
    endings : such as ".csv"; ``FOLDER`` for a folder
    """
    for ending in endings:
        if ending not in NO_ENDINGS and not (ending.startswith(".") and ending == ending.lower()):
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
    endings = [name for name in READERS if name not in NO_ENDINGS and not name.endswith(PACKED)]
    packed = "text also compressed, such as .csv.gz or .csv.zst"
    return f"{', '.join(endings)} ({packed}), {PARTS}, {ZARR}, {DATABASE}, or {FOLDER}"


def read_raw(
    path: str | Path,
    *,
    encoding: str = "utf-8",
    header: bool | None = None,
    as_text: Collection[str] = (),
    query: str | None = None,
    group: Group = ALONE,
) -> RawTable:
    """Read all columns of a file, a folder of images or a query's result.

    Parameters
    ----------
    path : a file, a folder, or the address of a database, as text: "sqlite:///shop.db" (a file named from here),
        "sqlite:////data/shop.db", "postgresql://user:password@host/name"
    encoding : of text
    header : whether CSV, TSV and spreadsheets begin with column names; None to guess
    as_text : columns to read as they are written, such as ids (007)
    query : what to ask the database, a SELECT
    group : the processes that read a large table together, each a part of its rows
    """
    given: dict[str, Any] = {"encoding": encoding, "header": header, "as_text": as_text}
    given |= {"query": query, "group": group}
    if isinstance(path, str) and "://" in path and not Path(path).exists():
        place: str | Path = path
        chosen = READERS[DATABASE]
    else:
        place = Path(path)
        chosen = READERS[ending_of(place)]
        if query is not None and "query" not in chosen.options:
            raise TableError(
                f"{place} is not a database, so it cannot take a query. Leave --query out, or give an "
                "address such as sqlite:///shop.db."
            )
    return chosen.read(place, **{name: given[name] for name in chosen.options})


def is_pattern(path: Path) -> bool:
    """Whether a path stands for several files.

    >>> is_pattern(Path("sales/2024-*.parquet")), is_pattern(Path("sales.parquet"))
    (True, False)
    """
    return any(sign in str(path) for sign in "*?[")


def ending_of(path: Path) -> str:
    """What a path is registered as: ".csv", ".csv.gz", FOLDER, PARTS; an error if nothing reads it."""
    if str(path).startswith(("sqlite:", "postgresql:", "postgres:")) and not path.exists():
        raise TableError("Give the address of a database as text: a Path loses one of its slashes.")
    if not path.exists() and is_pattern(path):
        return PARTS
    if not path.exists():
        raise TableError(f"There is no file {path}. Give a file that ends in {readable()}.")
    if not (path.is_file() or path.is_dir()):  # reading a pipe or a device may never end
        raise TableError(
            f"{path} is a device, a pipe or the like, not a file. Save the data to a file and give that."
        )
    if path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty. Give a table with one row per line.")
    if path.is_dir():
        return folder_of(path)
    for ending in ("".join(path.suffixes[-2:]).lower(), path.suffix.lower()):
        if ending in READERS:
            return ending
    raise TableError(
        f"{path} ends in {path.suffix.lower() or 'nothing'!r}, which is not a known format. "
        f"Known formats are {readable()}."
    )


def is_zarr(path: Path) -> bool:
    """Whether a folder is one of Zarr, by its name or by what is in it."""
    if not os.path.isdir(path):  # Path.is_dir raises an error for very long names
        return False
    return path.suffix.lower() == ".zarr" or any((path / name).exists() for name in ZARR_FILES)


def folder_of(path: Path) -> str:
    """What a folder holds: a Zarr array, parts of a table, or images if there are more of them."""
    if is_zarr(path):
        return ZARR
    endings = Counter(file.suffix.lower() for file in path.rglob("*.*"))
    n_parts = sum(endings[ending] for ending in PARQUET_ENDINGS)
    return PARTS if n_parts > sum(endings[ending] for ending in IMAGE_ENDINGS) else FOLDER
