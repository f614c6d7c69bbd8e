"""What speaks for clusters in the data of a fit; :mod:`deccs.counting.one_group` looks for it."""

from __future__ import annotations

from dataclasses import dataclass

from deccs.storage import stored

LEAST_FOR_ONE = 100  # rows: of fewer nobody can tell whether they are one group
MOST_ROWS = 1_000  # enough to see valleys of many clusters, and quick to make again
MARGIN = 0.2  # what the valleys must be deeper than in any of the references
LEAST_GAIN = 0.15  # of a mixture over one cloud, beyond that of permuted columns; noise has 0
LEAST_DEPENDENCE = 0.05  # of columns that have to do with each other; permuted ones have 0 to 0.03
TWO_GROUPS = 0.9  # share of a column's variance between two groups: six deviations apart
DEEPEST = 2.0  # as a difference of log densities; deeper valleys are alike
SEPARATED = DEEPEST / 2  # the least depth around a cluster that hardly any of its points touches


@stored
@dataclass(frozen=True)
class Signs:
    """What speaks for clusters, and what the same is in data without clusters."""

    depth: float  # of the valleys
    reference_depth: float  # the deepest of all references
    n_parts: int  # large parts that not even many neighbors connect
    n_near_parts: int  # large parts with gaps between them that fewer neighbors do not connect
    gain: float  # of a mixture over one cloud, for each row, less that of permuted columns
    dependence: float  # how much closer rows are than rows whose columns were permuted
    split: float = 0.0  # how well the best column falls into two groups, from 0 to 1
    n_rows: int = MOST_ROWS  # that were looked at

    @property
    def of_clusters(self) -> bool:
        """Whether anything speaks for clusters."""
        if self.dependence < LEAST_DEPENDENCE:
            deep = self.has_valleys and self.depth >= SEPARATED
            return deep or self.n_parts > 1 or self.split >= TWO_GROUPS
        return self.n_near_parts > 1 or self.has_valleys or self.gain > LEAST_GAIN

    @property
    def has_valleys(self) -> bool:
        """Whether valleys are deeper than in data without clusters."""
        return self.depth > self.reference_depth + MARGIN

    @property
    def of_one_group(self) -> bool:
        """Whether the data looks like one group; of a few rows nobody can tell."""
        return not self.of_clusters and self.n_rows >= LEAST_FOR_ONE
