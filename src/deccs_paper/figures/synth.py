"""Figures of SYNTH: 1 and 2 (before and after), 3 (deep methods), 5 (one round), 6 (classifiers over rounds)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deccs.labels import NOISE, align_labels
from deccs.plots import INK, SHORT_NAMES, SMALL, TEXT, new_figure, scatter
from deccs.rounds.classifiers import Classifiers, logits
from deccs.rounds.records import Round
from deccs.scores import ari, silhouette
from deccs_paper.figures.boundaries import classifiers_of, plot_classifier
from deccs_paper.figures.fits import fit, start_of
from deccs_paper.figures.grids import draw_before_and_after
from deccs_paper.figures.members import embeddings, most_halfway, plot_member
from deccs_paper.figures.parts import Task, claim, in_words, save
from deccs_paper.runner import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEEP_METHODS = ("DEC", "IDEC", "DCN", "VaDE", "DeepECT", "SpectralNet")
PERFECT = 0.99  # ARI and agreement of members that all find the true clusters


def separation(round_: Round, truth: np.ndarray) -> float:
    """How compact and well separated the true classes are in a round's embedding: their silhouette."""
    return silhouette(round_.Z, truth[round_.sample])


def draw_fig1(task: Task) -> dict[str, Any]:
    fitted = fit("synth", task)
    figure = new_figure(10, 2.8)
    embeddings(figure, fitted.X, fitted.truth, fitted.rounds, fitted.last)
    save(figure, task.out, "fig1")
    middle = most_halfway(fitted.rounds, fitted.last)
    numbers = {
        name: {
            "round": number,
            "agreement": fitted.rounds[number].agreement,
            "silhouette": separation(fitted.rounds[number], fitted.truth),
        }
        for name, number in (("autoencoder", 0), ("update", middle), ("final", fitted.last))
    }
    first, last = numbers["autoencoder"]["silhouette"], numbers["final"]["silhouette"]
    return {
        **numbers,
        "data": {"silhouette": silhouette(fitted.X, fitted.truth)},
        "claims": [
            claim(
                "In the consensus representation the four clusters are compact and well separated.",
                last > max(first, 0.7),
                f"silhouette of the true classes {first:.2f} before, {last:.2f} after",
            )
        ],
    }


def draw_fig2(task: Task) -> dict[str, Any]:
    fitted, scores = draw_before_and_after("synth", task, "fig2", "ari")
    before, after = scores.values()
    return {
        **scores,
        "claims": [
            claim(
                "On the autoencoder's embedding of SYNTH the members do poorly.",
                max(before.values()) < 0.9,
                f"ARI {in_words(before)}",
            ),
            claim(
                "On the consensus representation of SYNTH all members reach the same, perfect clustering.",
                same_and_perfect(fitted.rounds[fitted.last], after),
                f"ARI {in_words(after)}",
            ),
        ],
    }


def same_and_perfect(round_: Round, scores: dict[str, float]) -> bool:
    return round_.agreement >= PERFECT and min(scores.values()) >= PERFECT


def draw_fig3(task: Task) -> dict[str, Any]:
    start = start_of("synth", task)
    X, truth = start.data.X, start.data.y
    fewer = {"n_steps": 20, "siamese_steps": 20} if task.quick else {}
    figure = new_figure(2 * len(DEEP_METHODS), 4.6)
    panels = figure.subplots(2, len(DEEP_METHODS), squeeze=False)
    scores: dict[str, float] = {}
    for (above, below), name in zip(panels.T, DEEP_METHODS, strict=True):
        model = Run("default", name, "synth", task.seed, {}).estimator()
        known = {"network": start.autoencoder, **fewer}.items()
        model.set_params(**{key: value for key, value in known if hasattr(model, key)})
        answer = model.fit(X).answer(X)
        scores[name] = ari(truth, answer.labels)
        scatter(above, answer.Z, truth, title=name)
        scatter(
            below, answer.Z, align_labels(answer.labels, truth), title=f"ARI {scores[name]:.2f}"
        )
    for row, side in zip(panels, ["True classes", "Clusters"], strict=True):
        row[0].set_ylabel(side, fontsize=TEXT, color=INK)
    save(figure, task.out, "fig3")
    return {
        "ari": scores,
        "claims": [
            claim(
                "Deep clustering methods for one kind of cluster fail on SYNTH, whose clusters differ in shape.",
                max(scores.values()) < 0.9,
                f"ARI {in_words(scores)}",
            )
        ],
    }


def draw_fig5(task: Task) -> dict[str, Any]:
    fitted = fit("synth", task)
    round_, after = fitted.rounds[:2]
    classifiers = classifiers_of(round_, fitted.root)
    figure = new_figure(11, 6)
    places = figure.add_gridspec(1, 3, width_ratios=[1.2, 1.25, 1.2], wspace=0.1)
    before_ax, after_ax = figure.add_subplot(places[0]), figure.add_subplot(places[2])
    scatter(before_ax, round_.Z, fitted.truth[round_.sample], title="(1)  Embed: Z in round 0")
    scatter(after_ax, after.Z, fitted.truth[after.sample], title="(4)  Update: Z in round 1")
    small = places[1].subgridspec(len(round_.member_names), 2, wspace=0.1).subplots(squeeze=False)
    for member, (name, (clustered, classified)) in enumerate(
        zip(round_.member_names, small, strict=True)
    ):
        plot_member(round_, name, fitted.truth, clustered)
        plot_classifier(round_, classifiers, member, fitted.truth, classified)
        for ax, step in ((clustered, "(2)  Cluster"), (classified, "(3)  Classify")):
            ax.set_title(step if member == 0 else "", fontsize=TEXT, color=INK)
            ax.text(
                0.97,
                0.95,
                SHORT_NAMES.get(name, name),
                transform=ax.transAxes,
                ha="right",
                va="top",
                fontsize=SMALL,
                color=INK,
            )
        arrow(before_ax, clustered)
        arrow(clustered, classified)
        arrow(classified, after_ax)
    for ax in (before_ax, after_ax):
        ax.set_box_aspect(1)
    for ax, at in ((before_ax, round_), (after_ax, after)):
        ax.set_xlabel(f"agreement {at.agreement:.2f}", fontsize=TEXT, color=INK)
    save(figure, task.out, "fig5")
    follows = {
        SHORT_NAMES.get(name, name): value
        for name, value in zip(
            round_.member_names, classifier_accuracy(round_, classifiers), strict=True
        )
    }
    return {
        "agreement": [round_.agreement, after.agreement],
        "silhouette": [separation(round_, fitted.truth), separation(after, fitted.truth)],
        "classifier_accuracy": follows,
        "claims": [
            claim(
                "The update of a round raises the agreement of the members.",
                after.agreement > round_.agreement,
                f"agreement {round_.agreement:.2f} to {after.agreement:.2f}",
            )
        ],
    }


def classifier_accuracy(round_: Round, classifiers: Classifiers) -> list[float]:
    """Per member: the share of its labels that its linear classifier predicts."""
    Z = round_.Z.astype(np.float64)
    predictions = logits(classifiers, Z).argmax(axis=2).T  # (n_members, n_sample)
    return [
        float((predicted[labels != NOISE] == labels[labels != NOISE]).mean())
        for predicted, labels in zip(predictions, round_.base_partitions, strict=True)
    ]


def arrow(left: Axes, right: Axes) -> None:
    """From the right edge of one panel to the left edge of another."""
    from matplotlib.patches import ConnectionPatch

    left.figure.add_artist(
        ConnectionPatch(
            (1.01, 0.5),
            (-0.01, 0.5),
            left.transAxes,
            right.transAxes,
            arrowstyle="-|>",
            color="#888888",
            lw=0.8,
            mutation_scale=8,
        )
    )


def draw_fig6(task: Task) -> dict[str, Any]:
    fitted = fit("synth", task)
    shown = rounds_to_show(fitted.last)
    names = list(
        dict.fromkeys(name for number in shown for name in fitted.rounds[number].member_names)
    )
    figure = new_figure(10, 2.3 * len(shown))
    panels = figure.subplots(len(shown), len(names), squeeze=False)
    for row, number in zip(panels, shown, strict=True):
        round_ = fitted.rounds[number]
        classifiers = classifiers_of(round_, fitted.root)
        for ax, name in zip(row, names, strict=True):
            if name in round_.member_names:
                plot_classifier(
                    round_, classifiers, round_.member_names.index(name), fitted.truth, ax
                )
            else:
                plot_member(round_, name, fitted.truth, ax)
        row[0].set_ylabel(
            f"Round {number}\nagreement {round_.agreement:.2f}", fontsize=TEXT, color=INK
        )
    for ax, name in zip(panels[0], names, strict=True):
        ax.set_title(f"Clf. of {SHORT_NAMES.get(name, name)}", fontsize=TEXT, color=INK)
    save(figure, task.out, "fig6")
    last = fitted.rounds[fitted.last]
    separations = [separation(fitted.rounds[number], fitted.truth) for number in shown]
    return {
        "rounds": shown,
        "agreement": [fitted.rounds[number].agreement for number in shown],
        "silhouette": separations,
        "claims": [
            claim(
                "Over the rounds the clusters get better separated and more compact, until all members find the same.",
                separations[-1] > separations[0] and last.agreement >= PERFECT,
                f"silhouette of the true classes {' '.join(f'{value:.2f}' for value in separations)} in rounds "
                f"{' '.join(map(str, shown))}; agreement {last.agreement:.2f} at the end",
            )
        ],
    }


def rounds_to_show(last: int, most: int = 4) -> list[int]:
    """Round 0, the last and up to two in between, evenly spaced.

    >>> rounds_to_show(8), rounds_to_show(2), rounds_to_show(0)
    ([0, 3, 5, 8], [0, 1, 2], [0])
    """
    return sorted(set(np.linspace(0, last, most).round().astype(int).tolist()))
