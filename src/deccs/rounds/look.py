"""The look at the raw data before the rounds, and all candidates for the result after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deccs.data.rows import Rows
from deccs.labels import canonical
from deccs.members.choice import Candidate, Judge
from deccs.members.default import Member
from deccs.members.running import Partitions
from deccs.members.views import Seen
from deccs.rounds.records import Round


@dataclass(frozen=True, eq=False)
class Look:
    """What the members of the views say of their sample, and who judges it."""

    judge: Judge
    partitions: Partitions  # labels: (n_members, n_sample)

    def members(self, rows: Rows) -> list[Member]:
        """The same labels for all rows, as members of the rounds."""
        import os
        join = os.environ.get("JOIN", "all")
        carried = self.judge.views.carried(rows, self.partitions.labels)
        pairs = list(zip(self.partitions.names, carried, strict=True))
        if join == "all": return pairs
        cuts = [self.judge(l) for l in self.partitions.labels]
        order = np.argsort(cuts, kind="stable")
        return [pairs[i] for i in order[:int(join)]]

    def candidates(self, rounds: Sequence[Round]) -> list[Candidate]:
        """The views, and what each round would give."""
        named = zip(self.partitions.names, self.partitions.labels, strict=True)
        return [
            *(self.judge.candidate(name, labels) for name, labels in named),
            *(round_.candidate for round_ in rounds),
        ]

    def seen(self, labels: np.ndarray) -> Seen:
        """What a fitted model keeps of the views, with the result for their sample."""
        views, (names, partitions) = self.judge.views, (self.partitions.names, self.partitions.labels)
        return Seen(views.components, views.raw, labels, names, partitions)
