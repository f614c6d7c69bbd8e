"""Checkpoints: a fit that was stopped or killed goes on, and ends with the same bits as one straight run."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from torch import nn

import deccs
from deccs import DECCS, Callback, Network, Pretraining, Rounds
from deccs.storage import CheckpointError, CheckpointWarning, checkpoints
from deccs.storage.checkpoints import FolderCheckpoint, as_fact, fingerprint
from tests.helpers.images import blots
from tests.helpers.slow import mostly_slow

pytestmark = pytest.mark.usefixtures("quick_classifiers")
MEMBERS = [("km", KMeans(3, n_init=2)), ("gm", GaussianMixture(3)), ("five", KMeans(5, n_init=2))]
OWN = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2)), nn.Linear(2, 4)


def new(**changes):
    """A DECCS of six epochs and four rounds; settings by their nested names."""
    return DECCS(
        members=MEMBERS,
        network=Network(layers=(8, 2)),
        pretraining=Pretraining(n_epochs=6, batch_size=32),
        rounds=Rounds(n_rounds=3, n_init=1, n_steps=8),
        random_state=0,
    ).set_params(**changes)


SETTINGS = {
    "two starts": {"rounds__n_init": 2, "rounds__n_rounds": 2},
    "plateau, dropout": {"network__dropout": 0.2, "pretraining__schedule": "plateau"},
    "large network, layer by layer": {
        "network__layers": (150, 100, 2),
        "pretraining": Pretraining(n_epochs=3, batch_size=64, layerwise_epochs=2),
    },
    "tiny network, layer by layer": {
        "network__layers": (8, 5, 2),
        "pretraining": Pretraining(n_epochs=3, batch_size=64, layerwise_epochs=2),
    },
    "search": {
        "rounds__n_rounds": 0,
        "pretraining__grid": {"layers": [(8, 2), (6, 3)], "learning_rate": [1e-3, 1e-2]},
    },
    "patience": {
        "rounds__n_rounds": 0,
        "pretraining": Pretraining(
            n_epochs=40, batch_size=32, schedule="plateau", patience=2, learning_rate=0.05
        ),
    },
    "own modules": {"network": OWN},
    "stable at once": {"rounds__tol": 2.0},
}


class Stop(Exception):
    pass


class Stopper(Callback):
    """Counts epochs and rounds, and interrupts the fit after so many."""

    def __init__(self, after=None):
        self.after, self.seen = after, 0

    def on_progress(self, progress):
        if progress.stage != "confidence":  # which trains nothing
            self.count()

    def on_round(self, finished):
        self.count()

    def count(self):
        self.seen += 1
        if self.seen == self.after:
            raise Stop


@pytest.fixture
def at_every_epoch(monkeypatch):
    monkeypatch.setattr(checkpoints, "LEAST_PAUSE", 0.0)
    monkeypatch.setattr(checkpoints, "PAUSE_PER_COST", 0)


def bits(model):
    return [
        model.labels_,
        model.agreement_,
        model.best_round_,
        model.label_source_,
        *model._cluster_names,
        *(weight.numpy() for weight in model.autoencoder_.state_dict().values()),
        *(weight.numpy() for weight in model.classifiers_.state_dict().values()),
        *(
            part
            for done in model.rounds_
            for part in (
                done.number,
                done.start,
                done.sample,
                done.Z,
                done.base_partitions,
                done.weights,
                done.agreement,
                done.consensus_weight,
                *(vars(done.losses).values() if done.losses else ()),
            )
        ),
    ]


def assert_same_bits(one, other):
    first, second = bits(one), bits(other)
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("name", mostly_slow(SETTINGS, ("plateau, dropout", "search")))
def test_stopped_at_any_epoch_or_round_it_goes_on(name, blobs, tmp_path, at_every_epoch):
    settings = SETTINGS[name]
    counter = Stopper()
    straight = new(**settings, callbacks=[counter]).fit(blobs.X)
    folder = tmp_path / "checkpoint"
    rng = random.Random(name)
    after, seen = 0, 0
    while seen < counter.seen:  # after a few more epochs and rounds each time
        after = rng.randint(3, 6)
        stopper = Stopper(after)
        try:
            found = new(**settings, callbacks=[stopper], checkpoint=folder).fit(blobs.X)
            break
        except Stop:
            seen += after - 1
            assert folder.is_dir()
    else:
        found = new(**settings, checkpoint=folder).fit(blobs.X)
    assert_same_bits(found, straight)
    assert not folder.exists()


@pytest.mark.slow
def test_images_are_moved_alike_after_a_break(tmp_path, at_every_epoch):
    X = blots()
    straight = new(n_clusters=2).fit(X)
    for after in (2, 4, 7):  # amid the six epochs, and after the first round
        with pytest.raises(Stop):
            new(n_clusters=2, callbacks=[Stopper(after)], checkpoint=tmp_path / "c").fit(X)
        found = new(n_clusters=2, checkpoint=tmp_path / "c").fit(X)
        assert_same_bits(found, straight)
    with pytest.raises(AssertionError):
        assert_same_bits(new(n_clusters=2, network__image_shape=None).fit(X), straight)


def test_what_is_done_is_not_done_again(blobs, tmp_path, at_every_epoch):
    counter = Stopper()
    new(callbacks=[counter]).fit(blobs.X)
    with pytest.raises(Stop):
        new(callbacks=[Stopper(8)], checkpoint=tmp_path / "c").fit(blobs.X)  # 6 epochs, 2 rounds
    rest = Stopper()
    new(callbacks=[rest], checkpoint=tmp_path / "c").fit(blobs.X)
    assert rest.seen == counter.seen - 8


def test_a_seed_of_chance_is_taken_up(blobs, tmp_path):
    settings = {"random_state": None}
    with pytest.raises(Stop):
        new(**settings, callbacks=[Stopper(8)], checkpoint=tmp_path / "c").fit(blobs.X)
    seed = FolderCheckpoint(tmp_path / "c").load("fit")["seed"]
    found = new(**settings, checkpoint=tmp_path / "c").fit(blobs.X)
    assert_same_bits(found, new(random_state=seed).fit(blobs.X))


@pytest.fixture
def stopped(blobs, tmp_path):
    """The folder of a fit that was stopped after its second round."""
    with pytest.raises(Stop):
        new(callbacks=[Stopper(8)], checkpoint=tmp_path / "c").fit(blobs.X)
    return tmp_path / "c"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds__n_rounds": 4}, r"rounds__n_rounds \(3 there, 4 now\)"),
        ({"random_state": 1}, r"seed \(0 there, 1 now\)"),
        ({"members": [("km", KMeans(3)), *MEMBERS[1:]]}, "members"),
        ({"pretraining__n_epochs": 7}, r"pretraining__n_epochs \(6 there, 7 now\)"),
        ({"network__dropout": 0.1}, r"network__dropout \(0.0 there, 0.1 now\)"),
    ],
)
def test_other_settings_are_an_error_and_change_nothing(changes, message, stopped, blobs):
    before = {path.name: path.read_bytes() for path in stopped.iterdir()}
    with pytest.raises(
        CheckpointError, match=f"another fit; what differs: {message}.*remove the folder"
    ):
        new(**changes, checkpoint=stopped).fit(blobs.X)
    with pytest.raises(CheckpointError, match="data"):
        new(checkpoint=stopped).fit(blobs.X + 1)
    assert before == {path.name: path.read_bytes() for path in stopped.iterdir()}


def test_what_has_no_effect_may_change(stopped, blobs):
    new(checkpoint=stopped, n_jobs=1, callbacks=[Stopper()]).fit(blobs.X)


def test_a_damaged_state_is_set_aside_and_the_fit_goes_on(stopped, blobs):
    path = stopped / "start-0-rounds.state.zip"
    path.write_bytes(path.read_bytes()[:-100])
    again = Stopper()
    with pytest.warns(CheckpointWarning, match="rounds.state.zip cannot be used: .*truncated"):
        found = new(checkpoint=stopped, callbacks=[again]).fit(blobs.X)
    assert_same_bits(found, new().fit(blobs.X))
    assert again.seen == 4  # all rounds, but no pretraining
    assert not stopped.exists()


def saved_names(folder):
    return sorted(path.name.removesuffix(".state.zip") for path in folder.iterdir())


def test_states_are_removed_before_what_tells_whose_they_are(stopped, blobs, monkeypatch):
    """Killed meanwhile, the next fit with another seed took what was left in silence."""
    assert saved_names(stopped) == ["fit", "pretrained", "start-0-rounds", "whole-network-trained"]
    removed, real = [], Path.unlink

    def unlink(path, **options):
        removed.append(path.name)
        real(path, **options)

    monkeypatch.setattr(Path, "unlink", unlink)
    FolderCheckpoint(stopped).remove()
    assert len(removed) == 4 and removed[-1] == "fit.state.zip"


@pytest.mark.parametrize("changes", [{"random_state": 1}, {"rounds__n_steps": 9}, {"data": 1}])
def test_states_without_their_facts_are_of_no_use_to_another_fit(changes, stopped, blobs):
    """What a kill during the removal left before: the states of a fit, and nothing that tells which."""
    (stopped / "fit.state.zip").unlink()
    changes = dict(changes)
    X = blobs.X + changes.pop("data", 0)
    with pytest.warns(CheckpointWarning, match="belongs to a fit with other data, settings"):
        found = new(**changes, checkpoint=stopped).fit(X)
    assert_same_bits(found, new(**changes).fit(X))
    assert not stopped.exists()


def test_states_without_their_facts_are_taken_up_by_the_same_fit(stopped, blobs):
    (stopped / "fit.state.zip").unlink()
    again = Stopper()
    assert_same_bits(new(checkpoint=stopped, callbacks=[again]).fit(blobs.X), new().fit(blobs.X))
    assert again.seen == 2  # the rounds that were left


def test_damaged_facts_are_set_aside(stopped, blobs):
    FolderCheckpoint(stopped).save("fit", {"seed": "0", "facts": {}})
    with pytest.warns(CheckpointWarning, match="does not say what was fitted"):
        found = new(checkpoint=stopped).fit(blobs.X)
    assert_same_bits(found, new().fit(blobs.X))


def test_a_state_under_the_name_of_another_is_set_aside(stopped, blobs):
    rounds = stopped / "start-0-rounds.state.zip"
    (stopped / "pretrained.state.zip").replace(rounds)
    with pytest.warns(CheckpointWarning, match="the state 'pretrained', not 'start-0-rounds'"):
        found = new(checkpoint=stopped).fit(blobs.X)
    assert_same_bits(found, new().fit(blobs.X))


def resealed(folder, place, name, change):
    """Change a state and save it again, with all checksums right and its owner in it."""
    checkpoint = FolderCheckpoint(folder, place)
    document, _ = checkpoints.container.read(
        checkpoint._path(name), checkpoints.FORMAT, checkpoints.FORMAT_VERSION
    )
    checkpoint.owner.fit = document["fit"]
    state = checkpoint.load(name)
    change(state)
    checkpoint.save(name, state)


CHANGES = {
    "no such field": lambda state: state.pop("step"),
    "another field": lambda state: state.update(more=1),
    "too many steps": lambda state: state.update(step=10**6),
    "less than no step": lambda state: state.update(step=-1),
    "text": lambda state: state.update(step="9"),
    "smaller weights": lambda state: state["learned"].update(network={}),
    "weights that spread": lambda state: state["learned"]["network"].update(
        {name: weight[:1] for name, weight in state["learned"]["network"].items()}
    ),
    "kept weights that are not finite": lambda state: next(
        iter(state["kept"]["network"].values())
    ).fill_(float("nan")),
    "an optimizer that forgot": lambda state: state["optimizers"][0]["state"][0].pop("exp_avg"),
    "an optimizer with one number": lambda state: state["optimizers"][0]["state"][0].update(
        exp_avg=state["optimizers"][0]["state"][0]["exp_avg"][:1]
    ),
    "another decay": lambda state: state["optimizers"][0]["param_groups"][0].update(
        weight_decay=0.5
    ),
    "a shorter schedule": lambda state: state["schedules"][0].update(total_steps=5),
    "a method of the schedule": lambda state: state["schedules"][0].update(step="x"),
    "a generator of three bytes": lambda state: state.update(torch=state["torch"][:3]),
    "a batch after the last": lambda state: state["random"]["batches"].update(number=99),
}


@pytest.mark.parametrize("what", mostly_slow(CHANGES, ("text", "smaller weights")))
def test_a_state_with_other_content_is_set_aside_before_it_is_used(
    what, blobs, tmp_path, at_every_epoch
):
    """Some of these ended in a KeyError or a TypeError of torch, others in another result."""
    with pytest.raises(Stop):
        new(callbacks=[Stopper(4)], checkpoint=tmp_path / "c").fit(blobs.X)
    resealed(tmp_path / "c", "whole-network-", "training", CHANGES[what])
    with pytest.warns(CheckpointWarning, match="whole-network-training.state.zip.bad"):
        found = new(checkpoint=tmp_path / "c", rounds__n_rounds=3).fit(blobs.X)
    assert_same_bits(found, new().fit(blobs.X))


def test_states_without_a_fit_are_only_those_of_old_checkpoints(stopped, blobs, monkeypatch):
    """A state of version 1 beside facts of version 2 was put there by somebody."""
    state = FolderCheckpoint(stopped).load("pretrained")
    monkeypatch.setattr(checkpoints, "FORMAT_VERSION", 1)
    FolderCheckpoint(stopped).save("pretrained", state)
    monkeypatch.undo()
    (stopped / "start-0-rounds.state.zip").unlink()
    with pytest.warns(CheckpointWarning, match="does not say which fit it belongs to"):
        found = new(checkpoint=stopped).fit(blobs.X)
    assert_same_bits(found, new().fit(blobs.X))


def test_a_fit_that_has_not_come_far_holds_up_no_other(blobs, tmp_path):
    with pytest.raises(Stop):
        new(callbacks=[Stopper(1)], checkpoint=tmp_path / "c").fit(blobs.X)
    new(rounds__n_rounds=0, checkpoint=tmp_path / "c").fit(blobs.X)


def test_other_files_in_the_folder_stay(blobs, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    new(checkpoint=tmp_path).fit(blobs.X)
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_state_costs_little_time(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: clock[0])
    checkpoint = FolderCheckpoint(tmp_path)
    saved = []

    def write(*_):
        saved.append(clock[0])
        clock[0] += 1

    monkeypatch.setattr(checkpoints.container, "write", write)
    while clock[0] < 100:
        clock[0] += 1
        checkpoint.save_at_times("epoch", dict)
    assert saved == [2, 33, 64, 95]  # after 2 seconds; then each takes 1 second, and 30 pass


def test_fingerprints_tell_tables_apart():
    X = np.arange(12.0).reshape(4, 3)
    tables = [
        X,
        X.T,
        X.reshape(3, 4),
        X.astype(np.float32),
        X + 1,
        sp.csr_array(X),
        sp.csr_array(X + 1),
    ]
    assert len({fingerprint(table) for table in tables}) == len(tables)
    assert fingerprint(X) == fingerprint(np.asfortranarray(X))


def test_facts_are_the_same_in_another_process():
    class Plain:
        pass

    assert as_fact([("a", Plain())]) == as_fact([("a", Plain())])
    layer = nn.Linear(2, 2)
    assert as_fact((layer, layer)) == as_fact((layer, layer)) != as_fact((layer, nn.Linear(2, 2)))
    assert as_fact(np.arange(3)) != as_fact(np.arange(4))


PROGRAM = """
import os, random, signal, time, warnings
import numpy as np
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from deccs import DECCS, Network, Pretraining, Rounds
from deccs.rounds import classifiers
from deccs.storage import checkpoints

classifiers.MOST_STEPS = 50
warnings.simplefilter("error", checkpoints.CheckpointWarning)
checkpoints.LEAST_PAUSE = checkpoints.PAUSE_PER_COST = 0    # so that there are many moments to be killed at

def fit(n_rounds, n_epochs, dropout=0.0, **more):
    X = np.concatenate([np.random.default_rng(k).normal(3 * k, 1, (100, 5)) for k in range(3)])
    members = [("km", KMeans(3, n_init=2)), ("gm", GaussianMixture(3))]
    return DECCS(
        3,
        members=members,
        network=Network(layers=(20, 2), dropout=dropout),
        pretraining=Pretraining(n_epochs=n_epochs, batch_size=64),
        rounds=Rounds(n_rounds=n_rounds, n_init=2, n_steps=20, tol=-1.0),
        random_state=0,
        **more,
    ).fit(X)

def start(name, folder):
    child = os.fork()
    if child == 0:
        fit(6, 12, dropout=0.1, checkpoint=folder).save(name)
        os._exit(0)
    return child

def seconds(child):               # of its work, which a busy machine does not change; None when it is done
    with open(f"/proc/{child}/stat") as file:
        words = file.read().rpartition(")")[2].split()
    return None if words[0] == "Z" else (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

fit(1, 1).save("first.zip")       # torch and scikit-learn import much at the first use
_, status, used = os.wait4(start("straight.zip", None), 0)
assert status == 0
rng, kills = random.Random(0), 0
while kills < 10:                 # a fit that was done meanwhile starts over
    child, moment = start("resumed.zip", "checkpoint"), rng.uniform(0.02, 0.22) * (used.ru_utime + used.ru_stime)
    while (worked := seconds(child)) is not None and worked < moment:
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    kills += os.waitpid(child, 0)[1] != 0
    print("killed at", worked, sorted(os.listdir("checkpoint")) if os.path.isdir("checkpoint") else "", flush=True)
assert os.waitpid(start("resumed.zip", "checkpoint"), 0)[1] == 0
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_killed_at_ten_random_moments_and_resumed_it_gives_the_same_bits(tmp_path):
    """In processes forked from one that has imported all: a kill is as sudden, and they start in no time."""
    where = {
        **os.environ,
        "PYTHONPATH": str(Path(deccs.__file__).parents[1]),
        "OMP_NUM_THREADS": "1",
    }
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, env=where, check=True)
    assert_same_bits(DECCS.load(tmp_path / "resumed.zip"), DECCS.load(tmp_path / "straight.zip"))
    assert not (tmp_path / "checkpoint").exists()
