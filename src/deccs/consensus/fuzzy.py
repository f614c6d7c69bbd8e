"""Fuzzy c-means (Bezdek 1981): every point belongs to every cluster to a degree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus

from deccs.data.source import blocks, dense_block, rows_at_once
from deccs.rules import default_fuzzifier
from deccs.seeds import root_seed, seed_for


@dataclass(frozen=True, eq=False)
class FuzzyPartition:
    memberships: np.ndarray  # (n_points, n_clusters), rows sum to 1; those of the centers below
    centers: np.ndarray  # (n_clusters, n_features)
    n_iter: int  # moves of the centers
    objective: float  # sum over points and clusters of u^m d^2
    fuzzifier: float  # m, as it was used


def fuzzy_c_means(
    X: Any,
    n_clusters: int,
    *,
    fuzzifier: float | str = "auto",
    n_iter: int = 100,
    tolerance: float = 1e-3,
    n_init: int = 1,
    start: np.ndarray | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> FuzzyPartition:
    """Move centers and memberships in turn until no membership changes by more than ``tolerance``.

    Rows are read in blocks and never copied as a whole. ``start`` are the first centers; without it
    they come from k-means++, ``n_init`` times, and the lowest objective counts.

    >>> result = fuzzy_c_means(np.array([[0.0], [1], [9], [10]]), 2, random_state=0)
    >>> sorted(result.centers[:, 0].round(1).tolist()), result.memberships.shape
    ([0.5, 9.5], (4, 2))
    """
    if X.ndim != 2:
        raise ValueError(f"X must be of shape (n_points, n_features), got shape {X.shape}.")
    n_points, n_features = X.shape
    check_clusters(n_clusters, n_points)
    if n_iter < 1 or n_init < 1 or tolerance < 0:
        raise ValueError(
            "n_iter and n_init must be at least 1 and tolerance at least 0, "
            f"got n_iter={n_iter!r}, n_init={n_init!r}, tolerance={tolerance!r}."
        )
    m = check_fuzzifier(fuzzifier, n_points, n_features)
    if start is not None:
        if np.shape(start) != (n_clusters, n_features):
            raise ValueError(
                f"start must be of shape {(n_clusters, n_features)}, got {np.shape(start)}."
            )
        return descend(X, np.asarray(start, dtype=np.float64), m, n_iter, tolerance)
    root = root_seed(random_state)
    runs = (
        descend(X, first_centers(X, n_clusters, seed_for(root, "start", i)), m, n_iter, tolerance)
        for i in range(n_init)
    )
    return min(runs, key=lambda run: run.objective)


def check_clusters(n_clusters: Any, n_points: int) -> int:
    if (
        isinstance(n_clusters, bool)
        or not isinstance(n_clusters, int | np.integer)
        or n_clusters < 1
    ):
        raise ValueError(f"n_clusters must be a whole number of at least 1, got {n_clusters!r}.")
    if n_clusters > n_points:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the number of points, n_samples={n_points}. Ask for fewer."
        )
    return int(n_clusters)


def check_fuzzifier(fuzzifier: Any, n_points: int, n_features: int) -> float:
    if isinstance(fuzzifier, str) and fuzzifier == "auto":
        return default_fuzzifier(n_points, n_features)
    number = isinstance(fuzzifier, int | float | np.number) and not isinstance(fuzzifier, bool)
    if not number or not 1 < float(fuzzifier) < np.inf:
        raise ValueError(
            f"fuzzifier must be a number above 1, or 'auto', got {fuzzifier!r}. Near 1 memberships are all or nothing."
        )
    return float(fuzzifier)


def first_centers(X: Any, n_clusters: int, seed: int) -> np.ndarray:
    """(n_clusters, n_features) points far from one another: k-means++."""
    return kmeans_plusplus(X, n_clusters, random_state=seed)[0].astype(np.float64)


def descend(X: Any, centers: np.ndarray, m: float, n_iter: int, tolerance: float) -> FuzzyPartition:
    """Both updates in turn. Memberships, centers and objective of the answer belong together."""
    U, moved, objective = one_pass(X, centers, m)
    moves, change = 0, np.inf
    while moves < n_iter and change > tolerance:
        centers, before = moved, U
        U, moved, objective = one_pass(X, centers, m)
        moves, change = moves + 1, float(np.abs(U - before).max())
    return FuzzyPartition(U, centers, moves, objective, m)


def one_pass(X: Any, centers: np.ndarray, m: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Memberships for these centers, the centers for those memberships, and the objective."""
    U = np.empty((X.shape[0], len(centers)))  # (n_points, n_clusters)
    weighted, weight = np.zeros(centers.shape), np.zeros(len(centers))
    objective = 0.0
    for index in blocks(*row_blocks(X, centers)):
        block = dense_block(X, index)  # (n_block, n_features)
        D = squared_distances(block, centers)  # (n_block, n_clusters)
        U[index] = memberships_at(D, m)
        W = U[index] ** m  # (n_block, n_clusters)
        weighted += W.T @ block
        weight += W.sum(axis=0)
        objective += float((W * D).sum())
    # A center that no point belongs to, to the last digit, stays where it is.
    empty = weight == 0
    moved = np.where(empty[:, None], centers, weighted / np.where(empty, 1, weight)[:, None])
    return U, moved, objective


def memberships(X: Any, centers: np.ndarray, fuzzifier: float) -> np.ndarray:
    """(n_points, n_clusters): the degree to which each point, new or old, belongs to each center.

    Distances of 1 and 2 give squares of 1 and 4, and m = 2 shares out their inverses:

    >>> memberships(np.array([[1.0], [0.0]]), np.array([[0.0], [3.0]]), fuzzifier=2).round(3)
    array([[0.8, 0.2],
           [1. , 0. ]])
    """
    U = np.empty((X.shape[0], len(centers)))
    for index in blocks(*row_blocks(X, centers)):
        U[index] = memberships_at(squared_distances(dense_block(X, index), centers), fuzzifier)
    return U


def row_blocks(X: Any, centers: np.ndarray) -> tuple[int, int]:
    return X.shape[0], rows_at_once(max(X.shape[1], len(centers)))


def squared_distances(block: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(n_block, n_clusters), exactly 0 where the difference is a matter of rounding."""
    origin = centers.mean(axis=0)  # near the data: few digits cancel
    x, c = block - origin, centers - origin
    sizes = (x * x).sum(axis=1)[:, None] + (c * c).sum(axis=1)  # (n_block, n_clusters)
    squares = sizes - 2 * x @ c.T
    return np.where(squares > 16 * np.finfo(float).eps * sizes, squares, 0.0)


def memberships_at(D: np.ndarray, m: float) -> np.ndarray:
    """u_ij = d_ij^(-2/(m-1)) / sum_l d_il^(-2/(m-1)), from squared distances (n_points, n_clusters).

    In logarithms, because the power overflows for m near 1. The smallest number there is stands for a
    distance of 0: a point on a center belongs to it alone, on two equal centers half to each.

    >>> memberships_at(np.array([[1.0, 16.0], [0.0, 0.0]]), m=3)
    array([[0.8, 0.2],
           [0.5, 0.5]])
    """
    log_share = np.log(np.maximum(D, np.finfo(float).tiny)) / (1 - m)
    share = np.exp(log_share - log_share.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)
