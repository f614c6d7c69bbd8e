"""Rejecting, drift notes and pages, and the history of files, as a user types them."""

import json
import shutil

import numpy as np
import pytest

from deccs import DECCS
from deccs.app.watching import DRIFTED
from deccs.watching.history import HISTORY, read
from tests.helpers.command_line import deccs, rows_of, write_table
from tests.helpers.small import far_blobs

SETTINGS = """
clusters = 3
rounds = 1
id = "key"
[settings]
network.layers = [8, 2]
rounds = {n_init = 1, n_steps = 10, batch_size = 64}
[settings.pretraining]
n_epochs = 15
batch_size = 32
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A fit of blobs, a file like it, and one whose column c has moved, with rows like no other."""
    place, X = tmp_path_factory.mktemp("watch"), far_blobs().X
    rng = np.random.default_rng(0)
    like = X[rng.permutation(180)] + rng.normal(0, 0.05, X.shape)
    other = like + np.array([0, 0, 3, 0])
    other[:20] = 99
    write_table(place / "train.csv", X)
    write_table(place / "like.csv", like)
    write_table(place / "<b>other.csv", other)
    write_table(place / "few.csv", like[:3])
    (place / "fit.toml").write_text(SETTINGS)
    words = ("fit", place / "train.csv", "--config", place / "fit.toml", "--out", place / "run")
    code, _, err = deccs(*words)
    assert code == 0, err
    return place


@pytest.fixture
def run(place, tmp_path):
    """A copy of the run, to be changed."""
    return shutil.copytree(place / "run", tmp_path / "run")


def test_unlike_rows_are_rejected_and_their_novelty_is_written(place):
    file = place / "<b>other.csv"
    plain = rows_of(deccs("predict", place / "run", file, "-q")[1])
    code, out, _ = deccs("predict", place / "run", file, "--reject", "0.01", "--novelty", "-q")
    rows = rows_of(out)
    assert code == 0 and rows[0] == [*plain[0], "novelty"] == [
        "id",
        "label",
        "name",
        "confidence",
        "novelty",
    ]
    novelty = np.array([float(row[4]) for row in rows[1:]])
    labels = np.array([int(row[1]) for row in rows[1:]])
    assert (labels[:20] == -1).all() and all(row[2] == "" for row in rows[1:21])
    np.testing.assert_array_equal(labels == -1, novelty > 0.99)
    kept = labels >= 0
    np.testing.assert_array_equal(labels[kept], [int(r[1]) for r in np.array(plain[1:])[kept]])
    assert (
        rows_of(deccs("predict", place / "run", file, "--reject", "0.01", "-q")[1])[0] == plain[0]
    )


@pytest.mark.parametrize("rate", ["0", "1", "2", "often", "nan"])
def test_a_rate_that_is_none_is_told(place, rate):
    code, _, err = deccs("predict", place / "run", place / "like.csv", "--reject", rate)
    assert code == 2 and "--reject must be a share" in " ".join(err.split())


def test_a_model_without_novelty_is_told(place, run):
    model = DECCS.load(run / "model")
    model.novelty_ = None
    preprocessing = json.loads((run / "model" / "model.json").read_text())["preprocessing"]
    from deccs import storage

    storage.save(model, run / "model", preprocessing=preprocessing)
    code, _, err = deccs("predict", run, place / "like.csv", "--reject", "0.01")
    assert code == 2 and "--reject needs novelty" in err


def test_predict_says_whether_a_file_has_drifted(place):
    assert "No drift" in deccs("predict", place / "run", place / "like.csv")[2]
    code, _, err = deccs("predict", place / "run", place / "<b>other.csv")
    assert code == 0 and "Drift:" in err and "unlike any of the fit" in err and "c: median" in err
    assert "too few rows" in deccs("predict", place / "run", place / "few.csv")[2]


def test_a_drift_page_is_one_file_and_escapes_names(place, tmp_path):
    page = tmp_path / "page.html"
    deccs(
        "predict",
        place / "run",
        place / "<b>other.csv",
        "--drift",
        page,
        "--out",
        tmp_path / "l.csv",
    )
    text = page.read_text()
    assert "<b>other" not in text and "&lt;b&gt;other" in text
    assert "<script" not in text and "http" not in text.replace("http-equiv", "")
    assert text.count("<svg") >= 2 and "unlike any of the fit" in text


def test_a_history_is_kept_and_a_file_is_compared_once(place, run, tmp_path):
    files = place / "like.csv", place / "<b>other.csv"
    code, out, err = deccs("watch", run, *files)
    assert code == 0 and "no drift" in out and "no cluster" not in err
    before = (run / HISTORY).read_bytes()
    code, out, err = deccs("watch", run, files[0], "--page", tmp_path / "page.html", "--json")
    assert "was compared before" in err and (run / HISTORY).read_bytes() == before
    assert [entry["is_drift"] for entry in json.loads(out)["files"]] == [False, True]
    text = (tmp_path / "page.html").read_text()
    assert text.count("<polyline") == 4 and "&lt;b&gt;other" in text  # rejected, three clusters


def test_drift_can_be_an_exit_code(place, run):
    assert deccs("watch", run, place / "like.csv", "--fail-on-drift")[0] == 0
    assert deccs("watch", run, place / "<b>other.csv", "--fail-on-drift")[0] == DRIFTED == 3
    assert deccs("watch", run, place / "<b>other.csv", "--fail-on-drift")[0] == 3  # known already


def test_a_line_that_was_cut_off_harms_no_other(place, run):
    deccs("watch", run, place / "like.csv")
    history = run / HISTORY
    history.write_bytes(history.read_bytes() + b'{"format": 1, "fi')
    deccs("watch", run, place / "<b>other.csv")
    assert [entry.file for entry in read(history)] == ["like.csv", "<b>other.csv"]


@pytest.mark.parametrize("line", ["[]", '{"format": 1}', '{"clusters": "x"}', "7"])
def test_a_history_of_somebody_else_is_refused(run, line):
    (run / HISTORY).write_text(line + "\n")
    code, _, err = deccs("watch", run)
    assert code == 2 and "was not written by `deccs watch`" in " ".join(err.split())
