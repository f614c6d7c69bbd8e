"""``python -m deccs_paper.resampling_speed``: seconds and memory of ConsensusMatrix, as N grows.

Six Gaussian clusters of different sizes in 16 columns (float32), k-means, k = 2..10, 50 resamples.
Every size is measured in a separate process; its memory is the most it ever held, with Python,
the library and the data. A dense matrix of all pairs is counted beside it where that fits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
from rich.console import Console

from deccs import ConsensusMatrix
from deccs.consensus.resamples import NOT_DRAWN
from deccs.environment import peak_memory_mb

SIZES = (500, 3_000, 100_000, 1_000_000)
DENSE_UP_TO = 3_000  # rows: counting all pairs of more takes minutes
N_COLUMNS, SHARES = 16, (0.3, 0.25, 0.15, 0.12, 0.1, 0.08)
GRID = np.linspace(0, 1, 1_001)


@dataclass(frozen=True)
class Measured:
    """One size."""

    n_points: int
    seconds: float
    peak_memory_mb: float
    n_clusters: int  # with the lowest PAC
    phases: dict[str, float]  # seconds
    cdf_difference: float | None = None  # from the dense matrix, largest over k and the grid
    bound: float | None = None  # of that difference
    same_order: bool | None = None  # whether PAC puts the numbers of clusters in the same order


def clusters(n_points: int, seed: int = 0) -> np.ndarray:
    """(n_points, 16) float32: clusters that touch, so that some pairs are ambiguous for every k."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(len(SHARES), N_COLUMNS)).astype(np.float32)
    X = rng.standard_normal((n_points, N_COLUMNS), dtype=np.float32)
    X += centers[rng.choice(len(SHARES), n_points, p=SHARES)]
    return X


def dense_consensus(partitions: np.ndarray) -> np.ndarray:
    """(n (n - 1) / 2,) consensus indices by Monti's definition, from two N x N matrices of counts.

    >>> dense_consensus(np.array([[0, 0, 1], [0, -2, 0]]))
    array([1. , 0.5, 0. ])
    """
    n = partitions.shape[1]
    together, both = np.zeros((n, n)), np.zeros((n, n))
    for labels in partitions:
        drawn = labels != NOT_DRAWN
        both += np.outer(drawn, drawn)
        together += (labels[:, None] == labels) & np.outer(labels >= 0, labels >= 0)
    upper = np.triu_indices(n, 1)
    known = both[upper] > 0
    return together[upper][known] / both[upper][known]


def measure(n_points: int, n_jobs: int | None, n_pairs: int) -> Measured:
    """Measure in this process, which should be a new one."""
    ConsensusMatrix(range(2, 4), n_resamples=2, random_state=0).fit(clusters(200))  # loads all
    X = clusters(n_points)
    start = time.perf_counter()
    model = ConsensusMatrix(range(2, 11), n_jobs=n_jobs, n_pairs=n_pairs, random_state=0).fit(X)
    seconds, peak = time.perf_counter() - start, peak_memory_mb()
    facts = (n_points, seconds, peak, model.n_clusters_, model.seconds_)
    if n_points > DENSE_UP_TO:
        return Measured(*facts)
    differences, pac = [], []
    for k, partitions in zip(model.k_range_, model.partitions_, strict=True):
        indices = np.sort(dense_consensus(partitions))
        dense = np.searchsorted(indices, GRID, side="right") / len(indices)
        differences.append(np.abs(model.cdf(k, GRID) - dense).max())
        low, high = np.searchsorted(indices, model.ambiguous, side="right") / len(indices)
        pac.append(high - low)
    same = bool((np.argsort(pac) == np.argsort(model.pac_)).all())
    return Measured(*facts, float(max(differences)), model.cdf_error_, same)


def measured(sizes: list[int], n_jobs: int | None, n_pairs: int) -> Iterator[Measured]:
    for n_points in sizes:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            yield pool.submit(measure, n_points, n_jobs, n_pairs).result()


def line(row: Measured) -> str:
    """A row of the table.

    >>> line(Measured(500, 2.04, 350, 6, {"cluster": 1.5, "carry": 0.1}))
    '| 500 | 2.0 s | 350 MB | 6 | cluster 1.5 s, carry 0.1 s |  |  |  |'
    """
    phases = ", ".join(
        f"{name} {value:.1f} s" for name, value in row.phases.items() if value > 0.05
    )
    dense = ["", "", ""]
    if row.cdf_difference is not None and row.bound is not None:
        order = "yes" if row.same_order else "no"
        dense = [f"{row.cdf_difference:.6f}", f"{row.bound:.6f}", order]
    cells = [
        f"{row.n_points:,}",
        f"{row.seconds:.1f} s",
        f"{row.peak_memory_mb:.0f} MB",
        str(row.n_clusters),
        phases,
        *dense,
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deccs_paper.resampling_speed", description=__doc__
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--n-jobs", type=int)
    parser.add_argument("--n-pairs", type=int, default=1_000_000)
    given = parser.parse_args(arguments)
    console = Console()

    def say(words: str) -> None:
        console.print(words, soft_wrap=True, highlight=False)

    say(
        "| rows | time | peak memory | k of lowest PAC | phases | CDF: largest difference from dense "
        "| bound | same PAC order |"
    )
    say("|---" * 8 + "|")
    for row in measured(given.sizes, given.n_jobs, given.n_pairs):
        say(line(row))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
