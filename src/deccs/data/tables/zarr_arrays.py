"""Zarr folders: an array of numbers, or a group with an array X, read in chunks if it is large."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from deccs.data.scanned import reblocked
from deccs.data.source import blocks
from deccs.data.tables.arrays import raw_from_array
from deccs.data.tables.frames import LARGE
from deccs.data.tables.isolated import SECONDS, IsolatedError, isolated
from deccs.data.tables.raw import GoneError, OpenedFile, RawTable, TableError, listed
from deccs.data.tables.readers import ZARR, ZARR_FILES, reader

SLOWEST = 10 * 2**20  # bytes a second: even a slow network drive reads so fast
AT_ONCE = 2**22  # values that are read at once, or those of a row of chunks if they are more


@reader(ZARR)
def read_zarr(path: Path) -> RawTable:
    """A small array as an array in memory, a large one as rows that are read from the folder."""
    if find_spec("zarr") is None:
        raise TableError(f'{path} needs zarr: pip install "deccs[zarr]".')
    try:
        array = array_in(path)
        seconds = SECONDS + int(array.nbytes) // SLOWEST
        # Zarr goes on with other chunks after an error, and tells of each when the process ends.
        isolated(f"{__name__}:read_all", str(path.absolute()), seconds=seconds)
    except (IsolatedError, OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(
            f"{path} cannot be read as Zarr: {error}. Check that the folder is complete."
        ) from error
    notes = note_on_absent(array)
    if array.nbytes <= LARGE:
        return replace(raw_from_array(path, np.asarray(array[:])), notes=notes)
    rows = ZarrRows(path, array)
    table = raw_from_array(path, np.empty((2, *array.shape[1:]), array.dtype))  # it names columns
    return RawTable(
        array=rows,
        names=table.names,
        has_names=False,
        image_shape=table.image_shape,
        notes=notes,
        n_rows=rows.shape[0],
        is_large=True,
    )


def array_in(path: Path) -> Any:
    """The array of a folder, of numbers in rows and columns."""
    import zarr

    item = zarr.open(str(path), mode="r")
    if not hasattr(item, "shape"):
        names = sorted(item.array_keys())
        if "X" not in names:
            inside = f"only {listed(names)}" if names else "no array at all"
            hint = f" Give one of them: {path / names[0]}." if names else ""
            raise TableError(f"{path} is a Zarr group without an array X, {inside}.{hint}")
        item = item["X"]
    if item.dtype.kind not in "buif" or len(item.shape) < 2 or 0 in item.shape:
        raise TableError(
            f"{path} has the shape {item.shape} and values of type {item.dtype}. Give rows and columns of numbers."
        )
    return item


def note_on_absent(array: Any) -> tuple[str, ...]:
    """What to tell of chunks that are not there: all of their values are zero, or a copy has lost them."""
    n_absent = int(array.nchunks) - int(array.nchunks_initialized)
    if not n_absent:
        return ()
    return (
        f"{n_absent:,} of {array.nchunks:,} chunks are not in the folder: all of their values count as "
        f"{array.fill_value}. Look whether the folder is complete.",
    )


def read_all(path: str) -> None:
    """Read all values once, in the other process."""
    array = array_in(Path(path))
    for rows in blocks(array.shape[0], rows_of_chunks(array)):
        array[rows]


def rows_of_chunks(array: Any) -> int:
    """How many rows are read at once, so that no chunk is read twice."""
    of_chunk = int((array.shards or array.chunks)[0])
    width = math.prod(array.shape[1:])
    return of_chunk * max(1, AT_ONCE // (width * of_chunk))


class ZarrRows:
    """Rows of a Zarr array, in order or, less quickly, at random."""

    is_sequential = True

    def __init__(self, path: Path, array: Any) -> None:
        self.path, self.array = path, array
        place = path / str(array.path)
        found = [place / name for name in ZARR_FILES if (place / name).is_file()]
        self.opened = [OpenedFile.of(file) for file in found]
        self.n_chunks = array.nchunks_initialized

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, *rest = self.array.shape
        return int(n_rows), math.prod(rest)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.array.dtype)

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        chosen = self.array[rows] if isinstance(rows, slice) else self.array.oindex[rows]
        return np.asarray(chosen, dtype=np.float64).reshape(len(chosen), self.shape[1])

    def stream(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[np.ndarray]:
        """The rows in blocks of ``size``; each chunk is read once."""
        stop = self.shape[0] if stop is None else stop
        at_once = rows_of_chunks(self.array)
        self.check()
        first = start - start % at_once
        parts = (
            self.read(slice(max(place, start), min(place + at_once, stop)))
            for place in range(first, stop, at_once)
        )
        yield from reblocked(parts, size)
        self.check()

    def check(self) -> None:
        """Raise a TableError if the array was replaced, or has lost chunks: they would be read as zeros."""
        for file in self.opened:
            file.check()
        if self.array.nchunks_initialized != self.n_chunks:
            raise GoneError(
                f"{self.path} had {self.n_chunks:,} chunks when the fit began and has "
                f"{self.array.nchunks_initialized:,} now. Put them back, and give the same command again."
            )
