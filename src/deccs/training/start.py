"""The autoencoder a fit starts from: the user's own, or built for the data and pretrained."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch

from deccs.data.rows import Rows
from deccs.events import NOBODY, Listeners
from deccs.network.autoencoder import Autoencoder, TrainingError
from deccs.settings import Network, Pretraining
from deccs.storage import NO_CHECKPOINT, Checkpoint
from deccs.training.pretraining import pretrain
from deccs.training.search import Choice, initial_autoencoder, search_pretraining, with_choice


@dataclass(frozen=True, eq=False)
class Start:
    """A pretrained autoencoder, and what a search over settings has tried for it."""

    autoencoder: Autoencoder
    search: list[tuple[Choice, float]] | None = None


def starting_autoencoder(
    rows: Rows,
    network: Network | Autoencoder | tuple[Any, Any],
    settings: Pretraining,
    root: int,
    listeners: Listeners = NOBODY,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Start:
    """Take or build, then pretrain unless that is done. What was given is copied, never changed."""
    search = None
    if not isinstance(network, Network):
        autoencoder = copy_of_modules(network, rows)
    else:
        if settings.grid:
            choice, search = search_pretraining(
                rows, network, settings, root, listeners, checkpoint
            )
            network, settings = with_choice(network, settings, choice)
        autoencoder = initial_autoencoder(rows, network, root)
    if not autoencoder.pretrained:
        pretrain(autoencoder, rows, settings, root, listeners, checkpoint)
    return Start(autoencoder, search)


def copy_of_modules(given: Autoencoder | tuple[Any, Any], rows: Rows) -> Autoencoder:
    """A copy of the user's modules, checked against the rows."""
    modules = given if isinstance(given, Autoencoder) else Autoencoder(*given)
    autoencoder = copy.deepcopy(modules).float().to(rows.device)
    check_shapes(autoencoder, rows)
    return autoencoder


@torch.no_grad()
def check_shapes(autoencoder: Autoencoder, rows: Rows) -> None:
    """A user's own modules must map (n, n_features) to (n, n_latent) and back."""
    x = rows[slice(0, 2)]
    try:
        z, back = autoencoder.eval()(x)
    except RuntimeError as error:
        raise ValueError(
            f"The autoencoder does not take rows of {rows.n_inputs} columns: {error}"
        ) from error
    if z.ndim != 2 or back.shape != (len(x), rows.n_features):
        raise ValueError(
            f"The encoder must give (n, n_latent) and the decoder (n, {rows.n_features}); "
            f"got {tuple(z.shape)} and {tuple(back.shape)} for n = {len(x)}."
        )
    if not bool(z.isfinite().all() and back.isfinite().all()):
        raise TrainingError(
            "The autoencoder you gave turns rows into NaN or infinity. Check its weights."
        )
