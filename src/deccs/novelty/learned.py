"""Novelty: how unusual a row is, as a share of the rows of the fit's kind that are less so.

Every row of a sample is judged as if it were new: by all others, with axes and shape learned without
it. A new row is judged by all of them. So both are alike, and of new rows of the fit's kind one in a
hundred has a novelty above .99.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deccs.answer import Answer
from deccs.novelty.evidence import LEAST_KEPT, Kept, Seen
from deccs.novelty.surprise import Surprise
from deccs.storage import stored

MOST_JUDGED = 2_000  # rows: the share of one in a hundred is known to a fifth
N_FOLDS = 5
MANY = 20  # rows for each column
MOST_WEIGHT = 100
# Learned on a pool of data sets with a class left out, see docs/watching.md.
WEIGHTS = {
    "reconstruction": 1.0,
    "cluster": 2.0,
    "density": 1.0,
    "representation": 1.0,
}


@stored
@dataclass(frozen=True, eq=False)
class Novelty:
    """What a fitted model keeps to tell how unusual a row is."""

    kept: Kept
    weights: dict[str, float]  # of the terms
    surprises: dict[str, Surprise]  # of each term
    total: Surprise  # of their weighted sum

    def check_stored(self) -> None:
        """Raise a ValueError for terms that nobody computes."""
        if not set(self.weights) == set(self.surprises) <= set(WEIGHTS) or not self.weights:
            raise ValueError(f"Novelty must have terms of {', '.join(WEIGHTS)}")
        if not all(0 <= weight <= MOST_WEIGHT for weight in self.weights.values()):
            raise ValueError(f"Novelty must have weights from 0 to {MOST_WEIGHT}")

    @property
    def n_held_out(self) -> int:
        """How many rows the rate rests on: each kept one was judged as if it were new."""
        return len(self.kept.points)

    def is_of(self, n_features: int, n_clusters: int) -> bool:
        """Whether it can judge rows of so many scaled columns with labels of so many clusters."""
        kept = self.kept
        return len(kept.axes.mean) == n_features and len(kept.usual) > n_clusters

    def __call__(self, seen: Seen) -> np.ndarray:
        """(n,) from 0 to 1: the share of new rows of the fit's kind that are less unusual."""
        return self.total.share(weighed(self.weights, self.surprises, self.kept.terms(seen)))


def seen_rows(answer: Answer, scaled: np.ndarray) -> Seen:
    """Scaled rows (n, n_features) with what the model says of them, before edits."""
    return Seen(scaled, answer.Z, answer.labels if answer.unedited is None else answer.unedited)


def joined_rows(parts: Sequence[Seen]) -> Seen:
    """All rows of some parts, in their order."""
    names = ("scaled", "Z", "labels")
    return Seen(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def learn_novelty(seen: Seen, n_clusters: int, seed: int) -> Novelty | None:
    """What is kept of some rows of a fit; None of too few."""
    if len(seen.labels) < LEAST_KEPT:
        return None
    kept = Kept.of(seen, n_clusters)
    terms = held_out_terms(kept, seen, n_clusters, seed)
    surprises = {name: Surprise.of(terms[name]) for name in WEIGHTS}
    total = Surprise.of(weighed(WEIGHTS, surprises, terms))
    return Novelty(kept, dict(WEIGHTS), surprises, total)


def held_out_terms(kept: Kept, seen: Seen, n_clusters: int, seed: int) -> dict[str, np.ndarray]:
    """The terms of each row by all others: (n,) each.

    Where rows are many beside their columns, one row more or less changes no axis.
    """
    n, n_features = seen.scaled.shape
    if kept.axes.axes is None and n >= MANY * n_features:
        return kept.terms(seen, without=np.arange(n))
    fold = np.random.default_rng(seed).permutation(n) % min(N_FOLDS, n)
    terms: dict[str, np.ndarray] = {}
    for number in range(fold.max() + 1):
        left_out = np.flatnonzero(fold == number)
        others = Kept.of(seen, n_clusters, learned=np.flatnonzero(fold != number))
        for name, values in others.terms(seen.rows(left_out), without=left_out).items():
            terms.setdefault(name, np.empty(n))[left_out] = values
    return terms


def weighed(
    weights: Mapping[str, float],
    surprises: Mapping[str, Surprise],
    terms: Mapping[str, np.ndarray],
) -> np.ndarray:
    """The weighted sum of surprises: (n,) nats."""
    return np.asarray(
        sum(weight * surprises[name](terms[name]) for name, weight in weights.items())
    )
