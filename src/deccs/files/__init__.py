"""Models on disk: safetensors and JSON, no pickle; and checkpoints of a fit under way."""

from deccs.files import clusterers
from deccs.files.models import ModelFiles, load, read_preprocessing, save
from deccs.files.networks import make_network, stored_layer, take_network
from deccs.files.values import ModelFileError, NotKept, register, stored

__all__ = [
    "ModelFileError", "ModelFiles", "NotKept", "clusterers", "load", "make_network", "read_preprocessing", "register",
    "save", "stored", "stored_layer", "take_network",
]
