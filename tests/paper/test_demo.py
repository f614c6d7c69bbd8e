import json
import sys

import numpy as np
import pytest

from deccs import DECCS, Pretraining, datasets, scores
from deccs.app import run_folder as runs
from deccs_paper import demo

X, Y = datasets.make_synth(n_per_cluster=40, random_state=0)


def quick(name, *, random_state=0):
    return DECCS(
        4,
        n_rounds=1,
        n_init=1,
        n_steps=10,
        lambda_cons=1.0,
        pretraining=Pretraining(epochs=200),
        random_state=random_state,
        scale=None,
    )


@pytest.fixture(scope="module")
def plain():
    return quick("synth", random_state=3).fit(X)


@pytest.fixture
def quickly(monkeypatch):
    monkeypatch.setattr(demo, "estimator_for", quick)
    monkeypatch.setattr(demo.datasets, "load", lambda name, return_X_y: (X, Y))


@pytest.mark.usefixtures("quickly")
def test_the_demo_writes_labels_representation_rounds_and_a_picture(tmp_path, capsys, plain):
    out = tmp_path / "new" / "folder"
    demo.run(out, seed=3)
    names = ["labels.csv", "representation.npy", "rounds.json", "synth.png"]
    assert sorted(path.name for path in out.iterdir()) == names

    table = np.loadtxt(out / "labels.csv", delimiter=",", skiprows=1, dtype=int)
    assert (out / "labels.csv").read_text().startswith("row,label,truth\n")
    np.testing.assert_array_equal(table, np.column_stack([np.arange(len(X)), plain.labels_, Y]))
    np.testing.assert_array_equal(np.load(out / "representation.npy"), plain.transform(X))

    history = json.loads((out / "rounds.json").read_text())
    assert history["labels"]["nmi"] == scores.nmi(Y, plain.labels_)
    assert [row["agreement"] for row in history["rounds"]] == [
        this.agreement for this in plain.rounds_
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

    printed = capsys.readouterr()
    assert f"NMI {scores.nmi(Y, plain.labels_):.3f}" in printed.out
    assert str(out / "synth.png") in printed.out
    assert printed.err.count("NMI KM") == 2  # a line per round


@pytest.mark.usefixtures("quickly")
def test_without_matplotlib_there_is_no_picture_and_the_rest_is_written(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(
        demo, "estimator_for", lambda *given, **named: quick(*given, **named).set_params(n_rounds=0)
    )
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    demo.run(tmp_path)
    assert not (tmp_path / "synth.png").exists()
    assert (tmp_path / "labels.csv").exists()
    assert 'pip install "deccs[report]"' in capsys.readouterr().err


@pytest.mark.parametrize("below", ["", "folder"])
def test_a_file_in_the_place_of_the_folder_is_a_clear_error(tmp_path, below):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(runs.RunError, match=str(tmp_path / "taken")):
        demo.run(tmp_path / "taken" / below)
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path):
    path = runs.write(tmp_path / "kept", lambda file: file.write(b"old"))

    def fail(file):
        file.write(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        runs.write(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
