"""How sure labels are, as a graph: see :mod:`deccs.counting.trust`."""

from __future__ import annotations

from typing import Any

import numpy as np

from deccs.counting.trust import (
    DENSEST,
    FLAT,
    N_FAR,
    N_NEIGHBORS,
    OLD_WEIGHTS,
    SUREST,
    WEIGHTS,
    WITHOUT_SIGNS,
    Trust,
    smallest,
)
from deccs.export.graph import WHOLE, Tensor
from deccs.export.nearest import nearest
from deccs.inference.seen import Components


def component_rows(components: Components, scaled: Tensor) -> Tensor:
    """See :class:`Components`."""
    if components.axes is None:
        return scaled
    return (scaled - components.mean) @ components.axes


def confidence(trust: Trust, scaled: Tensor, labels: Tensor, support: Tensor) -> Tensor:
    """(n,) of scaled rows with their labels and the members' support: see :meth:`Trust.confidence`."""
    graph, real = scaled.graph, scaled.dtype
    n_near = near_count(trust)
    places, distance = around(trust, component_rows(trust.components, scaled), n_near)
    usual = graph.constant(trust.usual, real).take(labels)
    weights = OLD_WEIGHTS if trust.untrained is None else WEIGHTS
    terms = {
        "support": logit(support.clip(1 - SUREST, SUREST)),
        "density": (usual - distance.op("Log")).op("Min", DENSEST),
    }
    if trust.untrained is None or trust.valleys is None:
        their_labels = graph.constant(trust.drawn.labels, WHOLE).take(places)
        same = their_labels.equals(labels.unsqueeze(1)).cast(real)  # (n, n_neighbors)
        terms["neighbors"] = logit(share_of(same, n_near))
        terms["stability"] = graph.constant(trust.stability, real).take(labels)
    else:
        n_clusters = len(trust.stability)
        together = graph.constant(trust._together.ravel().astype(np.float64), real)
        terms["together"] = share_of(
            together.take(places * n_clusters + labels.unsqueeze(1)), n_near
        )
        valleys = np.maximum(trust.valleys, FLAT)
        terms["valley"] = graph.constant(valleys, real).take(labels)
        terms["shallowest"] = usual * 0.0 + float(valleys.min())
    logs = usual * 0.0 + weights["always"]
    for name, term in terms.items():
        logs = logs + term * weights[name]
    return logs.op("Sigmoid") * (WITHOUT_SIGNS if trust.signs.of_one_group else 1.0)


def near_count(trust: Trust) -> int:
    """How many drawn rows a row is compared with; with fewer than three there is nobody but itself."""
    n_drawn = len(trust.drawn.labels)
    return min(N_NEIGHBORS, N_FAR, n_drawn - 2) if n_drawn > 2 else 0


def share_of(values: Tensor, n_near: int) -> Tensor:
    """(n, n_near) -> (n,): see :func:`deccs.counting.trust.share_of`."""
    return (values.sum() + 0.5) / (n_near + 1.0)


def none(dtype: np.dtype[Any], least: float) -> float:
    """A squared distance that is nothing but rounding."""
    return max(least, float(np.finfo(dtype).eps) ** 0.5 / 10) ** 2


def logit(share: Tensor) -> Tensor:
    return (share / (1.0 - share)).op("Log")


def around(trust: Trust, points: Tensor, n_near: int) -> tuple[Tensor, Tensor]:
    """(n, n_near) and (n,): see :func:`deccs.counting.trust.neighbors_of`."""
    drawn = trust.drawn
    least = smallest(drawn)
    if not n_near:
        squares, places = nearest(points, drawn.points, 1)
        return places.op("Slice", [0], [0], [1]), (squares * 0.0 + least).squeeze(1)
    n_far = min(N_FAR, len(drawn.labels) - 2)
    squares, places = nearest(points, drawn.points, n_far + 1)
    # A drawn row is not its own neighbor: (n, 1). Its components may be rounded in another way.
    is_itself = (squares.take([0], axis=1) <= none(points.dtype, least)).cast(WHOLE)
    neighbors = is_itself + np.arange(n_near)  # (n, n_near)
    near = places.op("GatherElements", neighbors, axis=1)
    far = squares.op("GatherElements", is_itself + (n_far - 1), axis=1).squeeze(1).op("Sqrt")
    return near, far.op("Max", least)
