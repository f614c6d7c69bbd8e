"""The look at the data before the rounds, and the candidates for the result after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from deccs.constraints.settling import PRIORS, normalized_ties, settled
from deccs.data.rows import Rows
from deccs.inference.seen import Components, Seen
from deccs.members.agreement import average_agreement, pairwise_agreement
from deccs.members.candidate import Candidate
from deccs.members.choice import NEVER, Judge, best_of
from deccs.members.default import EARLIER, Member
from deccs.members.running import Partitions
from deccs.members.views import Views, carried
from deccs.rounds.records import Round

UNANIMOUS = 0.999  # views that agree this well leave nothing to the rounds
CONSENSUS = "consensus of the views"  # as a candidate
N_SETTLED = 3  # partitions of the views that constraints are built into
PATIENCE = 4  # rounds without a better result before they end


@dataclass(frozen=True, eq=False)
class Look:
    """What the members of the views say of their sample, their consensus, and who judges the rest."""

    views: Views
    components: Components  # how any other row is seen
    partitions: Partitions  # labels: (n_members, n_sample)
    consensus: np.ndarray  # (n_sample,)
    judge: Judge
    seed: int = 0  # which constraints are kept back together

    @property
    def is_unanimous(self) -> bool:
        """Whether a view decides the matter."""
        labels = self.partitions.labels
        return len(labels) > 1 and average_agreement(pairwise_agreement(labels)) >= UNANIMOUS

    def member(self, rows: Rows) -> Member:
        """The consensus of the views as one member of the rounds, since their members are alike."""
        points, sample = self.views.raw, self.views.sample
        known = best_of(self._settled).labels if self._settled else self.consensus
        return "views", carried(known, points, sample, rows, self.components)

    def is_over(self, rounds: Sequence[Round]) -> bool:
        """Whether the last rounds have found nothing better than what was known before them."""
        if len(rounds) <= PATIENCE:
            return False
        before = [candidate.evidence for candidate in self.candidates(rounds[:-PATIENCE])]
        return max(round_.candidate.evidence for round_ in rounds[-PATIENCE:]) <= max(before)

    def candidates(self, rounds: Sequence[Round]) -> list[Candidate]:
        """The views, their consensus, and what each round would give."""
        return [*self._settled, *self._of_views, *(round_.candidate for round_ in rounds)]

    def settled(self, candidate: Candidate) -> list[Candidate]:
        """A candidate with the constraints built in; what it is worth, those say that it has not seen."""
        constraints, made = self.judge.constraints, []
        if constraints is None or candidate.evidence == NEVER:
            return []
        for prior in PRIORS:
            found = settled(
                candidate.labels,
                self.judge.n_clusters,
                self._ties,
                constraints,
                prior,
                self.seed,
            )
            evidence = self.judge.without_constraints(found.labels)
            if evidence != NEVER:
                name = f"{candidate.name}, with constraints ({prior:g})"
                made.append(Candidate(name, found.labels, evidence + found.outcomes.evidence))
        return made

    @cached_property
    def _ties(self) -> sp.csr_array:
        return normalized_ties(self.views.wide)

    @cached_property
    def _settled(self) -> list[Candidate]:
        if self.judge.constraints is None:
            return []
        best = sorted(self._of_views, key=lambda candidate: -candidate.evidence)[:N_SETTLED]
        return [made for candidate in best for made in self.settled(candidate)]

    @cached_property
    def _of_views(self) -> list[Candidate]:
        """Judged once: the views do not change from round to round."""
        named = [
            *zip(self.partitions.names, self.partitions.labels, strict=True),
            (CONSENSUS, self.consensus),
        ]
        if self.judge.earlier is not None:
            named.append((EARLIER, self.judge.earlier))
        return [self.judge.candidate(*pair) for pair in named]

    def seen(self, labels: np.ndarray | None) -> Seen:
        """What a fitted model keeps of the views; ``labels`` is the result if a view gives it."""
        partitions = self.partitions
        return Seen(self.components, self.views.raw, partitions.names, partitions.labels, labels)
