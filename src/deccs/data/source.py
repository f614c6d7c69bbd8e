"""Where rows are read from: an array, a memory map, a sparse matrix, a Parquet file, or your own.

Everything that touches data reads it through a :class:`RowSource`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from os import PathLike
from typing import Any, Protocol, runtime_checkable

import numpy as np

from deccs.loaded import is_sparse

GROUPS_IN_MEMORY = 4  # row groups of a Parquet file that are kept after they were read


@runtime_checkable
class RowSource(Protocol):
    """Rows that can be read where they are. Any object with these three can be clustered."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the values as they are stored."""

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        """A block of rows, or the rows of these numbers: a dense array of doubles."""


class ArrayRows:
    """An array of numbers in memory. ``image_shape`` is known if it was handed in as (n, height, width).

    ``coding`` says how the columns of a data frame became these numbers, None for an array.
    """

    def __init__(
        self, X: Any, image_shape: tuple[int, int] | None = None, coding: Any = None
    ) -> None:
        self.X, self.image_shape, self.coding = X, image_shape, coding
        self.n_missing: np.ndarray | None = None  # see gaps_in

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_features = self.X.shape
        return n_rows, n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.X.dtype

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        return np.asarray(self.X[rows]).astype(np.float64, copy=False)


class MemmapRows(ArrayRows):
    """An array in a file, of which only the rows asked for come into memory."""


class SparseRows(ArrayRows):
    """A CSR matrix; blocks of it are dense."""

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        return self.X[rows].toarray().astype(np.float64, copy=False)


class SelectedRows:
    """Some rows of another source, in the order of their numbers in ``index``."""

    def __init__(self, source: RowSource, index: np.ndarray) -> None:
        self.source, self.index = source, index

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.index), self.source.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        return self.source.read(self.index[rows])


class ColumnRows:
    """Some columns of another source, by their places."""

    def __init__(self, source: RowSource, places: Sequence[int]) -> None:
        self.source, self.places = source, list(places)

    @property
    def is_sequential(self) -> bool:
        return is_sequential(self.source)

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape[0], len(self.places)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        return self.source.read(rows)[:, self.places]

    def stream(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[np.ndarray]:
        return (block[:, self.places] for block in in_order(self.source, size, start, stop))


class PartRows:
    """The rows from ``start`` to ``stop`` - 1 of another source."""

    def __init__(self, source: RowSource, start: int, stop: int) -> None:
        self.source, self.start, self.stop = source, start, stop

    @property
    def shape(self) -> tuple[int, int]:
        return self.stop - self.start, self.source.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    @property
    def is_sequential(self) -> bool:
        return is_sequential(self.source)

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.shape[0])
            return self.source.read(slice(self.start + start, self.start + stop, step))
        return self.source.read(self.start + rows)

    def stream(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[np.ndarray]:
        last = self.stop if stop is None else self.start + stop
        return in_order(self.source, size, self.start + start, last)


class FilledRows:
    """A source whose missing values are replaced by one number for each column."""

    def __init__(self, source: RowSource, values: np.ndarray) -> None:
        self.source, self.values = source, values  # (n_features,)

    @property
    def is_sequential(self) -> bool:
        return is_sequential(self.source)

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        return self._filled(self.source.read(rows))

    def stream(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[np.ndarray]:
        return map(self._filled, in_order(self.source, size, start, stop))

    def _filled(self, block: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(block), self.values, block)


class ParquetRows:
    """Numeric columns of a Parquet file, read by row group.

    Parameters
    ----------
    path : the file
    columns : names of the columns, in the order wanted; None for all
    """

    def __init__(self, path: str | PathLike[str], columns: Sequence[str] | None = None) -> None:
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise ImportError(f'{path} needs pyarrow: pip install "deccs[tables]".') from error
        # Without threads, here and below: pyarrow waits for ever if it cannot start them.
        self.file = parquet.ParquetFile(path, pre_buffer=False)
        self.columns = list(columns or self.file.schema_arrow.names)
        sizes = [
            self.file.metadata.row_group(group).num_rows
            for group in range(self.file.num_row_groups)
        ]
        self.starts = np.cumsum([0, *sizes])  # (n_groups + 1,)
        self._group = lru_cache(GROUPS_IN_MEMORY)(self._read_group)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.starts[-1]), len(self.columns)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        wanted = np.arange(*rows.indices(self.shape[0])) if isinstance(rows, slice) else rows
        block = np.empty((len(wanted), len(self.columns)))
        group_of = np.searchsorted(self.starts, wanted, side="right") - 1
        for group in np.unique(group_of):
            inside = group_of == group
            block[inside] = self._group(int(group))[wanted[inside] - self.starts[group]]
        return block

    def _read_group(self, group: int) -> np.ndarray:
        table = self.file.read_row_group(group, columns=self.columns, use_threads=False)
        columns = [
            table.column(name).cast("float64", safe=False).to_numpy(zero_copy_only=False)
            for name in self.columns
        ]
        return np.column_stack(columns)


def source_of(X: Any, image_shape: tuple[int, int] | None = None, coding: Any = None) -> RowSource:
    """What reads the rows of X; a source is returned as it is."""
    if not isinstance(X, np.ndarray) and isinstance(X, RowSource):
        return X
    if is_sparse(X):
        return SparseRows(X)
    return (MemmapRows if is_memory_map(X) else ArrayRows)(X, image_shape, coding)


def is_memory_map(X: Any) -> bool:
    """Whether the array, or what it is a view of, lives in a file."""
    while X is not None:
        if isinstance(X, np.memmap):
            return True
        X = getattr(X, "base", None)
    return False


def rows_at_once(width: int) -> int:
    """How many rows fit into 32 MB of doubles: wide sparse data must not become gigabytes.

    >>> rows_at_once(784), rows_at_once(50_000)
    (4096, 83)
    """
    return max(64, min(4096, 2**22 // width))


def blocks(n_rows: int, size: int) -> Iterator[slice]:
    """Slices of at most ``size`` rows, in order.

    >>> list(blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def each_block(source: RowSource, width: int | None = None) -> Iterator[tuple[slice, np.ndarray]]:
    """All rows in order, block by block: where the block is, and its rows as doubles.

    ``width`` is the widest array a caller makes of a block; the number of columns by default.
    """
    start = 0
    for block in in_order(source, rows_at_once(max(width or 0, source.shape[1]))):
        yield slice(start, start + len(block)), block
        start += len(block)


def is_sequential(source: RowSource) -> bool:
    """Whether reading rows at random means reading all of them: text, and files with large groups of rows."""
    return bool(getattr(source, "is_sequential", False))


def in_order(
    source: RowSource, size: int, start: int = 0, stop: int | None = None
) -> Iterator[np.ndarray]:
    """The rows from ``start`` to ``stop`` - 1, block by block: at most ``size`` rows each.

    A source that knows a faster way than ``read`` says so by a method ``stream`` with the same arguments.
    """
    stop = source.shape[0] if stop is None else stop
    stream = getattr(source, "stream", None)
    if stream is not None:
        yield from stream(size, start, stop)
        return
    for place in blocks(stop - start, size):
        yield source.read(slice(start + place.start, start + place.stop))


def gaps_in(source: RowSource) -> np.ndarray:
    """How many values each column lacks: (n_features,). Sources of ours remember it: a fit asks twice."""
    surveyed = getattr(source, "survey", None)
    known: np.ndarray | None = getattr(surveyed or source, "n_missing", None)
    if known is not None:
        return known
    n_missing = np.zeros(source.shape[1], dtype=np.int64)
    if source.dtype.kind == "f":
        for _, block in each_block(source):
            n_missing += np.isnan(block).sum(axis=0)
    if hasattr(source, "n_missing"):
        source.n_missing = n_missing
    return n_missing


def fingerprint_of(source: RowSource) -> str:
    """sha256 of the rows, so that a checkpoint knows its data again."""
    # Imported here: it loads torch, which reading a file and the command line's help do not need.
    from deccs.storage.checkpoints import fingerprint

    if isinstance(source, ArrayRows):
        return fingerprint(source.X)
    digest = hashlib.sha256(f"{source.dtype} {source.shape}".encode())
    for _, block in each_block(source):
        digest.update(np.ascontiguousarray(block).tobytes())
    return digest.hexdigest()[:16]
