"""What a round leaves behind."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from deccs.members.candidate import Candidate
from deccs.storage import reals, stored, wholes

if TYPE_CHECKING:
    import torch

    from deccs.network.autoencoder import Autoencoder
    from deccs.rounds.classifiers import Classifiers


@stored
@dataclass(frozen=True)
class LossParts:
    """The terms of the objective, averaged over the steps of an update."""

    reconstruction: float
    classification: float
    consensus: float
    total: float


@stored
@dataclass(frozen=True, eq=False)
class Round:
    """What happened in one round.

    Attributes
    ----------
    sample : (n_sample,) row numbers
    Z : (n_sample, n_latent) what the members clustered, before scaling
    member_names : the members that took part
    base_partitions : (n_members, n_sample), -1 for "takes no part"
    agreement_matrix : (n_members, n_members), ones on the diagonal
    agreement : mean over pairs
    weights : (n_members,) lambda_i
    judged : (n_members, n_viewed) the labels of the members' classifiers for the sample of the
        views; None without views
    evidence : (n_members,) how much speaks for each of them, see
        :class:`deccs.members.choice.Judge`
    consensus_weight : w(t), 0 where no update followed
    start : which start of the rounds, see :func:`deccs.rounds.restarts.best_of_starts`
    losses : means over the update that followed, None after the last clustering
    seconds : by phase
    """

    number: int
    sample: Annotated[np.ndarray, wholes("n_sample", least=0)]
    Z: Annotated[np.ndarray, reals("n_sample", "n_latent", with_nan=True)]
    member_names: tuple[str, ...]
    base_partitions: Annotated[np.ndarray, wholes("n_members", "n_sample", below="n_sample")]
    agreement_matrix: Annotated[np.ndarray, reals("n_members", "n_members", with_nan=True)]
    agreement: float
    weights: Annotated[np.ndarray, reals("n_members", with_nan=True)]
    consensus_weight: float = 0.0
    start: int = 0
    losses: LossParts | None = None
    judged: Annotated[np.ndarray, wholes("n_members", "n_viewed")] | None = None
    evidence: Annotated[np.ndarray, reals("n_members", with_nan=True)] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def best_member(self) -> int:
        """The member whose classifier has the most evidence."""
        assert self.evidence is not None
        return int(self.evidence.argmax())

    @property
    def candidate(self) -> Candidate:
        """What this round would give as the result."""
        assert self.evidence is not None
        assert self.judged is not None
        best = self.best_member
        name = f"{self.member_names[best]}, round {self.number}"
        return Candidate(name, self.judged[best], float(self.evidence[best]))

    @property
    def rank(self) -> tuple[int, float]:
        """What the best round is chosen by: the most evidence.

        Without views the highest agreement, where leaving out a dissenter must not win.
        """
        if self.evidence is not None:
            return 0, float(self.evidence.max())
        return len(self.member_names), self.agreement

    def as_dict(self) -> dict[str, Any]:
        """The round as plain JSON, without what belongs to single points."""
        losses = None
        if self.losses is not None:
            values = asdict(self.losses).items()
            losses = {name: value if math.isfinite(value) else None for name, value in values}
        return {
            "start": self.start,
            "round": self.number,
            "agreement": self.agreement,
            "members": list(self.member_names),
            "agreement_matrix": self.agreement_matrix.tolist(),
            "weights": self.weights.tolist(),
            "consensus_weight": self.consensus_weight,
            "losses": losses,
            "seconds": dict(self.seconds),
        }


@dataclass(frozen=True, eq=False)
class Clustered:
    """The sample of a round with the members' labels, as the update needs it."""

    sample: torch.Tensor  # (n_sample,) row numbers
    Z: torch.Tensor  # (n_sample, n_latent) as the members saw it
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
    """The state of the best round, and the history."""

    autoencoder: Autoencoder
    classifiers: Classifiers
    best_round: int
    rounds: list[Round]

    @property
    def best(self) -> Round:
        return self.rounds[self.best_round]

    @property
    def agreement(self) -> float:
        return self.best.agreement

    @property
    def rank(self) -> tuple[int, float]:
        return self.best.rank
