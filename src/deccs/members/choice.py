"""Who is right: one of several partitions, chosen without true labels.

Agreement alone finds the most central partition, and members that were trained to agree do so on
anything. Neighbors in the raw data have seen no training. So a partition counts by how well it agrees
with the members of the views, less the share of neighbors that its worst cluster loses. One that cuts
no tie at all, even in a wider neighborhood, has found gaps: it needs no agreement, and the widest gap
counts. The rule was chosen on a pool of data sets; docs/choice.md has the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from deccs.constraints.evidence import outcomes
from deccs.constraints.given import Constraints
from deccs.labels import NOISE
from deccs.members.agreement import nmi_of_counts
from deccs.members.candidate import Candidate
from deccs.members.neighbors import cuts_by_cluster
from deccs.members.spanning_tree import SpanningTree, gap_of

AGREEMENT_WEIGHT = 0.3  # from 0.1 to 0.5 the pool's mean NMI is the same within .004
CONTINUITY_WEIGHT = 0.3  # of the NMI with an earlier model's clusters, see docs/refit.md
NEVER = -10.0  # the evidence for what cannot be the result


@dataclass(frozen=True, eq=False)
class Judge:
    """Compares partitions of one sample."""

    graph: sp.csr_array  # (n_sample, n_sample) ties between near neighbors
    wide_graph: sp.csr_array  # ... and between more of them
    tree: SpanningTree
    panel: np.ndarray  # (n_panel, n_sample) partitions that no training for agreement has touched
    n_clusters: int
    earlier: np.ndarray | None = None  # (n_sample,) the clusters of a model that it should be like
    constraints: Constraints | None = None  # of the sample

    def __call__(self, labels: np.ndarray) -> float:
        """The evidence for a partition of the sample, (n_sample,)."""
        evidence = self.without_constraints(labels)
        if self.constraints is None or evidence == NEVER:
            return evidence
        return evidence + outcomes(self.constraints, labels).evidence

    def without_constraints(self, labels: np.ndarray) -> float:
        """The evidence without what is known of some rows."""
        evidence = self.by_itself(labels)
        if self.earlier is None or evidence == NEVER:
            return evidence
        return evidence + CONTINUITY_WEIGHT * nmi_of(labels, self.earlier)

    def by_itself(self, labels: np.ndarray) -> float:
        """The evidence without what an earlier model says."""
        if labels.min() == NOISE or not np.array_equal(np.unique(labels), range(self.n_clusters)):
            return NEVER
        if worst_cut(self.wide_graph, labels) == 0:
            return 1 + gap_of(self.tree, labels)
        return AGREEMENT_WEIGHT * self.agreement(labels) - worst_cut(self.graph, labels)

    def agreement(self, labels: np.ndarray) -> float:
        """The mean NMI with the panel."""
        return float(np.mean([nmi_of(labels, partition) for partition in self.panel]))

    def candidate(self, name: str, labels: np.ndarray) -> Candidate:
        return Candidate(name, labels, self(labels))


def worst_cut(graph: sp.csr_array, labels: np.ndarray) -> float:
    """The share of ties that the worst cluster loses: a partition is as good as its worst cluster.

    >>> line = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> worst_cut(line, np.array([0, 0, 1])), worst_cut(line, np.array([0, 0, 0]))
    (1.0, 0.0)
    """
    return float(cuts_by_cluster(graph, labels).max())


def nmi_of(first: np.ndarray, second: np.ndarray) -> float:
    """NMI of two partitions over the points that both label."""
    both = (first != NOISE) & (second != NOISE)
    first, second = first[both], second[both]
    n_first, n_second = first.max(initial=0) + 1, second.max(initial=0) + 1
    counts = np.bincount(first * n_second + second, minlength=n_first * n_second)
    return nmi_of_counts(counts.reshape(n_first, n_second))


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """The one with the most evidence, the first of several alike."""
    return max(candidates, key=lambda candidate: candidate.evidence)
