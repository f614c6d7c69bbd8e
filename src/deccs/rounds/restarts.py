"""Several starts of the rounds, and which one to keep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.events import NOBODY, Listeners
from deccs.members.asking import ONE_BY_ONE, Jobs
from deccs.members.default import Member
from deccs.members.neighbors import neighbor_graph, normalized_cut
from deccs.network.autoencoder import Autoencoder, encode
from deccs.rounds.algorithm import FULL, learn_consensus
from deccs.rounds.look import Look
from deccs.rounds.records import Consensus
from deccs.rules import default_restarts
from deccs.seeds import generator_for, seed_for
from deccs.settings import Rounds
from deccs.storage import NO_CHECKPOINT, Checkpoint

ALIKE = 0.05  # starts whose agreement differs by less are judged by the neighbors they separate
CLEAN = 0.01  # a share of separated neighbors that no other start need improve on
MOST_JUDGED = 5_000  # points whose neighbors judge the starts


def best_of_starts(
    autoencoder: Autoencoder,
    rows: Rows,
    members: Sequence[Member],
    settings: Rounds,
    root: int,
    *,
    look: Look | None = None,
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
    n_starts = int(settings.n_init) if settings.n_init != "auto" else 1
    if settings.n_init == "auto" and look is None:
        n_starts = default_restarts(len(rows))
    neighbors = FirstNeighbors(autoencoder, rows, root) if n_starts > 1 and look is None else None
    candidates: list[tuple[Consensus, float]] = []
    for start in range(n_starts):
        consensus = learn_consensus(
            autoencoder,
            rows,
            members,
            settings,
            root if start == 0 else seed_for(root, "start", start),
            start=start,
            look=look,
            jobs=jobs,
            listeners=listeners,
            checkpoint=checkpoint.at("start", start),
        )
        cut = 0.0 if neighbors is None else neighbors(consensus)
        candidates.append((consensus, cut))
        clean = consensus.agreement >= FULL and cut < CLEAN
        if clean or settings.n_rounds == 0 or listeners.stopped:
            break
    if look is not None:
        return max((consensus for consensus, _ in candidates), key=lambda start: start.rank)
    n_members, agreement = max(consensus.rank for consensus, _ in candidates)
    alike = [
        (consensus, cut)
        for consensus, cut in candidates
        if consensus.rank[0] == n_members and consensus.agreement >= agreement - ALIKE
    ]
    return min(alike, key=lambda pair: pair[1])[0]


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
