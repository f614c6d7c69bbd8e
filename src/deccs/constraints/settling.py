"""A partition changed where constraints speak against it, and what that is worth.

Rows whose cluster is known, by a label or because a cheap repair has moved them, pass it on to their
neighbors in the raw data; all other rows begin with the cluster that the partition gives them. With a
small weight of the partition this is label spreading, with a large one only the neighbors of rows that
were wrong follow. What a settled partition is worth is told by constraints that it has not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from deccs.constraints.evidence import Outcomes, outcomes
from deccs.constraints.given import Constraints
from deccs.labels import NOISE, align_labels

PRIORS = (0.003, 0.03, 0.3)  # weights of a row of the partition, where that of a known row is 1
KEPT = 0.9  # of what a row hears from its neighbors; the rest is its own
N_STEPS = 40  # the part of the first row that is still under way is below 2 % then
N_SWEEPS = 3  # of the repair
N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Settled:
    """A partition after the repair."""

    labels: np.ndarray  # (n_rows,)
    outcomes: Outcomes  # on constraints that took no part


def settled(
    partition: np.ndarray,
    n_clusters: int,
    ties: sp.csr_array,
    constraints: Constraints,
    prior: float,
    seed: int,
) -> Settled:
    """A partition (n_rows,) with the constraints in it, judged by folds of the constraints.

    Clusters are numbered like the classes that most of their labeled rows have.
    """
    numbered = numbered_like_classes(partition, constraints, n_clusters)
    labels = settle(numbered, n_clusters, ties, constraints, prior)
    of_folds = [
        held_out_outcomes(settle(numbered, n_clusters, ties, known, prior), held_out)
        for known, held_out in folds(constraints, seed)
    ]
    joined = (
        np.concatenate([getattr(each, kind) for each in of_folds])
        for kind in ("labels", "must", "cannot")
    )
    return Settled(labels, Outcomes(*joined))


def numbered_like_classes(
    partition: np.ndarray, constraints: Constraints, n_clusters: int
) -> np.ndarray:
    """The partition with the numbers of the classes; clusters of no class get the numbers that are left."""
    if not len(constraints.labeled):
        return partition
    return align_labels(partition, constraints.partial) % n_clusters


def settle(
    partition: np.ndarray,
    n_clusters: int,
    ties: sp.csr_array,
    constraints: Constraints,
    prior: float,
) -> np.ndarray:
    """(n_rows,) labels: labeled rows keep their class, linked rows are repaired, neighbors follow."""
    known = constraints.partial
    opinions = spread(ties, starts(partition, known, n_clusters, prior))
    if len(constraints.must) or len(constraints.cannot):
        repaired = repair(opinions, constraints)
        known = np.where((repaired != opinions.argmax(1)) | (known != NOISE), repaired, known)
        opinions = spread(ties, starts(partition, known, n_clusters, prior))
    return np.where(known != NOISE, known, opinions.argmax(1))


def starts(partition: np.ndarray, known: np.ndarray, n_clusters: int, prior: float) -> np.ndarray:
    """What each row says at first: (n_rows, n_clusters).

    >>> starts(np.array([0, 1]), np.array([-1, 0]), 2, prior=0.5)
    array([[0.5, 0. ],
           [1. , 0. ]])
    """
    first = np.zeros((len(partition), n_clusters))
    is_known = known != NOISE
    first[np.arange(len(partition)), np.where(is_known, known, partition)] = np.where(
        is_known, 1, prior
    )
    return first


def normalized_ties(graph: sp.csr_array) -> sp.csr_array:
    """D^-1/2 W D^-1/2 of a graph, without ties of rows to themselves."""
    without = sp.csr_array(graph - sp.diags_array(graph.diagonal()))
    roots = 1 / np.sqrt(np.maximum(without.sum(axis=1), 1e-12))
    return sp.csr_array(sp.diags_array(roots) @ without @ sp.diags_array(roots))


def spread(ties: sp.csr_array, first: np.ndarray) -> np.ndarray:
    """Label spreading (Zhou et al., 2004): F = KEPT S F + (1 - KEPT) Y, from (n_rows, n_clusters) Y."""
    opinions = first
    for _ in range(N_STEPS):
        opinions = KEPT * (ties @ opinions) + (1 - KEPT) * first
    return opinions


def repair(opinions: np.ndarray, constraints: Constraints) -> np.ndarray:
    """(n_rows,) clusters in which linked rows satisfy their constraints, as far as a few sweeps can.

    Rows that must-links join move together, to where most of their opinions are; a cannot-link
    takes the cluster of the other end away. Those that are surest choose first.
    """
    labels = opinions.argmax(1)
    rows, component = constraints.linked
    n_components = int(component.max(initial=-1)) + 1
    sums = np.zeros((n_components, opinions.shape[1]))
    np.add.at(sums, component, opinions[rows])
    shares = sums / np.maximum(sums.sum(1, keepdims=True), 1e-12)
    fixed = np.full(n_components, NOISE)
    known = constraints.labels[rows]
    fixed[component[known != NOISE]] = known[known != NOISE]
    apart = component[np.searchsorted(rows, constraints.cannot)].reshape(-1, 2)
    others = graph_of_parts(apart, n_components)
    is_free = np.isin(np.arange(n_components), apart) & (fixed == NOISE)
    chosen = np.where(fixed != NOISE, fixed, np.where(is_free, NOISE, shares.argmax(1)))
    order = np.argsort(-shares.max(1), kind="stable")
    for _ in range(N_SWEEPS):
        before = chosen.copy()
        for number in order[is_free[order]]:
            taken = chosen[others.indices[others.indptr[number] : others.indptr[number + 1]]]
            cost = np.bincount(taken[taken != NOISE], minlength=shares.shape[1])
            chosen[number] = (shares[number] - cost).argmax()
        if np.array_equal(chosen, before):
            break
    labels[rows] = chosen[component]
    return labels


def graph_of_parts(apart: np.ndarray, n: int) -> sp.csr_array:
    """Who must be apart from whom: (n, n), both ways."""
    both = np.concatenate([apart, apart[:, ::-1]])
    return sp.csr_array(sp.coo_array((np.ones(len(both)), both.T), (n, n)))


def folds(constraints: Constraints, seed: int) -> Iterator[tuple[Constraints, Constraints]]:
    """Constraints to learn from, and those that were kept back; each is kept back once.

    Rows that must-links join by way of labels cannot be told from each other, so labels are kept back
    by component; pairs by themselves.
    """
    rng = np.random.default_rng(seed)
    rows, component = constraints.linked
    of_component = rng.permutation(int(component.max(initial=-1)) + 1) % N_FOLDS
    of_labeled = of_component[component[np.searchsorted(rows, constraints.labeled)]]
    of_must = rng.permutation(len(constraints.must)) % N_FOLDS
    of_cannot = rng.permutation(len(constraints.cannot)) % N_FOLDS
    n_rows, classes = constraints.n_rows, constraints.classes
    for fold in range(N_FOLDS):
        parts = []
        for is_in in (np.not_equal, np.equal):
            labels = np.full(n_rows, NOISE)
            chosen = constraints.labeled[is_in(of_labeled, fold)]
            labels[chosen] = constraints.partial[chosen]
            must = constraints.must[is_in(of_must, fold)]
            cannot = constraints.cannot[is_in(of_cannot, fold)]
            parts.append(Constraints(must, cannot, labels, classes))
        yield parts[0], parts[1]


def held_out_outcomes(labels: np.ndarray, held_out: Constraints) -> Outcomes:
    """As of a partition, but clusters have the numbers of classes already."""
    found = outcomes(held_out, labels)
    rows = held_out.labeled
    return Outcomes(labels[rows] == held_out.partial[rows], found.must, found.cannot)
