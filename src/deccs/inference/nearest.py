"""The nearest row of a sample, and labels carried from there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np

from deccs.data.source import blocks, rows_at_once
from deccs.storage import reals, stored, wholes

if TYPE_CHECKING:
    from scipy.spatial import KDTree

# With more columns a tree visits nearly every point, and products are ten times faster.
MOST_TREE_COLUMNS = 15
# Pairs of a point and one of the sample: up to so many, products are faster than building a tree.
MOST_PAIRS = 2**22
ALIKE = 1e-9  # distances whose order no tree can tell for certain


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
        """(n, d) -> (n,) the place in the sample of each point's nearest neighbor, the first of several."""
        n_pairs, by_tree = len(Z) * len(self.Z), self.Z.shape[1] <= MOST_TREE_COLUMNS
        if by_tree and n_pairs > MOST_PAIRS and len(self.Z) > 1:
            return self._places_by_tree(Z)
        return self._places_by_products(Z)

    def _places_by_products(self, Z: np.ndarray) -> np.ndarray:
        at_once = rows_at_once(len(self.Z))
        parts = [nearest_places(Z[rows], self.Z, self._lengths) for rows in blocks(len(Z), at_once)]
        return np.concatenate(parts)

    def _places_by_tree(self, Z: np.ndarray) -> np.ndarray:
        distances, neighbors = map(np.asarray, self._tree.query(Z, k=2))  # (n, 2) each
        places = neighbors[:, 0].astype(np.int64)
        alike = np.flatnonzero(distances[:, 1] <= distances[:, 0] * (1 + ALIKE))
        if len(alike):
            places[alike] = self._places_by_products(Z[alike])
        return places

    @cached_property
    def _lengths(self) -> np.ndarray:
        return squared_lengths(self.Z)

    @cached_property
    def _tree(self) -> KDTree:
        from scipy.spatial import (
            KDTree,  # a few points need no tree, and it takes half a second to load
        )

        return KDTree(self.Z)


def squared_lengths(rows: np.ndarray) -> np.ndarray:
    """Of each row: (n, d) -> (n,)."""
    return np.asarray(np.square(rows).sum(axis=1))


def nearest_places(
    Z: np.ndarray, sample: np.ndarray, lengths: np.ndarray | None = None
) -> np.ndarray:
    """(n, d), (n_sample, d) -> (n,): the first of the nearest.

    A product of matrices finds the candidates. It rounds differently in blocks of different sizes,
    so candidates closer to each other than its error are compared by differences. ``lengths`` are the squares of
    those of the sample, if they are known.
    """
    lengths = squared_lengths(sample) if lengths is None else lengths  # (n_sample,)
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


def distances(points: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """(n, d), (n_sample, d) -> (n, n_sample), by differences of coordinates.

    Point by point, so that a point gets the same bits alone as among thousands.

    >>> distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[5., 1.]])
    """
    out = np.empty((len(points), len(sample)))
    apart = np.empty(sample.shape)
    for point, squares in zip(points, out, strict=True):
        np.subtract(sample, point, out=apart)
        np.einsum("sd,sd->s", apart, apart, out=squares)
    return np.sqrt(out, out=out)
