"""Calls in processes of their own: one that hangs or crashes takes nothing else with it."""

from __future__ import annotations

import os
import pickle
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend.reduction import dumps

IDLE_SECONDS = 60  # a process without work ends after so long; starting one takes seconds


class CallFailed(Exception):
    """A call has no result."""


class NotSent(CallFailed):
    """The arguments cannot be sent to another process."""


class OutOfTime(CallFailed):
    """The call took too long, and was stopped."""


class Died(CallFailed):
    """The process has ended before the call."""


@dataclass(eq=False)
class Worker:
    """A process that works off one call at a time."""

    pool: ProcessPoolExecutor = field(
        default_factory=lambda: ProcessPoolExecutor(max_workers=1, timeout=IDLE_SECONDS)
    )

    def start(self, function: Callable[..., Any]) -> Worker:
        """Wait until the process runs and has imported the function: no call has to wait for that."""
        self.pool.submit(callable, function).result()
        return self

    def stop(self) -> None:
        self.pool.shutdown(wait=True, kill_workers=True)


IDLE: dict[int, list[Worker]] = {}  # by process: those of a parent cannot be used after a fork


@dataclass(frozen=True, eq=False)
class Call:
    """A call under way."""

    place: int  # among all calls
    worker: Worker
    ends: float  # by the clock, at the latest


def in_processes(
    function: Callable[..., Any],
    arguments: Sequence[tuple[Any, ...]],
    n_workers: int,
    seconds: float | None = None,
) -> list[Any]:
    """The results of calls in order, each in a process; a CallFailed instead where there is none.

    At most ``n_workers`` run at the same time, each for ``seconds`` at most.

    >>> in_processes(divmod, [(7, 2), (1, 1)], n_workers=1)
    [(3, 1), (1, 0)]
    """
    results: list[Any] = [None] * len(arguments)
    waiting = list(range(len(arguments)))[::-1]
    calls: dict[Future[Any], Call] = {}
    try:
        while waiting or calls:
            while waiting and len(calls) < n_workers:
                place = waiting.pop()
                try:
                    sent = bytes(dumps((function, arguments[place])))
                except Exception as error:  # noqa: BLE001  pickling runs strangers' code
                    results[place] = NotSent(f"{type(error).__name__}: {error}")
                    continue
                worker = idle_worker(function)
                ends = float("inf") if seconds is None else time.monotonic() + seconds
                calls[worker.pool.submit(unpacked, sent)] = Call(place, worker, ends)
            for future in over(calls):
                call = calls.pop(future)
                results[call.place] = result_of(future, call.worker)
    finally:
        for call in calls.values():  # interrupted
            call.worker.stop()
    return results


def idle_worker(function: Callable[..., Any]) -> Worker:
    """A process that has nothing to do, a new one if there is none."""
    idle = IDLE.setdefault(os.getpid(), [])
    while idle:
        worker = idle.pop()
        with suppress(BrokenExecutor):  # something has ended it meanwhile
            return worker.start(function)
    return Worker().start(function)


def over(calls: dict[Future[Any], Call]) -> list[Future[Any]]:
    """Wait for the calls that are done next or out of time."""
    if not calls:
        return []
    first = min(call.ends for call in calls.values())
    left = None if first == float("inf") else max(0.0, first - time.monotonic())
    done, _ = wait(calls, timeout=left, return_when=FIRST_COMPLETED)
    return list(done) or [future for future, call in calls.items() if call.ends == first]


def result_of(future: Future[Any], worker: Worker) -> Any:
    """The result, or why there is none; a worker that can go on is idle again."""
    if not future.done():
        worker.stop()
        return OutOfTime()
    error = future.exception()
    if isinstance(error, BrokenExecutor):
        exit_code = re.search(r"{(.+)}", str(error))
        return Died(exit_code[1] if exit_code else str(error))
    IDLE[os.getpid()].append(worker)
    if isinstance(error, pickle.PickleError):
        return NotSent(str(error))
    return future.result()


def unpacked(sent: bytes) -> Any:
    """Carry out a call that was sent."""
    try:
        function, arguments = pickle.loads(sent)
    except Exception as error:  # noqa: BLE001  unpickling runs strangers' code
        raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from None
    return function(*arguments)
