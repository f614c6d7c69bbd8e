"""The edits of a model, and what each does to labels and probabilities.

A model answers in the numbers it has learned; the steps of its history change the answers one after
the other. Cluster numbers are never used again: of merged clusters the first number stays, a part
that is split off gets a new number at the end, and rows of a dropped cluster get -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from deccs.checks import whole
from deccs.labels import NOISE
from deccs.storage.schema import reals, stored, wholes

NUMBER = whole(at_least=0)
SAME_POINT = 1e-9  # of the largest coordinate: products in other batches differ by less


@dataclass(frozen=True, eq=False)
class Step:
    """An edit. By default it changes nothing but the history."""

    NEEDS_POINTS = False  # whether labels after it depend on where a row is

    def check(self, live: frozenset[int]) -> None:
        """Raise a ValueError for an edit of clusters that are not there."""

    def n_numbers(self, before: int) -> int:
        """How many cluster numbers there are after it."""
        return before

    def lookup(self, before: int) -> np.ndarray:
        """The number after it of each number before it, (before + 1,); the last place is for -1."""
        return np.append(np.arange(before), NOISE)

    def parts(self, labels: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Labels after it, and how sure it is of its own choice: (n,), (n, n_latent) -> (n,) twice."""
        return self.lookup(int(labels.max(initial=0)) + 1)[labels], np.ones(len(labels))

    def probabilities(self, before: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """(n, n_numbers before it) -> (n, n_numbers after it)."""
        return before

    def descends(self, before: int) -> np.ndarray:
        """(before, after) whether rows of one number may have the other after it."""
        table = self.lookup(before)[:-1]
        return np.asarray(table[:, None] == np.arange(self.n_numbers(before)))


@stored
@dataclass(frozen=True, eq=False)
class Merge(Step):
    """Clusters become one, which has the first number.

    >>> Merge((2, 0)).parts(np.array([0, 1, 2, -1]), np.zeros((4, 1)))[0]
    array([ 2,  1,  2, -1])
    >>> Merge((2, 0)).probabilities(np.array([[0.5, 0.25, 0.25]]), np.zeros((1, 1)))
    array([[0.  , 0.25, 0.75]])
    """

    clusters: tuple[int, ...]

    def check(self, live: frozenset[int]) -> None:
        if len(self.clusters) < 2 or len(set(self.clusters)) < len(self.clusters):
            raise ValueError(
                f"Merging needs at least two different clusters, got {list(self.clusters)}."
            )
        for cluster in self.clusters:
            check_live(cluster, live)

    def lookup(self, before: int) -> np.ndarray:
        table = super().lookup(before)
        gone = [cluster for cluster in self.clusters[1:] if cluster < before]
        table[gone] = self.clusters[0]
        return table

    def probabilities(self, before: np.ndarray, Z: np.ndarray) -> np.ndarray:
        first, *others = self.clusters
        after = before.copy()
        after[:, first] += before[:, others].sum(axis=1)
        after[:, others] = 0
        return after


@stored
@dataclass(frozen=True, eq=False)
class Split(Step):
    """A cluster becomes several, told apart by a linear classifier of the representation.

    >>> halves = Split(0, (0, 2), weight=np.array([[-1.0], [1.0]]), bias=np.zeros(2))
    >>> halves.parts(np.array([0, 0, 1]), np.array([[-9.0], [9], [9]]))[0]
    array([0, 2, 1])
    """

    NEEDS_POINTS = True

    cluster: Annotated[int, NUMBER]
    numbers: tuple[int, ...]  # of the parts; the first is that of the cluster itself
    weight: Annotated[np.ndarray, reals("n_parts", "n_latent")]
    bias: Annotated[np.ndarray, reals("n_parts")]

    def check_stored(self) -> None:
        """Raise a ValueError for a head that does not fit its parts."""
        if len(self.numbers) != len(self.weight) or self.numbers[0] != self.cluster:
            raise ValueError("a Split must have a row of weights for each of its numbers")

    def check(self, live: frozenset[int]) -> None:
        check_live(self.cluster, live)

    def n_numbers(self, before: int) -> int:
        return max(before, max(self.numbers) + 1)

    def shares(self, Z: np.ndarray) -> np.ndarray:
        """How likely each part is for rows of the cluster: (n, n_latent) -> (n, n_parts)."""
        logits = Z @ self.weight.T + self.bias
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def parts(self, labels: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels, sure = labels.copy(), np.ones(len(labels))
        rows = np.flatnonzero(labels == self.cluster)
        shares = self.shares(Z[rows])
        chosen = shares.argmax(axis=1)
        labels[rows] = np.array(self.numbers)[chosen]
        sure[rows] = shares[np.arange(len(rows)), chosen]
        return labels, sure

    def probabilities(self, before: np.ndarray, Z: np.ndarray) -> np.ndarray:
        after = np.zeros((len(before), self.n_numbers(before.shape[1])))
        after[:, : before.shape[1]] = before
        after[:, list(self.numbers)] = before[:, [self.cluster]] * self.shares(Z)
        return after

    def descends(self, before: int) -> np.ndarray:
        after = np.eye(before, self.n_numbers(before), dtype=bool)
        after[self.cluster, list(self.numbers)] = True
        return after


@stored
@dataclass(frozen=True, eq=False)
class Pin(Step):
    """Rows that belong to a cluster because somebody says so: all rows with the same representation do."""

    NEEDS_POINTS = True

    cluster: Annotated[int, NUMBER]
    points: Annotated[np.ndarray, reals("n_pinned", "n_latent")]

    def check(self, live: frozenset[int]) -> None:
        check_live(self.cluster, live)

    def parts(self, labels: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels = labels.copy()
        labels[are_among(Z, self.points)] = self.cluster
        return labels, np.ones(len(labels))

    def probabilities(self, before: np.ndarray, Z: np.ndarray) -> np.ndarray:
        after, rows = before.copy(), are_among(Z, self.points)
        after[rows] = np.arange(before.shape[1]) == self.cluster
        return after


@stored
@dataclass(frozen=True, eq=False)
class Drop(Step):
    """A cluster that is none: its rows get -1. What it had of probabilities belongs to no cluster."""

    cluster: Annotated[int, NUMBER]

    def check(self, live: frozenset[int]) -> None:
        check_live(self.cluster, live)
        if len(live) == 1:
            raise ValueError(f"Cluster {self.cluster} is the only one left; it cannot be dropped.")

    def lookup(self, before: int) -> np.ndarray:
        table = super().lookup(before)
        if self.cluster < before:
            table[self.cluster] = NOISE
        return table

    def probabilities(self, before: np.ndarray, Z: np.ndarray) -> np.ndarray:
        after = before.copy()
        after[:, self.cluster] = 0
        return after


@stored
@dataclass(frozen=True, eq=False)
class Rename(Step):
    """A cluster gets another name."""

    cluster: Annotated[int, NUMBER]
    name: str

    def check(self, live: frozenset[int]) -> None:
        check_live(self.cluster, live)


@stored
@dataclass(frozen=True, eq=False)
class Renumber(Step):
    """Each cluster gets the number of the same cluster in an earlier model.

    >>> Renumber(np.array([3, 0]), 4).parts(np.array([0, 1, 1]), np.zeros((3, 1)))[0]
    array([3, 0, 0])
    """

    numbers: Annotated[np.ndarray, wholes("n_learned", least=0, below="n_all")]
    n_all: Annotated[
        int, whole(at_least=1)
    ]  # numbers ever given, those of clusters that are gone included

    def n_numbers(self, before: int) -> int:
        return self.n_all

    def lookup(self, before: int) -> np.ndarray:
        return np.append(self.numbers[:before], NOISE)

    def probabilities(self, before: np.ndarray, Z: np.ndarray) -> np.ndarray:
        return before @ (self.numbers[:, None] == np.arange(self.n_all)).astype(np.float64)


AnyStep = Merge | Split | Pin | Drop | Rename


@dataclass(frozen=True, eq=False)
class Edited:
    """What steps make of the answer for some rows."""

    labels: np.ndarray  # (n,)
    sure: np.ndarray  # (n,) how likely the parts are that splits have chosen
    probabilities: np.ndarray | None  # (n, n_numbers)


def apply(
    steps: Sequence[Step], labels: np.ndarray, Z: np.ndarray, probabilities: np.ndarray | None
) -> Edited:
    """Labels (n,), and probabilities (n, n_learned) where a method has some, after all steps."""
    sure = np.ones(len(labels))
    for step in steps:
        labels, chosen = step.parts(labels, Z)
        sure = sure * chosen
        if probabilities is not None:
            probabilities = step.probabilities(probabilities, Z)
    return Edited(labels, sure, probabilities)


def are_pinned(steps: Sequence[Step], Z: np.ndarray) -> np.ndarray:
    """(n,) whether somebody has said which cluster a row belongs to."""
    pinned = np.zeros(len(Z), dtype=bool)
    for step in steps:
        if isinstance(step, Pin):
            pinned |= are_among(Z, step.points)
    return pinned


def lookup_of(steps: Sequence[Step], n_learned: int) -> np.ndarray:
    """The number after all steps of each learned number, (n_learned + 1,), where no row counts by itself.

    >>> lookup_of([Merge((0, 1)), Drop(2)], 4)
    array([ 0,  0, -1,  3, -1])
    """
    table, n = np.append(np.arange(n_learned), NOISE), n_learned
    for step in steps:
        table, n = step.lookup(n)[table], step.n_numbers(n)
    return table


def n_numbers(steps: Sequence[Step], n_learned: int) -> int:
    """How many cluster numbers there are after all steps."""
    for step in steps:
        n_learned = step.n_numbers(n_learned)
    return n_learned


def descends(steps: Sequence[Step], n_learned: int) -> np.ndarray:
    """(n_learned + 1, n_numbers + 1) which learned clusters a cluster is made of; the last ones are for -1.

    >>> descends([Merge((0, 1))], 2).astype(int)
    array([[1, 0, 0],
           [1, 0, 0],
           [0, 0, 0]])
    """
    table = np.eye(n_learned, dtype=bool)
    for step in steps:
        table = table @ step.descends(table.shape[1])
    return np.pad(table, ((0, 1), (0, 1)))


def live_numbers(steps: Sequence[Step], n_learned: int) -> frozenset[int]:
    """The numbers that rows can have after all steps; those of merged and dropped clusters are retired."""
    found = np.flatnonzero(descends(steps, n_learned)[:-1].any(axis=0))
    return frozenset(found.tolist())


def check_live(cluster: int, live: frozenset[int]) -> None:
    """Raise a ValueError for a cluster that is not there."""
    if cluster not in live:
        known = ", ".join(map(str, sorted(live)))
        if live == set(range(len(live))) and len(live) > 1:
            known = f"0 to {len(live) - 1}"
        raise ValueError(f"There is no cluster {cluster!r}; the clusters are {known}.")


def are_among(Z: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(n,) whether a row is one of some points, but for rounding: (n, d), (n_points, d) -> (n,).

    Rows are compared with the few points whose sum of coordinates is the same.

    >>> are_among(np.array([[0.1, 0.2], [0.2, 0.1]]), np.array([[0.2, 0.1]]))
    array([False,  True])
    """
    if not len(points):
        return np.zeros(len(Z), dtype=bool)
    error = SAME_POINT * max(1.0, float(np.abs(points).max()))
    sums = points.sum(axis=1)
    order = np.argsort(sums)
    of_rows, reach = Z.sum(axis=1), error * points.shape[1]
    first = np.searchsorted(sums[order], of_rows - reach)
    last = np.searchsorted(sums[order], of_rows + reach, side="right")
    among = np.zeros(len(Z), dtype=bool)
    for row in np.flatnonzero(last > first):
        close = points[order[first[row] : last[row]]]
        among[row] = (np.abs(close - Z[row]) <= error).all(axis=1).any()
    return among
