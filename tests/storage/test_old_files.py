"""Models and checkpoints written before version 2 of the format: they load and say the same.

``fixtures/make.py`` says how they were made. The bits are those of one machine: another processor
rounds otherwise, even one of the same name.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from torch import nn

from deccs import DECCS, Callback, Network, Pretraining, Rounds, deep
from deccs.storage import CheckpointError, FolderCheckpoint, checkpoints, load
from deccs.storage.models import estimators

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED = np.load(FIXTURES / "expected.npz")
X = EXPECTED["X"]
ZIPS = sorted(path.name for path in FIXTURES.glob("*.zip"))
MEMBERS = [("km", KMeans(3, n_init=1)), ("gm", GaussianMixture(3))]


def assert_same_answers(model, name, rtol=1e-9):
    answers = {key.partition("/")[2] for key in EXPECTED.files if key.startswith(f"{name}/")}
    assert "predict" in answers
    assert_array_equal(model.predict(X), model.labels_)
    for method in answers:
        before, now = EXPECTED[f"{name}/{method}"], getattr(model, method)(X)
        if method == "consensus_confidence" and isinstance(model, DECCS):
            now = model.answer(X).support  # what confidence was, before it rested on the raw data
        if method == "transform" and type(model).__name__ == "IEC":
            now = now * np.sign((now * before).sum(axis=0))  # singular vectors have no sign
        assert_allclose(now, before, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("file", ["deccs", *ZIPS])
def test_a_model_predicts_what_it_always_predicted(file):
    assert_same_answers(load(FIXTURES / file), file.partition(".")[0])


def test_parameters_have_their_new_names():
    model = DECCS.load(FIXTURES / "deccs")
    assert model.rounds == Rounds(
        n_rounds=1,
        n_init=1,
        n_steps=4,
        tol=0.5,
        center="median",
        moving_centers=False,
        standardize=True,
        lambda_cons=0.5,
    )
    assert model.network == Network(layers=(6, 2))
    assert model.pretraining == Pretraining(
        n_epochs=3, batch_size=16, learning_rate=1e-2, grid={"dropout": [0.0]}
    )
    assert (model.n_clusters, model.scale, model.random_state) == (3, "columns", 0)
    assert model.views is None  # there were none
    assert deep.IDEC.load(FIXTURES / "idec.zip").lambda_cluster == 0.2
    assert deep.AGAE.load(FIXTURES / "agae.zip").n_neighbors == 7
    assert load(FIXTURES / "consensus.zip").sample_size == 1_000


def test_models_of_nearly_all_estimators_are_kept():
    kept = {type(load(FIXTURES / file)).__name__ for file in ("deccs", *ZIPS)}
    ours = {name for name, cls in estimators().items() if cls.__module__.startswith("deccs.")}
    assert kept == ours - {"ConCURL", "ConsensusMatrix"}  # its network takes 190 KB


@pytest.mark.parametrize("file", ["deccs", *ZIPS])
def test_a_fit_with_the_old_settings_gives_the_old_answers(file):
    model = clone(load(FIXTURES / file))
    if file == "deccs":  # files do not keep clusterers
        model.set_params(members=[*MEMBERS, ("mine", np.arange(60) % 3)])
    assert_same_answers(model.fit(X), file.partition(".")[0], rtol=1e-3)


def test_an_old_model_is_saved_as_a_new_one(tmp_path):
    model = DECCS.load(FIXTURES / "deccs")
    model.save(tmp_path / "model")
    again = DECCS.load(tmp_path / "model")
    assert again.rounds == model.rounds
    assert_same_answers(again, "deccs")


# Checkpoints


def interrupted(**changes):
    """The fit that was interrupted, in today's words."""
    return DECCS(
        3,
        members=MEMBERS,
        views=None,
        network=Network(layers=(6, 2), dropout=0.1),
        pretraining=Pretraining(n_epochs=6, batch_size=16),
        rounds=Rounds(n_rounds=2, n_init=1, n_steps=4, tol=-1.0, center="median"),
        random_state=0,
    ).set_params(**changes)


@pytest.fixture(params=["pretraining", "rounds"])
def old(request, tmp_path, monkeypatch):
    """A copy of a checkpoint, in a world with the libraries it was written with."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(FIXTURES / request.param, folder)
    facts = FolderCheckpoint(folder).load("fit")["facts"]
    names = checkpoints.versions()
    monkeypatch.setattr(checkpoints, "versions", lambda: {name: facts[name] for name in names})
    return folder


class Counts(Callback):
    def __init__(self):
        self.steps, self.rounds = [], []

    def on_progress(self, progress):
        if progress.stage != "confidence":  # which trains nothing
            self.steps.append(progress.step)

    def on_round(self, finished):
        self.rounds.append(finished.number)


def assert_ended_alike(model):
    assert_allclose(model.transform(X), EXPECTED["ended/transform"], rtol=1e-3, atol=1e-3)
    assert_array_equal(model.labels_, EXPECTED["ended/labels"])
    agreements = [finished.agreement for finished in model.rounds_]
    assert_allclose(agreements, EXPECTED["ended/agreement"])


def test_a_checkpoint_is_resumed_to_the_same_end(old):
    """60 rows, 6 of them held out: 54 in batches of 16 are 4 steps an epoch."""
    in_pretraining = not (old / "pretrained.state.zip").exists()
    counts = Counts()
    model = interrupted(checkpoint=old, callbacks=[counts]).fit(X)
    assert_ended_alike(model)
    assert counts.steps == ([16, 20, 24] if in_pretraining else [])  # three epochs were saved
    assert counts.rounds == ([0, 1, 2] if in_pretraining else [2])
    assert not old.exists()


class Stop(Exception):
    pass


@pytest.mark.parametrize("old", ["pretraining"], indirect=True)
def test_a_resumed_checkpoint_can_be_interrupted_again(old, monkeypatch):
    monkeypatch.setattr(checkpoints, "LEAST_PAUSE", 0.0)
    monkeypatch.setattr(checkpoints, "PAUSE_PER_COST", 0)

    class Interrupts(Callback):
        def on_progress(self, progress):
            if progress.step == 24:
                raise Stop

    with pytest.raises(Stop):
        interrupted(checkpoint=old, callbacks=[Interrupts()]).fit(X)
    counts = Counts()
    model = interrupted(checkpoint=old, callbacks=[counts]).fit(X)
    assert counts.steps == [24]
    assert_ended_alike(model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds__tol": 0.1}, r"rounds__tol \(-1.0 there, 0.1 now\)"),
        ({"rounds__patience": 4}, r"rounds__patience \(3 there, 4 now\)"),  # it was fixed then
        ({"network__dropout": 0.0}, r"network__dropout \(0.1 there, 0.0 now\)"),
        ({"pretraining__n_epochs": 7}, r"pretraining__n_epochs \(6 there, 7 now\)"),
        ({"pretraining__schedule": "plateau"}, "pretraining__schedule"),
        ({"pretraining": None}, r"pretraining__batch_size \(16 there, 128 now\)"),
        ({"random_state": 1}, "seed"),
        ({"views": "auto"}, r"views \(None there, 'auto' now\)"),
        ({"network": (nn.Linear(4, 2), nn.Linear(2, 4))}, r"network \(None there, "),
    ],
)
def test_other_settings_are_an_error(changes, message, old):
    with pytest.raises(CheckpointError, match=f"another fit; what differs: .*{message}"):
        interrupted(checkpoint=old).set_params(**changes).fit(X)


def test_defaults_were_none_or_auto():
    """What old checkpoints said of a fit with default pretraining, with and without an object."""
    facts = FolderCheckpoint(FIXTURES / "rounds").load("fit")["facts"]
    auto = (
        "Pretraining(epochs='auto', batch_size=128, learning_rate=0.001, weight_decay=0.0, "
        "input_noise='auto', schedule='one-cycle', patience=10, held_out=0.1, layerwise_epochs=0)"
    )
    model = interrupted().set_params(pretraining=None)
    now = {"method": "DECCS", **model._facts()}
    for words in ("None", auto):
        before = model._facts_of_version_1({**facts, "pretraining": words})
        assert {name: before[name] for name in now} == now


def test_own_modules_of_an_old_checkpoint():
    facts = FolderCheckpoint(FIXTURES / "rounds").load("fit")["facts"]
    model = interrupted(network=(nn.Linear(4, 2), nn.Linear(2, 4)))
    words = checkpoints.as_fact(model.network)
    before = model._facts_of_version_1(
        {**facts, "autoencoder": words, "layers": "'auto'", "dropout": "0.0"}
    )
    now = {"method": "DECCS", **model._facts()}
    assert {name: before[name] for name in now} == now
    assert not [name for name in before if name.startswith("network__")]
