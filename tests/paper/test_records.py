"""Files of records: crashes, identity, code version."""

import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from deccs_paper import records


@pytest.mark.parametrize(
    ("torn", "left"),
    [
        ('{"a": 1}\n{"a": 2', '{"a": 1}\n'),
        ('{"a": 1}\n{"a": 2}', '{"a": 1}\n{"a": 2}\n'),
        ('{"a', ""),
        ("", ""),
        ('{"a": 1}\n', '{"a": 1}\n'),
    ],
)
def test_a_last_line_that_was_cut_off_is_removed(tmp_path, torn, left):
    path = tmp_path / "r.jsonl"
    path.write_text(torn)
    records.mend(path)
    assert path.read_text() == left


def test_code_inside_another_repository_is_not_named_by_its_commit(tmp_path, monkeypatch):
    there = tmp_path / "venv" / "deccs_paper"
    there.mkdir(parents=True)
    (there / "records.py").touch()
    who = ["-c", "user.name=x", "-c", "user.email=x@x"]
    for words in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(records, "__file__", str(there / "records.py"))
    assert records.code_version() == version("deccs")


def test_published_records_are_those_of_the_checkout():
    assert {path.parent for path in records.published()} == {Path(__file__).parents[2] / "results"}


def test_records_survive_a_broken_line(tmp_path):
    path = tmp_path / "deep" / "records.jsonl"
    records.append(path, {"a": 1})
    path.write_text(path.read_text() + '{"a": 2, "sco')  # killed while writing
    records.append(path, {"a": 3})
    assert list(records.read(path)) == [{"a": 1}, {"a": 3}]
    assert list(records.read(tmp_path / "none")) == []
