"""How much constraints speak for a partition: what share of them it satisfies, by kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deccs.constraints.given import Constraints
from deccs.labels import align_labels

STRENGTH = 4.0  # of all satisfied, beside label-free evidence: that is between -1 and 0.3, or above 1 for gaps
HALF = 80  # constraints of a kind count half as much as any number of them


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Which constraints are satisfied: a flag for each."""

    labels: np.ndarray  # (n_labeled,)
    must: np.ndarray  # (n_must,)
    cannot: np.ndarray  # (n_cannot,)

    @property
    def evidence(self) -> float:
        """The share of each kind, weighed by how many there are.

        >>> all_of_80 = np.ones(80, dtype=bool)
        >>> Outcomes(all_of_80, np.zeros(0, bool), np.zeros(0, bool)).evidence
        2.0
        """
        kinds = (self.labels, self.must, self.cannot)
        return STRENGTH * sum(
            len(flags) / (len(flags) + HALF) * float(flags.mean()) for flags in kinds if len(flags)
        )


def outcomes(constraints: Constraints, labels: np.ndarray) -> Outcomes:
    """What a partition satisfies: (n_rows,) labels, with clusters matched one-to-one with classes."""
    must, cannot, rows = constraints.must, constraints.cannot, constraints.labeled
    known = constraints.partial[rows]
    right = align_labels(labels[rows], known) == known if len(rows) else np.zeros(0, dtype=bool)
    return Outcomes(
        right,
        labels[must[:, 0]] == labels[must[:, 1]],
        labels[cannot[:, 0]] != labels[cannot[:, 1]],
    )
