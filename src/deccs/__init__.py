"""Consensus clustering and deep clustering: DECCS and what it was compared with."""

import importlib
from typing import TYPE_CHECKING

from deccs._version import __version__

if TYPE_CHECKING:
    from deccs import benchmark, consensus, datasets, deep, plots, report, scores
    from deccs.autoencoder import Autoencoder
    from deccs.consensus import AutoencoderConsensus, ConsensusClustering, RandomProjectionEM, RandomProjectionFCM
    from deccs.ensemble import default_members
    from deccs.estimator import DECCS
    from deccs.rounds import Round
    from deccs.training import Pretraining

# Where the names are. They are loaded when first used: torch takes seconds, and who asks for --help needs none of it.
HOMES = {
    "DECCS": "estimator", "Autoencoder": "autoencoder", "Pretraining": "training", "Round": "rounds",
    "default_members": "ensemble",
    **dict.fromkeys(("AutoencoderConsensus", "ConsensusClustering", "RandomProjectionEM", "RandomProjectionFCM"),
                    "consensus"),
}
MODULES = ("benchmark", "consensus", "datasets", "deep", "plots", "report", "scores")


def __getattr__(name: str) -> object:
    if name in HOMES:
        found: object = getattr(importlib.import_module(f"deccs.{HOMES[name]}"), name)
    elif name in MODULES:
        found = importlib.import_module(f"deccs.{name}")
    else:
        raise AttributeError(f"module 'deccs' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "DECCS", "Autoencoder", "AutoencoderConsensus", "ConsensusClustering", "Pretraining", "RandomProjectionEM",
    "RandomProjectionFCM", "Round", "__version__", "benchmark", "consensus", "datasets", "deep", "default_members",
    "plots", "report", "scores",
]
