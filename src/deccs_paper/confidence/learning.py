"""The weights of confidence, learned from what runs on the pool have kept of their rows.

A logistic regression of right labels, in which all data sets count alike and no weight is below 0:
more evidence never makes a label less sure. The weight of the support is set by hand, because members
that were trained to agree support nearly every label. Each data set is judged by weights that were
learned from all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from sklearn.metrics import log_loss

from deccs.calibration import calibration_error
from deccs.counting.trust import WEIGHTS, WITHOUT_SIGNS, sigmoid
from deccs_paper.confidence.runs import auroc
from deccs_paper.settings import PAPER

NAMES = tuple(name for name in WEIGHTS if name != "always")
BY_HAND = ("support",)
LOWEST = -3.0  # density below this is alike for the learner
RIDGE = 0.3  # for weights of terms of deviation 1, beside the mean loss of each data set


@dataclass(frozen=True, eq=False)
class Kept:
    """What a run has kept of some of its rows."""

    dataset: str
    terms: np.ndarray  # (n_rows, n_terms) what is weighed
    correct: np.ndarray  # (n_rows,) whether labels are right
    warned: bool  # of one group

    def confidence(self, weights: Mapping[str, float]) -> np.ndarray:
        """What it is with these weights: (n_rows,)."""
        sums = self.terms @ np.array([weights[name] for name in NAMES]) + weights["always"]
        return sigmoid(sums) * (WITHOUT_SIGNS if self.warned else 1.0)


def read_kept(folder: Path) -> list[Kept]:
    """What the runs on the pool have kept, those on the paper's data sets left out."""
    kept = []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            name = str(arrays["dataset"])
            if name in PAPER or "correct" not in arrays.files:
                continue
            terms = np.stack([arrays[name].astype(np.float64) for name in NAMES], axis=1)
            terms[:, NAMES.index("density")] = np.maximum(terms[:, NAMES.index("density")], LOWEST)
            kept.append(Kept(name, terms, arrays["correct"] > 0, bool(arrays["warned"])))
    return kept


def learned(made: Sequence[Kept]) -> dict[str, float]:
    """The weights by name."""
    free = [place for place, name in enumerate(NAMES) if name not in BY_HAND]
    fixed = [place for place, name in enumerate(NAMES) if name in BY_HAND]
    rows = np.concatenate([each.terms for each in made])  # (n_rows, n_terms)
    correct = np.concatenate([each.correct for each in made]).astype(np.float64)
    share = np.concatenate([np.full(len(each.terms), 1 / len(each.terms)) for each in made])
    by_hand = rows[:, fixed] @ np.array([WEIGHTS[NAMES[place]] for place in fixed])
    chosen = rows[:, free]
    mean, deviation = np.average(chosen, axis=0, weights=share), chosen.std(axis=0)
    scaled = (chosen - mean) / np.where(deviation > 0, deviation, 1)

    def loss(values: np.ndarray) -> tuple[float, np.ndarray]:
        logs = values[0] + scaled @ values[1:] + by_hand
        gaps = share * (sigmoid(logs) - correct)
        gradient = np.concatenate([[gaps.sum()], scaled.T @ gaps + RIDGE * values[1:]])
        total = (share * (np.logaddexp(0, logs) - correct * logs)).sum()
        return float(total + RIDGE / 2 * np.square(values[1:]).sum()), gradient

    start = np.zeros(len(free) + 1)
    bounds = [(None, None), *[(0.0, None)] * len(free)]
    best = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    slopes = best[1:] / np.where(deviation > 0, deviation, 1)
    weights = {NAMES[place]: float(slope) for place, slope in zip(free, slopes, strict=True)}
    weights |= {NAMES[place]: WEIGHTS[NAMES[place]] for place in fixed}
    return {"always": float(best[0] - slopes @ mean), **{name: weights[name] for name in NAMES}}


def left_out(made: Sequence[Kept]) -> list[np.ndarray]:
    """Of each data set, what its confidence is with weights learned from all others: (n_rows,) each."""
    return [
        each.confidence(learned([other for other in made if other.dataset != each.dataset]))
        for each in made
    ]


def measures(made: Sequence[Kept], values: Sequence[np.ndarray]) -> dict[str, float]:
    """What confidence is worth, as means over data sets; ``pooled`` has all their rows in one."""
    pairs = list(zip(values, [each.correct for each in made], strict=True))
    ranked = [auroc(correct, value) for value, correct in pairs]
    found = {
        "calibration error": np.mean([calibration_error(*pair) for pair in pairs]),
        "pooled": calibration_error(
            np.concatenate([value for value, _ in pairs]),
            np.concatenate([right for _, right in pairs]),
        ),
        "gap to the accuracy": np.mean(
            [abs(value.mean() - right.mean()) for value, right in pairs]
        ),
        "AUROC": np.mean([rank for rank in ranked if rank is not None]),
        "log loss": np.mean(
            [
                log_loss(right, np.clip(value, 1e-6, 1 - 1e-6), labels=[False, True])
                for value, right in pairs
            ]
        ),
    }
    return {name: float(value) for name, value in found.items()}


def learned_text(folder: Path) -> str:
    """The weights, and what they give for each data set when it is left out."""
    made = read_kept(folder)
    if len(made) < 2:
        raise ValueError(
            f"{folder} has nothing of labeled data sets other than the paper's. Make some first: "
            "deccs confidence FOLDER --terms FOLDER."
        )
    weights, values = learned(made), left_out(made)
    told = measures(made, values)
    return "\n".join(
        [
            f"{len(made)} data sets. Learned, and in the code:",
            *(f"  {name:11}{weights[name]:7.3f}{WEIGHTS[name]:7.3f}" for name in WEIGHTS),
            "With each data set left out: "
            + ", ".join(f"{name} {value:.3f}" for name, value in told.items())
            + ".",
        ]
    )
