"""Calls spread over the jobs of joblib: other processes of this machine, or a Dask or Ray cluster.

Nothing is spread unless the user asks for it with ``joblib.parallel_config``. A spread call gives the
same bits as one in a process with one thread. It never spreads work of its own.
"""

from __future__ import annotations

import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.externals.loky.backend.reduction import dumps
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits


class SpreadWarning(UserWarning):
    """Calls could not be spread, and run in this process instead."""


class Asked(threading.local):
    """The backend of joblib and the number of jobs that the user asked for, while a fit hides them."""

    backend: Any = None
    n_jobs: int | None = None


ASKED = Asked()


@contextmanager
def jobs_for_us_alone() -> Iterator[None]:
    """Hide the user's ``parallel_config`` from all but the calls that are spread here.

    scikit-learn would follow it, too, and send every search for neighbors to the cluster.
    """
    if ASKED.backend is not None or (n_places() == 1 and not on_cluster()):
        yield
        return
    ASKED.backend, ASKED.n_jobs = get_active_backend()
    try:
        with parallel_config(backend="sequential"):
            yield
    finally:
        ASKED.backend = None


@contextmanager
def as_asked() -> Iterator[None]:
    """The user's ``parallel_config`` again, inside :func:`jobs_for_us_alone`."""
    if ASKED.backend is None:
        yield
        return
    with parallel_config(backend=ASKED.backend, n_jobs=ASKED.n_jobs):
        yield


def parallel(n_jobs: int | None = None, **options: Any) -> Parallel:
    """``joblib.Parallel``, which takes up what the user asked for when it is made."""
    if n_jobs is not None:  # joblib 1.3 takes None for 1
        options["n_jobs"] = n_jobs
    with as_asked():
        return Parallel(**options)


def n_places() -> int:
    """How many calls can run at the same time in other processes; 1 if the user has not asked for it.

    Threads do not count: they would share one random generator of torch and one list of warnings.
    """
    with as_asked():
        if getattr(get_active_backend()[0], "supports_sharedmem", False):
            return 1
        return int(effective_n_jobs(None))


def on_cluster() -> bool:
    """Whether joblib sends calls to other machines: its own backends stay on this one."""
    with as_asked():
        return type(get_active_backend()[0]).__module__ != "joblib._parallel_backends"


@dataclass(frozen=True)
class Outcome:
    """What became of a call."""

    value: Any
    error: Exception | None
    warnings: tuple[tuple[type[Warning], str], ...]

    def result(self) -> Any:
        """What the call returned, with the warnings and errors it raised."""
        for category, text in self.warnings:
            warnings.warn(text, category, stacklevel=2)
        if self.error is not None:
            raise self.error
        return self.value


def each(
    function: Callable[..., Any], shared: tuple[Any, ...], arguments: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """The results of ``function(*shared, *own)`` for all ``arguments``, in their order.

    Without other places each call is made when its result is asked for.

    >>> list(each(divmod, (7,), [(2,), (3,)]))
    [(3, 1), (2, 1)]
    """
    if n_places() == 1 or len(arguments) < 2:
        for own in arguments:
            yield function(*shared, *own)
    else:
        for outcome in spread(function, shared, arguments):
            yield outcome.result()


def spread(
    function: Callable[..., Any], shared: tuple[Any, ...], arguments: Sequence[tuple[Any, ...]]
) -> list[Outcome]:
    """What becomes of ``function(*shared, *own)`` for all ``arguments``, each in a job of its own.

    What all calls share is sent to each worker once, as one array: joblib puts large arrays where all
    jobs can read them, but copies other objects for every call. Where jobs cannot be had, because a
    worker has died or cannot be sent something, all calls are made in this process.
    """
    if not arguments:
        return []
    try:
        sent = np.frombuffer(dumps((function, shared)), dtype=np.uint8)
        made = in_jobs(carry_out, [(sent, own) for own in arguments])
        return [pickle.loads(outcome) for outcome in made]
    except Exception as error:  # noqa: BLE001  every backend has errors of its own
        warnings.warn(
            f"joblib could not spread {len(arguments)} calls ({in_one_line(error)}). They run in this "
            "process, one after the other.",
            SpreadWarning,
            stacklevel=3,
        )
        return [outcome_of(function, (*shared, *own)) for own in arguments]


def in_one_line(error: Exception) -> str:
    """The beginning of an error: backends add pages of advice."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}".rstrip(" .:")


def in_jobs(
    function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], n_jobs: int | None = None
) -> list[Any]:
    """The results of ``function(*each)`` for all ``arguments``, by the user's joblib.

    Dask and Ray are asked without ``Parallel``, which waits forever for a worker of Dask that has died
    (joblib 1.6), and starts new processes on Ray for every call (Ray 2.60).
    """
    with as_asked():
        backend = get_active_backend()[0]
    if hasattr(backend, "client"):
        return on_dask(backend, function, arguments)
    if type(backend).__module__.startswith("ray."):
        return on_ray(backend, function, arguments)
    return list(parallel(n_jobs=n_jobs)(delayed(function)(*each) for each in arguments))


def on_dask(
    backend: Any, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
) -> list[Any]:
    client = backend.client

    def submit(*sent: Any) -> Any:
        return client.submit(function, *sent, pure=False, **backend.submit_kwargs)

    futures = [
        submit(*sent) for sent in sent_once(arguments, lambda one: client.scatter(one, hash=False))
    ]
    try:
        return list(client.gather(futures))
    finally:  # after an error, or Ctrl-C
        client.cancel(futures)


def on_ray(
    backend: Any, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
) -> list[Any]:
    ray: Any = sys.modules["ray"]  # the backend has imported it
    task = ray.remote(function).options(**(backend.ray_remote_args or {}))
    references = [task.remote(*sent) for sent in sent_once(arguments, ray.put)]
    try:
        return list(ray.get(references))
    except BaseException:
        for reference in references:
            ray.cancel(reference)
        raise


def sent_once(
    arguments: Sequence[tuple[Any, ...]], send: Callable[[np.ndarray], Any]
) -> list[tuple[Any, ...]]:
    """The arguments of calls, where arrays are references to what was sent. Several calls share one.

    >>> X = np.zeros(3)
    >>> sent_once([(X, 1), (X, 2)], lambda array: f"{len(array)} numbers")
    [('3 numbers', 1), ('3 numbers', 2)]
    """
    arrays = {id(one): one for each in arguments for one in each if isinstance(one, np.ndarray)}
    sent = {number: send(array) for number, array in arrays.items()}
    return [tuple(sent.get(id(one), one) for one in each) for each in arguments]


def carry_out(sent: np.ndarray, own: tuple[Any, ...]) -> bytes:
    """The outcome of a call in a worker, pickled: some backends make arrays read-only on their way."""
    function, shared = pickle.loads(sent.data)
    with one_thread():
        return bytes(dumps(alone(outcome_of, function, (*shared, *own))))


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that must not spread work of its own: a job that waits for jobs blocks its place."""
    with parallel_config(backend="sequential"):
        return function(*arguments)


def outcome_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    value, raised = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = function(*arguments)
        except Exception as error:  # noqa: BLE001  whoever asks for the result gets it
            raised = error
    said = dict.fromkeys((warning.category, str(warning.message)) for warning in caught)
    return Outcome(value, raised, tuple(said))


@contextmanager
def one_thread() -> Iterator[None]:
    """A worker is one of many on its machine, and sums depend on the number of threads."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
