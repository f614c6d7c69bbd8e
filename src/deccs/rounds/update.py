"""The update of a round: change the embedding so that the members' clusters become easy to separate."""

from __future__ import annotations

import math

import numpy as np
import torch

from deccs.data.rows import Rows
from deccs.data.source import blocks
from deccs.network.autoencoder import Autoencoder
from deccs.rounds.classifiers import Classifiers
from deccs.rounds.losses import LossParts, cluster_centres
from deccs.rounds.objective import Objective
from deccs.rounds.records import Clustered, Round
from deccs.rules import default_lambda_rec, default_steps
from deccs.seeds import generator_for
from deccs.settings import RoundSettings
from deccs.training.batches import endless_batches
from deccs.training.best import Best


def objective_of(this: Round, settings: RoundSettings, rows: Rows) -> Objective:
    lambda_rec = (
        default_lambda_rec(len(rows))
        if isinstance(settings.lambda_rec, str)
        else settings.lambda_rec
    )
    # A little reconstruction always stays: with none at full agreement nothing keeps Z invertible.
    rec_weight = lambda_rec * (
        max(1 - this.agreement, 0.01) if settings.rec_by_disagreement else 1.0
    )
    weights = torch.from_numpy(this.weights).float().to(rows.device) / len(this.weights)
    return Objective(
        weights,
        settings.lambda_ce,
        this.consensus_weight,
        rec_weight,
        settings.weight_by_probability,
        settings.centre if settings.moving_centres else None,
    )


def update(
    autoencoder: Autoencoder,
    classifiers: Classifiers,
    rows: Rows,
    clustered: Clustered,
    this: Round,
    settings: RoundSettings,
    seed: int,
) -> LossParts:
    """Change encoder, decoder and classifiers, in place, so that the partitions become simple.

    Of the states checked the one with the least held-out loss stays. A loss that explodes or is not
    finite takes the last good state back and halves the rate, ten times at most.
    """
    classifiers.to(rows.device)
    objective = objective_of(this, settings, rows)
    train, held_out = (
        clustered.part(places, rows.device) for places in (clustered.train, clustered.held_out)
    )
    first_centres, _ = cluster_centres(
        train.Z, train.labels, classifiers.weight.shape[1], settings.centre
    )
    centres = first_centres
    unclustered = np.setdiff1d(np.arange(len(rows)), this.sample, assume_unique=True)
    if not settings.use_unclustered:
        unclustered = unclustered[:0]
    batches = endless_batches(
        torch.arange(len(train.sample)), settings.batch_size, generator_for(seed, "clustered")
    )
    other_batches = endless_batches(
        torch.from_numpy(unclustered), settings.batch_size, generator_for(seed, "unclustered")
    )

    parameters = [*autoencoder.parameters(), *classifiers.parameters()]
    # A heavy consensus loss makes long gradients: the rate shortens with it, and one rate fits all lambda_cons.
    rate = (
        settings.learning_rate
        * settings.learning_rate_decay**this.number
        / (1 + this.consensus_weight)
    )
    optimiser = torch.optim.SGD(parameters, lr=rate, momentum=0.9, fused=True)
    best = Best(autoencoder, classifiers)
    max_steps = default_steps(len(rows)) if settings.n_steps == "auto" else int(settings.n_steps)
    check_every = max(1, min(50, max_steps // 4))
    totals, n_steps, halvings = torch.zeros(4, device=rows.device), 0, 0
    too_much = 10 * held_out_loss(objective, autoencoder, classifiers, rows, held_out, centres) + 10

    autoencoder.train()
    for step in range(1, max_steps + 1):
        batch = next(batches)
        x, y = (
            rows[train.sample[batch]],
            train.labels[batch],
        )  # (batch, n_features), (batch, n_members)
        if len(unclustered):
            x = torch.cat([x, rows[next(other_batches)]])  # (2 batch, n_features)
        centres, terms = objective.gradients(autoencoder, classifiers, x, y, centres)
        optimiser.step()
        totals += terms
        n_steps += 1

        if step % check_every == 0 or step == max_steps:
            lost = not math.isfinite(totals[3])
            value = (
                math.nan
                if lost
                else held_out_loss(objective, autoencoder, classifiers, rows, held_out, centres)
            )
            autoencoder.train()
            if not value < too_much:  # exploded, or not even a number
                halvings, n_steps, totals = halvings + 1, 0, torch.zeros_like(totals)
                best.restore()
                optimiser = torch.optim.SGD(
                    parameters, lr=rate * 0.5**halvings, momentum=0.9, fused=True
                )
                centres = first_centres
            elif not best.offer(value) and best.age >= settings.patience:
                break
            if halvings > 10:
                break
    best.restore()
    return LossParts(*(totals / n_steps).tolist())  # NaN if no step was good


@torch.no_grad()
def held_out_loss(
    objective: Objective,
    autoencoder: Autoencoder,
    classifiers: Classifiers,
    rows: Rows,
    held_out: Clustered,
    centres: torch.Tensor,
) -> float:
    """The objective on clustered points that take no part in the update."""
    autoencoder.eval()
    total = 0.0
    for block in blocks(len(held_out.sample), 1024):
        x, y = rows[held_out.sample[block]], held_out.labels[block]
        z = autoencoder.encoder(x)
        total += float(objective(autoencoder, classifiers(z), x, z, y, centres)[3]) * len(x)
    return total / len(held_out.sample)
