"""Evidence accumulation: how often two points are put together, and linkage on that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack

from deccs.checks import check_value, one_of
from deccs.consensus.functions import consensus_function, on_distinct_rows
from deccs.consensus.partitions import DistinctRows, distinct_rows
from deccs.consensus.tree import Dense, Factored, Similarities, merge_tree
from deccs.data.source import blocks
from deccs.labels import NOISE

DENSE_BYTES = 1_000_000_000  # most memory for the matrix of all pairs of rows
LINKAGE = one_of("average", "single")


@consensus_function
@on_distinct_rows
def eac(rows: DistinctRows, n_clusters: int, *, linkage: str = "average") -> np.ndarray:
    """Evidence accumulation clustering (Fred and Jain 2005): linkage on the co-association matrix.

    Exact: average (or ``linkage="single"``) linkage on distinct rows, weighted by their number of
    points, makes the same merges at the same heights as linkage on all N points. Ties are broken by
    the order of the rows, and average linkage may continue differently after a tie. Points with the
    same labels stay together, so there may be fewer clusters than asked for.

    >>> eac([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [2, 2, 2, 0, 0]], n_clusters=2)
    array([0, 0, 0, 1, 1])
    """
    tree = merge_tree(similarities(rows, np.ones(rows.membership.shape[1]), linkage))
    return rows.spread(tree.cut(n_clusters))


def similarities(
    rows: DistinctRows, cluster_weights: np.ndarray, linkage: str = "average"
) -> Similarities:
    """The weighted co-association of rows, ready for merging.

    ``cluster_weights`` (n_all_clusters,) says how much sharing each cluster counts: 1 for EAC. This
    is the matrix of all pairs of rows if it fits into memory, else its factors: an average of
    co-associations is a product of average memberships. The factors need no pairs but are slower,
    a few minutes for 20,000 distinct rows.
    """
    check_value("linkage", linkage, LINKAGE)
    needed = 8 * len(rows) ** 2
    if needed <= DENSE_BYTES:
        return Dense(co_association_rows(rows, cluster_weights), rows.counts, linkage)
    if linkage == "average" and not rows.is_partial:
        return Factored(weighted_membership(rows, cluster_weights).toarray(), rows.counts)
    raise MemoryError(
        f"{len(rows)} distinct label vectors need {needed / 1e9:.1f} GB for {linkage} linkage"
        f"{' with partial labels' if rows.is_partial else ''}. Use fewer members, a sample of the "
        "points, or one of hbgf, nmf, mcla and lwgp, which need no pairs."
    )


def weighted_membership(rows: DistinctRows, cluster_weights: np.ndarray) -> csr_array:
    """(n_rows, n_all_clusters) F, where F F^T is the weighted count of shared clusters."""
    scale = np.sqrt(cluster_weights * rows.weights[rows.member_of])
    return csr_array(rows.membership * scale[None, :])


def co_association_rows(
    rows: DistinctRows,
    cluster_weights: np.ndarray | None = None,
    block: slice = slice(None),
    dtype: type[np.floating] = np.float64,
) -> np.ndarray:
    """(n_block, n_rows): of the members that labeled both rows, the share that puts them together."""
    if cluster_weights is None:
        cluster_weights = np.ones(rows.membership.shape[1])
    F = weighted_membership(rows, cluster_weights).toarray().astype(dtype)
    together = F[block] @ F.T
    if rows.is_partial:
        labeled = (rows.labels != NOISE) * np.sqrt(rows.weights)  # (n_rows, n_members)
        labeled = labeled.astype(dtype)
        both = labeled[block] @ labeled.T
        # Two rows that no member has both labeled keep 0.
        np.divide(together, both, out=together, where=both > 1e-12)
    return together


@dataclass(frozen=True, eq=False)
class CoAssociation:
    """The co-association matrix of N points in factored form: distinct rows, and the row of each point."""

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
        """(N, N) without its zeros, if it fits ``max_bytes``: an entry for each pair that shares a cluster."""
        counts = self.rows.counts
        of_rows = vstack(
            [
                csr_array(co_association_rows(self.rows, block=block))
                for block in blocks(len(counts), 1_000)
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
                f"The co-association of {self.shape[0]} points needs {needed / 1e9:.1f} GB, more "
                f"than max_bytes={max_bytes / 1e9:.1f} GB. Ask of(points) for a part of it, or "
                "raise max_bytes."
            )


def co_association(
    base_partitions: ArrayLike, *, weights: ArrayLike | None = None
) -> CoAssociation:
    """For every two points: of the members that labeled both, the share that puts them together.

    The N x N matrix is kept as factors: ``.of(points)`` gives a part of it, ``.tosparse()`` and
    ``.toarray()`` all of it, if it fits.

    >>> co_association([[0, 0, 1], [0, 1, 1], [0, -1, 1]]).toarray()
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    return CoAssociation(distinct_rows(base_partitions, weights))
