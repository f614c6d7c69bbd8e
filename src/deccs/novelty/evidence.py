"""What speaks for a row being unlike those of the fit: no label, no training, and no network needed twice.

Kept rows of the fit are looked at in units of the spread inside clusters (*shape*), and in the
representation. A network gives rows back better that it
has learned from, by up to a hundred times for small data, and its own error would call every new row
unusual. So a row is given back from its representation by the kept rows next to it there, which can
be done without the row itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from deccs.novelty.neighbors import nearest
from deccs.storage import reals, stored

LEAST_KEPT = 20  # rows; nobody can tell from fewer what is unusual
MOST_AXES = 50  # of wide rows; what they leave is kept as one number
N_BACK = 3  # rows that a row is given back from
N_NEAR, N_DENSE = 5, 10  # neighbors whose distance is looked at
RIDGE = 0.1  # of the mean variance, added to the spread inside clusters
NOTHING = 1e-9  # a distance that counts as none: copies are not infinitely near
FARTHEST = 1e9  # deviations; the squares of more lose all digits


@stored
@dataclass(frozen=True, eq=False)
class Axes:
    """Scaled rows as points: principal components of wide rows, and how much these leave."""

    mean: Annotated[np.ndarray, reals("n_features")]
    axes: Annotated[np.ndarray, reals("n_features", "n_axes")] | None  # None: columns as they are

    def __call__(self, scaled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, n_features) -> (n, n_axes) and the length of the rest (n,)."""
        scaled = np.clip(scaled, -FARTHEST, FARTHEST)
        if self.axes is None:
            return single(scaled), np.zeros(len(scaled), dtype=np.float32)
        centered = scaled - self.mean
        points = centered @ self.axes
        rest = np.square(centered).sum(axis=1) - np.square(points).sum(axis=1)
        return single(points), single(np.sqrt(np.maximum(rest, 0)))


def single(values: np.ndarray) -> np.ndarray:
    """Values in single precision.

    A product of matrices gives a row another last digit in another batch. It goes with the digits
    that are dropped here, so that a row alone gets what it gets among thousands.
    """
    return values.astype(np.float32)


def fit_axes(scaled: np.ndarray) -> Axes:
    """The principal components of (n, n_features) where there are more columns than components."""
    n, n_features = scaled.shape
    mean = scaled.mean(axis=0)
    if n_features <= MOST_AXES:
        return Axes(mean, None)
    centered = scaled - mean
    n_axes = max(1, min(MOST_AXES, n // 2))
    # The smaller of the two products of the rows with themselves has the same eigenvalues.
    if n_features <= n:
        axes = np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, :n_axes]
        return Axes(mean, axes.copy())
    variance, sides = np.linalg.eigh(centered @ centered.T)
    variance, sides = variance[::-1][:n_axes], sides[:, ::-1][:, :n_axes]
    real = variance > 1e-12 * max(float(variance[0]), NOTHING)  # the others are rounding
    if not real.any():
        return Axes(mean, np.eye(n_features, 1))
    return Axes(mean, centered.T @ sides[:, real] / np.sqrt(variance[real]))


def fit_shape(points: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """What turns points (n, d) into units of the spread inside clusters: (d, d).

    >>> points = np.array([[0.0, 0], [0, 2], [9, 0], [9, 2]])  # two clusters, each 2 high
    >>> (points @ fit_shape(points, np.array([0, 0, 1, 1])) ** 2).round(1).max(axis=0) > 5
    array([ True, False])
    """
    clusters, numbers = np.unique(labels, return_inverse=True)
    sums = np.zeros((len(clusters), points.shape[1]))
    np.add.at(sums, numbers, points)
    centered = points - (sums / np.bincount(numbers)[:, None])[numbers]
    variance, directions = np.linalg.eigh(centered.T @ centered / len(points))
    variance = np.maximum(variance, 0)
    floor = RIDGE * float(variance.mean()) or 1.0
    return np.asarray(directions / np.sqrt(variance + floor))


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows that are looked at, with what the model says of them."""

    scaled: np.ndarray  # (n, n_features)
    Z: np.ndarray  # (n, n_latent)
    labels: np.ndarray  # (n,)

    def rows(self, index: np.ndarray) -> Seen:
        """Some of the rows."""
        return Seen(self.scaled[index], self.Z[index], self.labels[index])


@stored
@dataclass(frozen=True, eq=False)
class Kept:
    """Rows of the fit, and how far apart they usually are."""

    axes: Axes
    shape: Annotated[np.ndarray, reals("n_axes", "n_axes")]
    points: Annotated[np.ndarray, reals("n_kept", "n_axes")]
    rest: Annotated[np.ndarray, reals("n_kept", least=0)]
    Z: Annotated[np.ndarray, reals("n_kept", "n_latent")]
    # How far the last and the next neighbor of each kept row are, shaped and in the representation.
    spread: Annotated[np.ndarray, reals("n_kept", 2, least=0)]
    spread_Z: Annotated[np.ndarray, reals("n_kept", 2, least=0)]
    usual: Annotated[np.ndarray, reals(None)]  # log distance inside each cluster; -1: in all

    def check_stored(self) -> None:
        """Raise a ValueError for parts that do not fit each other."""
        if len(self.points) < LEAST_KEPT or not self.points.shape[1] or not self.Z.shape[1]:
            raise ValueError(f"Kept must have {LEAST_KEPT} rows or more")
        axes = self.axes.axes
        width = len(self.axes.mean) if axes is None else axes.shape[1]
        if width != self.points.shape[1]:
            raise ValueError("Kept must have the axes of its points")

    @classmethod
    def of(cls, seen: Seen, n_clusters: int, learned: np.ndarray | None = None) -> Kept:
        """All rows that were seen; axes and shape are learned from some of them."""
        index = np.arange(len(seen.labels)) if learned is None else learned
        axes = fit_axes(seen.scaled[index])
        points, rest = axes(seen.scaled)
        shape = fit_shape(points[index], seen.labels[index])
        Z = single(np.clip(seen.Z, -FARTHEST, FARTHEST))
        shaped, rows = single(points @ shape), np.arange(len(points))
        distances = nearest(shaped, shaped, N_DENSE + 1, without=rows)[0]
        spread, spread_Z = distances[:, -2:], nearest(Z, Z, N_NEAR + 1, without=rows)[0][:, -2:]
        logs = log(distances[:, N_NEAR - 1])
        usual = np.full(n_clusters + 1, np.median(logs))  # the last place, -1, is for noise
        for cluster in np.unique(seen.labels[seen.labels >= 0]):
            usual[cluster] = np.median(logs[seen.labels == cluster])
        return cls(axes, shape, points, rest, Z, spread, spread_Z, usual)

    def terms(self, seen: Seen, without: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """What is weighed, (n,) each. ``without`` (n,) are the places of the rows among those kept, if they are."""
        points, rest = self.axes(seen.scaled)
        Z = single(np.clip(seen.Z, -FARTHEST, FARTHEST))
        shaped = single(points @ self.shape)
        near, beside = nearest(shaped, single(self.points @ self.shape), N_DENSE, without)
        near_Z, beside_Z = nearest(Z, self.Z, N_NEAR, without)
        back = beside_Z[:, :N_BACK]
        mean = self.points[back].mean(axis=1, dtype=np.float64)
        # The rests of the rows beside it have nothing to do with each other: their mean is short.
        rests = rest.astype(np.float64) ** 2 + np.square(self.rest[back]).mean(axis=1) / N_BACK
        error = np.square(points - mean).sum(axis=1) + rests
        return {
            "reconstruction": log(np.sqrt(error)),
            "cluster": log(near[:, N_NEAR - 1]) - self.usual[seen.labels],
            "density": log(near[:, -1]) - self._around(self.spread, near, beside, without),
            "representation": log(near_Z[:, -1])
            - self._around(self.spread_Z, near_Z, beside_Z, without),
        }

    def _around(
        self, spread: np.ndarray, near: np.ndarray, beside: np.ndarray, without: np.ndarray | None
    ) -> np.ndarray:
        """The mean log of how far neighbors are from their own neighbors: (n,)."""
        usual = spread[beside, 0]
        if without is not None:  # a row that is itself among the neighbors of its neighbor
            usual = np.where(near <= usual, spread[beside, 1], usual)
        return log(usual).mean(axis=1)


def log(distance: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(distance, NOTHING))
