"""The state of the rounds while they run: what a checkpoint keeps of them, and the best so far."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from deccs.network.autoencoder import Autoencoder
from deccs.rounds.classifiers import Classifiers
from deccs.rounds.records import Consensus, Round
from deccs.storage import Checkpoint

ALIKE = 0.01  # of the evidence: rounds that differ by less are equally good


def is_alike_or_better(round_: Round, before: Sequence[Round]) -> bool:
    """Whether no earlier round is clearly better."""
    best = max(earlier.rank for earlier in before)
    if round_.evidence is None:
        return round_.rank >= best
    return round_.rank[1] >= best[1] - ALIKE


class Journal:
    """Rounds, the present autoencoder, and the best round's state. It begins where a checkpoint ended."""

    def __init__(self, autoencoder: Autoencoder, checkpoint: Checkpoint) -> None:
        self.autoencoder, self.checkpoint = autoencoder, checkpoint
        self.rounds: list[Round] = []
        self.best: Consensus | None = None
        self.lambda_cons = 0.0  # of all rounds, known from round 0 on
        saved = checkpoint.load("rounds")
        if saved:
            self.rounds, self.lambda_cons = saved["rounds"], saved["lambda_cons"]
            autoencoder.load_state_dict(saved["best"])
            best_autoencoder = copy.deepcopy(autoencoder)
            self.best = Consensus(
                best_autoencoder, saved["classifiers"], saved["best_round"], self.rounds
            )
            autoencoder.load_state_dict(saved["weights"])

    @property
    def next_round(self) -> int:
        return len(self.rounds)

    @property
    def ended(self) -> bool:
        """No update followed the last round: the members are stable."""
        return bool(self.rounds) and self.rounds[-1].losses is None

    def keep_if_best(self, round_: Round, classifiers: Classifiers) -> None:
        """Of rounds alike the latest one: its clusters are more compact."""
        if self.best is None or is_alike_or_better(round_, self.rounds):
            rounds = [*self.rounds, round_]
            self.best = Consensus(
                copy.deepcopy(self.autoencoder), copy.deepcopy(classifiers), round_.number, rounds
            )

    def write(self, round_: Round, lambda_cons: float) -> None:
        assert self.best is not None
        self.rounds.append(round_)
        self.lambda_cons = lambda_cons
        self.checkpoint.save(
            "rounds",
            {
                "weights": self.autoencoder.state_dict(),
                "rounds": self.rounds,
                "lambda_cons": lambda_cons,
                "best": self.best.autoencoder.state_dict(),
                "classifiers": self.best.classifiers,
                "best_round": self.best.best_round,
            },
        )

    def consensus(self) -> Consensus:
        """The best round's state with the whole history."""
        assert self.best is not None
        best = self.best
        return Consensus(best.autoencoder, best.classifiers, best.best_round, self.rounds)
