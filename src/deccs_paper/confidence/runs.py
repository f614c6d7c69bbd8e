"""Runs: DECCS on one data set with one seed, and what its confidence was worth."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import roc_auc_score

from deccs import DECCS
from deccs.answer import Answer
from deccs.calibration import Bins, bins_of
from deccs.counting.one_group import OneGroupWarning
from deccs.labels import NOISE, align_labels, majority_map
from deccs.members.agreement import adjusted_rand
from deccs_paper.records import Record
from deccs_paper.yardstick.methods import Answers, Method, Task
from deccs_paper.yardstick.runs import PoolRun

EXPERIMENT = "confidence"
MOST_KEPT = 1_000  # rows whose terms are kept for the weights to be learned from


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
    "DECCS": Method("DECCS", judged, recipe=2),
    "DECCS, views=None": Method(
        "DECCS, views=None", lambda task: judged(task, views=None), recipe=2, by_default=False
    ),
}


@dataclass(frozen=True)
class ConfidenceRun(PoolRun):
    """DECCS on one data set with one seed."""

    registry: ClassVar[Mapping[str, Method]] = METHODS
    experiment: str = EXPERIMENT
    terms: Path | None = None  # the folder where the terms of some rows are kept

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
        labels, classes = answer.labels[known], truth[known]
        correct, confidence = are_correct(labels, classes), answer.confidence
        assert confidence is not None
        for name in ("confidence", "support"):
            values = getattr(answer, name)[known]
            record[f"{name}_auroc"] = auroc(correct, values)
            record[f"{name}_error"] = round(bins_of(values, correct).error, 4)
        if self.terms is not None:
            self.keep(result, known, correct)
        return record | {
            "accuracy": mean(correct),
            "accuracy_by_majority": mean(are_of_majority(labels, classes)),
            "ari": round(adjusted_rand(labels, classes), 4),
            "bins": bins_as_json(bins_of(confidence[known], correct)),
        }

    def keep(self, result: Judged, known: np.ndarray, correct: np.ndarray) -> None:
        """Write the terms of some rows with a class, for weights to be learned from."""
        assert self.terms is not None
        kept = np.flatnonzero(known)[:MOST_KEPT]  # rows are in random order
        self.terms.mkdir(parents=True, exist_ok=True)
        terms: dict[str, Any] = {
            name: values[kept].astype(np.float32) for name, values in result.terms.items()
        }
        np.savez_compressed(
            self.terms / f"{self.dataset}-{self.method}-{self.seed}.npz",
            dataset=np.array(self.dataset),
            correct=correct[: len(kept)].astype(np.int8),
            warned=np.array(result.warned),
            **terms,
        )


def bins_as_json(bins: Bins) -> dict[str, list[float]]:
    """Rows, sums of their confidence and right ones of each bin: bins of data sets can be added."""
    return {
        "rows": bins.counts.tolist(),
        "confidence": np.round(np.nan_to_num(bins.confidence) * bins.counts, 3).tolist(),
        "right": np.round(np.nan_to_num(bins.share_right) * bins.counts).astype(int).tolist(),
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


def are_of_majority(labels: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Which labels are right, if a cluster is right for the class that most of its rows have: (n,).

    >>> are_of_majority(np.array([1, 1, 0, 0]), np.array([5, 5, 5, 5]))
    array([ True,  True,  True,  True])
    """
    classes = np.unique(truth, return_inverse=True)[1]
    return np.asarray(majority_map(labels, classes, int(labels.max()) + 1)[labels] == classes)


def auroc(correct: np.ndarray, values: np.ndarray) -> float | None:
    """How often a right label has a higher value than a wrong one; None where all are alike."""
    if correct.all() or not correct.any():
        return None
    return round(float(roc_auc_score(correct, values)), 4)
