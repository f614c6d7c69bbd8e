"""Runs: one rule on one data set with one seed, and its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from deccs import scores
from deccs.counting.records import Count
from deccs.labels import NOISE
from deccs_paper.how_many.measures import (
    is_near,
    is_right,
    is_truth,
    is_within_1,
    octaves,
    rank,
)
from deccs_paper.how_many.rules import RULES, Question, Ranking, Rule
from deccs_paper.records import Record
from deccs_paper.yardstick.methods import Method
from deccs_paper.yardstick.runs import PoolRun

EXPERIMENT = "how many"
MOST_CANDIDATES = 10  # in a record
CURVES = ("stability", "agreement", "valley", "split", "gap")


@dataclass(frozen=True)
class RuleRun(PoolRun):
    """Rules that share a part of their work, on one data set with one seed."""

    registry: ClassVar[Mapping[str, Method]] = RULES
    experiment: str = EXPERIMENT

    @property
    def rule(self) -> Rule:
        """The first; those with the same shared part are shown the same rows."""
        return RULES[self.methods[0]]

    def task(self, X: np.ndarray) -> Question:
        """The first rows: their order is random, so they are a draw by the seed."""
        return Question(X[: self.rule.most_rows], self.seed)

    def outcome(self, result: Ranking, y: np.ndarray, order: np.ndarray) -> Record:
        record = measures_of(result, self.file.k)
        record["n_shown"] = min(len(y), self.rule.most_rows or len(y))
        if result.clear is not None:
            record["is_clear"] = result.clear
        if result.count is not None:
            record["evidence"] = evidence_of(result.count, y[order])
        if result.labels is not None:
            record["scores"] = label_scores(y[order], result.labels)
        return record


def measures_of(ranking: Ranking, truth: int) -> Record:
    """What a record says of an answer.

    >>> made = measures_of(Ranking((5, 2, 4)), truth=4)
    >>> made["chosen"], made["is_truth"], made["is_right"], made["rank_truth"], made["rank_right"]
    (5, False, True, 3, 1)
    """
    k, candidates = ranking.k, ranking.candidates
    return {
        "chosen": k,
        "candidates": list(candidates[:MOST_CANDIDATES]),
        "n_candidates": len(candidates),
        "is_truth": is_truth(k, truth),
        "is_within_1": is_within_1(k, truth),
        "is_right": is_right(k, truth),
        "is_near": is_near(k, truth),
        "octaves": round(octaves(k, truth), 4),
        "rank_truth": rank(candidates, truth, is_truth),
        "rank_right": rank(candidates, truth, is_right),
    }


def evidence_of(count: Count, y: np.ndarray) -> Record:
    """The curves that the weights of our rule are learned from, and how good each k would be.

    ``nmi`` is that of the clustering of the sample for each k, with the classes y (n,) of all rows.
    """
    classes = y[count.sample]
    known = classes != NOISE
    nmi = [scores.nmi(classes[known], labels[known]) for labels in count.partitions]
    curves = {name: count.curves[name].tolist() for name in CURVES if name in count.curves}
    rounded = {name: [round(v, 4) for v in values] for name, values in curves.items()}
    return {"k": count.ks.tolist(), **rounded, "nmi": [round(value, 4) for value in nmi]}


def label_scores(y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """NMI and ARI on the rows that have a class.

    >>> label_scores(np.array([0, 0, 1, 1, -1]), np.array([1, 1, 0, 0, 0]))
    {'nmi': 1.0, 'ari': 1.0}
    """
    rows = y != NOISE
    truth, found = y[rows], labels[rows]
    return {
        "nmi": round(scores.nmi(truth, found), 6),
        "ari": round(scores.ari(truth, found), 6),
    }
