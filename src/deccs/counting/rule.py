"""From the evidence to an answer: how much support each number of clusters has.

The logarithm of the support is a weighted sum of the evidence. The weights were learned on a pool of
data sets with known classes, by how often the supported number was right; docs/how-many.md has the
result with each data set left out. No class of the data at hand takes part.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deccs.counting.evidence import Evidence
from deccs.counting.records import KCandidate

WEIGHTS = {"few": 0.7, "stability": 6.0, "agreement": 6.2, "valley": 2.5, "gap": 68.0}
SURE = 0.95  # stability and agreement beyond this are alike: the first split is often at 1
WIDEST = 0.04  # gaps beyond this are alike: in small data eigenvalues fall in large steps
CLEAR = 0.5  # the least support of an answer that stands out
MOST_CANDIDATES = 10


def terms_of(evidence: Evidence) -> dict[str, np.ndarray]:
    """What is weighed, (n_ks,) each: all else equal, fewer clusters are more likely."""
    return {
        "few": -np.log(evidence.ks),
        "stability": np.minimum(evidence.stability, SURE),
        "agreement": np.minimum(evidence.agreement, SURE),
        "valley": evidence.valley - evidence.split,
        "gap": np.clip(evidence.gap, -WIDEST, WIDEST),
    }


def support_of(terms: dict[str, np.ndarray], allowed: np.ndarray) -> np.ndarray:
    """The share of the support for each k, 0 where it is not allowed: (n_ks,), adds up to 1."""
    return support_with(WEIGHTS, terms, allowed)


def support_with(
    weights: Mapping[str, float], terms: Mapping[str, np.ndarray], allowed: np.ndarray
) -> np.ndarray:
    """The same with weights of one's own.

    >>> terms = {"few": -np.log([1.0, 3.0])}
    >>> support_with({"few": 1.0}, terms, np.array([True, True]))
    array([0.75, 0.25])
    >>> support_with({"few": 1.0}, terms, np.array([False, True]))
    array([0., 1.])
    """
    logs = sum(weight * terms[name] for name, weight in weights.items())
    logs = np.where(allowed, logs, -np.inf)
    share = np.exp(logs - logs.max())
    return np.asarray(share / share.sum())


def candidates_of(evidence: Evidence, support: np.ndarray) -> tuple[KCandidate, ...]:
    """The numbers with most support first, with reasons."""
    order = np.argsort(-support, kind="stable")
    return tuple(
        KCandidate(int(evidence.ks[place]), float(support[place]), reasons_for(evidence, place))
        for place in order[:MOST_CANDIDATES]
        if support[place] > 0
    )


def reasons_for(evidence: Evidence, place: int) -> tuple[str, ...]:
    """What the evidence says of one number, in words."""
    stability, agreement = evidence.stability[place], evidence.agreement[place]
    valley, split = evidence.valley[place], evidence.split[place]
    reasons = [
        f"{in_degrees(stability)} under resampling ({stability:.2f})",
        f"members {'agree' if agreement >= 0.7 else 'partly agree' if agreement >= 0.4 else 'disagree'}"
        f" ({agreement:.2f})",
        f"{'valleys' if valley > 0 else 'no valleys'} between clusters ({valley:.2f})",
    ]
    if split > 0:
        reasons.append(f"finer clusters have valleys, too ({split:.2f})")
    elif valley > 0:
        reasons.append("finer clusters have none")
    return tuple(reasons)


def in_degrees(stability: float) -> str:
    """A stability in words.

    >>> in_degrees(0.97), in_degrees(0.8), in_degrees(0.4)
    ('very stable', 'fairly stable', 'unstable')
    """
    if stability >= 0.9:
        return "very stable"
    return "fairly stable" if stability >= 0.7 else "unstable"
