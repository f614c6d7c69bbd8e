"""The training loop: everything that is trained runs here.

A method supplies a :class:`Learner`: its loss (or its gradient) and little else. The loop knows the
step budget, schedules, checks, the best state, recovery from a loss that is not finite, progress,
checkpoints, and the one place where gradients are synchronized across processes.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from deccs.events import NOBODY, Listeners, Progress
from deccs.group.group import ALONE, Group
from deccs.network.autoencoder import TrainingError
from deccs.network.device import precision_for
from deccs.storage import NO_CHECKPOINT, Checkpoint

ADAM = {"step", "exp_avg", "exp_avg_sq"}  # what it remembers of a parameter
# What schedules change in an optimizer and in themselves; the rest is as it was made.
MOVED_BY_SCHEDULES = {"lr", "betas", "momentum"}
MOVED_IN_SCHEDULES = {"_last_lr", "best", "_get_lr_called_within_step", "_is_initial"}
STEPS_OF_SCHEDULES = {"last_epoch", "_step_count", "num_bad_epochs", "cooldown_counter"}
MOST_RESCUES = 10  # times a training may go back before it ends with the last good state
T = TypeVar("T")


@dataclass(frozen=True)
class Check:
    """What a learner finds at a check.

    ``held_out`` is an error on held-out points: the state with the lowest one is kept. Without it
    the last state is kept. ``lost`` sends the training back to the kept state and on at half the
    rate; so does a loss that is not finite. ``stop`` ends the training.
    """

    held_out: float = math.nan
    changed: float = math.nan  # share of the labels that changed since the last check
    lost: bool = False
    stop: bool = False


class Learner:
    """What is trained. Attributes named in ``learned`` and ``random`` can be saved and restored.

    An attribute is a module, an optimizer-free tensor or parameter, or any value that model files
    can hold. ``learned`` is also restored when a training goes back; ``random`` (batches,
    generators) is only restored when a fit is resumed.
    """

    stage = "training"  # its name in progress displays
    learned: tuple[str, ...] = ()
    resized: tuple[str, ...] = ()  # of these, tensors whose shape changes while they are learned
    random: tuple[str, ...] = ()
    keeps_best = False  # the state of the lowest held-out error, instead of the last
    limit = math.inf  # a held-out error that is not below this means that the training is lost
    device = torch.device("cpu")
    # Several processes that train it, each on its own rows, and the steps between two averages of what they
    # have learned; with 1 gradients are averaged in every step.
    group: Group = ALONE
    average_every = 1

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        """New optimizers; also called when the training goes on at a lower rate."""
        raise NotImplementedError

    def schedule(self, optimizer: torch.optim.Optimizer, n_steps: int) -> LRScheduler | None:
        """How the rate of an optimizer changes over the steps that are left."""
        return None

    def loss(self, step: int) -> torch.Tensor:
        """The loss of a new batch; steps count from 1."""
        raise NotImplementedError

    def gradients(self, step: int) -> torch.Tensor | None:
        """Set ``.grad`` of what is trained; the loss, or its terms with the total last, comes back.

        The default uses autograd. None says that the loss was not computed.
        """
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        with precision_for(self.device):
            loss = self.loss(step)
        loss.backward()
        return loss.detach()

    def before_step(self, step: int) -> None:
        """What comes before the gradients: new targets, another tree, ..."""

    def after_step(self, step: int) -> None:
        """What follows the optimizers: moved centers, ..."""

    def check(self, step: int) -> Check:
        """Look at what has been learned; called every ``check_every`` steps and after the last."""
        return Check()

    optimizers: list[torch.optim.Optimizer]  # set by the loop from ``start``; may be changed

    def learned_state(self) -> dict[str, Any]:
        return {name: state_of(getattr(self, name)) for name in self.learned}

    def load_learned(self, state: dict[str, Any]) -> None:
        for name in self.learned:
            put_back(self, name, state[name])

    def check_learned(self, state: dict[str, Any]) -> None:
        """Raise a ValueError if a state of a file is not one of this learner."""
        now = self.learned_state()
        check_alike({name: now[name] for name in self.learned}, state, "learned", self.resized)


def state_of(value: Any) -> Any:
    """What is needed to put a value back, as files can hold it."""
    if hasattr(value, "state_dict"):
        return value.state_dict()
    if isinstance(value, torch.Generator):
        return value.get_state()
    return value.detach() if isinstance(value, torch.Tensor) else value


def put_back(owner: Any, name: str, state: Any) -> None:
    value = getattr(owner, name)
    if hasattr(value, "load_state_dict"):
        value.load_state_dict(state)
    elif isinstance(value, torch.Generator):
        value.set_state(state)
    elif isinstance(value, nn.Parameter):
        value.data.copy_(state)
    elif isinstance(state, torch.Tensor):
        setattr(owner, name, state.to(owner.device, copy=True))
    else:
        setattr(owner, name, copy.deepcopy(state))


def check_alike(now: Any, state: Any, where: str, resized: Sequence[str] = ()) -> None:
    """Raise a ValueError if a state does not have the form of the present one: names, types, shapes.

    >>> check_alike({"rate": 0.1, "centers": torch.zeros(3)}, {"rate": 0.2, "centers": torch.zeros(4)}, "state")
    Traceback (most recent call last):
    ValueError: state centers: expected a torch.float32 of shape (3,), got a torch.float32 of shape (4,)
    """
    if isinstance(now, Mapping):
        if not isinstance(state, Mapping) or set(state) != set(now):
            raise ValueError(f"{where}: expected the names {', '.join(map(str, now))}")
        for name, value in now.items():
            if name in resized and isinstance(state[name], torch.Tensor):
                value = value.new_empty(state[name].shape)
            check_alike(value, state[name], f"{where} {name}")
    elif isinstance(now, list | tuple):
        if not isinstance(state, list | tuple) or len(state) != len(now):
            raise ValueError(f"{where}: expected {len(now)} values")
        for number, pair in enumerate(zip(now, state, strict=True)):
            check_alike(*pair, f"{where} {number}")
    elif form_of(now) != form_of(state):
        raise ValueError(f"{where}: expected {form_of(now)}, got {form_of(state)}")


def is_finite(state: Any) -> bool:
    """Whether all numbers of a tensor or of a module's state are finite."""
    if isinstance(state, Mapping):
        return all(is_finite(value) for value in state.values())
    return not isinstance(state, torch.Tensor) or bool(state.isfinite().all())


def tensors_in(state: Any) -> Iterator[torch.Tensor]:
    """All tensors in a state, in the order in which they were put there."""
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, Mapping):
        for value in state.values():
            yield from tensors_in(value)


def gradients_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from (tensor.grad for tensor in group["params"] if tensor.grad is not None)


def form_of(value: Any) -> str:
    """The type of a value, and the shape if it has one, in words."""
    if isinstance(value, torch.Tensor | np.ndarray):
        return f"a {value.dtype} of shape {tuple(value.shape)}"
    if type(value) in (int, float):  # such as a best error of inf, or a rate of 1
        return "a number"
    return f"a {type(value).__name__}"


def check_optimizer(optimizer: torch.optim.Optimizer, state: Any) -> None:
    """Raise a ValueError if a state does not fit the optimizer: torch would go on with it."""
    groups = optimizer.state_dict()["param_groups"]
    check_alike(groups, state["param_groups"], "optimizer")
    for now, saved in zip(groups, state["param_groups"], strict=True):
        for name in set(now) - MOVED_BY_SCHEDULES:
            if now[name] != saved[name]:
                raise ValueError(f"optimizer: {name} is {saved[name]!r:.60}, not {now[name]!r}")
    parameters = [tensor for group in optimizer.param_groups for tensor in group["params"]]
    for place, values in state["state"].items():
        if isinstance(optimizer, torch.optim.Adam) and not values.keys() >= ADAM:
            raise ValueError(f"optimizer: expected the names {', '.join(sorted(ADAM))}")
        for name, value in values.items():
            shape = () if name == "step" else tuple(parameters[place].shape)
            if tuple(value.shape) != shape:
                raise ValueError(f"optimizer {name}: expected the shape {shape}")


def check_schedule(schedule: LRScheduler, state: Any, step: int, *, is_first: bool) -> None:
    """Raise a ValueError if a state is not one of the schedule at this step.

    ``is_first`` says that it has run from the first step: one after a rescue has fewer steps.
    """
    now = schedule.state_dict()
    check_alike(now, state, "schedule")
    counts = [state[name] for name in STEPS_OF_SCHEDULES & set(now)]
    if not all(0 <= count <= step + 1 for count in counts):
        raise ValueError(f"schedule: it has not come so far in {step} steps")
    for name in set(now) - MOVED_IN_SCHEDULES - STEPS_OF_SCHEDULES:
        if is_first and now[name] != state[name]:
            raise ValueError(f"schedule: {name} is {state[name]!r:.60}, not {now[name]!r:.60}")


@dataclass(frozen=True)
class Trained:
    """What came of a training."""

    n_steps: int
    losses: (
        torch.Tensor
    )  # mean terms over the steps since the last rescue; NaN if none are computed
    n_rescues: int = 0


def train(
    learner: Learner,
    n_steps: int,
    *,
    rate: float,
    check_every: int = 100,
    patience: int | None = None,
    listeners: Listeners = NOBODY,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Trained:
    """Train for ``n_steps``, or until a check says stop or ``patience`` checks found nothing better.

    From a ``checkpoint`` it goes on after the last state that was saved, with the same bits. In a group of
    processes that of the first one counts, and so do its listeners.
    """
    run, group = Run(learner, n_steps, rate), learner.group
    finished = restored(group, checkpoint, "trained", run.load_trained)
    if finished:
        return finished
    restored(group, checkpoint, "training", run.load_state)
    while run.step < n_steps:
        run.one_step()
        if run.step % check_every == 0 or run.step == n_steps:
            stop = run.one_check(patience, listeners) or listeners.stopped
            if group.once(partial(bool, stop)):
                break
            if group.once(checkpoint.is_due):
                checkpoint.save("training", run.state_dict())
    trained = run.finish()
    state = {"learned": learner.learned_state(), **run.others_random_state()}
    checkpoint.save("trained", {**state, "torch": torch.get_rng_state(), **vars(trained)})
    return trained


def restored(
    group: Group, checkpoint: Checkpoint, name: str, use: Callable[[dict[str, Any]], T]
) -> T | None:
    """``checkpoint.restore`` of the first process; the other ones use the state that it could use."""
    if group.size == 1:
        return checkpoint.restore(name, use)
    good: list[tuple[dict[str, Any], T]] = []
    if group.is_first:
        checkpoint.restore(name, lambda state: good.append((state, use(state))))
    state = group.once(lambda: good[0][0] if good else None)
    if state is None:
        return None
    return good[0][1] if group.is_first else use(state)


class Run:
    """A training under way."""

    def __init__(self, learner: Learner, n_steps: int, rate: float) -> None:
        self.learner, self.n_steps, self.rate = learner, n_steps, rate
        self.group = learner.group
        self.step = 0
        self.n_rescues = 0
        self.best, self.age = math.inf, 0  # the lowest held-out error, and checks since
        self.sums: torch.Tensor | None  # of the loss's terms, since the last rescue
        self.n_summed: int
        self.told: tuple[float, int]  # the sum and the steps at the last check
        self.last_losses: torch.Tensor | None = None  # the last means that were finite
        self.was_finite = False  # a loss or a held-out error, ever
        self._start_optimizers()
        self._start_sums()
        self._keep()

    def one_step(self) -> None:
        learner = self.learner
        self.step += 1
        learner.before_step(self.step)
        loss = learner.gradients(self.step)
        for optimizer in learner.optimizers:
            if learner.average_every == 1:
                self.group.average(gradients_of(optimizer))
            optimizer.step()
        for schedule in self.schedules:
            if not isinstance(schedule, ReduceLROnPlateau):
                schedule.step()
        learner.after_step(self.step)
        if learner.average_every > 1 and self.step % learner.average_every == 0:
            self.group.average(tensors_in(learner.learned_state()))
        if loss is not None:
            if self.sums is None or self.sums.shape != loss.shape:  # the first, or after a resume
                self.sums = loss.clone()
            else:
                self.sums.add_(loss)
        self.n_summed += 1

    def one_check(self, patience: int | None, listeners: Listeners) -> bool:
        """Keep the state or go back to the kept one; whether the training should end."""
        self._agree()
        seen = self._look()
        check = self.group.once(lambda: seen)
        self._tell(check, listeners)
        judged = self.learner.keeps_best
        if check.lost or (judged and not check.held_out < self.learner.limit):
            return self._go_back()
        if not judged or check.held_out < self.best:
            self.best, self.age = check.held_out, 0
            self._keep()
        else:
            self.age += 1
        for schedule in self.schedules:
            if isinstance(schedule, ReduceLROnPlateau):
                schedule.step(check.held_out)
        return check.stop or (patience is not None and self.age >= patience)

    def _agree(self) -> None:
        """Let all processes go on from the same state: what they have learned, and their optimizers remember."""
        if self.group.size == 1:
            return
        learned = tensors_in(self.learner.learned_state())
        remembered = (
            tensors_in(optimizer.state_dict()["state"]) for optimizer in self.learner.optimizers
        )
        self.group.average([*learned, *chain.from_iterable(remembered)])

    def _look(self) -> Check:
        """The learner's check; lost where a loss, or what was learned, is not finite."""
        if self.sums is not None:
            if not is_finite(self.sums):
                return Check(lost=True)
            self.last_losses, self.was_finite = self.sums / self.n_summed, True
        if not all(is_finite(value) for value in self.learner.learned_state().values()):
            return Check(lost=True)
        try:
            check = self.learner.check(self.step)
        except TrainingError:  # from the embedding
            return Check(lost=True)
        self.was_finite |= math.isfinite(check.held_out)
        return check

    def finish(self) -> Trained:
        """What came of it; a TrainingError if nothing that was computed was finite."""
        is_good = self.best != math.inf
        if self.step and not is_good and not self.was_finite:
            raise TrainingError(
                f"{self.learner.stage}: the loss was NaN or infinite at every check of {self.step} steps, "
                f"so nothing was learned. Use a lower learning_rate than {self.rate}, or scale='auto'; with a "
                "network of your own, check what it computes."
            )
        if self.learner.keeps_best:
            self.learner.load_learned(self.kept)
        losses = self.last_losses if self.sums is None else self.sums / self.n_summed
        if losses is None:  # none are computed
            losses = torch.full((1,), math.nan)
        self.group.average([losses])
        return Trained(self.step, losses, self.n_rescues)

    def state_dict(self) -> dict[str, Any]:
        return {**self._own_state(), **self.others_random_state()}

    def _own_state(self) -> dict[str, Any]:
        learner = self.learner
        return {
            "step": self.step,
            "learned": learner.learned_state(),
            **self._random_state(),  # batches; dropout and the like
            "optimizers": [optimizer.state_dict() for optimizer in learner.optimizers],
            "schedules": [schedule.state_dict() for schedule in self.schedules],
            "kept": self.kept,
            "best": self.best,
            "age": self.age,
            "n_rescues": self.n_rescues,
            "sums": self.sums,
            "n_summed": self.n_summed,
            "told": self.told,
        }

    def others_random_state(self) -> dict[str, Any]:
        """Where the other processes are in their batches: what is different in each of them."""
        if self.group.size == 1:
            return {}
        return {"others": self.group.each(self._random_state)[1:]}

    def _random_state(self) -> dict[str, Any]:
        random = {name: state_of(getattr(self.learner, name)) for name in self.learner.random}
        return {"random": random, "torch": torch.get_rng_state()}

    def _random_state_in(self, state: dict[str, Any]) -> dict[str, Any] | None:
        """That of this process in a state; None if it was saved by another number of processes."""
        by_rank = [state, *state.get("others", [])]
        return by_rank[self.group.rank] if len(by_rank) == self.group.size else None

    def load_state_dict(self, state: dict[str, Any]) -> None:
        learner = self.learner
        self.step, self.n_rescues = state["step"], state["n_rescues"]
        learner.load_learned(state["learned"])
        self._start_optimizers()
        for optimizer, saved in zip(learner.optimizers, state["optimizers"], strict=True):
            check_optimizer(optimizer, saved)
            optimizer.load_state_dict(saved)
        for schedule, saved in zip(self.schedules, state["schedules"], strict=True):
            check_schedule(schedule, saved, self.step, is_first=not self.n_rescues)
            schedule.load_state_dict(saved)
        random = self._random_state_in(state)
        if random is not None:
            for name in learner.random:
                put_back(learner, name, random["random"][name])
            torch.set_rng_state(random["torch"])
        self.kept, self.best, self.age = state["kept"], state["best"], state["age"]
        self.sums, self.n_summed, self.told = state["sums"], state["n_summed"], tuple(state["told"])

    def load_state(self, state: dict[str, Any]) -> None:
        """``load_state_dict`` of a file's state: it is checked, and after an error all is as before."""
        before = copy.deepcopy(self._own_state())
        try:
            self._check(state, before)
            self.load_state_dict(state)
        except Exception:
            self.load_state_dict(before)
            raise

    def load_trained(self, state: dict[str, Any]) -> Trained:
        """Put back what a finished training has learned; after an error all is as before."""
        trained = Trained(state["n_steps"], state["losses"], state["n_rescues"])
        counts = trained.n_steps, trained.n_rescues
        if not all(type(count) is int and 0 <= count <= self.n_steps for count in counts):
            raise ValueError(f"Of {self.n_steps} steps it cannot have counted {counts}")
        if not (isinstance(trained.losses, torch.Tensor) and trained.losses.ndim <= 1):
            raise ValueError("The losses must be numbers")
        self.learner.check_learned(state["learned"])
        check_alike(torch.get_rng_state(), state["torch"], "torch")
        before = copy.deepcopy(self.learner.learned_state())
        random = self._random_state_in(state)
        try:
            if random is not None:
                torch.set_rng_state(random["torch"])
            self.learner.load_learned(state["learned"])
        except Exception:
            self.learner.load_learned(before)
            raise
        return trained

    def _check(self, state: dict[str, Any], now: dict[str, Any]) -> None:
        """Raise a ValueError if a state of a file is not one of this training."""
        for part in ("learned", "kept"):
            self.learner.check_learned(state[part])
        own = ("learned", "kept", "optimizers", "schedules", "sums", "others")
        check_alike(
            {name: value for name, value in now.items() if name not in own},
            {name: value for name, value in state.items() if name not in own},
            "state",
        )
        counts = state["step"], state["age"], state["n_rescues"], state["n_summed"]
        if not all(type(count) is int and 0 <= count <= self.n_steps for count in counts):
            raise ValueError(f"Of {self.n_steps} steps it cannot have counted {counts}")
        if not (state["sums"] is None or isinstance(state["sums"], torch.Tensor)):
            raise ValueError("The sums of the losses must be numbers")
        if not all(is_finite(value) for value in state["kept"].values()):
            raise ValueError("The state that was kept has numbers that are not finite")

    def _start_optimizers(self) -> None:
        learner = self.learner
        learner.optimizers = learner.start(self.rate * 0.5**self.n_rescues)
        left = max(self.n_steps - self.step, 1) if self.n_rescues else max(self.n_steps, 1)
        schedules = [learner.schedule(optimizer, left) for optimizer in learner.optimizers]
        self.schedules = [schedule for schedule in schedules if schedule is not None]

    def _start_sums(self) -> None:
        self.sums, self.n_summed, self.told = None, 0, (0.0, 0)

    def _keep(self) -> None:
        self.kept = copy.deepcopy(self.learner.learned_state())

    def _go_back(self) -> bool:
        self.n_rescues += 1
        self.learner.load_learned(self.kept)
        self._start_optimizers()
        self._start_sums()
        if self.n_rescues > MOST_RESCUES and self.was_finite:  # else an error follows
            warnings.warn(
                f"{self.learner.stage}: the loss was not finite, or a check failed, {self.n_rescues} "
                f"times; the last good state is kept. Try a lower learning_rate than {self.rate}.",
                stacklevel=4,
            )
        return self.n_rescues > MOST_RESCUES

    def _tell(self, check: Check, listeners: Listeners) -> None:
        total = math.nan if self.sums is None else float(self.sums.flatten()[-1])
        before, n_before = self.told
        mean = (total - before) / max(self.n_summed - n_before, 1)
        self.told = total, self.n_summed
        progress = Progress(
            self.learner.stage, self.step, self.n_steps, mean, check.held_out, check.changed
        )
        listeners.tell("on_progress", progress)
