"""The nearest of many points, as a graph."""

from __future__ import annotations

import numpy as np

from deccs.export.graph import Tensor
from deccs.inference.nearest import NearestInSample

SPARE = 7  # candidates that are compared exactly, beside as many as are asked for


def nearest(Z: Tensor, sample: np.ndarray, count: int) -> tuple[Tensor, Tensor]:
    """Squared distances and places of the nearest rows of a sample, nearest first: twice (n, count).

    As in :func:`deccs.inference.nearest.nearest_places` a product of matrices finds candidates, and these are
    compared by differences of coordinates. Of equally near ones the first comes first.
    """
    lengths = np.square(sample).sum(axis=1)  # (n_sample,)
    about = Z @ (-2 * sample.T) + lengths  # (n, n_sample), less the length of z
    n_candidates = min(count + SPARE, len(sample))
    _, found = about.smallest(n_candidates)
    candidates, _ = found.smallest(n_candidates)  # in the order of the sample
    points = Z.graph.constant(sample, Z.dtype).take(candidates)  # (n, n_candidates, d)
    exact = squares(Z, points)  # (n, n_candidates)
    distances, order = exact.smallest(min(count, n_candidates))
    return distances, candidates.op("GatherElements", order, axis=1)


def squares(Z: Tensor, points: Tensor | np.ndarray) -> Tensor:
    """Squared distances by differences: (n, d), (k, d) or (n, k, d) -> (n, k)."""
    return (Z.unsqueeze(1) - points).square().sum(2)


def place_of_nearest(Z: Tensor, known: NearestInSample) -> Tensor:
    """(n,) what :meth:`NearestInSample.places` says of points."""
    kept = np.unique(known.places(known.Z))  # of equal rows the one that is found
    _, places = nearest(Z, known.Z[kept], 1)
    return Z.graph.constant(kept).take(places.squeeze(1))
