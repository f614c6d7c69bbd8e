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
    embeddings: Sequence[np.ndarray],
    *,
    best_round: int = -1,
    middle_round: int | None = None,
) -> Figure:
    """Figures 1 and 2 of the paper: how the embedding changes, and what the members make of it.

    ``embeddings`` are those of all points at the start of each round. The strip on top has the data
    and three of them in the colours of ``truth``; below is every member's partition in round 0 and
    in ``best_round``, of the sample it saw there, with its ARI.
    """
    figure = new_figure(10, 7.3)
    _, truth = np.unique(np.asarray(truth), return_inverse=True)
    last = range(len(rounds))[best_round]
    middle = most_halfway(rounds, last) if middle_round is None else middle_round
    updates = "update" if middle == 1 else "updates"
    strip, grid = figure.subfigures(2, 1, height_ratios=[1.12, 2], hspace=0.04)

    panels = strip.subplots(1, 4)
    scatter(panels[0], X, truth, title="(a)  Data")
    for ax, number, title in zip(
        panels[1:], [0, middle, last],
        ["(b)  Autoencoder", f"(c)  After {middle} {updates}", "(d)  Consensus representation"], strict=True,
    ):
        scatter(ax, embeddings[number], truth, title=title)
        ax.set_xlabel(f"agreement {rounds[number].agreement:.2f}", fontsize=SMALL, color=INK)

    names = list(dict.fromkeys([*rounds[0].member_names, *rounds[last].member_names]))
    rows = grid.subplots(2, len(names), squeeze=False)
    for row, number, side in zip(rows, [0, last], ["Autoencoder", "Consensus repr."], strict=True):
        for ax, name in zip(row, names, strict=True):
            plot_member(rounds[number], name, embeddings[number], truth, ax)
        row[0].set_ylabel(side, fontsize=TEXT, color=INK)
    return figure


def plot_member(this: Round, name: str, Z: np.ndarray, truth: np.ndarray, ax: Axes | None = None) -> Axes:
    """One member's partition of a round's sample on the embedding ``Z`` of all points, and its ARI.

    Clusters have the colour of the class they meet best; points without a label are grey.
    """
    ax = new_axes() if ax is None else ax
    short = SHORT_NAMES.get(name, name)
    if name not in this.member_names:
        scatter(ax, Z[this.sample], np.full(len(this.sample), NOISE), title=f"{short}  left out")
        return ax
    partition = this.base_partitions[this.member_names.index(name)]        # (n_sample,)
    classes = truth[this.sample]
    labelled = partition != NOISE
    score = ari(classes[labelled], partition[labelled])
    scatter(ax, Z[this.sample], align_labels(partition, classes), title=f"{short}  ARI {score:.2f}")
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
    ax.xaxis.get_major_locator().set_params(integer=True)
    lines = ax.get_lines()
    updates = [(this.number + 0.5, this.losses) for this in model.rounds_ if this.losses is not None]
    if updates:
        right = ax.twinx()
        for term, color in zip(["reconstruction", "classification", "consensus"], PALETTE[1:4], strict=True):
            right.plot([place for place, _ in updates], [getattr(losses, term) for _, losses in updates],
                       color=color, lw=1.2, ls="--", label=f"{term} loss")
        right.set_ylabel("loss")
        right.set_ylim(bottom=0)
        for spine in ("top", "left"):
            right.spines[spine].set_visible(False)
        lines = [*lines, *right.get_lines()]
    ax.spines["top"].set_visible(False)
    ax.spines["right"].set_visible(bool(updates))
    ax.legend(lines, [line.get_label() for line in lines], frameon=False, fontsize=SMALL, ncols=3,
              loc="lower center", bbox_to_anchor=(0.5, 1))
    return ax


def plot_agreement(model: DECCS, ax: Axes | None = None) -> Axes:
    """The NMI of every two members in the best round."""
    check_is_fitted(model)
    ax = new_axes() if ax is None else ax
    best = model.rounds_[model.best_round_]
    matrix = best.agreement_matrix                                         # (n_members, n_members)
    names = [SHORT_NAMES.get(name, name) for name in best.member_names]
    ax.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(matrix.shape):
        ax.text(j, i, f"{matrix[i, j]:.2f}", ha="center", va="center", fontsize=TEXT,
                color="white" if matrix[i, j] > 0.6 else INK)
    ax.set_xticks(range(len(names)), names, fontsize=TEXT)
    ax.set_yticks(range(len(names)), names, fontsize=TEXT)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(f"Round {model.best_round_}, agreement {model.agreement_:.2f}", fontsize=TEXT, color=INK)
    return ax


def scatter(ax: Axes, points: ArrayLike, labels: ArrayLike, title: str = "") -> Axes:
    """Points in the plane in the colours of their labels, grey for -1."""
    points = in_the_plane(points)
    size = float(np.clip(6_000 / max(len(points), 1), 0.5, 9))
    # An order of its own, or the last cluster would lie on top of all others.
    order = np.random.default_rng(0).permutation(len(points))
    ax.scatter(*points[order].T, c=np.array(colours(labels))[order], s=size, lw=0, rasterized=True)
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
