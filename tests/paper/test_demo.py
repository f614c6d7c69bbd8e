"""``deccs demo``: its files and its words."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from deccs import DECCS, Pretraining, Rounds, datasets, scores
from deccs.app.cli import app
from deccs_paper import demo

X, Y = datasets.make_synth(n_per_cluster=25, random_state=0)


def quick(name, *, random_state=0):
    return DECCS(
        4,
        views=None,
        rounds=Rounds(n_rounds=1, n_init=1, n_steps=10, lambda_cons=1.0),
        pretraining=Pretraining(n_epochs=10),
        random_state=random_state,
        scale=None,
    )


@pytest.fixture
def run(monkeypatch):
    """``run(folder, seed)``: the command with a quick fit."""
    monkeypatch.setattr(demo, "estimator_for", quick)
    monkeypatch.setattr(demo.datasets, "load", lambda name, return_X_y: (X, Y))
    return lambda out, seed=0: CliRunner().invoke(
        app, ["demo", "--out", str(out), "--seed", str(seed)]
    )


def test_the_demo_writes_labels_representation_rounds_and_a_picture(tmp_path, run):
    out, plain = tmp_path / "new" / "folder", quick("synth", random_state=3).fit(X)
    answer = run(out, seed=3)
    assert answer.exit_code == 0, answer.output
    names = ["labels.csv", "representation.npy", "rounds.json", "synth.png"]
    assert sorted(path.name for path in out.iterdir()) == names

    table = np.loadtxt(out / "labels.csv", delimiter=",", skiprows=1, dtype=int)
    assert (out / "labels.csv").read_text().startswith("row,label,truth\n")
    np.testing.assert_array_equal(table, np.column_stack([np.arange(len(X)), plain.labels_, Y]))
    np.testing.assert_array_equal(np.load(out / "representation.npy"), plain.transform(X))

    history = json.loads((out / "rounds.json").read_text())
    assert history["labels"]["nmi"] == scores.nmi(Y, plain.labels_)
    assert [row["agreement"] for row in history["rounds"]] == [
        round_.agreement for round_ in plain.rounds_
    ]
    assert set(history["rounds"][0]["members"]) == {
        "kmeans",
        "spectral",
        "agglomerative",
        "mixture",
    }
    assert history["rounds"][0]["losses"]["total"] > 0
    assert history["rounds"][-1]["losses"] is None  # no update after the last clustering
    assert (out / "synth.png").read_bytes().startswith(b"\x89PNG")

    assert f"NMI {scores.nmi(Y, plain.labels_):.3f}" in answer.stdout
    assert str(out / "synth.png") in answer.stdout
    assert answer.stderr.count("NMI KM") == 2  # a line per round


def test_without_matplotlib_there_is_no_picture_and_the_rest_is_written(tmp_path, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    answer = run(tmp_path)
    assert answer.exit_code == 0
    assert not (tmp_path / "synth.png").exists()
    assert (tmp_path / "labels.csv").exists()
    assert 'pip install "deccs[report]"' in answer.stderr


@pytest.mark.parametrize("below", ["", "folder"])
def test_a_file_in_the_place_of_the_folder_is_a_clear_error(tmp_path, run, below):
    (tmp_path / "taken").write_text("mine")
    answer = run(tmp_path / "taken" / below)
    assert answer.exit_code == 2 and str(tmp_path / "taken") in answer.stderr
    assert (tmp_path / "taken").read_text() == "mine"
