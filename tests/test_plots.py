import sys

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex
from sklearn.exceptions import NotFittedError

from deccs import DECCS, Pretraining, datasets, plots
from deccs.rounds.losses import LossParts
from deccs.rounds.records import Round
from deccs_paper import figures

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


@pytest.fixture(scope="module")
def fitted():
    X, y = datasets.make_synth(n_per_cluster=40, random_state=0)
    model = DECCS(
        4,
        n_rounds=1,
        n_init=1,
        n_steps=10,
        lambda_cons=1.0,
        pretraining=Pretraining(epochs=200),
        random_state=0,
    )
    return model.fit(X), X, y


def points_of(ax):
    """Colors of the points of an axes, in the order of their places from left to right."""
    drawn = ax.collections[0]
    order = np.argsort(drawn.get_offsets()[:, 0])
    return [to_hex(color).upper() for color in drawn.get_facecolors()[order]]


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


def test_plots_of_a_fitted_model(fitted):
    model, X, y = fitted
    ax = plots.plot_rounds(model)
    assert ax.get_lines()[0].get_ydata() == pytest.approx(
        [this.agreement for this in model.rounds_]
    )
    matrix = model.rounds_[model.best_round_].agreement_matrix
    assert [text.get_text() for text in plots.plot_agreement(model).texts] == [
        f"{value:.2f}" for value in matrix.flat
    ]
    assert len(plots.plot_embedding(model, X, color=y).collections[0].get_offsets()) == len(X)
    given = plots.new_axes()
    assert plots.plot_embedding(model, X, ax=given) is given
    assert pyplot.get_fignums() == []


def test_more_than_two_dimensions_are_shown_by_their_main_components():
    flat = np.array([[3.0, 0, 0], [-3, 0, 0], [0, 1, 0], [0, -1, 0]])  # the plane of the first two
    assert np.abs(plots.in_the_plane(flat)) == pytest.approx(np.abs(flat[:, :2]), abs=1e-12)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "deccs\[report\]"'):
        plots.new_axes()


def test_the_model_s_own_methods_draw_the_same(fitted):
    model, X, _ = fitted
    best = model.rounds_[model.best_round_]
    assert model.plot_rounds().get_ylabel() == "agreement"
    assert len(model.plot_agreement().texts) == len(model.member_names_) ** 2
    given = plots.new_axes()
    assert model.plot_embedding(X, ax=given) is given
    drawn = model.plot_embedding()  # no X: the sample the model keeps
    assert len(drawn.collections[0].get_offsets()) == len(best.sample)
    assert set(points_of(drawn)) == set(plots.colors(model.labels_[best.sample]))
    with pytest.raises(ValueError, match="one label per point drawn, 160; got 3"):
        model.plot_embedding(X, color=[0, 1, 2])


def test_plots_of_a_model_that_is_not_fitted_say_so():
    for draw in (DECCS(2).plot_rounds, DECCS(2).plot_agreement, DECCS(2).plot_embedding):
        with pytest.raises(NotFittedError):
            draw()
