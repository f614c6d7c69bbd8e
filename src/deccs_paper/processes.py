"""Runs in processes of their own, several at once: memory is theirs alone, and one that dies takes no other along."""

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

import torch
from threadpoolctl import threadpool_limits

from deccs_paper import records, runner
from deccs_paper.runner import Run

Work = Callable[[Run, Path | None], list[records.Record]]


@dataclass(frozen=True)
class UnderWay:
    """A run in its process."""

    run: Run
    process: BaseProcess
    since: float


class Workers:
    """At most ``jobs`` runs under way; leaving the ``with`` ends those that are."""

    def __init__(
        self,
        jobs: int,
        cache: Path | None,
        work: Work = runner.carry_out,
        start_method: str = "spawn",
    ) -> None:
        self.jobs, self.cache, self.work = jobs, cache, work
        self.threads = max(1, (os.cpu_count() or 1) // jobs) if jobs > 1 else None
        self.context = get_context(start_method)
        self.under_way: dict[Connection, UnderWay] = {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for connection, worker in self.under_way.items():
            worker.process.terminate()
            worker.process.join()
            connection.close()

    def start_next(self, waiting: list[Run]) -> None:
        """Fill the free places from ``waiting``, which gets shorter."""
        while waiting and len(self.under_way) < self.jobs:
            run = waiting.pop(self.best_next(waiting))
            ours, theirs = self.context.Pipe(duplex=False)
            process = self.context.Process(  # type: ignore[attr-defined]
                target=work_apart,
                args=(theirs, self.work, run, self.cache, self.threads),
                daemon=True,
            )
            process.start()
            theirs.close()  # ours then ends when the process does
            self.under_way[ours] = UnderWay(run, process, time.monotonic())

    def best_next(self, waiting: Sequence[Run]) -> int:
        """The first that shares no autoencoder with one under way: both would train it."""
        busy = {(worker.run.dataset, worker.run.repetition) for worker in self.under_way.values()}
        free = (
            number
            for number, run in enumerate(waiting)
            if (run.dataset, run.repetition) not in busy
        )
        return next(free, 0)

    def ended(self) -> list[list[records.Record]]:
        """Wait until a run has ended, well or not; the records of each that has."""
        ready = [
            connection
            for connection in wait(list(self.under_way))
            if isinstance(connection, Connection)
        ]
        return [received(connection, self.under_way.pop(connection)) for connection in ready]


def received(connection: Connection, worker: UnderWay) -> list[records.Record]:
    """The records of a run; of a process that died a failed one each."""
    try:
        return connection.recv()
    except (EOFError, OSError):  # it died before its records came, or amid them
        worker.process.join()
        died = {
            "status": "failed",
            "error": f"the process died with exit code {worker.process.exitcode}",
            "wall_seconds": round(time.monotonic() - worker.since, 1),
        }
        return [header | died for header in runner.headers(worker.run)]
    finally:
        connection.close()
        worker.process.join()


def work_apart(
    connection: Connection, work: Work, run: Run, cache: Path | None, threads: int | None
) -> None:
    """What the process does; it ends when its parent does."""
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
