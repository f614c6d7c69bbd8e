"""One run: data set, method, seed -> record."""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from deccs import datasets, scores
from deccs.data.rows import Rows
from deccs.data.scaling import fit_scaler
from deccs.datasets.sources import content_sha256
from deccs.estimator import DECCS
from deccs.network.autoencoder import Autoencoder, encode
from deccs.rounds.records import Round
from deccs.seeds import root_seed, seed_for
from deccs.settings import Pretraining
from deccs.storage.models import versions
from deccs.training.pretraining import pretrain
from deccs.training.start import initial_autoencoder
from deccs_paper import records
from deccs_paper.settings import METHODS, PRETRAINING_RECIPE, RECIPE, TOYS, Method, row_methods

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

    @property
    def how(self) -> Method:
        return METHODS[self.method]

    def estimator(self, **changes: Any) -> Any:
        scale = {"scale": None} if self.how.embedded else {}
        given = {**scale, **self.how.on.get(self.dataset, {}), **self.changes, **changes}
        return self.how.build(self.dataset, random_state=self.seed, **given)

    def parts(self) -> Iterator[tuple[str, Any]]:
        """What gets a record of its own: the method, or each consensus function of an ensemble."""
        for method, function in row_methods(self.method).items():
            yield method, self.estimator(**({"function": function} if function else {}))


def headers(run: Run) -> list[records.Record]:
    """What identifies the records of a run."""
    return [
        {
            "experiment": run.experiment,
            "method": method,
            "dataset": run.dataset,
            "repetition": run.repetition,
            "seed": run.seed,
            "recipe": RECIPE,
            "settings": settings_record(model),
        }
        for method, model in run.parts()
    ]


def load(name: str) -> datasets.Dataset:
    """A data set of the paper, or one that is made."""
    if name not in TOYS:
        return datasets.load(name)
    X, y = datasets.make_nonlinear(random_state=0)
    X = X.astype(np.float32)
    n, d = X.shape
    return datasets.Dataset(name, X, y, n, d, TOYS[name].k, None, "generated", content_sha256(X, y))


def settings_record(model: Any) -> dict[str, Any]:
    """All parameters of the estimator as plain JSON."""
    # what cannot change the result
    silent = (
        "verbose",
        "callbacks",
        "n_jobs",
        "device",
        "random_state",
        "autoencoder",
        "checkpoint",
    )
    given = {
        name: value for name, value in model.get_params(deep=False).items() if name not in silent
    }
    if "pretraining" in given:
        given["pretraining"] = asdict(model.pretraining or Pretraining())
    if given.get("members") is not None:
        given["members"] = [[name, repr(member)] for name, member in model.members]
    return given


def carry_out(run: Run, cache: Path | None) -> list[records.Record]:
    """Run and score; whatever goes wrong becomes a record with its status."""
    started = time.time()
    when = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "code": records.code_version(),
    }
    try:
        data = load(run.dataset)
        score = score_deccs if isinstance(run.estimator(), DECCS) else score_others
        facts = {
            "dataset_sha256": data.sha256,
            "n": data.n,
            "d": data.d,
            "k": data.k,
            "status": "ok",
        }
        found = [
            header | facts | part
            for header, part in zip(headers(run), score(run, data, cache), strict=True)
        ]
    except Exception as error:
        failed = {
            "status": "failed",
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }
        found = [header | failed for header in headers(run)]
    return [
        when
        | record
        | {
            "wall_seconds": round(time.time() - started, 1),
            "peak_memory_mb": records.peak_memory_mb(),
            "versions": versions(),
            "machine": records.machine(),
        }
        for record in found
    ]


def score_others(run: Run, data: datasets.Dataset, cache: Path | None) -> Iterator[records.Record]:
    """A method on the data or on the plain autoencoder's embedding; one record per consensus function."""
    X, facts, seconds = data.X, {}, {"pretrain": 0.0}
    is_deep = "autoencoder" in run.estimator().get_params(deep=False)
    if run.how.embedded or is_deep:
        # The autoencoder of DECCS with the same seed, so that all methods of a comparison start from one.
        start = METHODS["DECCS"].build(run.dataset, random_state=run.seed)
        autoencoder, about = pretrained(start, data, cache, run.seed)
        facts, seconds = {"autoencoder": about}, {"pretrain": about["seconds"]}
    if run.how.embedded:
        rows = Rows(data.X, fit_scaler(data.X, start.scale))
        X = encode(autoencoder, rows, torch.arange(data.n)).numpy()  # (n, n_latent)
    fitted = None
    for _, model in run.parts():
        if is_deep:
            model.set_params(autoencoder=autoencoder)
        begin = time.perf_counter()
        if fitted is None:
            fitted = model.fit(X)
            begin_seconds = time.perf_counter() - begin
        else:
            fitted = fitted.with_function(model.function, X)
        fit_seconds = sum(fitted.seconds_.values()) if run.how.functions else begin_seconds
        record: records.Record = {"scores": scores.against_truth(data.y, fitted.labels_), **facts}
        if run.how.functions:
            members = zip(fitted.member_names_, fitted.base_partitions_, strict=True)
            record["scores"]["agreement"] = fitted.agreement_
            record["members"] = {
                name: scores.against_truth(data.y[fitted.sample_], said) for name, said in members
            }
            record["n_sample"] = len(fitted.sample_)
            seconds |= {phase: round(value, 3) for phase, value in fitted.seconds_.items()}
        for learned in ("n_components_", "n_iter_"):
            if hasattr(fitted, learned):
                record[learned.rstrip("_")] = int(getattr(fitted, learned))
        yield record | {"seconds": seconds | {"total": round(seconds["pretrain"] + fit_seconds, 2)}}


def score_deccs(run: Run, data: datasets.Dataset, cache: Path | None) -> Iterator[records.Record]:
    yield fit_and_score(run.estimator(), data, cache, run.seed)


def fit_and_score(
    model: DECCS, data: datasets.Dataset, cache: Path | None, seed: int
) -> records.Record:
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
        "rounds": records.rounded([round_record(finished, data.y) for finished in model.rounds_]),
        "autoencoder": pretraining,
        "seconds": {
            "pretrain": pretraining["seconds"],
            "rounds": round(fit_seconds, 1),
            **phases,
            "total": round(pretraining["seconds"] + fit_seconds, 1),
        },
    }


def members_against_truth(model: DECCS, data: datasets.Dataset) -> dict[str, dict[str, float]]:
    """Scores of each member's labels of all points, in the best round."""
    said = model.members_predict(data.X)
    return {
        name: scores.against_truth(data.y, labels)
        for name, labels in zip(model.member_names_, said, strict=True)
    }


def round_record(finished: Round, truth: np.ndarray) -> dict[str, Any]:
    """One round, its members scored on the sample they clustered."""
    return {
        "agreement": finished.agreement,
        "members": scores.of_members(finished, truth),
        "weights": finished.weights.tolist(),
        "losses": None if finished.losses is None else asdict(finished.losses),
        "seconds": finished.seconds,
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
    place = json.dumps(
        [
            PRETRAINING_RECIPE,
            data.sha256,
            rows.scaler.kind,
            shapes,
            model.dropout,
            asdict(settings),
            seed,
        ]
    )
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
    about = {
        "key": key,
        "seconds": round(time.perf_counter() - start, 1),
        "epochs": len(errors),
        "held_out_error": min(errors),
    }
    if weights and facts:
        weights.parent.mkdir(parents=True, exist_ok=True)
        unfinished = weights.with_suffix(
            f".{os.getpid()}"
        )  # another process may be at the same one
        save_file(autoencoder.state_dict(), unfinished)
        unfinished.replace(weights)
        unfinished.write_text(json.dumps(about))
        unfinished.replace(facts)  # last: the cache counts only with it
    return autoencoder, about | {"from": "training"}
