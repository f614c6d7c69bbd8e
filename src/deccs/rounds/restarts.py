"""Several starts of the rounds, and which one to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.members.default import Member
from deccs.members.neighbors import neighbour_graph, normalised_cut
from deccs.network.autoencoder import Autoencoder, encode
from deccs.rounds.algorithm import FULL, learn_consensus
from deccs.rounds.records import Consensus, Round
from deccs.rules import default_restarts
from deccs.seeds import generator_for, seed_for
from deccs.settings import RoundSettings
from deccs.storage import NO_CHECKPOINT, Checkpoint

ALIKE = 0.05  # starts whose agreement differs by less are judged by the neighbours they cut apart
CLEAN = 0.01  # a share of neighbours cut apart that no other start need improve on
MOST_JUDGED = 5_000  # points whose neighbours judge the starts


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
    graph = (
        neighbour_graph(encode(autoencoder, rows, some).double().numpy()) if n_starts > 1 else None
    )
    for start in range(n_starts):
        seed = root if start == 0 else seed_for(root, "start", start)
        found = learn_consensus(
            autoencoder,
            rows,
            members,
            settings,
            seed,
            on_round,
            start,
            checkpoint.at("start", start),
        )
        cut = 0.0 if graph is None else normalised_cut(graph, labels_of(found, rows, some))
        starts.append((found, cut))
        if settings.n_rounds == 0 or (found.agreement >= FULL and cut < CLEAN):
            break
    n_members, agreement = max(found.standing for found, _ in starts)
    alike = [
        (found, cut)
        for found, cut in starts
        if found.standing[0] == n_members and found.agreement >= agreement - ALIKE
    ]
    return min(alike, key=lambda pair: pair[1])[0]


@torch.no_grad()
def labels_of(found: Consensus, rows: Rows, some: torch.Tensor) -> np.ndarray:
    """What the first member's classifier says of some rows."""
    Z = encode(found.autoencoder, rows, some)
    return found.classifiers.cpu()(Z)[:, 0].argmax(1).numpy()
