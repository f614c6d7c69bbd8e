"""Evidence accumulation: how often two points are put together, and linkage on that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack

from deccs.consensus.partitions import (
    TOO_FEW_ROWS,
    DistinctRows,
    distinct_rows,
    found_clusters,
    rows_and_clusters,
)
from deccs.consensus.tree import Dense, Factored, Similarities, merge_tree
from deccs.data.source import blocks
from deccs.labels import NOISE

DENSE_BYTES = 1_000_000_000  # the matrix of all pairs of rows may be as large as that


def eac(
    base_partitions: ArrayLike,
    n_clusters: int | None = None,
    *,
    linkage: str = "average",
    weights: ArrayLike | None = None,
    random_state: object = None,
) -> np.ndarray:
    """Evidence accumulation clustering (Fred and Jain 2005): linkage on the co-association matrix.

    Exact: average (or ``linkage="single"``) linkage on distinct rows with their multiplicities makes the
    merges that linkage on all N points makes, with the same heights. Among equal pairs the order of rows
    decides, as that of points does there, and average linkage may go on differently after it.
    Points with the same labels stay together, so there may be fewer clusters than asked for.

    >>> eac([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [2, 2, 2, 0, 0]], n_clusters=2)
    array([0, 0, 0, 1, 1])
    """
    rows, k = rows_and_clusters(base_partitions, n_clusters, weights)
    tree = merge_tree(similarities(rows, np.ones(rows.membership.shape[1]), linkage))
    return found_clusters(rows.spread(tree.cut(k)), k, TOO_FEW_ROWS)


def similarities(
    rows: DistinctRows, cluster_weights: np.ndarray, linkage: str = "average"
) -> Similarities:
    """The weighted co-association of rows, ready for merging.

    ``cluster_weights`` is (n_all_clusters,): what being together in each cluster counts, 1 for EAC.
    The matrix of all pairs of rows while it fits, else its factors: averages of co-associations are
    products of average memberships. That is slower (some minutes at 20,000 distinct rows) but needs no pairs.
    """
    if linkage not in ("average", "single"):
        raise ValueError(f"linkage must be 'average' or 'single', got {linkage!r}.")
    needed = 8 * len(rows) ** 2
    if needed <= DENSE_BYTES:
        return Dense(co_association_rows(rows, cluster_weights), rows.counts, linkage)
    if linkage == "average" and not rows.is_partial:
        return Factored(weighted_membership(rows, cluster_weights).toarray(), rows.counts)
    raise MemoryError(
        f"{len(rows)} distinct label vectors need {needed / 1e9:.1f} GB for {linkage} linkage"
        f"{' with partial labels' if rows.is_partial else ''}. Use hbgf, nmf, mcla or lwgp, which never look at pairs, "
        "fewer members or a sample of the points."
    )


def weighted_membership(rows: DistinctRows, cluster_weights: np.ndarray) -> csr_array:
    """(n_rows, n_all_clusters) F, whose products F F^T are the weighted counts of being together."""
    scale = np.sqrt(cluster_weights * rows.weights[rows.member_of])
    return csr_array(rows.membership * scale[None, :])


def co_association_rows(
    rows: DistinctRows,
    cluster_weights: np.ndarray | None = None,
    some: slice = slice(None),
    dtype: type[np.floating] = np.float64,
) -> np.ndarray:
    """(n_some, n_rows): the share of the members who put two rows together, of those who labeled both."""
    if cluster_weights is None:
        cluster_weights = np.ones(rows.membership.shape[1])
    F = weighted_membership(rows, cluster_weights).toarray().astype(dtype)
    together = F[some] @ F.T
    if rows.is_partial:
        labeled = ((rows.labels != NOISE) * np.sqrt(rows.weights)).astype(
            dtype
        )  # (n_rows, n_members)
        both = labeled[some] @ labeled.T
        # Two that no member has labeled both: nothing speaks for them.
        np.divide(together, both, out=together, where=both > 1e-12)
    return together


@dataclass(frozen=True, eq=False)
class CoAssociation:
    """The co-association matrix of N points in factored form: rows that differ, and which point has which."""

    rows: DistinctRows

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows.row_of), len(self.rows.row_of)

    def of(self, points: ArrayLike) -> np.ndarray:
        """(n, n) co-association of the given points with one another."""
        row = self.rows.row_of[np.asarray(points)]
        needed, place = np.unique(row[row != NOISE], return_inverse=True)
        part = DistinctRows(
            self.rows.labels[needed], self.rows.counts[needed], row, self.rows.weights
        )
        result = np.zeros((len(row), len(row)))
        labeled = np.flatnonzero(row != NOISE)
        result[np.ix_(labeled, labeled)] = co_association_rows(part)[np.ix_(place, place)]
        return result

    def toarray(self, max_bytes: int = DENSE_BYTES) -> np.ndarray:
        """(N, N), if it fits ``max_bytes``."""
        self._check(8 * self.shape[0] ** 2, max_bytes)
        return self.of(np.arange(self.shape[0]))

    def tosparse(self, max_bytes: int = DENSE_BYTES) -> csr_array:
        """(N, N) without its zeros, if it fits ``max_bytes``: as large as there are pairs ever put together."""
        counts = self.rows.counts
        of_rows = vstack(
            [
                csr_array(co_association_rows(self.rows, some=some))
                for some in blocks(len(counts), 1_000)
            ]
        )
        self._check(12 * int(counts @ ((of_rows > 0) @ counts)), max_bytes)
        ones = np.ones(len(self.rows.row_of))
        labeled = np.flatnonzero(self.rows.row_of != NOISE)
        has = csr_array(
            (ones[labeled], (labeled, self.rows.row_of[labeled])),
            shape=(len(ones), len(self.rows)),
        )
        return csr_array(has @ of_rows @ has.T)

    def _check(self, needed: int, max_bytes: int) -> None:
        if needed > max_bytes:
            raise MemoryError(
                f"The co-association of {self.shape[0]} points needs {needed / 1e9:.1f} GB, more than max_bytes="
                f"{max_bytes / 1e9:.1f} GB. Keep it factored, ask of(points) for a part, or raise max_bytes."
            )


def co_association(
    base_partitions: ArrayLike, *, weights: ArrayLike | None = None
) -> CoAssociation:
    """For every two points the share of the members who put them together, of those who labeled both.

    Factored, since it has N x N entries: ``.of(points)`` gives a part, ``.tosparse()`` and ``.toarray()``
    the whole if it fits.

    >>> co_association([[0, 0, 1], [0, 1, 1], [0, -1, 1]]).toarray()
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    return CoAssociation(distinct_rows(base_partitions, weights))
