"""Which clusters of an earlier model are gone from new data, and where there are new ones.

Rows of both are put into one sample, as many of each. Where nothing has changed, half of the neighbors
of a row are from the other data. Rows of a new cluster have no earlier neighbors, and earlier rows of a
cluster that is gone have no new ones. Drift takes foreign neighbors from rows here and there; a cluster
is many such rows that are neighbors of each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from deccs.labels import NOISE
from deccs.members.neighbors import nearest_neighbors

N_NEIGHBORS = 10
ALONE = 0.1  # share of foreign neighbors: by chance one row in a hundred has as few
LEAST_SHARE, LEAST_ROWS = 0.02, 6  # of the sample, that make a cluster
GONE = 0.5  # of the rows of a cluster must be alone


@dataclass(frozen=True, eq=False)
class Pooled:
    """Rows of the earlier fit and as many new ones, as the earlier model sees them."""

    earlier: np.ndarray  # (n_earlier, n_components)
    new: np.ndarray  # (n_new, n_components)

    def alone(self) -> tuple[np.ndarray, np.ndarray]:
        """The groups of earlier rows that have no new neighbors, and of new rows without earlier ones.

        (n_earlier,) and (n_new,): the number of the group, the largest first; -1 for all other rows.
        """
        n_earlier = len(self.earlier)
        points = np.concatenate([self.earlier, self.new])
        n_neighbors = min(N_NEIGHBORS, len(points) - 1)
        nearest = nearest_neighbors(points, n_neighbors + 1)[1][:, 1:]  # behind the row itself
        is_new = np.arange(len(points)) >= n_earlier
        foreign = (is_new[nearest] != is_new[:, None]).mean(axis=1)
        least = max(LEAST_ROWS, LEAST_SHARE * min(n_earlier, len(self.new)))
        sides = [
            groups_of((foreign <= ALONE) & (is_new == side), nearest, least) for side in (0, 1)
        ]
        return sides[0][:n_earlier], sides[1][n_earlier:]


def groups_of(chosen: np.ndarray, nearest: np.ndarray, least: float) -> np.ndarray:
    """Chosen rows that are neighbors of each other: (n,) the number of the group, -1 for small ones.

    >>> nearest = np.array([[1], [0], [3], [2], [3]])
    >>> groups_of(np.array([True, True, True, True, True]), nearest, least=3)
    array([-1, -1,  0,  0,  0])
    """
    n, n_neighbors = nearest.shape
    ends = np.arange(n + 1) * n_neighbors
    ties = csr_array((np.ones(n * n_neighbors), nearest.ravel(), ends), shape=(n, n))
    rows = np.flatnonzero(chosen)
    groups = np.full(n, NOISE)
    if len(rows):
        groups[rows] = connected_components(ties[rows][:, rows], directed=False)[1]
    sizes = np.bincount(groups[rows], minlength=1)
    order = np.argsort(-sizes, kind="stable")
    number_of = np.full(len(sizes) + 1, NOISE)
    large = [group for group in order if sizes[group] >= least]
    number_of[large] = np.arange(len(large))
    return number_of[groups]


def gone_clusters(alone: np.ndarray, labels: np.ndarray) -> tuple[int, ...]:
    """The clusters that are gone: most of their rows are alone. alone and labels are (n_earlier,).

    >>> gone_clusters(np.array([0, 0, -1, -1]), np.array([2, 2, 2, 1]))
    (2,)
    """
    clusters = np.unique(labels[labels != NOISE])
    share = {cluster: (alone[labels == cluster] != NOISE).mean() for cluster in clusters.tolist()}
    return tuple(cluster for cluster in share if share[cluster] > GONE)


def spread_groups(alone: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The groups of new rows with rows whose neighbors are mostly in one of them: (n,), (n, d) -> (n,)."""
    n_groups = int(alone.max(initial=NOISE)) + 1
    if not n_groups:
        return alone
    n_neighbors = min(N_NEIGHBORS, len(points) - 1)
    nearest = nearest_neighbors(points, n_neighbors + 1)[1][:, 1:]
    votes = (alone[nearest][:, :, None] == np.arange(n_groups)).mean(axis=1)  # (n, n_groups)
    joins = (alone == NOISE) & (votes.max(axis=1) > 0.5)
    return np.where(joins, votes.argmax(axis=1), alone)
