"""How unusual rows are, as a graph: see :mod:`deccs.novelty`. In double precision, and rounded where it is there."""

from __future__ import annotations

import numpy as np

from deccs.export.graph import Tensor
from deccs.export.nearest import nearest
from deccs.novelty.evidence import FARTHEST, N_BACK, N_DENSE, N_NEAR, NOTHING, Axes, Kept
from deccs.novelty.learned import Novelty
from deccs.novelty.surprise import Surprise


def novelty_of(novelty: Novelty, scaled: Tensor, Z: Tensor, labels: Tensor) -> Tensor:
    """(n,) of scaled rows with their representation and the labels that the method has learned."""
    found = terms(novelty.kept, scaled.cast(np.float64), Z.cast(np.float64), labels)
    total: Tensor | None = None
    for name, weight in novelty.weights.items():
        part = nats(novelty.surprises[name], found[name]) * weight
        total = part if total is None else total + part
    assert total is not None
    return share(novelty.total, total)


def terms(kept: Kept, scaled: Tensor, Z: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """See :meth:`Kept.terms`."""
    graph = scaled.graph
    points, rest = on_axes(kept.axes, scaled)
    shape = kept.shape
    sample = (kept.points @ shape).astype(np.float32).astype(np.float64)
    squares, beside = nearest(single(points @ shape), sample, N_DENSE)
    squares_Z, beside_Z = nearest(single(Z.clip(-FARTHEST, FARTHEST)), doubles(kept.Z), N_NEAR)
    near, near_Z = squares.op("Sqrt"), squares_Z.op("Sqrt")
    back = beside_Z.take(np.arange(min(N_BACK, len(kept.points))), axis=1)
    mean = graph.constant(doubles(kept.points)).take(back).mean(1)
    rests = graph.constant(doubles(kept.rest)).take(back).square().mean() / N_BACK
    error = (points - mean).square().sum() + rests + rest.square()
    usual = graph.constant(doubles(kept.usual)).take(
        (labels < 0).where(len(kept.usual) - 1, labels)
    )
    return {
        "reconstruction": log(error.op("Sqrt")),
        "cluster": log(last(near, N_NEAR - 1)) - usual,
        "density": log(last(near, N_DENSE - 1)) - around(kept.spread, beside),
        "representation": log(last(near_Z, N_NEAR - 1)) - around(kept.spread_Z, beside_Z),
    }


def on_axes(axes: Axes, scaled: Tensor) -> tuple[Tensor, Tensor]:
    """See :class:`Axes`: (n, n_axes) and (n,)."""
    scaled = scaled.clip(-FARTHEST, FARTHEST)
    if axes.axes is None:
        return single(scaled), (scaled * 0.0).sum()
    centered = scaled - axes.mean
    points = centered @ axes.axes
    rest = centered.square().sum() - points.square().sum()
    return single(points), single(rest.op("Max", 0.0).op("Sqrt"))


def around(spread: np.ndarray, beside: Tensor) -> Tensor:
    """The mean log of how far neighbors are from their own neighbors: (n,)."""
    logs = np.log(np.maximum(doubles(spread)[:, 0], NOTHING))
    return beside.graph.constant(logs).take(beside).mean()


def nats(curve: Surprise, values: Tensor) -> Tensor:
    """See :meth:`Surprise.__call__`."""
    return interpolated(curve, values) + beyond(curve, values)


def share(curve: Surprise, values: Tensor) -> Tensor:
    """See :meth:`Surprise.share`."""
    falls = (interpolated(curve, values) * -1.0).op("Exp")
    return 1.0 - falls / (beyond(curve, values) + 1.0)


def interpolated(curve: Surprise, values: Tensor) -> Tensor:
    """A curve of straight pieces: its start, and of each piece what a value has done of it."""
    start = values * 0.0 + float(curve.nats[0])
    if len(curve.values) == 1:
        return start
    lengths = np.diff(curve.values)
    done = (values.unsqueeze(1) - curve.values[:-1]).op("Max", 0.0).op("Min", lengths)
    return start + (done / lengths * np.diff(curve.nats)).sum()


def beyond(curve: Surprise, values: Tensor) -> Tensor:
    return (values - float(curve.values[-1])).op("Max", 0.0) / curve.unit


def last(distances: Tensor, place: int) -> Tensor:
    return distances.take([place], axis=1).squeeze(1)


def log(distance: Tensor) -> Tensor:
    return distance.op("Max", NOTHING).op("Log")


def single(values: Tensor) -> Tensor:
    """Rounded to single precision, so that the last digits of products do not matter."""
    return values.cast(np.float32).cast(np.float64)


def doubles(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)
