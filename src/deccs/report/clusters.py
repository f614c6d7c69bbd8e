"""What makes each cluster different: its columns against all points, or its images."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace

import numpy as np

from deccs.data.scaling import LARGE, SMALL, InUnits
from deccs.data.source import RowSource, each_block

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


def differences(source: RowSource, labels: np.ndarray, n_clusters: int) -> Differences:
    """Means of the clusters and of all points, deviations of all.

    >>> from deccs.data.source import source_of
    >>> X = source_of(np.array([[0.0], [0.0], [4.0], [4.0]]))
    >>> differences(X, np.array([0, 0, 1, 1]), 2).standardized
    array([[-1.],
           [ 1.]])
    """
    low = high = source.read(slice(0, 1))[0]  # (d,)
    for _, block in each_block(source):
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
    size = np.maximum(np.abs(low), np.abs(high))
    if ((size == 0) | ((size > SMALL) & (size < LARGE))).all():
        return measured(source, labels, n_clusters)
    # In units of its largest value the squares of a column can be added up.
    exponents = np.frexp(size)[1]
    found = measured(InUnits(source, exponents), labels, n_clusters)
    names = ("cluster_means", "means", "deviations")
    values = {name: np.ldexp(getattr(found, name), exponents) for name in names}
    return replace(found, **values, lowest=float(low.min()), highest=float(high.max()))


def measured(source: RowSource, labels: np.ndarray, n_clusters: int) -> Differences:
    """The differences, where squares of all values can be added up."""
    d = source.shape[1]
    sums, n_rows = np.zeros((n_clusters, d)), 0
    means, squares = np.zeros(d), np.zeros(d)
    lowest, highest = np.inf, -np.inf
    for place, block in each_block(source):
        belongs = np.arange(n_clusters)[:, None] == labels[place]  # (k, block)
        sums += belongs.astype(float) @ block
        lowest, highest = min(lowest, float(block.min())), max(highest, float(block.max()))
        # Mean and squared differences of the rows so far, joined with those of the block (Chan et
        # al. 1979): as exact as a second pass.
        block_means = block.mean(axis=0)
        step = block_means - means
        share = len(block) / (n_rows + len(block))
        squares += ((block - block_means) ** 2).sum(axis=0) + step**2 * n_rows * share
        means += step * share
        n_rows += len(block)
    deviations = np.sqrt(squares / n_rows)
    # Rounding must not make a column of one value stand out.
    deviations[deviations <= 1e-13 * np.abs(means)] = 0
    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters)
    cluster_means = sums / np.maximum(sizes, 1)[:, None]
    return Differences(sizes, cluster_means, means, deviations, lowest, highest)


def nearest_to_center(Z: np.ndarray, rows: np.ndarray, most: int = N_NEAREST) -> np.ndarray:
    """Those of a cluster's rows that are nearest to its center in the representation.

    >>> nearest_to_center(np.array([[0.0], [1.0], [5.0], [2.0]]), np.array([0, 1, 3]), 2)
    array([1, 0])
    """
    points = Z[rows].astype(float)
    distances = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    return rows[np.argsort(distances, kind="stable")[:most]]


def as_png(image: np.ndarray, lowest: float, highest: float) -> bytes:
    """A gray picture (h, w) of at most 64 x 64 as PNG; ``lowest`` is black, ``highest`` white."""
    step = -(-max(image.shape) // MOST_PIXELS)
    scaled = (image[::step, ::step] - lowest) / ((highest - lowest) or 1.0)
    gray = np.round(np.clip(scaled, 0, 1) * 255).astype(np.uint8)
    height, width = gray.shape
    lines = np.pad(gray, [(0, 0), (1, 0)]).tobytes()  # each line begins with its filter: none

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + checksum

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bit gray
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
