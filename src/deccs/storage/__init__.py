"""Models on disk: safetensors and JSON, no pickle; and checkpoints of a fit under way."""

import importlib
from typing import TYPE_CHECKING

from deccs.storage.schema import Maybe, reals, stored, wholes
from deccs.storage.values import ModelFileError, NotKept, register

if TYPE_CHECKING:
    from deccs.storage.checkpoints import (
        NO_CHECKPOINT,
        Checkpoint,
        CheckpointError,
        CheckpointWarning,
        FolderCheckpoint,
    )
    from deccs.storage.locks import InUseError
    from deccs.storage.models import load, read_preprocessing, save
    from deccs.storage.networks import stored_layer

# Loaded when first used: a model that only predicts needs no torch, and no checkpoint.
HOMES = {
    **dict.fromkeys(
        (
            "NO_CHECKPOINT",
            "Checkpoint",
            "CheckpointError",
            "CheckpointWarning",
            "FolderCheckpoint",
        ),
        "checkpoints",
    ),
    "InUseError": "locks",
    **dict.fromkeys(("load", "read_preprocessing", "save"), "models"),
    "stored_layer": "networks",
}


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module 'deccs.storage' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"deccs.storage.{HOMES[name]}"), name)
    globals()[name] = found
    return found


__all__ = [
    "NO_CHECKPOINT",
    "Checkpoint",
    "CheckpointError",
    "CheckpointWarning",
    "FolderCheckpoint",
    "InUseError",
    "Maybe",
    "ModelFileError",
    "NotKept",
    "load",
    "read_preprocessing",
    "reals",
    "register",
    "save",
    "stored",
    "stored_layer",
    "wholes",
]
