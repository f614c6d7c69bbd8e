"""Choosing the autoencoder's settings by held-out reconstruction error."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from sklearn.base import clone

from deccs.checks import check_parameters
from deccs.data.rows import Rows
from deccs.events import NOBODY, Listeners
from deccs.network.autoencoder import Autoencoder, TrainingError
from deccs.rules import default_layers
from deccs.seeds import generator_for, torch_seeded
from deccs.settings import Network, Pretraining
from deccs.storage import NO_CHECKPOINT, Checkpoint
from deccs.training.batches import hold_out
from deccs.training.pretraining import pretrain, reconstruction_error

Choice = dict[str, Any]  # a value for each setting of the grid


def initial_autoencoder(rows: Rows, network: Network, root: int) -> Autoencoder:
    """The untrained feed-forward network for these rows."""
    layers = network.layers
    if isinstance(layers, str):
        layers = default_layers(len(rows), rows.n_features)
    with torch_seeded(root, "initial weights"):
        untrained = Autoencoder.feed_forward(
            rows.n_features, layers, network.dropout, rows.n_inputs
        )
    return untrained.to(rows.device)


def with_choice(
    network: Network, settings: Pretraining, choice: Choice
) -> tuple[Network, Pretraining]:
    """Both settings with the choice's values in place of their own."""
    for_network = {name: value for name, value in choice.items() if hasattr(network, name)}
    for_training = {name: value for name, value in choice.items() if name not in for_network}
    return clone(network).set_params(**for_network), clone(settings).set_params(**for_training)


def search_pretraining(
    rows: Rows,
    network: Network,
    settings: Pretraining,
    root: int,
    listeners: Listeners = NOBODY,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[Choice, list[tuple[Choice, float]]]:
    """The choice of the grid with the least held-out reconstruction error, and all errors.

    As the paper did for the UCI sets; no label takes part.
    """
    grid = settings.grid or {}
    known = {*network.get_params(), *settings.get_params()} - {"grid"}
    unknown = [name for name in grid if name not in known]
    if unknown:
        raise ValueError(
            f"pretraining.grid has names that are no settings: {', '.join(unknown)}. "
            f"It may have {', '.join(sorted(known))}."
        )
    for name, values in grid.items():
        if not isinstance(values, list | tuple) or not values:
            raise ValueError(f"pretraining.grid must have a list for {name}, got {values!r:.200}.")
    _, held_out = hold_out(len(rows), settings.held_out, generator_for(root, "held out"))
    errors: list[tuple[Choice, float]] = []
    failure: TrainingError | None = None
    for number, values in enumerate(product(*grid.values())):
        choice = dict(zip(grid, values, strict=True))
        chosen_network, chosen = with_choice(network, settings, choice)
        check_parameters(chosen_network, "pretraining.grid: ")
        check_parameters(chosen, "pretraining.grid: ")
        autoencoder = initial_autoencoder(rows, chosen_network, root)
        try:
            pretrain(autoencoder, rows, chosen, root, listeners, checkpoint.at("search", number))
            errors.append((choice, reconstruction_error(autoencoder, rows, held_out)))
        except TrainingError as error:  # such as a learning rate that is far too large
            errors.append((choice, math.inf))
            failure = error
        if listeners.stopped:
            break
    best, least = min(errors, key=lambda row: row[1])
    if failure is not None and least == math.inf:
        raise failure
    return best, errors
