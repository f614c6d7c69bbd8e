"""Made-up tables of any size with known classes that no hyperplane separates.

Ten classes are five pairs of interleaved moons. Each pair lies in a plane of its own of a latent space, which a random
layer bends into 64 columns with noise. Rows come in batches, each from its own seed: the first million of ten million
rows are the million rows of a smaller table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deccs.seeds import seed_for
from deccs.storage.atomic import replacing

N_PAIRS, N_COLUMNS = 5, 64
N_LATENT = 8
BATCH = 100_000  # rows of a seed; also of a row group
SPREAD = 0.08  # of a moon, whose radius is 1
NOISE = 0.2  # deviation in each column; that of the columns themselves is about 0.7
DISTANCE = 3.0  # deviation of the centers of pairs


@dataclass(frozen=True, eq=False)
class World:
    """What all rows of a seed share."""

    centers: np.ndarray  # (n_pairs, n_latent)
    planes: np.ndarray  # (n_pairs, 2, n_latent), orthonormal rows
    bend: np.ndarray  # (n_latent, n_columns)
    shift: np.ndarray  # (n_columns,)


def world_of(seed: int) -> World:
    """The world of a seed."""
    rng = np.random.default_rng(seed_for(seed, "world"))
    turns = [np.linalg.qr(rng.normal(size=(N_LATENT, 2)))[0].T for _ in range(N_PAIRS)]
    return World(
        centers=rng.normal(scale=DISTANCE, size=(N_PAIRS, N_LATENT)),
        planes=np.stack(turns),
        bend=rng.normal(scale=0.5 / np.sqrt(N_LATENT), size=(N_LATENT, N_COLUMNS)),
        shift=rng.normal(scale=0.5, size=N_COLUMNS),
    )


def moons(classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A point on the moon of each class, even ones above and odd ones below: (n,) -> (n, 2)."""
    angle = rng.uniform(0, np.pi, len(classes))
    is_upper = classes % 2 == 0
    x = np.where(is_upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(is_upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.stack([x, y], axis=1) + rng.normal(scale=SPREAD, size=(len(classes), 2))


def batch(number: int, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, n_columns) in single precision, and their classes (n,).

    >>> X, classes = batch(0, 5, seed=0)
    >>> X.shape, X.dtype, int(classes.max()) < 10
    ((5, 64), dtype('float32'), True)
    """
    world = world_of(seed)
    rng = np.random.default_rng(seed_for(seed, "batch", number))
    classes = rng.integers(0, 2 * N_PAIRS, BATCH)
    pairs = classes // 2
    flat = 2 * moons(classes, rng)  # (n, 2)
    latent = world.centers[pairs] + np.einsum("np,npl->nl", flat, world.planes[pairs])
    X = np.tanh(latent @ world.bend + world.shift) + rng.normal(
        scale=NOISE, size=(BATCH, N_COLUMNS)
    )
    return X[:n_rows].astype(np.float32), classes[:n_rows]


def batches(n_rows: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All rows of a table, batch by batch."""
    for number, start in enumerate(range(0, n_rows, BATCH)):
        yield batch(number, min(BATCH, n_rows - start), seed)


def classes_of(n_rows: int, seed: int) -> np.ndarray:
    """(n_rows,) the classes alone."""
    drawn = []
    for number, start in enumerate(range(0, n_rows, BATCH)):
        rng = np.random.default_rng(seed_for(seed, "batch", number))
        drawn.append(rng.integers(0, 2 * N_PAIRS, BATCH)[: n_rows - start].astype(np.int8))
    return np.concatenate(drawn)


def write_table(path: Path, n_rows: int, seed: int) -> None:
    """The table as Parquet, without the classes, in row groups of ``BATCH`` rows."""
    import pyarrow
    import pyarrow.parquet as parquet

    schema = pyarrow.schema([(f"c{place}", pyarrow.float32()) for place in range(N_COLUMNS)])
    with replacing(path) as file, parquet.ParquetWriter(file, schema, compression="none") as writer:
        for X, _ in batches(n_rows, seed):
            columns = [pyarrow.array(column) for column in np.ascontiguousarray(X.T)]
            writer.write_table(pyarrow.table(columns, schema=schema), row_group_size=BATCH)
