"""Base partitions as distinct rows: points with the same label vector are one weighted row.

A consensus function sees a point only through its labels. With four members of ten clusters, a
million points have only a few thousand distinct label vectors, and every graph, linkage and
factorization of this package is built on those.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from deccs.checks import NONE, check_value, whole
from deccs.labels import NOISE, FewerClusters, as_labeling, canonical, check_all

N_CLUSTERS = whole(at_least=1) | NONE
TOO_FEW_ROWS = (
    "there are no more distinct label vectors, and points with the same labels stay together."
)


def membership(labels: np.ndarray, n_clusters: np.ndarray) -> csr_array:
    """H, (n, n_all_clusters): one where the row is in the cluster; (n, n_members) labels, -1 for none.

    >>> membership(np.array([[0, 1], [1, -1]]), n_clusters=np.array([2, 2])).toarray()
    array([[1., 0., 0., 1.],
           [0., 1., 0., 0.]])
    """
    first = np.cumsum(n_clusters) - n_clusters
    row, member = np.nonzero(labels != NOISE)
    shape = len(labels), int(n_clusters.sum())
    return csr_array((np.ones(len(row)), (row, labels[row, member] + first[member])), shape=shape)


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct label vectors of an ensemble, and how many points have each."""

    labels: np.ndarray  # (n_rows, n_members), from 0 within each member, -1 for "no label"
    counts: np.ndarray  # (n_rows,) points with this label vector
    row_of: np.ndarray  # (n_points,) row of each point, -1 for points that no member has labeled
    weights: np.ndarray  # (n_members,) weights of the members, sum 1

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def n_clusters(self) -> np.ndarray:
        """(n_members,) clusters of each member."""
        return self.labels.max(axis=0, initial=NOISE) + 1

    @cached_property
    def member_of(self) -> np.ndarray:
        """(n_all_clusters,) the member of each cluster; clusters are numbered across all members."""
        return np.repeat(np.arange(len(self.n_clusters)), self.n_clusters)

    @property
    def is_partial(self) -> bool:
        return bool((self.labels == NOISE).any())

    @cached_property
    def membership(self) -> csr_array:
        """(n_rows, n_all_clusters) H: one where the row is in the cluster."""
        return membership(self.labels, self.n_clusters)

    @cached_property
    def overlaps(self) -> np.ndarray:
        """(n_all_clusters, n_all_clusters) points that two clusters share; sizes on the diagonal."""
        H = self.membership
        return (H.T @ (H * self.counts[:, None])).toarray()

    def spread(self, labels: np.ndarray) -> np.ndarray:
        """Labels of rows -> labels of points; a point that no member labeled gets -1."""
        return canonical(np.where(self.row_of == NOISE, NOISE, labels[self.row_of]))


def distinct_rows(base_partitions: ArrayLike, weights: ArrayLike | None = None) -> DistinctRows:
    """Group the points with the same label vector. Members of weight 0 are left out.

    >>> rows = distinct_rows([[0, 0, 1, 1, 0], [5, 5, 5, 7, 5]])
    >>> rows.labels.tolist(), rows.counts.tolist(), rows.row_of.tolist()
    ([[0, 0], [1, 0], [1, 1]], [3, 1, 1], [0, 0, 1, 2, 0])
    """
    partitions = check_partitions(base_partitions)  # (n_members, n_points)
    member_weights = check_weights(weights, len(partitions))
    partitions, member_weights = partitions[member_weights > 0], member_weights[member_weights > 0]
    key = np.zeros(partitions.shape[1], dtype=np.int64)  # a label vector as one number
    n_keys = 1  # possible ones
    for member in partitions:
        if n_keys > 2**62 // (member.max() + 2):  # would overflow: number the keys that occur
            key = np.unique(key, return_inverse=True)[1]
            n_keys = int(key.max()) + 1
        key = key * (member.max() + 2) + member + 1
        n_keys *= int(member.max()) + 2
    _, first, row_of, counts = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    labels = partitions[:, first].T  # (n_rows, n_members)
    if (labels[0] == NOISE).all():  # the vector without any label has the smallest key
        labels, counts, row_of = labels[1:], counts[1:], row_of - 1
    if not len(labels):
        raise ValueError("No member has labeled any point: base_partitions holds only -1 or NaN.")
    return DistinctRows(labels, counts, row_of, member_weights / member_weights.sum())


def check_partitions(base_partitions: ArrayLike) -> np.ndarray:
    """(n_members, n_points) whole numbers, each member's clusters numbered by first appearance."""
    try:
        given = np.asarray(base_partitions)
    except ValueError as error:
        raise ValueError(
            f"The members must label the same points, one row each: {error}"
        ) from error
    if given.ndim != 2 or 0 in given.shape:
        raise ValueError(
            "base_partitions must be of shape (n_members, n_points), one row of labels per member; "
            f"got shape {given.shape}."
        )
    if given.dtype.kind == "f":
        if np.isinf(given).any():
            raise ValueError(
                "base_partitions holds infinity. Use -1 or NaN where a member has no label."
            )
        given = np.where(np.isnan(given), NOISE, given)
        check_all(given == np.round(given), given)
    if given.dtype.kind not in "biuf":  # names of clusters
        return np.stack(
            [as_labeling(str(number), row, given.shape[1]) for number, row in enumerate(given)]
        )
    if given.min() < NOISE:
        raise ValueError(
            f"Labels start at 0, and -1 means no label; base_partitions holds {given.min()}."
        )
    return np.stack([canonical(member) for member in given])


def check_weights(weights: ArrayLike | None, n_members: int) -> np.ndarray:
    """(n_members,) weights; None gives every member the same."""
    if weights is None:
        return np.ones(n_members)
    given = np.asarray(weights, dtype=float)
    if (
        given.shape != (n_members,)
        or not np.isfinite(given).all()
        or given.min() < 0
        or given.max() == 0
    ):
        raise ValueError(
            f"weights must be {n_members} numbers of at least 0, one per member and not all 0; "
            f"got {weights!r}."
        )
    return given


def wanted_clusters(rows: DistinctRows, n_clusters: int | None) -> int:
    """The number asked for; None is the number most members have."""
    check_value("n_clusters", n_clusters, N_CLUSTERS)
    if n_clusters is None:
        return int(Counter(rows.n_clusters[rows.n_clusters > 0].tolist()).most_common(1)[0][0])
    n_points = int(rows.counts.sum())
    if n_clusters > n_points:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the {n_points} labeled points. Ask for fewer. "
            "If base_partitions is transposed, turn it: one row is one member."
        )
    return int(n_clusters)


def warn_if_fewer(labels: np.ndarray, n_wanted: int, reason: str) -> np.ndarray:
    """The labels, with a warning if there are fewer clusters than wanted."""
    n_found = int(labels.max()) + 1
    if n_found < n_wanted:
        warnings.warn(
            f"{n_found} clusters instead of {n_wanted}: {reason}", FewerClusters, stacklevel=4
        )
    return labels


def one_cluster_per_row(rows: DistinctRows, n_wanted: int) -> np.ndarray:
    """The labels of the points where at least as many clusters are wanted as there are rows."""
    return warn_if_fewer(rows.spread(np.arange(len(rows))), n_wanted, TOO_FEW_ROWS)
