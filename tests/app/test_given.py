"""A few labels and pairs on the command line."""

import csv
import json

import numpy as np
import pytest

from deccs.storage import load
from tests.helpers.command_line import deccs, rows_of

QUICK = [
    *("--clusters", "3", "--id", "key", "--quiet", "--set", "views=none", "--rounds", "1"),
    *("--set", "network.layers=[8,2]", "--set", "pretraining.n_steps=50"),
    *("--set", "rounds.n_init=1", "--set", "rounds.n_steps=10"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory, blobs):
    """The blobs with a column in which every tenth row has the name of its blob."""
    path = tmp_path_factory.mktemp("given") / "blobs.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["key", "kind", "a", "b", "c", "d"])
        for number, (row, y) in enumerate(zip(blobs.X.tolist(), blobs.y.tolist(), strict=True)):
            writer.writerow([f"k{number}", "xyz"[y] if number % 10 == 0 else "", *row])
    return path


def test_a_column_of_labels_and_files_of_pairs(table, tmp_path, blobs):
    same, other = (
        np.flatnonzero(blobs.y == blobs.y[1])[:3],
        int(np.flatnonzero(blobs.y != blobs.y[1])[0]),
    )
    must, cannot = tmp_path / "must.csv", tmp_path / "cannot.csv"
    must.write_text(f"one,two\nk{same[0]},k{same[1]}\n")  # with names of columns
    cannot.write_text(f"k{same[0]},k{same[2]}\n\n")  # what the result will violate
    out = tmp_path / "run"
    code, _, errors = deccs(
        "fit",
        table,
        "-o",
        out,
        *QUICK,
        "--partial",
        "kind",
        "--must-link",
        must,
        "--cannot-link",
        cannot,
    )
    assert code == 0, errors
    facts = json.loads((out / "summary.json").read_text())
    assert facts["constraints"]["partial"] == {"given": 18, "violated": 0}
    assert facts["constraints"]["must_link"] == {"given": 1, "violated": 0}
    assert facts["constraints"]["cannot_link"]["given"] == 1
    assert facts["constraints"]["classes"] == ["x", "y", "z"]
    assert "kind" not in facts["data"]["columns"]
    labels = np.array([int(row[1]) for row in rows_of(out / "labels.csv")[1:]])
    assert (labels == blobs.y).mean() > 0.98  # cluster 0 is x: numbers, not only groups
    model = load(out / "model")
    assert model.partial_classes_ == ("x", "y", "z")
    assert model.violations_.n_cannot_link == 1
    assert other not in same


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--partial", "kin"], "no column 'kin'"),
        (["--partial", "kind", "--method", "idec"], "--partial has no effect on IDEC"),
        (["--must-link", "pairs.csv", "--method", "consensus"], "--must-link has no effect"),
        (["--must-link", "absent.csv"], "cannot be read"),
        (["--must-link", "pairs.csv"], "line 2: there is no row 'k999'"),
        (["--cannot-link", "three.csv"], "line 1: a file of pairs has two columns"),
    ],
)
def test_what_cannot_be_is_told(table, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.csv").write_text("k1,k2\nk1,k999\n")
    (tmp_path / "three.csv").write_text("k1,k2,k3\n")
    code, _, errors = deccs(
        "fit", table, "-o", "run", "--clusters", "3", "--id", "key", "--quiet", *words
    )
    assert code != 0
    assert said in " ".join(errors.split())
    assert not (tmp_path / "run" / "labels.csv").exists()
