"""Runs in separate processes, several at once: each has its own memory, and one that dies stops no other."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from deccs_paper import records, runner

Work = Callable[[Any, Path | None], list[records.Record]]  # (run, cache) -> its records


@dataclass(frozen=True)
class InProgress:
    """A run in its process."""

    run: Any
    process: BaseProcess
    since: float


class Workers:
    """At most ``jobs`` runs in progress; leaving the ``with`` block ends them."""

    def __init__(
        self,
        jobs: int,
        cache: Path | None,
        work: Work = runner.carry_out,
        start_method: str = "spawn",
        *,
        threads: int | None = None,
        headers: Callable[[Any], list[records.Record]] = runner.headers,
    ) -> None:
        self.jobs, self.cache, self.work, self.headers = jobs, cache, work, headers
        share = max(1, (os.cpu_count() or 1) // jobs) if jobs > 1 else None
        self.threads = threads or share
        self.context = get_context(start_method)
        self.in_progress: dict[Connection, InProgress] = {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for connection, worker in self.in_progress.items():
            worker.process.terminate()
            worker.process.join()
            connection.close()

    def start_next(self, waiting: list[Any]) -> None:
        """Start runs from ``waiting``, and remove them there, until no place is free."""
        while waiting and len(self.in_progress) < self.jobs:
            run = waiting.pop(self.best_next(waiting))
            ours, theirs = self.context.Pipe(duplex=False)
            process = self.context.Process(  # type: ignore[attr-defined]
                target=run_in_process,
                args=(theirs, self.work, run, self.cache, self.threads),
                daemon=True,
            )
            process.start()
            theirs.close()  # so that ours ends when the process does
            self.in_progress[ours] = InProgress(run, process, time.monotonic())

    def best_next(self, waiting: Sequence[Any]) -> int:
        """The first that shares no autoencoder with one in progress: both would train it."""
        busy = {(worker.run.dataset, worker.run.repetition) for worker in self.in_progress.values()}
        free = (
            number
            for number, run in enumerate(waiting)
            if (run.dataset, run.repetition) not in busy
        )
        return next(free, 0)

    def ended(self) -> list[list[records.Record]]:
        """Wait until a run has ended, whether it failed or not; the records of each that has."""
        ready = [
            connection
            for connection in wait(list(self.in_progress))
            if isinstance(connection, Connection)
        ]
        return [
            received(connection, self.in_progress.pop(connection), self.headers)
            for connection in ready
        ]


def work_through(
    waiting: list[Any],
    workers: Workers,
    out: Path,
    show: Callable[[list[Any]], None],
    take: Callable[[list[records.Record]], None],
) -> None:
    """Do all that is waiting. ``show`` is told what is in progress, ``take`` the records of each run.

    Ctrl-C leaves a line "stopped" in ``out`` for the runs in progress.
    """
    try:
        while waiting or workers.in_progress:
            workers.start_next(waiting)
            show([worker.run for worker in workers.in_progress.values()])
            for made in workers.ended():
                take(made)
    except KeyboardInterrupt:
        for worker in workers.in_progress.values():
            for header in workers.headers(worker.run):
                records.append(out, header | {"status": "stopped"})
        raise


def received(
    connection: Connection,
    worker: InProgress,
    headers: Callable[[Any], list[records.Record]],
) -> list[records.Record]:
    """The records of a run; if its process died, they say so."""
    try:
        return connection.recv()
    except (EOFError, OSError):  # it died before it had sent its records
        worker.process.join()
        died = {
            "status": "failed",
            "error": f"the process died with exit code {worker.process.exitcode}",
            "wall_seconds": round(time.monotonic() - worker.since, 1),
        }
        return [header | died for header in headers(worker.run)]
    finally:
        connection.close()
        worker.process.join()


def run_in_process(
    connection: Connection, work: Work, run: Any, cache: Path | None, threads: int | None
) -> None:
    """What a process does; it ends when its parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent decides
    threading.Thread(target=end_with_parent, daemon=True).start()
    if threads is not None:
        torch.set_num_threads(threads)
        threadpool_limits(threads)
    connection.send(work(run, cache))
    connection.close()


def end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
