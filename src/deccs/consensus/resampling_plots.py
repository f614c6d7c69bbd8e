"""The plots of ConsensusClusterPlus, for :class:`deccs.ConsensusMatrix`. They need matplotlib."""

from __future__ import annotations

import colorsys
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from deccs.labels import NOISE, align_labels
from deccs.plots import INK, NO_LABEL, PALETTE, SMALL, TEXT, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MORE_COLORS = (  # unlike those of the palette, and unlike each other
    "#F0E442",
    "#7B3FBF",
    "#B3DE69",
    "#A65628",
    "#E41A1C",
    "#00C8C8",
    "#FFB3A7",
    "#7F7F7F",
    "#B39DDB",
    "#1B5E20",
)
GOLDEN = 0.618034  # of a turn: hues in these steps are spread evenly, however many there are


class Fitted(Protocol):
    """What the plots need of a fitted ConsensusMatrix."""

    k_range_: np.ndarray  # (n_k,)
    delta_area_: np.ndarray  # (n_k,)
    pac_: np.ndarray  # (n_k,)
    tracked_: np.ndarray  # (n_tracked,)
    shown_: np.ndarray  # (n_shown,)

    def cdf(self, k: int, grid: Any = None) -> np.ndarray: ...
    def matrix(self, k: int, rows: Any = None) -> np.ndarray: ...
    def labels_at(self, k: int) -> np.ndarray: ...
    def item_consensus(self, k: int) -> np.ndarray: ...
    def cluster_consensus(self, k: int) -> np.ndarray: ...


def plot_cdf(model: Fitted, ax: Axes | None = None) -> Axes:
    """The CDF of the consensus index, one curve per k."""
    ax = new_axes(5.2, 3.6) if ax is None else ax
    grid = np.linspace(0, 1, 501)
    for k, color in zip(model.k_range_, cluster_colors(len(model.k_range_)), strict=True):
        ax.plot(
            grid,
            model.cdf(k, grid),
            color=color,
            lw=1.8,
            drawstyle="steps-post",
            label=str(k),
        )
    ax.set(xlabel="consensus index", ylabel="CDF", xlim=(0, 1), ylim=(0, 1.02))
    legend_beside(ax, "k")
    return finished(ax, "consensus CDF")


def plot_delta_area(model: Fitted, ax: Axes | None = None) -> Axes:
    """The relative change in the area under the CDF; the first point is the area itself."""
    ax = new_axes(4.6, 3.4) if ax is None else ax
    ax.axhline(0, color="#BBBBBB", lw=0.8)
    ax.plot(
        model.k_range_,
        model.delta_area_,
        color=PALETTE[0],
        lw=1.8,
        marker="o",
        ms=5,
    )
    ax.set_xticks(model.k_range_)
    ax.set(xlabel="k", ylabel="relative change in area\nunder CDF curve")
    return finished(ax, "Delta area")


def plot_heatmap(model: Fitted, k: int, ax: Axes | None = None) -> Axes:
    """The consensus matrix of the shown rows, by cluster and within it by the tree; gray: no index."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    ax = new_axes(4.9, 4.1) if ax is None else ax
    consensus, labels = model.matrix(k), model.labels_at(k)[model.shown_]
    order = row_order(consensus, labels)
    # From white, as in ConsensusClusterPlus: 0 is most of the picture.
    shades = ["white", *colormaps["Blues"](np.linspace(0.15, 0.95, 8))]
    blues = LinearSegmentedColormap.from_list("consensus", shades).with_extremes(bad=NO_LABEL)
    image = ax.imshow(
        np.ma.masked_invalid(consensus[np.ix_(order, order)]),
        cmap=blues,
        vmin=0,
        vmax=1,
        interpolation="nearest",
        aspect="equal",
    )
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set(color="#BBBBBB", lw=0.8)
    strip(ax, labels[order], (0, 1.01, 1, 0.035))
    legend_of_clusters(ax, labels)
    bar = ax.figure.colorbar(image, ax=ax, location="bottom", shrink=0.6, pad=0.03, aspect=25)
    bar.set_label("consensus index", fontsize=SMALL, color=INK)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set(edgecolor="#BBBBBB", lw=0.8)
    ax.set_title(f"consensus matrix k={k}", fontsize=TEXT, color=INK, pad=16)
    return ax


def plot_tracking(model: Fitted, ax: Axes | None = None) -> Axes:
    """The cluster of each shown row for each k: columns that change color between clusters move."""
    ks = model.k_range_
    ax = new_axes(6, 1.3 + 0.26 * len(ks)) if ax is None else ax
    partitions = tracked_labels([model.labels_at(k)[model.shown_] for k in ks])  # (n_k, n_shown)
    # By the first k, then by the next: rows that stay together stand together. Noise is last.
    order = np.lexsort(np.where(partitions == NOISE, partitions.max() + 1, partitions)[::-1])
    ax.imshow(
        colored(partitions[:, order]),
        aspect="auto",
        interpolation="nearest",
        extent=(0, len(order), len(ks), 0),
    )
    for line in range(1, len(ks)):
        ax.axhline(line, color="white", lw=1.5)
    ax.set_yticks(np.arange(len(ks)) + 0.5, [str(k) for k in ks])
    ax.set_xticks([])
    ax.tick_params(length=0, labelsize=SMALL)
    ax.set(xlabel=f"items ({len(order):,} rows)", ylabel="k")
    ax.spines[:].set_visible(False)
    legend_of_clusters(ax, partitions.ravel())
    ax.set_title("tracking plot", fontsize=TEXT, color=INK)
    return ax


def plot_item_consensus(model: Fitted, k: int, ax: Axes | None = None) -> Axes:
    """The item consensus of the shown rows: a stack per row, a color per cluster.

    The strip below has the color of the row's own cluster. A row of one high color is stable.
    """
    ax = new_axes(6, 3.4) if ax is None else ax
    labels = model.labels_at(k)[model.shown_]  # (n_shown,)
    places = np.searchsorted(model.tracked_, model.shown_)
    values = np.nan_to_num(model.item_consensus(k)[places])  # (n_shown, n_clusters)
    padded = np.pad(values, ((0, 0), (0, 1)))  # noise, -1, is the last column
    own = padded[np.arange(len(labels)), labels]
    order = np.lexsort((-own, np.where(labels == NOISE, len(labels), labels)))
    edges = np.arange(len(order) + 1)
    bottom = np.zeros(len(order))
    for cluster, color in enumerate(cluster_colors(values.shape[1])):
        top = bottom + values[order, cluster]
        ax.stairs(top, edges, baseline=bottom, fill=True, color=color, lw=0)
        bottom = top
    ax.set(xlim=(0, len(order)), ylim=(0, max(1.0, float(bottom.max(initial=0))) * 1.02))
    ax.set_xticks([])
    ax.set(ylabel="item-consensus")
    ax.set_xlabel(f"items ({len(order):,} rows, by cluster)", labelpad=14)
    strip(ax, labels[order], (0, -0.06, 1, 0.04))
    legend_of_clusters(ax, labels)
    return finished(ax, f"item-consensus k={k}")


def plot_cluster_consensus(model: Fitted, ax: Axes | None = None) -> Axes:
    """The cluster consensus of every cluster, a group of bars per k; a line at the mean of each."""
    ks = model.k_range_
    plain = [model.labels_at(k)[model.tracked_] for k in ks]
    partitions = tracked_labels(plain)  # (n_k, n_tracked)
    heights = [
        by_tracked_number(model.cluster_consensus(k), labels, tracked)
        for k, labels, tracked in zip(ks, plain, partitions, strict=True)
    ]
    width = 1.6 + 0.11 * sum(len(values) + 1.5 for values in heights)
    ax = new_axes(min(max(width, 4.6), 12), 3.2) if ax is None else ax
    palette, left, ticks = cluster_colors(int(partitions.max(initial=0)) + 1), 0.0, []
    for values in heights:
        places = left + np.arange(len(values))
        bars = np.nan_to_num(list(values.values()))  # (n_clusters,)
        ax.bar(places, bars, width=0.85, color=[palette[number] for number in values])
        known = [value for value in values.values() if not np.isnan(value)]
        if known:
            mean = float(np.mean(known))
            ax.plot([places[0] - 0.5, places[-1] + 0.5], [mean, mean], color=INK, lw=1.2)
        ticks.append(float(places.mean()))
        left += len(values) + 1.5
    ax.set_xticks(ticks, [str(k) for k in ks])
    ax.tick_params(axis="x", length=0)
    ax.set(xlabel="k", ylabel="cluster-consensus", xlim=(-1.5, left - 1), ylim=(0, 1.02))
    legend_of_clusters(ax, partitions.ravel())
    return finished(ax, "cluster-consensus")


# Order and colors


def row_order(consensus: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Rows by cluster, and within a cluster by the leaves of average linkage; noise comes last.

    >>> row_order(np.array([[1, 0, 0.9], [0, 1, 0.1], [0.9, 0.1, 1]]), np.array([0, 1, 0]))
    array([0, 2, 1])
    """
    if len(labels) < 2:
        return np.arange(len(labels))
    distances = 1 - np.nan_to_num(consensus, nan=0.0)  # (n, n)
    np.fill_diagonal(distances, 0)
    leaf = np.empty(len(labels), dtype=np.int64)
    leaf[leaves_list(linkage(squareform(distances, checks=False), "average"))] = np.arange(
        len(labels)
    )
    return np.lexsort((leaf, np.where(labels == NOISE, len(labels), labels)))


def tracked_labels(partitions: list[np.ndarray]) -> np.ndarray:
    """(n_k, n) partitions numbered alike: a cluster keeps its number as k grows, where it can.

    >>> tracked_labels([np.array([0, 0, 1, 1]), np.array([1, 1, 0, 2])])
    array([[0, 0, 1, 1],
           [0, 0, 1, 2]])
    """
    aligned = [partitions[0]]
    for labels in partitions[1:]:
        aligned.append(align_labels(labels, aligned[-1]))
    return np.stack(aligned)


def by_tracked_number(
    values: np.ndarray, labels: np.ndarray, tracked: np.ndarray
) -> dict[int, float]:
    """The value of each cluster by the number that it has in :func:`tracked_labels`, in order.

    >>> by_tracked_number(np.array([0.9, 0.5]), np.array([0, 1, 1]), np.array([3, 0, 0]))
    {0: 0.5, 3: 0.9}
    """
    clusters, first = np.unique(labels, return_index=True)
    pairs = [(int(tracked[place]), cluster) for cluster, place in zip(clusters, first, strict=True)]
    return {number: float(values[cluster]) for number, cluster in sorted(pairs) if cluster >= 0}


def cluster_colors(n: int) -> list[str]:
    """n colors of which no two are the same: the palette of all plots, then other hues.

    >>> cluster_colors(2), len(set(cluster_colors(60)))
    (['#0072B2', '#E69F00'], 60)
    """
    fixed = (*PALETTE, *MORE_COLORS)
    more = [
        colorsys.hsv_to_rgb(number * GOLDEN % 1, (0.45, 0.85)[number % 2], (0.9, 0.65)[number % 2])
        for number in range(1, n - len(fixed) + 1)
    ]
    hexes = ["#" + "".join(f"{round(255 * part):02X}" for part in color) for color in more]
    return [*fixed[:n], *hexes]


def colored(labels: np.ndarray) -> np.ndarray:
    """(...,) labels -> (..., 3) red, green and blue; gray for noise."""
    hexes = [*cluster_colors(int(labels.max(initial=0)) + 1), NO_LABEL]  # noise, -1, is the last
    rgb = np.array(
        [[int(word[place : place + 2], 16) / 255 for place in (1, 3, 5)] for word in hexes]
    )
    return rgb[labels]


# Parts of a picture


def strip(ax: Axes, labels: np.ndarray, place: tuple[float, float, float, float]) -> None:
    """A strip in the colors of the rows' clusters, beside the axes."""
    inner = ax.inset_axes(place)
    inner.imshow(colored(labels[None]), aspect="auto", interpolation="nearest")
    inner.set_axis_off()


def legend_of_clusters(ax: Axes, labels: np.ndarray) -> None:
    """A square per cluster that occurs, outside at the right."""
    from matplotlib.patches import Patch

    numbers = [int(label) for label in np.unique(labels) if label != NOISE]
    palette = cluster_colors(max(numbers, default=-1) + 1)
    handles = [Patch(color=palette[number], label=str(number)) for number in numbers]
    if NOISE in labels:
        handles.append(Patch(color=NO_LABEL, label="noise"))
    legend_beside(ax, "cluster", handles)


def legend_beside(ax: Axes, title: str, handles: list[Any] | None = None) -> None:
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    ax.legend(
        handles=handles,
        title=title,
        title_fontsize=SMALL,
        fontsize=SMALL,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0,
        handlelength=1.2,
        ncols=1 + (len(handles) - 1) // 12,
    )


def finished(ax: Axes, title: str) -> Axes:
    ax.set_title(title, fontsize=TEXT, color=INK)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax
