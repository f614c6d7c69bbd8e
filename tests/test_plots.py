import sys

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError

from deccs import DECCS, Pretraining, Rounds, datasets, plots
from tests.helpers.plotting import points_of


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
