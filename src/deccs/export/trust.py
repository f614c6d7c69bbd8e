"""How sure labels are, as a graph: see :mod:`deccs.counting.trust`."""

from __future__ import annotations

from typing import Any

import numpy as np

from deccs.counting.trust import (
    DENSEST,
    N_FAR,
    N_NEIGHBORS,
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
    share, distance = around(trust, component_rows(trust.components, scaled), labels)
    usual = graph.constant(trust.usual, real).take(labels)
    stability = graph.constant(trust.stability, real).take(labels)
    density = (usual - distance.op("Log")).op("Min", DENSEST)
    terms = {
        "support": logit(support.clip(1 - SUREST, SUREST)),
        "neighbors": logit(share),
        "stability": stability,
        "density": density,
    }
    logs = stability * 0.0 + WEIGHTS["always"]
    for name, term in terms.items():
        logs = logs + term * WEIGHTS[name]
    return logs.op("Sigmoid") * (WITHOUT_SIGNS if trust.signs.of_one_group else 1.0)


def none(dtype: np.dtype[Any], least: float) -> float:
    """A squared distance that is nothing but rounding."""
    return max(least, float(np.finfo(dtype).eps) ** 0.5 / 10) ** 2


def logit(share: Tensor) -> Tensor:
    return (share / (1.0 - share)).op("Log")


def around(trust: Trust, points: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """(n,) twice: see :func:`deccs.counting.trust.around`."""
    drawn, graph = trust.drawn, points.graph
    least = smallest(drawn)
    if len(drawn.labels) < 3:  # nobody but the row itself
        nothing = (points * 0.0).sum()
        return nothing + 0.5, nothing + least
    n_far = max(1, min(N_FAR, len(drawn.labels) - 2))
    n_neighbors = min(N_NEIGHBORS, n_far)
    squares, places = nearest(points, drawn.points, n_far + 1)
    # A drawn row is not its own neighbor: (n, 1). Its components may be rounded in another way.
    is_itself = (squares.take([0], axis=1) <= none(points.dtype, least)).cast(WHOLE)
    neighbors = is_itself + np.arange(n_neighbors)  # (n, n_neighbors)
    their_labels = graph.constant(drawn.labels, WHOLE).take(
        places.op("GatherElements", neighbors, axis=1)
    )
    same = their_labels.equals(labels.unsqueeze(1)).cast(points.dtype).sum()
    far = squares.op("GatherElements", is_itself + (n_far - 1), axis=1).squeeze(1).op("Sqrt")
    return (same + 0.5) / (n_neighbors + 1.0), far.op("Max", least)
