"""Figures of two clusters that no line separates: 4 (two rings) and 9 (half of the members at chance)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from deccs import datasets
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.members.default import Member
from deccs.network.autoencoder import Autoencoder
from deccs.plots import INK, PALETTE, SMALL, new_figure, scatter
from deccs.rounds.algorithm import learn_consensus
from deccs.rounds.records import Consensus
from deccs.scores import nmi
from deccs.seeds import seed_for
from deccs.settings import Network, Pretraining, Rounds
from deccs.training.start import starting_autoencoder
from deccs_paper.claims import all_right, is_half_at_chance
from deccs_paper.figures.boundaries import plot_boundary
from deccs_paper.figures.grids import draw_before_and_after
from deccs_paper.figures.parts import Task, claim, in_words, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NETWORK = Network(layers=(20, 20, 2))  # the paper's for SYNTH
OBJECTIVES = {  # panel -> weights of CE and cons
    "CE": (1.0, 0.0),
    "cons": (0.0, 1.0),
    "CE + cons": (1.0, 1.0),
}


def draw_fig4(task: Task) -> dict[str, Any]:
    X, truth = datasets.make_rings(100 if task.quick else 300, random_state=task.seed)
    source, root = source_of(X), seed_for(task.seed, "rings")
    rows = Rows(source, fit_scaler(source))
    n_epochs = 20 if task.quick else 100
    pretraining = Pretraining(n_epochs=n_epochs, batch_size=64, learning_rate=1e-2, input_noise=0.0)
    autoencoder = starting_autoencoder(rows, NETWORK, pretraining, root).autoencoder
    figure = new_figure(10, 2.8)
    panels = figure.subplots(1, 4)
    scatter(panels[0], X, truth, title="(a)  Data")
    centers(panels[0], X, truth)
    n_steps = 40 if task.quick else 400
    updated = {
        name: one_update(autoencoder, rows, truth, *weights, n_steps=n_steps, root=root)
        for name, weights in OBJECTIVES.items()
    }
    widest = max(float(np.ptp(after.rounds[-1].Z, axis=0).max()) for after in updated.values())
    numbers: dict[str, dict[str, float]] = {}
    for ax, letter, (name, after) in zip(panels[1:], "bcd", updated.items(), strict=True):
        first, Z = after.rounds[0].Z, after.rounds[-1].Z  # (n_points, 2)
        scatter(ax, Z, truth, title=f"({letter})  {name}")
        window(ax, Z, 1.12 * widest)
        centers(ax, Z, truth)
        if OBJECTIVES[name][0]:
            plot_boundary(ax, after.classifiers)
        numbers[name] = rings_apart(Z, truth, scale=float(first.std()))
        ax.set_xlabel(
            f"centers {numbers[name]['gap']:.2f} apart, spread {numbers[name]['spread']:.2f}",
            fontsize=SMALL,
            color=INK,
        )
    save(figure, task.out, "fig4")
    ce, cons, both = numbers.values()
    return {
        **numbers,
        "claims": [
            claim(
                "Cross-entropy alone separates the rings by a line, but leaves them spread out.",
                ce["linear_accuracy"] > 0.99
                and ce["spread"] / ce["gap"] > 2 * both["spread"] / both["gap"],
                f"linear accuracy {ce['linear_accuracy']:.2f}; spread over distance of the centers "
                f"{ce['spread'] / ce['gap']:.2f}, {both['spread'] / both['gap']:.2f} with both losses",
            ),
            claim(
                "The consensus loss alone merges the two rings.",
                cons["gap"] < 0.2 and cons["spread"] < 0.5,
                f"distance of the centers {cons['gap']:.2f}, spread {cons['spread']:.2f} (first embedding: 1)",
            ),
            claim(
                "Both together separate the rings and make them compact: k-means finds them.",
                both["kmeans_nmi"] > 0.95 and both["gap"] > both["spread"],
                f"k-means NMI {both['kmeans_nmi']:.2f}, distance of the centers {both['gap']:.2f}, "
                f"spread {both['spread']:.2f}",
            ),
        ],
    }


def one_update(
    autoencoder: Autoencoder,
    rows: Rows,
    truth: np.ndarray,
    lambda_ce: float,
    lambda_cons: float,
    *,
    n_steps: int,
    root: int,
) -> Consensus:
    """One round with two members that know the rings: they agree, and only the losses matter."""
    members: list[Member] = [("one", truth), ("other", truth)]
    settings = Rounds(
        n_rounds=1,
        n_steps=n_steps,
        learning_rate=0.05,
        lambda_ce=lambda_ce,
        lambda_cons=lambda_cons,
        lambda_rec=0.0,
        ramp_up=False,
        sample_size=1.0,
        patience=100,
    )
    return learn_consensus(autoencoder, rows, members, settings, root)


def window(ax: Axes, Z: np.ndarray, width: float) -> None:
    """A square around the points, equally wide in all panels: an axis fitted to its points hides a collapse."""
    for axis, middle in (
        ("x", (Z[:, 0].min() + Z[:, 0].max()) / 2),
        ("y", (Z[:, 1].min() + Z[:, 1].max()) / 2),
    ):
        ax.set(**{f"{axis}lim": (middle - width / 2, middle + width / 2)})


def centers(ax: Axes, points: np.ndarray, truth: np.ndarray) -> None:
    """The mean of each class: a dot and, since they may coincide, a cross."""
    for label, marker in enumerate("oX"):
        x, y = points[truth == label].mean(axis=0)
        ax.plot(
            x, y, marker, ms=9 - 2 * label, color=PALETTE[label], mec="black", mew=0.8, zorder=5
        )


def rings_apart(Z: np.ndarray, truth: np.ndarray, scale: float) -> dict[str, float]:
    """How well two classes are separated: distance of their centers, spread, and who can tell them apart."""
    one, other = Z[truth == 0], Z[truth == 1]
    within = np.concatenate([one - one.mean(axis=0), other - other.mean(axis=0)])
    standard = (Z - Z.mean(axis=0)) / max(float(Z.std()), 1e-12)
    line = LogisticRegression(C=1e4, max_iter=1000).fit(standard, truth)
    labels = KMeans(2, n_init=10, random_state=0).fit_predict(standard)
    return {
        "gap": float(np.linalg.norm(one.mean(axis=0) - other.mean(axis=0)) / scale),
        "spread": float(np.sqrt(np.square(within).sum(axis=1).mean()) / scale),
        "linear_accuracy": float(line.score(standard, truth)),
        "kmeans_nmi": nmi(truth, labels),
    }


def draw_fig9(task: Task) -> dict[str, Any]:
    _, scores = draw_before_and_after("nonlinear", task, "fig9", "nmi")
    before, after = scores.values()
    return {
        **scores,
        "claims": [
            claim(
                "On the autoencoder's embedding half of the members are no better than chance.",
                is_half_at_chance([*before.values()]),
                f"NMI {in_words(before)}",
            ),
            claim(
                "On the consensus representation all members find the half rings.",
                all_right([*after.values()]),
                f"NMI {in_words(after)}",
            ),
        ],
    }
