import os

import pytest

from deccs.storage import atomic
from deccs.storage.atomic import LEFTOVER, replacing, write_text


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "a.txt"
    with replacing(path) as out:
        out.write(b"half")
        (draft,) = names(tmp_path)
        assert draft != "a.txt" and LEFTOVER.fullmatch(draft)  # what checkpoints tidy up
    assert names(tmp_path) == ["a.txt"] and path.read_bytes() == b"half"
    write_text(str(path), "ä\n")
    assert path.read_bytes() == b"\xc3\xa4\n"


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_after_an_error_the_old_file_is_unchanged(tmp_path, monkeypatch, function):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    monkeypatch.setattr(os, function, lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_text(path, "new")
    assert names(tmp_path) == ["a.txt"] and path.read_text() == "old"


def test_interrupted_while_writing(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def interrupted():
        with replacing(path) as out:
            out.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert names(tmp_path) == ["a.txt"] and path.read_text() == "old"


def test_bytes_are_on_the_disk_before_the_name_changes(tmp_path, monkeypatch):
    done = []
    for function in ("fsync", "replace"):
        real = getattr(os, function)
        monkeypatch.setattr(
            os, function, lambda *given, f=function, real=real: (done.append(f), real(*given))[1]
        )
    write_text(tmp_path / "a.txt", "new")
    assert done == ["fsync", "replace", "fsync"]  # the file, its name, the folder


def test_a_link_in_the_place_of_a_draft_is_not_followed(tmp_path, monkeypatch):
    other = tmp_path / "other.txt"
    other.write_text("kept")
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda n_bytes: "0" * 2 * n_bytes)
    (tmp_path / f".deccs-{'0' * 16}.tmp").symlink_to(other)
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "a.txt", "new")
    assert other.read_text() == "kept" and not (tmp_path / "a.txt").exists()
    (tmp_path / "a.txt").symlink_to(other)  # a link in the place of the file itself is replaced
    write_text(tmp_path / "a.txt", "new")
    assert other.read_text() == "kept" and (tmp_path / "a.txt").read_text() == "new"
