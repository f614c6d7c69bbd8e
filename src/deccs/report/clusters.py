"""What makes each cluster different: its columns against all points, or its images."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

BLOCK = 4_096  # rows at a time, so that large tables are never copied whole
MOST_PIXELS = 64  # a side of a small picture
N_NEAREST = 8


@dataclass(frozen=True)
class Differences:
    """Columns of the clusters against those of all points."""

    sizes: np.ndarray  # (k,)
    cluster_means: np.ndarray  # (k, d), zeros for an empty cluster
    means: np.ndarray  # (d,)
    deviations: np.ndarray  # (d,)
    lowest: float
    highest: float

    @property
    def standardized(self) -> np.ndarray:
        """(k, d): how many standard deviations a cluster's mean is from the mean of all."""
        known = (self.deviations > 0) & (self.sizes[:, None] > 0)
        scale = np.where(self.deviations > 0, self.deviations, 1.0)
        return np.where(known, (self.cluster_means - self.means) / scale, 0.0)


def dense_blocks(X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    for start in range(0, X.shape[0], BLOCK):
        rows = slice(start, start + BLOCK)
        block = X[rows]
        yield rows, np.asarray(block.toarray() if hasattr(block, "toarray") else block, dtype=float)


def differences(X: Any, labels: np.ndarray, n_clusters: int) -> Differences:
    """Means of the clusters and of all, deviations of all; two passes over the rows.

    >>> differences(np.array([[0.0], [0.0], [4.0], [4.0]]), np.array([0, 0, 1, 1]), 2).standardized
    array([[-1.],
           [ 1.]])
    """
    n, d = X.shape
    sizes = np.bincount(labels, minlength=n_clusters)
    sums, squares = np.zeros((n_clusters, d)), np.zeros(d)
    lowest, highest = np.inf, -np.inf
    for rows, block in dense_blocks(X):
        belongs = np.arange(n_clusters)[:, None] == labels[rows]  # (k, block)
        sums += belongs.astype(float) @ block
        lowest, highest = min(lowest, float(block.min())), max(highest, float(block.max()))
    means = sums.sum(axis=0) / n
    for _, block in dense_blocks(X):
        squares += ((block - means) ** 2).sum(axis=0)
    deviations = np.sqrt(squares / n)
    # A column of one value keeps a crumb of rounding, and must not stand out by it.
    deviations[deviations <= 1e-9 * np.abs(means)] = 0
    return Differences(
        sizes, sums / np.maximum(sizes, 1)[:, None], means, deviations, lowest, highest
    )


def nearest_to_center(Z: np.ndarray, members: np.ndarray, most: int = N_NEAREST) -> np.ndarray:
    """Row numbers of a cluster's points nearest to its center in the consensus representation.

    >>> nearest_to_center(np.array([[0.0], [1.0], [5.0], [2.0]]), np.array([0, 1, 3]), 2)
    array([1, 0])
    """
    own = Z[members].astype(float)
    distances = ((own - own.mean(axis=0)) ** 2).sum(axis=1)
    return members[np.argsort(distances, kind="stable")[:most]]


def as_png(image: np.ndarray, lowest: float, highest: float) -> bytes:
    """A gray picture (h, w) of at most 64 x 64 as PNG; ``lowest`` is black, ``highest`` white."""
    step = -(-max(image.shape) // MOST_PIXELS)
    scaled = (image[::step, ::step] - lowest) / ((highest - lowest) or 1.0)
    gray = np.round(np.clip(scaled, 0, 1) * 255).astype(np.uint8)
    height, width = gray.shape
    lines = np.pad(gray, [(0, 0), (1, 0)]).tobytes()  # each line begins with its filter: none

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bit gray
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )
