"""Pictures of a fit. They need matplotlib, ``pip install "deccs[report]"``, and leave pyplot alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from deccs.agreement import NOISE, align_labels
from deccs.estimator import DECCS
from deccs.rounds import Round
from deccs.scores import ari

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which the colour-blind can tell apart, and three of Tol's for more clusters.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#882255", "#999933", "#332288", "#000000")
NO_LABEL = "#C8C8C8"
INK = "#333333"
SHORT_NAMES = {"kmeans": "KM", "spectral": "SC", "agglomerative": "AGG", "mixture": "GMM"}
TEXT, SMALL = 10, 8.5
DPI = 150


def before_and_after(
    X: ArrayLike,
    truth: ArrayLike,
    rounds: Sequence[Round],
    *,
    best_round: int = -1,
    middle_round: int | None = None,
) -> Figure:
    """Figures 1 and 2 of the paper: how the embedding changes, and what the members make of it.

    The strip on top has the data and the embeddings of three rounds in the colours of ``truth``; below
    is every member's partition in round 0 and in ``best_round``, of the sample it saw, with its ARI.
    """
    figure = new_figure(10, 7)
    _, truth = np.unique(np.asarray(truth), return_inverse=True)
    last = range(len(rounds))[best_round]
    middle = most_halfway(rounds, last) if middle_round is None else middle_round
    updates = "update" if middle == 1 else "updates"
    places = figure.add_gridspec(2, 1, height_ratios=[1.13, 2])
    strip, grid = figure.add_subfigure(places[0]), figure.add_subfigure(places[1])

    panels = strip.subplots(1, 4)
    scatter(panels[0], X, truth, title="(a)  Data")
    for ax, number, title in zip(
        panels[1:], [0, middle, last],
        ["(b)  Autoencoder", f"(c)  After {middle} {updates}", "(d)  Consensus representation"], strict=True,
    ):
        scatter(ax, rounds[number].Z, truth[rounds[number].sample], title=title)
        ax.set_xlabel(f"agreement {rounds[number].agreement:.2f}", fontsize=TEXT, color=INK)
    panels[0].set_ylabel("True classes", fontsize=TEXT, color=INK)

    names = list(dict.fromkeys([*rounds[0].member_names, *rounds[last].member_names]))
    rows = grid.subplots(2, len(names), squeeze=False)
    for row, number, side in zip(rows, [0, last], ["Autoencoder", "Consensus representation"], strict=True):
        for ax, name in zip(row, names, strict=True):
            plot_member(rounds[number], name, truth, ax)
        row[0].set_ylabel(side, fontsize=TEXT, color=INK)
    return figure


def plot_member(this: Round, name: str, truth: np.ndarray, ax: Axes | None = None) -> Axes:
    """One member's partition of a round's sample, and its ARI.

    Clusters have the colour of the class they meet best; points without a label are grey.
    """
    ax = new_axes() if ax is None else ax
    short = SHORT_NAMES.get(name, name)
    if name not in this.member_names:
        scatter(ax, this.Z, np.full(len(this.sample), NOISE), title=f"{short}  left out")
        return ax
    partition = this.base_partitions[this.member_names.index(name)]        # (n_sample,)
    classes = truth[this.sample]
    labelled = partition != NOISE
    score = ari(classes[labelled], partition[labelled])
    scatter(ax, this.Z, align_labels(partition, classes), title=f"{short}  ARI {score:.2f}")
    return ax


def plot_embedding(model: DECCS, X: Any, ax: Axes | None = None, color: ArrayLike | None = None) -> Axes:
    """The consensus representation of X, by its two main components if it has more than two.

    ``color`` is a label per point; the model's own by default.
    """
    check_is_fitted(model)
    labels = model.predict(X) if color is None else color
    return scatter(new_axes() if ax is None else ax, model.transform(X), labels, title="Consensus representation")


def plot_rounds(model: DECCS, ax: Axes | None = None) -> Axes:
    """Agreement over the rounds (left axis), and the losses of the updates between them (right)."""
    check_is_fitted(model)
    ax = new_axes(5.5, 3.4) if ax is None else ax
    numbers = [this.number for this in model.rounds_]
    ax.plot(numbers, [this.agreement for this in model.rounds_], color=PALETTE[0], lw=2.2, marker="o", ms=4,
            label="agreement")
    ax.plot(model.best_round_, model.agreement_, "o", ms=11, mfc="none", mec=PALETTE[0], mew=1.5,
            label=f"best round: {model.best_round_}")
    ax.set(xlabel="round", ylabel="agreement", ylim=(-0.03, 1.06))
    ax.locator_params(axis="x", integer=True)
    lines = list(ax.get_lines())
    updates = [(this.number + 0.5, this.losses) for this in model.rounds_ if this.losses is not None]
    if updates:
        right = ax.twinx()
        for term, color in zip(["reconstruction", "classification", "consensus"], PALETTE[1:4], strict=True):
            values = np.array([getattr(losses, term) for _, losses in updates])
            values = np.where(values > 0, values, np.nan)  # 0: the term was switched off in that update
            right.plot([place for place, _ in updates], values, color=color, lw=1.2, ls="--", marker=".", ms=4,
                       label=f"{term} loss")
        right.set(ylabel="loss", yscale="log")
        for spine in ("top", "left"):
            right.spines[spine].set_visible(False)
        lines += right.get_lines()
    ax.spines["top"].set_visible(False)
    ax.spines["right"].set_visible(bool(updates))
    ax.legend(lines, [str(line.get_label()) for line in lines], frameon=False, fontsize=SMALL, ncols=3,
              loc="lower center", bbox_to_anchor=(0.5, 1))
    return ax


def plot_agreement(model: DECCS, ax: Axes | None = None) -> Axes:
    """The NMI of every two members in the best round."""
    check_is_fitted(model)
    ax = new_axes() if ax is None else ax
    best = model.rounds_[model.best_round_]
    matrix = best.agreement_matrix                                         # (n_members, n_members)
    names = [SHORT_NAMES.get(name, name) for name in best.member_names]
    ax.pcolormesh(matrix, cmap="Blues", vmin=0, vmax=1, edgecolors="white", lw=2)
    ax.set_aspect("equal")
    ax.invert_yaxis()
    for i, j in np.ndindex(matrix.shape):
        ax.text(j + 0.5, i + 0.5, f"{matrix[i, j]:.2f}", ha="center", va="center", fontsize=TEXT,
                color="white" if matrix[i, j] > 0.6 else INK)
    places = np.arange(len(names)) + 0.5
    ax.set_xticks(places, names, fontsize=TEXT)
    ax.set_yticks(places, names, fontsize=TEXT)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(f"NMI of the members in round {model.best_round_}: {model.agreement_:.2f}", fontsize=TEXT, color=INK)
    return ax


def scatter(ax: Axes, points: ArrayLike, labels: ArrayLike, title: str = "") -> Axes:
    """Points in the plane in the colours of their labels, grey for -1."""
    points = in_the_plane(points)
    size = float(np.clip(4_000 / max(len(points), 1), 0.5, 4))
    # An order of its own, or the last cluster would lie on top of all others.
    order = np.random.default_rng(0).permutation(len(points))
    ax.scatter(points[order, 0], points[order, 1], c=np.array(colours(labels))[order], s=size, lw=0, rasterized=True)
    ax.margins(0.06)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set(color="#BBBBBB", lw=0.8)
    ax.set_title(title, fontsize=TEXT, color=INK)
    return ax


def in_the_plane(points: ArrayLike) -> np.ndarray:
    """(n, 2): two columns as they are, one beside zeros, more by their two main components.

    >>> in_the_plane([[1.0], [2.0]])
    array([[1., 0.],
           [2., 0.]])
    """
    points = np.asarray(points)
    if points.shape[1] > 2 and len(points) > 1:
        return PCA(2, random_state=0).fit_transform(points)
    return np.pad(points[:, :2], [(0, 0), (0, 2 - min(points.shape[1], 2))])


def colours(labels: ArrayLike) -> list[str]:
    """A colour for each label, the palette again from its start if there are more; -1 is grey.

    >>> colours([0, 10, -1])
    ['#0072B2', '#0072B2', '#C8C8C8']
    """
    return [NO_LABEL if label == NOISE else PALETTE[int(label) % len(PALETTE)] for label in np.asarray(labels)]


def most_halfway(rounds: Sequence[Round], last: int) -> int:
    """The round between 0 and ``last`` whose agreement is nearest to half way between theirs."""
    halfway = (rounds[0].agreement + rounds[last].agreement) / 2
    return min(range(1, last), key=lambda number: abs(rounds[number].agreement - halfway), default=last)


def new_axes(width: float = 4, height: float = 3.6) -> Axes:
    return new_figure(width, height).subplots()


def new_figure(width: float, height: float) -> Figure:
    """A white figure that pyplot does not know of: nothing to close, no window, no backend."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('Pictures need matplotlib. Install it with: pip install "deccs[report]"') from error
    return Figure((width, height), dpi=DPI, layout="constrained", facecolor="white")
