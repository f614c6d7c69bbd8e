"""The fits that figures show: the same runs as in the tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from deccs import datasets
from deccs.estimator import DECCS
from deccs.network.autoencoder import Autoencoder
from deccs.plots import SHORT_NAMES
from deccs.rounds.records import Round
from deccs.scores import of_members
from deccs.settings import Pretraining
from deccs_paper.figures.parts import Task
from deccs_paper.runner import Run, load_data, pretrained

EVERY = 10  # rows, of which a quick fit takes one
QUICK = {
    "rounds__n_rounds": 2,
    "rounds__n_init": 1,
    "rounds__n_steps": 40,
    "pretraining": Pretraining(n_epochs=40),
}


@dataclass(frozen=True, eq=False)
class Fitted:
    """Data in the plane, and the run of DECCS on it that the tables have, too."""

    X: np.ndarray  # (n_points, 2)
    truth: np.ndarray  # (n_points,)
    autoencoder: Autoencoder  # pretrained, as it was before the rounds
    model: DECCS
    root: int  # its seed

    @property
    def rounds(self) -> list[Round]:
        return self.model.rounds_

    @property
    def last(self) -> int:
        return self.model.best_round_


@dataclass(frozen=True, eq=False)
class Start:
    """A run of DECCS before its fit."""

    data: datasets.Dataset
    autoencoder: Autoencoder  # pretrained; all methods start from it
    model: DECCS
    root: int  # the seed


def start_of(name: str, task: Task) -> Start:
    """The data, the autoencoder, and DECCS as in the tables."""
    data, run, folder = load_data(name), Run("default", "DECCS", name, task.seed, {}), task.cache
    if task.quick:
        X, y = data.X[::EVERY], data.y[::EVERY]
        data = replace(data, X=X, y=y, n=len(X))
        folder = None  # its keys do not say that rows were left out
    model = run.estimator(**(QUICK if task.quick else {}))
    return Start(data, pretrained(model, data, folder, run.seed).autoencoder, model, run.seed)


def fit(name: str, task: Task) -> Fitted:
    """DECCS on a data set; several figures show the same fit."""
    return fit_once(name, task.seed, task.quick, task.cache)


@cache
def fit_once(name: str, seed: int, quick: bool, folder: Path | None) -> Fitted:
    start = start_of(name, Task([], Path(), seed, quick, folder))
    data, model = start.data, start.model.set_params(network=start.autoencoder)
    return Fitted(data.X, data.y, start.autoencoder, model.fit(data.X), start.root)


def member_scores(round_: Round, truth: np.ndarray, score: str) -> dict[str, float]:
    """A score of each member, on the sample it clustered, by its short name."""
    return {
        SHORT_NAMES.get(name, name): values[score]
        for name, values in of_members(round_, truth).items()
    }
