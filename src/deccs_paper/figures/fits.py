"""The fits that figures show: the very runs that the tables have under the same number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache as kept
from pathlib import Path

import numpy as np

from deccs import datasets
from deccs.estimator import DECCS
from deccs.network.autoencoder import Autoencoder
from deccs.plots import SHORT_NAMES
from deccs.rounds.records import Round
from deccs.scores import of_members
from deccs.settings import Pretraining
from deccs_paper.runner import Run, load, pretrained


@dataclass(frozen=True, eq=False)
class Fitted:
    """Data in the plane with the run of DECCS that the tables have under the same number."""

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


def start_of(
    name: str, seed: int, quick: bool, cache: Path | None
) -> tuple[datasets.Dataset, Autoencoder, DECCS]:
    """The data, the autoencoder all methods share, and DECCS as it is in the tables, not yet fitted."""
    data = load(name)
    run = Run("default", "DECCS", name, seed, {})
    if quick:
        data = replace(data, X=data.X[::5], y=data.y[::5], n=len(data.X[::5]))
        model = run.estimator(n_rounds=3, n_init=1, n_steps=60, pretraining=Pretraining(epochs=40))
        cache = None  # its key does not know that rows were left out
    else:
        model = run.estimator()
    autoencoder, _ = pretrained(model, data, cache, run.seed)
    return data, autoencoder, model.set_params(autoencoder=autoencoder)


@kept
def fit(name: str, seed: int, quick: bool, cache: Path | None) -> Fitted:
    """DECCS on a data set; several figures show the same fit."""
    data, autoencoder, model = start_of(name, seed, quick, cache)
    return Fitted(
        data.X, data.y, autoencoder, model.fit(data.X), Run("default", "DECCS", name, seed, {}).seed
    )


def member_scores(this: Round, truth: np.ndarray, score: str) -> dict[str, float]:
    """A score of each member, on the sample it saw, by its short name."""
    return {
        SHORT_NAMES.get(name, name): values[score]
        for name, values in of_members(this, truth).items()
    }
