"""One fit at a time in a folder: the second is refused, and a killed one holds nobody up."""

import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from deccs import Callback
from deccs.storage import InUseError, locks
from deccs.storage.locks import NAME, FolderLock, holder


def test_the_second_is_told_who_holds_the_folder_and_since_when(tmp_path):
    now = time.strftime("%Y-%m-%d %H:%M")[:-1]
    with FolderLock(tmp_path / "run"):
        with pytest.raises(InUseError, match=rf"process {os.getpid()} on .*, since {now}"):
            FolderLock(tmp_path / "run").__enter__()
        assert (tmp_path / "run" / NAME).exists()  # the refused one has changed nothing
    assert not (tmp_path / "run").exists()
    with FolderLock(tmp_path / "run") as again:
        assert not again.was_left


def test_other_files_keep_the_folder(tmp_path):
    (tmp_path / "mine.txt").write_text("kept")
    with FolderLock(tmp_path):
        pass
    assert os.listdir(tmp_path) == ["mine.txt"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_kill_releases_the_lock_and_is_noticed(tmp_path):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        FolderLock(tmp_path / "run").__enter__()
        os.write(writer, b"x")
        signal.pause()
    os.read(reader, 1)
    with pytest.raises(InUseError, match=f"process {child} on"):
        FolderLock(tmp_path / "run").__enter__()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with FolderLock(tmp_path / "run") as lock:
        assert lock.was_left
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_does_not_hold_the_lock_for_its_parent(tmp_path):
    reader, writer = os.pipe()
    with FolderLock(tmp_path / "run"):
        child = os.fork()
        if child == 0:
            os.read(reader, 1)  # alive while the parent has let go
            os._exit(0)
    with FolderLock(tmp_path / "run"):
        pass
    os.write(writer, b"x")
    os.waitpid(child, 0)


@pytest.mark.slow
def test_many_at_once_are_never_two_inside(tmp_path):
    inside, refused, clashes = [], [], []

    def enter():
        for _ in range(200):
            try:
                with FolderLock(tmp_path / "run"):
                    inside.append(1)
                    clashes.extend([1] if len(inside) > 1 else [])
                    inside.pop()
            except InUseError:
                refused.append(1)

    with ThreadPoolExecutor(4) as pool:
        for task in [pool.submit(enter) for _ in range(4)]:
            task.result()
    assert not clashes and len(refused) < 800


@pytest.mark.skipif(sys.platform == "win32", reason="it needs links and pipes")
def test_links_and_pipes_in_its_place_are_refused(tmp_path):
    path, other = tmp_path / NAME, tmp_path / "other.txt"
    other.write_text("kept")
    path.symlink_to(other)
    with pytest.raises(InUseError, match="not a file that deccs has written"):
        FolderLock(tmp_path).__enter__()
    assert other.read_text() == "kept"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InUseError, match="not a file that deccs has written"):
        FolderLock(tmp_path).__enter__()
    path.unlink()
    path.mkdir()
    with pytest.raises(InUseError, match="not a file that deccs has written"):
        FolderLock(tmp_path).__enter__()


@pytest.mark.parametrize(
    "text", [b"\xff", b"[]", b"[" * 900, b"{}", b'{"process": "x"}', b'{"process": 1e999}', b"null"]
)
def test_what_a_strange_file_says_is_not_repeated(text):
    assert holder(text) == "a process that has just begun"
    assert "\033" not in holder(json.dumps({"process": 1, "host": "\033[2J", "since": 0}).encode())


def test_without_locks_in_the_file_system_there_is_a_warning(tmp_path, monkeypatch):
    def no_locks(handle):
        raise OSError(locks.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks, "lock_file", no_locks)
    with pytest.warns(UserWarning, match="has no locks"), FolderLock(tmp_path / "run"):
        pass


# ---- fits


class FitsAgain(Callback):
    """In the middle of a fit, fit another model with the same checkpoint."""

    def __init__(self, other, X):
        self.other, self.X, self.refused = other, X, ""

    def on_round(self, finished):
        try:
            self.other.fit(self.X)
        except InUseError as error:
            self.refused = str(error)


def test_two_fits_do_not_share_a_checkpoint(small, blobs, tmp_path):
    other = small(checkpoint=tmp_path / "c", random_state=1)
    again = FitsAgain(other, blobs.X)
    model = small(checkpoint=tmp_path / "c", callbacks=[again]).fit(blobs.X)
    assert f"process {os.getpid()}" in again.refused and not hasattr(other, "labels_")
    assert (model.labels_ == small().fit(blobs.X).labels_).all()
    assert not (tmp_path / "c").exists()


def test_a_fit_that_fails_lets_go(small, blobs, tmp_path):
    class Fails(Callback):
        def on_round(self, finished):
            raise KeyError

    with pytest.raises(KeyError):
        small(checkpoint=tmp_path / "c", callbacks=[Fails()]).fit(blobs.X)
    assert (tmp_path / "c").exists()
    small(checkpoint=tmp_path / "c").fit(blobs.X)
