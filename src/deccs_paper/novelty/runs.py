"""Runs: a score of novelty on one data set without one class, and what it was worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from deccs import DECCS
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs_paper.novelty.cases import LeftOut, Split
from deccs_paper.records import Record
from deccs_paper.yardstick.methods import Method, adds_to
from deccs_paper.yardstick.runs import PoolRun

EXPERIMENT = "novelty"
RATES = (0.01, 0.05)  # of rejected rows
N_NEIGHBORS = 5
RECIPE = 1


@dataclass(frozen=True, eq=False)
class NoveltyTask:
    """What a score is made from."""

    split: Split
    seed: int


@dataclass(frozen=True, eq=False)
class Judged:
    """A score for three kinds of rows: higher is more unusual.

    ``usual`` is what thresholds are taken from: scores of the rows of the fit, or, for a score that is a
    rate by itself, nothing.
    """

    fresh: np.ndarray
    novel: np.ndarray
    usual: np.ndarray | None = None

    def threshold(self, rate: float) -> float:
        return 1 - rate if self.usual is None else float(np.quantile(self.usual, 1 - rate))


METHODS: dict[str, Method] = {}  # by name
score = adds_to(METHODS, Method)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit that several scores are made from."""

    model: DECCS
    split: Split

    @cached_property
    def parts(self) -> list[np.ndarray]:
        return [self.split.fresh, self.split.novel, self.split.train]

    def each(self, value: Callable[[np.ndarray], np.ndarray]) -> Judged:
        return Judged(*(value(part.astype(np.float64)) for part in self.parts))


def fitted(task: NoveltyTask) -> Fitted:
    split = task.split
    model = DECCS(split.k, random_state=task.seed).fit(split.train.astype(np.float64))
    return Fitted(model, split)


@score("DECCS", shared=fitted, recipe=RECIPE)
def ours(task: NoveltyTask, fit: Fitted) -> Judged:
    fresh, novel = fit.model.novelty(task.split.fresh), fit.model.novelty(task.split.novel)
    return Judged(fresh, novel)


@score("reconstruction error", shared=fitted, recipe=RECIPE)
def reconstruction(_task: NoveltyTask, fit: Fitted) -> Judged:
    """That of the network of the same fit."""
    model = fit.model
    decoder = model.autoencoder_.decoder.double().eval()

    def error(X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            back = decoder(torch.from_numpy(model.answer(X).Z)).numpy()
        return np.asarray(np.square(back - model.scaler_(X)).mean(axis=1))

    judged = fit.each(error)
    decoder.float()
    return judged


@score("max probability", shared=fitted, recipe=RECIPE)
def max_probability(_task: NoveltyTask, fit: Fitted) -> Judged:
    return fit.each(lambda X: 1 - fit.model.predict_proba(X).max(axis=1))


@score("isolation forest", recipe=RECIPE)
def isolation_forest(task: NoveltyTask) -> Judged:
    """On the raw data."""
    split = task.split
    forest = IsolationForest(random_state=task.seed).fit(split.train)
    return Judged(
        *(-forest.score_samples(part) for part in (split.fresh, split.novel, split.train))
    )


@score("nearest neighbors", recipe=RECIPE)
def nearest_neighbors(task: NoveltyTask) -> Judged:
    """The distance to the fifth nearest row of the fit, in the scaled columns."""
    split = task.split
    train = split.train.astype(np.float64)
    scaler = fit_scaler(source_of(train), "auto")
    index = NearestNeighbors(n_neighbors=N_NEIGHBORS).fit(scaler(train))
    fresh, novel = (
        index.kneighbors(scaler(part.astype(np.float64)))[0][:, -1]
        for part in (split.fresh, split.novel)
    )
    return Judged(fresh, novel, index.kneighbors()[0][:, -1])  # a row is not its own neighbor


@dataclass(frozen=True)
class NoveltyRun(PoolRun):
    """Scores on one data set without one class."""

    registry: ClassVar[Mapping[str, Method]] = METHODS
    experiment: str = EXPERIMENT

    def task(self, X: np.ndarray) -> NoveltyTask:
        assert isinstance(self.file, LeftOut)
        return NoveltyTask(self.file.split, self.seed)

    def outcome(self, result: Any, y: np.ndarray, order: np.ndarray) -> Record:
        """How well the unknown class is told from fresh rows, and how many of either are rejected."""
        rejected = {str(rate): result.threshold(rate) for rate in RATES}
        assert isinstance(self.file, LeftOut)
        return {
            "left_out": self.file.left,
            "draw": self.file.draw,
            "n_train": len(self.file.split.train),
            "n_fresh": len(result.fresh),
            "n_novel": len(result.novel),
            "auroc": round(auroc(result.fresh, result.novel), 4),
            "false": {rate: share(result.fresh > least) for rate, least in rejected.items()},
            "found": {rate: share(result.novel > least) for rate, least in rejected.items()},
        }


def auroc(fresh: np.ndarray, novel: np.ndarray) -> float:
    """How often an unknown row is more unusual than a fresh one; ties count half.

    >>> auroc(np.array([0.1, 0.2]), np.array([0.2, 0.9]))
    0.875
    """
    are_novel = np.repeat([0, 1], [len(fresh), len(novel)])
    return float(roc_auc_score(are_novel, np.concatenate([fresh, novel])))


def share(mask: np.ndarray) -> float:
    return round(float(mask.mean()), 5)
