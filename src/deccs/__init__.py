"""Consensus clustering and deep clustering: DECCS and what it was compared with."""

import importlib
from typing import TYPE_CHECKING

from deccs._version import __version__

if TYPE_CHECKING:
    from deccs import calibration, consensus, datasets, deep, export, plots, report, scanpy, scores
    from deccs.answer import Answer
    from deccs.consensus import (
        AutoencoderConsensus,
        ConsensusClustering,
        ConsensusMatrix,
        RandomProjectionEM,
        RandomProjectionFCM,
    )
    from deccs.constraints.violations import ConstraintWarning
    from deccs.counting.count import count_clusters
    from deccs.counting.one_group import OneGroupWarning
    from deccs.data.kinds import kinds_of
    from deccs.estimator import DECCS
    from deccs.events import Callback, Progress
    from deccs.group.joining import distributed
    from deccs.group.watch import GroupError
    from deccs.inference.encoder import TrainingError
    from deccs.members.default import default_members
    from deccs.network.autoencoder import Autoencoder
    from deccs.predictor import Predictor, load
    from deccs.rounds.records import Round
    from deccs.settings import Network, Pretraining, Rounds
    from deccs.watching.drift import Drift, drift

# Where the names are. They are loaded when first used: torch takes seconds, and who asks for --help needs none of it.
HOMES = {
    "DECCS": "estimator",
    "Answer": "answer",
    "Callback": "events",
    "Network": "settings",
    "Progress": "events",
    "Rounds": "settings",
    "Autoencoder": "network.autoencoder",
    "TrainingError": "inference.encoder",
    "Predictor": "predictor",
    "load": "predictor",
    "Pretraining": "settings",
    "Round": "rounds.records",
    "ConstraintWarning": "constraints.violations",
    "OneGroupWarning": "counting.one_group",
    "count_clusters": "counting.count",
    "GroupError": "group.watch",
    "distributed": "group.joining",
    "kinds_of": "data.kinds",
    "default_members": "members.default",
    "drift": "watching.drift",
    "Drift": "watching.drift",
    **dict.fromkeys(
        (
            "AutoencoderConsensus",
            "ConsensusClustering",
            "ConsensusMatrix",
            "RandomProjectionEM",
            "RandomProjectionFCM",
        ),
        "consensus",
    ),
}
MODULES = (
    "calibration",
    "consensus",
    "datasets",
    "deep",
    "export",
    "plots",
    "report",
    "scanpy",
    "scores",
)


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
    "DECCS",
    "Answer",
    "Callback",
    "Drift",
    "Network",
    "Progress",
    "Rounds",
    "Autoencoder",
    "AutoencoderConsensus",
    "ConsensusClustering",
    "ConsensusMatrix",
    "ConstraintWarning",
    "GroupError",
    "OneGroupWarning",
    "Predictor",
    "Pretraining",
    "RandomProjectionEM",
    "RandomProjectionFCM",
    "Round",
    "TrainingError",
    "__version__",
    "calibration",
    "consensus",
    "count_clusters",
    "datasets",
    "deep",
    "default_members",
    "distributed",
    "drift",
    "export",
    "kinds_of",
    "load",
    "plots",
    "report",
    "scanpy",
    "scores",
]
