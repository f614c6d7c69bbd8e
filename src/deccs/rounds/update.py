"""The update of a round: change the embedding so that the members' clusters become easy to separate."""

from __future__ import annotations

import torch

from deccs.data.rows import Rows
from deccs.data.sampling import EveryRow, Others
from deccs.data.source import blocks
from deccs.network.autoencoder import Autoencoder
from deccs.network.device import threads_for
from deccs.network.reconstruction import error_for
from deccs.rounds.classifiers import Classifiers
from deccs.rounds.losses import cluster_centers
from deccs.rounds.objective import Objective
from deccs.rounds.pairs import Pairs
from deccs.rounds.records import Clustered, LossParts, Round
from deccs.rules import default_lambda_rec, default_update_steps
from deccs.seeds import generator_for, torch_seeded
from deccs.settings import Rounds
from deccs.training.batches import Batches
from deccs.training.engine import Check, Learner, train


def update(learner: Update) -> LossParts:
    """Change encoder, decoder and classifiers, in place, so that the partitions become simple.

    Of the states checked, the one with the least held-out loss stays.
    """
    steps = learner.settings.n_steps
    n_steps = default_update_steps(len(learner.rows)) if steps == "auto" else int(steps)
    with (
        torch_seeded(learner.seed, "update"),
        threads_for(learner.autoencoder, learner.settings.batch_size),
    ):
        trained = train(
            learner,
            n_steps,
            rate=learning_rate(learner.round, learner.settings),
            check_every=max(1, min(50, n_steps // 4)),
            patience=learner.settings.patience,
        )
    return LossParts(*trained.losses.tolist())


def learning_rate(round_: Round, settings: Rounds) -> float:
    """A heavy consensus loss makes long gradients; the rate falls with it, so one fits all lambda_cons."""
    decay = settings.learning_rate_decay**round_.number
    return settings.learning_rate * decay / (1 + round_.consensus_weight)


class Update(Learner):
    """The objective on batches of clustered points and, beside them, as many unclustered ones."""

    stage = "update"
    learned = ("autoencoder", "classifiers")
    random: tuple[str, ...] = ("batches", "other_batches")
    keeps_best = True

    def __init__(
        self,
        autoencoder: Autoencoder,
        classifiers: Classifiers,
        rows: Rows,
        clustered: Clustered,
        round_: Round,
        settings: Rounds,
        seed: int,
        pairs: Pairs | None = None,
    ) -> None:
        self.autoencoder, self.classifiers, self.rows = (
            autoencoder,
            classifiers.to(rows.device),
            rows,
        )
        self.round, self.settings, self.seed, self.device = round_, settings, seed, rows.device
        self.objective = objective_of(round_, settings, rows)
        self.train = clustered.part(clustered.train, rows.device)
        self.held_out = clustered.part(clustered.held_out, rows.device)
        n_clusters = classifiers.weight.shape[1]
        self.centers = self.first_centers = cluster_centers(
            self.train.Z, self.train.labels, n_clusters, settings.center
        )[0]  # (n_members, n_clusters, n_latent)
        size = settings.batch_size
        self.batches = Batches(
            EveryRow(len(self.train.sample)), size, generator_for(seed, "clustered")
        )
        unclustered = Others(len(rows), clustered.sample)
        self.uses_unclustered = settings.use_unclustered and len(unclustered) > 0
        self.other_batches = Batches(unclustered, size, generator_for(seed, "unclustered"))
        self.pairs = pairs if settings.lambda_pairs else None
        if self.pairs is not None:
            self.pair_batches = Batches(
                EveryRow(len(self.pairs)), size, generator_for(seed, "pairs")
            )
            self.random = (*self.random, "pair_batches")
        self.limit = 10 * self._held_out_loss() + 10  # a loss above has exploded
        autoencoder.train()

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        self.centers = self.first_centers
        parameters = [*self.autoencoder.parameters(), *self.classifiers.parameters()]
        return [torch.optim.SGD(parameters, lr=rate, momentum=0.9, fused=True)]

    def gradients(self, step: int) -> torch.Tensor:
        batch = next(self.batches)
        index = self.train.sample[batch]  # (batch,)
        y = self.train.labels[batch]  # (batch, n_members)
        if self.uses_unclustered:
            index = torch.cat([index, next(self.other_batches).to(index.device)])  # (2 batch,)
        together = None
        if self.pairs is not None:
            chosen = next(self.pair_batches)  # (pairs,)
            together = self.pairs.together[chosen].to(index.device)
            index = torch.cat([index, self.pairs.index[chosen].T.flatten().to(index.device)])
        # A moved image keeps the labels of the image itself: the members have seen no other.
        x = self.rows.moved(index, self.batches.generator)  # (2 batch + 2 pairs, n_features)
        self.centers, terms = self.objective.gradients(
            self.autoencoder, self.classifiers, x, y, self.centers, together
        )
        return terms

    def check(self, step: int) -> Check:
        loss = self._held_out_loss()
        self.autoencoder.train()
        return Check(held_out=loss)

    @torch.no_grad()
    def _held_out_loss(self) -> float:
        """The objective on clustered points that take no part in the update."""
        self.autoencoder.eval()
        total, held_out = 0.0, self.held_out
        for place in blocks(len(held_out.sample), 1024):
            x, y = self.rows[held_out.sample[place]], held_out.labels[place]
            z = self.autoencoder.encoder(x)
            terms = self.objective(self.autoencoder, self.classifiers(z), x, z, y, self.centers)
            total += float(terms[3]) * len(x)
        return total / len(held_out.sample) + self._loss_of_pairs()

    def _loss_of_pairs(self) -> float:
        """Of all pairs, none of which is held out: a state that serves them must not be dropped for it."""
        if self.pairs is None:
            return 0.0
        total = 0.0
        for place in blocks(len(self.pairs), 1024):
            index = self.pairs.index[place].T.flatten()  # (2 pairs,)
            logits = self.classifiers(self.autoencoder.encoder(self.rows[index]))
            together = self.pairs.together[place].to(logits.device)
            total += float(self.objective.of_pairs(logits, together)) * len(together)
        return total / len(self.pairs)


def objective_of(round_: Round, settings: Rounds, rows: Rows) -> Objective:
    """L of Eq. 6 with the weights of this round."""
    given = settings.lambda_rec
    lambda_rec = default_lambda_rec(len(rows)) if isinstance(given, str) else given
    # A little reconstruction always stays: with none at full agreement nothing keeps Z invertible.
    by_disagreement = max(1 - round_.agreement, 0.01) if settings.rec_by_disagreement else 1.0
    weights = torch.from_numpy(round_.weights).float().to(rows.device) / len(round_.weights)
    return Objective(
        member_weights=weights,
        lambda_ce=settings.lambda_ce,
        consensus_weight=round_.consensus_weight,
        rec_weight=lambda_rec * by_disagreement,
        weight_by_probability=settings.weight_by_probability,
        moving=settings.center if settings.moving_centers else None,
        error=error_for(rows),
        lambda_pairs=settings.lambda_pairs,
    )
