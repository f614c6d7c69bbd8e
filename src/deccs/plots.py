"""Plots of a fit. They need matplotlib, ``pip install "deccs[report]"``, and do not touch pyplot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

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
    check_is_fitted(model)
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
    check_is_fitted(model)
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
    check_is_fitted(model)
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
