"""Training the autoencoder by reconstruction, before any cluster is known."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import nn

from deccs.autoencoder import Autoencoder, default_layers
from deccs.files import NO_CHECKPOINT, Checkpoint, stored
from deccs.rows import Rows, blocks, rows_at_once
from deccs.seeds import generator_for, torch_seeded

TINY = 20_000  # parameters: up to here the overhead of a step is larger than its products


@stored
@dataclass(frozen=True)
class Pretraining:
    """How the autoencoder is trained. One set for all data.

    Parameters
    ----------
    epochs : passes over the data; "auto": some 4,000 steps, at least 15 and at most 1,000 passes
    batch_size : half of the paper's by default: as good with the same number of steps, at half the cost
    learning_rate, weight_decay : of Adam
    input_noise : share of the inputs set to zero (a denoising autoencoder); "auto": 0.2 from ten columns on, else 0
    schedule : "one-cycle", or "plateau": halve the rate when the held-out error stands still
    patience : epochs without a better held-out error before stopping
    held_out : share of the points that only decides when to stop (at most 2,000)
    layerwise_epochs : epochs per layer of greedy training first, 0 for none
    """

    epochs: int | str = "auto"
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    input_noise: float | str = "auto"
    schedule: str = "one-cycle"
    patience: int = 10
    held_out: float = 0.1
    layerwise_epochs: int = 0

    def __post_init__(self) -> None:
        if self.schedule not in ("one-cycle", "plateau"):
            raise ValueError(f"schedule must be 'one-cycle' or 'plateau', got {self.schedule!r}.")
        if self.input_noise != "auto" and (isinstance(self.input_noise, str) or not 0 <= self.input_noise < 1):
            raise ValueError(f"input_noise is 'auto' or a share of the inputs in [0, 1), got {self.input_noise!r}.")
        if not 0 <= self.held_out < 1:
            raise ValueError(f"held_out is a share of the points in [0, 1), got {self.held_out!r}.")
        if self.epochs != "auto" and (not isinstance(self.epochs, int) or self.epochs < 0):
            raise ValueError(f"epochs must be 'auto' or a whole number of at least 0, got {self.epochs!r}.")
        if not isinstance(self.batch_size, int) or self.batch_size < 1:
            raise ValueError(f"batch_size must be a whole number of at least 1, got {self.batch_size!r}.")


@dataclass(frozen=True)
class Epoch:
    """One pass over the data, as callbacks and the progress display see it."""

    stage: str        # "layer 1", ..., "whole network"
    number: int       # from 1
    n_epochs: int
    error: float      # mean squared reconstruction error on the held-out points


def default_epochs(n_points: int, batch_size: int) -> int:
    """Epochs enough for some 4,000 steps, at least 15 and at most 1,000.

    The rounds can only be as good as the embedding they start from; fewer steps show in the result.

    >>> default_epochs(9_298, 128), default_epochs(70_000, 128), default_epochs(552, 128)
    (56, 15, 1000)
    """
    steps_per_epoch = max(1, n_points // batch_size)
    return int(min(1_000, max(15, math.ceil(4_000 / steps_per_epoch))))


def default_noise(n_features: int) -> float:
    """A fifth of the inputs, where the others can tell what they were; none for fewer than ten columns."""
    return 0.2 if n_features >= 10 else 0.0


def shuffled_batches(index: torch.Tensor, size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Row numbers of one epoch, batch by batch; a rest of one row joins the batch before."""
    order = index[torch.randperm(len(index), generator=generator)]
    parts = list(order.split(size))
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    yield from parts


def endless_batches(index: torch.Tensor, size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Full batches for ever, reshuffled each time the rows run out."""
    size = min(size, len(index))
    while size:
        order = index[torch.randperm(len(index), generator=generator)]
        yield from (part for part in order.split(size) if len(part) == size)


def hold_out(n_points: int, share: float, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Row numbers to train on and to hold out; very small data is used for both."""
    n_held = min(2_000, int(share * n_points))
    order = torch.randperm(n_points, generator=generator)
    if n_held < 2:
        return order, order
    return order[n_held:], order[:n_held]


@torch.no_grad()
def reconstruction_error(network: nn.Module, rows: Rows, index: torch.Tensor) -> float:
    """Mean squared error over points and columns."""
    network.eval()
    total = 0.0
    for block in blocks(len(index), rows_at_once(rows.n_features)):
        x = rows[index[block]]
        total += float((network(x)[1] - x).square().mean()) * len(x)
    return total / len(index)


class Best:
    """The best state of some modules so far, by a number that should be small."""

    def __init__(self, *modules: nn.Module) -> None:
        self.modules, self.value, self.age = modules, math.inf, 0
        self.keep()

    def keep(self) -> None:
        self.states = [copy.deepcopy(module.state_dict()) for module in self.modules]

    def offer(self, value: float) -> bool:
        """Keep the present state if ``value`` is the smallest so far."""
        if value < self.value:
            self.value, self.age = value, 0
            self.keep()
            return True
        self.age += 1
        return False

    def restore(self) -> None:
        for module, state in zip(self.modules, self.states, strict=True):
            module.load_state_dict(state)

    def state(self) -> dict[str, Any]:
        return {"value": self.value, "age": self.age, "states": self.states}

    def load(self, state: dict[str, Any]) -> None:
        self.value, self.age, self.states = state["value"], state["age"], state["states"]


@contextmanager
def threads_for(network: nn.Module, batch_size: int) -> Iterator[None]:
    """One thread for tiny networks: handing 20 x 20 products to a second core costs more than they do."""
    before = torch.get_num_threads()
    work = batch_size * sum(parameter.numel() for parameter in network.parameters())
    try:
        if work < 10_000_000:
            torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(before)


def precision_for(device: torch.device) -> AbstractContextManager[None]:
    """bfloat16 products where the hardware has units for them; exact single precision on a CPU."""
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()


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
    autoencoder: Autoencoder, rows: Rows, settings: Pretraining, root: int, on_epoch: Callable[[Epoch], None],
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
            if saved is None or saved["stage"] == stage:  # the stages before are in the weights of the one saved
                train_reconstruction(
                    network, rows, train, held_out, own_settings, root, stage, on_epoch, checkpoint, saved)
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
    n_epochs = default_epochs(len(rows), settings.batch_size) if settings.epochs == "auto" else int(settings.epochs)
    noise = default_noise(rows.n_features) if settings.input_noise == "auto" else float(settings.input_noise)
    generator = generator_for(root, stage)
    with as_one(network) as optimised:
        run_epochs(network, optimised, rows, train, held_out, settings, n_epochs, noise, generator, stage, on_epoch,
                   checkpoint, saved)


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
        one_cycle = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.learning_rate, total_steps=steps + 1)
    else:
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=settings.patience // 2)
    best = Best(network)

    def state() -> dict[str, Any]:
        return {
            "stage": stage, "epoch": number, "network": network.state_dict(), "optimiser": optimiser.state_dict(),
            "schedule": (one_cycle or plateau).state_dict(), "best": best.state(),  # type: ignore[union-attr]
            "generator": generator.get_state(), "global generator": torch.get_rng_state(),  # the second is dropout's
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
            x = rows[batch]                                             # (batch, n_features)
            seen = x * (torch.rand(x.shape, generator=generator) >= noise).to(x.device) if noise else x
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
            warnings.warn(f"Pretraining ({stage}) went astray in epoch {number}; the best weights before stay. "
                          f"Try a lower learning_rate than {settings.learning_rate}.", stacklevel=2)
            break
        checkpoint.save_at_times("epoch", state)
    best.restore()


@contextmanager
def as_one(network: Autoencoder) -> Iterator[list[nn.Parameter]]:
    """The parameters to optimise. Those of a tiny network are one vector meanwhile, and their gradients another.

    An optimiser's work is per tensor. :meth:`FeedForward.backward_by_hand` writes a gradient where the last one was.
    """
    own = list(network.parameters())
    if network.by_hand() is None or sum(parameter.numel() for parameter in own) > TINY:
        yield own
        return
    vector = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in own]))
    vector.grad = torch.zeros_like(vector)
    sizes = [parameter.numel() for parameter in own]
    for parameter, part, gradient in zip(own, vector.detach().split(sizes), vector.grad.split(sizes), strict=True):
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
    if not (isinstance(autoencoder.encoder, nn.Sequential) and isinstance(autoencoder.decoder, nn.Sequential)):
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


def initial_autoencoder(rows: Rows, layers: Sequence[int] | str, dropout: float, root: int) -> Autoencoder:
    """The untrained feed-forward network for these rows."""
    if isinstance(layers, str):
        if layers != "auto":
            raise ValueError(f"layers must be 'auto' or a tuple of widths, got {layers!r}.")
        layers = default_layers(len(rows), rows.n_features)
    with torch_seeded(root, "initial weights"):
        return Autoencoder.feed_forward(rows.n_features, layers, dropout).to(rows.device)


def search_pretraining(
    build: Callable[[dict[str, Any]], Autoencoder],
    rows: Rows,
    grid: Mapping[str, Sequence[Any]],
    settings: Pretraining,
    root: int,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[dict[str, Any], list[tuple[dict[str, Any], float]]]:
    """The settings of the grid with the least held-out reconstruction error, and all errors.

    As the paper did for the UCI sets; no label takes part. ``build`` makes a fresh autoencoder
    from the settings that are the network's (``layers``, ``dropout``); the rest are fields of
    :class:`Pretraining`.
    """
    unknown = [name for name in grid if name not in ("layers", "dropout") and not hasattr(settings, name)]
    if unknown:
        raise ValueError(f"The grid has names that are no setting of the autoencoder's training: {unknown}.")
    _, held_out = hold_out(len(rows), settings.held_out, generator_for(root, "held out"))
    errors: list[tuple[dict[str, Any], float]] = []
    for number, values in enumerate(product(*grid.values())):
        choice = dict(zip(grid, values, strict=True))
        changes = {name: value for name, value in choice.items() if hasattr(settings, name)}
        own = checkpoint.at("search", number)
        autoencoder = pretrain(build(choice), rows, replace(settings, **changes), root, checkpoint=own)
        errors.append((choice, reconstruction_error(autoencoder, rows, held_out)))
    return min(errors, key=lambda row: row[1])[0], errors
