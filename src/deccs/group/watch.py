"""Knowing within a minute that another process of a group has ended.

Every process counts seconds aloud in a store that the first process keeps, and listens to the others. Where one
ends with an error, it says why. One that says nothing for long counts as ended: its machine may be gone.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

BEAT = 1.0  # seconds between two signs of life
SILENT = 40.0  # seconds without one after which a process counts as ended
BROKEN = 6.0  # the same once a connection is broken
GRACE = 10.0  # seconds in which the program may end by itself after another process has
ENDED = 75  # exit code of a process that is blocked for ever: a temporary failure, try again


class GroupError(RuntimeError):
    """The processes of a group cannot go on together; the message says which one is to blame."""


class Watch:
    """Listens to the other processes, in threads of its own.

    Parameters
    ----------
    store : a store of torch.distributed that nobody else uses
    rank, size : of this process, and how many there are
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self.store, self.rank, self.size = store, rank, size
        self.first: tuple[int, str] | None = None  # another process that has ended, and how
        self.is_heard = False  # whether the program knows of it
        self.known: BaseException | None = None  # an error that all processes have raised
        self.names: list[str] = []  # of the processes, by rank
        self.hosts: list[str] = []
        self.pids: list[int | None] = []  # of those on this machine
        # The last sign of life of each, and when it came.
        self.heard: list[tuple[bytes, float]] = []
        self._is_over = threading.Event()
        self._lock = threading.Lock()  # of the store
        self.answered_at = self.noticed_at = time.monotonic()
        self._threads = [
            threading.Thread(target=work, name="deccs watch", daemon=True)
            for work in (self._talk, self._guard)
        ]

    def start(self) -> None:
        """Say who this process is, wait for the others to do so, and listen to them from now on."""
        own = [socket.gethostname(), os.getpid(), namespace()]
        self.store.set(f"name/{self.rank}", json.dumps(own))
        self.store.set(f"beat/{self.rank}", "0")
        for rank in range(self.size):
            host, pid, where = json.loads(self.store.get(f"name/{rank}"))
            self.names.append(f"Process {rank} of {self.size} ({host}, pid {pid})")
            self.hosts.append(host)
            self.pids.append(pid if where and where == namespace() else None)
        self.heard = [
            (self.store.get(f"beat/{rank}"), time.monotonic()) for rank in range(self.size)
        ]
        self.store.set_timeout(timedelta(seconds=SILENT))
        self.answered_at = time.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads: one that still waits for the store when Python ends would crash the process."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(timeout=10 * BEAT)

    def tell(self, error: BaseException) -> None:
        """Let the others know that this process ends with an error, or which other one has ended before."""
        with suppress(Exception), self._store_free() as is_free:
            if is_free:
                self.store.set("failure", json.dumps(self.first or (self.rank, in_words(error))))

    @property
    def failure(self) -> str | None:
        """What is known of another process that has ended, as a message."""
        if self.first is None:
            return None
        rank, what = self.first
        return f"{self.names[rank]} {what.rstrip('.')}. So this process ends, too."

    def check(self) -> None:
        """Raise a GroupError if another process has ended."""
        if self.failure is not None:
            self.is_heard = True
            raise GroupError(self.failure)

    def all_say(self, error: BaseException) -> bool:
        """Whether the first process has ended with the same words, or all were told of the error."""
        if error is self.known:
            return True
        self.reason(3 * BEAT)
        return self.first == (0, in_words(error))

    def reason(self, seconds: float = BROKEN + 2 * BEAT) -> str | None:
        """Why another process has ended, if it can be found out in some seconds."""
        until = time.monotonic() + seconds
        while self.failure is None and time.monotonic() < until:
            self._look(BROKEN)
            time.sleep(BEAT / 4)
        self.is_heard = True
        return self.failure

    @contextmanager
    def talking(self) -> Iterator[None]:
        """While this process talks to the others: a broken connection becomes a GroupError that says whose it is."""
        try:
            yield
        except RuntimeError as error:
            broken = f"The connection to another process broke: {error}"
            raise GroupError(self.reason() or broken) from error

    @contextmanager
    def ending_in_words(self) -> Iterator[None]:
        """A launcher stops all processes when one has ended: SIGTERM becomes a GroupError that says which one."""
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            yield
            return

        def end(*_: Any) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            raise GroupError(self.reason() or "The launcher has stopped this process (SIGTERM).")

        signal.signal(signal.SIGTERM, end)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _talk(self) -> None:
        """Count aloud and listen. Where the network is cut, a call of the store may never return."""
        number = 0
        while not self._is_over.wait(BEAT):
            number += 1
            with suppress(Exception), self._store_free() as is_free:
                if is_free:
                    self.store.set(f"beat/{self.rank}", str(number))
            if self.first is None:
                self._look(SILENT)

    def _guard(self) -> None:
        """End a program that cannot know that another process has ended, or that nobody can be heard any more."""
        while not self._is_over.wait(BEAT):
            now = time.monotonic()
            if self.first is None:
                self.noticed_at = now
                if now - self.answered_at > SILENT:
                    self.first = 0, f"has not answered for {now - self.answered_at:.0f} seconds"
            elif not self.is_heard and now > self.noticed_at + GRACE:
                # The program computes, or waits for a machine that is gone. Nothing else ends that wait.
                print(f"deccs: {self.failure}", file=sys.stderr, flush=True)
                os._exit(ENDED)

    @contextmanager
    def _store_free(self) -> Iterator[bool]:
        """Whether the store can be used: another thread may wait for its answer for ever."""
        is_free = self._lock.acquire(timeout=BEAT)
        try:
            yield is_free
        finally:
            if is_free:
                self._lock.release()

    def _look(self, longest: float) -> None:
        """Notice a process that has said why it ends, or has said nothing for too long."""
        now = time.monotonic()
        try:
            with self._store_free() as is_free:
                if not is_free:
                    return
                if self.store.check(["failure"]):
                    rank, words = json.loads(self.store.get("failure"))
                    if rank != self.rank:
                        self.first = rank, words
                    return
                beats = self.store.multi_get([f"beat/{rank}" for rank in range(self.size)])
        except RuntimeError:  # the first process keeps the store
            self.first = 0, "has ended"
            return
        self.answered_at = time.monotonic()
        for rank, beat in enumerate(beats):
            last, since = self.heard[rank]
            if beat != last:
                self.heard[rank] = beat, now
            elif is_gone(self.pids[rank]):
                self.first = rank, "has ended without a word: it was killed, or has crashed"
            elif rank != self.rank and now - since > longest:
                silence = f"has said nothing for {now - since:.0f} seconds"
                self.first = rank, f"{silence} and counts as ended"


def in_words(error: BaseException) -> str:
    """What the others are told of an error."""
    cause = error.__cause__ or error  # what a command line has told its user already
    return f"has ended: {type(cause).__name__}: {cause}".splitlines()[0][:1000]


def namespace() -> str:
    """What processes have in common that see each other's numbers; empty where nothing tells."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def is_gone(pid: int | None) -> bool:
    """Whether the process of this number on this machine has ended; its launcher may not have noticed yet."""
    if pid is None:
        return False
    try:
        facts = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return facts.rpartition(")")[2].split()[0] in "ZX"  # its state, after its name in brackets
