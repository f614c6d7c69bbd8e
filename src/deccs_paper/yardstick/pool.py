"""A folder of labeled data sets, one ``.npz`` file each with X (n, d) and y (n,)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from deccs.datasets.sources import content_sha256
from deccs.labels import NOISE


class DataSet(Protocol):
    """What methods are run on."""

    @property
    def name(self) -> str: ...
    @property
    def sha256(self) -> str:
        """Of X and y."""

    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def k(self) -> int:
        """The number of classes; rows without a class do not count as one."""

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """X (n, d) as published and y (n,), -1 where a row has no class."""


@dataclass(frozen=True)
class PoolFile:
    """A data set of the folder: where it is, and what a record says of it."""

    path: Path
    sha256: str  # of X and y
    n: int
    d: int
    k: int  # classes; rows without a class do not count as one

    @property
    def name(self) -> str:
        return self.path.stem

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return read_arrays(self.path)


def read_arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d) as published and y (n,), -1 where a row has no class."""
    with np.load(path, allow_pickle=False) as arrays:
        missing = {"X", "y"} - set(arrays.files)
        if missing:
            raise ValueError(f"{path} has no array {', '.join(sorted(missing))}. It needs X and y.")
        X, y = arrays["X"], arrays["y"]
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(
            f"{path}: X must have rows and columns and y one class per row, "
            f"got shapes {X.shape} and {y.shape}."
        )
    return X, y


def read_pool(folder: Path) -> list[PoolFile]:
    """The data sets of a folder, those with few rows first."""
    files = []
    for path in sorted(folder.resolve().glob("*.npz")):  # workers of a cluster are in other folders
        X, y = read_arrays(path)
        n, d = X.shape
        k = len(np.unique(y[y != NOISE]))
        files.append(PoolFile(path, content_sha256(X, y), n, d, k))
    if not files:
        raise ValueError(f"{folder} has no .npz files.")
    return sorted(files, key=lambda file: (file.n, file.d))
