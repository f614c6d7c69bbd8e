"""Choosing the autoencoder's settings by held-out reconstruction error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from deccs.data.rows import Rows
from deccs.network.autoencoder import Autoencoder
from deccs.seeds import generator_for
from deccs.settings import Pretraining
from deccs.storage import NO_CHECKPOINT, Checkpoint
from deccs.training.batches import hold_out
from deccs.training.pretraining import pretrain, reconstruction_error


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
    unknown = [
        name for name in grid if name not in ("layers", "dropout") and not hasattr(settings, name)
    ]
    if unknown:
        raise ValueError(
            f"The grid has names that are no setting of the autoencoder's training: {unknown}."
        )
    _, held_out = hold_out(len(rows), settings.held_out, generator_for(root, "held out"))
    errors: list[tuple[dict[str, Any], float]] = []
    for number, values in enumerate(product(*grid.values())):
        choice = dict(zip(grid, values, strict=True))
        changes = {name: value for name, value in choice.items() if hasattr(settings, name)}
        own = checkpoint.at("search", number)
        autoencoder = pretrain(
            build(choice), rows, replace(settings, **changes), root, checkpoint=own
        )
        errors.append((choice, reconstruction_error(autoencoder, rows, held_out)))
    return min(errors, key=lambda row: row[1])[0], errors
