"""The folder of a run: complete or not at all, whatever happens while it is written."""

import csv
import io
import json
import os
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from deccs import DECCS
from deccs.answer import Answer
from deccs.app.labels_file import LabelsFile, read_labels
from deccs.app.run_error import RunError
from deccs.app.run_folder import COMPLETE, MOVING, RunLog, RunWriter, in_use, settle
from deccs.data.source import ArrayRows
from deccs.data.tables import Table
from deccs.storage import locks

IDS = np.array(["a", "b", "c", "d", "e"], dtype=object)


def table_of(kept=(True,) * 5, ids=IDS):
    kept = np.array(kept)
    rows = ArrayRows(np.zeros((kept.sum(), 2)))
    return Table(rows=rows, feature_names=("x", "y"), ids=ids[: len(kept)], kept=kept)


def answer_of(labels, confidence=True):
    labels = np.array(labels)
    sure = np.linspace(0.5, 1, len(labels)) if confidence else None
    return Answer(np.column_stack([labels, labels + 0.5]), labels, confidence=sure)


def write_run(folder, model, labels, summary):
    with RunWriter(folder, table_of()) as writer:
        writer.on_answer(answer_of(labels[:2]))
        writer.on_answer(answer_of(labels[2:]))
        writer.on_fit_end(model)
        writer.finish(model, summary)
    return writer


# ---- labels.csv


def labels_text(table, *answers):
    out = io.StringIO()
    file = LabelsFile(out, table)
    for answer in answers:
        file.write(answer)
    file.finish()
    return out.getvalue()


def test_dropped_rows_keep_their_line():
    table = table_of(kept=[False, True, False, True, False])
    assert labels_text(table, answer_of([3]), answer_of([4])) == (
        "id,label,confidence\na,,\nb,3,0.5000\nc,,\nd,4,0.5000\ne,,\n"
    )


@pytest.mark.parametrize("sizes", [(5,), (1, 4), (2, 0, 3), (1, 1, 1, 1, 1)])
def test_blocks_do_not_matter(sizes):
    whole = answer_of([0, 1, -1, 2, 0])
    places = np.cumsum([0, *sizes])
    parts = [whole.rows(np.arange(a, b)) for a, b in pairwise(places)]
    assert labels_text(table_of(), *parts) == labels_text(table_of(), whole)
    assert "c,-1,0.7500" in labels_text(table_of(), whole)  # noise is a label of its own


def test_without_confidence_there_is_no_such_column():
    numbers = table_of(kept=[True, False], ids=np.arange(5))
    assert labels_text(numbers, answer_of([7], confidence=False)) == "row,label\n0,7\n1,\n"
    assert labels_text(table_of(kept=[False])) == "id,label,confidence\na,,\n"


def test_hostile_names_are_quoted():
    ids = np.array(['x,"y"', "new\nline", "1+1", "ä", ""], dtype=object)
    text = labels_text(table_of(ids=ids), answer_of([0, 1, 2, 3, 4]))
    assert [row[0] for row in csv.reader(io.StringIO(text))][1:] == ids.tolist()


# ---- the folder


def test_the_answer_comes_back_from_the_folder(tmp_path, fitted):
    writer = write_run(tmp_path / "run", fitted, [2, 0, 1, 1, 0], {"n": 1})
    answer = writer.answer()
    assert answer.labels.tolist() == [2, 0, 1, 1, 0]
    np.testing.assert_array_equal(answer.Z, [[2, 2.5], [0, 0.5], [1, 1.5], [1, 1.5], [0, 0.5]])
    assert answer.Z.dtype == np.float32 and isinstance(answer.Z, np.memmap)
    expected = io.BytesIO()
    np.save(expected, np.asarray(answer.Z))
    assert (tmp_path / "run" / "embedding.npy").read_bytes() == expected.getvalue()


def test_an_unfinished_run_leaves_nothing(tmp_path):
    folder = tmp_path / "run"
    with RunWriter(folder, table_of()) as writer:
        writer.on_answer(answer_of([0, 1]))
        assert len(list(folder.iterdir())) == 1
    assert list(folder.iterdir()) == []
    (folder / ".part-abc").mkdir()  # of a process that was killed
    (folder / ".part-abc" / "labels.csv").write_text("half")
    with in_use(folder), RunWriter(folder, table_of()):
        assert [path.name for path in folder.iterdir()] == [locks.NAME]
    assert not folder.exists()


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_crash_at_any_moment_leaves_no_mixture(tmp_path, fitted, monkeypatch, function):
    folder, real = tmp_path / "run", getattr(os, function)
    old_labels, new_labels = [0, 0, 0, 1, 1], [1, 1, 1, 0, 0]
    old_model, new_model = fitted, replace_parameters(fitted)
    seen = set()
    for number in range(100):
        write_run(folder, old_model, old_labels, {"run": "old"})
        (folder / "report.html").write_text("old")
        calls = []

        def crash(*given, number=number, calls=calls):
            calls.append(given)
            if len(calls) == number + 1:
                raise OSError("disk full")
            return real(*given)

        with monkeypatch.context() as patched:
            patched.setattr(os, function, crash)
            with suppress(OSError):
                write_run(folder, new_model, new_labels, {"run": "new"})
        if settle(folder):  # what the next command does: the new results were complete
            assert state_of(folder) == "new"
        seen.add(state_of(folder))
        assert not [path for path in folder.iterdir() if path.name.startswith(".")]
        if len(calls) <= number:
            break
    assert number >= 5 and "new" in seen and "old" in seen and state_of(folder) == "new"


def replace_parameters(model):
    other = DECCS(**model.get_params(deep=False))
    for name, value in vars(model).items():
        setattr(other, name, value)
    return other.set_params(random_state=7)


def state_of(folder):
    """Whose run is there; all parts must be of the same one."""
    which = json.loads((folder / "summary.json").read_text())["run"]
    first = {"old": "0", "new": "1"}[which]
    assert (folder / "labels.csv").read_text().splitlines()[1].split(",")[1] == first
    assert np.load(folder / "embedding.npy")[0, 0] == float(first)
    assert DECCS.load(folder / "model").random_state == (0 if which == "old" else 7)
    assert (folder / "report.html").exists() == (which == "old")  # a new one is written afterwards
    return which


# ---- rounds.jsonl


def test_rounds_are_logged_as_they_finish_and_once(tmp_path, fitted):
    path, rounds = tmp_path / "rounds.jsonl", fitted.rounds_
    path.write_text("of an earlier fit\n")
    log = RunLog(path)
    log.on_fit_start(fitted)
    assert not path.exists()
    log.on_round(rounds[0])
    assert lines_of(path) == [rounds[0].as_dict()]
    with path.open("a") as file:
        file.write('{"start": 0, "round": 1, "agre')  # killed in the middle of a line

    resumed = RunLog(path, lambda: True)
    resumed.on_fit_start(fitted)
    resumed.on_round(replace(rounds[0], agreement=0.0))  # told again: the first time counts
    resumed.on_fit_end(fitted)  # what the killed process had finished, but not logged
    assert lines_of(path) == [round_.as_dict() for round_ in rounds]


def test_a_round_that_was_not_logged_before_a_kill_comes_in_its_place(tmp_path, fitted):
    path, rounds = tmp_path / "rounds.jsonl", fitted.rounds_
    log = RunLog(path, lambda: True)
    log.on_fit_start(fitted)
    for round_ in rounds[1:]:
        log.on_round(round_)
    log.on_fit_end(fitted)
    assert lines_of(path) == [round_.as_dict() for round_ in rounds]


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_link_or_a_strange_file_in_the_place_of_the_log_is_not_followed(tmp_path, fitted):
    path, other = tmp_path / "rounds.jsonl", tmp_path / "other"
    for content in ('{"start": 0, "round": 0}\n', "[1]\n", "{}\n", "\udcff".join("ab") + "\n"):
        other.write_text(content, errors="surrogateescape")
        path.symlink_to(other)
        log = RunLog(path, lambda: True)
        log.on_fit_start(fitted)
        log.on_round(fitted.rounds_[0])
        assert other.read_text(errors="surrogateescape") == content and not path.is_symlink()
        assert lines_of(path) == [fitted.rounds_[0].as_dict()]
        path.unlink()
    path.symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"):
        RunLog(path).on_round(fitted.rounds_[0])  # it came after the start


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_in_the_place_of_the_log_does_not_hold_up_the_fit(tmp_path, fitted):
    os.mkfifo(tmp_path / "rounds.jsonl")
    log = RunLog(tmp_path / "rounds.jsonl", lambda: True)
    log.on_fit_start(fitted)
    log.on_fit_end(fitted)
    assert len(lines_of(tmp_path / "rounds.jsonl")) == len(fitted.rounds_)


# ---- links


def test_links_in_a_run_folder_do_not_lead_outside(tmp_path, fitted):
    folder, outside = tmp_path / "run", tmp_path / "outside"
    folder.mkdir(), outside.mkdir()
    (outside / "mine.txt").write_text("kept")
    names = ["model", "labels.csv", "report.html", ".part-abc", COMPLETE, MOVING]
    for name in names:
        (folder / name).symlink_to(outside, target_is_directory=True)
    write_run(folder, fitted, [0, 0, 0, 1, 1], {"run": "old"})
    assert os.listdir(outside) == ["mine.txt"] and (outside / "mine.txt").read_text() == "kept"
    assert not any(path.is_symlink() for path in folder.iterdir())
    assert sorted(os.listdir(folder)) == ["embedding.npy", "labels.csv", "model", "summary.json"]


def test_an_empty_folder_of_that_name_does_not_cost_the_results(tmp_path, fitted):
    folder = tmp_path / "run"
    write_run(folder, fitted, [0, 0, 0, 1, 1], {"run": "old"})
    (folder / "report.html").write_text("old")
    for name in (COMPLETE, MOVING):
        (folder / name).mkdir()
        settle(folder)
        assert state_of(folder) == "old" and not (folder / name).exists()


def test_a_linked_checkpoint_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint").symlink_to(tmp_path)
    with pytest.raises(RunError, match="checkpoint is a symbolic link"):
        in_use(tmp_path / "run")


# ---- ids that look like formulas


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("+49 170", "'+49 170"),
        ("-a", "'-a"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("-5", "-5"),
        ("+1.5e-3", "+1.5e-3"),
        ("-0,5", "-0,5"),
        ("a=1", "a=1"),
        ("'a", "'a"),
        ("'=1", "''=1"),  # else it could not be told from =1
        ("", ""),
    ],
)
def test_ids_that_look_like_formulas_get_an_apostrophe(name, written, tmp_path):
    ids = np.array([name], dtype=object)
    assert csv_column(labels_text(table_of([True], ids), answer_of([0]))) == [written]
    raw = io.StringIO()
    file = LabelsFile(raw, table_of([True], ids), raw_ids=True)
    file.write(answer_of([0]))
    file.finish()
    assert csv_column(raw.getvalue()) == [name]
    for text, raw_ids in (
        (raw.getvalue(), True),
        (labels_text(table_of([True], ids), answer_of([0])), False),
    ):
        (tmp_path / "labels.csv").write_text(text, newline="")
        assert read_labels(tmp_path / "labels.csv", raw_ids=raw_ids) == ("id", {name: 0})


def csv_column(text):
    return [row[0] for row in csv.reader(io.StringIO(text, newline=""))][1:]
