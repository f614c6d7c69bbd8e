"""A model of a file that answers without torch: the same answers as those of the estimator, and the same refusals."""

import shutil
import subprocess
import sys
import warnings
from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

import deccs
from deccs import DECCS, Network, Predictor, Pretraining, Rounds, deep
from deccs.answer import Answer
from deccs.consensus_model import ConsensusModel
from deccs.storage import ModelFileError, save
from tests.helpers.command_line import write_table
from tests.helpers.frames import mixed
from tests.helpers.quick_count import quick_counts
from tests.helpers.small import far_blobs, small_deccs
from tests.storage.test_models import forge, put

HEAVY = ("torch", "sklearn", "scipy", "joblib")
X = far_blobs().X
QUICK = {"pretraining": Pretraining(n_epochs=2), "random_state": 0}


def paper():
    return small_deccs().fit(X), X


def with_views():
    """The result is chosen among the views, and rows get labels by their nearest row."""
    return DECCS(3, rounds=Rounds(n_rounds=0), **QUICK).fit(X), X


def counted():
    with quick_counts():
        return DECCS("2-4", rounds=Rounds(n_rounds=0), **QUICK).fit(X), X


def with_dropout_and_settings():
    return small_deccs(dropout=0.1, layers=(6, 5, 2), members=["kmeans", "agglomerative"]).fit(X), X


def of_a_table():
    frame = mixed(n=90, seed=3)
    return small_deccs().fit(frame), frame


def of_one_cluster():
    return small_deccs(n_clusters=1).fit(X), X


@pytest.fixture(
    scope="module",
    params=[paper, with_views, counted, with_dropout_and_settings, of_a_table, of_one_cluster],
    ids=lambda make: make.__name__,
)
def both(request, tmp_path_factory, quick_classifiers, quick_manifold):
    """An estimator, its predictor and rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, rows = request.param()
    path = tmp_path_factory.mktemp("light") / "model"
    model.save(path)
    return model, deccs.load(path), rows


def assert_same(one, other):
    assert_array_equal(one.labels, other.labels)
    for field in fields(Answer):
        first, second = getattr(one, field.name), getattr(other, field.name)
        assert (first is None) == (second is None)
        if first is not None:
            assert_allclose(first, second, rtol=1e-12, atol=1e-12, err_msg=field.name)


def test_a_predictor_answers_as_the_estimator_does(both):
    model, light, rows = both
    assert type(light) is Predictor
    assert_same(light.answer(rows), model.answer(rows))
    assert_array_equal(light.predict(rows), model.labels_)
    source = light._checked(rows)
    assert_same(
        Answer.joined(light._fast_answers(source)), Answer.joined(model._fast_answers(source))
    )
    for name in ("predict_proba", "transform", "members_predict", "consensus_confidence"):
        ours, theirs = getattr(light, name)(rows), getattr(model, name)(rows)
        assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12, err_msg=name)
    one = rows[:1]
    assert_array_equal(light.predict(one), model.predict(one))


def test_it_has_what_the_estimator_has_learned(both):
    model, light, rows = both
    learned = {name for name in vars(model) if name.endswith("_")}
    assert learned <= set(vars(light))
    assert light.n_clusters_ == model.n_clusters_ and light.n_features_in_ == model.n_features_in_
    assert_array_equal(light.labels_, model.labels_)
    assert getattr(light, "cluster_names_", None) == getattr(model, "cluster_names_", None)
    assert str(light.describe(rows)) == str(model.describe(rows))
    assert light.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    if hasattr(model, "count_"):
        assert_array_equal(light.predict_at(rows, 2), model.predict_at(rows, 2))


def test_all_that_deccs_takes_and_learns_is_known_to_a_predictor():
    """Else its files would be read by the estimator, in seconds."""
    assert set(ConsensusModel._get_param_names()) == set(DECCS._get_param_names())


@pytest.fixture(scope="module")
def folder(tmp_path_factory, quick_classifiers, quick_manifold):
    """A model of the paper's method with what the command line needs, and three rows as CSV."""
    path = tmp_path_factory.mktemp("run")
    names = ["a", "b", "c", "d"]
    save(paper()[0], path / "model", preprocessing={"feature_names": names})
    write_table(path / "rows.csv", X[:3], names)
    return path


def test_neither_python_nor_the_command_line_loads_torch_or_scikit_learn(folder):
    code = (
        "import sys, numpy as np, deccs; model = deccs.load('model')\n"
        "assert model.predict(np.zeros((2, 4))).shape == model.answer(np.ones((2, 4))).labels.shape\n"
        "from deccs.app import cli\n"
        "cli.app(['predict', 'model', 'rows.csv'], standalone_mode=False)\n"
        f"print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    *table, loaded = run.stdout.splitlines()
    labels = DECCS.load(folder / "model").predict(X[:3])
    assert table[0] == "row,label,confidence"
    assert [line.split(",")[1] for line in table[1:]] == [str(label) for label in labels]
    assert loaded == "[]"


@pytest.mark.parametrize(
    "model",
    [
        deep.DEC(3, network=Network(layers=(6, 2)), n_steps=2, **QUICK),
        small_deccs(
            network=(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)), nn.Linear(2, 4))
        ),
    ],
    ids=["another method", "layers of another kind"],
)
def test_other_models_are_loaded_as_the_estimator(model, tmp_path):
    model.fit(X).save(tmp_path / "model")
    loaded = deccs.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert_array_equal(loaded.predict(X), model.labels_)


@pytest.mark.parametrize(
    "change",
    [
        put("rm -rf", "parameters", "n_clusters"),
        put("yes", "parameters", "verbose"),
        put(7, "parameters", "unknown"),
        put({"kind": "dict", "items": []}, "learned", "classifiers_"),
        put(9, "learned", "n_features_in_"),
        put(99, "learned", "best_round_"),
        put(None, "learned", "label_classifier_"),
        put(1, "learned", "predict"),
        lambda document: document["learned"].pop("labels_"),
    ],
)
def test_what_the_estimator_refuses_a_predictor_refuses(folder, tmp_path, change):
    shutil.copytree(folder / "model", tmp_path / "model")
    forge(tmp_path / "model", change)
    for load in (DECCS.load, deccs.load):
        with pytest.raises(ModelFileError):
            load(tmp_path / "model")


def test_a_predictor_says_what_it_cannot_do(folder, tmp_path):
    light = deccs.load(folder / "model")
    with pytest.raises(AttributeError, match=r"deccs.DECCS.load"):
        light.fit(X)
    with pytest.raises(AttributeError, match=r"deccs.DECCS.load"):
        light.save(tmp_path / "again")
    with pytest.raises(ValueError, match="X has 3 features, but Predictor is expecting 4"):
        light.predict(X[:, :3])
    with pytest.raises(ValueError, match="infinity"):
        light.predict(np.full((1, 4), np.inf))
    assert repr(light) == "<Predictor of 3 clusters, 4 columns>"
    shutil.copytree(folder / "model", tmp_path / "model")
    forge(tmp_path / "model", put("Predictor", "class"))
    with pytest.raises(ModelFileError, match="'Predictor', which is no estimator"):
        deccs.load(tmp_path / "model")
