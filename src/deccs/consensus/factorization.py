"""Consensus by non-negative matrix factorization (Li, Ding and Jordan 2007)."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from deccs.checks import check_value, whole
from deccs.consensus.evidence import weighted_membership
from deccs.consensus.functions import consensus_function, on_distinct_rows
from deccs.consensus.partitions import DistinctRows, one_cluster_per_row, warn_if_fewer
from deccs.seeds import reproducible_threads

TINY = 1e-12  # keeps divisors above 0
N_ITER = whole(at_least=0)


@consensus_function
@on_distinct_rows
def nmf(rows: DistinctRows, n_clusters: int, seed: int, *, n_iter: int = 200) -> np.ndarray:
    """Orthogonal factorization S = Q D Q^T of the co-association; a point goes to its largest Q.

    The updates are the same as with all N points: a row with c points stands for c equal rows of Q,
    which every update keeps equal, so a sum over points is a sum over rows times c. The result
    depends on the start (k-means on the labels, as the authors of the factorization advise) and is
    a heuristic. With partial labels S is the cosine of the label vectors; without gaps that is the
    co-association.

    >>> nmf([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [2, 2, 2, 0, 0]], n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1])
    """
    check_value("n_iter", n_iter, N_ITER)
    if n_clusters == len(rows):
        return one_cluster_per_row(rows, n_clusters)
    F = factors(rows)
    kmeans = KMeans(n_clusters, n_init=3, random_state=seed)
    with reproducible_threads():
        start = np.eye(n_clusters)[kmeans.fit_predict(F, sample_weight=rows.counts)] + 0.2
    Q, _ = factorize(F, rows.counts, start, n_iter)
    labels = rows.spread(Q.argmax(axis=1))
    return warn_if_fewer(labels, n_clusters, "a factor is the largest one of no point.")


def factors(rows: DistinctRows) -> np.ndarray:
    """(n_rows, n_all_clusters) F with S = F F^T and ones on the diagonal of S."""
    F = weighted_membership(rows, np.ones(len(rows.member_of))).toarray()
    return F / np.linalg.norm(F, axis=1, keepdims=True)


def factorize(
    F: np.ndarray, counts: np.ndarray, Q: np.ndarray, n_iter: int
) -> tuple[np.ndarray, np.ndarray]:
    """The multiplicative updates for S = F F^T, weighted: Q is (n_rows, k), D is (k, k).

    For N points: Q <- Q sqrt(S Q D / (Q Q^T S Q D)), D <- D sqrt(Q^T S Q / (Q^T Q D Q^T Q)). With one
    row for c points, every sum over points is weighted by c: S Q is F (F^T C Q), Q^T Q is Q^T C Q.
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
