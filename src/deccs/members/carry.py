"""Carrying labels from a sample to all points: each point takes those of its nearest neighbor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from sklearn.neighbors import NearestNeighbors

from deccs.data.source import blocks, rows_at_once
from deccs.storage import reals, stored, wholes

MOST_TREE_COLUMNS = (
    15  # with more, a tree visits nearly every point and products are ten times faster
)


@stored
@dataclass(frozen=True, eq=False)
class NearestInSample:
    """Labels of any point by its nearest neighbor in a sample.

    Distances are compared by differences of coordinates. So a point of the sample finds itself, and
    a point gets the same neighbor alone as among thousands.

    >>> nearest = NearestInSample(np.array([[0.0], [1.0], [5.0]]), labels=np.array([7, 8, 9]))
    >>> nearest(np.array([[0.4], [4.0]])), nearest.places(np.array([[0.4], [4.0]]))
    (array([7, 9]), array([0, 2]))
    """

    Z: Annotated[np.ndarray, reals("n_sample", "d")]
    labels: Annotated[np.ndarray, wholes("n_sample")]

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """(n, d) -> (n,) labels."""
        labels: np.ndarray = self.labels[self.places(Z)]
        return labels

    def places(self, Z: np.ndarray) -> np.ndarray:
        """(n, d) -> (n,) the place in the sample of each point's nearest neighbor."""
        if self.Z.shape[1] <= MOST_TREE_COLUMNS:
            neighbors: np.ndarray = self._tree.kneighbors(Z, return_distance=False)
            return neighbors[:, 0]
        at_once = rows_at_once(len(self.Z))
        return np.concatenate([nearest_places(Z[rows], self.Z) for rows in blocks(len(Z), at_once)])

    @cached_property
    def _tree(self) -> NearestNeighbors:
        return NearestNeighbors(n_neighbors=1, algorithm="kd_tree").fit(self.Z)


def nearest_places(Z: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """(n, d), (n_sample, d) -> (n,): the first of the nearest.

    A product of matrices finds the candidates. It rounds differently in blocks of different sizes,
    so candidates closer to each other than its error are compared by differences.
    """
    lengths = np.square(sample).sum(axis=1)  # (n_sample,)
    distances = lengths - 2 * Z @ sample.T  # (n, n_sample), less the length of z
    rounding = 2 * (Z.shape[1] + 2) * np.finfo(np.float64).eps
    error = rounding * (np.square(Z).sum(axis=1) + lengths.max())  # (n,) at most
    close = distances <= (distances.min(axis=1) + 2 * error)[:, None]
    nearest = close.argmax(axis=1)
    for row in np.flatnonzero(close.sum(axis=1) > 1):
        candidates = np.flatnonzero(close[row])
        exact = np.square(Z[row] - sample[candidates]).sum(axis=1)
        nearest[row] = candidates[exact.argmin()]
    return nearest
