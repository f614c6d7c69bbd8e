"""One run: data set, method, seed -> record."""

from __future__ import annotations

import hashlib
import json
import math
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load, save

from deccs import datasets, scores
from deccs.answer import Answer
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.datasets.sources import content_sha256
from deccs.environment import peak_memory_mb
from deccs.estimator import DECCS
from deccs.events import Callback, Listeners, Progress
from deccs.network.autoencoder import Autoencoder, encode
from deccs.rounds.records import Round
from deccs.seeds import root_seed, seed_for
from deccs.storage.atomic import replacing, write_text
from deccs.training.pretraining import pretrain
from deccs.training.search import initial_autoencoder
from deccs_paper import records
from deccs_paper.record_names import settings_record
from deccs_paper.settings import METHODS, PRETRAINING_RECIPE, RECIPE, TOYS, Method, row_methods

ROOT = 2022  # seeds of all experiments are derived from it, the data set and the repetition


@dataclass(frozen=True)
class Run:
    """A run of an experiment: what is run, on what, for which time."""

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
        """What has a record of its own: the method, or each consensus function of an ensemble."""
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


def load_data(name: str) -> datasets.Dataset:
    """A data set of the paper, or one that is generated."""
    if name not in TOYS:
        return datasets.load(name)
    X, y = datasets.make_nonlinear(random_state=0)
    X = X.astype(np.float32)
    n, d = X.shape
    return datasets.Dataset(name, X, y, n, d, TOYS[name].k, None, "generated", content_sha256(X, y))


def carry_out(run: Run, cache: Path | None) -> list[records.Record]:
    """Run and score; whatever goes wrong becomes a record with its status."""
    started = time.time()
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started))
    made_with = records.made_with()
    try:
        data = load_data(run.dataset)
        score = score_deccs if isinstance(run.estimator(), DECCS) else score_others
        facts = {
            "dataset_sha256": data.sha256,
            "n": data.n,
            "d": data.d,
            "k": data.k,
            "status": "ok",
        }
        made = [
            header | facts | part
            for header, part in zip(headers(run), score(run, data, cache), strict=True)
        ]
    except Exception as error:  # noqa: BLE001  a failed run is a record, not the end
        failed = {
            "status": "failed",
            "error": f"{type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }
        made = [header | failed for header in headers(run)]
    costs = {
        "wall_seconds": round(time.time() - started, 1),
        "peak_memory_mb": peak_memory_mb(),
    }
    return [{"started": when} | record | costs | made_with for record in made]


def score_others(run: Run, data: datasets.Dataset, cache: Path | None) -> Iterator[records.Record]:
    """A method on the data or on the plain autoencoder's embedding; one record per consensus function."""
    X, facts, seconds = data.X, {}, {"pretrain": 0.0}
    has_network = "network" in run.estimator().get_params(deep=False)
    if run.how.embedded or has_network:
        # The autoencoder of DECCS with the same seed, so that all methods of a comparison start from one.
        deccs = METHODS["DECCS"].build(run.dataset, random_state=run.seed)
        start = pretrained(deccs, data, cache, run.seed)
        facts, seconds = {"autoencoder": start.facts}, {"pretrain": start.facts["seconds"]}
    if run.how.embedded:
        X = encode(start.autoencoder, start.rows).numpy()  # (n, n_latent)
    fitted = None
    for _, model in run.parts():
        if has_network:
            model.set_params(network=start.autoencoder)
        begin = time.perf_counter()
        if fitted is None:
            fitted = model.fit(X)
            fit_seconds = time.perf_counter() - begin
        else:
            fitted = fitted.with_function(model.function, X)
        record: records.Record = {"scores": scores.against_truth(data.y, fitted.labels_), **facts}
        if run.how.functions:
            fit_seconds = sum(fitted.seconds_.values())
            seconds |= {phase: round(value, 3) for phase, value in fitted.seconds_.items()}
            members = zip(fitted.member_names_, fitted.base_partitions_, strict=True)
            record["scores"]["agreement"] = fitted.agreement_
            record["members"] = {
                name: scores.against_truth(data.y[fitted.sample_], labels)
                for name, labels in members
            }
            record["n_sample"] = len(fitted.sample_)
        for learned in ("n_components_", "n_iter_"):
            if hasattr(fitted, learned):
                record[learned.rstrip("_")] = int(getattr(fitted, learned))
        yield record | {"seconds": seconds | {"total": round(seconds["pretrain"] + fit_seconds, 2)}}


class History(Callback):
    """All rounds of a fit, those of starts that were not kept included, and the members' labels."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.blocks: list[Any] = []  # of the members' labels, (n_members, n_block)

    def on_round(self, finished: Round) -> None:
        self.rounds.append(finished)

    def on_answer(self, answer: Answer) -> None:
        self.blocks.append(answer.members)

    def seconds(self) -> dict[str, float]:
        """By phase, over all rounds."""
        total: dict[str, float] = {}
        for finished in self.rounds:
            for phase, seconds in finished.seconds.items():
                total[phase] = round(total.get(phase, 0.0) + seconds, 2)
        return total

    def member_scores(self, names: tuple[str, ...], truth: np.ndarray) -> dict[str, Any]:
        """Scores of each member's labels of all points, in the best round."""
        labels = np.concatenate(self.blocks, axis=1)  # (n_members, n_points)
        return {
            name: scores.against_truth(truth, partition)
            for name, partition in zip(names, labels, strict=True)
        }


def score_deccs(run: Run, data: datasets.Dataset, cache: Path | None) -> Iterator[records.Record]:
    model = run.estimator()
    start = pretrained(model, data, cache, run.seed)
    history, begin = History(), time.perf_counter()
    model.set_params(network=start.autoencoder, callbacks=[history]).fit(data.X)
    fit_seconds = time.perf_counter() - begin
    pretrain_seconds = start.facts["seconds"]
    yield {
        "scores": scores.against_truth(data.y, model.labels_) | {"agreement": model.agreement_},
        "members": history.member_scores(model.member_names_, data.y),
        "best_round": model.best_round_,
        "label_source": model.label_source_,
        "starts": 1 + history.rounds[-1].start,
        "rounds": records.rounded([round_record(finished, data.y) for finished in model.rounds_]),
        "autoencoder": start.facts,
        "seconds": {
            "pretrain": pretrain_seconds,
            "rounds": round(fit_seconds, 1),
            **history.seconds(),
            "total": round(pretrain_seconds + fit_seconds, 1),
        },
    }


def round_record(finished: Round, truth: np.ndarray) -> dict[str, Any]:
    """One round, its members scored on the sample they clustered."""
    return finished.as_dict() | {"members": scores.of_members(finished, truth)}


@dataclass(frozen=True, eq=False)
class Pretrained:
    """The autoencoder that all methods of a comparison start from."""

    autoencoder: Autoencoder
    rows: Rows
    facts: dict[str, Any]  # for the record: its key, seconds, steps, held-out error


class HeldOutErrors(Callback):
    """Collects the held-out errors of a pretraining."""

    def __init__(self) -> None:
        self.errors: list[float] = []
        self.n_steps = 0

    def on_progress(self, progress: Progress) -> None:
        self.errors.append(progress.held_out)
        self.n_steps = progress.step


def pretrained(model: DECCS, data: datasets.Dataset, cache: Path | None, seed: int) -> Pretrained:
    """The autoencoder for this data, these settings and this seed: from the cache, or trained and kept there.

    All methods of one comparison start from the same one, as in the paper.
    """
    network, settings = model.settings_for("network"), model.settings_for("pretraining")
    source, root = source_of(data.X), root_seed(seed)
    rows = Rows(source, fit_scaler(source, model.scale))
    autoencoder = initial_autoencoder(rows, network, root)
    key = cache_key(model, data, rows, autoencoder, seed)
    weights = cache / f"{data.name}-{key}.safetensors" if cache else None
    about = weights.with_suffix(".json") if weights else None
    if weights and about and about.exists():
        autoencoder.load_state_dict(load(weights.read_bytes()))
        autoencoder.pretrained = True
        return Pretrained(autoencoder, rows, json.loads(about.read_text()) | {"from": "cache"})
    watch, start = HeldOutErrors(), time.perf_counter()
    pretrain(autoencoder, rows, settings, root, Listeners([watch]))
    facts = {
        "key": key,
        "seconds": round(time.perf_counter() - start, 1),
        "steps": watch.n_steps,
        "held_out_error": min(watch.errors, default=math.nan),
    }
    if weights and about:
        weights.parent.mkdir(parents=True, exist_ok=True)
        with replacing(weights) as file:
            file.write(save(autoencoder.state_dict()))
        write_text(about, json.dumps(facts))  # last: without it the weights do not count
    return Pretrained(autoencoder, rows, facts | {"from": "training"})


def cache_key(
    model: DECCS, data: datasets.Dataset, rows: Rows, autoencoder: Autoencoder, seed: int
) -> str:
    """What the weights of a pretrained autoencoder depend on, in 16 characters."""
    settings = settings_record(model)
    shapes = [list(parameter.shape) for parameter in autoencoder.parameters()]
    facts = [
        PRETRAINING_RECIPE,
        data.sha256,
        rows.scaler.kind,
        shapes,
        settings["dropout"],
        settings["pretraining"],
        seed,
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
