"""Several starts of the rounds, and which one to keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.data.source import ArrayRows
from deccs.events import NOBODY, Listeners
from deccs.group.group import ALONE
from deccs.members.asking import ONE_BY_ONE, Jobs
from deccs.members.default import Member
from deccs.members.neighbors import neighbor_graph, normalized_cut
from deccs.network.autoencoder import Autoencoder, encode
from deccs.rounds.algorithm import FULL, learn_consensus
from deccs.rounds.look import Look
from deccs.rounds.pairs import Pairs
from deccs.rounds.records import Consensus
from deccs.rules import default_restarts
from deccs.seeds import generator_for, seed_for
from deccs.settings import Rounds
from deccs.spreading import Outcome, n_places, outcome_of, spread
from deccs.storage import NO_CHECKPOINT, Checkpoint

ALIKE = 0.05  # starts whose agreement differs by less are judged by the neighbors they separate
CLEAN = 0.01  # a share of separated neighbors that no other start need improve on
MOST_JUDGED = 5_000  # points whose neighbors judge the starts

# What all starts have: the arguments of `run_start` before the number of the start.
Shared = tuple[Autoencoder, Rows, Sequence[Member], Rounds, int, Look | None, Pairs | None, Jobs]


def best_of_starts(
    autoencoder: Autoencoder,
    rows: Rows,
    members: Sequence[Member],
    settings: Rounds,
    root: int,
    *,
    look: Look | None = None,
    pairs: Pairs | None = None,
    jobs: Jobs = ONE_BY_ONE,
    listeners: Listeners = NOBODY,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Consensus:
    """Of several starts the one with the best round by its judge.

    Without views: of the starts with about the same agreement, the one that separates the fewest
    neighbors.

    Agreement alone does not tell: members can agree fully on a wrong split. So the labels of each
    start are compared with the nearest neighbors in the embedding before the rounds, which no start
    has changed. Full agreement that leaves nearly all neighbors together ends the search.
    """
    n_starts = number_of_starts(settings, len(rows), look)
    neighbors = FirstNeighbors(autoencoder, rows, root) if n_starts > 1 and look is None else None
    shared = (autoencoder, rows, members, settings, root, look, pairs, jobs)
    can_spread = n_starts > 1 and not listeners.stopped and can_be_sent(rows, jobs)
    is_spread = can_spread and max(n_places(), jobs.group.size) > 1
    run = spread_starts if is_spread else starts_in_turn
    finished: list[tuple[Consensus, float]] = []
    for consensus in run(shared, n_starts, listeners, checkpoint):
        cut = 0.0 if neighbors is None else neighbors(consensus)
        finished.append((consensus, cut))
        if is_clean(consensus, cut) or listeners.stopped:
            break
    return chosen(finished, has_views=look is not None)


def number_of_starts(settings: Rounds, n_rows: int, look: Look | None) -> int:
    """One without rounds, which are all that starts differ in."""
    if settings.n_rounds == 0:
        return 1
    if settings.n_init != "auto":
        return int(settings.n_init)
    return default_restarts(n_rows) if look is None else 1


def run_start(
    autoencoder: Autoencoder,
    rows: Rows,
    members: Sequence[Member],
    settings: Rounds,
    root: int,
    look: Look | None,
    pairs: Pairs | None,
    jobs: Jobs,
    start: int,
    *,
    listeners: Listeners = NOBODY,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Consensus:
    """The rounds with the seed of one start; all it needs can be sent to another process."""
    return learn_consensus(
        autoencoder,
        rows,
        members,
        settings,
        root if start == 0 else seed_for(root, "start", start),
        start=start,
        look=look,
        pairs=pairs,
        jobs=jobs,
        listeners=listeners,
        checkpoint=checkpoint,
    )


def is_clean(consensus: Consensus, cut: float) -> bool:
    """Whether no other start need be run."""
    return consensus.agreement >= FULL and cut < CLEAN


def chosen(finished: Sequence[tuple[Consensus, float]], *, has_views: bool) -> Consensus:
    """Which of the starts to keep, from each with the share of neighbors it separates, in order."""
    if has_views:
        return max((consensus for consensus, _ in finished), key=lambda start: start.rank)
    n_members, agreement = max(consensus.rank for consensus, _ in finished)
    alike = [
        (consensus, cut)
        for consensus, cut in finished
        if consensus.rank[0] == n_members and consensus.agreement >= agreement - ALIKE
    ]
    return min(alike, key=lambda pair: pair[1])[0]


def starts_in_turn(
    shared: Shared, n_starts: int, listeners: Listeners, checkpoint: Checkpoint
) -> Iterator[Consensus]:
    """Each start is run when it is asked for."""
    for start in range(n_starts):
        place = checkpoint.at("start", start)
        yield run_start(*shared, start, listeners=listeners, checkpoint=place)


def spread_starts(
    shared: Shared, n_starts: int, listeners: Listeners, checkpoint: Checkpoint
) -> Iterator[Consensus]:
    """The same starts, as many at a time as there are places.

    A start elsewhere can reach neither callbacks nor the folder of the checkpoint. Both get what it
    has done when it is back. One that a checkpoint knows goes on in this process.
    """
    size = max(n_places(), shared[-1].group.size)
    for first in range(0, n_starts, size):
        wave = range(first, min(first + size, n_starts))
        begun = [start for start in wave if has_begun(checkpoint.at("start", start))]
        rest = [start for start in wave if start not in begun]
        made = dict(zip(rest, outcomes(shared, rest), strict=True))
        for start in wave:
            place = checkpoint.at("start", start)
            if start in begun:
                yield run_start(*shared, start, listeners=listeners, checkpoint=place)
                continue
            consensus, state = made[start].result()
            place.save("rounds", state)
            for round_ in consensus.rounds:
                listeners.tell("on_round", round_)
            yield consensus


def outcomes(shared: Shared, starts: Sequence[int]) -> list[Outcome]:
    """What becomes of starts in the processes of a group, or else in the jobs of joblib."""
    autoencoder, rows, *others, jobs = shared
    if jobs.group.size == 1:
        return spread(run_elsewhere, shared, [(start,) for start in starts])
    sent = (autoencoder, rows.facts, *others, replace(jobs, group=ALONE))
    items = [(*sent, start) for start in starts]
    return jobs.group.deal(run_share, items, SimpleNamespace(rows_of=lambda _: rows))


def run_share(items: Sequence[tuple[Any, ...]], fit: Any) -> list[Outcome]:
    """What one process of a group does of the starts; ``fit`` has the rows."""
    return [
        outcome_of(run_elsewhere, (autoencoder, fit.rows_of(facts), *others))
        for autoencoder, facts, *others in items
    ]


def run_elsewhere(*arguments: Any) -> tuple[Consensus, dict[str, Any]]:
    """A start, and the state that its checkpoint would have."""
    kept = LastState()
    consensus = run_start(*arguments, checkpoint=kept)
    return consensus, kept.state


class LastState(Checkpoint):
    """A checkpoint in memory."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def save(self, name: str, state: Mapping[str, Any]) -> None:
        self.state = dict(state)


def has_begun(checkpoint: Checkpoint) -> bool:
    return checkpoint.restore("rounds", lambda state: True) is not None


def can_be_sent(rows: Rows, jobs: Jobs) -> bool:
    """Whether a start can run elsewhere.

    A file or a GPU of this machine need not be there, and a member with a limit of time needs a
    process of its own, which workers of a cluster may not start.
    """
    return type(rows.source) is ArrayRows and rows.device.type == "cpu" and jobs.timeout is None


class FirstNeighbors:
    """The share of nearest neighbors in the first embedding that a result separates."""

    def __init__(self, autoencoder: Autoencoder, rows: Rows, root: int) -> None:
        self.rows = rows
        self.judged = draw_rows(len(rows), MOST_JUDGED, generator_for(root, "judged"))
        self.graph = neighbor_graph(encode(autoencoder, rows, self.judged).double().numpy())

    def __call__(self, consensus: Consensus) -> float:
        return normalized_cut(self.graph, labels_of(consensus, self.rows, self.judged))


@torch.no_grad()
def labels_of(consensus: Consensus, rows: Rows, index: torch.Tensor) -> np.ndarray:
    """Labels of some rows by the first member's classifier."""
    Z = encode(consensus.autoencoder, rows, index)
    return consensus.classifiers.cpu()(Z)[:, 0].argmax(1).numpy()
