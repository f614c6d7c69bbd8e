"""Who is right: one of several partitions, chosen without true labels.

Agreement finds the most central partition, and members that were trained to agree do so on anything.
The nearest neighbors in the raw data and on its manifold have seen no training: the partition that
cuts the fewest ties between them is taken. docs/choice.md has the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deccs.labels import NOISE
from deccs.members.views import Views
from deccs.storage import stored

LEAST_SHARE = 0.07  # of an even cluster: the cut is lowest where stray points make up a cluster


@stored
@dataclass(frozen=True, eq=False)
class Candidate:
    """A partition that could be the result."""

    name: str
    labels: np.ndarray  # (n_sample,) of the sample that all candidates share
    cut: float  # share of ties between neighbors that it cuts; 1 more if a cluster is too small


@dataclass(frozen=True, eq=False)
class Judge:
    """Compares partitions of the sample of the views."""

    views: Views
    n_clusters: int

    def __call__(self, labels: np.ndarray) -> float:
        """The cut; 1 more, the most a cut can be, for a partition that cannot be the result."""
        return self.views.cut(np.maximum(labels, 0)) + float(not self.accepts(labels))

    def accepts(self, labels: np.ndarray) -> bool:
        """Whether there are as many clusters as wanted, none of them tiny, and no point without one."""
        if labels.min() == NOISE or labels.max() >= self.n_clusters:
            return False
        sizes = np.bincount(labels, minlength=self.n_clusters)
        return bool(sizes.min() >= max(1.0, LEAST_SHARE * len(labels) / self.n_clusters))

    def rejects_all(self, rounds: Sequence[Any]) -> bool:
        """Whether no classifier of any round, in the order of its members, has as many clusters as wanted."""
        return all(round_.cuts.min() >= 1 for round_ in rounds)

    def candidate(self, name: str, labels: np.ndarray) -> Candidate:
        return Candidate(name, labels, self(labels))


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """The one with the least cut, the first of several alike."""
    return min(candidates, key=lambda candidate: candidate.cut)
