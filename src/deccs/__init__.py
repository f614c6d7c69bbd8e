"""Consensus clustering and deep clustering: DECCS and what it was compared with."""

from deccs import datasets, scores
from deccs._version import __version__
from deccs.autoencoder import Autoencoder
from deccs.ensemble import default_members
from deccs.estimator import DECCS
from deccs.rounds import Round
from deccs.training import Pretraining

__all__ = ["DECCS", "Autoencoder", "Pretraining", "Round", "__version__", "datasets", "default_members", "scores"]
