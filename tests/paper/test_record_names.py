"""Settings in records keep the names of the first version: no published run is repeated."""

import ast

import numpy as np
import pytest

from deccs import DECCS, Pretraining, Rounds
from deccs.datasets import Dataset
from deccs_paper import grid, records, runner
from deccs_paper.experiments import EXPERIMENTS, runs_of
from deccs_paper.record_names import record_name, settings_record
from deccs_paper.runner import Run
from deccs_paper.settings import RUN_FOR, estimator_for

PUBLISHED = records.read_all(records.published())
NEW_NAMES = {
    record_name(f"{part}__{name}"): f"{part}__{name}"
    for part, settings in (("rounds", Rounds()), ("pretraining", Pretraining()))
    for name in settings.get_params()
}


def test_no_published_run_is_missing(monkeypatch):
    """All runs of all tables and figures have their records, as before the settings were renamed."""
    points = {record["dataset"]: record["n"] for record in PUBLISHED if "n" in record}
    monkeypatch.setattr(grid, "points_at_hand", points.__getitem__)
    wanted = runs_of(EXPERIMENTS)
    assert len(wanted) == 1888
    assert grid.missing(wanted, grid.Known(PUBLISHED)) == []


def changes_of(record):
    """What a run changed, by today's names, from what its record says."""
    if record["experiment"] == "default":
        return {}
    if record["experiment"] == "rp-oracle":
        tried = ("n_components", "n_projections", "version")
        return {name: record["settings"][name] for name in tried if name in record["settings"]}
    pairs = [pair.split("=") for pair in record["experiment"].split(", ")]
    nested = NEW_NAMES if record["method"] == "DECCS" else {}
    return {nested.get(name, name): ast.literal_eval(value) for name, value in pairs}


def test_every_published_record_is_found_by_its_settings():
    """Those that belong to no table, too."""
    made: dict = {}
    for record in PUBLISHED:
        changes = changes_of(record)
        key = (RUN_FOR[record["method"]], record["dataset"], str(changes))
        if key not in made:
            run = Run("", key[0], record["dataset"], 0, changes)
            made[key] = {header["method"]: header["settings"] for header in runner.headers(run)}
        assert records.as_stored(made[key][record["method"]]) == record["settings"]
    assert len(PUBLISHED) == 1108


def test_the_names_of_a_record_by_hand():
    model = estimator_for(
        "synth",
        rounds__tol=0.01,
        rounds__center="median",
        rounds__standardize=True,
        pretraining__n_epochs=3,
    )
    record = settings_record(model)
    assert (record["tolerance"], record["centre"], record["standardise"]) == (0.01, "median", True)
    assert (record["layers"], record["lambda_cons"]) == ((20, 20, 2), 10.0)
    assert record["pretraining"]["epochs"] == 3
    assert record["members"][1] == ["spectral", "NeighbourSpectral(n_clusters=4)"]
    assert not {"random_state", "callbacks", "network", "rounds", "device"} & set(record)


def test_settings_that_records_lack_are_recorded_only_where_they_are_changed():
    assert "rec_by_disagreement" not in settings_record(DECCS(3))
    changed = DECCS(3, rounds=Rounds(rec_by_disagreement=False)).set_params(
        pretraining__n_steps=500
    )
    record = settings_record(changed)
    assert record["rec_by_disagreement"] is False and record["pretraining"]["n_steps"] == 500
    assert settings_record(DECCS(3)) != record


def test_cached_autoencoders_of_published_runs_would_be_found():
    """Caches of the first version stay valid."""
    record = next(one for one in PUBLISHED if "autoencoder" in one and one["method"] == "DECCS")
    assert record["dataset"] == "synth"
    X = np.random.default_rng(0).normal(size=(20, 2))
    data = Dataset("synth", X, X[:, 0], 20, 2, 4, None, "", record["dataset_sha256"])
    run = Run("default", "DECCS", "synth", record["repetition"], {"pretraining__n_epochs": 0})
    start = runner.pretrained(run.estimator(), data, None, run.seed)
    model = Run("default", "DECCS", "synth", record["repetition"], {}).estimator()
    key = runner.cache_key(model, data, start.rows, start.autoencoder, run.seed)
    assert key == record["autoencoder"]["key"]


@pytest.mark.parametrize("name", Rounds().get_params())
def test_every_setting_of_the_rounds_identifies_a_run(name):
    """Two runs that differ in one setting must not pass for the same."""
    default = settings_record(DECCS(3))
    other = settings_record(DECCS(3).set_params(**{f"rounds__{name}": "something else"}))
    different = {key for key in other if other[key] != default.get(key)}
    assert different == {record_name(f"rounds__{name}")}
