"""Algorithm 1 of the paper: round after round, until the members agree.

One round: sample -> embed -> cluster -> classify -> agree -> update.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from deccs.clock import Clock
from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows, sample_count
from deccs.events import NOBODY, Listeners
from deccs.labels import canonical
from deccs.members.agreement import average_agreement, member_weights, pairwise_agreement
from deccs.members.asking import ONE_BY_ONE, Jobs, MemberWarning
from deccs.members.choice import NEVER
from deccs.members.default import PARTIAL, Member
from deccs.members.running import TooFewMembers, cluster
from deccs.network.autoencoder import Autoencoder, TrainingError, encode
from deccs.rounds.classifiers import Classifiers, classify, split_sample
from deccs.rounds.journal import Journal
from deccs.rounds.look import Look
from deccs.rounds.losses import ramp_up
from deccs.rounds.pairs import Pairs
from deccs.rounds.records import Clustered, Consensus, Round
from deccs.rounds.update import Update, update
from deccs.rules import default_lambda_cons, default_sample_size
from deccs.seeds import generator_for, seed_for
from deccs.settings import Rounds
from deccs.storage import NO_CHECKPOINT, Checkpoint

FULL = 0.999  # members that agree this well have nothing left to agree on


def learn_consensus(
    autoencoder: Autoencoder,
    rows: Rows,
    members: Sequence[Member],
    settings: Rounds,
    root: int,
    *,
    start: int = 0,
    look: Look | None = None,
    pairs: Pairs | None = None,
    jobs: Jobs = ONE_BY_ONE,
    listeners: Listeners = NOBODY,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Consensus:
    """Algorithm 1: cluster, update, cluster, ...; ``autoencoder`` itself is not changed."""
    journal = Journal(copy.deepcopy(autoencoder), checkpoint)
    while not journal.ended and journal.next_round <= settings.n_rounds:
        number = journal.next_round
        seed, clock = seed_for(root, "round", number), Clock()
        try:
            round_, classifiers, clustered = open_round(
                journal.autoencoder, rows, members, settings, number, start, seed, clock, jobs
            )
        except TooFewMembers as error:
            if journal.best is None:
                raise
            warnings.warn(
                f"The rounds end before round {number}: {error}", MemberWarning, stacklevel=2
            )
            break
        if look is not None:
            round_ = judged(look, round_, journal.autoencoder, classifiers, rows)
            clock.lap("judge")
        journal.keep_if_best(round_, classifiers)
        lambda_cons = journal.lambda_cons or consensus_strength(settings, clustered.Z)
        stable = listeners.stopped or is_stable(journal.rounds, round_, settings.tol)
        stable = stable or (look is not None and look.is_over([*journal.rounds, round_]))
        if number < settings.n_rounds and not stable:
            growth = ramp_up(number, settings.n_rounds) if settings.ramp_up else 1.0
            round_ = replace(round_, consensus_weight=lambda_cons * growth)
            learner = Update(
                journal.autoencoder, classifiers, rows, clustered, round_, settings, seed, pairs
            )
            try:
                round_ = replace(round_, losses=update(learner))
            except TrainingError as error:
                if number == 0:
                    raise
                # Without losses the round is the last one.
                warnings.warn(f"The rounds end after round {number}: {error}", stacklevel=2)
            clock.lap("update")
        journal.write(round_, lambda_cons)
        listeners.tell("on_round", round_)
    return journal.consensus()


def open_round(
    autoencoder: Autoencoder,
    rows: Rows,
    members: Sequence[Member],
    settings: Rounds,
    number: int,
    start: int,
    seed: int,
    clock: Clock,
    jobs: Jobs = ONE_BY_ONE,
) -> tuple[Round, Classifiers, Clustered]:
    """Sample, embed, cluster, classify, agree: all of a round but its update."""
    sample = draw_sample(len(rows), settings.sample_size, seed)  # (n_sample,)
    Z = encode(autoencoder, rows, sample)  # (n_sample, n_latent)
    clock.lap("embed")
    partitions = cluster(
        members,
        Z.numpy(),
        sample.numpy(),
        seed,
        standardize=settings.standardize,
        min_cluster_size=settings.min_cluster_size,
        jobs=jobs,
    )
    clock.lap("cluster")
    train, held_out = split_sample(
        partitions.labels, settings.held_out, generator_for(seed, "split")
    )
    labels = torch.from_numpy(partitions.labels.T.copy())  # (n_sample, n_members)
    classifiers = classify(Z, labels, train, held_out, generator_for(seed, "classify"))
    clock.lap("classify")
    agreement_matrix = pairwise_agreement(partitions.labels)  # (n_members, n_members)
    round_ = Round(
        number=number,
        sample=sample.numpy(),
        Z=Z.numpy(),
        member_names=partitions.names,
        base_partitions=partitions.labels,
        agreement_matrix=agreement_matrix,
        agreement=average_agreement(agreement_matrix),
        weights=trusting_labels(
            member_weights(agreement_matrix, settings.weight_power), partitions.names
        ),
        start=start,
        seconds=clock.laps,
    )
    return round_, classifiers, Clustered(sample, Z, labels, train, held_out)


def trusting_labels(weights: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """The weights of members; labels that users gave are right, and count as much as any member.

    >>> trusting_labels(np.array([0.5, 0.75, 0.25]), ("kmeans", "mixture", PARTIAL))
    array([0.5 , 0.75, 0.75])
    """
    are_given = np.array([name == PARTIAL for name in names])
    return np.where(are_given, weights.max(), weights)


@torch.no_grad()
def judged(
    look: Look, round_: Round, autoencoder: Autoencoder, classifiers: Classifiers, rows: Rows
) -> Round:
    """The round with the labels of each member's classifier for the sample of the views, judged."""
    Z = encode(autoencoder, rows, torch.from_numpy(look.views.sample))  # (n_viewed, n_latent)
    partitions = classifiers.cpu()(Z).argmax(2).T.numpy()  # (n_members, n_viewed)
    # A cluster that a classifier knows, but gives to no row of the sample, is one too many.
    evidence = np.array(
        [
            look.judge(canonical(labels)) if n_found == look.judge.n_clusters else NEVER
            for labels, n_found in zip(partitions, classifiers.n_clusters, strict=True)
        ]
    )
    return replace(round_, judged=partitions, evidence=evidence)


def is_stable(rounds: Sequence[Round], now: Round, tol: float | None) -> bool:
    """The paper's stop rule, |a(t) - a(t-1)| < tau; and full agreement twice in a row."""
    if not rounds:
        return False
    before = rounds[-1].agreement
    full = min(before, now.agreement) >= FULL
    return full or (tol is not None and abs(now.agreement - before) < tol)


def draw_sample(n_points: int, sample_size: int | float | str, seed: int) -> torch.Tensor:
    """Row numbers of a new sample, without replacement, in order."""
    size = sample_count(sample_size, n_points, default_sample_size(n_points))
    return draw_rows(n_points, size, generator_for(seed, "sample"))


def consensus_strength(settings: Rounds, Z: torch.Tensor) -> float:
    """lambda_cons in the units of the first embedding."""
    given = settings.lambda_cons
    return default_lambda_cons(Z) if isinstance(given, str) else float(given)
