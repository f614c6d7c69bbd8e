"""What a round leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch

from deccs.network.autoencoder import Autoencoder
from deccs.rounds.classifiers import Classifiers
from deccs.rounds.losses import LossParts
from deccs.storage import stored


@stored
@dataclass(frozen=True, eq=False)
class Round:
    """What happened in one round.

    Attributes
    ----------
    sample : (n_sample,) row numbers
    Z : (n_sample, n_latent) what the members clustered, before scaling
    member_names : the members in place
    base_partitions : (n_members, n_sample), -1 for "takes no part"
    agreement_matrix : (n_members, n_members), ones on the diagonal
    agreement : mean over pairs
    weights : (n_members,) lambda_i
    consensus_weight : w(t), 0 where no update followed
    start : which start of the rounds, see best_of_restarts
    losses : means over the update that followed, None after the last clustering
    seconds : by phase
    """

    number: int
    sample: np.ndarray
    Z: np.ndarray
    member_names: tuple[str, ...]
    base_partitions: np.ndarray
    agreement_matrix: np.ndarray
    agreement: float
    weights: np.ndarray
    consensus_weight: float = 0.0
    start: int = 0
    losses: LossParts | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def standing(self) -> tuple[int, float]:
        """What the best round is chosen by: leaving out a dissenter must not win."""
        return len(self.member_names), self.agreement


@dataclass(frozen=True, eq=False)
class Clustered:
    """The sample of a round with what the members said of it."""

    sample: torch.Tensor  # (n_sample,) row numbers
    Z: torch.Tensor  # (n_sample, n_latent) as it was when they were asked
    labels: torch.Tensor  # (n_sample, n_members)
    train: torch.Tensor  # places in the sample that are learned from
    held_out: torch.Tensor  # ... and that decide when to stop

    def part(self, places: torch.Tensor, device: torch.device) -> Clustered:
        return replace(
            self,
            sample=self.sample[places],
            Z=self.Z[places].to(device),
            labels=self.labels[places].to(device),
        )


@dataclass(frozen=True)
class Consensus:
    """The state of the round with the highest agreement, and the history."""

    autoencoder: Autoencoder
    classifiers: Classifiers
    best_round: int
    rounds: list[Round]

    @property
    def agreement(self) -> float:
        return self.rounds[self.best_round].agreement

    @property
    def standing(self) -> tuple[int, float]:
        return self.rounds[self.best_round].standing
