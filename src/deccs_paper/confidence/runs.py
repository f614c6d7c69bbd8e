"""Runs: DECCS on one data set with one seed, and what its confidence was worth."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import roc_auc_score

from deccs import DECCS
from deccs.answer import Answer
from deccs.counting.one_group import OneGroupWarning
from deccs.counting.trust import WEIGHTS
from deccs.labels import NOISE, align_labels
from deccs.members.agreement import adjusted_rand
from deccs_paper.records import Record
from deccs_paper.yardstick.methods import Answers, Method, Task
from deccs_paper.yardstick.runs import PoolRun

EXPERIMENT = "confidence"
N_BINS = 10
MOST_KEPT = 300  # rows whose terms a record keeps, for the weights to be learned from


@dataclass(frozen=True)
class Judged:
    """A fit with its answer for all rows."""

    model: Any
    answer: Answer
    terms: Mapping[str, np.ndarray]  # (n,) each, what confidence is weighed from
    warned: bool


def judged(task: Task, **settings: Any) -> Judged:
    """Fit, and see whether the fit warns of one group."""
    answers = Answers()
    model = DECCS(task.k, random_state=task.seed, callbacks=[answers], **settings)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(task.X)
    warned = any(issubclass(each.category, OneGroupWarning) for each in told)
    answer = Answer.joined(answers.blocks)
    assert model.trust_ is not None
    assert answer.support is not None
    scaled = model.scaler_(np.asarray(task.X, dtype=np.float64))
    return Judged(model, answer, model.trust_.terms(scaled, answer.labels, answer.support), warned)


METHODS: dict[str, Method] = {
    "DECCS": Method("DECCS", judged, recipe=1),
    "DECCS, views=None": Method(
        "DECCS, views=None", lambda task: judged(task, views=None), recipe=1, by_default=False
    ),
}


@dataclass(frozen=True)
class ConfidenceRun(PoolRun):
    """DECCS on one data set with one seed."""

    registry: ClassVar[Mapping[str, Method]] = METHODS
    experiment: str = EXPERIMENT

    def outcome(self, result: Judged, y: np.ndarray, order: np.ndarray) -> Record:
        model, answer, truth = result.model, result.answer, y[order]
        record: Record = {
            "confidence": mean(answer.confidence),
            "support": mean(answer.support),
            "agreement_before": round(model.rounds_[0].agreement, 4),
            "agreement_after": round(model.agreement_, 4),
            "warned": result.warned,
        }
        known = truth != NOISE
        if len(np.unique(truth[known])) < 2:
            return record
        correct = are_correct(answer.labels[known], truth[known])
        for name in ("confidence", "support"):
            values = getattr(answer, name)[known]
            record[f"{name}_auroc"] = auroc(correct, values)
            record[f"{name}_error"] = round(calibration_error(correct, values), 4)
        kept = np.flatnonzero(known)[:MOST_KEPT]  # rows are in random order
        terms = {name: np.round(result.terms[name][kept], 3).tolist() for name in WEIGHTS}
        return record | {
            "accuracy": mean(correct),
            "ari": round(adjusted_rand(*(v[known] for v in (answer.labels, truth))), 4),
            "terms": {name: values for name, values in terms.items() if name != "always"},
            "correct": correct[: len(kept)].astype(int).tolist(),
        }


def mean(values: np.ndarray | None) -> float:
    assert values is not None
    return round(float(values.mean()), 4)


def are_correct(labels: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Which labels are right, with clusters matched one-to-one with classes: (n,).

    >>> are_correct(np.array([1, 1, 0, 0]), np.array([5, 5, 7, 5]))
    array([ True,  True,  True, False])
    """
    classes = np.unique(truth, return_inverse=True)[1]
    return np.asarray(align_labels(labels, classes) == classes)


def auroc(correct: np.ndarray, values: np.ndarray) -> float | None:
    """How often a right label has a higher value than a wrong one; None where all are alike."""
    if correct.all() or not correct.any():
        return None
    return round(float(roc_auc_score(correct, values)), 4)


def calibration_error(correct: np.ndarray, values: np.ndarray) -> float:
    """The mean gap between values and shares of right labels, over ten bins of values.

    >>> calibration_error(np.array([True, False]), np.array([0.9, 0.9]))
    0.4
    """
    bins = np.minimum((values * N_BINS).astype(int), N_BINS - 1)
    counts = np.bincount(bins, minlength=N_BINS)
    gaps = np.bincount(bins, correct - values, minlength=N_BINS)
    return float(np.abs(gaps).sum() / counts.sum())
