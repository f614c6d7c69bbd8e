"""Fuzzy c-means (Bezdek 1981): every point belongs to every cluster to a degree."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus

from deccs.checks import AUTO, Rule, check_enough_points, check_value, is_number, number, whole
from deccs.data.source import each_block, source_of
from deccs.rules import default_fuzzifier
from deccs.seeds import root_seed, seed_for

COUNT, TOL = whole(at_least=1), number(at_least=0)
FUZZIFIER = AUTO | Rule(
    "a number above 1", lambda value: is_number(value) and bool(1 < value < inf)
)


@dataclass(frozen=True, eq=False)
class FuzzyPartition:
    """The result of fuzzy c-means."""

    memberships: np.ndarray  # (n_points, n_clusters), rows sum to 1; those of the centers below
    centers: np.ndarray  # (n_clusters, n_features)
    n_iter: int  # moves of the centers
    objective: float  # sum over points and clusters of u^m d^2
    fuzzifier: float  # the m that was used


def fuzzy_c_means(
    X: Any,
    n_clusters: int,
    *,
    fuzzifier: float | str = "auto",
    n_iter: int = 100,
    tol: float = 1e-3,
    n_init: int = 1,
    start: np.ndarray | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> FuzzyPartition:
    """Update centers and memberships in turn until no membership changes by more than ``tol``.

    Rows are read in blocks and never copied as a whole. ``start`` holds the first centers. Without
    it they come from k-means++, ``n_init`` times, and the run with the lowest objective is kept.

    >>> result = fuzzy_c_means(np.array([[0.0], [1], [9], [10]]), 2, random_state=0)
    >>> sorted(result.centers[:, 0].round(1).tolist()), result.memberships.shape
    ([0.5, 9.5], (4, 2))
    """
    if X.ndim != 2:
        raise ValueError(f"X must be of shape (n_points, n_features), got shape {X.shape}.")
    n_points, n_features = X.shape
    check_value("n_clusters", n_clusters, COUNT)
    check_value("fuzzifier", fuzzifier, FUZZIFIER)
    check_value("n_iter", n_iter, COUNT)
    check_value("tol", tol, TOL)
    check_value("n_init", n_init, COUNT)
    check_enough_points(n_clusters, n_points)
    m = default_fuzzifier(n_points, n_features) if isinstance(fuzzifier, str) else float(fuzzifier)
    if start is not None:
        if np.shape(start) != (n_clusters, n_features):
            raise ValueError(
                f"start must be of shape {(n_clusters, n_features)}, got {np.shape(start)}."
            )
        return descend(X, np.asarray(start, dtype=np.float64), m, n_iter, tol)
    root = root_seed(random_state)
    runs = (
        descend(X, distant_points(X, n_clusters, seed_for(root, "start", i)), m, n_iter, tol)
        for i in range(n_init)
    )
    return min(runs, key=lambda run: run.objective)


def distant_points(X: Any, n_clusters: int, seed: int) -> np.ndarray:
    """(n_clusters, n_features) points far from each other: k-means++."""
    return kmeans_plusplus(X, n_clusters, random_state=seed)[0].astype(np.float64)


def descend(X: Any, centers: np.ndarray, m: float, n_iter: int, tol: float) -> FuzzyPartition:
    """Both updates in turn. The memberships and objective returned are those of the centers."""
    U, moved, objective = one_pass(X, centers, m)
    n_moves, change = 0, np.inf
    while n_moves < n_iter and change > tol:
        centers, before = moved, U
        U, moved, objective = one_pass(X, centers, m)
        n_moves, change = n_moves + 1, float(np.abs(U - before).max())
    return FuzzyPartition(U, centers, n_moves, objective, m)


def one_pass(X: Any, centers: np.ndarray, m: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Memberships for these centers, the centers for those memberships, and the objective."""
    U = np.empty((X.shape[0], len(centers)))  # (n_points, n_clusters)
    weighted, weight = np.zeros(centers.shape), np.zeros(len(centers))
    objective = 0.0
    for place, block in each_block(source_of(X), len(centers)):  # (n_block, n_features)
        D = distances_by_product(block, centers)  # (n_block, n_clusters)
        U[place] = memberships_at(D, m)
        W = U[place] ** m  # (n_block, n_clusters)
        weighted += W.T @ block
        weight += W.sum(axis=0)
        objective += float((W * D).sum())
    # A center stays where it is if no point belongs to it, up to rounding.
    empty = weight == 0
    moved = np.where(empty[:, None], centers, weighted / np.where(empty, 1, weight)[:, None])
    return U, moved, objective


def memberships(X: Any, centers: np.ndarray, fuzzifier: float) -> np.ndarray:
    """(n_points, n_clusters): the degree to which each point belongs to each center.

    Distances of 1 and 2 have squares of 1 and 4, and m = 2 divides in proportion to their inverses:

    >>> memberships(np.array([[1.0], [0.0]]), np.array([[0.0], [3.0]]), fuzzifier=2).round(3)
    array([[0.8, 0.2],
           [1. , 0. ]])
    """
    U = np.empty((X.shape[0], len(centers)))
    for place, block in each_block(source_of(X), len(centers)):
        U[place] = memberships_at(distances_by_product(block, centers), fuzzifier)
    return U


def distances_by_product(block: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(n_block, n_clusters) squared distances; exactly 0 where they are within rounding of it.

    A product of matrices is many times faster than differences, which the many passes over the
    data need.
    """
    origin = centers.mean(axis=0)  # near the data: few digits cancel
    x, c = block - origin, centers - origin
    sizes = (x * x).sum(axis=1)[:, None] + (c * c).sum(axis=1)  # (n_block, n_clusters)
    squares = sizes - 2 * x @ c.T
    return np.where(squares > 16 * np.finfo(float).eps * sizes, squares, 0.0)


def memberships_at(D: np.ndarray, m: float) -> np.ndarray:
    """u_ij = d_ij^(-2/(m-1)) / sum_l d_il^(-2/(m-1)), from squared distances (n_points, n_clusters).

    Computed in logarithms, because the power overflows for m near 1. A distance of 0 is replaced by
    the smallest positive number: a point on a center belongs to that center alone, and a point on
    two equal centers belongs half to each.

    >>> memberships_at(np.array([[1.0, 16.0], [0.0, 0.0]]), m=3)
    array([[0.8, 0.2],
           [0.5, 0.5]])
    """
    log_share = np.log(np.maximum(D, np.finfo(float).tiny)) / (1 - m)
    share = np.exp(log_share - log_share.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)
