"""Consensus by non-negative matrix factorization (Li, Ding and Jordan 2007)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans

from deccs.consensus.evidence import weighted_membership
from deccs.consensus.partitions import (
    DistinctRows,
    each_row_alone,
    found_clusters,
    rows_and_clusters,
)
from deccs.seeds import root_seed, seed_for

TINY = 1e-12


def nmf(
    base_partitions: ArrayLike,
    n_clusters: int | None = None,
    *,
    n_iter: int = 200,
    weights: ArrayLike | None = None,
    random_state: int | None = None,
) -> np.ndarray:
    """Orthogonal tri-factorization S = Q D Q^T of the co-association matrix; a point goes to its largest Q.

    The updates are those of all N points: a row with c points stands for c equal rows of Q, which every
    update keeps equal, so sums over points are sums over rows times c. Where they lead depends on the
    start (k-means on the labels, as the authors of the factorization advise) and is a heuristic. With
    partial labels S is the cosine of the label vectors, which is the co-association where none is missing.

    >>> nmf([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [2, 2, 2, 0, 0]], n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1])
    """
    rows, k = rows_and_clusters(base_partitions, n_clusters, weights)
    if k >= len(rows):
        return each_row_alone(rows, k)
    F = factors(rows)
    kmeans = KMeans(k, n_init=3, random_state=seed_for(root_seed(random_state), "nmf"))
    start = np.eye(k)[kmeans.fit_predict(F, sample_weight=rows.counts)] + 0.2
    Q, _ = factorize(F, rows.counts, start, n_iter)
    return found_clusters(rows.spread(Q.argmax(axis=1)), k, "a factor is the largest of no point.")


def factors(rows: DistinctRows) -> np.ndarray:
    """(n_rows, n_all_clusters) F with S = F F^T and ones on the diagonal of S."""
    F = weighted_membership(rows, np.ones(len(rows.member_of))).toarray()
    return F / np.linalg.norm(F, axis=1, keepdims=True)


def factorize(
    F: np.ndarray, counts: np.ndarray, Q: np.ndarray, n_iter: int
) -> tuple[np.ndarray, np.ndarray]:
    """The multiplicative updates for S = F F^T, weighted: Q is (n_rows, k), D is (k, k).

    Of N points: Q <- Q sqrt(S Q D / (Q Q^T S Q D)), D <- D sqrt(Q^T S Q / (Q^T Q D Q^T Q)). With a row
    per c points every sum over points gets its c: S Q is F (F^T C Q), Q^T Q is Q^T C Q.
    """
    weight = counts[:, None].astype(float)
    Q = Q / np.sqrt((weight * Q**2).sum(axis=0))  # columns of length 1 over the points
    D = np.diag(np.diag((F.T @ (weight * Q)).T @ (F.T @ (weight * Q)))) + TINY
    for _ in range(n_iter):
        projected = F.T @ (weight * Q)  # (n_all, k) F^T Q over the points
        SQD = F @ (projected @ D)  # (n_rows, k)
        Q = Q * np.sqrt(SQD / (Q @ ((weight * Q).T @ SQD) + TINY))
        projected, gram = F.T @ (weight * Q), Q.T @ (weight * Q)
        D = D * np.sqrt(projected.T @ projected / (gram @ D @ gram + TINY))
    return Q, D


def residual(F: np.ndarray, counts: np.ndarray, Q: np.ndarray, D: np.ndarray) -> float:
    """||S - Q D Q^T||^2 over all pairs of points, from small products alone."""
    weight = counts[:, None].astype(float)
    inner = F.T @ (weight * F)  # (n_all, n_all)
    cross, gram = F.T @ (weight * Q), Q.T @ (weight * Q)
    return float(
        (inner**2).sum() - 2 * np.trace(cross.T @ cross @ D.T) + np.trace(gram @ D @ gram @ D.T)
    )
