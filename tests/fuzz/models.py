"""Changed model files, many of them: each is refused with a ModelFileError, or loads and then works.

    python -m tests.fuzz.models --count 100000 --seed 0 --out results/fuzz.jsonl
    python -m tests.fuzz.models --seed 0 --only 4711          # one of them again, with its traceback

Number and seed say what is done to which model, so every finding can be had again. Files are tried in a
process of their own, which has a limit of memory; one that takes too long or dies is counted, and the
next process goes on.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from deccs.counting import cluster_stability
from deccs.environment import versions
from deccs.predictor import NotLightError, Predictor, predictor_of
from deccs.storage import ModelFileError, container, load, read_preprocessing
from deccs.storage.models import FORMAT, FORMAT_VERSION
from deccs.storage.probe import ProbeRows
from tests.fuzz.mutations import mutated, sealed
from tests.fuzz.victims import Victim, frame_for, make_rows, victims

REFUSED, WORKS = "refused", "loads and works"
GOOD = (REFUSED, WORKS)
MOST_SECONDS = 20.0  # for one file; one that takes longer hangs
MOST_MEMORY = 3 * 2**30  # bytes above what the process has at first
MOST_GROWTH = 300.0  # MB above what the process has at first
SEED_OF_STABILITY = 50  # one of so many files, and each whose rows were changed, is asked for it
CHUNK = 20_000  # files to a line of the record: a run that is stopped goes on with --start
TABLES = ("predict_proba", "transform", "consensus_confidence")


@dataclass
class Tried:
    """What became of one file."""

    number: int
    victim: str
    change: str
    outcome: str = ""
    seconds: float = 0.0
    growth_mb: float = 0.0
    error: str = ""


@dataclass
class Record:
    """What became of many files."""

    n: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    by_model: dict[str, Counter[str]] = field(default_factory=dict)
    longest_seconds: float = 0.0
    longest: str = ""
    most_growth_mb: float = 0.0
    largest: str = ""
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, tried: Tried) -> None:
        self.n += 1
        self.outcomes[tried.outcome] += 1
        self.by_model.setdefault(tried.victim, Counter())[tried.outcome] += 1
        if tried.seconds > self.longest_seconds:
            self.longest_seconds = round(tried.seconds, 3)
            self.longest = f"{tried.number}: {tried.victim}, {tried.change}"[:200]
        if tried.growth_mb > self.most_growth_mb:
            self.most_growth_mb = round(tried.growth_mb, 1)
            self.largest = f"{tried.number}: {tried.victim}, {tried.change}"[:200]
        if tried.outcome not in GOOD:
            self.failures.append(asdict(tried))


def rows_for(model: Any) -> Any:
    """Rows of the fit, with as many columns as the model says it has, or with those of its frame."""
    coding = getattr(model, "coding_", None)
    if coding is not None and not coding.is_plain:
        return frame_for(model)
    X = make_rows()[:5]
    return np.resize(X, (len(X), min(int(model.n_features_in_), 100_000)))


def use(model: Any, with_stability: bool) -> None:
    """Ask a loaded model for everything it can say; raises where an answer is no answer."""
    X = rows_for(model)
    labels = model.predict(X)
    assert labels.shape == (len(X),) and labels.dtype.kind == "i" and labels.min() >= -1
    assert np.array_equal(model.predict(X[:1]), labels[:1])
    answer = model.answer(X)
    assert np.isfinite(answer.Z).all() and np.array_equal(answer.labels, labels)
    for name in TABLES:
        if hasattr(model, name):
            values = getattr(model, name)(X)
            assert len(values) == len(X) and np.isfinite(values).all(), name
    if hasattr(model, "members_predict"):
        assert model.members_predict(X).shape[1] == len(X)
    if hasattr(model, "get_feature_names_out"):
        assert len(model.get_feature_names_out()) == answer.Z.shape[1]
    assert 0 <= model.score(X) <= 1
    for k in numbers_to_ask(model):
        assert model.predict_at(X, k).shape == (len(X),)
        if hasattr(model, "count_"):
            assert model.labels_at(k).shape == model.labels_.shape
    if hasattr(model, "describe"):
        assert "\x1b" not in str(model.describe(X)), "describe"
    assert "\x1b" not in repr(model)
    if with_stability:
        assert isinstance(model.cluster_stability_, list)


def numbers_to_ask(model: Any) -> list[int]:
    """The numbers of clusters that ``predict_at`` must know."""
    if hasattr(model, "count_"):
        return [1, *(int(k) for k in model.count_.ks[:5])]
    if hasattr(model, "tree_"):
        return list(range(1, min(len(model.tree_.leaves), 8) + 1))
    return []


def attempt(
    number: int, seed: int, models: dict[str, Victim], folder: Path, loud: bool = False
) -> Tried:
    """Change a model, load it and use it."""
    rng = np.random.default_rng([seed, number])
    names = list(models)
    victim = names[int(rng.integers(len(names)))]
    change, files = mutated(models[victim], list(models.values()), rng)
    path = files.write(folder)
    tried = Tried(number, victim, change[:300])
    reset_peak()
    before, began = peak_mb(), time.perf_counter()
    with_stability = "_drawn" in change or number % SEED_OF_STABILITY == 0
    tried.outcome, error = outcome_of(path, with_stability)
    tried.seconds, tried.growth_mb = time.perf_counter() - began, peak_mb() - before
    tried.error = f"{type(error).__name__}: {error}"[:500] if error else ""
    if tried.outcome in GOOD and tried.growth_mb > MOST_GROWTH:
        tried.outcome = "grows"
    if loud and error:
        traceback.print_exception(error)
    return tried


def check_unchanged(name: str, victim: Victim) -> None:
    """Raise an AssertionError unless the model works as long as nothing is changed."""
    with tempfile.TemporaryDirectory() as folder:
        files = sealed(json.loads(victim.text), victim.tensors)
        outcome, error = outcome_of(files.write(Path(folder)), with_stability=False)
    assert outcome == WORKS, (name, error)


def outcome_of(path: Path, with_stability: bool) -> tuple[str, BaseException | None]:
    """What becomes of a file, and the error if there is one."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = load(path)
        except ModelFileError as error:
            if isinstance(error.__cause__, MemoryError) or "allocate memory" in str(error):
                return "memory in load", error
            safe = all(letter.isprintable() or letter in "\n\t" for letter in str(error))
            if not safe:
                return "control characters", error
            return ("taken by deccs.load" if is_taken_lightly(path) else REFUSED), error
        except BaseException as error:
            return f"load: {type(error).__name__}", error
        try:
            answer_lightly(path, model)
            use(model, with_stability)
            assert isinstance(read_preprocessing(path), dict)
        except BaseException as error:
            return f"after load: {type(error).__name__}", error
    return WORKS, None


def light_model(path: Path) -> Predictor | None:
    """What ``deccs.load`` gives without torch, None where it would ask the estimator."""
    try:
        return predictor_of(path, *container.read(path, FORMAT, FORMAT_VERSION))
    except NotLightError:
        return None


def is_taken_lightly(path: Path) -> bool:
    """Whether ``deccs.load`` takes a file that ``load`` refuses; it must end in a ModelFileError, too."""
    try:
        return light_model(path) is not None
    except ModelFileError:
        return False


def answer_lightly(path: Path, model: Any) -> None:
    """A model that was read without torch says what the estimator says."""
    light = light_model(path)
    if light is not None:
        rows = ProbeRows(model._n_cells, model.scaler_)
        said = [np.concatenate(list(one._label_blocks(rows))) for one in (light, model)]
        assert np.array_equal(*said)


def reset_peak() -> None:
    """Let the most memory be counted from now on, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def limit_memory() -> None:
    """Let this process have only so much more than it has now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return
    limit = pages * resource.getpagesize() + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def work(connection: Any, numbers: range, seed: int, models: dict[str, Victim]) -> None:
    """Try some files, and tell of each."""
    torch.set_num_threads(1)
    limit_memory()
    # Fewer steps, so that more files can be tried.
    cluster_stability.RESAMPLE_STEPS, cluster_stability.N_RESAMPLES = 10, 3
    home = "/dev/shm" if Path("/dev/shm").is_dir() else None
    for number in numbers:
        folder = Path(tempfile.mkdtemp(prefix="deccs-fuzz-", dir=home))
        try:
            connection.send(attempt(number, seed, models, folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    connection.send(None)


def named(part: str) -> dict[str, Victim]:
    """The models with this in their name."""
    return {name: victim for name, victim in victims().items() if part in name}


def run(count: int, seed: int, start: int = 0, show: bool = False, part: str = "") -> Record:
    """Try ``count`` files, in processes that are replaced when they hang or die."""
    models, record, number = named(part), Record(), start
    for name, victim in models.items():
        check_unchanged(name, victim)
    # Not forked: a process that has used polars cannot be, its threads would be missing.
    spawn, began = multiprocessing.get_context("spawn"), time.monotonic()
    while number < start + count:
        receiver, sender = spawn.Pipe(duplex=False)
        rest = range(number, start + count)
        process = spawn.Process(target=work, args=(sender, rest, seed, models), daemon=True)
        process.start()
        sender.close()
        number = listen(receiver, record, number, seed, models, show, began)
        process.kill()
        process.join()
        receiver.close()
    return record


def listen(
    receiver: Any,
    record: Record,
    number: int,
    seed: int,
    models: dict[str, Victim],
    show: bool,
    began: float,
) -> int:
    """Add what a process tells, until it is done, hangs or dies; the number to go on with."""
    while True:
        outcome = "hangs"
        try:
            if receiver.poll(MOST_SECONDS):
                tried = receiver.recv()
                if tried is None:
                    return number
                record.add(tried)
                number += 1
                if show and record.n % 1_000 == 0:
                    tell(record, time.monotonic() - began)
                continue
        except EOFError:
            outcome = "dies"
        rng = np.random.default_rng([seed, number])
        victim = list(models)[int(rng.integers(len(models)))]
        change, _ = mutated(models[victim], list(models.values()), rng)
        record.add(Tried(number, victim, change[:300], outcome, MOST_SECONDS))
        return number + 1


def tell(record: Record, seconds: float) -> None:
    print(
        f"{record.n:,} in {seconds:.0f} s: {dict(record.outcomes)}; longest "
        f"{record.longest_seconds} s, most {record.most_growth_mb} MB",
        file=sys.stderr,
        flush=True,
    )


def commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first file")
    parser.add_argument("--model", default="", help="only models with this in their name")
    parser.add_argument("--only", type=int, help="one file, with its traceback")
    parser.add_argument("--out", type=Path, help="file of records, one line is added")
    options = parser.parse_args()
    if options.only is not None:
        folder = Path(tempfile.mkdtemp(prefix="deccs-fuzz-"))
        print(attempt(options.only, options.seed, named(options.model), folder, loud=True), folder)
        return 0
    n_failures = 0
    for first in range(options.start, options.start + options.count, CHUNK):
        count = min(CHUNK, options.start + options.count - first)
        line = recorded(count, options.seed, first, options.model)
        n_failures += len(line["failures"])
        if options.out:
            with options.out.open("a") as out:
                out.write(json.dumps(line) + "\n")
        for failure in line["failures"]:
            print(json.dumps(failure), flush=True)
    return 1 if n_failures else 0


def recorded(count: int, seed: int, start: int, part: str = "") -> dict[str, Any]:
    """The line of a run for the file of records."""
    began = time.monotonic()
    record = run(count, seed, start, show=True, part=part)
    return {
        "fuzz": "models",
        "seed": seed,
        "start": start,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "minutes": round((time.monotonic() - began) / 60, 1),
        **vars(record),
        "failures": record.failures[:50],
        "versions": versions(),
    }


if __name__ == "__main__":
    sys.exit(main())
