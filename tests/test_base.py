"""The base class: what every estimator gets from it, shown with the smallest one."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_clusterer
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from torch import nn

from deccs import (
    DECCS,
    Answer,
    Callback,
    ConsensusClustering,
    Network,
    Pretraining,
    Rounds,
)
from deccs.base import Clusterer, Embedder, Fit, SoftClusterer
from deccs.checks import number
from deccs.data.source import each_block
from deccs.deep import IDEC
from deccs.estimators import SoftEstimator
from deccs.members import neighbors
from deccs.members.neighbors import kept_share, neighbor_graph, normalized_cut
from deccs.network.autoencoder import Autoencoder
from deccs.network.device import pick_device
from deccs.storage import NO_CHECKPOINT, FolderCheckpoint, load
from deccs.storage.models import ESTIMATORS

pytestmark = pytest.mark.usefixtures("quick_classifiers")
MEMBERS = [("kmeans", KMeans(3, n_init=1)), ("ward", AgglomerativeClustering(3))]


@dataclass(eq=False, repr=False, kw_only=True)
class Halves(SoftClusterer, SoftEstimator):
    """Two clusters: rows whose first column, scaled, is below a limit, and the others."""

    limit: Annotated[float, number()] = 0.0

    def _learn(self, fit):
        self.limit_ = self.limit + 0.01 * (fit.root % 7)  # a method may use the seed
        self.fit_ = fit

    def _learned_answers(self, source):
        for _, block in each_block(source):
            first = self.scaler_(block)[:, :1]
            upper = first[:, 0] >= self.limit_
            yield Answer(
                first, upper.astype(np.int64), np.column_stack([~upper, upper]).astype(float)
            )


class Chance(KMeans):
    """A member whose labels have nothing to do with the rows."""

    def fit_predict(self, X, y=None):
        return np.random.default_rng(0).integers(self.n_clusters, size=len(X))


registered = ESTIMATORS.pop("Halves")  # other tests look at all registered estimators


def halves(**parameters):
    return Halves(2, random_state=0, **parameters)


X = np.arange(20.0).reshape(10, 2)


def test_the_smallest_estimator():
    model = halves().fit(X)
    assert_array_equal(model.labels_, [0] * 5 + [1] * 5)
    assert_array_equal(model.predict(X[::-1]), model.labels_[::-1])
    assert_array_equal(model.predict_proba(X)[0], [1, 0])
    assert_array_equal(model.fit_predict(X), model.labels_)
    assert is_clusterer(model) and model.n_features_in_ == 2
    assert_array_equal(model.answer(X).labels, model.labels_)


def test_a_fit_has_what_methods_need():
    model = halves(scale="columns").fit(X)
    fit = model.fit_
    assert isinstance(fit, Fit)
    assert fit.source.shape == (10, 2) and fit.root == 0 and fit.checkpoint is NO_CHECKPOINT
    assert fit.scaler is model.scaler_ and fit.scaler.kind == "columns"
    rows = fit.rows("cpu")
    assert_allclose(rows[slice(0, 10)].mean(0), [0, 0], atol=1e-6)


def test_parameters_are_a_signature_clone_and_repr():
    model = halves(limit=0.5)
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == "Halves(limit=0.5, n_clusters=2, random_state=0)"
    assert set(model.get_params()) == {
        "n_clusters",
        "limit",
        "scale",
        "kinds",
        "random_state",
        "verbose",
        "callbacks",
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"limit": "half"}, "limit must be a number, got 'half'"),
        ({"n_clusters": 11}, "n_clusters=11 is more than the number of points, n_samples=10"),
        (
            {"scale": "log"},
            "scale must be 'auto' or 'global' or 'columns' or 'robust' or 'rows' or None, got 'log'",
        ),
        ({"kinds": ["a"]}, "kinds must be None or a dict of column names and kinds"),
        ({"kinds": {"a": "sort"}}, r"kinds must be .*\(number, yes/no, .*got {'a': 'sort'}"),
        ({"kinds": {3: "number"}}, "kinds must be"),
    ],
)
def test_parameters_are_checked_at_fit(changes, words):
    model = halves().set_params(**changes)  # not before
    with pytest.raises(ValueError, match=words):
        model.fit(X)


def test_nothing_before_fit():
    for method in ("predict", "predict_proba", "answer", "answers"):
        with pytest.raises(NotFittedError):
            getattr(halves(), method)(X)


def test_it_is_saved_and_loaded_without_a_line_of_its_own(tmp_path, monkeypatch):
    assert registered is Halves
    monkeypatch.setitem(ESTIMATORS, "Halves", Halves)
    model = halves(limit=0.5).fit(X)
    del model.fit_
    model.save(tmp_path / "m.zip")
    again = load(tmp_path / "m.zip")
    assert type(again) is Halves and again.limit == 0.5
    assert_array_equal(again.predict(X), model.labels_)


def test_it_is_watched_without_a_line_of_its_own():
    hooks = []

    class Watches(Callback):
        def on_fit_start(self, estimator):
            hooks.append("start")

        def on_answer(self, answer):
            hooks.append(len(answer))

        def on_fit_end(self, estimator):
            hooks.append("end")

    halves(callbacks=[Watches()]).fit(np.tile(X, (500, 1)))
    assert hooks == ["start", 4096, 904, "end"]


@pytest.mark.parametrize("cls", [Clusterer, SoftClusterer, Embedder])
def test_a_base_class_is_no_estimator(cls):
    with pytest.raises(TypeError, match="abstract"):
        cls()


def test_a_seed_of_chance_is_another_each_time():
    roots = {Halves(2).fit(X).fit_.root for _ in range(3)}
    assert len(roots) == 3
    state = np.random.RandomState(0)
    assert (
        Halves(2, random_state=state).fit(X).fit_.root
        != Halves(2, random_state=state).fit(X).fit_.root
    )


# The score


PAIRS = np.array([[0.0], [1], [10], [11]])


def test_the_score_by_hand():
    """Each of the four points is tied to itself and to the nearest two.

    A cluster's two points have 6 ties: 1 each to themselves, the mutual one from both ends, and to
    the other cluster 1 for the mutual neighbors 1 and 10, 0.5 for each one-sided tie.
    """
    model = halves().fit(PAIRS)
    assert_array_equal(model.labels_, [0, 0, 1, 1])
    assert model.score(PAIRS) == pytest.approx(4 / 6)
    assert model.score(PAIRS, y=[1, 0, 1, 0]) == model.score(PAIRS)
    assert model.score(PAIRS) == 1 - normalized_cut(neighbor_graph(PAIRS), model.labels_)


def test_the_score_of_noise_and_of_too_few_clusters_by_hand():
    graph = neighbor_graph(PAIRS)
    # The first cluster keeps 4 of 6 ties. Row 2 keeps that to itself, of 3.5. Row 3 is noise.
    expected = (4 / 6 + 1 / 3.5) / 2 * 3 / 4
    assert kept_share(graph, np.array([0, 0, 1, -1]), 2) == pytest.approx(expected)
    assert kept_share(graph, np.full(4, -1), 2) == 0.0
    assert kept_share(graph, np.zeros(4, dtype=int), 4) == 0.25
    assert kept_share(graph, np.zeros(4, dtype=int), 1) == 1.0
    assert kept_share(graph, np.array([0, 0, 2, 2]), 2) == pytest.approx(4 / 6)


def test_the_score_of_many_rows_is_that_of_5000_of_them(monkeypatch):
    asked, real = [], neighbors.neighbor_graph
    monkeypatch.setattr(
        neighbors, "neighbor_graph", lambda rows: asked.append(len(rows)) or real(rows)
    )
    many = np.random.default_rng(0).normal(size=(5_200, 1))
    model = halves().fit(many)
    assert model.score(many) == model.score(many) > 0.95
    assert asked == [5_000, 5_000]
    assert 0 <= model.score(many[:1]) <= 1  # a single row, too
    with pytest.raises(NotFittedError):
        halves().score(many)


def test_a_grid_search_without_scoring_prefers_what_keeps_neighbors_together():
    """Limits in the gap, inside a group, and beyond all rows (a single cluster)."""
    groups = np.concatenate([np.linspace(0, 1, 60), np.linspace(9, 10, 60)])[:, None]
    rows = np.random.default_rng(0).permutation(groups)
    search = GridSearchCV(halves(), {"limit": [9.0, 1.0, 0.0]}, cv=3, error_score="raise")
    search.fit(rows)
    beyond, inside, gap = search.cv_results_["mean_test_score"]
    assert search.best_params_ == {"limit": 0.0}
    assert beyond == 0.5 and beyond < inside < gap == 1.0


def test_a_grid_search_over_settings_of_deccs_without_scoring(small, fitted, blobs):
    assert fitted.score(blobs.X) == 1.0
    model = small(members=MEMBERS, views=None)
    search = GridSearchCV(model, {"rounds__n_steps": [1, 5]}, cv=2, error_score="raise")
    search.fit(blobs.X)
    assert (search.cv_results_["mean_test_score"] == 1.0).all()


def test_a_grid_search_over_members_tells_a_destroyed_consensus():
    X, _ = make_blobs(150, centers=np.eye(3) * 20, random_state=0)
    destroyed = [("chance", Chance(3)), ("the same", Chance(3))]
    model = ConsensusClustering(3, random_state=0)
    search = GridSearchCV(model, {"members": [destroyed, MEMBERS]}, cv=3, error_score="raise")
    search.fit(X)
    bad, best = search.cv_results_["mean_test_score"]
    assert bad < 0.7 < best == 1.0


def test_a_grid_search_over_settings_of_a_deep_method(blobs):
    model = IDEC(
        3,
        network=Network(layers=(8, 2)),
        pretraining=Pretraining(n_epochs=20, batch_size=32, learning_rate=1e-2),
        batch_size=32,
        random_state=0,
    )
    search = GridSearchCV(model, {"n_steps": [2, 4]}, cv=2, error_score="raise", refit=False)
    search.fit(blobs.X)
    assert (search.cv_results_["mean_test_score"] > 0.8).all()


# DECCS


def test_a_fit_embeds_every_row_once(small, blobs, monkeypatch):
    """After the training, in double precision: labels, answers and callbacks share one pass.

    Before it, labels are judged on a sample, and after it novelty is learned from one; here these are all rows.
    """
    n_embedded = []

    def counted(encoder):
        def encode(scaled):
            n_embedded.append(len(scaled))
            return encoder(scaled)

        return encode

    real = Autoencoder.exact_encoder
    monkeypatch.setattr(Autoencoder, "exact_encoder", lambda net: counted(real(net)))
    model = small(members=MEMBERS, n_rounds=0, callbacks=[Callback()]).fit(blobs.X)
    assert sum(n_embedded) == 3 * 180
    model.answer(blobs.X)
    assert sum(n_embedded) == 4 * 180


def test_a_checkpoint_that_was_given_stays(small, blobs, tmp_path):
    """Whoever opened it removes it: the command line writes its results first."""
    mine = FolderCheckpoint(tmp_path / "mine")
    model = small(members=MEMBERS, n_rounds=0, checkpoint=mine).fit(blobs.X)
    assert sorted(path.name for path in (tmp_path / "mine").iterdir())[0] == "fit.state.zip"
    again = small(members=MEMBERS, n_rounds=0, checkpoint=mine).fit(blobs.X)  # nothing left to do
    assert_array_equal(again.transform(blobs.X), model.transform(blobs.X))
    mine.remove()
    assert not (tmp_path / "mine").exists()
    mine.remove()  # twice is no error


def test_an_error_leaves_the_checkpoint(small, blobs, tmp_path):
    def fail(finished):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        small(members=MEMBERS, callbacks=[fail], checkpoint=tmp_path / "c").fit(blobs.X)
    assert (tmp_path / "c" / "start-0-rounds.state.zip").exists()


def test_facts_are_what_a_result_depends_on():
    facts = DECCS(
        3,
        n_jobs=2,
        member_timeout=9,
        verbose=True,
        callbacks=[print],
        checkpoint="x",
        random_state=1,
    )._facts()
    without = {"n_jobs", "member_timeout", "verbose", "callbacks", "checkpoint", "random_state"}
    assert not without & set(facts)
    assert facts == DECCS(3)._facts() == DECCS(3, rounds=Rounds(), network=Network())._facts()
    assert facts["rounds__n_rounds"] == "10" and facts["device"] == repr(pick_device("auto"))
    changed = {
        "n_clusters": 4,
        "scale": None,
        "members": MEMBERS,
        "rounds__tol": 0.1,
        "network__layers": (8, 2),
        "pretraining__n_epochs": 3,
    }
    for name, value in changed.items():
        other = DECCS(3).set_params(**{name: value})._facts()
        assert [key for key in other if other[key] != facts[key]] == [name]


def test_facts_of_own_modules_are_their_weights():
    encoder, decoder = nn.Linear(4, 2), nn.Linear(2, 4)
    facts = DECCS(3, network=(encoder, decoder))._facts()
    assert facts == DECCS(3, network=(encoder, decoder))._facts()
    assert facts != DECCS(3, network=(nn.Linear(4, 2), decoder))._facts()
    assert not [name for name in facts if name.startswith("network__")]
