"""``load``: one data set, normalized as in the paper, train and test rows joined."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from deccs.datasets import store
from deccs.datasets.sources import SOURCES, DatasetSource, content_sha256


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set with its true labels, and where it came from."""

    name: str
    X: NDArray[np.float32] = field(repr=False)  # (n, d)
    y: NDArray[np.int64] = field(repr=False)  # (n,), labels from 0; for scoring only
    n: int
    d: int
    k: int  # true number of clusters
    image_shape: tuple[int, int] | None  # (height, width) of a row, None if rows are not images
    source: str  # the file that was read, or the generator
    sha256: str  # of that file, or of the generated arrays


def names() -> tuple[str, ...]:
    """The eight data sets of the paper."""
    return tuple(SOURCES)


@overload
def load(name: str, *, return_X_y: Literal[False] = False, normalize: bool = True) -> Dataset: ...
@overload
def load(
    name: str, *, return_X_y: Literal[True], normalize: bool = True
) -> tuple[NDArray[np.float32], NDArray[np.int64]]: ...
def load(
    name: str, *, return_X_y: bool = False, normalize: bool = True
) -> Dataset | tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Load a data set by name.

    Looks for ``<name>.npz`` in the folder DECCS_DATA, then in the cache (DECCS_CACHE, or the user's cache
    folder), then downloads the public files. SYNTH is never downloaded: it is generated if there is no file.

    Parameters
    ----------
    name : one of ``names()``
    return_X_y : return ``(X, y)`` instead of a ``Dataset``
    normalize : scale as in the paper (UCI sets per feature, images by one global mean and standard
        deviation, SYNTH not at all); False returns the published values as float32

    Raises
    ------
    ValueError : there is no such data set
    DatasetError : the data could not be loaded; the message says what to do
    """
    source = _source(name)
    path = located(name)
    if path is None:
        assert source.generate is not None
        X, y = source.generate()
        origin, sha256 = source.page, content_sha256(X, y)
    else:
        X, y = store.read(path, source)
        origin, sha256 = str(path), store.file_sha256(path)
    X = X.astype(np.float32)
    y = y.astype(np.int64)
    if normalize:
        normalize_(X, source.scaling)
    if return_X_y:
        return X, y
    n, d = X.shape
    return Dataset(name, X, y, n, d, source.k, source.image_shape, origin, sha256)


def located(name: str) -> Path | None:
    """The file of a data set, downloaded if necessary; None if the data set is generated."""
    source = _source(name)
    path = store.file_at_hand(name)
    return path if path or source.generate else store.download(name, source)


def normalize_(X: NDArray[np.float32], scaling: Literal["none", "feature", "global"]) -> None:
    """Shift and scale X in place to mean 0 and standard deviation 1, per feature or over all values.

    >>> X = np.array([[0, 5], [2, 5]], dtype=np.float32)
    >>> normalize_(X, "feature")
    >>> X
    array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
    """
    if scaling == "none":
        return
    # Sums run in float64, but NumPy and einsum convert in small buffers: there is no float64 copy of 70,000 images.
    axis, squares = (0, "ij,ij->j") if scaling == "feature" else (None, "ij,ij->")
    constant = np.ptp(X, axis=axis) == 0
    X -= X.mean(axis=axis, dtype=np.float64)
    count = len(X) if scaling == "feature" else X.size
    std = np.sqrt(np.einsum(squares, X, X, dtype=np.float64) / count)
    # A constant column becomes 0 instead of an enlarged rounding error.
    X /= np.where(constant, np.inf, std)


def _source(name: str) -> DatasetSource:
    if name in SOURCES:
        return SOURCES[name]
    close = get_close_matches(str(name).lower(), SOURCES, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"Unknown data set {name!r}.{hint} Choose one of: {', '.join(SOURCES)}.")
