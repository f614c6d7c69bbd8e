"""From a file to labels and back, as a user types it."""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from deccs import DECCS, __version__
from deccs.app import commands, plugins, run_folder, run_reading
from deccs.app.run_reading import path_from
from deccs.counting.cluster_stability import MOST_DRAWN
from deccs.inference.encoder import DenseEncoder
from deccs.members.default import MEMBERS
from deccs.novelty.learned import MOST_JUDGED
from deccs.scores import ari
from deccs.storage import FolderCheckpoint, locks
from deccs.storage.locks import FolderLock, leave_to_parent
from tests.helpers.command_line import deccs, rows_of, write_table

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
UNFINISHED = [run_folder.CHECKPOINT, run_folder.ROUNDS]
OTHER_LABELS = {"labels.parquet", "labels.xlsx"}
OF_LARGE_TABLES = {run_folder.LABELS_PARTS, run_folder.EMBEDDING_PARTS}
EVERYTHING = sorted({*run_folder.RESULTS, run_folder.ROUNDS} - OTHER_LABELS - OF_LARGE_TABLES)


@pytest.fixture(scope="module")
def place(tmp_path_factory, blobs):
    """A folder with two thirds of the blobs to fit, a third to predict, and settings for a fit within a second."""
    place = tmp_path_factory.mktemp("cli")
    write_table(place / "train.csv", blobs.X[:120])
    write_table(place / "new.csv", blobs.X[120:], first=120)
    (place / "fit.toml").write_text(SETTINGS)
    return place


@pytest.fixture(scope="module")
def run(place):
    """The folder of a fit. Do not change it."""
    code, out, err = deccs(
        "fit", place / "train.csv", "--config", place / "fit.toml", "--out", place / "run"
    )
    assert code == 0, err
    (place / "printed.txt").write_text(out + "\n---\n" + err)
    return place / "run"


def test_fit_writes_the_run_folder(run, place, blobs):
    assert sorted(path.name for path in run.iterdir()) == EVERYTHING  # and no checkpoint is left
    header, *rows = rows_of(run / "labels.csv")
    assert header == ["id", "label", "name", "confidence"]
    assert [row[0] for row in rows] == [f"k{number}" for number in range(120)]
    labels = np.array([int(row[1]) for row in rows])
    np.testing.assert_array_equal(
        labels[:, None] == labels, blobs.y[:120, None] == blobs.y[:120]
    )  # far blobs
    assert all(0 <= float(row[3]) <= 1 for row in rows)
    Z = np.load(run / "embedding.npy")
    assert Z.shape == (120, 2) and Z.dtype == np.float32
    model = DECCS.load(run / "model")
    np.testing.assert_array_equal(model.labels_, labels)
    assert [row[2] for row in rows] == [model.cluster_names_[label] for label in labels]
    np.testing.assert_array_equal(
        model.transform(pd.DataFrame(blobs.X[:120], columns=list("abcd"))).astype(np.float32), Z
    )

    summary = json.loads((run / "summary.json").read_text())
    assert summary["data"]["columns"] == ["a", "b", "c", "d"]
    assert summary["data"]["columns_left_out"] == {"word": "almost every value once"}
    assert [cluster["name"] for cluster in summary["clusters"]] == list(model.cluster_names_)
    assert sum(cluster["size"] for cluster in summary["clusters"]) == summary["data"]["rows"] == 120
    assert (
        summary["agreement_over_rounds"][summary["best_round"]]
        == summary["agreement"]
        == model.agreement_
    )
    assert summary["options"]["clusters"] == "3" and summary["versions"]["deccs"] == __version__
    assert b"<html" in (run / "report.html").read_bytes()[:500]

    rounds = [json.loads(line) for line in (run / "rounds.jsonl").read_text().splitlines()]
    assert [record["agreement"] for record in rounds] == summary["agreement_over_rounds"]
    assert rounds == [round_.as_dict() for round_ in model.rounds_]

    printed = (place / "printed.txt").read_text()
    assert re.search(
        r"word +id, left out +(x\d+,? ){3}and 117 more +almost every value once", printed
    )
    assert "round  0  agreement" in printed and str(run / "labels.csv") in printed


def test_predict_of_the_training_file_is_the_labels_file(run, place, tmp_path):
    code, out, _ = deccs("predict", run, place / "train.csv")
    assert code == 0 and out == (run / "labels.csv").read_text()
    code, out, err = deccs("predict", run, place / "train.csv", "--out", tmp_path / "labels.csv")
    assert code == 0 and out == "" and "120 labels" in err
    assert (tmp_path / "labels.csv").read_bytes() == (run / "labels.csv").read_bytes()
    code, _, err = deccs("predict", run, place / "train.csv", "--out", tmp_path / "labels.csv")
    assert code == 2 and "--overwrite" in err


def test_predict_of_held_out_rows(run, place, blobs):
    code, out, _ = deccs("predict", run, place / "new.csv", "-q")
    _, *rows = rows_of(out)
    assert code == 0 and [row[0] for row in rows] == [f"k{number}" for number in range(120, 180)]
    labels = np.array([int(row[1]) for row in rows])
    np.testing.assert_array_equal(labels[:, None] == labels, blobs.y[120:, None] == blobs.y[120:])


def test_predict_with_columns_in_another_order_extra_and_missing_ones(run, tmp_path, blobs):
    straight = write_table(tmp_path / "straight.csv", blobs.X[:5])
    mixed = write_table(tmp_path / "mixed.csv", blobs.X[:5, [2, 0, 3, 1]], ("c", "a", "d", "b"))
    assert deccs("predict", run, straight)[1] == deccs("predict", run, mixed)[1]
    extra = write_table(
        tmp_path / "extra.csv", np.hstack([blobs.X[:5], blobs.X[:5]]), tuple("abcdefgh")
    )
    code, out, err = deccs("predict", run, extra)
    assert out == deccs("predict", run, straight)[1] and "ignored: word, e, f, g, h" in err
    lacking = write_table(tmp_path / "lacking.csv", blobs.X[:5, :2], ("a", "c"))
    code, out, err = deccs("predict", run, lacking, "--out", tmp_path / "never.csv")
    assert code == 2 and "lacks columns the model needs: b, d" in err
    assert not (tmp_path / "never.csv").exists()


def test_missing_values_keep_their_place_with_an_empty_label(place, tmp_path):
    lines = (place / "train.csv").read_text().splitlines()
    lines[3] = "k2,x2,,,,"
    gaps = tmp_path / "gaps.csv"
    gaps.write_text("\n".join(lines).replace("k2,x2,,,,", "k2,x2,1,,3,4"))
    options = ("fit", gaps, "--config", place / "fit.toml", "--out", tmp_path / "run", "--quiet")
    code, out, err = deccs(*options, "--missing", "error")
    assert code == 2 and "b 1" in err and not (tmp_path / "run").exists()
    assert deccs(*options, "--missing", "drop") == (0, "", "")
    rows = rows_of(tmp_path / "run" / "labels.csv")
    assert len(rows) == 121 and rows[3] == ["k2", "", "", ""] and rows[4][1] != ""
    code, out, _ = deccs("predict", tmp_path / "run", gaps, "-q")  # the choice is remembered
    assert code == 0 and out == (tmp_path / "run" / "labels.csv").read_text()
    filled = rows_of(deccs("predict", tmp_path / "run", gaps, "-q", "--missing", "mean")[1])
    assert filled[3][1] != "" and filled[4:] == rows[4:]
    assert deccs("report", tmp_path / "run", "--out", tmp_path / "again.html")[0] == 0


def test_json_is_one_object_and_the_seed_fixes_all(run, place, tmp_path):
    options = ("--config", place / "fit.toml", "--out", tmp_path / "run", "--json")
    code, out, err = deccs("fit", place / "train.csv", *options)
    document = json.loads(out)
    assert code == 0 and document["status"] == "ok" and document["out"] == str(tmp_path / "run")
    assert "round  0" in err
    assert (tmp_path / "run" / "labels.csv").read_text() == (run / "labels.csv").read_text()
    code, out, err = deccs("fit", tmp_path / "none.csv", "--json")
    assert (
        code == 2
        and json.loads(out)["status"] == "error"
        and "no file" in json.loads(out)["message"]
    )


class Loud(KMeans):
    """Prints in all the ways there are."""

    def fit(self, X, y=None, sample_weight=None):
        print("by Python")
        os.write(1, b"by the system\n")
        subprocess.run([sys.executable, "-c", "print('by a process')"], check=True)
        ctypes.CDLL(None).puts(b"by C")
        return super().fit(X)


@pytest.mark.skipif(os.name != "posix", reason="C code is asked for by its name on Linux and macOS")
def test_what_members_print_is_no_part_of_the_result(place, tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(MEMBERS, "loud", lambda k: Loud(k, n_init=1))
    options = ("--config", place / "fit.toml", "--out", tmp_path / "run", "--json", "--quiet")
    code, out, err = deccs("fit", place / "train.csv", *options, "--members", "kmeans,loud")
    assert code == 0 and json.loads(out)["status"] == "ok"
    ctypes.CDLL(None).fflush(None)
    system = capfd.readouterr()
    assert system.out == ""
    for words in ("by Python", "by the system", "by a process", "by C"):
        assert words in err + system.err


def test_the_report_written_again_is_the_same(run, place, tmp_path):
    code, _, err = deccs("report", run, "--out", tmp_path / "again.html")
    assert code == 0 and str(tmp_path / "again.html") in err
    assert (tmp_path / "again.html").read_bytes() == (run / "report.html").read_bytes()
    code, _, err = deccs(
        "report", run, "--out", tmp_path / "never.html", "--data", place / "new.csv"
    )
    assert code == 2 and not (tmp_path / "never.html").exists()


def test_data_that_changed_or_went_is_told(run, place, tmp_path, monkeypatch):
    summary = json.loads((run / "summary.json").read_text())
    for data, word in (
        ({"sha256": "0" * 64}, "has changed"),
        ({"file": str(tmp_path / "gone.csv")}, "--data"),
    ):
        changed = {**summary, "data": {**summary["data"], **data}}
        monkeypatch.setattr(run_reading, "read_summary", lambda folder, changed=changed: changed)
        code, _, err = deccs("report", run)
        assert code == 2 and word in err


def test_results_are_replaced_only_when_asked(run, place, tmp_path):
    options = (
        "fit",
        place / "train.csv",
        "--config",
        place / "fit.toml",
        "--rounds",
        0,
        "-q",
        "--out",
    )
    before = {path.name: path.stat().st_mtime_ns for path in run.iterdir()}
    code, _, err = deccs(*options, run)
    assert code == 2 and "--overwrite" in err
    assert {path.name: path.stat().st_mtime_ns for path in run.iterdir()} == before
    out = tmp_path / "run"
    out.mkdir()
    (out / "mine.txt").write_text("kept")
    for overwrite in ((), ("--overwrite", "--clusters", 2)):
        assert deccs(*options, out, *overwrite) == (0, "", "")
    assert sorted(path.name for path in out.iterdir()) == sorted((*EVERYTHING, "mine.txt"))
    assert (
        json.loads((out / "summary.json").read_text())["options"]["clusters"] == "2"
    )  # the command line wins


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--clusters", 500], "n_clusters=500"),
        (["--method", "idek"], "Did you mean 'idec'?"),
        (["--set", "n_rounds=3"], "Did you mean 'rounds.n_rounds'?"),
        (["--set", "rounds.n_rounds"], "NAME=VALUE"),
        (["--set", "rounds.n_rounds=-1"], "rounds.n_rounds must be a whole number of at least 0"),
        (["--set", "rounds.ramp_up=no"], "rounds.ramp_up must be True or False, got 'no'"),
        (["--set", "callbacks=[]"], "no setting 'callbacks'"),
        (["--clusters", 0], "at least 1"),
        (["--scale", "log"], "auto, global"),
        (["--members", "kmeans,spektral"], "Did you mean 'spectral'?"),
        (["--members", "kmeans"], "two"),
        (["--kind", "word=number"], "'word' cannot be numbers: it holds x0"),
        (["--kind", "word=sort"], "must be one of number"),
        (["--kind", "wort=id"], "Did you mean 'word'?"),
        (["--kind", "word"], "--kind needs COLUMN=KIND"),
        (["--exclude", "a,z"], "'z'"),
        (["--exclude", "a,b,c,d"], "no column to cluster"),
        (["--labels", "pdf"], "csv, parquet, xlsx"),
        (["--query", "select 1"], "--query"),
        (["--columns", "a,z"], "'z'"),
        (["--id", "kay"], "Did you mean 'key'?"),
        (["--missing", "zero"], "auto, error, drop, mean"),
        (["--config", "none.toml"], "none.toml"),
        (["--bogus"], "--bogus"),
        (["--encoding", "klingon"], "klingon"),
        (["--rounds", "many"], "integer"),
    ],
)
def test_bad_input_is_exit_code_2_and_leaves_nothing(place, tmp_path, words, told):
    code, out, err = deccs("fit", place / "train.csv", "--out", tmp_path / "run", *words)
    assert code == 2 and out == "" and told in " ".join(err.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("c.toml", "clustres = 3", "Did you mean 'clusters'?"),
        ("c.toml", "clusters = ", "cannot be read"),
        ("c.json", "[1]", "list"),
        (
            "c.toml",
            "clusters = 'three'",
            "--clusters must be a whole number, a range such as 3-20, or auto; got 'three'",
        ),
        ("c.toml", "clusters = true", "clusters must be a whole number or a text, got True"),
        ("c.toml", "columns = [1]", "columns must be a list of names, got [1]"),
        ("c.toml", "settings = 3", "settings must be a table"),
        ("c.toml", "overwrite = true", "no option 'overwrite'"),
        (
            "c.toml",
            "scale = 'log'",
            "--scale must be one of auto, global, columns, robust, rows, none",
        ),
        ("c.toml", "settings = {n_step = 3}", "'pretraining.n_steps' or 'rounds.n_steps'?"),
        ("c.toml", "settings = {members = []}", "no setting 'members'"),
        ("c.toml", "settings.pretraining = {n_epoch = 3}", "Did you mean 'pretraining.n_epochs'?"),
        ("c.toml", "settings.pretraining = {n_epochs = -3}", "pretraining.n_epochs must be"),
        (
            "c.toml",
            "settings.rounds = 3",
            "rounds must be a table of settings, such as rounds.batch_size, got 3",
        ),
    ],
)
def test_bad_config_files(place, tmp_path, name, text, told):
    (tmp_path / name).write_text(text)
    code, _, err = deccs(
        "fit", place / "train.csv", "--config", tmp_path / name, "--out", tmp_path / "run"
    )
    assert code == 2 and told in " ".join(err.split()) and not (tmp_path / "run").exists()


def test_config_in_json_members_and_columns(place, tmp_path):
    settings = {"network.layers": [8, 2], "rounds": {"n_init": 1}, "pretraining.n_epochs": 2}
    (tmp_path / "c.json").write_text(
        json.dumps({"columns": ["d", "b"], "rounds": 0, "settings": settings})
    )
    code, out, err = deccs(
        "fit",
        place / "train.csv",
        "-k",
        3,
        "--config",
        tmp_path / "c.json",
        "--members",
        "kmeans,birch",
        "--scale",
        "none",
        "--set",
        "rounds.n_steps=5",
        "--set",
        "rounds.n_rounds=7",
        "--out",
        tmp_path / "run",
        "--json",
    )
    assert code == 0, err
    document = json.loads(out)
    assert document["members"] == ["kmeans", "birch"] and document["data"]["columns"] == ["d", "b"]
    assert document["scaled"] == "none" and document["data"]["id_column"] is None
    model = DECCS.load(tmp_path / "run" / "model")
    assert model.network.layers == [8, 2] and model.pretraining.n_epochs == 2
    assert (model.rounds.n_init, model.rounds.n_steps) == (1, 5)
    assert model.rounds.n_rounds == 0  # an option wins over a setting
    assert rows_of(tmp_path / "run" / "labels.csv")[0] == ["row", "label", "name", "confidence"]


def test_compare(run, place, tmp_path):
    halves = tmp_path / "halves"
    halves.mkdir()
    header, *rows = rows_of(run / "labels.csv")
    merged = [
        [row_id, str(min(int(label), 1)), "", sure] for row_id, label, _, sure in rows[:90]
    ]  # two clusters made one
    (halves / "labels.csv").write_text(
        "\n".join(",".join(row) for row in [header, *merged, ["k500", "", "", ""]])
    )
    (halves / "summary.json").write_text((run / "summary.json").read_text())
    code, out, _ = deccs("compare", run, halves, "--json")
    comparison = json.loads(out)
    assert code == 0 and [each["rows"] for each in comparison["runs"]] == [120, 90]
    (pair,) = comparison["pairs"]
    assert pair["rows_in_common"] == 90 and 0.5 < pair["nmi"] < 1 and 0 < pair["ari"] < 1
    code, out, _ = deccs("compare", run, run)
    assert code == 0 and "1.000" in out
    for words, told in (
        ((run,), "at least two"),
        ((run, tmp_path), "not the folder of a finished run"),
    ):
        code, _, err = deccs("compare", *words)
        assert code == 2 and told in err
    (halves / "labels.csv").write_text("row,label,confidence\n0,0,1\n")
    assert "no rows in common" in deccs("compare", run, halves)[2]


def test_predict_needs_a_model_of_the_command_line(tmp_path, place, fitted):
    code, _, err = deccs("predict", tmp_path / "none", place / "new.csv")
    assert code == 2 and "deccs fit" in err
    code, _, err = deccs("predict", tmp_path, place / "new.csv")
    assert code == 2
    fitted.save(tmp_path / "model")
    code, _, err = deccs("predict", tmp_path, place / "new.csv")
    assert code == 2 and "deccs.load" in err


def test_datasets_and_info(monkeypatch, tmp_path):
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))
    monkeypatch.setenv("DECCS_CACHE", str(tmp_path))
    np.savez(tmp_path / "mice.npz", X=np.eye(2), y=[0, 1])
    document = json.loads(deccs("datasets", "--json")[1])
    here = {row["name"]: row["here"] for row in document["datasets"]}
    assert (
        len(here) == 8
        and here["mice"] == str(tmp_path / "mice.npz")
        and here["synth"] == "generated"
    )
    assert here["mnist"] is None
    assert "pendigits" in deccs("datasets")[1]
    info = json.loads(deccs("info", "--json")[1])["info"]
    assert (
        info["deccs"] == __version__
        and info["data folder"] == str(tmp_path)
        and info["cores"] == os.cpu_count()
    )
    assert __version__ in deccs("info")[1]
    assert deccs("--version")[:2] == (0, f"deccs {__version__}\n")


def test_stopped_with_ctrl_c_the_same_command_resumes(tmp_path):
    """A real process, stopped after its first round; the result has the bits of an undisturbed run."""
    noise = np.random.default_rng(0).random((150, 4))  # nothing to agree about soon
    write_table(tmp_path / "noise.csv", noise)
    (tmp_path / "fit.toml").write_text(SETTINGS.replace("rounds = 1", "rounds = 2"))
    command = ["fit", str(tmp_path / "noise.csv"), "--config", str(tmp_path / "fit.toml"), "--out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "deccs", *command, str(tmp_path / "run"), "--json"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    printed = ""
    for line in process.stderr:
        printed += line
        if line.startswith("round  0"):
            process.send_signal(signal.SIGINT)
            break
    out, rest = process.communicate(timeout=600)
    assert process.returncode == 130, printed + rest
    assert "the same command resumes" in rest
    assert json.loads(out)["status"] == "interrupted"
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == UNFINISHED
    with (tmp_path / "run" / "rounds.jsonl").open("a") as log:
        log.write('{"start": 0, "rou')  # as if killed in the middle of a line

    code, _, err = deccs(*command, tmp_path / "run", "--clusters", 4)  # another fit
    assert code == 2 and "--overwrite" in err
    code, _, err = deccs(*command, tmp_path / "run", "--method", "consensus", "--rounds", 2)
    assert code == 2  # --rounds has no effect on it
    (tmp_path / "other.toml").write_text("clusters = 3")
    other = ["--config", tmp_path / "other.toml", "--method", "consensus"]
    code, _, err = deccs(*command[:2], *other, "--out", tmp_path / "run")
    assert code == 2 and "checkpoint of another fit" in err  # although it needs none itself
    code, _, resumed = deccs(*command, tmp_path / "run")
    assert code == 0 and "round  2" in resumed and "pretraining" not in resumed
    code, _, _ = deccs(*command, tmp_path / "straight")
    assert code == 0
    for name in ("labels.csv", "embedding.npy"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
    lines = (tmp_path / "run" / "rounds.jsonl").read_text().splitlines()
    assert [json.loads(line)["round"] for line in lines] == [0, 1, 2]


def test_results_that_cannot_be_written_do_not_cost_the_fit(place, run, tmp_path, monkeypatch):
    """A full disk, say: the state stays until the results are there, and the same command writes them."""
    out = tmp_path / "run"
    command = ["fit", place / "train.csv", "--config", place / "fit.toml", "--out", out]
    with monkeypatch.context() as patched:
        full = OSError(28, "No space left on device")
        patched.setattr(run_folder, "write_npy_header", lambda *_: (_ for _ in ()).throw(full))
        code, _, err = deccs(*command)
    assert code == 1 and "No space left" in err and "the same command resumes" in err
    assert sorted(path.name for path in out.iterdir()) == UNFINISHED
    code, _, err = deccs(*command)
    assert code == 0 and "pretraining" not in err
    assert sorted(path.name for path in out.iterdir()) == EVERYTHING
    assert (out / "labels.csv").read_bytes() == (run / "labels.csv").read_bytes()
    n_rounds = (run / "rounds.jsonl").read_text().count("\n")
    assert (out / "rounds.jsonl").read_text().count("\n") == n_rounds


@contextmanager
def embedded_rows():
    """The numbers of rows that encoders are given, block by block."""
    sizes = []
    encode = DenseEncoder.__call__

    def count(encoder, rows):
        sizes.append(len(rows))
        return encode(encoder, rows)

    DenseEncoder.__call__ = count
    try:
        yield sizes
    finally:
        DenseEncoder.__call__ = encode


@pytest.mark.parametrize(("command", "n_rows"), [("predict", 2 * 60), ("report", 120)])
def test_other_commands_embed_every_row_once(run, place, tmp_path, command, n_rows):
    words = [place / "new.csv"] if command == "predict" else []
    with embedded_rows() as sizes:
        assert deccs(command, run, *words, "--out", tmp_path / "out")[0] == 0
    # A loaded model tries three rows first, twice; predict looks at up to 20,000 rows once more, for drift.
    assert sizes[:2] == [3, 3] and sum(sizes[2:]) == n_rows


def test_every_row_is_embedded_once_after_training(place, tmp_path):
    """Labels, embedding, confidence, summary and report come from one pass over 20,000 rows."""
    n_rows = 20_000
    X = np.random.default_rng(0).normal(size=(n_rows, 3)) + np.arange(n_rows)[:, None] % 2 * 6
    np.save(tmp_path / "big.npy", X)
    quick = [
        "--set",
        "pretraining.n_steps=5",
        "--set",
        "rounds.n_steps=2",
        "--set",
        "rounds.n_init=1",
    ]
    quick += ["--set", "rounds.sample_size=200", "--set", "network.layers=[4, 2]", "--rounds", "1"]
    out = tmp_path / "run"
    with embedded_rows() as sizes:
        code, _, err = deccs(
            "fit",
            tmp_path / "big.npy",
            "-k",
            2,
            "--members",
            "kmeans,mixture",
            "-q",
            "-o",
            out,
            *quick,
        )
    assert code == 0, err
    # Labels are judged on a sample first; novelty is learned from another one.
    assert sum(sizes) == MOST_DRAWN + MOST_JUDGED + n_rows
    assert len(rows_of(out / "labels.csv")) == n_rows + 1 and (out / "report.html").exists()


def modules_after(code):
    """The modules that are loaded after running this code in a new process."""
    look = f"import sys\n{code}\nprint(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True
    )
    return set(process.stdout.split())


def test_help_and_completion_do_not_wait_for_torch():
    """The shell asks at every press of the key."""
    code = "from typer.testing import CliRunner; from deccs.app.cli import app; import deccs"
    code += "\nfor words in (['--help'], ['fit', '--help']):"
    code += "\n    assert CliRunner().invoke(app, words).exit_code == 0"
    assert not {"torch", "sklearn", "numpy"} & modules_after(code)


def test_fit_predict_and_report_do_not_import_the_paper(run, place, tmp_path):
    commands = [
        ["fit", tmp_path / "none.csv"],
        ["predict", run, place / "new.csv", "--out", tmp_path / "labels.csv"],
        ["report", run, "--out", tmp_path / "report.html"],
    ]
    commands = [[str(word) for word in words] for words in commands]
    code = "from typer.testing import CliRunner; from deccs.app.cli import app"
    code += f"\ncodes = [CliRunner().invoke(app, words).exit_code for words in {commands}]"
    code += "\nassert codes == [2, 0, 0], codes"
    loaded = modules_after(code)
    assert "deccs.report" in loaded and not [name for name in loaded if "deccs_paper" in name]
    assert "demo" in deccs("--help")[1]  # although they are there


def test_a_plug_in_adds_a_command_and_cannot_break_the_others(monkeypatch):
    def add_commands(app):
        app.command("greet")(lambda: print("hello"))
        app.command("info")(lambda: print("not this one"))

    def broken():
        raise RuntimeError("no such module")

    monkeypatch.setattr(
        plugins, "plugins", lambda: [("broken", broken), ("mine", lambda: add_commands)]
    )
    with pytest.warns(UserWarning, match="'broken' cannot be loaded: no such module"):
        assert deccs("greet")[:2] == (0, "hello\n")
    with pytest.warns(UserWarning, match="cannot be loaded"):
        assert "greet" in deccs("--help")[1]
    assert __version__ in deccs("info")[1]


def test_all_names_of_the_package_are_there():
    import deccs as package

    for name in package.__all__:
        assert getattr(package, name) is not None and name in dir(package)
    with pytest.raises(AttributeError, match="module 'deccs' has no attribute 'DECC'"):
        package.DECC


# ---- two commands at once


def test_a_second_fit_into_the_same_folder_is_refused(place, tmp_path, monkeypatch):
    """It would mix its checkpoint with that of the first, and replace its results without --overwrite."""
    out = tmp_path / "run"
    command = ["fit", place / "train.csv", "--config", place / "fit.toml", "--out", out]
    second = []
    real = commands.train

    def meanwhile(*given, **options):
        monkeypatch.setattr(commands, "train", real)
        second.append(deccs(*command, "--seed", 1))
        second.append(deccs(*command, "--seed", 1, "--overwrite"))
        return real(*given, **options)

    monkeypatch.setattr(commands, "train", meanwhile)
    assert deccs(*command)[0] == 0
    for code, _, err in second:
        assert code == 2 and f"process {os.getpid()}" in err and "since" in err
    assert sorted(path.name for path in out.iterdir()) == EVERYTHING
    assert json.loads((out / "summary.json").read_text())["options"]["seed"] is None


def test_results_that_came_while_the_file_was_read_are_not_replaced(place, tmp_path, monkeypatch):
    out = tmp_path / "run"
    real = commands.read_table

    def slow(*given, **options):
        out.mkdir()
        (out / "summary.json").write_text("{}")
        return real(*given, **options)

    monkeypatch.setattr(commands, "read_table", slow)
    code, _, err = deccs("fit", place / "train.csv", "--out", out)
    assert code == 2 and "already holds results" in err
    assert (out / "summary.json").read_text() == "{}"


# ---- a kill after the results are complete


def test_a_move_that_was_killed_is_finished_by_the_same_command(place, run, tmp_path, monkeypatch):
    """Once results started to move into place, the same command was refused."""
    out = tmp_path / "run"
    command = ["fit", place / "train.csv", "--config", place / "fit.toml", "--out", out]

    class Killed(BaseException):
        pass

    def kill(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(run_folder, "move_into_place", kill)
        patched.setattr(FolderLock, "__exit__", lambda *_: None)  # a kill leaves its file
        with pytest.raises(Killed):
            deccs(*command)
        leave_to_parent()  # the system releases the lock
    assert (out / run_folder.MOVING / "summary.json").exists()
    for words in (["predict", out, place / "new.csv"], ["report", out], ["compare", out, run]):
        code, _, err = deccs(*words)
        assert code == 2 and "the same `deccs fit` command" in " ".join(err.split()).lower()
    code, _, err = deccs(*command)
    assert code == 0 and "pretraining" not in err
    assert sorted(path.name for path in out.iterdir()) == EVERYTHING
    for name in ("labels.csv", "embedding.npy"):
        assert (out / name).read_bytes() == (run / name).read_bytes()
    code, _, err = deccs(*command)
    assert code == 2 and "already holds results" in err  # it has come to its end


def test_other_options_do_not_take_the_results_of_a_killed_fit(place, run, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(run, out)
    (out / locks.NAME).write_text('{"process": 1, "host": "here"}')  # left by a kill
    command = ["fit", place / "train.csv", "--config", place / "fit.toml", "--out", out]
    code, _, err = deccs(*command, "--seed", 1)
    assert code == 2 and "already holds results" in err


def test_the_progress_of_a_killed_fit_is_not_lost_to_the_command_before(place, run, tmp_path):
    """Results of one command, and the checkpoint of another that was killed while it replaced them."""
    out = place / "killed"
    shutil.copytree(run, out)
    FolderCheckpoint(out / "checkpoint").save("pretrained", {"of": "the other fit"})
    (out / locks.NAME).write_text('{"process": 1, "host": "here"}')
    command = ["fit", place / "train.csv", "--config", place / "fit.toml", "--out", out]
    code, _, err = deccs(*command)
    assert code == 2 and "already holds results" in err
    assert FolderCheckpoint(out / "checkpoint").has_states()
    shutil.rmtree(out / "checkpoint")
    (out / locks.NAME).write_text('{"process": 1, "host": "here"}')
    (out / "report.html").unlink()
    code, _, err = deccs(*command)
    assert code == 0 and "had already written its results" in err
    assert sorted(path.name for path in out.iterdir()) == EVERYTHING


def test_a_report_that_fails_does_not_hide_the_results(place, tmp_path, monkeypatch):
    out = tmp_path / "run"

    def fail(*_, **__):
        raise RuntimeError("no font")

    monkeypatch.setattr("deccs.report.write_report", fail)
    command = ["fit", place / "train.csv", "--config", place / "fit.toml", "--out", out]
    code, _, err = deccs(*command)
    told = " ".join(err.split())
    assert code == 1 and "The report could not be written (RuntimeError: no font)" in told
    assert f"The results are complete in {out}; `deccs report {out}` writes it." in told
    assert sorted(path.name for path in out.iterdir()) == sorted(set(EVERYTHING) - {"report.html"})
    monkeypatch.undo()
    assert deccs("report", out)[0] == 0


def test_an_old_run_keeps_its_log_until_its_results_are_replaced(place, run, tmp_path, monkeypatch):
    out = tmp_path / "run"
    shutil.copytree(run, out)
    before = (out / "rounds.jsonl").read_bytes()
    command = ["fit", place / "train.csv", "--config", place / "fit.toml", "--out", out]
    with monkeypatch.context() as patched:
        patched.setattr(run_folder, "write_npy_header", raise_full)
        assert deccs(*command, "--seed", 1, "--overwrite")[0] == 1
    assert (out / "rounds.jsonl").read_bytes() == before
    assert deccs(*command, "--seed", 1, "--overwrite")[0] == 0
    assert sorted(path.name for path in out.iterdir()) == EVERYTHING
    assert (out / "rounds.jsonl").read_bytes() != before


def raise_full(*_):
    raise OSError(28, "No space left on device")


# ---- what a summary tells, and what spreadsheets make of ids


def test_the_summary_does_not_tell_where_the_data_was(place, run, tmp_path):
    assert json.loads((run / "summary.json").read_text())["data"]["file"] == "../train.csv"
    assert path_from(Path("/home/me/run"), Path("/data/x.csv")) == "x.csv"
    moved = tmp_path / "moved"
    shutil.copytree(place, moved)
    code, _, err = deccs("report", moved / "run", "--out", tmp_path / "again.html")
    assert code == 0, err
    (moved / "train.csv").rename(tmp_path / "train.csv")
    code, _, err = deccs("report", moved / "run")
    assert code == 2 and "--data" in err
    assert deccs("report", moved / "run", "--data", tmp_path / "train.csv")[0] == 0


def test_formulas_in_ids_are_harmless_and_compare_knows_both_forms(place, tmp_path):
    text = (place / "train.csv").read_text().replace("\nk", "\n=k")
    (tmp_path / "train.csv").write_text(text)
    command = [
        "fit",
        tmp_path / "train.csv",
        "--method",
        "consensus",
        "--clusters",
        3,
        "--id",
        "key",
    ]
    assert deccs(*command, "--out", tmp_path / "a")[0] == 0
    assert deccs(*command, "--out", tmp_path / "b", "--raw-ids")[0] == 0
    assert rows_of(tmp_path / "a" / "labels.csv")[1][0] == "'=k0"
    assert rows_of(tmp_path / "b" / "labels.csv")[1][0] == "=k0"
    code, out, _ = deccs("compare", tmp_path / "a", tmp_path / "b", "--json")
    assert code == 0 and json.loads(out)["pairs"][0]["rows_in_common"] == 120
    for words, written in ([], "'=k0"), (["--raw-ids"], "=k0"):
        code, out, _ = deccs("predict", tmp_path / "a", tmp_path / "train.csv", *words)
        assert code == 0 and rows_of(out)[1][0] == written


def test_keys_of_2_60_and_huge_numbers_end_in_good_clusters_and_a_report(tmp_path, blobs):
    rng = np.random.default_rng(0)
    lines = ["account,a,b,c,d,huge"]
    for row in blobs.X[:120]:
        key, huge = 2**60 + int(rng.integers(2**59)), float(rng.normal() * 1e300)
        lines.append(f"{key},{','.join(map(repr, row.tolist()))},{huge!r}")
    (tmp_path / "keys.csv").write_text("\n".join(lines))
    words = ("fit", tmp_path / "keys.csv", "-k", 3, "--out", tmp_path / "run")
    quick = ("--set", "pretraining.n_steps=100", "--set", "rounds.n_rounds=1")
    code, _, err = deccs(*words, *quick)
    assert code == 0 and "whole numbers above 2^53: keys" in err and "Warning" not in err
    labels = [int(row[1]) for row in rows_of(tmp_path / "run" / "labels.csv")[1:]]
    assert ari(blobs.y[:120], labels) > 0.95
    assert "NaN" not in (tmp_path / "run" / "summary.json").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have only UTF-8 names")
def test_names_that_are_not_utf_8_are_in_all_results(tmp_path, place):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(12):
        pixels = np.random.default_rng(number).integers(0, 99, (8, 8)) + 150 * (number % 2)
        image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
    os.rename(folder / "0.png", os.fsencode(folder) + b"/\xff.png")
    os.rename(folder, os.fsencode(tmp_path) + b"/\xfe")
    quick = ("--set", "pretraining.n_steps=20", "--set", "rounds.n_rounds=0")
    code, _, err = deccs("fit", tmp_path / "\udcfe", "-k", 2, "--out", tmp_path / "run", *quick)
    assert code == 0, err
    assert "\\udcff.png" in (tmp_path / "run" / "labels.csv").read_text(encoding="utf-8")
    assert (tmp_path / "run" / "report.html").exists()
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["data"]["rows"] == 12


def test_export_writes_a_file_that_labels_rows(run, tmp_path, blobs, monkeypatch):
    onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'deccs[onnx]'")
    monkeypatch.chdir(tmp_path)
    code, _, err = deccs("export", run, "--precision", "double")
    assert code == 0 and "Wrote run.onnx:" in err
    session = onnxruntime.InferenceSession("run.onnx")
    model = DECCS.load(run / "model")
    (labels,) = session.run(["labels"], {"X": blobs.X})
    np.testing.assert_array_equal(labels, model.predict(blobs.X))
    code, _, err = deccs("export", run)
    assert code == 2 and "run.onnx exists. Give another file with --out" in err
    code, _, err = deccs("export", run, "--overwrite", "--outputs", "labels,colors")
    assert code == 2 and "outputs must be some of labels" in err
