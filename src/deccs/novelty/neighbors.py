"""The nearest of some kept rows, by products of matrices, with distances to the last digit."""

from __future__ import annotations

import numpy as np

N_SPARE = 8  # candidates more than asked for: products of matrices round
AT_ONCE = 512  # rows whose distances are held at once


def nearest(
    points: np.ndarray, kept: np.ndarray, n_neighbors: int, without: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Distances to the nearest kept rows and their places, nearest first: (n, n_neighbors) each.

    ``without`` (n,) is the place of a row that each point must not find: itself. A point gets the
    same distances alone as among thousands, since they are computed by differences.

    >>> kept = np.array([[0.0], [1], [3]])
    >>> nearest(np.array([[0.0]]), kept, 2)
    (array([[0., 1.]]), array([[0, 1]]))
    >>> nearest(kept, kept, 1, without=np.arange(3))[1].ravel()
    array([1, 0, 1])
    """
    n_candidates = min(n_neighbors + N_SPARE, len(kept) - (without is not None))
    n_neighbors = min(n_neighbors, n_candidates)
    points, kept = points.astype(np.float64), kept.astype(np.float64)
    center = kept.mean(axis=0)  # near 0 squares lose least
    lengths = np.square(kept - center).sum(axis=1)  # (n_kept,)
    distances = np.empty((len(points), n_neighbors))
    places = np.empty((len(points), n_neighbors), dtype=np.int64)
    for start in range(0, len(points), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        block = points[rows]
        squares = lengths - 2 * (block - center) @ (kept - center).T  # less the length of the point
        if without is not None:
            squares[np.arange(len(block)), without[rows]] = np.inf
        near = np.arange(len(kept))[None].repeat(len(block), axis=0)
        if n_candidates < len(kept):
            near = np.argpartition(squares, n_candidates - 1, axis=1)[:, :n_candidates]
        exact = np.sqrt(np.square(block[:, None, :] - kept[near]).sum(axis=2))
        order = np.lexsort((near, exact), axis=1)[:, :n_neighbors]
        distances[rows] = np.take_along_axis(exact, order, axis=1)
        places[rows] = np.take_along_axis(near, order, axis=1)
    return distances, places
