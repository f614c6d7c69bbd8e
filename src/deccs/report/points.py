"""What the scatter plot draws: which points, where, and in which groups, in a compact form."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from deccs.answer import Answer
from deccs.counting.records import ClusterStability, Count
from deccs.counting.signs import Signs
from deccs.data.sampling import Others, draw_rows
from deccs.labels import NOISE, align_labels
from deccs.plots import Plane, plane_of
from deccs.rounds.records import Round

MOST_TSNE = 5_000  # its time grows fast, and more points do not make it clearer
MOST_FOR_PLANE = 100_000  # points the main components are computed from
MOST_CATEGORIES = 47  # 8 colors in 6 shapes, less one for "other"
FEW_NUMBERS = 12  # whole numbers with at most this many values are codes, not amounts


def by_tsne(Z: np.ndarray) -> np.ndarray:
    """(n, 2), where near points stay near."""
    from sklearn.manifold import TSNE  # loads slowly, and is rarely used

    perplexity = min(30.0, max(1.0, (len(Z) - 1) / 3))
    return TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(Z)


def thinned(n: int, most: int) -> np.ndarray:
    """At most ``most`` of the numbers from 0 to n - 1, evenly spaced.

    >>> thinned(10, 4)
    array([0, 2, 5, 7])
    """
    return np.arange(n) if n <= most else np.arange(most) * n // most


def rows_to_draw(n_points: int, samples: Sequence[np.ndarray], most: int) -> np.ndarray:
    """Row numbers in order: all, or those of the samples and random others up to ``most``."""
    if n_points <= most:
        return np.arange(n_points)
    sampled = np.unique(np.concatenate([*samples, np.empty(0, np.int64)]))
    others = Others(n_points, torch.from_numpy(sampled))
    room = max(0, most - len(sampled))
    chosen = others[draw_rows(len(others), room, torch.Generator().manual_seed(0))]
    return np.sort(np.concatenate([sampled, chosen.numpy()]))


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
    """One byte per label where that is enough; the highest number of the type is "no label"."""
    small = labels.max(initial=0) < 255
    none = 255 if small else 65_535
    return packed(np.where(labels == NOISE, none, labels).astype(np.uint8 if small else np.uint16))


def packed_numbers(values: np.ndarray) -> dict[str, Any]:
    """Two bytes per number, between the lowest and the highest; 65,535 where it is not finite."""
    values = values.astype(float)
    finite = np.isfinite(values)
    low, high = 0.0, 0.0
    if finite.any():
        low, high = float(values[finite].min()), float(values[finite].max())
    scaled = (np.where(finite, values, low) - low) / (high - low or 1.0)
    return {
        "low": low,
        "high": high,
        "values": packed(np.where(finite, np.round(scaled * 65_534), 65_535).astype(np.uint16)),
    }


def packed_places(points: np.ndarray) -> dict[str, Any]:
    """(n, 2) as two bytes per coordinate, with the same step for both, so that shapes are kept."""
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
    round_: Round,
    places: np.ndarray,
    rows: np.ndarray,
    plane: Plane,
    labels: np.ndarray,
    is_best: bool,
) -> dict[str, Any]:
    """Points of a round's sample where they were then, with each member's clusters.

    The clusters are numbered like the final ones they correspond to.
    """
    sample = round_.sample[places]
    members = zip(round_.member_names, round_.base_partitions, strict=True)
    return {
        "name": f"Round {round_.number}" + (" (best)" if is_best else ""),
        "agreement": round_.agreement,
        "places": packed(np.searchsorted(rows, sample).astype(np.uint32)),
        **packed_places(plane(round_.Z[places])),
        "members": {
            name: packed_labels(align_labels(partition, labels[round_.sample])[places])
            for name, partition in members
        },
    }


@dataclass(frozen=True)
class Result:
    """A fitted model's answer for all points, and its rounds, if the method has rounds."""

    answer: Answer
    n_clusters: int
    member_names: tuple[str, ...] = ()
    agreement: float | None = None  # of the members
    rounds: Sequence[Round] = ()
    best_round: int = 0
    count: Count | None = None  # of a model that was not told the number of clusters
    stability: Sequence[ClusterStability] = ()
    signs: Signs | None = None  # of clusters in the data
    names: tuple[str, ...] = ()  # of the clusters; empty for one without a name
    retired: frozenset[int] = frozenset()  # numbers of clusters that edits have merged or dropped

    @classmethod
    def of(cls, model: Any, answer: Answer, signs: Signs | None = None) -> Result:
        highest = int(answer.labels.max(initial=-1)) + 1
        n_clusters = max(getattr(model, "n_clusters_", 0), highest)
        return cls(
            answer,
            n_clusters=n_clusters,
            member_names=() if answer.members is None else tuple(model.member_names_),
            agreement=getattr(model, "agreement_", None),
            rounds=getattr(model, "rounds_", ()),
            best_round=getattr(model, "best_round_", 0),
            count=getattr(model, "count_", None),
            stability=tuple(getattr(model, "cluster_stability_", None) or ()),
            signs=signs,
            retired=frozenset(range(n_clusters))
            - frozenset(getattr(model, "clusters_", range(n_clusters))),
        )

    @property
    def best(self) -> Round | None:
        return self.rounds[self.best_round] if self.rounds else None

    def name_of(self, cluster: int) -> str:
        """The name of a cluster, empty if it has none; noise has none."""
        return self.names[cluster] if 0 <= cluster < len(self.names) else ""


@dataclass(frozen=True)
class Scatter:
    """The data of the scatter plot as plain JSON, and what its axes are."""

    data: dict[str, Any]
    rows: np.ndarray  # (n_drawn,) row numbers, in order
    shown: np.ndarray  # places among them of the points in the last frame, the result's
    axes: str

    def place_of(self, row: int) -> int:
        """The place of a row in the last frame, -1 if it is not drawn there."""
        place = int(np.searchsorted(self.rows, row))
        drawn = place < len(self.rows) and self.rows[place] == row
        return place if drawn and place in self.shown else -1


def scatter_of(
    result: Result,
    *,
    ids: Sequence[str | int] | None,
    columns: Mapping[str, np.ndarray],
    max_points: int,
    projection: str,
) -> Scatter:
    """All points once, then a frame per round and a last one for the result."""
    answer = result.answer
    n_points, d = answer.Z.shape
    # One plane for all frames: the rounds move the points of one embedding, so the axes keep their
    # meaning.
    plane = plane_of(answer.Z[thinned(n_points, MOST_FOR_PLANE)])
    # The rounds together get half of the points that may be drawn.
    share = max(1, max_points // (2 * max(1, len(result.rounds))))
    thinner = [thinned(len(round_.sample), share) for round_ in result.rounds]
    samples = [round_.sample[places] for round_, places in zip(result.rounds, thinner, strict=True)]
    rows = rows_to_draw(n_points, samples, max_points)
    frames = [
        round_frame(round_, places, rows, plane, answer.labels, round_ is result.best)
        for round_, places in zip(result.rounds, thinner, strict=True)
    ]
    shown = thinned(len(rows), MOST_TSNE if projection == "tsne" else len(rows))
    every = len(shown) == n_points
    last: dict[str, Any] = {
        "name": "Result, all points" if every else f"Result, {len(shown):,} points",
        "agreement": None,
        "members": None,
        "places": None if len(shown) == len(rows) else packed(shown.astype(np.uint32)),
    }
    if projection == "tsne":
        last |= packed_places(by_tsne(answer.Z[rows[shown]]))
        others = "; the rounds by their main components" if result.rounds else ""
        axes = f"The result by t-SNE of {d} dimensions{others}"
    else:
        last |= packed_places(plane(answer.Z[rows]))
        axes = "The representation itself"
        if d > 2:
            axes = (
                f"The two main components of {d} dimensions, with {plane.share:.0%} of the variance"
            )
    members = () if answer.members is None else answer.members
    data = {
        "points": len(rows),
        "ids": None if ids is None else [ids[row] for row in rows],
        "rows": None if len(rows) == n_points else packed(rows.astype(np.uint32)),
        "labels": packed_labels(answer.labels[rows]),
        "confidence": None
        if answer.confidence is None
        else packed_numbers(answer.confidence[rows]),
        "members": [
            {"name": name, "labels": packed_labels(labels[rows])}
            for name, labels in zip(result.member_names, members, strict=True)
        ],
        "columns": [
            packed_column(name, np.asarray(values)[rows]) for name, values in columns.items()
        ],
        "frames": [*frames, last],
    }
    return Scatter(data, rows, shown, axes)
