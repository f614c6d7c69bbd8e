"""Which clusters of a model are those of an earlier one, so that they keep their numbers and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from deccs.edits.steps import Renumber
from deccs.labels import NOISE
from deccs.storage.schema import stored, wholes

# Of the rows of one of two clusters, and of the other one, for them to be the same.
LEAST_SHARED, LEAST_OF_OTHER = 0.5, 0.1


@stored
@dataclass(frozen=True, eq=False)
class Matching:
    """What has become of the clusters of an earlier model. Numbers are those of all models so far."""

    counts: Annotated[np.ndarray, wholes("n_before", "n_after", least=0)]  # rows by both numbers
    kept: tuple[int, ...]
    born: tuple[int, ...]
    gone: tuple[int, ...]
    names: tuple[str, ...]  # of all numbers up to those of this model

    @property
    def moves(self) -> list[tuple[int, int, int]]:
        """(from, to, rows) of rows that have another cluster than before, the most first."""
        moved = [
            (int(before), int(after), int(self.counts[before, after]))
            for before, after in zip(*np.nonzero(self.counts), strict=True)
            if before != after
        ]
        return sorted(moved, key=lambda move: (-move[2], move))

    def __str__(self) -> str:
        """What has changed, for people."""
        n_rows = int(self.counts.sum())
        n_same = int(sum(self.counts[number, number] for number in self.kept))
        lines = [f"{len(self.kept)} clusters are kept."]
        if self.born:
            lines.append(f"New: {', '.join(map(self._named, self.born))}.")
        if self.gone:
            lines.append(f"Gone: {', '.join(map(self._named, self.gone))}.")
        if n_rows:
            lines.append(
                f"{n_same / n_rows:.1%} of {n_rows:,} rows are where the earlier model has them."
            )
        return "\n".join(lines)

    def _named(self, number: int) -> str:
        name = self.names[number] if number < len(self.names) else ""
        return f"{number}" if name in ("", f"cluster {number}") else f"{number} ({name})"


def match_clusters(
    labels: np.ndarray, earlier: np.ndarray, n_learned: int, n_before: int
) -> Renumber:
    """The number of each learned cluster: that of an earlier cluster, or a new one behind all others.

    labels and earlier are (n,), of the same rows; ``n_before`` numbers were given earlier. Two clusters
    are the same if they are assigned to each other (as many rows as possible stay where they are) and
    share half of the rows of one of them, and a tenth of those of the other.

    >>> labels, earlier = np.array([0, 0, 1, 1, 2]), np.array([1, 1, 0, 0, 0])
    >>> match_clusters(labels, earlier, 3, 2).numbers
    array([1, 0, 2])
    """
    from scipy.optimize import linear_sum_assignment  # models answer without it

    shared = counts_of(labels, earlier, n_learned, n_before)
    own, others = linear_sum_assignment(-shared)
    sizes = np.bincount(labels[labels != NOISE], minlength=n_learned)
    earlier_sizes = np.bincount(earlier[earlier != NOISE], minlength=n_before)
    numbers = np.full(n_learned, NOISE)
    for cluster, other in zip(own, others, strict=True):
        low, high = sorted((int(sizes[cluster]), int(earlier_sizes[other])))
        least = max(LEAST_SHARED * low, LEAST_OF_OTHER * high)
        if 0 < shared[cluster, other] >= least:
            numbers[cluster] = other
    new = np.flatnonzero(numbers == NOISE)
    numbers[new] = n_before + np.arange(len(new))
    return Renumber(numbers, n_before + len(new))


def counts_of(labels: np.ndarray, others: np.ndarray, n: int, n_others: int) -> np.ndarray:
    """(n, n_others) how many rows have both labels; rows without one do not count."""
    both = (labels != NOISE) & (others != NOISE)
    counts = np.bincount(labels[both] * n_others + others[both], minlength=n * n_others)
    return np.asarray(counts.reshape(n, n_others))


def matching_of(
    labels: np.ndarray,
    earlier: np.ndarray,
    live_before: Sequence[int],
    live_now: Sequence[int],
    names: Sequence[str],
) -> Matching:
    """What has become of clusters; labels and earlier are (n,), of the same rows, in the same numbers."""
    counts = counts_of(earlier, labels, max(live_before) + 1, len(names))
    before, now = set(live_before), set(live_now)
    kept, born, gone = (tuple(sorted(part)) for part in (before & now, now - before, before - now))
    return Matching(counts, kept, born, gone, tuple(names))
