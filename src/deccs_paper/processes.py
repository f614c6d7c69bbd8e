"""Runs in other processes, several at once, here or on a cluster: one that dies stops no other."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from deccs.spreading import alone, in_jobs, in_one_line, one_thread
from deccs_paper import records, runner

Work = Callable[[Any, Path | None], list[records.Record]]  # (run, cache) -> its records


class OtherProcess:
    """A run in a process of this machine."""

    def __init__(self, process: BaseProcess) -> None:
        self.process = process

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()

    def end(self) -> str:
        """Wait for it; why there are no records if it sent none."""
        self.process.join()
        return f"the process died with exit code {self.process.exitcode}"


class OnCluster(threading.Thread):
    """A run on a cluster, and the thread here that waits for it.

    A thread for each, so that one whose worker dies does not end the others.
    """

    def __init__(self, backend: Any, sink: Connection, *call: Any) -> None:
        super().__init__(daemon=True)
        self.backend, self.sink, self.call = backend, sink, call
        self.error = ""

    def run(self) -> None:
        name = type(self.backend).__name__
        try:
            with parallel_config(backend=self.backend):
                (made,) = in_jobs(run_in_worker, [self.call])
            self.sink.send([record | {"backend": name} for record in made])
        except Exception as error:  # noqa: BLE001  it becomes the record of the run
            self.error = f"{name} could not run it: {in_one_line(error)}"
        finally:
            self.sink.close()

    def stop(self) -> None:
        """The backend ends what it runs for us when this process ends."""

    def end(self) -> str:
        self.join()
        return self.error


@dataclass(frozen=True)
class InProgress:
    """A run under way."""

    run: Any
    place: OtherProcess | OnCluster
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
            worker.place.stop()
            connection.close()

    def start_next(self, waiting: list[Any]) -> None:
        """Start runs from ``waiting``, and remove them there, until no place is free."""
        while waiting and len(self.in_progress) < self.jobs:
            run = waiting.pop(self.best_next(waiting))
            ours, theirs = self.context.Pipe(duplex=False)
            self.in_progress[ours] = InProgress(run, self.begun(run, theirs), time.monotonic())

    def begun(self, run: Any, theirs: Connection) -> OtherProcess | OnCluster:
        """A run that sends its records to ``theirs``, and closes it."""
        process = self.context.Process(  # type: ignore[attr-defined]
            target=run_in_process,
            args=(theirs, self.work, run, self.cache, self.threads),
            daemon=True,
        )
        process.start()
        theirs.close()  # so that ours ends when the process does
        return OtherProcess(process)

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


class ClusterWorkers(Workers):
    """The same on the cluster of the user's ``parallel_config``, as many runs at a time as it has places."""

    def __init__(
        self,
        cache: Path | None,
        work: Work = runner.carry_out,
        *,
        headers: Callable[[Any], list[records.Record]] = runner.headers,
    ) -> None:
        whole = cache and cache.resolve()  # workers are in folders of their own
        super().__init__(effective_n_jobs(None), whole, work, headers=headers)
        self.backend = get_active_backend()[0]

    def begun(self, run: Any, theirs: Connection) -> OnCluster:
        thread = OnCluster(self.backend, theirs, self.work, run, self.cache)
        thread.start()
        return thread


@contextmanager
def cluster(backend: str, address: str | None) -> Iterator[None]:
    """Connect to a cluster; the runs of commands inside are carried out there."""
    if backend == "dask":
        if address is None:
            raise ValueError(
                "--backend dask needs the --address of its scheduler: tcp://host:8786."
            )
        with parallel_config(backend="dask", scheduler_host=address):
            try:
                yield
            finally:
                get_active_backend()[0].client.close()
    elif backend == "ray":
        try:
            import ray
            from ray.util.joblib import register_ray
        except ImportError as error:
            raise ImportError("--backend ray needs Ray: pip install 'deccs[ray]'") from error
        ray.init(address=address)
        register_ray()
        try:
            with parallel_config(backend="ray", n_jobs=-1):
                yield
        finally:
            ray.shutdown()
    else:
        raise ValueError(f"--backend must be dask or ray, got {backend!r}.")


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
        died = {
            "status": "failed",
            "error": worker.place.end(),
            "wall_seconds": round(time.monotonic() - worker.since, 1),
        }
        return [header | died for header in headers(worker.run)]
    finally:
        connection.close()
        worker.place.end()


def run_in_worker(work: Work, run: Any, cache: Path | None) -> list[records.Record]:
    """What a worker of a cluster does."""
    with one_thread():
        made: list[records.Record] = alone(work, run, cache)
    return made


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
