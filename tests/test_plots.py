import sys

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError

from deccs import DECCS, Pretraining, Rounds, datasets, plots
from tests.helpers.counted import count_of, give_count
from tests.helpers.plotting import points_of
from tests.helpers.report_stand_in import StandIn, blobs_with_labels


@pytest.fixture(scope="module")
def fitted():
    X, y = datasets.make_synth(n_per_cluster=40, random_state=0)
    model = DECCS(
        4,
        rounds=Rounds(n_rounds=1, n_init=1, n_steps=10, lambda_cons=1.0),
        pretraining=Pretraining(n_epochs=30),
        random_state=0,
    )
    return model.fit(X), X, y


def test_plots_of_a_fitted_model(fitted):
    model, X, y = fitted
    ax = plots.plot_rounds(model)
    assert ax.get_lines()[0].get_ydata() == pytest.approx(
        [round_.agreement for round_ in model.rounds_]
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
    plane = plots.plane_of(flat)
    assert plane(flat) == pytest.approx(flat[:, :2], abs=1e-12)  # the largest entry is positive
    assert plane.share == pytest.approx(1)
    thick = np.vstack([flat, [[0, 0, 2], [0, 0, -2]]])  # variances 18, 2 and 8
    assert plots.plane_of(thick).share == pytest.approx(26 / 28)


@pytest.mark.parametrize(
    ("points", "drawn"),
    [
        ([[1.0], [2.0]], [[1, 0], [2, 0]]),
        ([[1.0, 5.0], [2.0, 6.0]], [[1, 5], [2, 6]]),
        ([[1.0, 5.0, 9.0]], [[1, 5]]),  # one point has no main components
        ([[1.0, 5.0, 9.0]] * 3, [[0, 0]] * 3),
    ],
)
def test_few_dimensions_or_points_stay_as_they_are(points, drawn):
    points = np.array(points)
    assert plots.plane_of(points)(points) == pytest.approx(np.array(drawn))
    assert plots.plane_of(points).share == 1


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "deccs\[report\]"'):
        plots.new_axes()


def test_the_model_s_own_methods_draw_the_same(fitted):
    model, X, _ = fitted
    best = model.rounds_[model.best_round_]
    assert model.plot_rounds().get_ylabel() == "agreement"
    assert len(model.plot_agreement().texts) == len(best.member_names) ** 2
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


# ---- over the number of clusters


@pytest.fixture(scope="module")
def counted():
    X = blobs_with_labels(200, 3, 5)
    return give_count(StandIn().fit(X), X[:, :-1], range(2, 9), runners_up=[3])


def test_curves_over_k_with_references_and_the_answer_marked(counted):
    ax = plots.plot_k(counted)
    by_name = {line.get_label(): line for line in ax.get_lines()}
    for name in ("agreement", "stability", "valley", "split"):
        assert by_name[name].get_ydata() == pytest.approx(counted.count_.curves[name])
        assert by_name[name].get_linestyle() == "-"
    dashed = [line for line in ax.get_lines() if line.get_linestyle() == "--"]
    assert [line.get_ydata().tolist() for line in dashed[:3]] == [
        counted.count_.curves[f"{name} reference"].tolist()
        for name in ("agreement", "stability", "valley")
    ]
    assert [(text.get_text(), text.get_weight()) for text in ax.texts] == [
        ("3", "normal"),
        ("5", "bold"),
    ]
    (support,) = (other for other in ax.figure.axes if other is not ax)
    heights = [bar.get_height() for bar in support.patches]
    assert heights == pytest.approx(counted.count_.curves["support"])
    given = plots.new_axes()
    assert plots.plot_k(counted, given) is given
    assert pyplot.get_fignums() == []


def test_any_curves_are_drawn_gaps_too():
    model = StandIn().fit(blobs_with_labels(20, 2, 2))
    tried = {k: np.arange(20) % k for k in (2, 3, 40)}
    model.count_ = count_of(tried, 1, curves={"new": np.array([np.nan, 1.0, 2.0])})
    ax = plots.plot_k(model)
    assert ax.get_lines()[0].get_label() == "new"
    assert ax.get_xscale() == "log" and ax.get_xlim()[0] < 1 < 40 < ax.get_xlim()[1]
    model.count_ = count_of(tried, 3, curves={"support": np.full(3, np.nan)})
    plots.plot_k(model).figure.draw_without_rendering()


@pytest.mark.parametrize("highest", [2, 5, 20, 21, 77, 1000, 3000])
def test_ticks_of_k_are_few_in_order_and_inside(highest):
    ticks = plots.k_ticks(range(2, highest + 1))
    assert 1 <= len(ticks) <= 9 and ticks == sorted(set(ticks))
    assert ticks[0] >= 2 and ticks[-1] <= highest


def test_the_tree_of_clusters_has_a_level_per_k_and_all_rows_on_each(counted):
    ax = plots.plot_cluster_tree(counted)
    levels = [text.get_text() for text in ax.get_yticklabels()]
    assert levels == [str(k) for k in range(2, 9)]
    assert [text.get_weight() for text in ax.get_yticklabels()].index("bold") == 3
    assert len(ax.texts) == sum(range(2, 9))  # a number for each cluster of each level
    assert {text.get_text() for text in ax.texts[9:14]} == set("01234")  # the answer's own


def test_places_in_the_tree_by_hand():
    # Three rows of four and one of four share the 3/4 of the width that is not gap.
    top = plots.places_below(np.array([0, 0, 0, 1]), None, {})
    assert top == {0: (0.0, 0.5625), 1: (0.8125, 1.0)}
    # 2 comes from the left and 0 from the right: they lie below where they come from.
    below = plots.places_below(np.array([2, 2, 2, 0]), np.array([0, 0, 0, 1]), top)
    assert list(below) == [2, 0] and list(below.values()) == list(top.values())


def test_at_most_eight_levels_and_noise_has_its_place():
    X = blobs_with_labels(300, 3, 12)
    model = give_count(StandIn().fit(X), X[:, :-1], range(2, 60), runners_up=[30])
    model.labels_ = np.where(np.arange(300) % 20 == 0, -1, model.labels_)
    ax = plots.plot_cluster_tree(model)
    levels = [int(text.get_text()) for text in ax.get_yticklabels()]
    assert len(levels) == 8 and 12 in levels and 30 in levels
    assert "none" in [text.get_text() for text in ax.texts]


def test_without_a_search_the_error_says_what_to_do(fitted):
    model, _, _ = fitted
    for draw in (plots.plot_k, plots.plot_cluster_tree):
        with pytest.raises(ValueError, match='Fit it with n_clusters="auto"'):
            draw(model)
        with pytest.raises(NotFittedError):
            draw(DECCS(2))


def test_reliability_shows_each_bin_with_its_rows():
    confidence = np.repeat([0.25, 0.95], [4, 1_200])
    is_right = np.concatenate([[True, False, False, False], np.arange(1_200) < 1_080])
    ax = plots.plot_reliability(confidence, is_right)
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([0.25, 0.9])
    assert [text.get_text() for text in ax.texts] == ["4", "1.2k"]
    points = ax.get_lines()[1]
    assert points.get_xdata() == pytest.approx([0.25, 0.95])
    assert points.get_ydata() == pytest.approx([0.25, 0.9])
    assert ax.get_title() == "1,204 rows, calibration error 0.050"  # 1,200 x 0.05 / 1,204
    given = plots.new_axes()
    assert plots.plot_reliability(confidence, is_right, given, n_bins=5) is given
    assert pyplot.get_fignums() == []
