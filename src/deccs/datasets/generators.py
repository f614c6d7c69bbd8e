"""Two-dimensional toy data for the paper's SYNTH, Fig. 4 and Fig. 9.

Every generator draws points along a curve, adds Gaussian noise and shuffles the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

Arrays = tuple[NDArray[Any], NDArray[np.int64]]  # X (n, d) and y (n,)
RandomState = int | np.random.RandomState | None


def make_synth(n_per_cluster: int = 500, random_state: RandomState = 0) -> Arrays:
    """Two moons and two blobs, after the paper's SYNTH; 4 x 500 points in two dimensions.

    Positions and noise were estimated from the authors' file: half circles of radius 1 around (0, 0)
    and (1, 0.5) with radial noise 0.04, and blobs at (2, 0.75) and (2, 1) with 0.02 and 0.045.
    """
    moon = _arc(n_per_cluster, 0, np.pi)
    origin = np.zeros((n_per_cluster, 2))
    clusters = [moon, (1, 0.5) - moon, origin + np.array([2, 0.75]), origin + np.array([2, 1])]
    return _scatter(clusters, noise=[0.04, 0.04, 0.02, 0.045], random_state=random_state)


def make_rings(
    n_per_cluster: int = 500, inner: float = 0.5, noise: float = 0.04, random_state: RandomState = 0
) -> Arrays:
    """Two concentric rings (Fig. 4), so that both clusters have the same center."""
    ring = _arc(n_per_cluster, 0, 2 * np.pi, endpoint=False)
    return _scatter([ring, inner * ring], noise=[noise, noise], random_state=random_state)


def make_nonlinear(
    n_per_cluster: int = 500, inner: float = 0.6, noise: float = 0.04, random_state: RandomState = 0
) -> Arrays:
    """Two nested half rings that no line separates (Fig. 9).

    Both are symmetric about the same axis. k-means and a Gaussian mixture cut along that axis, so they do no better
    than chance; spectral clustering on neighbors and single linkage follow the gap between the half rings. With a
    smaller inner ring, k-means and the mixture no longer cut along the axis in every embedding; with a larger one
    the gap is too narrow.
    """
    arc = _arc(n_per_cluster, 0, np.pi)
    return _scatter([arc, inner * arc], noise=[noise, noise], random_state=random_state)


def _arc(n: int, start: float, stop: float, *, endpoint: bool = True) -> NDArray[np.float64]:
    angle = np.linspace(start, stop, n, endpoint=endpoint)
    return np.column_stack([np.cos(angle), np.sin(angle)])  # (n, 2), on the unit circle


def _scatter(
    clusters: list[NDArray[np.float64]], noise: list[float], random_state: RandomState
) -> Arrays:
    rng = check_random_state(random_state)
    pairs = zip(clusters, noise, strict=True)
    X = np.vstack([points + rng.normal(0, std, points.shape) for points, std in pairs])
    y = np.repeat(np.arange(len(clusters), dtype=np.int64), [len(points) for points in clusters])
    order = rng.permutation(len(X))
    return X[order], y[order]
