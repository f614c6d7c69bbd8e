"""What the labels of a fit are worth: what a model keeps to say how far each can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deccs.counting.cluster_stability import judged, rows_to_judge
from deccs.counting.drawn import Drawn
from deccs.counting.evidence import scaled_rows
from deccs.counting.one_group import signs_of
from deccs.counting.records import ClusterStability
from deccs.counting.signs import Signs
from deccs.counting.trust import Trust, neighbors_of, of_each
from deccs.counting.untrained import Untrained
from deccs.data.source import RowSource, SelectedRows
from deccs.inference.seen import Components
from deccs.labels import NOISE
from deccs.members.running import of_one_scale
from deccs.members.views import fit_components
from deccs.seeds import seed_for


def judge(
    source: RowSource,
    scaler: Callable[[np.ndarray], np.ndarray],
    label: Callable[[RowSource], np.ndarray],
    root: int,
    n_clusters: int,
    signs: Signs | None = None,
    *,
    of_views: bool = True,
) -> tuple[Trust, list[ClusterStability]]:
    """What is known of the labels of a fit, and of each cluster, from a sample of its rows.

    ``label`` gives the labels of rows; ``signs`` are those of clusters, if they are known. Without
    views, clusters are those that only a network may tell: what plain members say of them is not kept.
    """
    rows, seed = rows_to_judge(source, root), seed_for(root, "stability")
    scaled = scaled_rows(source, scaler, rows)
    components = fit_components(scaled, seed)
    points = components(scaled)
    drawn = Drawn(points, label(SelectedRows(source, rows)), seed, rows)
    signs = signs or signs_of(of_one_scale(points), scaled, seed)
    stability, untrained = judged(drawn)
    said = untrained if of_views else None
    return trust_in(drawn, n_clusters, components, signs, stability, said), stability


def signs_for(model: Any, source: RowSource) -> Signs | None:
    """The signs of clusters in the data of a fit, known or looked for now; None for one cluster."""
    if getattr(model, "n_clusters_", 2) < 2:
        return None
    for part in (getattr(model, "trust_", None), getattr(model, "count_", None)):
        if part is not None and part.signs is not None:
            return part.signs
    if not hasattr(model, "scaler_"):  # a model of somebody else
        return None
    seed = seed_for(0, "stability")
    scaled = scaled_rows(source, model.scaler_, rows_to_judge(source, 0))
    return signs_of(of_one_scale(fit_components(scaled, seed)(scaled)), scaled, seed)


def trust_in(
    drawn: Drawn,
    n_clusters: int,
    components: Components,
    signs: Signs,
    stability: Sequence[ClusterStability],
    untrained: Untrained | None = None,
) -> Trust:
    """What the drawn rows tell of the labels of a fit. Of clusters too small to judge, the mean."""
    above_chance = {each.cluster: each.jaccard - each.reference for each in stability}
    depth = {each.cluster: each.separation for each in stability}
    _, distance = neighbors_of(drawn.points, drawn)
    logs = np.log(distance)
    usual = np.full(n_clusters, np.median(logs))
    for cluster in np.unique(drawn.labels[drawn.labels != NOISE]):
        usual[cluster] = np.median(logs[drawn.labels == cluster])
    return Trust(
        components,
        drawn,
        of_each(above_chance, n_clusters),
        usual,
        signs,
        untrained,
        None if untrained is None else of_each(depth, n_clusters),
    )
