"""One fit at a time in a folder, whichever process it runs in.

The system holds the lock for the living process and releases it when that is killed. The file of the
lock is removed at the end: one that nobody holds was left by a process that was killed.
"""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import stat
import sys
import time
import warnings
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, Self

NAME = ".deccs-lock"
MOST_TRIES = 100  # another process may remove the file, or the folder, while we open it
MOST_TEXT = 1_000  # bytes that are read of what the holder says
BUSY = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}
NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}
PLAIN_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

if sys.platform == "win32":
    import msvcrt

    def lock_file(handle: int) -> None:
        """Lock a byte far behind the text, which others can then still read."""
        os.lseek(handle, 2**30, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        os.lseek(handle, 0, os.SEEK_SET)
else:
    import fcntl

    def lock_file(handle: int) -> None:
        """Lock the file, or raise an OSError at once."""
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class InUseError(ValueError):
    """Another fit is writing to the folder."""


class FolderLock:
    """``with FolderLock(folder) as lock``: nobody else gets in; an empty folder is removed at the end.

    ``lock.was_left`` tells that the last holder was killed.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.path = Path(folder) / NAME
        self.was_left = False
        self._handle = -1
        self._process = os.getpid()

    def __enter__(self) -> Self:
        for _ in range(MOST_TRIES):
            with suppress(FileNotFoundError):  # the folder of an ending fit was just removed
                self._handle = opened(self.path)
                take(self._handle, self.path)
                if is_at(self._handle, self.path):
                    break
                self._close()
        else:
            raise InUseError(
                f"{self.path.parent} is in use by many other fits. Give another folder."
            )
        HELD.add(self._handle)
        self._process = os.getpid()
        self.was_left = bool(os.read(self._handle, 1))
        say_who(self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process != os.getpid():  # a fork of the holder
            return
        if sys.platform == "win32":  # an open file cannot be removed there
            self._close()
        with suppress(OSError):
            self.path.unlink()
        self._close()
        with suppress(OSError):
            self.path.parent.rmdir()

    def _close(self) -> None:
        if self._handle >= 0:
            HELD.discard(self._handle)
            os.close(self._handle)
            self._handle = -1


def opened(path: Path) -> int:
    """A handle of the file of a lock, which is made if there is none."""
    with suppress(FileExistsError):  # as a folder, or as what cannot be opened below
        path.parent.mkdir(parents=True)
    try:
        handle = os.open(path, PLAIN_FLAGS, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise not_ours(path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise not_ours(path)
    return handle


def not_ours(path: Path) -> InUseError:
    return InUseError(f"{path} is not a file that deccs has written. Remove it.")


def take(handle: int, path: Path) -> None:
    """Lock the file or say who holds it; the handle is closed then."""
    try:
        lock_file(handle)
    except OSError as error:
        if error.errno in NO_LOCKS:
            warnings.warn(
                f"The file system of {path.parent} has no locks: do not start a second fit in this "
                "folder meanwhile.",
                stacklevel=5,
            )
            return
        text = os.read(handle, MOST_TEXT)
        os.close(handle)
        if error.errno not in BUSY:
            raise
        raise InUseError(
            f"{path.parent} is in use by another fit: {holder(text)}. Wait until it has ended, or "
            "give another folder."
        ) from error


def is_at(handle: int, path: Path) -> bool:
    """Whether the file is still the one of that name: its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def say_who(handle: int) -> None:
    """Write for others who holds the lock, and since when."""
    who = {"process": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}
    os.lseek(handle, 0, os.SEEK_SET)
    os.ftruncate(handle, 0)
    os.write(handle, json.dumps(who).encode())


def holder(text: bytes) -> str:
    """Who holds a lock, in words; the text may be of anyone.

    >>> holder(b'{"process": 17, "host": "red"}'), holder(b"")
    ('process 17 on red', 'a process that has just begun')
    """
    try:
        who: dict[str, Any] = dict(json.loads(text))
        process, host = int(who["process"]), re.sub(r"[^\w.-]", "?", str(who["host"])[:60])
        words = f"process {process} on {host}"
        if "since" in who:
            moment = time.localtime(int(who["since"]))
            words += f", since {time.strftime('%Y-%m-%d %H:%M:%S', moment)}"
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
        return "a process that has just begun"
    return words


HELD: set[int] = set()  # handles of locks


def leave_to_parent() -> None:
    """A forked process must not hold the lock when its parent is killed."""
    while HELD:
        with suppress(OSError):
            os.close(HELD.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=leave_to_parent)
