"""The fits of the soak test: made-up tables in several formats, every method, quick settings."""

import csv
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from deccs.app.methods import methods

N_ROWS, N_COLUMNS, N_CLUSTERS = 240, 6, 3
FORMATS = ("csv", "npy", "npz", "parquet")
SEEDS = (0, 1)
TABLES = (0, 1)
QUICK = {
    "network.layers": [16, 4],
    "pretraining.n_epochs": 10,
    "rounds.n_rounds": 2,
    "rounds.n_init": 1,
    "rounds.n_steps": 20,
    "n_steps": 40,
    "siamese_steps": 20,
    "n_partitions": 4,
}


@dataclass(frozen=True)
class Fit:
    """A ``deccs fit``: what it clusters, and how."""

    method: str
    table: int
    format: str
    seed: int

    def __str__(self):
        return f"{self.method}-{self.table}-{self.format}-{self.seed}"

    def words(self, data, out, *more):
        """The command; ``data`` is the file to read."""
        settings = [f"--set={name}={value}" for name, value in quick_settings(self.method).items()]
        identity = ["--id", "key"] if self.format in ("csv", "parquet") else []
        words = ["fit", data, "--method", self.method, "--clusters", N_CLUSTERS, *identity]
        return [*words, "--seed", self.seed, "--out", out, "--quiet", *settings, *more]


@dataclass(frozen=True)
class Reference:
    """A fit that was left alone: its folder, and what each other run of the fit must give."""

    run: Path
    bits: dict = field(repr=False)
    names: frozenset  # of the files in the folder
    n_calls: int  # that change files
    seconds: float  # after the imports
    predicted: str = field(repr=False)  # labels of other rows


@cache
def all_fits():
    """Two fits of each method, so that a reference run serves many acts; all formats in turn."""
    return [
        Fit(method, number // 2 % len(TABLES), FORMATS[(number + seed) % len(FORMATS)], seed)
        for number, method in enumerate(methods())
        for seed in SEEDS
    ]


def draw_fit(rng):
    return rng.choice(all_fits())


@cache
def quick_settings(method):
    """The quick settings that a method has."""
    known = methods()[method]().get_params(deep=True)
    return {name: value for name, value in QUICK.items() if name.replace(".", "__") in known}


@cache
def rows(table, *, new=False):
    """Three overlapping groups, (n_rows, n_columns); ``new`` for other rows of the same groups."""
    centers = np.random.default_rng(table).normal(scale=2.0, size=(N_CLUSTERS, N_COLUMNS))
    rng = np.random.default_rng([table, new])
    return centers[rng.integers(N_CLUSTERS, size=N_ROWS)] + rng.normal(size=(N_ROWS, N_COLUMNS))


def write_table(path, X):
    """Write a table in the format of its ending."""
    names, keys = (
        [f"c{number}" for number in range(X.shape[1])],
        [f"k{number}" for number in range(len(X))],
    )
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez(path, X=X)
    elif path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"key": keys, **dict(zip(names, X.T, strict=True))}), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["key", *names])
            writer.writerows(
                [key, *map(repr, row)] for key, row in zip(keys, X.tolist(), strict=True)
            )
    return path
