"""Plots of a fit. They need matplotlib, ``pip install "deccs[report]"``, and do not touch pyplot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from deccs.calibration import N_BINS, Bins, bins_of
from deccs.checks import check_fitted
from deccs.counting.records import Count
from deccs.counting.words import (
    ks_around,
    runners_up,
    sample_clusterings,
    with_references,
)
from deccs.labels import NOISE
from deccs.rounds.records import Round

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colors, which the color-blind can tell apart, and three of Tol's for more clusters.
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#882255",
    "#999933",
    "#332288",
    "#000000",
)
NO_LABEL = "#C8C8C8"
INK = "#333333"
SHORT_NAMES = {"kmeans": "KM", "spectral": "SC", "agglomerative": "AGG", "mixture": "GMM"}
TEXT, SMALL = 10, 8.5
DPI = 150
SUPPORT = "support"  # the curve that the numbers of clusters are ranked by
MOST_LINEAR = 20  # beyond this, k is drawn on a logarithmic scale
TICKS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100, 150, 200, 300, 500, 1000)
MOST_TICKS = 9
MOST_LEVELS = 8  # values of k in the tree of clusters
BAR = 0.3  # height of a cluster in the tree; levels are 1 apart
GAPS = 0.25  # of the width of a level, together
THINNEST = 0.004  # share of the rows: thinner flows are left out
NARROW = 0.035  # a bar whose number stands above it ...
MOST_NARROW = 25  # ... unless there are too many clusters to read it


class Fitted(Protocol):
    """What the plots need of a fitted DECCS; the estimator itself is above this module."""

    labels_: np.ndarray  # (n_points,)
    rounds_: list[Round]
    best_round_: int
    agreement_: float

    def transform(self, X: Any) -> np.ndarray: ...

    def predict(self, X: Any) -> np.ndarray: ...


def plot_embedding(
    model: Fitted, X: Any = None, ax: Axes | None = None, color: ArrayLike | None = None
) -> Axes:
    """The consensus representation of X, or its two main components if it has more than two.

    Without X it is that of the best round's sample, which the model keeps. ``color`` is a label
    per point drawn; the model's labels by default.
    """
    check_fitted(model)
    best = model.rounds_[model.best_round_]
    Z = best.Z if X is None else model.transform(X)  # (n, n_latent)
    if color is None:
        color = model.labels_[best.sample] if X is None else model.predict(X)
    elif len(np.asarray(color)) != len(Z):
        raise ValueError(
            f"color must have one label per point drawn, {len(Z)}; got {len(np.asarray(color))}."
        )
    return scatter(new_axes() if ax is None else ax, Z, color, title="Consensus representation")


def plot_rounds(model: Fitted, ax: Axes | None = None) -> Axes:
    """Agreement over the rounds (left axis), and the losses of the updates between them (right)."""
    check_fitted(model)
    ax = new_axes(5.5, 3.4) if ax is None else ax
    numbers = [round_.number for round_ in model.rounds_]
    ax.plot(
        numbers,
        [round_.agreement for round_ in model.rounds_],
        color=PALETTE[0],
        lw=2.2,
        marker="o",
        ms=4,
        label="agreement",
    )
    ax.plot(
        model.best_round_,
        model.agreement_,
        "o",
        ms=11,
        mfc="none",
        mec=PALETTE[0],
        mew=1.5,
        label=f"best round: {model.best_round_}",
    )
    ax.set(xlabel="round", ylabel="agreement", ylim=(-0.03, 1.06))
    ax.locator_params(axis="x", integer=True)
    lines = list(ax.get_lines())
    updates = [
        (round_.number + 0.5, round_.losses)
        for round_ in model.rounds_
        if round_.losses is not None
    ]
    if updates:
        right = ax.twinx()
        for term, color in zip(
            ["reconstruction", "classification", "consensus"], PALETTE[1:4], strict=True
        ):
            values = np.array([getattr(losses, term) for _, losses in updates])
            values = np.where(values > 0, values, np.nan)  # 0: the term was switched off
            right.plot(
                [place for place, _ in updates],
                values,
                color=color,
                lw=1.2,
                ls="--",
                marker=".",
                ms=4,
                label=f"{term} loss",
            )
        right.set(ylabel="loss", yscale="log")
        for spine in ("top", "left"):
            right.spines[spine].set_visible(False)
        lines += right.get_lines()
    ax.spines["top"].set_visible(False)
    ax.spines["right"].set_visible(bool(updates))
    ax.legend(
        lines,
        [str(line.get_label()) for line in lines],
        frameon=False,
        fontsize=SMALL,
        ncols=3,
        loc="lower center",
        bbox_to_anchor=(0.5, 1),
    )
    return ax


def plot_agreement(model: Fitted, ax: Axes | None = None) -> Axes:
    """The NMI of every two members in the best round."""
    check_fitted(model)
    ax = new_axes() if ax is None else ax
    best = model.rounds_[model.best_round_]
    matrix = best.agreement_matrix  # (n_members, n_members)
    names = [SHORT_NAMES.get(name, name) for name in best.member_names]
    ax.pcolormesh(matrix, cmap="Blues", vmin=0, vmax=1, edgecolors="white", lw=2)
    ax.set_aspect("equal")
    ax.invert_yaxis()
    for i, j in np.ndindex(matrix.shape):
        ax.text(
            j + 0.5,
            i + 0.5,
            f"{matrix[i, j]:.2f}",
            ha="center",
            va="center",
            fontsize=TEXT,
            color="white" if matrix[i, j] > 0.6 else INK,
        )
    places = np.arange(len(names)) + 0.5
    ax.set_xticks(places, names, fontsize=TEXT)
    ax.set_yticks(places, names, fontsize=TEXT)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(
        f"NMI of the members in round {model.best_round_}: {model.agreement_:.2f}",
        fontsize=TEXT,
        color=INK,
    )
    return ax


def plot_reliability(
    confidence: ArrayLike, is_right: ArrayLike, ax: Axes | None = None, n_bins: int = N_BINS
) -> Axes:
    """The share of right rows over their confidence, with the number of rows in each bin.

    ``is_right`` says of each row whether its label turned out to be right, (n,). On the dashed line
    8 of 10 rows with a confidence of 0.8 are right; bars below it are too confident. The title has
    the expected calibration error.
    """
    return draw_reliability(bins_of(confidence, is_right, n_bins), new_axes() if ax is None else ax)


def draw_reliability(bins: Bins, ax: Axes) -> Axes:
    """The plot of rows that are in bins already."""
    filled, n_bins = np.flatnonzero(bins.counts), len(bins.counts)
    share = bins.share_right[filled]
    ax.bar((filled + 0.5) / n_bins, share, 0.94 / n_bins, color="#BCD4E6", label="right")
    ax.plot([0, 1], [0, 1], color="#888888", lw=1.1, ls=(0, (3, 2)), label="calibrated")
    ax.plot(
        bins.confidence[filled], share, color=PALETTE[0], lw=1.8, marker="o", ms=4, label="right"
    )
    for place, height, count in zip(filled, share, bins.counts[filled], strict=True):
        ax.text(
            (place + 0.5) / n_bins,
            height + 0.015,
            short_count(int(count)),
            ha="center",
            va="bottom",
            fontsize=SMALL - 2,
            color=INK,
        )
    ax.set(xlim=(0, 1), ylim=(0, 1.08), xlabel="confidence", ylabel="share of right labels")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(
        f"{int(bins.counts.sum()):,} rows, calibration error {bins.error:.3f}",
        fontsize=TEXT,
        color=INK,
    )
    return ax


def short_count(count: int) -> str:
    """A number of rows in at most four letters or so.

    >>> short_count(950), short_count(1_234), short_count(56_789)
    ('950', '1.2k', '57k')
    """
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 9_950 else f"{round(count / 1_000)}k"


class Counted(Protocol):
    """What the plots over k need of a model that was fitted with ``n_clusters="auto"``."""

    labels_: np.ndarray  # (n_points,)
    count_: Count


def plot_k(model: Counted, ax: Axes | None = None) -> Axes:
    """The evidence for each number of clusters, with the same for data without clusters (dashed).

    The answer is marked by a line, the runners-up by lighter ones. Bars show the support (right
    axis), which the numbers are ranked by.
    """
    count = count_of(model)
    ax = new_axes(5.5, 3.4) if ax is None else ax
    curves = with_references(count.curves)
    drawn = [curve for curve in curves if curve[0] != SUPPORT]
    lines = []
    for place, (name, values, reference) in enumerate(drawn):
        color = PALETTE[place % len(PALETTE)]
        lines += ax.plot(count.ks, values, color=color, lw=1.8, marker="o", ms=3, label=name)
        if reference is not None:
            ax.plot(count.ks, reference, color=color, lw=1.1, ls=(0, (3, 2)), alpha=0.6)
    if any(reference is not None for *_, reference in drawn):
        lines += ax.plot([], [], color="#888888", lw=1.1, ls=(0, (3, 2)), label="without clusters")
    ax.set(xlabel="number of clusters", ylabel="evidence")
    scale_k(ax, count)
    others = [(values, name) for name, values, _ in curves if name == SUPPORT]
    for values, name in others:
        lines.append(support_bars(ax, count.ks, values, name))
    mark_answers(ax, count)
    ax.spines["top"].set_visible(False)
    ax.spines["right"].set_visible(bool(others))
    ax.legend(
        lines,
        [str(line.get_label()) for line in lines],
        frameon=False,
        fontsize=SMALL,
        ncols=3,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.07),
        handlelength=1.6,
        columnspacing=1.2,
    )
    return ax


def count_of(model: Counted) -> Count:
    check_fitted(model)
    count: Count | None = getattr(model, "count_", None)
    if count is None:
        raise ValueError(
            "There is no evidence over k: the model was told the number of clusters. "
            'Fit it with n_clusters="auto".'
        )
    return count


def k_ticks(ks: ArrayLike) -> list[int]:
    """Numbers to write on an axis of k, at most nine; evenly spaced by their logarithm if k is large.

    >>> k_ticks([2, 3, 4, 5, 6]), k_ticks(range(2, 101))
    ([2, 3, 4, 5, 6], [2, 3, 5, 8, 15, 25, 40, 70, 100])
    """
    low, high = int(np.min(ks)), int(np.max(ks))
    if high <= MOST_LINEAR:
        step = -(-(high - low + 1) // MOST_TICKS)
        return list(range(low, high + 1, step))
    wanted = np.geomspace(low, high, MOST_TICKS)
    known = np.array([tick for tick in TICKS if low <= tick <= high] or [low, high])
    nearest = np.abs(np.log(known)[:, None] - np.log(wanted)).argmin(axis=0)
    return sorted(set(known[nearest].tolist()))


def scale_k(ax: Axes, count: Count) -> None:
    """The axis of k, logarithmic if k is large."""
    ks = [count.n_clusters, *count.ks.tolist()]
    if max(ks) > MOST_LINEAR:
        ax.set_xscale("log")
        ax.set_xlim(min(ks) / 1.12, max(ks) * 1.12)
    else:
        ax.set_xlim(min(ks) - 0.6, max(ks) + 0.6)
    ax.set_xticks([], minor=True)
    ticks = k_ticks(ks)
    ax.set_xticks(ticks, [str(tick) for tick in ticks])


def support_bars(ax: Axes, ks: np.ndarray, values: np.ndarray, name: str) -> Any:
    """Bars on a right axis of their own, behind the curves."""
    right = ax.twinx()
    if ax.get_xscale() == "log":
        left_sides, widths = ks / 1.03, ks * (1.03 - 1 / 1.03)
    else:
        left_sides, widths = ks - 0.3, np.full(len(ks), 0.6)
    bars = right.bar(left_sides, values, widths, align="edge", color="#DDE3EA", label=name)
    # Low bars leave the room above them to the curves.
    right.set(ylabel=name, ylim=(0, 2 * max(float(np.nan_to_num(values).max()), 1e-9)))
    for spine in ("top", "left"):
        right.spines[spine].set_visible(False)
    ax.set_zorder(right.get_zorder() + 1)
    ax.patch.set_visible(False)
    return bars


def mark_answers(ax: Axes, count: Count) -> None:
    """A line at the answer, lighter ones at the runners-up, and their numbers above."""
    marked = [(one.k, False) for one in runners_up(count)] + [(count.n_clusters, True)]
    for k, is_answer in marked:
        color = INK if is_answer else "#8A8A8A"
        ax.axvline(k, color=color, lw=1.4 if is_answer else 1, ls="-" if is_answer else ":")
        if not is_answer and not has_room(ax, k, count.n_clusters):
            continue
        ax.text(
            k,
            1.015,
            str(k),
            transform=ax.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=TEXT if is_answer else SMALL,
            weight="bold" if is_answer else "normal",
            color=color,
        )


def has_room(ax: Axes, k: int, answer: int) -> bool:
    """Whether two numbers can stand side by side above the axes."""
    to_axes = ax.transData + ax.transAxes.inverted()
    (left, _), (right, _) = to_axes.transform([(k, 0), (answer, 0)])
    return bool(abs(left - right) > 0.05)


def plot_cluster_tree(model: Counted, ax: Axes | None = None) -> Axes:
    """Which cluster splits into which over k: a level per k, at most eight around the candidates.

    The width of a cluster is its number of rows, that of a band the rows that two clusters share.
    Clusters have the numbers and colors of those they continue.
    """
    count = count_of(model)
    final = model.labels_[count.sample]  # (n_sample,)
    levels = sample_clusterings(count, final, ks_around(count, MOST_LEVELS))
    ax = new_axes(6, 0.8 + 0.62 * len(levels)) if ax is None else ax
    above: dict[int, tuple[float, float]] = {}
    before: np.ndarray | None = None
    for depth, labels in enumerate(levels.values()):
        places = places_below(labels, before, above)
        if before is not None:
            draw_flows(ax, depth, before, above, labels, places)
        draw_level(ax, depth, places)
        above, before = places, labels
    for tick, k in zip(level_ticks(ax, list(levels)), levels, strict=True):
        tick.set(weight="bold" if k == count.n_clusters else "normal")
    ax.set(xlim=(-0.01, 1.01), ylabel="number of clusters")
    ax.set_xticks([])
    ax.spines[:].set_visible(False)
    return ax


def plot_flow(
    labelings: Sequence[ArrayLike],
    titles: Sequence[str] = (),
    names: Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Who moved where: the clusters of several labelings of the same rows, one below the other.

    The width of a cluster is its number of rows, that of a band the rows that go from one cluster to
    another. ``titles`` name the labelings, ``names`` the clusters by their numbers.
    """
    levels = [np.asarray(labels) for labels in labelings]
    if len(levels) < 2 or len({len(labels) for labels in levels}) > 1 or not len(levels[0]):
        raise ValueError("A flow needs two or more labelings of the same rows.")
    ax = new_axes(7, 0.8 + 0.9 * len(levels)) if ax is None else ax
    above: dict[int, tuple[float, float]] = {}
    before: np.ndarray | None = None
    for depth, labels in enumerate(levels):
        places = places_below(labels, None, {})  # in the order of their numbers
        if before is not None:
            draw_flows(ax, depth, before, above, labels, places)
        draw_level(ax, depth, places)
        above, before = places, labels
    level_ticks(ax, [str(title) for title in titles] or [str(at) for at in range(len(levels))])
    used = np.unique(np.concatenate(levels)).tolist()
    known = [number for number in used if 0 <= number < len(names) and names[number] != str(number)]
    for number in known:
        ax.fill_between([], [], [], color=colors([number])[0], label=names[number])
    if known:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=SMALL)
    ax.set(xlim=(-0.01, 1.01))
    ax.set_xticks([])
    ax.spines[:].set_visible(False)
    return ax


def places_below(
    labels: np.ndarray, before: np.ndarray | None, above: dict[int, tuple[float, float]]
) -> dict[int, tuple[float, float]]:
    """Where each cluster of a level lies, from 0 to 1, in the order of where its rows come from.

    >>> places_below(np.array([0, 0, 1, 1]), None, {})
    {0: (0.0, 0.375), 1: (0.625, 1.0)}
    """
    clusters, sizes = np.unique(labels, return_counts=True)
    if before is not None:
        middle = {number: (left + right) / 2 for number, (left, right) in above.items()}
        came_from = np.array([middle[number] for number in before.tolist()])  # (n_sample,)
        order = np.argsort([came_from[labels == cluster].mean() for cluster in clusters])
        clusters, sizes = clusters[order], sizes[order]
    gap = GAPS / (len(clusters) - 1) if len(clusters) > 1 else 0.0
    widths = sizes / sizes.sum() * (1 - GAPS if len(clusters) > 1 else 1)
    lefts = np.cumsum([0.0, *(widths[:-1] + gap)])
    return {
        int(cluster): (float(left), float(left + width))
        for cluster, left, width in zip(clusters, lefts, widths, strict=True)
    }


def draw_flows(
    ax: Axes,
    depth: int,
    before: np.ndarray,
    above: dict[int, tuple[float, float]],
    labels: np.ndarray,
    below: dict[int, tuple[float, float]],
) -> None:
    """Bands from the clusters of a level to those of the next, in the color of where they go."""
    pairs, counts = np.unique(np.stack([before, labels]), axis=1, return_counts=True)
    flows = {(a, b): n for (a, b), n in zip(pairs.T.tolist(), counts.tolist(), strict=True)}
    starts = {number: left for number, (left, _) in above.items()}
    ends = {number: left for number, (left, _) in below.items()}
    sizes_above, sizes_below = sizes_of(before), sizes_of(labels)
    y = np.linspace(depth - 1 + BAR / 2, depth - BAR / 2, 24)
    ease = np.linspace(0, 1, 24) ** 2 * (3 - 2 * np.linspace(0, 1, 24))  # flat at both ends
    # From left to right on both sides, so that the bands of a cluster do not cross each other.
    for a, b in sorted(flows, key=lambda pair: (above[pair[0]], below[pair[1]])):
        n = flows[a, b]
        wide_above = (above[a][1] - above[a][0]) * n / sizes_above[a]
        wide_below = (below[b][1] - below[b][0]) * n / sizes_below[b]
        left = starts[a] + (ends[b] - starts[a]) * ease
        width = wide_above + (wide_below - wide_above) * ease
        starts[a], ends[b] = starts[a] + wide_above, ends[b] + wide_below
        if n >= THINNEST * len(labels):
            ax.fill_betweenx(y, left, left + width, color=colors([b])[0], alpha=0.32, lw=0)


def sizes_of(labels: np.ndarray) -> dict[int, int]:
    clusters, sizes = np.unique(labels, return_counts=True)
    return dict(zip(clusters.tolist(), sizes.tolist(), strict=True))


def draw_level(ax: Axes, depth: int, places: dict[int, tuple[float, float]]) -> None:
    """The clusters of one k as bars with their numbers."""
    for number, (left, right) in places.items():
        color = colors([number])[0]
        ax.fill_between([left, right], depth - BAR / 2, depth + BAR / 2, color=color, lw=0)
        wide = right - left > NARROW
        if not wide and len(places) > MOST_NARROW:
            continue
        ax.text(
            (left + right) / 2,
            depth if wide else depth - BAR / 2 - 0.02,
            "none" if number == NOISE else str(number),
            ha="center",
            va="center" if wide else "bottom",
            fontsize=SMALL if wide else SMALL - 2,
            color=ink_on(color) if wide else INK,
        )


def ink_on(color: str) -> str:
    """White on dark colors, dark on light ones.

    >>> ink_on("#000000"), ink_on("#E69F00")
    ('white', '#333333')
    """
    red, green, blue = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.55 else INK


def level_ticks(ax: Axes, ks: Sequence[int | str]) -> Any:
    ax.set_ylim(len(ks) - 0.6, -0.4)  # the fewest clusters on top
    ax.set_yticks(range(len(ks)), [str(k) for k in ks], fontsize=TEXT)
    ax.tick_params(length=0)
    return ax.get_yticklabels()


def scatter(ax: Axes, points: ArrayLike, labels: ArrayLike, title: str = "") -> Axes:
    """Points in the plane in the colors of their labels, gray for -1."""
    points = np.asarray(points)
    points = plane_of(points)(points)  # (n, 2)
    size = float(np.clip(4_000 / max(len(points), 1), 0.5, 4))
    # In a random order, or the last cluster would cover all others.
    order = np.random.default_rng(0).permutation(len(points))
    ax.scatter(
        points[order, 0],
        points[order, 1],
        c=np.array(colors(labels))[order],
        s=size,
        lw=0,
        rasterized=True,
    )
    ax.margins(0.06)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set(color="#BBBBBB", lw=0.8)
    ax.set_title(title, fontsize=TEXT, color=INK)
    return ax


@dataclass(frozen=True)
class Plane:
    """A plane to draw points in: a center and two directions."""

    center: np.ndarray  # (d,)
    directions: np.ndarray  # (d, 2)
    share: float  # of the variance that can be seen

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return (points - self.center) @ self.directions


def plane_of(points: ArrayLike) -> Plane:
    """Two columns unchanged, one beside zeros, more by their two main components.

    >>> plane_of([[3.0, 0, 0], [-3, 0, 0], [0, 1, 0], [0, -1, 0]]).directions.T + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    points = np.asarray(points)
    d = points.shape[1]
    if d <= 2 or len(points) < 2:
        return Plane(np.zeros(d), np.eye(d, 2), 1.0)
    with np.errstate(invalid="ignore"):  # points that are all the same have no variance
        from sklearn.decomposition import PCA

        pca = PCA(2, random_state=0).fit(points.astype(np.float64))
    # A component has no sign of its own; scikit-learn makes its largest entry positive.
    share = pca.explained_variance_ratio_.sum() if pca.explained_variance_.any() else 1.0
    return Plane(pca.mean_, pca.components_.T, float(share))


def colors(labels: ArrayLike) -> list[str]:
    """A color for each label; the palette repeats if there are more labels, and -1 is gray.

    >>> colors([0, 10, -1])
    ['#0072B2', '#0072B2', '#C8C8C8']
    """
    return [
        NO_LABEL if label == NOISE else PALETTE[int(label) % len(PALETTE)]
        for label in np.asarray(labels)
    ]


def new_axes(width: float = 4, height: float = 3.6) -> Axes:
    return new_figure(width, height).subplots()


def new_figure(width: float, height: float) -> Figure:
    """A white figure that pyplot does not know: nothing to close, no window, no backend."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            'Plots need matplotlib. Install it with: pip install "deccs[report]"'
        ) from error
    return Figure((width, height), dpi=DPI, layout="constrained", facecolor="white")
