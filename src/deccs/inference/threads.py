"""Work on some thousand rows in several threads at a time."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from deccs.seeds import one_thread_each, thread_pools

T = TypeVar("T")
R = TypeVar("R")


def n_threads() -> int:
    """How many threads a product of matrices may use."""
    torch = sys.modules.get("torch")
    if torch is not None:  # where users set it
        return int(torch.get_num_threads())
    pools = thread_pools(len(sys.modules)).info()
    return max([pool["num_threads"] for pool in pools if pool["user_api"] == "blas"], default=1)


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """``work`` of each item, in their order: as many at a time as products have threads, with one thread each.

    Work on some thousand rows is many small steps of NumPy, which threads can hardly share.

    >>> list(in_threads(abs, [-1, 2]))
    [1, 2]
    """
    n_workers = n_threads()
    if n_workers == 1:
        yield from map(work, items)
        return
    coming: deque[Future[R]] = deque()
    with one_thread_each(), ThreadPoolExecutor(n_workers) as pool:
        for item in items:
            coming.append(pool.submit(work, item))
            if len(coming) > n_workers:  # no more in memory than is needed to keep all busy
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items; the next one is made in another thread while one is used."""
    with ThreadPoolExecutor(1) as thread:
        end = object()
        coming = thread.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = thread.submit(next, items, end)
            yield item  # type: ignore[misc]
