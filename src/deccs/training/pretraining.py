"""Training the autoencoder by reconstruction, before any cluster is known."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from deccs.data.rows import Rows
from deccs.data.source import blocks, rows_at_once
from deccs.events import Epoch
from deccs.network.autoencoder import Autoencoder
from deccs.network.device import precision_for, threads_for
from deccs.rules import TINY_NETWORK, default_epochs, default_noise
from deccs.seeds import generator_for, torch_seeded
from deccs.settings import Pretraining
from deccs.storage import NO_CHECKPOINT, Checkpoint
from deccs.training.batches import hold_out, shuffled_batches
from deccs.training.best import Best


@torch.no_grad()
def reconstruction_error(network: nn.Module, rows: Rows, index: torch.Tensor) -> float:
    """Mean squared error over points and columns."""
    network.eval()
    total = 0.0
    for block in blocks(len(index), rows_at_once(rows.n_features)):
        x = rows[index[block]]
        total += float((network(x)[1] - x).square().mean()) * len(x)
    return total / len(index)


def pretrain(
    autoencoder: Autoencoder,
    rows: Rows,
    settings: Pretraining,
    root: int,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Autoencoder:
    """Train in place by (denoising) reconstruction; the weights with the least held-out error stay.

    From a ``checkpoint`` it goes on after the last epoch that was saved, or has nothing left to do.
    """
    done = checkpoint.load("pretrained")
    if done:
        autoencoder.load_state_dict(done["weights"])
    else:
        pretrain_stages(autoencoder, rows, settings, root, on_epoch, checkpoint)
        checkpoint.save("pretrained", {"weights": autoencoder.state_dict()})
    autoencoder.pretrained = True
    autoencoder.eval()
    return autoencoder


def pretrain_stages(
    autoencoder: Autoencoder,
    rows: Rows,
    settings: Pretraining,
    root: int,
    on_epoch: Callable[[Epoch], None],
    checkpoint: Checkpoint,
) -> None:
    """Layer by layer, if that is wanted, then the whole network."""
    train, held_out = hold_out(len(rows), settings.held_out, generator_for(root, "held out"))
    stages = [("whole network", autoencoder, settings)]
    if settings.layerwise_epochs:
        layerwise = replace(settings, epochs=settings.layerwise_epochs)
        parts = enumerate(growing_parts(autoencoder), start=1)
        stages = [*((f"layer {depth}", part, layerwise) for depth, part in parts), *stages]
    saved = checkpoint.load("epoch")
    with torch_seeded(root, "pretraining"), threads_for(autoencoder, settings.batch_size):
        for stage, network, own_settings in stages:
            if (
                saved is None or saved["stage"] == stage
            ):  # the stages before are in the weights of the one saved
                train_reconstruction(
                    network,
                    rows,
                    train,
                    held_out,
                    own_settings,
                    root,
                    stage,
                    on_epoch,
                    checkpoint,
                    saved,
                )
                saved = None


def train_reconstruction(
    network: Autoencoder,
    rows: Rows,
    train: torch.Tensor,
    held_out: torch.Tensor,
    settings: Pretraining,
    root: int,
    stage: str,
    on_epoch: Callable[[Epoch], None],
    checkpoint: Checkpoint,
    saved: dict[str, Any] | None,
) -> None:
    n_epochs = (
        default_epochs(len(rows), settings.batch_size)
        if settings.epochs == "auto"
        else int(settings.epochs)
    )
    noise = (
        default_noise(rows.n_features)
        if settings.input_noise == "auto"
        else float(settings.input_noise)
    )
    generator = generator_for(root, stage)
    with as_one(network) as optimised:
        run_epochs(
            network,
            optimised,
            rows,
            train,
            held_out,
            settings,
            n_epochs,
            noise,
            generator,
            stage,
            on_epoch,
            checkpoint,
            saved,
        )


def run_epochs(
    network: Autoencoder,
    optimised: list[nn.Parameter],
    rows: Rows,
    train: torch.Tensor,
    held_out: torch.Tensor,
    settings: Pretraining,
    n_epochs: int,
    noise: float,
    generator: torch.Generator,
    stage: str,
    on_epoch: Callable[[Epoch], None],
    checkpoint: Checkpoint,
    saved: dict[str, Any] | None,
) -> None:
    steps = n_epochs * max(1, math.ceil(len(train) / settings.batch_size))
    optimiser = torch.optim.Adam(
        optimised, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )
    one_cycle = plateau = None
    if settings.schedule == "one-cycle":
        one_cycle = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, settings.learning_rate, total_steps=steps + 1
        )
    else:
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimiser, factor=0.5, patience=settings.patience // 2
        )
    best = Best(network)

    def state() -> dict[str, Any]:
        return {
            "stage": stage,
            "epoch": number,
            "network": network.state_dict(),
            "optimiser": optimiser.state_dict(),
            "schedule": (one_cycle or plateau).state_dict(),
            "best": best.state(),  # type: ignore[union-attr]
            "generator": generator.get_state(),
            "global generator": torch.get_rng_state(),  # the second is dropout's
        }

    if saved:
        network.load_state_dict(saved["network"])
        optimiser.load_state_dict(saved["optimiser"])
        (one_cycle or plateau).load_state_dict(saved["schedule"])  # type: ignore[union-attr]
        best.load(saved["best"])
        generator.set_state(saved["generator"])
        torch.set_rng_state(saved["global generator"])
    for number in range(saved["epoch"] + 1 if saved else 1, n_epochs + 1):
        network.train()
        for batch in shuffled_batches(train, settings.batch_size, generator):
            x = rows[batch]  # (batch, n_features)
            seen = (
                x * (torch.rand(x.shape, generator=generator) >= noise).to(x.device) if noise else x
            )
            reconstruction_gradients(network, seen, x)
            optimiser.step()
            if one_cycle:
                one_cycle.step()
        error = reconstruction_error(network, rows, held_out)
        best.offer(error)
        on_epoch(Epoch(stage, number, n_epochs, error))
        if plateau:
            plateau.step(error)
        # One-cycle gains most in its last epochs, when the rate has come down: it is not cut short.
        if plateau and best.age >= settings.patience:
            break
        if not math.isfinite(error):
            warnings.warn(
                f"Pretraining ({stage}) went astray in epoch {number}; the best weights before stay. "
                f"Try a lower learning_rate than {settings.learning_rate}.",
                stacklevel=2,
            )
            break
        checkpoint.save_at_times("epoch", state)
    best.restore()


@contextmanager
def as_one(network: Autoencoder) -> Iterator[list[nn.Parameter]]:
    """The parameters to optimise. Those of a tiny network are one vector meanwhile, and their gradients another.

    An optimiser's work is per tensor. :meth:`FeedForward.backward_by_hand` writes a gradient where the last one was.
    """
    own = list(network.parameters())
    if network.by_hand() is None or sum(parameter.numel() for parameter in own) > TINY_NETWORK:
        yield own
        return
    vector = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in own]))
    vector.grad = torch.zeros_like(vector)
    sizes = [parameter.numel() for parameter in own]
    for parameter, part, gradient in zip(
        own, vector.detach().split(sizes), vector.grad.split(sizes), strict=True
    ):
        parameter.data, parameter.grad = part.view_as(parameter), gradient.view_as(parameter)
    try:
        yield [vector]
    finally:
        for parameter in own:
            parameter.data, parameter.grad = parameter.data.clone(), None


def reconstruction_gradients(network: Autoencoder, seen: torch.Tensor, x: torch.Tensor) -> None:
    """Set ``.grad`` of every weight to that of the mean squared error of reconstructing x from what was seen."""
    parts = network.by_hand()
    if parts:
        encoder, decoder = parts
        with torch.no_grad():
            z, into = encoder.forward_by_hand(seen)
            back, out = decoder.forward_by_hand(z)
            gradient = decoder.backward_by_hand((back - x).mul_(2 / x.numel()), out)
            encoder.backward_by_hand(gradient, into, to_input=False)
        return
    network.zero_grad(set_to_none=True)
    with precision_for(x.device):
        loss = (network(seen)[1] - x).square().mean()
    loss.backward()


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
