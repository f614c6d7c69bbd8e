"""Consensus clustering and deep clustering: DECCS and what it was compared with."""

import importlib

from deccs import datasets, scores
from deccs._version import __version__
from deccs.autoencoder import Autoencoder
from deccs.ensemble import default_members
from deccs.estimator import DECCS
from deccs.rounds import Round
from deccs.training import Pretraining


def __getattr__(name: str) -> object:
    """``deccs.benchmark``, ``consensus``, ``deep``, ``plots`` and ``report`` load when they are first used."""
    if name in ("AutoencoderConsensus", "ConsensusClustering", "RandomProjectionEM", "RandomProjectionFCM"):
        return getattr(importlib.import_module("deccs.consensus"), name)
    if name in ("benchmark", "consensus", "deep", "plots", "report"):
        return importlib.import_module(f"deccs.{name}")
    raise AttributeError(f"module 'deccs' has no attribute {name!r}")


__all__ = ["DECCS", "Autoencoder", "Pretraining", "Round", "__version__", "datasets", "default_members", "scores"]
