"""Edits and refits on the command line: all files of a run follow."""

import json
import shutil

import numpy as np
import pytest

from deccs import DECCS
from deccs.app.comparison import moves_between
from tests.helpers.command_line import deccs, rows_of, write_table

QUICK = """
clusters = 3
rounds = 1
id = "key"
[settings]
views = "none"
network.layers = [8, 2]
rounds = {n_init = 1, n_steps = 10, batch_size = 64}
pretraining = {n_epochs = 15, batch_size = 32}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, blobs):
    place = tmp_path_factory.mktemp("edit")
    write_table(place / "feb.csv", blobs.X)
    moved = np.where((blobs.y == 1)[:, None], blobs.X + 20, blobs.X + 0.1)  # one leaves, one comes
    write_table(place / "mar.csv", moved)
    (place / "quick.toml").write_text(QUICK.replace('views = "none"\n', ""))
    code, _, err = deccs(
        "fit", place / "feb.csv", "--config", place / "quick.toml", "--out", place / "feb", "-q"
    )
    assert code == 0, err
    return place


@pytest.fixture
def run(place, tmp_path):
    for name in ("feb.csv", "mar.csv", "quick.toml"):
        shutil.copy(place / name, tmp_path)
    return shutil.copytree(place / "feb", tmp_path / "feb")


def labels_of(path):
    return {row[0]: int(row[1]) for row in rows_of(path / "labels.csv")[1:]}


def test_all_files_follow_an_edit_and_undo_restores_them(run):
    before = labels_of(run)
    text = (run / "labels.csv").read_text()
    code, _, err = deccs("edit", run, "merge", 2, 0)
    assert code == 0, err
    assert "merged 2, 0 into 2. The clusters are 1, 2." in " ".join(err.split())
    assert labels_of(run) == {key: (2, 1, 2)[label] for key, label in before.items()}
    summary = json.loads((run / "summary.json").read_text())
    assert [one["label"] for one in summary["clusters"]] == [1, 2]
    assert summary["edits"] == [{"edit": "merge", "clusters": [2, 0]}]
    model = DECCS.load(run / "model")
    assert np.array_equal(model.labels_, list(labels_of(run).values()))
    code, again, _ = deccs("predict", run, run.parent / "feb.csv")
    assert again == (run / "labels.csv").read_text()
    assert (run / "report.html").is_file()
    assert deccs("edit", run)[1].split() == ["1", "merged", "2,", "0", "into", "2"]
    assert deccs("edit", run, "undo")[0] == 0
    assert (run / "labels.csv").read_text() == text
    assert deccs("edit", run)[1].strip() == "Nothing was edited."


def test_rows_are_pinned_by_their_ids_and_edits_come_from_a_file(run):
    other = (labels_of(run)["k7"] + 1) % 3
    assert deccs("edit", run, "pin", other, "--rows", "k7")[0] == 0
    assert labels_of(run)["k7"] == other
    edits = [{"edit": "rename", "cluster": 0, "name": "first"}, {"edit": "drop", "cluster": 1}]
    document = {"format": "deccs edits", "version": 1, "n_rows": 180, "edits": edits}
    (run.parent / "edits.json").write_text(json.dumps(document))
    code, _, err = deccs("edit", run, "--from", run.parent / "edits.json")
    assert code == 0, err
    names = {row[2] for row in rows_of(run / "labels.csv")[1:]}
    assert "first" in names
    assert -1 in labels_of(run).values()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["explode", 1], "An edit is one of merge, split, rename, pin, drop or undo"),
        (["merge", "a", "b"], "given by their numbers"),
        (["merge", 1], "at least two different clusters"),
        (["drop", 9], "no cluster 9; the clusters are 0 to 2"),
        (["drop"], "drop is used like this: drop 7"),
        (["rename", 1], "rename needs a cluster and a name"),
        (["pin", 1], "pin needs --rows"),
        (["pin", 1, "--rows", "nobody"], "no row 'nobody' with a label"),
        (["undo"], "no edit to undo"),
        (["--from", "nowhere.json"], "is not a file of edits"),
        (["drop", 1, "--from", "x.json"], "not both"),
    ],
)
def test_what_cannot_be_done_changes_nothing(place, words, says):
    before = (place / "feb" / "summary.json").read_bytes()
    code, _, err = deccs("edit", place / "feb", *words)
    assert code == 2
    assert says in " ".join(err.split())
    assert (place / "feb" / "summary.json").read_bytes() == before


def test_an_edit_needs_the_data_as_they_were(run):
    (run.parent / "feb.csv").write_text("key,a,b,c,d\nk1,1,2,3,4\n")
    code, _, err = deccs("edit", run, "merge", 0, 1)
    assert code == 2
    assert "has changed since the fit" in " ".join(err.split())


def test_a_refit_keeps_numbers_and_compare_tells_who_moved(run):
    place = run.parent
    code, _, err = deccs(
        "fit", place / "mar.csv", "--like", run, "--rounds", 1, "--out", place / "mar", "-q"
    )
    assert code == 0, err
    summary = json.loads((place / "mar" / "summary.json").read_text())
    assert summary["earlier"]["born"] == [3]
    assert len(summary["earlier"]["gone"]) == 1
    before, after = labels_of(run), labels_of(place / "mar")
    gone = summary["earlier"]["gone"][0]
    assert all(after[key] == (3 if label == gone else label) for key, label in before.items())
    code, out, err = deccs("compare", run, place / "mar", "--picture", place / "flow.svg", "--json")
    assert code == 0, err
    (pair,) = json.loads(out)["pairs"]
    (move,) = pair["moves"]
    assert (move["from"].split()[0], move["to"].split()[0]) == (str(gone), "3")
    assert (move["rows"], move["share"]) == (sum(v == gone for v in before.values()), 1.0)
    assert "<svg" in (place / "flow.svg").read_text()
    code, _, err = deccs("fit", place / "mar.csv", "--like", run, "--columns", "a", "--out", "x")
    assert code == 2
    assert "--columns has no effect with --like" in " ".join(err.split())


def test_moves_between_runs_that_know_nothing_of_each_other():
    class Run:
        def __init__(self, summary):
            self.summary = summary

        def name_of(self, cluster):
            return str(cluster)

    labels = np.array([[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 1]])  # the same clusters but for one row
    (move,) = moves_between(Run({}), Run({}), labels)
    assert (move["from"], move["to"], move["rows"]) == ("1", "1", 1)
    of_one_series = moves_between(Run({}), Run({"earlier": {"kept": [0]}}), labels)
    assert [each["rows"] for each in of_one_series] == [3, 2]
