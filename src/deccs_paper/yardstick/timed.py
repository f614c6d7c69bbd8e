"""``deccs yardstick --timed``: how fast DECCS fits, compared with UMAP and a mixture.

Few data sets from 150 to 70,000 rows, one thread. Imports and compilation are not part of a fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.console import Group
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from deccs import datasets
from deccs.datasets.sources import content_sha256
from deccs.datasets.store import file_at_hand
from deccs_paper.records import Record
from deccs_paper.yardstick.runs import OK, latest
from deccs_paper.yardstick.tables import gaps, rich_table

EXPERIMENT = "speed of fits"
COMPARED = OURS, OTHER = ("DECCS", "umap+mixture")
PUBLISHED = ("usps", "mnist")  # only where the files are at hand: nothing is downloaded
HEADS = ("data set", "rows", "columns", "CPU s", "NMI", "peak MB")

Arrays = tuple[np.ndarray, np.ndarray]  # X (n, d) and y (n,)


@dataclass(frozen=True)
class TimedSet:
    """A data set of the comparison: how it is loaded, and what a record says of it."""

    name: str
    load: Callable[[], Arrays]  # a function of a module, so that other processes can call it
    sha256: str  # of X and y
    n: int
    d: int
    k: int

    def arrays(self) -> Arrays:
        return self.load()


def timed_sets(names: Iterable[str] | None = None) -> list[TimedSet]:
    """The data sets that are at hand, those with few rows first; only those with one of the names."""
    loaders = known_loaders()
    sets = []
    for name in loaders if names is None else names:
        X, y = loaders[name]()
        n, d = X.shape
        k = len(np.unique(y))
        sets.append(TimedSet(name, loaders[name], content_sha256(X, y), n, d, k))
    return sorted(sets, key=lambda one: (one.n, one.d))


def known_loaders() -> dict[str, Callable[[], Arrays]]:
    """A function for each data set that is at hand."""
    bundled = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
    loaders: dict[str, Callable[[], Arrays]] = {
        name: partial(load, return_X_y=True) for name, load in bundled.items()
    }
    loaders["bent blobs"] = bent_blobs
    for name in PUBLISHED:
        if file_at_hand(name):
            loaders[name] = partial(published, name)
    return loaders


def published(name: str) -> Arrays:
    """A data set of the paper with its published values."""
    return datasets.load(name, return_X_y=True, normalize=False)


def bent_blobs(n: int = 5_000, d: int = 64, k: int = 10) -> Arrays:
    """Gaussian blobs in eight dimensions, bent by a random layer of tanh into d columns.

    The same values each time, rounded so that they do not depend on how a machine adds up.
    """
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    latent = 2 * rng.normal(size=(k, 8))[y] + rng.normal(size=(n, 8))  # (n, 8)
    bent = np.tanh(latent @ rng.normal(size=(8, d)) / 4)  # (n, d)
    return np.round(bent + 0.1 * rng.normal(size=(n, d)), 3), y


# The table


@dataclass(frozen=True)
class Cost:
    """Medians over seeds of what a method's fits took, and how good they were."""

    cpu_seconds: float
    nmi: float
    peak_memory_mb: float


def costs(made: Iterable[Record]) -> dict[tuple[str, str], Cost]:
    """(data set, method) -> its cost, from the runs that succeeded."""
    runs: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for record in latest(made).values():
        if record["experiment"] == EXPERIMENT and record["status"] == OK:
            values = record["cpu_seconds"], record["scores"]["nmi"], record["peak_memory_mb"]
            runs.setdefault((record["dataset"], record["method"]), []).append(values)
    return {
        place: Cost(*(float(value) for value in np.median(values, axis=0)))
        for place, values in runs.items()
    }


def cells(made: Sequence[Record]) -> list[list[str]]:
    """The rows of the table, few rows of data first; an empty cell where a method has no record."""
    known = costs(made)
    sizes = {
        record["dataset"]: (record["n"], record["d"])
        for record in made
        if record["experiment"] == EXPERIMENT
    }
    rows = []
    for name, (n, d) in sorted(sizes.items(), key=lambda item: item[1]):
        pair = [known.get((name, method)) for method in COMPARED]
        seconds = [f"{cost.cpu_seconds:.1f}" if cost else "" for cost in pair]
        ours, other = pair
        ratio = f"{ours.cpu_seconds / other.cpu_seconds:.1f}" if ours and other else ""
        nmi = [f"{cost.nmi:.3f}" if cost else "" for cost in pair]
        memory = [f"{cost.peak_memory_mb:,.0f}" if cost else "" for cost in pair]
        rows.append([name, f"{n:,}", f"{d:,}", *seconds, ratio, *nmi, *memory])
    return rows


def heads() -> list[str]:
    """Of the columns of the table."""
    both = {what: [f"{what}, {method}" for method in COMPARED] for what in HEADS[3:]}
    return [*HEADS[:3], *both["CPU s"], "ratio", *both["NMI"], *both["peak MB"]]


def terminal_table(made: Sequence[Record]) -> Group:
    """The comparison as a table of rich."""
    title = f"{EXPERIMENT}: one thread, medians over seeds"
    table = rich_table(title, heads(), cells(made))
    return Group(table, *gaps([one for one in made if one["experiment"] == EXPERIMENT]))
