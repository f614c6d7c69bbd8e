"""The members' classifiers in the plane: their regions behind the points, the line between two clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from deccs.estimator import logits
from deccs.labels import NOISE, align_labels
from deccs.plots import INK, PALETTE, scatter
from deccs.rounds.algorithm import split_sample
from deccs.rounds.classifiers import Classifiers, classify
from deccs.rounds.records import Round
from deccs.seeds import generator_for, seed_for
from deccs.settings import RoundSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FINENESS = 240  # points of the grid along each axis


def classifiers_of(this: Round, root: int) -> Classifiers:
    """The classifiers of a round as they were before its update, trained again: a fit keeps those of one round.

    ``root`` is the seed of the fit. Seeds hang on places, so these have the very weights of that round.
    """
    start = root if this.start == 0 else seed_for(root, "start", this.start)
    seed = seed_for(start, "round", this.number)
    train, held_out = split_sample(
        this.base_partitions, RoundSettings.held_out, generator_for(seed, "split")
    )
    labels = torch.from_numpy(this.base_partitions.T.copy())  # (n_sample, n_members)
    return classify(
        torch.from_numpy(this.Z), labels, train, held_out, generator_for(seed, "classify")
    )


def renaming(partition: np.ndarray, classes: np.ndarray, n_clusters: int) -> np.ndarray:
    """(n_clusters,): for each cluster the class it meets best, one to one.

    >>> renaming(np.array([1, 1, 0]), np.array([0, 0, 1]), n_clusters=3)
    array([1, 0, 2])
    """
    clusters = np.arange(n_clusters)
    unknown = np.full(n_clusters, NOISE)
    return align_labels(np.concatenate([partition, clusters]), np.concatenate([classes, unknown]))[
        -n_clusters:
    ]


def plot_classifier(
    this: Round, classifiers: Classifiers, member: int, truth: np.ndarray, ax: Axes, title: str = ""
) -> Axes:
    """A member's partition, and behind it what its classifier says of every place; colors as in plot_member."""
    partition = this.base_partitions[member]
    names = renaming(partition, truth[this.sample], classifiers.weight.shape[1])
    scatter(ax, this.Z, np.where(partition == NOISE, NOISE, names[partition]), title=title)
    X, Y, values = over_the_plane(ax, classifiers, member)  # (f, f), (f, f), (f, f, n_clusters)
    said = names[values.argmax(axis=2)]
    shown = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in PALETTE])
    ax.imshow(
        shown[said % len(PALETTE)],
        extent=(X.min(), X.max(), Y.min(), Y.max()),
        origin="lower",
        alpha=0.28,
        aspect="auto",
        zorder=-1,
    )
    for cluster in np.unique(said):
        ax.contour(X, Y, (said == cluster).astype(float), levels=[0.5], colors=INK, linewidths=0.5)
    return ax


def plot_boundary(ax: Axes, classifiers: Classifiers, member: int = 0) -> Axes:
    """The line between the first two clusters of a member, dashed, over the axes as they are."""
    X, Y, values = over_the_plane(ax, classifiers, member)
    ax.contour(
        X,
        Y,
        values[:, :, 0] - values[:, :, 1],
        levels=[0.0],
        colors="black",
        linestyles="dashed",
        linewidths=1.4,
    )
    return ax


def over_the_plane(
    ax: Axes, classifiers: Classifiers, member: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A grid over the axes, whose limits stay, and the member's logits on it."""
    left, right, bottom, top = *ax.get_xlim(), *ax.get_ylim()
    ax.set(xlim=(left, right), ylim=(bottom, top))
    X, Y = np.meshgrid(np.linspace(left, right, FINENESS), np.linspace(bottom, top, FINENESS))
    values = logits(classifiers, np.column_stack([X.ravel(), Y.ravel()]))[:, member]
    return X, Y, values.reshape(*X.shape, -1)
