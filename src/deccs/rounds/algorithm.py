"""Algorithm 1 of the paper: round after round, until the members agree.

One round: sample -> embed -> cluster -> classify -> agree -> update.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from deccs.clock import Clock
from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.members.agreement import average_agreement, member_weights, pairwise_agreement
from deccs.members.default import Member
from deccs.members.running import MemberWarning, TooFewMembers, cluster
from deccs.network.autoencoder import Autoencoder, encode
from deccs.network.device import threads_for
from deccs.rounds.classifiers import Classifiers, classify
from deccs.rounds.losses import ramp_up
from deccs.rounds.records import Clustered, Consensus, Round
from deccs.rounds.update import update
from deccs.rules import consensus_strength, default_sample_size
from deccs.seeds import generator_for, seed_for, torch_seeded
from deccs.settings import RoundSettings
from deccs.storage import NO_CHECKPOINT, Checkpoint


def learn_consensus(
    autoencoder: Autoencoder,
    rows: Rows,
    members: Sequence[Member],
    settings: RoundSettings,
    root: int,
    on_round: Callable[[Round], None] = lambda finished: None,
    start: int = 0,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Consensus:
    """Algorithm 1: cluster, update, cluster, ... ; ``autoencoder`` itself is not changed.

    From a ``checkpoint`` it goes on after the last round that was saved.
    """
    autoencoder = copy.deepcopy(autoencoder)
    rounds: list[Round] = []
    best: Consensus | None = None
    lambda_cons = 0.0
    saved = checkpoint.load("rounds")
    if saved:
        rounds, lambda_cons = saved["rounds"], saved["lambda_cons"]
        autoencoder.load_state_dict(saved["best"])
        best = Consensus(
            copy.deepcopy(autoencoder), saved["classifiers"], saved["best_round"], [*rounds]
        )
        autoencoder.load_state_dict(saved["weights"])
    for number in range(len(rounds), settings.n_rounds + 1):
        if rounds and rounds[-1].losses is None:  # no update has followed: the members are stable
            break
        seed = seed_for(root, "round", number)
        clock = Clock()
        try:
            this, classifiers, clustered = open_round(
                autoencoder, rows, members, settings, seed, clock
            )
        except TooFewMembers as error:
            if best is None:
                raise
            warnings.warn(
                f"The rounds end before round {number}: {error}", MemberWarning, stacklevel=2
            )
            break
        this = replace(this, number=number, start=start)
        if (
            best is None or this.standing >= best.standing
        ):  # of two alike the later: its clusters are more compact
            best = Consensus(
                copy.deepcopy(autoencoder), copy.deepcopy(classifiers), number, [*rounds, this]
            )
        if number == 0:
            lambda_cons = consensus_strength(settings.lambda_cons, clustered.Z)

        stable = number > 0 and is_stable(rounds[-1].agreement, this.agreement, settings.tolerance)
        if not stable and number < settings.n_rounds:
            weight = lambda_cons * (ramp_up(number, settings.n_rounds) if settings.ramp_up else 1.0)
            this = replace(this, consensus_weight=weight)
            with torch_seeded(seed, "update"), threads_for(autoencoder, settings.batch_size):
                losses = update(autoencoder, classifiers, rows, clustered, this, settings, seed)
            clock.lap("update")
            this = replace(this, losses=losses)
        rounds.append(this)
        checkpoint.save(
            "rounds",
            {
                "weights": autoencoder.state_dict(),
                "rounds": rounds,
                "lambda_cons": lambda_cons,
                "best": best.autoencoder.state_dict(),
                "classifiers": best.classifiers,
                "best_round": best.best_round,
            },
        )
        on_round(this)
    assert best is not None
    return replace(best, rounds=rounds)


def open_round(
    autoencoder: Autoencoder,
    rows: Rows,
    members: Sequence[Member],
    settings: RoundSettings,
    seed: int,
    clock: Clock,
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
        standardise=settings.standardise,
        min_cluster_size=settings.min_cluster_size,
        n_jobs=settings.n_jobs,
    )
    clock.lap("cluster")
    labels = torch.from_numpy(partitions.labels.T.copy())  # (n_sample, n_members)
    train, held_out = split_sample(
        partitions.labels, settings.held_out, generator_for(seed, "split")
    )
    classifiers = classify(Z, labels, train, held_out, generator_for(seed, "classify"))
    clock.lap("classify")
    agreement_matrix = pairwise_agreement(partitions.labels)  # (n_members, n_members)
    this = Round(
        0,
        sample.numpy(),
        Z.numpy(),
        partitions.names,
        partitions.labels,
        agreement_matrix,
        average_agreement(agreement_matrix),
        member_weights(agreement_matrix, settings.weight_power),
        seconds=clock.laps,
    )
    return this, classifiers, Clustered(sample, Z, labels, train, held_out)


FULL = 0.999  # members that agree so far have nothing left to agree on


def is_stable(before: float, now: float, tolerance: float | None) -> bool:
    """The paper's stop rule, |a(t) - a(t-1)| < tau; and full agreement twice in a row.

    >>> is_stable(0.80, 0.81, tolerance=0.02), is_stable(0.80, 0.81, tolerance=None), is_stable(1.0, 1.0, None)
    (True, False, True)
    """
    return min(before, now) >= FULL or (tolerance is not None and abs(now - before) < tolerance)


def draw_sample(n_points: int, sample_size: int | float | str, seed: int) -> torch.Tensor:
    """Row numbers of a new sample, without replacement, in order."""
    if isinstance(sample_size, str):
        size = default_sample_size(n_points)
    elif isinstance(sample_size, float):
        size = max(2, round(sample_size * n_points))
    else:
        size = min(int(sample_size), n_points)
    return draw_rows(n_points, size, generator_for(seed, "sample"))


def split_sample(
    base_partitions: np.ndarray, share: float, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Places in the sample to train on and to hold out.

    A cluster missing on one side has its points on both: a classifier cannot learn what it
    never sees, nor be judged on it.
    """
    n_sample = base_partitions.shape[1]
    order = torch.randperm(n_sample, generator=generator)
    is_held = np.zeros(n_sample, dtype=bool)
    is_held[order[: int(share * n_sample)].numpy()] = True
    in_train, in_held = ~is_held, is_held.copy()
    for partition in base_partitions:
        sizes = np.bincount(partition[partition >= 0])
        for side in (~is_held, is_held):
            there = np.bincount(partition[side & (partition >= 0)], minlength=len(sizes))
            missing = np.isin(partition, np.flatnonzero(there == 0))
            in_train |= missing
            in_held |= missing
    return torch.from_numpy(np.flatnonzero(in_train)), torch.from_numpy(np.flatnonzero(in_held))
