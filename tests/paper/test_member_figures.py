"""The members before and after the rounds, drawn from rounds made by hand."""

import numpy as np
import pytest
from matplotlib import pyplot

from deccs import plots
from deccs.rounds.records import LossParts, Round
from deccs_paper import figures
from tests.helpers.plotting import points_of

TRUTH = np.array([0, 0, 1, 1, 0, 1])
SAMPLE = np.array([0, 1, 2, 3])  # classes 0 0 1 1
Z = np.arange(8.0).reshape(4, 2)  # of the sample


def hand_made_round(number, partitions, agreement=0.5, names=("kmeans", "mine", "mixture")):
    partitions = np.array(partitions)
    return Round(
        number,
        SAMPLE,
        Z,
        names[: len(partitions)],
        partitions,
        np.eye(len(partitions)),
        agreement,
        np.ones(len(partitions)),
        0.0,
        losses=LossParts(1, 2, 3, 6),
    )


def test_before_and_after_has_the_paper_s_panels_and_scores_by_hand():
    renamed, crossed, unsure = [1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, -1]
    rounds = [
        hand_made_round(0, [renamed, crossed, unsure], 0.2),
        hand_made_round(1, [crossed] * 3, 0.9),
        hand_made_round(2, [renamed] * 3, 1.0),
    ]
    figure = figures.before_and_after(np.arange(12.0).reshape(6, 2), TRUTH, rounds)

    strip, members = figure.axes[:4], figure.axes[4:]
    assert [ax.get_title() for ax in strip] == [
        "(a)  Data",
        "(b)  Autoencoder",
        "(c)  After 1 update",
        "(d)  Consensus representation",
    ]
    assert [ax.get_xlabel() for ax in strip[1:]] == [
        "agreement 0.20",
        "agreement 0.90",
        "agreement 1.00",
    ]
    # Two crossed halves: no pair together in both, (0 - 2/3) / (2 - 2/3) = -0.5. Noise is not scored.
    assert [ax.get_title() for ax in members] == [
        "KM  ARI 1.00",
        "mine  ARI -0.50",
        "GMM  ARI 1.00",
        "KM  ARI 1.00",
        "mine  ARI 1.00",
        "GMM  ARI 1.00",
    ]
    assert pyplot.get_fignums() == []


def test_a_cluster_has_the_color_of_its_class_whatever_its_number():
    ax = figures.plot_member(hand_made_round(0, [[1, 1, 0, -1]]), "kmeans", TRUTH)
    first, second = plots.PALETTE[:2]
    assert points_of(ax) == [first, first, second, plots.NO_LABEL]


def test_a_member_that_was_left_out_is_said_to_be():
    ax = figures.plot_member(hand_made_round(0, [[1, 1, 0, 0]]), "spectral", TRUTH)
    assert ax.get_title() == "SC  left out"
    assert set(points_of(ax)) == {plots.NO_LABEL}


@pytest.mark.parametrize(
    ("agreements", "last", "expected"),
    [
        ([0.2, 0.3, 0.7, 0.9, 1.0], 4, 2),  # half way is 0.6
        ([0.2, 1.0], 1, 1),
        ([0.2], 0, 0),  # nothing in between: the last
    ],
)
def test_the_middle_panel_is_the_round_nearest_to_half_way(agreements, last, expected):
    rounds = [
        hand_made_round(number, [[0, 0, 1, 1]], value) for number, value in enumerate(agreements)
    ]
    assert figures.most_halfway(rounds, last) == expected
