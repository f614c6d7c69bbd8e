"""One run: data set, method, seed -> record. Each in a process of its own, so that its memory is its own."""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file, save_file

from deccs import datasets, scores
from deccs.autoencoder import Autoencoder
from deccs.benchmark import records
from deccs.benchmark.settings import METHODS, RECIPE
from deccs.estimator import DECCS
from deccs.rounds import Round
from deccs.rows import Rows, fit_scaler
from deccs.seeds import root_seed, seed_for
from deccs.training import Pretraining, initial_autoencoder, pretrain

ROOT = 2022  # the seeds of all experiments hang on this, the data set and the repetition


@dataclass(frozen=True)
class Run:
    """The place of a run in an experiment."""

    experiment: str
    method: str
    dataset: str
    repetition: int
    changes: dict[str, Any]

    @property
    def seed(self) -> int:
        return seed_for(ROOT, self.dataset, self.repetition)

    def estimator(self) -> DECCS:
        return METHODS[self.method](self.dataset, random_state=self.seed, **self.changes)


def place(run: Run) -> records.Record:
    return {"experiment": run.experiment, "method": run.method, "dataset": run.dataset,
            "repetition": run.repetition, "seed": run.seed}


def header(run: Run, sha256: str) -> records.Record:
    """What identifies a run."""
    return place(run) | {"dataset_sha256": sha256, "settings": settings_record(run.estimator())}


def settings_record(model: DECCS) -> dict[str, Any]:
    """All parameters of the estimator as plain JSON."""
    silent = ("verbose", "callbacks", "n_jobs", "device", "random_state", "autoencoder")
    given = {name: value for name, value in model.get_params(deep=False).items() if name not in silent}
    given["recipe"] = RECIPE
    given["pretraining"] = asdict(model.pretraining or Pretraining())
    given["members"] = None if model.members is None else [[name, repr(member)] for name, member in model.members]
    return given


def carry_out(run: Run, cache: Path | None) -> records.Record:
    """Run and score; whatever goes wrong becomes a record with its status."""
    started = time.time()
    record = place(run) | {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)), "code": records.code_version()}
    try:
        data = datasets.load(run.dataset)
        record |= header(run, data.sha256) | {"n": data.n, "d": data.d, "k": data.k}
        record |= fit_and_score(run.estimator(), data, cache, run.seed) | {"status": "ok"}
    except Exception as error:
        record |= {"status": "failed", "error": f"{type(error).__name__}: {error}",
                   "traceback": traceback.format_exc()}
    return record | {
        "wall_seconds": round(time.time() - started, 1), "peak_memory_mb": records.peak_memory_mb(),
        "versions": records.versions(), "machine": records.machine(),
    }


def fit_and_score(model: DECCS, data: datasets.Dataset, cache: Path | None, seed: int) -> records.Record:
    autoencoder, pretraining = pretrained(model, data, cache, seed)
    start = time.perf_counter()
    all_rounds: list[Round] = []  # those of starts that were not kept cost time, too
    model.set_params(autoencoder=autoencoder, callbacks=[all_rounds.append]).fit(data.X)
    fit_seconds = time.perf_counter() - start
    phases: dict[str, float] = {}
    for finished in all_rounds:
        for phase, seconds in finished.seconds.items():
            phases[phase] = round(phases.get(phase, 0.0) + seconds, 2)
    return {
        "scores": scores.against_truth(data.y, model.labels_) | {"agreement": model.agreement_},
        "members": members_against_truth(model, data),
        "best_round": model.best_round_,
        "label_source": model.label_source_,
        "starts": 1 + all_rounds[-1].start,
        "rounds": [round_record(finished, data.y) for finished in model.rounds_],
        "autoencoder": pretraining,
        "seconds": {"pretrain": pretraining["seconds"], "rounds": round(fit_seconds, 1), **phases,
                    "total": round(pretraining["seconds"] + fit_seconds, 1)},
    }


def members_against_truth(model: DECCS, data: datasets.Dataset) -> dict[str, dict[str, float]]:
    """Scores of each member's labels of all points, in the best round."""
    said = model.members_predict(data.X)
    return {name: scores.against_truth(data.y, labels)
            for name, labels in zip(model.member_names_, said, strict=True)}


def round_record(finished: Round, truth: np.ndarray) -> dict[str, Any]:
    """One round, its members scored on the sample they clustered."""
    return {
        "agreement": finished.agreement, "members": scores.of_members(finished, truth),
        "weights": finished.weights.tolist(),
        "losses": None if finished.losses is None else asdict(finished.losses), "seconds": finished.seconds,
    }


def pretrained(
    model: DECCS, data: datasets.Dataset, cache: Path | None, seed: int
) -> tuple[Autoencoder, dict[str, Any]]:
    """The autoencoder of this data, these settings and this seed: from the cache, or trained and kept there.

    All methods of one comparison so start from the same one, as in the paper.
    """
    settings = model.pretraining or Pretraining()
    rows = Rows(data.X, fit_scaler(data.X, model.scale))
    autoencoder = initial_autoencoder(rows, model.layers, model.dropout, root_seed(seed))
    shapes = [list(parameter.shape) for parameter in autoencoder.parameters()]
    place = json.dumps([RECIPE, data.sha256, rows.scaler.kind, shapes, model.dropout, asdict(settings), seed])
    key = hashlib.sha256(place.encode()).hexdigest()[:16]
    weights = cache / f"{data.name}-{key}.safetensors" if cache else None
    facts = weights.with_suffix(".json") if weights else None
    if weights and facts and facts.exists():
        autoencoder.load_state_dict(load_file(weights))
        autoencoder.pretrained = True
        return autoencoder, json.loads(facts.read_text()) | {"from": "cache"}
    errors: list[float] = []
    start = time.perf_counter()
    pretrain(autoencoder, rows, settings, root_seed(seed), lambda epoch: errors.append(epoch.error))
    about = {"key": key, "seconds": round(time.perf_counter() - start, 1), "epochs": len(errors),
             "held_out_error": min(errors)}
    if weights and facts:
        weights.parent.mkdir(parents=True, exist_ok=True)
        unfinished = weights.with_suffix(f".{os.getpid()}")  # another process may be at the same one
        save_file(autoencoder.state_dict(), unfinished)
        unfinished.replace(weights)
        facts.write_text(json.dumps(about))  # last: the cache counts only with it
    return autoencoder, about | {"from": "training"}


def carry_out_apart(run: Run, cache: Path | None) -> records.Record:
    """:func:`carry_out` in a fresh process; one that dies leaves a record as well."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(carry_out, run, cache).result()
        except Exception as error:
            return place(run) | {"status": "failed", "error": f"the process died: {type(error).__name__}: {error}"}
