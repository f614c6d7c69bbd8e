"""Many runs: which are missing, how long they will take, running them with a line in the records for each."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from deccs.consensus.partitioners import required_kahypar
from deccs.datasets.loading import located
from deccs.datasets.sources import SOURCES
from deccs.datasets.store import file_at_hand
from deccs_paper import records
from deccs_paper.processes import Workers
from deccs_paper.records import Record
from deccs_paper.runner import Run, headers
from deccs_paper.settings import METHODS, RUN_FOR


def counts(record: Record, *, failed_too: bool = True) -> bool:
    """Whether a run has ended and nothing that changes its result has come since; a stopped one has not ended."""
    method = RUN_FOR.get(record["method"])
    current = method is None or record.get("recipe", 0) >= METHODS[method].recipe
    return current and (record["status"] == "ok" or (failed_too and record["status"] == "failed"))


class Known:
    """The runs that have a record. One that failed has, unless ``again`` asks for it once more.

    A record of fewer or more points than a run would have now is of another data set: KMNIST is published in part.
    """

    def __init__(self, there: Iterable[Record], *, again: bool = False) -> None:
        there = list(there)
        self.places: dict[tuple[str, str, str, int], list[Record]] = defaultdict(list)
        self.points = {
            name: points_at_hand(name) for name in {record["dataset"] for record in there}
        }
        self.of_other_size: dict[
            str, int
        ] = {}  # data set -> points of records that do not count here
        for record in there:
            name = record["dataset"]
            n = record.get("n", self.points[name])
            if n != self.points[name]:
                self.of_other_size[name] = n
            elif counts(record, failed_too=not again):
                self.places[place(record)].append(record)

    def has(self, header: Record) -> bool:
        return any(records.same_run(record, header) for record in self.places[place(header)])


def place(record: Record) -> tuple[str, str, str, int]:
    return record["experiment"], record["method"], record["dataset"], record["repetition"]


def missing(wanted: Iterable[Run], known: Known) -> list[Run]:
    """The runs that lack a record, each once."""
    once = {(run.experiment, run.method, run.dataset, run.repetition): run for run in wanted}
    return [run for run in once.values() if not all(known.has(header) for header in headers(run))]


class Expected:
    """How long a run takes, from earlier ones of the same method and data set; more points take longer."""

    def __init__(
        self, there: Iterable[Record], points_here: Mapping[str, int] | None = None
    ) -> None:
        self.points_here = points_here or {}
        self.seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.points: dict[str, int] = {}  # of the runs: KMNIST may be there in part
        for record in there:
            self.add(record)

    def add(self, record: Record) -> None:
        if record["status"] == "ok" and "wall_seconds" in record and record["method"] in RUN_FOR:
            self.seconds[RUN_FOR[record["method"]], record["dataset"]].append(
                record["wall_seconds"]
            )
            self.points[record["dataset"]] = record.get("n", n_points(record["dataset"]))

    def of(self, method: str, dataset: str) -> float | None:
        """Median seconds; without a run on this data set, of the next larger one or, by size, of the largest."""
        size = self.points_here.get(dataset, self.points.get(dataset, n_points(dataset)))
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
        """How long they take, ``jobs`` at the same time: "some 5 min, 2 of unknown length"."""
        found = [self.of(run.method, run.dataset) for run in runs]
        known = [seconds for seconds in found if seconds is not None]
        n_unknown = len(found) - len(known)
        return ", ".join(
            [
                *([f"some {duration(sum(known) / jobs)}"] if known else []),
                *([f"{n_unknown} of unknown length"] if n_unknown else []),
            ]
        )


def n_points(dataset: str) -> int:
    return SOURCES[dataset].n if dataset in SOURCES else 1000


def points_at_hand(dataset: str) -> int:
    """How many a run would have: those of the file that is there, else of the public source."""
    path = file_at_hand(dataset) if dataset in SOURCES else None
    if path is None:
        return n_points(dataset)
    with np.load(path, allow_pickle=False) as arrays:
        return len(arrays["y"])


def duration(seconds: float) -> str:
    """
    >>> duration(8), duration(90), duration(600), duration(20_000)
    ('8 s', '1.5 min', '10 min', '5.6 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min" if seconds < 570 else f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def summary(record: Record) -> str:
    """What came of a run, in a line."""
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


def carry_out_missing(
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
    """Run what ``read`` has no record of, a line in ``out`` for each when it ends.

    ``earlier`` runs do not count, but tell how long one takes. Ctrl-C leaves a line "stopped" for those under way.
    """
    with records.alone_with(out):
        records.mend(out)
        there = read()
        known = Known(there, again=again)
        expected = Expected([*earlier, *there], known.points)
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
            located(name)  # what cannot be had is told now, and is no failure of a run
        with workers, Display(len(waiting), console) as display:
            work_off(waiting, known, expected, out, workers, tell, display)


def work_off(
    waiting: list[Run],
    known: Known,
    expected: Expected,
    out: Path,
    workers: Workers,
    tell: Callable[[Record], None],
    display: Display,
) -> None:
    try:
        while waiting or workers.under_way:
            workers.start_next(waiting)
            under_way = [worker.run for worker in workers.under_way.values()]
            display.show(under_way, expected.words([*waiting, *under_way], workers.jobs))
            for found in workers.ended():
                for record in (
                    {"n": points_at_hand(one["dataset"])} | one for one in found
                ):  # a failed one has none
                    if not known.has(
                        record
                    ):  # a crash may have kept a part of an ensemble's records
                        records.append(out, record)
                        expected.add(record)
                        tell(record)
                display.advance()
    except KeyboardInterrupt:
        for worker in workers.under_way.values():
            for header in headers(worker.run):
                records.append(out, header | {"status": "stopped"})
        raise


class Display:
    """Runs done and time left over the whole grid; silent where nobody watches, for each run has its line."""

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

    def show(self, under_way: Sequence[Run], left: str) -> None:
        """What is under way, and how long all that is left will take."""
        words = ", ".join(f"{run.method} {run.dataset} {run.repetition}" for run in under_way)
        self.progress.update(self.task, description=words, left=f"{left} left")

    def advance(self) -> None:
        self.progress.advance(self.task)
