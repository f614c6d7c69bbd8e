"""Many runs: which ones are missing, how long they will take, and running them."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from deccs.consensus.partitioners import required_kahypar
from deccs.datasets.loading import located
from deccs.datasets.sources import SOURCES
from deccs.datasets.store import file_at_hand
from deccs_paper import records
from deccs_paper.processes import Workers, work_through
from deccs_paper.records import Record
from deccs_paper.runner import Run, headers
from deccs_paper.settings import METHODS, RUN_FOR

Place = tuple[str, str, str, int]  # experiment, method, data set, repetition


def counts(record: Record, *, failed_too: bool = True) -> bool:
    """Whether a run has ended, and its method has not changed since; a stopped one has not ended."""
    method = RUN_FOR.get(record["method"])
    current = method is None or record.get("recipe", 0) >= METHODS[method].recipe
    return current and (record["status"] == "ok" or (failed_too and record["status"] == "failed"))


class Known:
    """The runs that have a record; with ``again`` those that failed do not count.

    A record with another number of points than a run would have now belongs to another data set:
    KMNIST is published in part.
    """

    def __init__(self, known: Iterable[Record], *, again: bool = False) -> None:
        known = list(known)
        self.places: dict[Place, list[Record]] = defaultdict(list)
        self.points = {
            name: points_at_hand(name) for name in {record["dataset"] for record in known}
        }
        # data set -> number of points of the records that do not count
        self.of_other_size: dict[str, int] = {}
        for record in known:
            name = record["dataset"]
            n = record.get("n", self.points[name])
            if n != self.points[name]:
                self.of_other_size[name] = n
            elif counts(record, failed_too=not again):
                self.places[place(record)].append(record)

    def has(self, header: Record) -> bool:
        return any(records.same_run(record, header) for record in self.places[place(header)])


def place(record: Record) -> Place:
    return record["experiment"], record["method"], record["dataset"], record["repetition"]


def missing(wanted: Iterable[Run], known: Known) -> list[Run]:
    """The runs without a record, each once."""
    once = {(run.experiment, run.method, run.dataset, run.repetition): run for run in wanted}
    return [run for run in once.values() if not all(known.has(header) for header in headers(run))]


class Expected:
    """How long a run takes, from earlier ones of the same method and data set; more points take longer."""

    def __init__(self, earlier: Iterable[Record], points: Mapping[str, int] | None = None) -> None:
        self.points_now = points or {}
        self.seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.points: dict[str, int] = {}  # of the earlier runs: KMNIST may be there in part
        for record in earlier:
            self.add(record)

    def add(self, record: Record) -> None:
        if record["status"] == "ok" and "wall_seconds" in record and record["method"] in RUN_FOR:
            self.seconds[RUN_FOR[record["method"]], record["dataset"]].append(
                record["wall_seconds"]
            )
            self.points[record["dataset"]] = record.get("n", n_points(record["dataset"]))

    def of(self, method: str, dataset: str) -> float | None:
        """Median seconds of the runs on this data set, else on the next larger one, else on the largest by size."""
        size = self.points_now.get(dataset, self.points.get(dataset, n_points(dataset)))
        if (method, dataset) in self.seconds:
            return statistics.median(self.seconds[method, dataset]) * max(
                1.0, size / self.points[dataset]
            )
        known = {
            self.points[other]: statistics.median(values)
            for (name, other), values in self.seconds.items()
            if name == method
        }
        larger = [n for n in known if n >= size]
        if larger:
            return known[min(larger)]
        return known[max(known)] * size / max(known) if known else None

    def words(self, runs: Sequence[Run], jobs: int) -> str:
        """How long they take, ``jobs`` at the same time: "about 5 min, 2 of unknown length"."""
        seconds = [self.of(run.method, run.dataset) for run in runs]
        known = [value for value in seconds if value is not None]
        words = []
        if known:
            words.append(f"about {duration(sum(known) / jobs)}")
        if len(known) < len(seconds):
            words.append(f"{len(seconds) - len(known)} of unknown length")
        return ", ".join(words)


def n_points(dataset: str) -> int:
    return SOURCES[dataset].n if dataset in SOURCES else 1000


def points_at_hand(dataset: str) -> int:
    """How many points a run would have: those of the local file, else of the public source."""
    path = file_at_hand(dataset) if dataset in SOURCES else None
    if path is None:
        return n_points(dataset)
    with np.load(path, allow_pickle=False) as arrays:
        return len(arrays["y"])


def duration(seconds: float) -> str:
    """Seconds in the unit that reads best.

    >>> duration(8), duration(90), duration(600), duration(20_000)
    ('8 s', '1.5 min', '10 min', '5.6 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min" if seconds < 570 else f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def summary(record: Record) -> str:
    """The result of a run in one line."""
    if record["status"] != "ok":
        return f"{record['status']}: {record.get('error', '')}"
    values = record["scores"]
    words = [f"NMI {values['nmi']:.3f}  ARI {values['ari']:.3f}  accuracy {values['accuracy']:.3f}"]
    if "agreement" in values:
        words.append(f"agreement {values['agreement']:.3f}")
    if "best_round" in record:
        words.append(f"in round {record['best_round']}")
    return "  ".join(
        [*words, f"{record['seconds']['total']:.0f} s", f"{record['peak_memory_mb']:.0f} MB"]
    )


def run_missing(
    runs: Sequence[Run],
    read: Callable[[], list[Record]],
    out: Path,
    workers: Workers,
    tell: Callable[[Record], None],
    console: Console,
    *,
    again: bool = False,
    earlier: Sequence[Record] = (),
) -> None:
    """Run everything ``read`` has no record of, and append a line to ``out`` whenever a run ends.

    ``earlier`` runs do not count, but tell how long one takes. Ctrl-C leaves a line "stopped" for
    those in progress.
    """
    with records.locked(out):
        records.mend(out)
        present = read()
        known = Known(present, again=again)
        expected = Expected([*earlier, *present], known.points)
        waiting = missing(runs, known)
        time = f": {expected.words(waiting, workers.jobs)}" if waiting else ""
        console.print(f"{len(waiting)} runs to do{time}.", highlight=False)
        for name in known.of_other_size.keys() & {run.dataset for run in waiting}:
            console.print(
                f"Runs on {known.of_other_size[name]:,} points of {name} do not count: here it has "
                f"{known.points[name]:,}.",
                highlight=False,
            )
        if any(run.how.functions for run in waiting):
            required_kahypar()  # without it every consensus function of a run would fail
        for name in dict.fromkeys(run.dataset for run in waiting if run.dataset in SOURCES):
            located(name)  # data that cannot be had is an error now, not a run that fails
        with workers, Display(len(waiting), console) as display:
            run_all(waiting, known, expected, out, workers, tell, display)


def run_all(
    waiting: list[Run],
    known: Known,
    expected: Expected,
    out: Path,
    workers: Workers,
    tell: Callable[[Record], None],
    display: Display,
) -> None:
    def show(running: list[Run]) -> None:
        display.show(running, f"{expected.words([*waiting, *running], workers.jobs)} left")

    def take(made: list[Record]) -> None:
        for one in made:
            record = {"n": points_at_hand(one["dataset"])} | one  # a failed run has no n
            # A crash may have kept a part of an ensemble's records.
            if not known.has(record):
                records.append(out, record)
                expected.add(record)
                tell(record)
        display.advance()

    work_through(waiting, workers, out, show, take)


class Display:
    """Runs done and time left over the whole grid; only in a terminal, since each run has its line anyway."""

    def __init__(self, n_runs: int, console: Console) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self.task = self.progress.add_task("", total=n_runs, left="")

    def __enter__(self) -> Display:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def show(self, running: Sequence[Any], left: str = "") -> None:
        """What is in progress, and how long the rest will take."""
        words = ", ".join(f"{run.method} {run.dataset} {run.repetition}" for run in running)
        self.progress.update(self.task, description=words, left=left)

    def advance(self) -> None:
        self.progress.advance(self.task)
