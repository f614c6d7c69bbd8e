"""What each of several processes runs: ``torchrun ... -m deccs_paper.scale.program TASK OUT {"name": value}``.

The first process writes what was measured to OUT, as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

import deccs
from deccs import datasets, scores
from deccs.base import Fit
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.events import NOBODY, Callback, Progress
from deccs.group.group import ALONE, Group
from deccs.group.joining import is_launched
from deccs.network.autoencoder import Autoencoder
from deccs.rules import default_budget
from deccs.settings import Pretraining, Rounds
from deccs.storage import NO_CHECKPOINT
from deccs.training.pretraining import pretrain
from deccs_paper.scale.moons import N_COLUMNS, N_PAIRS, batches
from deccs_paper.settings import LARGE

REPEATS = 3
KILLED = 1  # rank of the process that is killed


def quality(_group: Group, dataset: str, seed: int) -> dict[str, Any]:
    """A fit with default settings of a data set with known classes."""
    data = datasets.load(dataset)
    start = time.perf_counter()
    model = deccs.DECCS(data.k, random_state=seed).fit(data.X)
    return {
        "rows": data.n,
        "nmi": round(scores.nmi(data.y, model.labels_), 4),
        "seconds": round(time.perf_counter() - start, 1),
    }


def pretraining(group: Group, rows: int, columns: int, batch: int, steps: int) -> dict[str, Any]:
    """Rows a second of pretraining in memory, best of three: the network of DECCS, or the paper's for images."""
    X = first_rows(rows, columns)
    layers = (
        default_budget(rows, columns, False)["network__layers"] if columns == N_COLUMNS else LARGE
    )
    source = source_of(X)
    fit = Fit(source, source, fit_scaler(source, None), 0, NOBODY, NO_CHECKPOINT, group)
    settings = Pretraining(n_steps=steps, batch_size=batch)
    seconds = []
    for _ in range(REPEATS):
        network = Autoencoder.feed_forward(columns, layers)
        seen = fit.rows()
        group.each(int)  # all begin together
        start = time.perf_counter()
        group.lead(lambda network=network, seen=seen: pretrain(network, seen, settings, 0), fit)  # type: ignore[misc]
        seconds.append(time.perf_counter() - start)
    return {
        "layers": list(layers),
        "seconds": round(min(seconds), 2),
        "rows_per_second": round(steps * batch / min(seconds)),
    }


def first_rows(n_rows: int, n_columns: int) -> np.ndarray:
    """(n_rows, n_columns) the first rows of the tables of moons; of another width, noise."""
    if n_columns == N_COLUMNS:
        return np.concatenate([block for block, _ in batches(n_rows, seed=0)])
    return np.random.default_rng(0).standard_normal((n_rows, n_columns), dtype=np.float32)


class Murder(Callback):
    """Kills another process in the middle of pretraining, and writes down when."""

    def __init__(self, pid: int, after: int, note: Path) -> None:
        self.pid, self.after, self.note = pid, after, note

    def on_progress(self, progress: Progress) -> None:
        if progress.stage == "pretraining" and progress.step >= self.after:
            self.note.write_text(str(time.time()))
            os.kill(self.pid, signal.SIGKILL)
            self.after = sys.maxsize


def resumable(
    group: Group, rows: int, steps: int, checkpoint: str | None, kill_after: int | None
) -> dict[str, Any]:
    """A fit that can resume; a digest of its labels, and the warnings on the way."""
    pids = group.each(os.getpid)
    callbacks = []
    if kill_after is not None and group.is_first:
        callbacks.append(Murder(pids[KILLED], kill_after, Path(f"{checkpoint}.killed")))
    model = deccs.DECCS(
        2 * N_PAIRS,
        pretraining=Pretraining(n_steps=steps),
        rounds=Rounds(n_rounds=1, n_init=1, n_steps=20),
        random_state=0,
        checkpoint=checkpoint,
        callbacks=callbacks,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(first_rows(rows, N_COLUMNS))
    weights = [tensor.numpy().tobytes() for tensor in model.autoencoder_.state_dict().values()]
    digest = hashlib.sha256(b"".join([model.labels_.tobytes(), *weights])).hexdigest()
    words = [str(one.message) for one in caught if "checkpoint" in str(one.message)]
    return {"digest": digest[:16], "warnings": words}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "quality": quality,
    "pretraining": pretraining,
    "resumable": resumable,
}


def main() -> None:
    task, out, options = sys.argv[1:]
    with deccs.distributed() if is_launched() else nullcontext(ALONE) as group:
        result = TASKS[task](group, **json.loads(options))
        if group.is_first:
            facts = {"threads": torch.get_num_threads(), **result}
            Path(out).write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
