"""The weights of confidence, learned from the records of the pool.

Weights that rank the rows of a data set: a logistic regression of right labels in which every data
set has a constant of its own, so that data sets are not compared with each other. All data sets
count alike. Then one constant for all, so that mean confidence is mean accuracy. The weight of the
support is set by hand: the ranking on the pool hardly depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression

from deccs.counting.trust import WEIGHTS, sigmoid
from deccs_paper import records
from deccs_paper.confidence.runs import EXPERIMENT, METHODS, auroc, calibration_error
from deccs_paper.records import Record
from deccs_paper.settings import PAPER
from deccs_paper.yardstick.runs import OK, latest

NAMES = tuple(name for name in WEIGHTS if name != "always")
LOWEST = -3.0  # density below this is alike for the learner
MIXED = (0.02, 0.98)  # accuracies between which a data set tells right from wrong


def usable(out: Path) -> list[Record]:
    """The records that weights are learned from: of the pool, with known classes."""
    made = latest(records.read(out), METHODS).values()
    return [
        record
        for record in made
        if record["experiment"] == EXPERIMENT
        and record["status"] == OK
        and record["method"] == "DECCS"
        and record["dataset"] not in PAPER
        and "terms" in record
    ]


def terms(record: Record) -> np.ndarray:
    """What is weighed: (n_rows, n_terms)."""
    values = np.stack([record["terms"][name] for name in NAMES], axis=1)
    values[:, NAMES.index("density")] = np.maximum(values[:, NAMES.index("density")], LOWEST)
    return values


def learned(made: Sequence[Record]) -> dict[str, float]:
    """The weights by name."""
    low, high = MIXED
    mixed = [record for record in made if low < np.mean(record["correct"]) < high]
    parts = [terms(record) for record in mixed]
    centered = np.concatenate([part - part.mean(axis=0) for part in parts])
    constants = 3 * np.repeat(np.eye(len(parts)), [len(part) for part in parts], axis=0)
    correct = np.concatenate([record["correct"] for record in mixed])
    alike = np.concatenate([np.full(len(part), 100 / len(part)) for part in parts])
    deviation = centered.std(axis=0)
    model = LogisticRegression(C=10, fit_intercept=False, max_iter=1_000)
    model.fit(np.hstack([centered / deviation, constants]), correct, sample_weight=alike)
    weights = dict(zip(NAMES, model.coef_[0][: len(NAMES)] / deviation, strict=True))
    weights["support"] = WEIGHTS["support"]
    return {"always": constant_for(weights, made), **weights}


def constant_for(weights: dict[str, float], made: Sequence[Record]) -> float:
    """The constant with which mean confidence is mean accuracy."""

    def excess(constant: float) -> float:
        gaps = [
            sigmoid(sums(weights, record) + constant).mean() - np.mean(record["correct"])
            for record in made
        ]
        return float(np.mean(gaps))

    return float(brentq(excess, -20, 20))


def sums(weights: dict[str, float], record: Record) -> np.ndarray:
    """The weighted sum of the terms: (n_rows,)."""
    return terms(record) @ np.array([weights[name] for name in NAMES])


def left_out(made: Sequence[Record]) -> list[dict[str, float]]:
    """Of each data set, what its confidence is with weights learned from all others."""
    rows = []
    for record in made:
        others = [other for other in made if other["dataset"] != record["dataset"]]
        weights = learned(others)
        values = sigmoid(sums(weights, record) + weights["always"])
        correct = np.array(record["correct"], dtype=bool)
        ranked = auroc(correct, values)
        rows.append(
            {
                "confidence": float(values.mean()),
                "accuracy": float(correct.mean()),
                "error": calibration_error(correct, values),
                "auroc": np.nan if ranked is None else ranked,
            }
        )
    return rows


def learned_text(out: Path) -> str:
    """The weights, and what they give for each data set when it is left out."""
    made = usable(out)
    if not made:
        raise ValueError(
            f"{out} has no records of labeled data sets other than the paper's. Make some first: "
            "deccs confidence FOLDER."
        )
    weights = learned(made)
    rows = left_out(made)
    means = {name: np.nanmean([row[name] for row in rows]) for name in ("error", "auroc")}
    gap = np.mean([abs(row["confidence"] - row["accuracy"]) for row in rows])
    return "\n".join(
        [
            f"{len(made)} records. Learned, and in the code:",
            *(f"  {name:10}{weights[name]:7.3f}{WEIGHTS[name]:7.3f}" for name in WEIGHTS),
            "With each data set left out: AUROC "
            f"{means['auroc']:.3f}, calibration error {means['error']:.3f}, "
            f"mean confidence is {gap:.3f} away from accuracy.",
        ]
    )
