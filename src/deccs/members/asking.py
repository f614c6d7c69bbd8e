"""Asking members for their labels: in this process or in others, with a limit of time if there is one."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import cpu_count, delayed, effective_n_jobs
from sklearn.base import clone

from deccs.group.group import ALONE, Group
from deccs.labels import as_labels
from deccs.members.checks import is_labeling
from deccs.members.guard import guarded
from deccs.members.processes import Died, NotSent, OutOfTime, in_processes
from deccs.seeds import seed_for
from deccs.spreading import (
    SpreadWarning,
    alone,
    as_asked,
    in_jobs,
    in_one_line,
    on_cluster,
    parallel,
)

Question = tuple[Any, np.ndarray, np.ndarray, int]  # the arguments of `ask`
Answer = tuple[np.ndarray | None, str]  # (n_sample,) labels, or None and why there are none


class MemberWarning(UserWarning):
    """A member was left out, or is not run as it was asked for."""


@dataclass(frozen=True)
class Jobs:
    """How members are run."""

    n_jobs: int | None = None  # at the same time
    timeout: float | None = None  # seconds that each may take
    group: Group = ALONE  # processes among which members are dealt


ONE_BY_ONE = Jobs()


def ask_all(questions: Mapping[str, Question], jobs: Jobs) -> list[Answer]:
    """The answers of members, by their names.

    A member cannot be stopped inside this process, so those with a limit of time run in others of
    this machine. So do all of them after a worker of joblib has died: a process each shows whose
    fault it was. In a group every process asks its share of the members.
    """
    if jobs.group.size > 1:
        own = replace(jobs, group=ALONE)
        return jobs.group.deal(ask_share, [(*item, own) for item in questions.items()])
    is_far = on_cluster()
    if jobs.timeout is None:
        try:
            if is_far:
                return in_jobs(alone, [(ask, *each) for each in questions.values()], jobs.n_jobs)
            asked = (delayed(ask)(*question) for question in questions.values())
            return list(parallel(n_jobs=jobs.n_jobs)(asked))
        except (BrokenExecutor, pickle.PicklingError):  # of this machine: it will show below
            pass
        except Exception as error:  # noqa: BLE001  `ask` raises none: a worker has died, or cannot be sent a member
            warnings.warn(
                f"joblib could not ask the members ({in_one_line(error)}). They run in processes of "
                "this machine.",
                SpreadWarning,
                stacklevel=4,
            )
    with as_asked():
        n_workers = effective_n_jobs(jobs.n_jobs)
    if is_far:
        n_workers = min(n_workers, cpu_count())
    results = in_processes(ask, list(questions.values()), n_workers, jobs.timeout)
    return [
        answer_of(name, question, result, jobs)
        for (name, question), result in zip(questions.items(), results, strict=True)
    ]


def ask_share(items: Sequence[tuple[str, Question, Jobs]], _context: object) -> list[Answer]:
    """What one process does of ``ask_all``."""
    questions = {name: question for name, question, _ in items}
    return ask_all(questions, items[0][2]) if items else []


def answer_of(name: str, question: Question, result: Any, jobs: Jobs) -> Answer:
    """The answer from another process; a member that cannot be sent to one is asked in this one."""
    if isinstance(result, OutOfTime):
        return None, f"it took longer than member_timeout={jobs.timeout:g} seconds"
    if isinstance(result, Died):
        return None, f"the process it ran in has died ({result})"
    if isinstance(result, NotSent):
        no_limit = "" if jobs.timeout is None else ", without a limit of time"
        warnings.warn(
            f"Member {name!r} cannot be sent to another process ({result}). It runs in this "
            f"one{no_limit}.",
            MemberWarning,
            stacklevel=4,
        )
        return ask(*question)
    answer: Answer = result
    return answer


def fresh_copy(member: Any, seed: int) -> Any:
    """An unfitted copy, with a seed where it has none; so have the steps of a pipeline."""
    fresh = clone(member, safe=False)
    for key, value in sorted(getattr(fresh, "get_params", dict)().items()):
        if value is None and (key == "random_state" or key.endswith("__random_state")):
            fresh.set_params(**{key: seed if key == "random_state" else seed_for(seed, key)})
    return fresh


def ask(member: Any, Z: np.ndarray, sample: np.ndarray, seed: int) -> tuple[np.ndarray | None, str]:
    """One member's labels of the sample, or None and why not."""
    if is_labeling(member):
        return member[sample], ""
    try:
        with guarded(member, seed):
            answer = fresh_copy(member, seed).fit_predict(
                Z.copy(order="K")
            )  # it may change its copy
        if np.shape(answer) != (len(Z),):
            return None, f"fit_predict returned shape {np.shape(answer)} for {len(Z)} points"
        return as_labels(answer), ""
    except (Exception, SystemExit) as error:  # noqa: BLE001  a user's member may raise anything; the others continue
        return None, f"{type(error).__name__}: {error}"
