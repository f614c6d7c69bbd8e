"""Training the autoencoder by reconstruction, before any cluster is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from sklearn.base import clone
from torch import nn
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR, ReduceLROnPlateau

from deccs.data.rows import Rows
from deccs.data.sampling import Index
from deccs.data.source import blocks, rows_at_once
from deccs.events import NOBODY, Listeners
from deccs.group.group import ALONE, Group
from deccs.network.autoencoder import Autoencoder
from deccs.network.by_hand import FeedForward
from deccs.network.device import threads_for
from deccs.network.reconstruction import SQUARED, ReconstructionError, error_for
from deccs.rules import TINY_NETWORK, default_noise, default_pretraining_steps
from deccs.seeds import generator_for, torch_seeded
from deccs.settings import Pretraining
from deccs.storage import NO_CHECKPOINT, Checkpoint
from deccs.training.batches import Batches, hold_out
from deccs.training.engine import Check, Learner, check_alike, is_finite, train

MOST_BETWEEN_CHECKS = 500  # steps; a pass over small data is shorter
LEAST_SHARE = 1_000  # rows of a process; with fewer the first one trains alone
LEAST_BATCH = 32  # rows of a process in a step
# Weights are averaged when each process has seen so many rows: sending them takes about a tenth of the time then, at
# a gigabit a second and for networks of any size, since both the work and the message grow with the weights.
ROWS_BETWEEN_AVERAGES = 2_048


def pretrain(
    autoencoder: Autoencoder,
    rows: Rows,
    settings: Pretraining,
    root: int,
    listeners: Listeners = NOBODY,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Autoencoder:
    """Train in place by (denoising) reconstruction; the weights with the least held-out error stay.

    From a ``checkpoint`` it goes on where it was, or has nothing left to do.
    """
    if not checkpoint.restore("pretrained", partial(load_weights, autoencoder)):
        group = rows.group if is_worth_sharing(rows) else ALONE
        group.ask(help_to_pretrain, autoencoder, rows.facts, settings, root)
        pretrain_in_stages(autoencoder, rows, settings, root, listeners, checkpoint, group)
        checkpoint.save("pretrained", {"weights": autoencoder.state_dict()})
    autoencoder.pretrained = True
    autoencoder.eval()
    return autoencoder


def is_worth_sharing(rows: Rows) -> bool:
    """Whether every process has enough rows to learn from by itself between two averages."""
    return len(rows) >= LEAST_SHARE * rows.group.size


def help_to_pretrain(
    group: Group, fit: Any, autoencoder: Autoencoder, facts: Any, settings: Pretraining, root: int
) -> None:
    """The part of a helping process; the first one has the listeners and the checkpoint."""
    rows = fit.rows_of(facts)
    pretrain_in_stages(autoencoder, rows, settings, root, NOBODY, NO_CHECKPOINT, group)


def load_weights(autoencoder: Autoencoder, state: dict[str, Any]) -> bool:
    """Take the weights of a state, if they are those of such a network."""
    check_alike(autoencoder.state_dict(), state["weights"], "weights")
    if not is_finite(state["weights"]):
        raise ValueError("The weights are not all finite")
    autoencoder.load_state_dict(state["weights"])
    return True


def pretrain_in_stages(
    autoencoder: Autoencoder,
    rows: Rows,
    settings: Pretraining,
    root: int,
    listeners: Listeners,
    checkpoint: Checkpoint,
    group: Group = ALONE,
) -> None:
    """Layer by layer, if that is wanted, then the whole network."""
    train_on, held_out = hold_out(len(rows), settings.held_out, generator_for(root, "held out"))
    stages: list[tuple[str, Autoencoder, Pretraining]] = []
    if settings.layerwise_epochs:
        layerwise = clone(settings).set_params(n_epochs=settings.layerwise_epochs)
        for depth, part in enumerate(growing_parts(autoencoder), start=1):
            stages.append((f"layer {depth}", part, layerwise))
    stages.append(("whole network", autoencoder, settings))
    networks = {stage: network for stage, network, _ in stages}
    old = None
    if group.size == 1:  # the states of today are restored by all processes
        old = checkpoint.restore("epoch", partial(checked_epoch, networks))
    if old:
        while stages[0][0] != old["stage"]:  # the stages before are in the weights of this one
            del stages[0]
    place_of_seed = ("pretraining",) if group.is_first else ("pretraining", "process", group.rank)
    with torch_seeded(root, *place_of_seed), threads_for(autoencoder, settings.batch_size):
        for stage, network, stage_settings in stages:
            with as_one_vector(network) as parameters:
                learner = Reconstruction(
                    network,
                    parameters,
                    rows,
                    train_on,
                    held_out,
                    stage_settings,
                    root,
                    stage,
                    group,
                )
                place = checkpoint.at(stage.replace(" ", "-"))
                if old:
                    if not place.restore("training", bool):  # not resumed before
                        place.save("training", state_after_epoch(old, learner.per_pass))
                    old = None
                train(
                    learner,
                    learner.n_steps,
                    rate=settings.learning_rate,
                    check_every=min(learner.per_pass, MOST_BETWEEN_CHECKS),
                    # One-cycle gains most at its end, when the rate has come down: it is not cut short.
                    patience=settings.patience if settings.schedule == "plateau" else None,
                    listeners=listeners,
                    checkpoint=place,
                )


class Reconstruction(Learner):
    """Reconstruct rows of which some values are set to zero; held-out rows tell the best weights."""

    learned = ("network",)
    random = ("batches",)
    keeps_best = True

    def __init__(
        self,
        network: Autoencoder,
        parameters: list[nn.Parameter],
        rows: Rows,
        train_on: Index,
        held_out: torch.Tensor,
        settings: Pretraining,
        root: int,
        stage: str,
        group: Group = ALONE,
    ) -> None:
        self.network, self.parameters, self.rows, self.held_out = (
            network,
            parameters,
            rows,
            held_out,
        )
        self.settings, self.device, self.error = settings, rows.device, error_for(rows)
        self.stage = "pretraining" if stage == "whole network" else f"pretraining, {stage}"
        self.group, size = group, settings.batch_size
        alone = Batches(train_on, size, generator_for(root, stage), rest=True)
        self.n_steps = steps_of(settings, len(rows), alone.per_pass)
        self.batches, self.per_pass = alone, alone.per_pass
        if group.size > 1:
            share = share_of_batch(size, group.size)
            own = generator_for(root, stage, "process", group.rank)
            self.batches = Batches(train_on[group.rank :: group.size], share, own, rest=True)
            # The same in all processes, even if one of them has a row more than the others.
            self.n_steps = math.ceil(self.n_steps * size / (group.size * share))
            self.per_pass = math.ceil(self.per_pass * size / (group.size * share))
            self.average_every = max(1, ROWS_BETWEEN_AVERAGES // share)
        self.noise = (
            default_noise(rows.n_features)
            if settings.input_noise == "auto"
            else float(settings.input_noise)
        )
        network.train()

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        decay = self.settings.weight_decay
        return [torch.optim.Adam(self.parameters, lr=rate, weight_decay=decay, fused=True)]

    def schedule(self, optimizer: torch.optim.Optimizer, n_steps: int) -> LRScheduler:
        if self.settings.schedule == "one-cycle":
            return OneCycleLR(optimizer, optimizer.param_groups[0]["lr"], total_steps=n_steps + 1)
        return ReduceLROnPlateau(optimizer, factor=0.5, patience=self.settings.patience // 2)

    def gradients(self, step: int) -> torch.Tensor | None:
        parts = self.network.by_hand()
        if parts is None:
            return super().gradients(step)
        seen, x = self._batch()
        reconstruction_gradients(*parts, seen, x, self.error)
        return None

    def loss(self, step: int) -> torch.Tensor:
        seen, x = self._batch()
        return self.error(self.network(seen)[1], x)

    def _batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows, moved if they are images, with and without noise: (batch, n_inputs) each."""
        x = self.rows.moved(next(self.batches), self.batches.generator)
        if not self.noise:
            return x, x
        kept = torch.rand(x.shape, generator=self.batches.generator) >= self.noise
        return x * kept.to(x.device), x

    def check(self, step: int) -> Check:
        error = reconstruction_error(self.network, self.rows, self.held_out)
        self.network.train()
        return Check(held_out=error)


def steps_of(settings: Pretraining, n_rows: int, per_pass: int) -> int:
    """How many steps one process would take."""
    if settings.n_epochs is not None:
        return int(settings.n_epochs) * per_pass
    if settings.n_steps == "auto":
        return default_pretraining_steps(n_rows, settings.batch_size, per_pass)
    return int(settings.n_steps)


def share_of_batch(batch_size: int, n_processes: int) -> int:
    """The rows of a process in each step: its share of a batch, but enough for its products to be worth it.

    >>> share_of_batch(128, 2), share_of_batch(128, 64), share_of_batch(16, 2)
    (64, 32, 16)
    """
    return max(math.ceil(batch_size / n_processes), min(batch_size, LEAST_BATCH))


def checked_epoch(networks: Mapping[str, Autoencoder], state: dict[str, Any]) -> dict[str, Any]:
    """A state of version 0.1.0.dev, which saved after epochs."""
    weights, converted = networks[state["stage"]].state_dict(), state_after_epoch(state, 1)
    for part in ("learned", "kept"):
        check_alike({"network": weights}, converted[part], part)
    return state


def state_after_epoch(saved: dict[str, Any], per_pass: int) -> dict[str, Any]:
    """What :class:`deccs.training.engine.Run` saves, from what was saved after an epoch before."""
    step = saved["epoch"] * per_pass
    generator = saved["generator"]
    return {
        "step": step,
        "learned": {"network": saved["network"]},
        "random": {"batches": {"began": generator, "number": per_pass, "generator": generator}},
        "torch": saved["global generator"],
        "optimizers": [saved["optimiser"]],
        "schedules": [saved["schedule"]],
        "kept": {"network": saved["best"]["states"][0]},
        "best": saved["best"]["value"],
        "age": saved["best"]["age"],
        "n_rescues": 0,
        "sums": None,
        "n_summed": 0,
        "told": (0.0, 0),
    }


@torch.no_grad()
def reconstruction_error(network: nn.Module, rows: Rows, index: torch.Tensor) -> float:
    """The mean error over points and columns."""
    network.eval()
    total, error = 0.0, error_for(rows)
    for place in blocks(len(index), rows_at_once(rows.n_inputs)):
        x = rows[index[place]]
        total += float(error(network(x)[1], x)) * len(x)
    return total / len(index)


@contextmanager
def as_one_vector(network: Autoencoder) -> Iterator[list[nn.Parameter]]:
    """The parameters to optimize. Those of a tiny network are one vector meanwhile, and so are their gradients.

    An optimizer's work is per tensor. :meth:`FeedForward.backward_by_hand` writes a gradient where the last one was.
    """
    weights = list(network.parameters())
    if network.by_hand() is None or sum(parameter.numel() for parameter in weights) > TINY_NETWORK:
        yield weights
        return
    vector = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in weights]))
    vector.grad = torch.zeros_like(vector)
    sizes = [parameter.numel() for parameter in weights]
    for parameter, part, gradient in zip(
        weights, vector.detach().split(sizes), vector.grad.split(sizes), strict=True
    ):
        parameter.data, parameter.grad = part.view_as(parameter), gradient.view_as(parameter)
    try:
        yield [vector]
    finally:
        for parameter in weights:
            parameter.data, parameter.grad = parameter.data.clone(), None


@torch.no_grad()
def reconstruction_gradients(
    encoder: FeedForward,
    decoder: FeedForward,
    seen: torch.Tensor,
    x: torch.Tensor,
    error: ReconstructionError = SQUARED,
) -> None:
    """Set ``.grad`` of all weights for the error of reconstructing x from what is seen."""
    z, into = encoder.forward_by_hand(seen)
    back, out = decoder.forward_by_hand(z)
    gradient = decoder.backward_by_hand(error.gradient(back, x), out)
    encoder.backward_by_hand(gradient, into, to_input=False)


def growing_parts(autoencoder: Autoencoder) -> Iterator[Autoencoder]:
    """The outermost layer of encoder and decoder, then two, ... all but the whole network.

    The parts share their weights with ``autoencoder``, so training one trains it.
    """
    if not (
        isinstance(autoencoder.encoder, nn.Sequential)
        and isinstance(autoencoder.decoder, nn.Sequential)
    ):
        raise ValueError(
            "Layer-wise pretraining needs an encoder and decoder of type torch.nn.Sequential, got "
            f"{type(autoencoder.encoder).__name__} and {type(autoencoder.decoder).__name__}. "
            "Set layerwise_epochs=0 to train the whole network at once."
        )
    into, out = list(autoencoder.encoder), list(autoencoder.decoder)
    linear_in = [place for place, layer in enumerate(into) if isinstance(layer, nn.Linear)]
    linear_out = [place for place, layer in enumerate(out) if isinstance(layer, nn.Linear)]
    for depth in range(1, len(linear_in)):
        # The outer layers of the encoder with their activations, and the decoder's last `depth` layers.
        encoder = nn.Sequential(*into[: linear_in[depth]])
        decoder = nn.Sequential(*out[linear_out[-depth] :])
        yield Autoencoder(encoder, decoder)
