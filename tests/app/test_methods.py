"""``deccs fit --method``: every method from a file to labels, new labels and a report."""

import json

import numpy as np
import pytest

from deccs import storage
from deccs.app.methods import methods
from tests.helpers.command_line import deccs, rows_of, write_table
from tests.helpers.slow import mostly_slow

# Settings for a fit within a second; each method takes those it has.
QUICK = {
    "network.layers": "[8, 2]",
    "pretraining.n_epochs": 5,
    "rounds.n_rounds": 1,
    "rounds.n_init": 1,
    "rounds.n_steps": 5,
    "n_steps": 10,
    "siamese_steps": 5,
    "n_partitions": 4,
}


def quick_settings(method):
    known = methods()[method.lower()]().get_params(deep=True)
    words = [f"{name}={value}" for name, value in QUICK.items() if name.replace(".", "__") in known]
    return [word for setting in words for word in ("--set", setting)]


@pytest.mark.parametrize(
    "method", mostly_slow([*methods(), "IDEC"], ("consensus", "deepect", "IDEC"))
)
def test_every_method_writes_a_run(method, tmp_path, blobs):
    file = write_table(tmp_path / "train.csv", blobs.X[:120])
    out = tmp_path / "run"
    options = ("-k", 3, "--id", "key", "--out", out, "--json", *quick_settings(method))
    code, text, err = deccs("fit", file, "--method", method, *options)
    assert code == 0, err
    summary = json.loads(text)
    model = storage.load(out / "model")
    assert type(model) is methods()[method.lower()] and summary["method"] == type(model).__name__

    header, *rows = rows_of(out / "labels.csv")
    assert header[:2] == ["id", "label"] and [row[0] for row in rows[:2]] == ["k0", "k1"]
    np.testing.assert_array_equal([int(row[1]) for row in rows], model.labels_)
    assert np.load(out / "embedding.npy").shape[0] == 120
    assert sum(cluster["size"] for cluster in summary["clusters"]) + summary["noise"] == 120
    has_rounds = hasattr(model, "rounds_")
    assert ("agreement_over_rounds" in summary) == has_rounds == (out / "rounds.jsonl").exists()
    assert ("confidence" in summary) == ("confidence" in header)
    page = (out / "report.html").read_text()
    assert ('id="rounds-head"' in page) == has_rounds
    assert ('id="uncertain-head"' in page) == ("confidence" in header)

    code, text, err = deccs("predict", out, file)
    assert code == 0, err
    assert text == (out / "labels.csv").read_text()
    code, _, err = deccs("report", out, "--out", tmp_path / "again.html")
    assert code == 0, err
    assert (tmp_path / "again.html").read_text() == page


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--rounds", 3], "--rounds has no effect on IDEC"),
        (["--members", "kmeans,birch"], "--members has no effect on IDEC"),
        (["--set", "rounds.n_rounds=3"], "IDEC has no setting 'rounds.n_rounds'"),
        (["--set", "lambda_clustr=3"], "Did you mean 'lambda_cluster'?"),
    ],
)
def test_options_a_method_does_not_have_are_refused(tmp_path, blobs, words, told):
    file = write_table(tmp_path / "train.csv", blobs.X[:10])
    code, _, err = deccs("fit", file, "--method", "idec", "--out", tmp_path / "run", *words)
    assert code == 2 and told in " ".join(err.split()) and not (tmp_path / "run").exists()


def test_runs_of_different_methods_can_be_compared(tmp_path, blobs):
    file = write_table(tmp_path / "train.csv", blobs.X[:120])
    for method in ("consensus", "iec"):
        words = ("-k", 3, "-q", "--out", tmp_path / method, *quick_settings(method))
        assert deccs("fit", file, "--method", method, *words)[0] == 0
    code, out, _ = deccs("compare", tmp_path / "consensus", tmp_path / "iec")
    assert code == 0 and " - " in out  # IEC has no agreement
