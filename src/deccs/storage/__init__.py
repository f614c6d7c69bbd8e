"""Models on disk: safetensors and JSON, no pickle; and checkpoints of a fit under way."""

from deccs.storage import clusterers  # registers scikit-learn's clusterers
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
from deccs.storage.schema import Maybe, reals, stored, wholes
from deccs.storage.values import ModelFileError, NotKept, register

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
