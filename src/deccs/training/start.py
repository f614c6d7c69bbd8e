"""The autoencoder a fit starts from: the user's own, or built for the data and pretrained."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from deccs.data.rows import Rows
from deccs.events import Epoch
from deccs.network.autoencoder import Autoencoder
from deccs.rules import default_layers
from deccs.seeds import torch_seeded
from deccs.settings import Pretraining
from deccs.storage import NO_CHECKPOINT, Checkpoint
from deccs.training.pretraining import pretrain
from deccs.training.search import search_pretraining


@dataclass(frozen=True, eq=False)
class Start:
    """A pretrained autoencoder, and what a search over settings has tried for it."""

    autoencoder: Autoencoder
    search: list[tuple[dict[str, Any], float]] | None = None


def starting_autoencoder(
    rows: Rows,
    root: int,
    *,
    autoencoder: Autoencoder | tuple[Any, Any] | None = None,
    layers: Sequence[int] | str = "auto",
    dropout: float = 0.0,
    pretraining: Pretraining | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Start:
    """Take or build, then pretrain unless that is done. What was given is copied, never changed."""
    settings = pretraining or Pretraining()
    if not isinstance(settings, Pretraining):
        raise ValueError(f"pretraining must be a deccs.Pretraining(...) or None, got {settings!r}.")

    def build(choice: Mapping[str, Any]) -> Autoencoder:
        own = {"layers": layers, "dropout": dropout}
        return initial_autoencoder(
            rows, **{name: choice.get(name, own[name]) for name in own}, root=root
        )

    search = None
    if autoencoder is not None:
        start = own_autoencoder(autoencoder, rows)
    elif grid:
        choice, search = search_pretraining(build, rows, grid, settings, root, checkpoint)
        settings = replace(
            settings, **{name: value for name, value in choice.items() if hasattr(settings, name)}
        )
        start = build(choice)
    else:
        start = build({})
    if not start.pretrained:
        pretrain(start, rows, settings, root, on_epoch, checkpoint)
    return Start(start, search)


def own_autoencoder(given: Any, rows: Rows) -> Autoencoder:
    """A copy of the user's modules, checked against the rows."""
    if not isinstance(given, Autoencoder):
        if not (isinstance(given, tuple | list) and len(given) == 2):
            raise ValueError(
                f"autoencoder must be an Autoencoder or a pair (encoder, decoder), got {given!r}."
            )
        given = Autoencoder(*given)
    autoencoder = copy.deepcopy(given).float().to(rows.device)
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
            f"The autoencoder does not take rows of {rows.n_features} columns: {error}"
        ) from error
    if z.ndim != 2 or back.shape != x.shape:
        raise ValueError(
            f"The encoder must give (n, n_latent) and the decoder (n, {rows.n_features}); "
            f"got {tuple(z.shape)} and {tuple(back.shape)} for n = {len(x)}."
        )


def initial_autoencoder(
    rows: Rows, layers: Sequence[int] | str, dropout: float, root: int
) -> Autoencoder:
    """The untrained feed-forward network for these rows."""
    if isinstance(layers, str):
        if layers != "auto":
            raise ValueError(f"layers must be 'auto' or a tuple of widths, got {layers!r}.")
        layers = default_layers(len(rows), rows.n_features)
    with torch_seeded(root, "initial weights"):
        return Autoencoder.feed_forward(rows.n_features, layers, dropout).to(rows.device)
