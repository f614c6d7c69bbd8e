"""What a plain member says of the drawn rows when some of them are left out.

Members that were trained to agree do so on anything. This one was not: it clusters the raw data of the
drawn rows again and again. Its partitions do not depend on the labels of the result, so they can judge it
also after it was edited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from deccs.labels import NOISE
from deccs.storage import stored, wholes


@stored
@dataclass(frozen=True, eq=False)
class Untrained:
    """Partitions of the drawn rows that no training has touched, -1 for rows without a label."""

    # By the plain member that is most like the labels.
    resamples: Annotated[np.ndarray, wholes("n_resamples", "n_drawn", below="n_drawn", small=True)]

    def togetherness(self, labels: np.ndarray, n_clusters: int) -> np.ndarray:
        """The share of each cluster that is with a row when rows are left out: (n_drawn, n_clusters)."""
        shares = [share_of_cluster(part, labels, n_clusters) for part in self.resamples]
        return averaged(self.resamples, shares)


def averaged(partitions: np.ndarray, tables: list[np.ndarray]) -> np.ndarray:
    """The mean over partitions of what the table of each says of a row's cluster: (n, n_clusters).

    ``tables`` have a row for each cluster of their partition. A partition without a label for a row says
    nothing of it; where none has one, 0.

    >>> partitions = np.array([[0, 1], [0, -1]])
    >>> averaged(partitions, [np.array([[1.0], [0.5]]), np.array([[0.0]])])
    array([[0.5],
           [0.5]], dtype=float32)
    """
    n, n_clusters = partitions.shape[1], tables[0].shape[1] if tables else 1
    total = np.zeros((n, n_clusters))
    for partition, table in zip(partitions, tables, strict=True):
        known = partition != NOISE
        total[known] += table[partition[known]]
    said = (partitions != NOISE).sum(axis=0)[:, None]  # (n, 1)
    return np.asarray(total / np.maximum(said, 1), dtype=np.float32)


def shared_rows(partition: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """How many rows each cluster of a partition shares with each of the labels: (n_parts, n_clusters)."""
    known = (partition != NOISE) & (labels != NOISE)
    n_parts = int(partition.max(initial=0)) + 1
    places = partition[known].astype(np.int64) * n_clusters + labels[known]
    return np.bincount(places, minlength=n_parts * n_clusters).reshape(n_parts, n_clusters)


def share_of_cluster(partition: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """The share of each of the labels' clusters that is in each cluster of a partition.

    >>> share_of_cluster(np.array([0, 0, 1, 1, -1]), np.array([0, 0, 0, 1, 1]), 2)
    array([[0.66666667, 0.        ],
           [0.33333333, 1.        ]])
    """
    shared = shared_rows(partition, labels, n_clusters)
    return np.asarray(shared / np.maximum(shared.sum(axis=0), 1))
