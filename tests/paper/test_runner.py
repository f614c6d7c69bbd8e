"""One run: what its record holds, and that it is the plain fit."""

import json

import pytest

from deccs import Pretraining, datasets
from deccs.scores import against_truth
from deccs_paper import runner
from deccs_paper.processes import Workers
from deccs_paper.settings import FUNCTIONS

QUICK = {
    "rounds__n_rounds": 1,
    "rounds__n_init": 1,
    "rounds__n_steps": 5,
    "pretraining": Pretraining(n_epochs=2),
}


def small_data(name):
    X, y = datasets.make_synth(n_per_cluster=75, random_state=0)
    return datasets.Dataset(name, X, y, 300, 2, 4, None, "made up", "sha")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(runner, "load_data", small_data)


def quick_run(repetition=0, method="DECCS", **changes):
    return runner.Run("test", method, "synth", repetition, QUICK | changes)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A cache, and the record of the first run with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "load_data", small_data)
        cache = tmp_path_factory.mktemp("cache")
        (record,) = runner.carry_out(quick_run(), cache)
    assert record["status"] == "ok", record.get("traceback")
    return cache, record


def test_a_record_has_what_the_tables_need(made):
    record = made[1]
    assert set(record) >= {
        "experiment",
        "method",
        "dataset",
        "dataset_sha256",
        "seed",
        "settings",
        "scores",
        "members",
        "rounds",
        "seconds",
        "peak_memory_mb",
        "versions",
        "machine",
        "code",
        "best_round",
        "autoencoder",
    }
    assert set(record["scores"]) == {"nmi", "ari", "accuracy", "agreement"}
    assert len(record["rounds"]) == 2
    assert set(record["rounds"][0]["members"]["kmeans"]) == {"nmi", "ari", "accuracy"}
    assert set(record["seconds"]) >= {"pretrain", "rounds", "cluster", "update", "total"}
    assert record["autoencoder"]["steps"] == 2 * 3  # two passes over 270 rows in batches of 128
    assert record["scores"] == json.loads(json.dumps(record["scores"]))


def test_a_cached_autoencoder_gives_the_same_run(made):
    cache, first = made
    (second,) = runner.carry_out(quick_run(), cache)
    assert (first["autoencoder"]["from"], second["autoencoder"]["from"]) == ("training", "cache")
    for name in ("scores", "members"):
        assert first[name] == second[name]
    # What it cost to train it, not to read it.
    assert first["seconds"]["pretrain"] == second["seconds"]["pretrain"]
    other = quick_run(pretraining=Pretraining(n_epochs=3))
    start = runner.pretrained(other.estimator(), small_data("synth"), cache, other.seed)
    assert start.facts["from"] == "training" and start.facts["steps"] == 3 * 3


def test_the_runner_gives_what_a_plain_fit_gives(made):
    data = small_data("synth")
    model = quick_run().estimator().fit(data.X)
    assert made[1]["scores"].items() >= against_truth(data.y, model.labels_).items()
    members = zip(model.member_names_, model.members_predict(data.X), strict=True)
    assert made[1]["members"] == {name: against_truth(data.y, labels) for name, labels in members}


def test_a_deep_method_starts_from_the_autoencoder_of_deccs(made, monkeypatch):
    """With the cache, only the first method of a seed trains it."""
    monkeypatch.setattr(
        runner.METHODS["DECCS"].build.__globals__["DECCS"],
        "_learn",
        lambda *words: pytest.fail("DECCS itself is not fitted"),
    )
    run = runner.Run("test", "AE+k-means", "synth", 0, {})
    keys = []

    def pretrained(model, data, cache, seed):
        model.set_params(pretraining=QUICK["pretraining"])
        start = real(model, data, cache, seed)
        keys.append(start.facts["key"])
        return start

    real = runner.pretrained
    monkeypatch.setattr(runner, "pretrained", pretrained)
    (record,) = runner.carry_out(run, made[0])
    assert record["status"] == "ok", record.get("traceback")
    assert record["autoencoder"]["from"] == "cache" and keys == [made[1]["autoencoder"]["key"]]


def test_a_failed_run_is_a_record_with_a_status_and_no_number(tmp_path):
    (record,) = runner.carry_out(quick_run(rounds__center="mode"), tmp_path)
    assert record["status"] == "failed"
    assert "rounds.center must be 'mean' or 'median', got 'mode'" in record["error"]
    assert "scores" not in record and "check_parameters" in record["traceback"]


def test_data_sets_are_loaded_or_generated(monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv("DECCS_DATA", raising=False)  # SYNTH then comes from its generator
    assert runner.load_data("synth").X.shape == (2000, 2)
    nonlinear = runner.load_data("nonlinear")
    assert (nonlinear.n, nonlinear.d, nonlinear.k) == (1000, 2, 2)
    assert nonlinear.X.dtype == "float32"


def test_seeds_depend_on_the_place_alone():
    assert quick_run(3).seed == quick_run(3, method="DEC").seed
    assert len({quick_run(repetition).seed for repetition in range(20)}) == 20


def test_an_ensemble_is_clustered_once_and_every_function_has_its_record(tmp_path):
    made = runner.carry_out(
        runner.Run("test", "consensus", "synth", 0, {"sample_size": 200}), tmp_path
    )
    assert [record["method"] for record in made] == [name.upper() for name in FUNCTIONS]
    assert all(record["status"] == "ok" and record["n_sample"] == 200 for record in made)
    assert len({json.dumps(record["members"]) for record in made}) == 1
    embedded = runner.Run("test", "AE+consensus", "synth", 0, {"sample_size": 200})
    headers = runner.headers(embedded)
    assert [header["method"] for header in headers] == [f"AE+{name.upper()}" for name in FUNCTIONS]
    assert {header["settings"]["function"] for header in headers} == set(FUNCTIONS)


@pytest.mark.slow
def test_one_run_in_a_separate_process(tmp_path):
    with Workers(1, tmp_path) as workers:
        workers.start_next([quick_run()])
        ((record,),) = workers.ended()
    assert record["status"] == "ok"
