"""How many clusters: sample -> members for every k -> evidence -> support -> answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from deccs.checks import N_CLUSTERS, check_bounds, check_value, k_bounds
from deccs.counting.evidence import (
    Evidence,
    Sample,
    affordable,
    best_partitions,
    evidence_for,
    numbers_to_try,
    scaled_rows,
)
from deccs.counting.one_group import signs_of
from deccs.counting.records import Count, KCandidate
from deccs.counting.rule import CLEAR, candidates_of, support_of, terms_of
from deccs.counting.signs import Signs
from deccs.counting.words import reasons_for_one_group
from deccs.data.inputs import as_source
from deccs.data.sampling import draw_rows
from deccs.data.scalers import fit_scaler
from deccs.data.scaling import Scaler
from deccs.data.source import RowSource
from deccs.events import NOBODY, Listeners, Progress
from deccs.members.running import of_one_scale
from deccs.members.views import fit_components
from deccs.seeds import generator_for, root_seed, seed_for
from deccs.spreading import jobs_for_us_alone

MOST_COUNTED = 2_000  # rows of the sample: all eigenvectors of its graph take a second or two
LEAST_COUNTED = 8  # distinct rows; with fewer there is nothing to tell apart
STAGE = "counting clusters"


def count_clusters(
    X: Any,
    k_range: str | range = "auto",
    *,
    scale: str | None = "auto",
    random_state: int | np.random.RandomState | None = None,
) -> Count:
    """How many clusters X has, with the evidence for every number tried.

    The answer of ``n_clusters="auto"``, without a fit.

    Parameters
    ----------
    X : (n_points, n_features), as for :class:`deccs.DECCS`
    k_range : "auto", or a range such as "3-20" or ``range(3, 21)``
    scale : as for :class:`deccs.DECCS`
    random_state : int, RandomState or None

    Returns
    -------
    Count : ``n_clusters``, ``is_clear``, ``candidates`` (ranked, with reasons), ``ks``, ``curves``

    Examples
    --------
    >>> import numpy as np
    >>> from deccs import count_clusters
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(center, 0.1, size=(30, 2)) for center in (0, 1, 2, 3)])
    >>> count_clusters(X, random_state=0).n_clusters
    4
    """
    check_value("k_range", k_range, N_CLUSTERS)
    bounds = k_bounds(k_range)
    if bounds is None:
        raise ValueError(f"k_range must be 'auto' or a range such as '3-20', got {k_range!r}.")
    source = as_source(BaseEstimator(), X, reset=True)
    check_bounds(k_range, source.shape[0])
    return count_clusters_of(source, fit_scaler(source, scale), bounds, root_seed(random_state))


@jobs_for_us_alone()
def count_clusters_of(
    source: RowSource,
    scaler: Scaler,
    bounds: tuple[int, int | None],
    root: int,
    listeners: Listeners = NOBODY,
) -> Count:
    """The count of the rows of a fit. 1 is a possible answer if the bounds allow it."""
    n_rows, n_features = source.shape
    most = affordable(MOST_COUNTED, n_features)
    rows = draw_rows(n_rows, most, generator_for(root, "count")).numpy()
    scaled = scaled_rows(source, scaler, rows)
    components = fit_components(scaled, seed_for(root, "count"))
    points = components(scaled)  # (n_sample, n_components)
    low, high = bounds
    n_distinct = len(np.unique(points, axis=0))
    if n_distinct < max(LEAST_COUNTED, 2 * (low + 1)):
        reason = f"only {n_distinct} distinct rows: too few to tell"
        return without_evidence(points, rows, components, low, reason)
    if high == 1:
        return without_evidence(points, rows, components, low, "no other number was allowed")
    sample = Sample(scaled, of_one_scale(points), seed_for(root, "count"))
    # Numbers beyond the highest one show whether its clusters would split.
    beyond = None if high is None else max(2, min(len(rows) // 2, int(1.25 * high) + 3))
    ks = numbers_to_try(len(rows), high=beyond)
    if high is not None:
        # Steps may leave out the ends.
        ks = sorted({*ks, *(k for k in (low, high) if 2 <= k <= max(ks))})
    ks = [k for k in ks if k <= n_distinct]  # copies of a row are no more than one cluster
    evidence = evidence_for(
        sample, ks, lambda done, total: listeners.tell("on_progress", Progress(STAGE, done, total))
    )
    allowed = np.array([low <= k and (high is None or k <= high) for k in ks])
    support = support_of(terms_of(evidence), allowed)
    signs = signs_of(sample.raw, scaled, sample.seed) if low <= 1 else None
    partitions, sources = best_partitions(sample, evidence.panel)
    candidates = candidates_of(evidence, support)
    without_signs = signs is not None and not signs.of_clusters
    is_one = signs is not None and signs.of_one_group
    if signs is not None and is_one:
        candidates = (one_cluster(signs), *candidates)
    return Count(
        n_clusters=1 if is_one else candidates[0].k,
        is_clear=is_one or (candidates[0].support >= CLEAR and not without_signs),
        candidates=candidates,
        ks=evidence.ks[allowed],
        curves={name: curve[allowed] for name, curve in curves_of(evidence, support).items()},
        partitions=partitions[allowed],
        sources=tuple(name for name, shown in zip(sources, allowed, strict=True) if shown),
        sample=rows,
        components=components,
        points=points,
        signs=signs,
    )


def curves_of(evidence: Evidence, support: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "stability": evidence.stability,
        "agreement": evidence.agreement,
        "valley": evidence.valley,
        "split": evidence.split,
        "gap": evidence.gap,
        "support": support,
    }


def one_cluster(signs: Signs) -> KCandidate:
    return KCandidate(1, 0.0, reasons_for_one_group(signs))


def without_evidence(
    points: np.ndarray, rows: np.ndarray, components: Any, k: int, reason: str
) -> Count:
    """What is said where there is nothing to look for, such as of a few rows."""
    empty = np.zeros(0)
    return Count(
        n_clusters=k,
        is_clear=False,
        candidates=(KCandidate(k, 1.0, (reason,)),),
        ks=np.zeros(0, dtype=np.int64),
        curves={"support": empty},
        partitions=np.zeros((0, len(rows)), dtype=np.int16),
        sources=(),
        sample=rows,
        components=components,
        points=points,
    )
