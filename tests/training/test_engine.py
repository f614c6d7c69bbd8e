"""The training loop: a parabola worked out by hand, and laws that hold for every learner."""

import copy
import math
import os

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau

from deccs.events import Callback, Listeners
from deccs.group.group import Group
from deccs.network.autoencoder import TrainingError
from deccs.storage import FolderCheckpoint, checkpoints
from deccs.training.batches import Batches
from deccs.training.engine import MOST_RESCUES, Check, Learner, train

NAN = math.nan


class Parabola(Learner):
    """w²/2, whose gradient is w: at a rate of 1/2 every step halves w."""

    stage = "parabola"
    learned = ("w",)

    def __init__(self, w=8.0, *, broken=(), checks=(), keeps_best=False):
        self.w = nn.Parameter(torch.tensor([w]))
        self.broken, self.keeps_best = set(broken), keeps_best
        self.checks, self.rates = iter(checks), []

    def start(self, rate):
        self.rates.append(rate)
        return [torch.optim.SGD([self.w], lr=rate)]

    def loss(self, step):
        return (self.w.square() / 2).sum() * (NAN if step in self.broken else 1)

    def check(self, step):
        return next(self.checks, Check())


class Recorder(Callback):
    def __init__(self, stop_at=None):
        self.seen, self.stop_at = [], stop_at

    def on_progress(self, progress):
        self.seen.append(progress)

    def stop(self):
        return bool(self.seen) and self.seen[-1].step == self.stop_at


def run(learner, n_steps, rate=0.5, callback=None, **options):
    trained = train(
        learner, n_steps, rate=rate, listeners=Listeners([callback or Callback()]), **options
    )
    return float(learner.w.detach()), trained


def test_a_parabola_by_hand():
    """w: 8, 4, 2, 1 and losses before the steps: 32, 8, 2."""
    w, trained = run(Parabola(), 3)
    assert w == 1
    assert (trained.n_steps, trained.n_rescues, float(trained.losses)) == (3, 0, 14)


def test_progress_has_the_mean_loss_since_the_last_check():
    recorder = Recorder()
    run(Parabola(), 5, callback=recorder, check_every=2)
    told = [(p.stage, p.step, p.n_steps, p.loss) for p in recorder.seen]
    assert told == [("parabola", 2, 5, 20), ("parabola", 4, 5, 1.25), ("parabola", 5, 5, 0.125)]
    assert math.isnan(recorder.seen[0].held_out) and math.isnan(recorder.seen[0].changed)


def test_what_a_check_finds_is_told():
    recorder = Recorder()
    run(Parabola(checks=[Check(held_out=0.5, changed=0.25)]), 1, callback=recorder)
    assert (recorder.seen[0].held_out, recorder.seen[0].changed) == (0.5, 0.25)


def test_no_steps_change_nothing():
    w, trained = run(Parabola(keeps_best=True), 0)
    assert w == 8
    assert trained.n_steps == 0 and trained.losses.isnan().all()


def errors(*values):
    return [Check(held_out=value) for value in values]


def test_the_best_state_is_kept():
    """Held-out errors 3, 1, 2: the state after the second step, where w is 2."""
    assert run(Parabola(checks=errors(3, 1, 2), keeps_best=True), 3, check_every=1)[0] == 2
    assert run(Parabola(checks=errors(3, 1, 2)), 3, check_every=1)[0] == 1  # the last


def test_of_equal_errors_the_first_is_kept():
    assert run(Parabola(checks=errors(1, 1, 1), keeps_best=True), 3, check_every=1)[0] == 4


def test_the_last_step_is_checked_too():
    """Checks after steps 2 and 3; the error after the third is lower."""
    assert run(Parabola(checks=errors(2, 1), keeps_best=True), 3, check_every=2)[0] == 1


@pytest.mark.parametrize(("patience", "n_steps"), [(1, 3), (2, 6), (None, 8)])
def test_patience_counts_checks_without_a_better_one(patience, n_steps):
    learner = Parabola(checks=errors(5, 4, 4, 3, 3, 3, 2, 1), keeps_best=True)
    assert run(learner, 8, check_every=1, patience=patience)[1].n_steps == n_steps


def test_a_check_can_stop():
    w, trained = run(Parabola(checks=[Check(), Check(stop=True)]), 9, check_every=2)
    assert (w, trained.n_steps) == (0.5, 4)


def test_a_callback_can_stop():
    w, trained = run(Parabola(), 9, callback=Recorder(stop_at=4), check_every=2)
    assert (w, trained.n_steps) == (0.5, 4)


def test_what_is_stopped_keeps_the_best_state():
    learner = Parabola(checks=errors(1, 2), keeps_best=True)
    assert run(learner, 9, callback=Recorder(stop_at=4), check_every=2)[0] == 2


def test_a_loss_that_is_not_finite_goes_back_and_halves_the_rate():
    """8 -> 4, then NaN: back to 4, and on at a rate of 1/4: 3, 2.25."""
    learner = Parabola(broken=[2])
    w, trained = run(learner, 4, check_every=1)
    assert w == 2.25
    assert learner.rates == [0.5, 0.25]
    assert (trained.n_steps, trained.n_rescues) == (4, 1)
    assert float(trained.losses) == (8 + 4.5) / 2  # steps before the rescue do not count


def test_a_rescue_goes_back_to_the_last_check():
    """NaN in the third step, found at the fourth: back to the state after the second, w = 2."""
    assert run(Parabola(broken=[3]), 5, check_every=2)[0] == 2 * 0.75


def test_a_rescue_goes_back_to_the_best_state():
    learner = Parabola(broken=[3], checks=errors(1, 2, 3), keeps_best=True)
    run(learner, 3, check_every=1)
    assert float(learner.w.detach()) == 4


@pytest.mark.parametrize("check", [Check(lost=True), Check(held_out=NAN), Check(held_out=math.inf)])
def test_a_lost_training_goes_back(check):
    learner = Parabola(checks=[Check(held_out=9), check, Check(held_out=1)], keeps_best=True)
    w, trained = run(learner, 3, check_every=1)
    assert (w, trained.n_rescues) == (3, 1)


def test_an_error_above_the_limit_is_lost():
    learner = Parabola(checks=errors(4, 6, 4), keeps_best=True)
    learner.limit = 5
    assert run(learner, 3, check_every=1)[1].n_rescues == 1


def test_rates_that_stop_working_end_with_a_warning_and_the_last_good_state():
    learner = Parabola(broken=range(2, 1000))
    with pytest.warns(UserWarning, match=r"parabola: .*Try a lower learning_rate than 0\.5"):
        w, trained = run(learner, 1000, check_every=1)
    assert w == 4
    assert trained.n_steps == trained.n_rescues + 1 == MOST_RESCUES + 2
    assert float(trained.losses) == 32  # of the only step that was good


def test_a_loss_that_is_never_finite_is_an_error():
    with pytest.raises(TrainingError, match=r"parabola: .* of 11 steps.*lower learning_rate"):
        run(Parabola(broken=range(1000)), 1000, check_every=1)
    with pytest.raises(TrainingError, match="of 1 steps"):
        run(Parabola(broken=[1]), 1)
    with pytest.raises(TrainingError, match="of 3 steps"):
        run(Parabola(checks=errors(NAN, NAN, NAN), broken=range(9), keeps_best=True), 3)


def test_a_held_out_error_that_is_never_finite_is_an_error():
    learner = ByHand(keeps_best=True, broken=range(1000))
    with pytest.raises(TrainingError, match="parabola"):
        run(learner, 1000, check_every=1)


def test_weights_that_are_not_finite_are_lost_though_the_loss_was():
    """The last step before a check may make them so: its loss came before."""
    learner = Parabola()
    learner.after_step = lambda step: learner.w.data.mul_(NAN if step == 4 else 1)
    w, trained = run(learner, 6, check_every=2)
    assert trained.n_rescues == 1 and w == 2 * 0.75**2


def test_an_embedding_that_is_not_finite_sends_a_training_back():
    learner = Parabola()

    def check(step):
        if step == 2:
            raise TrainingError("NaN")
        return Check()

    learner.check = check
    assert run(learner, 3, check_every=1)[1].n_rescues == 1


class ByHand(Parabola):
    """The same gradient without autograd or loss, and a center that follows."""

    learned = ("w", "center", "n_moves")

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.center, self.n_moves, self.calls = torch.zeros(1), 0, []

    def before_step(self, step):
        self.calls.append(f"before {step}")

    def gradients(self, step):
        self.calls.append(f"gradients {step}")
        self.w.grad = self.w.detach() * (NAN if step in self.broken else 1)

    def after_step(self, step):
        self.calls.append(f"after {step}")
        self.center = self.center + self.w.detach()
        self.n_moves += 1

    def check(self, step):
        self.calls.append(f"check {step}")
        return Check(lost=not bool(self.w.isfinite()))


def test_gradients_by_hand_equal_autograd_and_hooks_come_in_order():
    learner = ByHand()
    w, trained = run(learner, 2, check_every=2)
    assert w == run(Parabola(), 2)[0]
    assert trained.losses.isnan().all()  # no loss was computed
    parts = ["before 1", "gradients 1", "after 1", "before 2", "gradients 2", "after 2", "check 2"]
    assert learner.calls == parts


def test_everything_learned_goes_back_together():
    """8 -> 4 -> 2 (center 6), then NaN: center and counter go back as well; then 2 -> 1.5."""
    learner = ByHand(broken=[3])
    w, _ = run(learner, 5, check_every=2)
    assert (w, float(learner.center), learner.n_moves) == (1.5, 7.5, 3)


class Two(Learner):
    """Two optimizers, one of three tensors."""

    learned = ("a", "b")

    def __init__(self):
        self.a, self.b = nn.Linear(2, 3), nn.Linear(3, 1)
        self.extra = nn.Parameter(torch.ones(1))

    def start(self, rate):
        mine = [
            {"params": [self.a.weight, self.a.bias]},
            {"params": [self.extra], "lr": 0.1},
        ]
        return [torch.optim.SGD(mine, lr=rate), torch.optim.Adam(self.b.parameters(), lr=rate)]

    def loss(self, step):
        return (self.b(self.a(torch.ones(4, 2))) * self.extra).square().mean()


class Another(Group):
    """One of two processes; what the other one has is made up: ``other(tensor)`` of each tensor to average."""

    size = 2

    def __init__(self, other):
        self.other, self.averaged = other, []

    def each(self, work):
        return [work(), work()]

    def average(self, tensors):
        for tensor in tensors:
            self.averaged.append(tensor)
            tensor.add_(self.other(tensor)).div_(2)


def test_gradients_of_two_processes_are_averaged_in_each_step():
    """The gradient of w = 8 is 8, and the other's 24: their mean at a rate of 1/4 halves w."""
    learner, seen = Parabola(), []
    learner.group = Another(lambda gradient: 3 * gradient)
    learner.check = lambda step: Check(stop=True)
    learner.after_step = lambda step: seen.append(float(learner.w.detach()))
    run(learner, 1, rate=0.25)
    assert seen == [4]


def test_all_parameters_of_all_optimizers_have_averaged_gradients():
    learner = Two()
    learner.group = Another(torch.zeros_like)
    train(learner, 1, rate=0.1)
    first = [learner.a.weight, learner.a.bias, learner.extra, learner.b.weight, learner.b.bias]
    gradients = learner.group.averaged[: len(first)]
    assert all(one is two.grad for one, two in zip(gradients, first, strict=True))


def test_weights_of_two_processes_are_averaged_every_few_steps():
    """w: 8, 4, 2; with the other's 6 that is 4; 2, 1 -> 3.5; and once more before the check at the end."""
    learner = Parabola()
    learner.group, learner.average_every = Another(lambda w: torch.full_like(w, 6.0)), 2
    assert run(learner, 4)[0] == (3.5 + 6) / 2
    learner = Parabola()
    learner.group, learner.average_every = Another(lambda w: torch.full_like(w, 6.0)), 3
    assert run(learner, 2)[0] == (2 + 6) / 2  # only before the check


def test_a_process_alone_averages_nothing():
    learner = Parabola()
    learner.average_every = 2
    assert run(learner, 4)[0] == 0.5


# Schedules, beside plain loops of torch


class Scheduled(Parabola):
    def __init__(self, make, **options):
        super().__init__(**options)
        self.make, self.used = make, []

    def schedule(self, optimizer, n_steps):
        self.planned = n_steps
        return self.make(optimizer, n_steps)

    def before_step(self, step):
        self.used.append(self.optimizers[0].param_groups[0]["lr"])


def one_cycle(optimizer, n_steps):
    return OneCycleLR(optimizer, optimizer.param_groups[0]["lr"], total_steps=n_steps + 1)


def test_one_cycle_steps_with_every_batch():
    learner = Scheduled(one_cycle)
    w, _ = run(learner, 20, rate=0.3, check_every=7)

    weight = nn.Parameter(torch.tensor([8.0]))
    optimizer = torch.optim.SGD([weight], lr=0.3)
    schedule, used = OneCycleLR(optimizer, 0.3, total_steps=21), []
    for _ in range(20):
        used.append(optimizer.param_groups[0]["lr"])
        optimizer.zero_grad()
        (weight.square() / 2).sum().backward()
        optimizer.step()
        schedule.step()
    assert learner.used == used
    assert max(used) == pytest.approx(0.3, rel=0.01) and used[0] < 0.02 and used[-1] < 0.01
    assert w == float(weight.detach())


def test_after_a_rescue_the_cycle_has_the_steps_that_are_left():
    learner = Scheduled(one_cycle, broken=[5])
    run(learner, 20, rate=0.3, check_every=5)
    assert learner.planned == 15
    assert max(learner.used[5:]) == pytest.approx(0.15, rel=0.01)
    assert learner.used[-1] < 0.005


def plateau(optimizer, n_steps):
    return ReduceLROnPlateau(optimizer, factor=0.5, patience=1)


def test_plateau_halves_the_rate_when_checks_find_nothing_better():
    """Errors 3, 3, 3: after two checks without a better one the rate is halved, and so on."""
    learner = Scheduled(plateau, checks=errors(*[3.0] * 6), keeps_best=True)
    run(learner, 6, rate=0.4, check_every=1)
    assert learner.used == [0.4, 0.4, 0.4, 0.2, 0.2, 0.1]


# Interrupted and resumed


class Stop(Exception):
    pass


class Interrupts(Callback):
    def __init__(self, at):
        self.at = at

    def on_progress(self, progress):
        if progress.step == self.at:
            raise Stop


class Noisy(Learner):
    """A regression with dropout, shuffled batches, momentum, a loss that breaks once and best states."""

    stage = "noisy"
    learned = ("network", "center", "shift")
    random = ("batches", "generator")
    keeps_best = True

    def __init__(self, make_schedule=None, broken=(7,)):
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 1))
        self.X, self.center = torch.randn(50, 3), torch.zeros(3)
        self.shift = nn.Parameter(torch.zeros(1))
        self.batches = Batches(torch.arange(50), 8, torch.Generator().manual_seed(1), rest=True)
        self.generator = torch.Generator().manual_seed(2)
        self.make_schedule, self.broken = make_schedule, set(broken)

    def start(self, rate):
        parameters = [*self.network.parameters(), self.shift]
        return [torch.optim.Adam(parameters, lr=rate)]

    def schedule(self, optimizer, n_steps):
        return None if self.make_schedule is None else self.make_schedule(optimizer, n_steps)

    def loss(self, step):
        x = self.X[next(self.batches)]
        noise = torch.randn(len(x), generator=self.generator)
        target = (x - self.center).sum(1) + 0.1 * noise
        loss = (self.network(x)[:, 0] + self.shift - target).square().mean()
        return loss * (NAN if step in self.broken else 1)

    def after_step(self, step):
        self.center = 0.9 * self.center + 0.1 * self.X[step % 50]

    def check(self, step):
        with torch.no_grad():
            return Check(held_out=float(self.network(self.X).var()))


def bits(learner, trained):
    weights = [value.flatten() for value in learner.network.state_dict().values()]
    parts = [*weights, learner.center, learner.shift.detach(), trained.losses.flatten()]
    return torch.cat([*parts, torch.rand(3)])  # the global generator, too


@pytest.mark.parametrize("make_schedule", [None, one_cycle, plateau])
def test_a_training_resumed_from_every_check_ends_with_the_same_bits(
    make_schedule, tmp_path, monkeypatch
):
    monkeypatch.setattr(checkpoints, "LEAST_PAUSE", 0.0)
    monkeypatch.setattr(checkpoints, "PAUSE_PER_COST", 0)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # it takes most of the time
    options = {"n_steps": 20, "rate": 0.01, "check_every": 3}
    learner = Noisy(make_schedule)
    trained = train(learner, **options)
    assert trained.n_rescues == 1
    straight = bits(learner, trained)
    for at in (*range(3, 20, 3), 20):
        checkpoint = FolderCheckpoint(tmp_path / f"at-{at}")
        with pytest.raises(Stop):
            train(
                Noisy(make_schedule),
                **options,
                checkpoint=checkpoint,
                listeners=Listeners([Interrupts(at)]),
            )
        again, recorder = Noisy(make_schedule), Recorder()
        resumed = train(again, **options, checkpoint=checkpoint, listeners=Listeners([recorder]))
        assert torch.equal(bits(again, resumed), straight)
        assert recorder.seen[0].step == at  # what was done before is not done again


def test_a_finished_training_is_not_run_again(tmp_path):
    learner = Noisy()
    trained = train(learner, 12, rate=0.01, check_every=2, checkpoint=FolderCheckpoint(tmp_path))
    first = bits(learner, trained)
    again, recorder = Noisy(), Recorder()
    repeated = train(
        again,
        12,
        rate=0.01,
        check_every=2,
        checkpoint=FolderCheckpoint(tmp_path),
        listeners=Listeners([recorder]),
    )
    assert torch.equal(bits(again, repeated), first)
    assert repeated.n_steps == 12 and repeated.n_rescues == trained.n_rescues == 1
    assert recorder.seen == []


def test_a_kept_state_is_a_copy():
    """Changing what is trained must not change what is kept."""
    learner = ByHand(checks=())
    before = copy.deepcopy(learner.learned_state())
    learner.w.data += 1
    learner.load_learned(before)
    learner.w.data += 1
    learner.center += 1
    assert float(before["w"]) == 8 and float(before["center"]) == 0
