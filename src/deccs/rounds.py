"""Algorithm 1 of the paper: round after round, until the members agree.

One round: sample -> embed -> cluster -> classify -> agree -> update.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from deccs.agreement import average_agreement, member_weights, pairwise_agreement
from deccs.autoencoder import Autoencoder, encode
from deccs.classifiers import Classifiers, classify
from deccs.clock import Clock
from deccs.ensemble import Member, MemberWarning, TooFewMembers, cluster, neighbour_graph, normalised_cut
from deccs.files import NO_CHECKPOINT, Checkpoint, stored
from deccs.losses import LossParts, cluster_centres, ramp_up
from deccs.objective import Objective
from deccs.rows import Rows, blocks, draw_rows
from deccs.seeds import generator_for, seed_for, torch_seeded
from deccs.training import Best, endless_batches, threads_for


@dataclass(frozen=True)
class RoundSettings:
    """What the paper leaves to the user. One set for all data."""

    n_rounds: int = 10                   # T; 0 is the plain autoencoder with its ensemble
    tolerance: float | None = None       # tau: stop when the agreement changes by less; None: stop at full agreement
    sample_size: int | float | str = "auto"
    n_steps: int | str = "auto"          # ITER
    batch_size: int = 128                # of clustered points, and as many unclustered ones
    learning_rate: float = 0.03
    learning_rate_decay: float = 0.9     # per round
    lambda_cons: float | str = "auto"
    lambda_rec: float | str = "auto"     # 1 in the paper, 0 in its second variant
    lambda_ce: float = 1.0               # 0 only for the ablation
    weight_power: float = 10.0           # of lambda_i, 1 in the authors' program
    centre: str = "mean"                 # or "median"
    moving_centres: bool = True          # the authors' program; the paper's text holds them fixed
    use_unclustered: bool = True         # first heuristic: predicted labels of the points outside the sample
    weight_by_probability: bool = True   # second heuristic
    ramp_up: bool = True                 # third heuristic
    rec_by_disagreement: bool = True     # reconstruction times (1 - agreement): the authors' program
    held_out: float = 0.1                # share of the sample that only decides when to stop
    patience: int = 3                    # checks of the held-out loss without a better one
    standardise: bool = False            # each dimension of the embedding by itself, before the members see it
    min_cluster_size: int = 6            # smaller clusters take no part in their round
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if self.centre not in ("mean", "median"):
            raise ValueError(f"centre must be 'mean' or 'median', got {self.centre!r}.")
        for name in ("lambda_cons", "lambda_rec", "lambda_ce", "weight_power", "learning_rate", "learning_rate_decay"):
            value = getattr(self, name)
            may_be_auto = name in ("lambda_cons", "lambda_rec")
            if not (may_be_auto and value == "auto") and (not isinstance(value, int | float) or not value >= 0):
                wanted = "a number of at least 0" + (" or 'auto'" if may_be_auto else "")
                raise ValueError(f"{name} must be {wanted}, got {value!r}.")
        if self.tolerance is not None and not isinstance(self.tolerance, int | float):
            raise ValueError(f"tolerance must be a number or None, got {self.tolerance!r}.")
        size = self.sample_size
        share = isinstance(size, float) and 0 < size <= 1
        number = isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 2
        if not (size == "auto" or share or number):
            raise ValueError(f"sample_size must be 'auto', a share in (0, 1] or a number of points, got {size!r}.")


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

    sample: torch.Tensor                 # (n_sample,) row numbers
    Z: torch.Tensor                      # (n_sample, n_latent) as it was when they were asked
    labels: torch.Tensor                 # (n_sample, n_members)
    train: torch.Tensor                  # places in the sample that are learned from
    held_out: torch.Tensor               # ... and that decide when to stop

    def part(self, places: torch.Tensor, device: torch.device) -> Clustered:
        return replace(self, sample=self.sample[places], Z=self.Z[places].to(device),
                       labels=self.labels[places].to(device))


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
        best = Consensus(copy.deepcopy(autoencoder), saved["classifiers"], saved["best_round"], [*rounds])
        autoencoder.load_state_dict(saved["weights"])
    for number in range(len(rounds), settings.n_rounds + 1):
        if rounds and rounds[-1].losses is None:  # no update has followed: the members are stable
            break
        seed = seed_for(root, "round", number)
        clock = Clock()
        try:
            this, classifiers, clustered = open_round(autoencoder, rows, members, settings, seed, clock)
        except TooFewMembers as error:
            if best is None:
                raise
            warnings.warn(f"The rounds end before round {number}: {error}", MemberWarning, stacklevel=2)
            break
        this = replace(this, number=number, start=start)
        if best is None or this.standing >= best.standing:  # of two alike the later: its clusters are more compact
            best = Consensus(copy.deepcopy(autoencoder), copy.deepcopy(classifiers), number, [*rounds, this])
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
        checkpoint.save("rounds", {
            "weights": autoencoder.state_dict(), "rounds": rounds, "lambda_cons": lambda_cons,
            "best": best.autoencoder.state_dict(), "classifiers": best.classifiers, "best_round": best.best_round,
        })
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
    sample = draw_sample(len(rows), settings.sample_size, seed)                 # (n_sample,)
    Z = encode(autoencoder, rows, sample)                                       # (n_sample, n_latent)
    clock.lap("embed")
    partitions = cluster(members, Z.numpy(), sample.numpy(), seed, standardise=settings.standardise,
                         min_cluster_size=settings.min_cluster_size, n_jobs=settings.n_jobs)
    clock.lap("cluster")
    labels = torch.from_numpy(partitions.labels.T.copy())                       # (n_sample, n_members)
    train, held_out = split_sample(partitions.labels, settings.held_out, generator_for(seed, "split"))
    classifiers = classify(Z, labels, train, held_out, generator_for(seed, "classify"))
    clock.lap("classify")
    agreement_matrix = pairwise_agreement(partitions.labels)                    # (n_members, n_members)
    this = Round(0, sample.numpy(), Z.numpy(), partitions.names, partitions.labels, agreement_matrix,
                 average_agreement(agreement_matrix), member_weights(agreement_matrix, settings.weight_power),
                 seconds=clock.laps)
    return this, classifiers, Clustered(sample, Z, labels, train, held_out)


FULL = 0.999         # members that agree so far have nothing left to agree on
ALIKE = 0.05         # starts whose agreement differs by less are judged by the neighbours they cut apart
CLEAN = 0.01         # a share of neighbours cut apart that no other start need improve on
MOST_JUDGED = 5_000  # points whose neighbours judge the starts


def is_stable(before: float, now: float, tolerance: float | None) -> bool:
    """The paper's stop rule, |a(t) - a(t-1)| < tau; and full agreement twice in a row.

    >>> is_stable(0.80, 0.81, tolerance=0.02), is_stable(0.80, 0.81, tolerance=None), is_stable(1.0, 1.0, None)
    (True, False, True)
    """
    return min(before, now) >= FULL or (tolerance is not None and abs(now - before) < tolerance)


def default_restarts(n_points: int) -> int:
    """How often the rounds may start anew: where they cost seconds, a bad start need not be kept.

    >>> default_restarts(552), default_restarts(70_000)
    (4, 1)
    """
    return 4 if n_points <= 2_000 else 1


def best_of_restarts(
    autoencoder: Autoencoder,
    rows: Rows,
    members: Sequence[Member],
    settings: RoundSettings,
    root: int,
    n_init: int | str = "auto",
    on_round: Callable[[Round], None] = lambda finished: None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Consensus:
    """Of the starts that agree about alike, the one that cuts the fewest neighbours apart.

    Agreement alone does not tell: members can agree fully on a wrong split. So the labels of each start are held
    against the nearest neighbours in the embedding before the rounds, which no start has changed. Full agreement
    that leaves nearly all neighbours together ends the search.
    """
    starts: list[tuple[Consensus, float]] = []
    n_starts = default_restarts(len(rows)) if n_init == "auto" else int(n_init)
    some = draw_rows(len(rows), MOST_JUDGED, generator_for(root, "judged"))
    graph = neighbour_graph(encode(autoencoder, rows, some).double().numpy()) if n_starts > 1 else None
    for start in range(n_starts):
        seed = root if start == 0 else seed_for(root, "start", start)
        found = learn_consensus(
            autoencoder, rows, members, settings, seed, on_round, start, checkpoint.at("start", start))
        cut = 0.0 if graph is None else normalised_cut(graph, labels_of(found, rows, some))
        starts.append((found, cut))
        if settings.n_rounds == 0 or (found.agreement >= FULL and cut < CLEAN):
            break
    n_members, agreement = max(found.standing for found, _ in starts)
    alike = [(found, cut) for found, cut in starts
             if found.standing[0] == n_members and found.agreement >= agreement - ALIKE]
    return min(alike, key=lambda pair: pair[1])[0]


@torch.no_grad()
def labels_of(found: Consensus, rows: Rows, some: torch.Tensor) -> np.ndarray:
    """What the first member's classifier says of some rows."""
    Z = encode(found.autoencoder, rows, some)
    return found.classifiers.cpu()(Z)[:, 0].argmax(1).numpy()


def default_sample_size(n_points: int) -> int:
    """The paper's: half of the points up to 11,000, else 8 %; at least 256 if there are as many.

    Above 11,000 never fewer than at 11,000: 8 % of them would be 880, and samples that small cost up to 0.15 of NMI
    (``deccs reproduce study-sample-size``). At most 10,000, because single linkage holds all pairs of the sample:
    0.4 GB there.

    >>> default_sample_size(9_298), default_sample_size(70_000), default_sample_size(150)
    (4649, 5600, 150)
    >>> default_sample_size(16_284), default_sample_size(1_000_000)
    (5500, 10000)
    """
    size = n_points // 2 if n_points <= 11_000 else max(5_500, int(0.08 * n_points))
    return min(n_points, max(size, 256), 10_000)


def default_steps(n_points: int) -> int:
    """Steps of an update: few for the large network, more for the small ones, whose steps cost next to nothing.

    >>> default_steps(70_000), default_steps(552)
    (120, 400)
    """
    return 120 if n_points > 2_000 else 400


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


def consensus_strength(lambda_cons: float | str, Z: torch.Tensor) -> float:
    """lambda_cons in the units of this embedding."""
    if not isinstance(lambda_cons, str):
        return float(lambda_cons)
    return 1.0 / max(float(Z.var(0).mean()), 0.01)


def default_lambda_rec(n_points: int) -> float:
    """The paper's 1; 10 up to 2,000 points, which a network can move at will and soon agree on wrongly.

    >>> default_lambda_rec(70_000), default_lambda_rec(552)
    (1.0, 10.0)
    """
    return 1.0 if n_points > 2_000 else 10.0


def objective_of(this: Round, settings: RoundSettings, rows: Rows) -> Objective:
    lambda_rec = default_lambda_rec(len(rows)) if isinstance(settings.lambda_rec, str) else settings.lambda_rec
    # A little reconstruction always stays: with none at full agreement nothing keeps Z invertible.
    rec_weight = lambda_rec * (max(1 - this.agreement, 0.01) if settings.rec_by_disagreement else 1.0)
    weights = torch.from_numpy(this.weights).float().to(rows.device) / len(this.weights)
    return Objective(weights, settings.lambda_ce, this.consensus_weight, rec_weight, settings.weight_by_probability,
                     settings.centre if settings.moving_centres else None)


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
    train, held_out = (clustered.part(places, rows.device) for places in (clustered.train, clustered.held_out))
    first_centres, _ = cluster_centres(train.Z, train.labels, classifiers.weight.shape[1], settings.centre)
    centres = first_centres
    unclustered = np.setdiff1d(np.arange(len(rows)), this.sample, assume_unique=True)
    if not settings.use_unclustered:
        unclustered = unclustered[:0]
    batches = endless_batches(torch.arange(len(train.sample)), settings.batch_size, generator_for(seed, "clustered"))
    other_batches = endless_batches(
        torch.from_numpy(unclustered), settings.batch_size, generator_for(seed, "unclustered"))

    parameters = [*autoencoder.parameters(), *classifiers.parameters()]
    # A heavy consensus loss makes long gradients: the rate shortens with it, and one rate fits all lambda_cons.
    rate = settings.learning_rate * settings.learning_rate_decay**this.number / (1 + this.consensus_weight)
    optimiser = torch.optim.SGD(parameters, lr=rate, momentum=0.9, fused=True)
    best = Best(autoencoder, classifiers)
    max_steps = default_steps(len(rows)) if settings.n_steps == "auto" else int(settings.n_steps)
    check_every = max(1, min(50, max_steps // 4))
    totals, n_steps, halvings = torch.zeros(4, device=rows.device), 0, 0
    too_much = 10 * held_out_loss(objective, autoencoder, classifiers, rows, held_out, centres) + 10

    autoencoder.train()
    for step in range(1, max_steps + 1):
        batch = next(batches)
        x, y = rows[train.sample[batch]], train.labels[batch]                  # (batch, n_features), (batch, n_members)
        if len(unclustered):
            x = torch.cat([x, rows[next(other_batches)]])                      # (2 batch, n_features)
        centres, terms = objective.gradients(autoencoder, classifiers, x, y, centres)
        optimiser.step()
        totals += terms
        n_steps += 1

        if step % check_every == 0 or step == max_steps:
            lost = not math.isfinite(totals[3])
            value = math.nan if lost else held_out_loss(objective, autoencoder, classifiers, rows, held_out, centres)
            autoencoder.train()
            if not value < too_much:  # exploded, or not even a number
                halvings, n_steps, totals = halvings + 1, 0, torch.zeros_like(totals)
                best.restore()
                optimiser = torch.optim.SGD(parameters, lr=rate * 0.5**halvings, momentum=0.9, fused=True)
                centres = first_centres
            elif not best.offer(value) and best.age >= settings.patience:
                break
            if halvings > 10:
                break
    best.restore()
    return LossParts(*(totals / n_steps).tolist())  # NaN if no step was good


@torch.no_grad()
def held_out_loss(
    objective: Objective, autoencoder: Autoencoder, classifiers: Classifiers, rows: Rows,
    held_out: Clustered, centres: torch.Tensor,
) -> float:
    """The objective on clustered points that take no part in the update."""
    autoencoder.eval()
    total = 0.0
    for block in blocks(len(held_out.sample), 1024):
        x, y = rows[held_out.sample[block]], held_out.labels[block]
        z = autoencoder.encoder(x)
        total += float(objective(autoencoder, classifiers(z), x, z, y, centres)[3]) * len(x)
    return total / len(held_out.sample)
