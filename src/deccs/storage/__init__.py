"""Models on disk: safetensors and JSON, no pickle; and checkpoints of a fit under way."""

from deccs.storage import clusterers
from deccs.storage.checkpoints import NO_CHECKPOINT, Checkpoint, CheckpointError, FolderCheckpoint
from deccs.storage.models import ModelFiles, load, read_preprocessing, save
from deccs.storage.networks import make_network, stored_layer, take_network
from deccs.storage.values import ModelFileError, NotKept, register, stored

__all__ = [
    "NO_CHECKPOINT",
    "Checkpoint",
    "CheckpointError",
    "ModelFileError",
    "ModelFiles",
    "NotKept",
    "clusterers",
    "load",
    "make_network",
    "FolderCheckpoint",
    "read_preprocessing",
    "register",
    "save",
    "stored",
    "stored_layer",
    "take_network",
]
