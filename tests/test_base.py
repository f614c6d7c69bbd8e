"""The base class: what every estimator gets from it, shown with the smallest one."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_clusterer
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import NotFittedError
from torch import nn

from deccs import DECCS, Answer, Callback, Network, Rounds, base
from deccs.base import Clusterer, Embedder, Fit, SoftClusterer
from deccs.checks import number
from deccs.data.source import each_block
from deccs.storage import NO_CHECKPOINT, FolderCheckpoint, load
from deccs.storage.models import ESTIMATORS

pytestmark = pytest.mark.usefixtures("quick_classifiers")
MEMBERS = [("kmeans", KMeans(3, n_init=1)), ("ward", AgglomerativeClustering(3))]


@dataclass(eq=False, repr=False, kw_only=True)
class Halves(SoftClusterer):
    """Two clusters: rows whose first column, scaled, is below a limit, and the others."""

    limit: Annotated[float, number()] = 0.0

    def _learn(self, fit):
        self.limit_ = self.limit + 0.01 * (fit.root % 7)  # a method may use the seed
        self.fit_ = fit

    def _answers(self, source):
        for _, block in each_block(source):
            first = self.scaler_(block)[:, :1]
            upper = first[:, 0] >= self.limit_
            yield Answer(
                first, upper.astype(np.int64), np.column_stack([~upper, upper]).astype(float)
            )


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
            "scale must be 'auto' or 'global' or 'columns' or 'rows' or None, got 'log'",
        ),
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


# DECCS


def test_a_fit_embeds_every_row_once(small, blobs, monkeypatch):
    """After the training, in double precision: labels, answers and callbacks share one pass."""
    n_embedded, real = [], base.encode_exactly

    def counted(*given):
        for Z in real(*given):
            n_embedded.append(len(Z))
            yield Z

    monkeypatch.setattr(base, "encode_exactly", counted)
    model = small(members=MEMBERS, n_rounds=0, callbacks=[Callback()]).fit(blobs.X)
    assert sum(n_embedded) == 180
    model.answer(blobs.X)
    assert sum(n_embedded) == 360


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
        3, n_jobs=2, verbose=True, callbacks=[print], checkpoint="x", random_state=1
    )._facts()
    without = {"n_jobs", "verbose", "callbacks", "checkpoint", "random_state"}
    assert not without & set(facts)
    assert facts == DECCS(3)._facts() == DECCS(3, rounds=Rounds(), network=Network())._facts()
    assert facts["rounds__n_rounds"] == "10" and facts["device"] == repr(base.pick_device("auto"))
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
