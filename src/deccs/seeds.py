"""Seeds that depend on where they are used, not on what ran before.

Predictions need seeds and threads, too, so torch and scikit-learn are imported where they are used.
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch
    from threadpoolctl import ThreadpoolController

ONE_AT_A_TIME = threading.RLock()


def root_seed(random_state: int | np.random.RandomState | None) -> int:
    """The one number all seeds of a fit are derived from."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def seed_for(root: int, *place: object) -> int:
    """A seed for one place of the program, e.g. ``seed_for(root, "round", 3, "spectral")``.

    Round 3 is the same after a resume, and a new member changes no other.

    >>> seed_for(0, "round", 3) == seed_for(0, "round", 3) != seed_for(0, "round", 4)
    True
    """
    words = "/".join(str(word) for word in (root, *place))
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "big") & 0x7FFFFFFF


def generator_for(root: int, *place: object) -> torch.Generator:
    import torch

    return torch.Generator().manual_seed(seed_for(root, *place))


@contextmanager
def torch_seeded(root: int, *place: object) -> Iterator[None]:
    """Fix torch's global generator (initial weights, dropout) inside, leave the caller's alone.

    There is one such generator in a process: fits in several threads take turns, and get the same bits.
    """
    import torch

    with ONE_AT_A_TIME, torch.random.fork_rng():
        torch.manual_seed(seed_for(root, *place))
        yield


@contextmanager
def reproducible_threads() -> Iterator[None]:
    """One OpenMP thread: scikit-learn's k-means adds up in the order its threads arrive."""
    with thread_pools(len(sys.modules)).limit(limits=1, user_api="openmp"):
        yield


@contextmanager
def one_thread_each() -> Iterator[None]:
    """One thread for the products of NumPy, where several threads of ours make some at the same time."""
    with thread_pools(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def thread_pools(_n_modules: int) -> ThreadpoolController:
    """The OpenMP libraries of this process. Finding them takes milliseconds, so it is done again only after imports."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
