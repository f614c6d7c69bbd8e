"""A group of processes: the first one leads a fit, the others help it.

All decisions are made by the first process, so that no difference in the last digit can send two processes
different ways. What costs time is shared: reading, pretraining, members, starts and labeling.
"""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from deccs.group.watch import GroupError, Watch

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
Task = Callable[..., Any]


class Group:
    """One process by itself; what it shares, it does alone."""

    rank = 0  # the number of this process
    size = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def once(self, work: Callable[[], T]) -> T:
        """What the work of the first process comes to, for all. An error is raised by all."""
        return work()

    def each(self, work: Callable[[], T]) -> list[T]:
        """What the work of every process comes to, for all. An error of one is raised by all."""
        return [work()]

    def joined(self, rows: np.ndarray) -> np.ndarray:
        """The rows of all processes, in their order: (n_own, ...) -> (n, ...)."""
        return rows

    def average(self, tensors: Iterable[torch.Tensor]) -> None:
        """Replace each tensor by its mean over the processes."""

    def check(self) -> None:
        """Raise a GroupError if another process is known to have ended."""

    @property
    def hosts(self) -> list[str]:
        """The machines that the processes run on, each once."""
        return [socket.gethostname()]

    def all_know(self, error: BaseException) -> bool:
        """Whether the first process has raised this error, too."""
        return True

    def lead(self, work: Callable[[], T], context: object = None) -> T:
        """The first process does the work; the others do what it asks for meanwhile, and get the result.

        ``context`` is what tasks find in a helping process: ``task(group, context, *arguments)``.
        """
        return work()

    def ask(self, task: Task, *arguments: Any) -> None:
        """Let the helping processes begin a task; the first one takes part by a call of its own."""

    def deal(self, task: Task, items: Sequence[Any], context: object = None) -> list[Any]:
        """``task(items, context)`` gives a list; every process does its share of the items."""
        return list(task(items, context))

    def own(self, n: int) -> slice:
        """The share of this process of n things in a row.

        >>> ALONE.own(5)
        slice(0, 5, None)
        """
        return share(n, self.rank, self.size)


ALONE = Group()


def share(n: int, rank: int, size: int) -> slice:
    """Of n things in a row, those of one of several processes: sizes differ by one at most.

    >>> [share(5, rank, 3) for rank in range(3)]
    [slice(0, 1, None), slice(1, 3, None), slice(3, 5, None)]
    """
    return slice(n * rank // size, n * (rank + 1) // size)


def check_same(group: Group, facts: Mapping[str, str]) -> None:
    """Raise a GroupError where processes were asked for different fits: they would wait for each other for ever."""
    everybody = group.each(lambda: dict(facts))
    for rank, others in enumerate(everybody):
        differing = [
            f"{name} ({others.get(name)} there, {everybody[0].get(name)} in process 0)"
            for name in {**everybody[0], **others}
            if others.get(name) != everybody[0].get(name)
        ]
        if differing:
            raise GroupError(
                f"Process {rank} fits something else than process 0; what differs: {', '.join(differing)}. Give all "
                "processes the same parameters and the same data, of which each takes its part."
            )


@dataclass(frozen=True)
class Failure:
    """An error on its way to the other processes."""

    error: Exception


@dataclass(frozen=True)
class Done:
    """The result of what the first process has led."""

    result: Any


class ProcessGroup(Group):
    """Processes that talk through a process group of torch.distributed, which must take tensors of the CPU."""

    def __init__(self, handle: Any, rank: int, size: int, watch: Watch) -> None:
        self.handle, self.rank, self.size, self.watch = handle, rank, size, watch

    def once(self, work: Callable[[], T]) -> T:
        outcome = self._from_first(attempt(work) if self.is_first else None)
        return self._result(outcome)

    def each(self, work: Callable[[], T]) -> list[T]:
        outcomes = self._exchanged(attempt(work))
        return [self._result(outcome) for outcome in outcomes]

    def joined(self, rows: np.ndarray) -> np.ndarray:
        import torch
        import torch.distributed as dist

        shapes = self.each(lambda: rows.shape)
        stops = np.cumsum([0, *(shape[0] for shape in shapes)])
        whole = np.empty((stops[-1], *rows.shape[1:]), rows.dtype)
        for rank in range(self.size):
            part = whole[stops[rank] : stops[rank + 1]]
            if rank == self.rank:
                part[...] = rows
            if part.size:
                with self.watch.talking():
                    dist.broadcast(bytes_of(part, torch), self._global(rank), group=self.handle)
        return whole

    def average(self, tensors: Iterable[torch.Tensor]) -> None:
        import torch
        import torch.distributed as dist

        some = [tensor.detach() for tensor in tensors if tensor.is_floating_point()]
        if not some:
            return
        # One message: many small ones would wait for each other.
        flat = torch.cat([tensor.reshape(-1).float().cpu() for tensor in some])
        with self.watch.talking():
            dist.all_reduce(flat, group=self.handle)
        flat /= self.size
        for tensor, part in zip(some, flat.split([tensor.numel() for tensor in some]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def check(self) -> None:
        self.watch.check()

    @property
    def hosts(self) -> list[str]:
        return list(dict.fromkeys(self.watch.hosts))

    def all_know(self, error: BaseException) -> bool:
        return self.watch.all_say(error)

    def lead(self, work: Callable[[], T], context: object = None) -> T:
        if not self.is_first:
            return self._help(context)
        outcome = attempt(work)
        if isinstance(outcome, Failure) and isinstance(outcome.error, GroupError):
            raise outcome.error  # there is nobody to tell
        self._from_first(Done(outcome))
        return self._result(outcome)

    def _help(self, context: object) -> Any:
        while not isinstance(said := self._from_first(None), Done):
            task, arguments = said
            task(self, context, *arguments)
        return self._result(said.result)

    def ask(self, task: Task, *arguments: Any) -> None:
        self._from_first((task, arguments))

    def deal(self, task: Task, items: Sequence[Any], context: object = None) -> list[Any]:
        if not can_be_sent((task, items)):
            return list(task(items, context))
        self.ask(do_share, task, items)
        outcomes = do_share(self, context, task, items)
        results: list[Any] = [None] * len(items)
        for rank, outcome in enumerate(outcomes):
            results[rank :: self.size] = self._result(outcome)
        return results

    def _from_first(self, said: Any) -> Any:
        import torch.distributed as dist

        box = [said]
        with self.watch.talking():
            dist.broadcast_object_list(box, self._global(0), group=self.handle)
        return box[0]

    def _exchanged(self, own: Any) -> list[Any]:
        import torch.distributed as dist

        boxes: list[Any] = [None] * self.size
        with self.watch.talking():
            dist.all_gather_object(boxes, own, group=self.handle)
        return boxes

    def _result(self, outcome: Any) -> Any:
        if isinstance(outcome, Failure):
            self.watch.known = outcome.error
            raise outcome.error
        return outcome

    def _global(self, rank: int) -> int:
        import torch.distributed as dist

        return dist.get_global_rank(self.handle, rank)


def do_share(group: ProcessGroup, context: object, task: Task, items: Sequence[Any]) -> list[Any]:
    """Every process does its share of the items; the outcomes of all processes, by rank."""
    own = attempt(lambda: list(task(items[group.rank :: group.size], context)))
    return group._exchanged(own)


def attempt(work: Callable[[], T]) -> T | Failure:
    """The result of work, or why there is none, as something that can be sent."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001  whatever it is, the other processes must hear of it
        return Failure(
            error if can_be_sent(error) else GroupError(f"{type(error).__name__}: {error}")
        )


def can_be_sent(value: Any) -> bool:
    """Whether another process can get a copy of a value."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:  # noqa: BLE001  objects of users may raise anything
        return False
    return True


def bytes_of(rows: np.ndarray, torch: Any) -> torch.Tensor:
    """The same memory as a tensor of bytes, which gloo can send whatever the type is."""
    return torch.from_numpy(rows.reshape(-1).view(np.uint8))
