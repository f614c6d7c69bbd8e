"""NumPy arrays: .npy (memory-mapped) and .npz with X. Pickles are never loaded."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from deccs.data.tables.raw import RawTable, TableError, pixel_names, position_names
from deccs.data.tables.readers import reader

DAMAGED = (ValueError, OSError, EOFError, KeyError, MemoryError, zipfile.BadZipFile)


@reader(".npy")
def read_npy(path: Path) -> RawTable:
    try:
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGED as error:
        raise TableError(
            f"{path} cannot be read as .npy: {error}. Save numbers with numpy.save."
        ) from error
    return raw_from_array(path, X)


@reader(".npz")
def read_npz(path: Path) -> RawTable:
    """The array X; other arrays with one value per row can be ids, or colors in the report."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if not isinstance(arrays, np.lib.npyio.NpzFile):
                raise TableError(f"{path} holds a single array. Rename it to .npy.")
            if "X" not in arrays:
                raise TableError(
                    f"{path} has no array X, only {', '.join(arrays) or 'nothing'}. "
                    "Save it as numpy.savez(path, X=...)."
                )
            X = arrays["X"]
            extras = {name: arrays[name] for name in arrays if name != "X"}
    except TableError:
        raise
    except DAMAGED as error:
        raise TableError(
            f"{path} cannot be read as .npz: {error}. Save it with numpy.savez(path, X=...), "
            "with arrays of numbers or text, not objects."
        ) from error
    extras = {name: array for name, array in extras.items() if array.shape == X.shape[:1]}
    return raw_from_array(path, X, extras)


def raw_from_array(
    path: Path, X: np.ndarray, extras: dict[str, np.ndarray] | None = None
) -> RawTable:
    if X.dtype.kind not in "buif":
        raise TableError(
            f"{path} has values of type {X.dtype}, not numbers. Save an array of numbers, (rows, columns)."
        )
    if X.ndim < 2:
        raise TableError(
            f"{path} has the shape {X.shape}. A table has rows and columns; for a single column "
            "save X.reshape(-1, 1)."
        )
    if X.size == 0:
        raise TableError(f"{path} is empty, its shape is {X.shape}. Give at least two rows.")
    image_shape = (int(X.shape[1]), int(X.shape[2])) if X.ndim == 3 else None
    X = X.reshape(len(X), -1)
    return RawTable(
        array=X,
        names=pixel_names(*image_shape) if image_shape else position_names(X.shape[1]),
        has_names=False,
        extras=extras or {},
        image_shape=image_shape,
        n_rows=len(X),
    )
