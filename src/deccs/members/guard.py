"""What keeps a member's code from harming other members, the fit and the user.

A process has one set of global seeds, one default dtype, one working folder. A member that changes
them would change the members after it, the training of the network and the user's own program.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch

from deccs.seeds import reproducible_threads, seed_for, torch_seeded

OURS = ("builtins", "deccs", "numpy", "scipy", "sklearn")  # code known to leave the process alone


def working_folder() -> str | None:
    """The working folder; None if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def set_working_folder(folder: str | None) -> None:
    if folder is not None and folder != working_folder():
        os.chdir(folder)


def set_environment(variables: dict[str, str]) -> None:
    if variables != dict(os.environ):
        os.environ.clear()
        os.environ.update(variables)


def set_torch_threads(n_threads: int) -> None:
    if n_threads != torch.get_num_threads():
        torch.set_num_threads(n_threads)


STATES: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (working_folder, set_working_folder),
    (lambda: dict(os.environ), set_environment),
    (random.getstate, random.setstate),
    (np.random.get_state, np.random.set_state),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, set_torch_threads),
)


@contextmanager
def guarded(member: Any, seed: int) -> Iterator[None]:
    """Run a member's code with global seeds of its own, and put the process back as it was.

    There is one such state in a process: strangers' members in several threads take turns. Those of
    scikit-learn and ours are known to leave it alone, and run at the same time.
    """
    with ExitStack() as stack:
        if not is_known(member):
            stack.enter_context(torch_seeded(seed, "member"))
            stack.enter_context(warnings.catch_warnings())
            stack.enter_context(np.errstate())
            for read, write in STATES:
                stack.callback(write, read())
            random.seed(seed_for(seed, "random"))
            np.random.seed(seed_for(seed, "numpy"))  # noqa: NPY002  what members may draw from
        stack.enter_context(reproducible_threads())
        yield


def is_known(member: Any) -> bool:
    """Whether all parts of a member are scikit-learn's or ours: not a pipeline with a stranger's step.

    >>> from sklearn.cluster import DBSCAN
    >>> is_known(DBSCAN()), is_known(DBSCAN(metric=is_known)), is_known(DBSCAN(metric=warnings.warn))
    (True, True, False)
    """
    parts = [member, *getattr(member, "get_params", dict)().values()]
    homes = (getattr(part, "__module__", None) or type(part).__module__ for part in parts)
    return all(home.partition(".")[0] in OURS for home in homes)
