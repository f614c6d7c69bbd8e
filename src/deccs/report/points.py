"""What the scatter draws: which points, where, and in which groups, packed small for the page."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deccs.labels import NOISE, align_labels
from deccs.rounds.records import Round

MOST_TSNE = 5_000  # its time grows fast, and its picture does not gain
MOST_CATEGORIES = 47  # 8 colors in 6 shapes, less one for "other"
FEW_NUMBERS = 12  # whole numbers of so few values are codes, not amounts


@dataclass(frozen=True)
class Plane:
    """How the representation becomes flat: its center and two directions."""

    center: np.ndarray  # (d,)
    directions: np.ndarray  # (d, 2)
    share: float  # of the variance that is seen

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        return (Z - self.center) @ self.directions


def plane_of(Z: np.ndarray) -> Plane:
    """Two columns as they are, one beside zeros, more by their two main components.

    One plane for all rounds: the rounds move the points of one embedding, so its axes keep their meaning.

    >>> plane_of(np.array([[3.0, 0, 0], [-3, 0, 0], [0, 1, 0], [0, -1, 0]])).directions.T
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    d = Z.shape[1]
    if d <= 2:
        return Plane(np.zeros(d), np.eye(d, 2), 1.0)
    center = Z.mean(axis=0, dtype=float)
    variances, vectors = np.linalg.eigh(np.cov(Z.T.astype(float)))  # ascending
    directions = vectors[:, :-3:-1]  # (d, 2)
    # An eigenvector has no sign of its own; its largest part is made positive.
    directions = directions * np.where(directions[np.abs(directions).argmax(0), [0, 1]] < 0, -1, 1)
    return Plane(center, directions, float(variances[-2:].sum() / max(variances.sum(), 1e-300)))


def by_tsne(Z: np.ndarray) -> np.ndarray:
    """(n, 2), near points near; at most ``MOST_TSNE`` of them."""
    from sklearn.manifold import TSNE  # loads slowly, and few want it

    perplexity = min(30.0, max(1.0, (len(Z) - 1) / 3))
    return TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(Z)


def thinned(rows: np.ndarray, most: int) -> np.ndarray:
    """Places of at most ``most`` of them, evenly over their order.

    >>> thinned(np.arange(10), 4)
    array([0, 2, 5, 7])
    """
    if len(rows) <= most:
        return np.arange(len(rows))
    return np.arange(most) * len(rows) // most


def rows_to_draw(n_points: int, samples: Sequence[np.ndarray], most: int) -> np.ndarray:
    """Row numbers in order: all, or the samples' and as many others by chance as there is room for."""
    if n_points <= most:
        return np.arange(n_points)
    wanted = np.unique(np.concatenate([*samples, np.empty(0, np.int64)]))
    others = np.setdiff1d(np.arange(n_points), wanted, assume_unique=True)
    room = max(0, most - len(wanted))
    more = np.random.default_rng(0).choice(others, min(room, len(others)), replace=False)
    return np.sort(np.concatenate([wanted, more]))


def packed(values: np.ndarray) -> dict[str, str]:
    """A binary array as text, little-endian.

    >>> packed(np.array([1, 2], np.uint16))
    {'type': 'u2', 'data': 'AQACAA=='}
    """
    kind = f"u{values.dtype.itemsize}"
    return {
        "type": kind,
        "data": base64.b64encode(np.ascontiguousarray(values, f"<{kind}").tobytes()).decode(),
    }


def packed_labels(labels: np.ndarray) -> dict[str, str]:
    """One byte a label where that is enough; the highest number of the type is "no label"."""
    small = labels.max(initial=0) < 255
    none = 255 if small else 65_535
    return packed(np.where(labels == NOISE, none, labels).astype(np.uint8 if small else np.uint16))


def packed_numbers(values: np.ndarray) -> dict[str, Any]:
    """Two bytes a number between the lowest and the highest; 65,535 where it is not finite."""
    values = values.astype(float)
    finite = np.isfinite(values)
    low, high = (
        (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0.0, 0.0)
    )
    scaled = (np.where(finite, values, low) - low) / (high - low or 1.0)
    return {
        "low": low,
        "high": high,
        "values": packed(np.where(finite, np.round(scaled * 65_534), 65_535).astype(np.uint16)),
    }


def packed_places(points: np.ndarray) -> dict[str, Any]:
    """(n, 2) as two bytes a coordinate, both by the same step, so that shapes stay as they are."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) or 1.0
    steps = np.round((points - low) / size * 65_535).astype(np.uint16)  # (n, 2)
    return {"low": low.tolist(), "size": size, "xy": packed(steps)}


def packed_column(name: str, values: np.ndarray) -> dict[str, Any]:
    """A column to color by: a scale of numbers, or categories with the most frequent first."""
    values = np.asarray(values)
    if values.dtype.kind in "fiu" and (
        values.dtype.kind == "f" or len(np.unique(values)) > FEW_NUMBERS
    ):
        return {"name": name, "kind": "numbers", **packed_numbers(values)}
    missing = np.array([is_missing(value) for value in values.tolist()], dtype=bool)
    kinds, codes, counts = np.unique(
        values[~missing].astype(str), return_inverse=True, return_counts=True
    )
    by_value = values.dtype.kind in "iu"
    order = np.argsort(
        values[~missing][np.unique(codes, return_index=True)[1]] if by_value else -counts,
        kind="stable",
    )
    rank = np.empty(len(kinds), dtype=np.int64)
    rank[order] = np.arange(len(kinds))
    names = [str(kinds[place]) for place in order]
    if len(names) > MOST_CATEGORIES:
        names = [*names[:MOST_CATEGORIES], f"{len(names) - MOST_CATEGORIES} others"]
    labels = np.full(len(values), NOISE)
    labels[~missing] = np.minimum(rank[codes], MOST_CATEGORIES)
    return {"name": name, "kind": "categories", "names": names, "labels": packed_labels(labels)}


def is_missing(value: object) -> bool:
    """None, NaN, pandas' NA and NaT, and the empty string; the word "None" is a word."""
    return value == "" if isinstance(value, str) else str(value) in ("None", "nan", "<NA>", "NaT")


def round_frame(
    this: Round,
    places: np.ndarray,
    rows: np.ndarray,
    plane: Plane,
    labels: np.ndarray,
    is_best: bool,
) -> dict[str, Any]:
    """A round's sample as it lay then, each member's clusters numbered like the final ones they meet."""
    sample = this.sample[places]
    return {
        "name": f"Round {this.number}" + (" (best)" if is_best else ""),
        "agreement": this.agreement,
        "places": packed(np.searchsorted(rows, sample).astype(np.uint32)),
        **packed_places(plane(this.Z[places])),
        "members": {
            name: packed_labels(align_labels(partition, labels[this.sample])[places])
            for name, partition in zip(this.member_names, this.base_partitions, strict=True)
        },
    }


@dataclass(frozen=True)
class Result:
    """What the model says of all points."""

    Z: np.ndarray  # (n, d) consensus representation
    labels: np.ndarray  # (n,)
    confidence: np.ndarray  # (n,)
    members: np.ndarray  # (n_members, n)
    member_names: tuple[str, ...]
    rounds: list[Round]
    best_round: int


@dataclass(frozen=True)
class Scatter:
    """The scatter's data as plain JSON, and what is to be said of it."""

    data: dict[str, Any]
    rows: np.ndarray  # (n_drawn,) row numbers
    shown: np.ndarray  # places among them of the points of the last frame, the result's
    said: str  # what the axes are


def scatter_of(
    result: Result,
    *,
    ids: Sequence[str | int] | None,
    columns: Mapping[str, np.ndarray],
    max_points: int,
    projection: str,
) -> Scatter:
    """Points once, then a frame a round and a last one of the result."""
    n_points, d = result.Z.shape
    plane = plane_of(result.Z)
    # The rounds together get half of the points that may be drawn.
    share = max(1, max_points // (2 * len(result.rounds)))
    kept = [thinned(this.sample, share) for this in result.rounds]
    samples = [this.sample[places] for this, places in zip(result.rounds, kept, strict=True)]
    rows = rows_to_draw(n_points, samples, max_points)
    frames = [
        round_frame(this, places, rows, plane, result.labels, this.number == result.best_round)
        for this, places in zip(result.rounds, kept, strict=True)
    ]
    shown = thinned(rows, MOST_TSNE if projection == "tsne" else len(rows))
    last = {
        "name": "Result, all points"
        if len(shown) == n_points
        else f"Result, {len(shown):,} points",
        "agreement": None,
        "members": None,
        "places": None if len(shown) == len(rows) else packed(shown.astype(np.uint32)),
    }
    if projection == "tsne":
        last |= packed_places(by_tsne(result.Z[rows[shown]]))
        said = f"The result by t-SNE of {d} dimensions, the rounds by main components"
    else:
        last |= packed_places(plane(result.Z[rows]))
        said = (
            f"The two main components of {d} dimensions, with {plane.share:.0%} of the variance"
            if d > 2
            else "The consensus representation as it is"
        )
    data = {
        "points": len(rows),
        "ids": None if ids is None else [ids[row] for row in rows],
        "rows": None if len(rows) == n_points else packed(rows.astype(np.uint32)),
        "labels": packed_labels(result.labels[rows]),
        "confidence": packed_numbers(result.confidence[rows]),
        "members": [
            {"name": name, "labels": packed_labels(said_by[rows])}
            for name, said_by in zip(result.member_names, result.members, strict=True)
        ],
        "columns": [
            packed_column(name, np.asarray(values)[rows]) for name, values in columns.items()
        ],
        "frames": [*frames, last],
    }
    return Scatter(data, rows, shown, said)
