"""Runs: what is missing, one method on one data set with one seed, and its record."""

from __future__ import annotations

import math
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import adjusted_mutual_info_score

from deccs import scores
from deccs.environment import peak_memory_mb
from deccs.labels import NOISE
from deccs.seeds import seed_for
from deccs_paper import records
from deccs_paper.records import Record
from deccs_paper.yardstick.methods import (
    METHODS,
    Candidates,
    Clustering,
    Method,
    Task,
    warm_up,
)
from deccs_paper.yardstick.pool import DataSet

EXPERIMENT = "pool"
SURE_SHARE = 0.95
CONSENSUS = "consensus of the views"  # a candidate of DECCS
OK, FAILED, NOT_INSTALLED = "ok", "failed", "not installed"
PACKAGES = {
    "umap": ("umap-learn", "pynndescent", "numba"),
    "evoc": ("evoc", "numba"),
    "kmodes": ("kmodes",),
}


@dataclass(frozen=True)
class PoolRun:
    """Methods that share a part of their work, on one data set with one seed; most often just one.

    Other comparisons have other methods, tasks and records: they change what is in this class.
    """

    registry: ClassVar[Mapping[str, Method]] = METHODS

    file: DataSet
    seed: int
    methods: tuple[str, ...]
    experiment: str = EXPERIMENT

    @property
    def dataset(self) -> str:
        return self.file.name

    @property
    def repetition(self) -> int:
        return self.seed

    @property
    def method(self) -> str:
        return ", ".join(self.methods)

    def task(self, X: np.ndarray) -> Any:
        """What the methods are given: (n, d) rows in the order of the run."""
        return Task(X, self.file.k, self.seed)

    def outcome(self, result: Any, y: np.ndarray, order: np.ndarray) -> Record:
        """What a record says of the result of a method, for y (n,) and order (n,) of the file's rows."""
        if result.labels.shape != y.shape:
            raise ValueError(f"{len(y)} rows have labels of shape {result.labels.shape}.")
        clustering: Clustering = result.in_file_order(order)
        record: Record = {"scores": scores_of(y, clustering)}
        if clustering.label_source is not None:
            record["label_source"] = clustering.label_source
        return record


Key = tuple[str, str, str, str, int]  # experiment, data set, its sha256, method, seed


def key(record: Record) -> Key:
    return (
        record["experiment"],
        record["dataset"],
        record["sha256"],
        record["method"],
        record["seed"],
    )


def headers(run: PoolRun) -> list[Record]:
    """What identifies the records of a run."""
    file = run.file
    return [
        {
            "experiment": run.experiment,
            "dataset": file.name,
            "sha256": file.sha256,
            "n": file.n,
            "d": file.d,
            "k": file.k,
            "method": name,
            "recipe": run.registry[name].recipe,
            "seed": run.seed,
        }
        for name in run.methods
    ]


def latest(known: Iterable[Record], registry: Mapping[str, Method] = METHODS) -> dict[Key, Record]:
    """One record per run: the last that succeeded, else the last one. Old recipes do not count."""
    kept: dict[Key, Record] = {}
    for record in known:
        method = registry.get(record["method"])
        if method is not None and record["recipe"] < method.recipe:
            continue
        place = key(record)
        if place not in kept or record["status"] == OK or kept[place]["status"] != OK:
            kept[place] = record
    return kept


def missing(
    files: Sequence[DataSet],
    methods: Sequence[str],
    n_seeds: int,
    known: Iterable[Record],
    *,
    again: bool = False,
    experiment: str = EXPERIMENT,
    kind: type[PoolRun] = PoolRun,
) -> list[PoolRun]:
    """The runs without a record; with ``again``, also those that failed.

    Methods with the same shared part become one run.
    """
    status = {place: record["status"] for place, record in latest(known, kind.registry).items()}
    runs = []
    for file in files:
        for seed in range(n_seeds):
            groups: dict[Any, list[str]] = defaultdict(list)
            for name in methods:
                method = kind.registry[name]
                known_as = status.get((experiment, file.name, file.sha256, name, seed))
                if known_as == OK or (known_as == FAILED and not again):
                    continue
                if known_as == NOT_INSTALLED and method.missing():
                    continue
                groups[method.shared or name].append(name)
            runs += [kind(file, seed, tuple(names), experiment) for names in groups.values()]
    return runs


def carry_out(run: PoolRun, _cache: Path | None = None) -> list[Record]:
    """Fit and score; whatever goes wrong becomes a record with its status."""
    warnings.simplefilter("ignore")
    made_with = records.made_with()
    results = list(scored(run))
    return [
        header
        | record
        | made_with
        | {"versions": made_with["versions"] | rival_versions(run.registry[name].needs)}
        for header, record, name in zip(headers(run), results, run.methods, strict=True)
    ]


def scored(run: PoolRun) -> Iterator[Record]:
    """What a record says of each method of a run. Labels are scored here; no method sees y."""
    methods = [run.registry[name] for name in run.methods]
    warm_up({module for method in methods for module in method.needs})
    X, y = run.file.arrays()
    order = row_order(len(X), run.seed)
    task = run.task(X[order])
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    shared: Measured | None = None
    for method in methods:
        record: Record = {"started": start}
        try:
            absent = method.missing()
            if absent:
                yield record | {"status": NOT_INSTALLED, "error": f"{', '.join(absent)} is missing"}
                continue
            if method.shared and shared is None:
                shared = measured(partial(method.shared, task))
            result = measured(partial(fit, method, task, shared))
            record |= {"status": OK} | run.outcome(result.value, y, order)
            record |= result.costs(shared if method.shared else None)
        except Exception as error:  # noqa: BLE001  a failed run is a record, not the end
            record |= {
                "status": FAILED,
                "error": f"{type(error).__name__}: {error}",
                "traceback": traceback.format_exc(),
            }
        yield record | {"peak_memory_mb": peak_memory_mb()}


def row_order(n_rows: int, seed: int) -> np.ndarray:
    """The order in which all methods get the rows: (n_rows,) their numbers in the file.

    Many files are sorted by class. A method that works through rows in their order, as umap-learn
    does with edges, may then be told the classes by the file.
    """
    rng = np.random.default_rng(seed_for(seed, "order of the rows"))
    return rng.permutation(n_rows)


@dataclass(frozen=True)
class Measured:
    """What a function returned, and its seconds."""

    value: Any
    wall_seconds: float
    cpu_seconds: float
    memory_before_mb: float  # what the process held at most before, libraries included

    def costs(self, shared: Measured | None) -> Record:
        """Seconds of a fit, those of its shared part included."""
        parts = [self, shared] if shared else [self]
        return {
            "wall_seconds": round(sum(part.wall_seconds for part in parts), 3),
            "cpu_seconds": round(sum(part.cpu_seconds for part in parts), 3),
            "memory_before_mb": min(part.memory_before_mb for part in parts),
        }


def measured(function: Callable[[], Any]) -> Measured:
    before, wall, cpu = peak_memory_mb(), time.perf_counter(), time.process_time()
    value = function()
    return Measured(value, time.perf_counter() - wall, time.process_time() - cpu, before)


def fit(method: Method, task: Any, shared: Measured | None) -> Any:
    """The method's result, after the part of the work it shares with others."""
    return method.cluster(task, shared.value) if shared else method.cluster(task)


def scores_of(y: np.ndarray, result: Clustering) -> dict[str, float]:
    """Scores on the rows that have a class; NaN for what a method does not have.

    ``nmi_surest`` is the NMI of the surest 95 %, ``nmi_covered`` that of the points the method
    itself has labeled. See :func:`choice_scores` for those of a method that had a choice.
    """
    rows = y != NOISE
    truth, labels = y[rows], result.labels[rows]
    values = {
        "nmi": scores.nmi(truth, labels),
        "ami": float(adjusted_mutual_info_score(truth, labels)),
        "ari": scores.ari(truth, labels),
        "n_clusters": len(np.unique(result.labels)),
    }
    if result.confidence is not None:
        sure = surest(result.confidence[rows], SURE_SHARE)
        values |= {"nmi_surest": scores.nmi(truth[sure], labels[sure])}
        values |= {"surest_share": float(sure.mean())}
    if result.covered is not None:
        covered = result.covered[rows]
        values |= {"covered_share": float(covered.mean())}
        values |= {
            "nmi_covered": scores.nmi(truth[covered], labels[covered]) if covered.any() else 0.0
        }
    if result.candidates is not None:
        values |= choice_scores(truth, labels, result.candidates, rows)
    return {name: round(value, 6) for name, value in values.items()}


def choice_scores(
    truth: np.ndarray, labels: np.ndarray, candidates: Candidates, rows: np.ndarray
) -> dict[str, float]:
    """How good the choice of the result was; truth and labels are those of the ``rows`` with a class.

    ``best_candidate`` is the NMI of the best candidate, ``regret`` what the result lacks to it, and
    ``consensus_nmi`` that of the consensus of the views, which needs no training.
    """
    nmi = [scores.nmi(truth, partition[rows]) for partition in candidates.partitions]
    values = {"best_candidate": max(nmi), "regret": max(nmi) - scores.nmi(truth, labels)}
    if CONSENSUS in candidates.names:
        values["consensus_nmi"] = nmi[candidates.names.index(CONSENSUS)]
    return values


def surest(confidence: np.ndarray, share: float) -> np.ndarray:
    """Mask of the ``share`` of points with the highest confidence, and of all as sure as the last.

    >>> surest(np.array([0.9, 0.2, 0.8, 0.8]), share=0.5)
    array([ True, False,  True,  True])
    """
    n_kept = max(1, math.ceil(share * len(confidence) - 1e-9))
    least = np.sort(confidence)[-n_kept]
    mask: np.ndarray = confidence >= least
    return mask


def rival_versions(modules: Iterable[str]) -> dict[str, str]:
    """Versions of what a rival is made of; nothing for what is not installed."""
    found = {}
    for module in modules:
        for package in PACKAGES.get(module, ()):
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                continue
    return found
