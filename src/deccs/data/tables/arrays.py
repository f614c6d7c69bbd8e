"""Arrays of numpy: .npy (read where it is) and .npz with X. Nothing pickled is ever loaded."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from deccs.data.tables.source import Source, TableError, pixel_names, position_names

DAMAGED = (ValueError, OSError, EOFError, KeyError, MemoryError, zipfile.BadZipFile)


def read_npy(path: Path) -> Source:
    try:
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGED as error:
        raise TableError(
            f"{path} cannot be read as .npy: {error}. Save numbers with numpy.save."
        ) from error
    return array_source(path, X)


def read_npz(path: Path) -> Source:
    """The array X; other arrays with one value per row stand beside it, to color by or as ids."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if not isinstance(arrays, np.lib.npyio.NpzFile):
                raise TableError(f"{path} holds a single array. Give it the ending .npy.")
            if "X" not in arrays:
                raise TableError(
                    f"{path} has no array X, only {', '.join(arrays) or 'nothing'}. "
                    "Save it as numpy.savez(path, X=...)."
                )
            X = arrays["X"]
            beside = {name: arrays[name] for name in arrays if name != "X"}
    except TableError:
        raise
    except DAMAGED as error:
        raise TableError(
            f"{path} cannot be read as .npz: {error}. Save it with numpy.savez(path, X=...), "
            "with arrays of numbers or text, no objects."
        ) from error
    beside = {name: array for name, array in beside.items() if array.shape == X.shape[:1]}
    return array_source(path, X, beside)


def array_source(path: Path, X: np.ndarray, beside: dict[str, np.ndarray] | None = None) -> Source:
    if X.dtype.kind not in "buif":
        raise TableError(
            f"{path} holds {X.dtype}, not numbers. Save an array of numbers, (rows, columns)."
        )
    if X.ndim < 2:
        raise TableError(
            f"{path} has the shape {X.shape}. A table has rows and columns: for a single column "
            "save X.reshape(-1, 1)."
        )
    if X.size == 0:
        raise TableError(f"{path} is empty, its shape is {X.shape}. Give at least two rows.")
    image_shape = (int(X.shape[1]), int(X.shape[2])) if X.ndim == 3 else None
    X = X.reshape(len(X), -1)
    names = pixel_names(*image_shape) if image_shape else position_names(X.shape[1])
    return Source(names, X, named=False, beside=beside or {}, image_shape=image_shape, chosen=True)
