"""Scoring a consensus by the partitions it was made of, and choosing by that."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deccs.consensus.functions import consensus_function
from deccs.consensus.graphs import cspa, hgpa, mcla
from deccs.consensus.partitions import check_partitions, check_weights
from deccs.labels import NOISE, canonical
from deccs.members.agreement import nmi_of_counts


def average_nmi(
    labels: ArrayLike, base_partitions: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """The mean NMI of labels with the base partitions, each over the points that both label (Eq. 1).

    >>> average_nmi([0, 0, 1, 1], [[1, 1, 0, 0], [0, 1, 0, 1]])
    0.5
    """
    partitions = check_partitions(base_partitions)
    result = canonical(np.asarray(labels))
    if result.shape != partitions.shape[1:]:
        raise ValueError(
            f"labels must have one label per point, shape {partitions.shape[1:]}; "
            f"got shape {result.shape}."
        )
    scores = [nmi_of_counts(contingency(result, member)) for member in partitions]
    return float(np.average(scores, weights=check_weights(weights, len(partitions))))


def contingency(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n_a, n_b) points that cluster i of ``a`` and j of ``b`` share."""
    both = (a != NOISE) & (b != NOISE)
    n_a, n_b = int(a.max(initial=0)) + 1, int(b.max(initial=0)) + 1
    return np.bincount(a[both] * n_b + b[both], minlength=n_a * n_b).reshape(n_a, n_b)


@consensus_function
def supra(
    base_partitions: ArrayLike,
    n_clusters: int | None = None,
    *,
    weights: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> np.ndarray:
    """Strehl and Ghosh's supra-consensus: the best of CSPA, HGPA and MCLA by average NMI.

    >>> partitions = [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [2, 2, 2, 0, 0, 0]]
    >>> supra(partitions, n_clusters=2, random_state=0)
    array([0, 0, 0, 1, 1, 1])
    """
    partitions = check_partitions(base_partitions)
    results = [
        function(partitions, n_clusters, weights=weights, random_state=random_state)
        for function in (cspa, hgpa, mcla)
    ]
    return max(results, key=lambda labels: average_nmi(labels, partitions, weights=weights))
