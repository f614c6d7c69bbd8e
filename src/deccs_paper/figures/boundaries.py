"""The members' classifiers in the plane: regions behind the points, and the line between two clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from deccs.labels import NOISE, align_labels
from deccs.plots import INK, PALETTE, scatter
from deccs.rounds.classifiers import Classifiers, classify, logits, split_sample
from deccs.rounds.records import Round
from deccs.seeds import generator_for, seed_for
from deccs.settings import Rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FINENESS = 240  # points of the grid along each axis


def classifiers_of(round_: Round, root: int) -> Classifiers:
    """The classifiers of a round as they were before its update, trained again: a fit keeps those of one round.

    ``root`` is the seed of the fit. Seeds are derived from where they are used, so the weights are
    the same as in that round.
    """
    start = root if round_.start == 0 else seed_for(root, "start", round_.start)
    seed = seed_for(start, "round", round_.number)
    train, held_out = split_sample(
        round_.base_partitions, Rounds().held_out, generator_for(seed, "split")
    )
    labels = torch.from_numpy(round_.base_partitions.T.copy())  # (n_sample, n_members)
    return classify(
        torch.from_numpy(round_.Z), labels, train, held_out, generator_for(seed, "classify")
    )


def renaming(partition: np.ndarray, classes: np.ndarray, n_clusters: int) -> np.ndarray:
    """(n_clusters,): for each cluster the class it overlaps most, one to one.

    >>> renaming(np.array([1, 1, 0]), np.array([0, 0, 1]), n_clusters=3)
    array([1, 0, 2])
    """
    clusters = np.arange(n_clusters)
    unknown = np.full(n_clusters, NOISE)
    return align_labels(np.concatenate([partition, clusters]), np.concatenate([classes, unknown]))[
        -n_clusters:
    ]


def plot_classifier(
    round_: Round,
    classifiers: Classifiers,
    member: int,
    truth: np.ndarray,
    ax: Axes,
    title: str = "",
) -> Axes:
    """A member's partition, and behind it the regions of its classifier; colors as in plot_member."""
    partition = round_.base_partitions[member]
    names = renaming(partition, truth[round_.sample], classifiers.weight.shape[1])
    scatter(ax, round_.Z, np.where(partition == NOISE, NOISE, names[partition]), title=title)
    X, Y, values = over_the_plane(ax, classifiers, member)  # (f, f), (f, f), (f, f, n_clusters)
    predictions = names[values.argmax(axis=2)]  # (f, f)
    shown = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in PALETTE])
    ax.imshow(
        shown[predictions % len(PALETTE)],
        extent=(X.min(), X.max(), Y.min(), Y.max()),
        origin="lower",
        alpha=0.28,
        aspect="auto",
        zorder=-1,
    )
    for cluster in np.unique(predictions):
        region = (predictions == cluster).astype(float)
        ax.contour(X, Y, region, levels=[0.5], colors=INK, linewidths=0.5)
    return ax


def plot_boundary(ax: Axes, classifiers: Classifiers, member: int = 0) -> Axes:
    """The dashed line between the first two clusters of a member; the axes keep their limits."""
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
    """A grid over the axes, which keep their limits, and the member's logits on it."""
    left, right, bottom, top = *ax.get_xlim(), *ax.get_ylim()
    ax.set(xlim=(left, right), ylim=(bottom, top))
    X, Y = np.meshgrid(np.linspace(left, right, FINENESS), np.linspace(bottom, top, FINENESS))
    values = logits(classifiers, np.column_stack([X.ravel(), Y.ravel()]))[:, member]
    return X, Y, values.reshape(*X.shape, -1)
