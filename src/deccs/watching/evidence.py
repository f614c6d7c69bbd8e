"""Tests of drift: each gives a p-value and an effect that does not grow with the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma

import numpy as np


def holm(p: Sequence[float]) -> np.ndarray:
    """p-values corrected for their number: the chance that any is as small by chance alone.

    >>> holm([0.01, 0.04, 0.03])  # 3 x 0.01, 2 x 0.03, and no less than that
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)
    corrected = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    out = np.empty(len(values))
    out[order] = np.minimum(corrected, 1)
    return out


def kolmogorov(distance: float, n_then: float, n_now: float) -> float:
    """p of the largest difference of two cumulative shares (Kolmogorov and Smirnov)."""
    from scipy.special import kolmogorov as tail

    if not n_then or not n_now:
        return 1.0
    n = n_then * n_now / (n_then + n_now)
    root = np.sqrt(n)
    return float(tail((root + 0.12 + 0.11 / root) * distance))  # Stephens' correction for small n


def by_counts(then: np.ndarray, now: np.ndarray) -> tuple[float, float]:
    """Effect and p of two lines of counts: the share of rows that differ, and a G test.

    Counts that are rare in both are put together: the test needs five rows in a place or so.

    >>> effect, p = by_counts(np.array([50, 50]), np.array([70, 30]))
    >>> round(effect, 2), round(p, 4)  # a fifth of the rows would have to change
    (0.2, 0.0037)
    """
    from scipy.special import chdtrc

    n_then, n_now = then.sum(), now.sum()
    if not n_then or not n_now:
        return 0.0, 1.0
    effect = 0.5 * float(np.abs(then / n_then - now / n_now).sum())
    expected = (then + now) * min(n_then, n_now) / (n_then + n_now)
    rare = expected < 5
    table = np.stack([np.append(row[~rare], row[rare].sum()) for row in (then, now)]).astype(float)
    table = table[:, table.sum(axis=0) > 0]  # (2, n_places)
    if table.shape[1] < 2:
        return effect, 1.0
    usual = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        g = 2 * float(np.nansum(np.where(table > 0, table * np.log(table / usual), 0)))
    return effect, float(chdtrc(table.shape[1] - 1, max(g, 0.0)))


def too_many_rejected(n_rejected: int, n_rows: int, rate: float, n_held_out: int) -> float:
    """p of as many rejected rows or more, exactly.

    The threshold comes from held-out rows, so the true rate behind it is not the one asked for: it has a
    beta distribution around it, and the number of rejected rows a beta-binomial one. With many held-out
    rows this is the exact binomial test.

    >>> round(too_many_rejected(3, 100, 0.01, 10**9), 4)  # 1 - P(0, 1 or 2) of a binomial
    0.0794
    >>> round(too_many_rejected(3, 100, 0.01, 200), 4)
    0.1105
    """
    a = rate * (n_held_out + 1)
    b = n_held_out + 1 - a
    # By the ratio of the probabilities of k + 1 and of k; scipy.stats takes half a second to load.
    k = np.arange(n_rows)
    ratios = np.log((n_rows - k) * (k + a)) - np.log((k + 1) * (n_rows - k - 1 + b))
    none = lgamma(n_rows + b) - lgamma(b) - lgamma(n_rows + a + b) + lgamma(a + b)
    logs = np.concatenate([[0.0], np.cumsum(ratios)]) + none  # of 0 to n_rows
    return float(min(np.exp(logs[n_rejected:]).sum(), 1.0))
