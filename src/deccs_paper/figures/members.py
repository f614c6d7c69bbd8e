"""Parts of figures 1, 2 and 9: members and true classes, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from deccs.labels import NOISE, align_labels
from deccs.plots import INK, SHORT_NAMES, TEXT, new_axes, new_figure, scatter
from deccs.rounds.records import Round
from deccs.scores import ari

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def before_and_after(
    X: ArrayLike,
    truth: ArrayLike,
    rounds: Sequence[Round],
    *,
    best_round: int = -1,
    middle_round: int | None = None,
) -> Figure:
    """Figures 1 and 2 of the paper in one: how the embedding changes, and how the members cluster it."""
    figure = new_figure(10, 7)
    places = figure.add_gridspec(2, 1, height_ratios=[1.13, 2])
    embeddings(figure.add_subfigure(places[0]), X, truth, rounds, best_round, middle_round)
    member_grid(figure.add_subfigure(places[1]), truth, rounds, best_round)
    return figure


def embeddings(
    place: Any,
    X: ArrayLike,
    truth: ArrayLike,
    rounds: Sequence[Round],
    best_round: int,
    middle_round: int | None = None,
) -> None:
    """The data and the embeddings of three rounds, in the colors of ``truth``."""
    _, truth = np.unique(np.asarray(truth), return_inverse=True)
    last = range(len(rounds))[best_round]
    middle = most_halfway(rounds, last) if middle_round is None else middle_round
    updates = "update" if middle == 1 else "updates"
    panels = place.subplots(1, 4)
    scatter(panels[0], X, truth, title="(a)  Data")
    for ax, number, title in zip(
        panels[1:],
        [0, middle, last],
        ["(b)  Autoencoder", f"(c)  After {middle} {updates}", "(d)  Consensus representation"],
        strict=True,
    ):
        scatter(ax, rounds[number].Z, truth[rounds[number].sample], title=title)
        ax.set_xlabel(f"agreement {rounds[number].agreement:.2f}", fontsize=TEXT, color=INK)
    panels[0].set_ylabel("True classes", fontsize=TEXT, color=INK)


def member_grid(place: Any, truth: ArrayLike, rounds: Sequence[Round], best_round: int) -> None:
    """Every member's partition in round 0 and in ``best_round``, of the round's sample, with its ARI."""
    _, truth = np.unique(np.asarray(truth), return_inverse=True)
    last = rounds[best_round]
    names = list(dict.fromkeys([*rounds[0].member_names, *last.member_names]))
    rows = place.subplots(2, len(names), squeeze=False)
    for row, round_, side in zip(
        rows, [rounds[0], last], ["Autoencoder", "Consensus representation"], strict=True
    ):
        for ax, name in zip(row, names, strict=True):
            plot_member(round_, name, truth, ax)
        row[0].set_ylabel(side, fontsize=TEXT, color=INK)


def plot_member(round_: Round, name: str, truth: np.ndarray, ax: Axes | None = None) -> Axes:
    """One member's partition of a round's sample, and its ARI.

    Clusters have the color of the class they overlap most; points without a label are gray.
    """
    ax = new_axes() if ax is None else ax
    short = SHORT_NAMES.get(name, name)
    if name not in round_.member_names:
        scatter(ax, round_.Z, np.full(len(round_.sample), NOISE), title=f"{short}  left out")
        return ax
    partition = round_.base_partitions[round_.member_names.index(name)]  # (n_sample,)
    classes = truth[round_.sample]
    labeled = partition != NOISE
    score = ari(classes[labeled], partition[labeled])
    scatter(ax, round_.Z, align_labels(partition, classes), title=f"{short}  ARI {score:z.2f}")
    return ax


def most_halfway(rounds: Sequence[Round], last: int) -> int:
    """The round between 0 and ``last`` whose agreement is closest to halfway between theirs."""
    halfway = (rounds[0].agreement + rounds[last].agreement) / 2
    return min(
        range(1, last), key=lambda number: abs(rounds[number].agreement - halfway), default=last
    )
