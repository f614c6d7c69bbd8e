"""The state of the rounds while they run: what a checkpoint keeps of them, and the best so far."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from deccs.network.autoencoder import Autoencoder
from deccs.rounds.classifiers import Classifiers
from deccs.rounds.records import Consensus, Round
from deccs.storage import Checkpoint
from deccs.training.engine import check_alike

ALIKE = 0.01  # of the evidence: rounds that differ by less are equally good


def is_alike_or_better(round_: Round, before: Sequence[Round]) -> bool:
    """Whether no earlier round is clearly better."""
    best = max(earlier.rank for earlier in before)
    if round_.evidence is None:
        return round_.rank >= best
    return round_.rank[1] >= best[1] - ALIKE


def check_rounds(rounds: Any, best_round: Any) -> None:
    """Raise a ValueError if these are not the rounds of a fit from round 0 on, with one the best."""
    numbers = [round_.number for round_ in rounds]
    if not numbers or numbers != list(range(len(rounds))) or best_round not in numbers:
        raise ValueError(f"The rounds are numbered {numbers}, and round {best_round!r:.20} is best")
    for round_ in rounds:
        n_members, n_sample = len(round_.member_names), len(round_.sample)
        shapes = {
            "Z": (n_sample, rounds[0].Z.shape[1]),
            "base_partitions": (n_members, n_sample),
            "agreement_matrix": (n_members, n_members),
            "weights": (n_members,),
        }
        wrong = [name for name, shape in shapes.items() if getattr(round_, name).shape != shape]
        if wrong or round_.start != rounds[0].start:
            raise ValueError(f"{', '.join(wrong) or 'start'} of round {round_.number} does not fit")


class Journal:
    """Rounds, the present autoencoder, and the best round's state. It begins where a checkpoint ended."""

    def __init__(self, autoencoder: Autoencoder, checkpoint: Checkpoint) -> None:
        self.autoencoder, self.checkpoint = autoencoder, checkpoint
        self.rounds: list[Round] = []
        self.best: Consensus | None = None
        self.lambda_cons = 0.0  # of all rounds, known from round 0 on
        checkpoint.restore("rounds", self._take_up)

    def _take_up(self, saved: dict[str, Any]) -> None:
        """Go on after the last round of a state, if it is one of such an autoencoder."""
        rounds, weights = saved["rounds"], self.autoencoder.state_dict()
        for name in ("best", "weights"):
            check_alike(weights, saved[name], name)
        check_rounds(rounds, saved["best_round"])
        n_latent = saved["classifiers"].weight.shape[2]
        if rounds[0].Z.shape[1] != n_latent or type(saved["lambda_cons"]) is not float:
            raise ValueError("The classifiers or lambda_cons are not those of the rounds")
        self.autoencoder.load_state_dict(saved["best"])
        best = copy.deepcopy(self.autoencoder)
        self.autoencoder.load_state_dict(saved["weights"])
        self.rounds, self.lambda_cons = rounds, saved["lambda_cons"]
        self.best = Consensus(best, saved["classifiers"], saved["best_round"], rounds)

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
