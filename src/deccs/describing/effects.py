"""How much a cluster differs from all rows, in one unit for all kinds of columns.

The unit is Cohen's: 0.2 is small, 0.5 medium, 0.8 large, for numbers (d) and for shares (h) alike
(Cohen 1988). For numbers d is taken from ranks: how often a row of the cluster is above a row of all,
as the distance of two normal distributions with that chance. It equals the usual d for normal
distributions, and no single value can move it. A share of rows is compared by h, so that 2 % against
12 % counts more than 45 % against 55 %. A date is a number; a gap is a share.
"""

from __future__ import annotations

import numpy as np

SMALL, MEDIUM = 0.2, 0.5
# h has a standard error of 1 / sqrt(n), and d nearly the same. Three would do for one column, but there
# are many, and d of a few rows is often large.
STANDARD_ERRORS = 4.0


def sizes_of(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """(n_clusters,) rows of each cluster; -1 is noise.

    >>> sizes_of(np.array([0, 2, 2, -1]), 4)
    array([1, 0, 2, 0])
    """
    return np.bincount(labels[labels >= 0], minlength=n_clusters)


def shares_of(mask: np.ndarray, labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, float]:
    """The share of rows in a mask: (n_clusters,) by cluster, 0 where it is empty, and of all rows.

    >>> shares_of(np.array([True, True, False, False]), np.array([0, 0, 0, -1]), 2)
    (array([0.66666667, 0.        ]), 0.5)
    """
    hits = sizes_of(labels[mask], n_clusters)
    by_cluster = hits / np.maximum(sizes_of(labels, n_clusters), 1)
    return by_cluster, float(mask.mean()) if len(mask) else 0.0


def of_shares(here: np.ndarray, everywhere: np.ndarray | float) -> np.ndarray:
    """Cohen's h of shares against shares; positive where there are more here.

    >>> of_shares(np.array([1.0, 0.5, 0.0]), 0.5).round(4)
    array([ 1.5708,  0.    , -1.5708])
    """
    return 2 * np.arcsin(np.sqrt(here)) - 2 * np.arcsin(np.sqrt(everywhere))


def of_ranks(values: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """(n_clusters,) Cohen's d by ranks; positive where values are higher than those of all rows.

    The mean of 7 and 9 lies above 3 of 4 rows of all: a chance of 0.75, and sqrt(2) x 0.6745.

    >>> of_ranks(np.array([1.0, 2.0, 7.0, 9.0]), np.array([0, 0, 1, 1]), 3).round(4)
    array([-0.9539,  0.9539,  0.    ])
    """
    in_cluster = labels >= 0
    # Ranks are halves of whole numbers, so that their sums do not depend on the order of the rows.
    from scipy.special import ndtri  # takes half a second to load, and predictions need none of it
    from scipy.stats import rankdata

    sums = np.bincount(labels[in_cluster], rankdata(values)[in_cluster], n_clusters)
    n_rows = sizes_of(labels, n_clusters)
    chance = (sums / np.maximum(n_rows, 1) - 0.5) / len(values)  # that a row of all is lower
    return np.sqrt(2) * ndtri(np.where(n_rows > 0, chance, 0.5))


def quantiles(
    values: np.ndarray, labels: np.ndarray, n_clusters: int, at: tuple[float, ...]
) -> np.ndarray:
    """(n_clusters, n_at) quantiles of each cluster, NaN for an empty one.

    Those of ``np.quantile``, which knows no groups: it would sort once for each cluster.

    >>> quantiles(np.array([4.0, 1.0, 2.0, 9.0]), np.array([0, 0, 0, 1]), 3, (0.25, 0.5))
    array([[1.5, 2. ],
           [9. , 9. ],
           [nan, nan]])
    """
    in_cluster = labels >= 0
    values, labels = values[in_cluster], labels[in_cluster]
    n_rows = sizes_of(labels, n_clusters)
    found = np.full((n_clusters, len(at)), np.nan)
    filled = np.flatnonzero(n_rows)
    if not len(filled):
        return found
    # By cluster first: many short sorts of numbers are faster than one long sort of pairs.
    ordered = values[np.argsort(labels.astype(np.min_scalar_type(n_clusters)), kind="stable")]
    starts = (np.cumsum(n_rows) - n_rows)[filled, None]  # (n_filled, 1)
    for start, size in zip(starts[:, 0], n_rows[filled], strict=True):
        ordered[start : start + size].sort()
    places = np.array(at) * (n_rows[filled, None] - 1)  # (n_filled, n_at)
    below, part = starts + places.astype(np.int64), places % 1
    above = np.minimum(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    # Not low + part * (high - low), which is too large between -1e308 and 1e308.
    with np.errstate(invalid="ignore"):  # infinite values
        found[filled] = np.where(low == high, low, low * (1 - part) + high * part)
    return found
