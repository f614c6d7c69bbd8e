"""Many runs: which are missing, how long they will take, running them with a line in the records for each."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from deccs.benchmark import records
from deccs.benchmark.processes import Workers
from deccs.benchmark.records import Record
from deccs.benchmark.runner import Run, headers
from deccs.benchmark.settings import METHODS, RUN_FOR
from deccs.datasets.sources import SOURCES


def counts(record: Record, *, failed_too: bool = True) -> bool:
    """Whether a run has ended and nothing that changes its result has come since; a stopped one has not ended."""
    method = RUN_FOR.get(record["method"])
    current = method is None or record.get("recipe", 0) >= METHODS[method].recipe
    return current and (record["status"] == "ok" or (failed_too and record["status"] == "failed"))


def missing(wanted: Iterable[Run], there: Iterable[Record], *, again: bool = False) -> list[Run]:
    """The runs that have no record. One that failed has; ``again`` asks for it once more."""
    known: dict[tuple[str, str, str, int], list[Record]] = defaultdict(list)
    for record in there:
        if counts(record, failed_too=not again):
            known[record["experiment"], record["method"], record["dataset"], record["repetition"]].append(record)

    def is_there(header: Record) -> bool:
        place = header["experiment"], header["method"], header["dataset"], header["repetition"]
        return any(records.same_run(record, header) for record in known[place])

    once = {(run.experiment, run.method, run.dataset, run.repetition): run for run in wanted}
    return [run for run in once.values() if not all(map(is_there, headers(run)))]


class Expected:
    """How long a run takes, from earlier ones of the same method and data set."""

    def __init__(self, there: Iterable[Record]) -> None:
        self.seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for record in there:
            if record["status"] == "ok" and "wall_seconds" in record and record["method"] in RUN_FOR:
                self.seconds[RUN_FOR[record["method"]], record["dataset"]].append(record["wall_seconds"])

    def of(self, method: str, dataset: str) -> float | None:
        """Median seconds; without a run on this data set, of the next larger one or, by size, of the largest."""
        if (method, dataset) in self.seconds:
            return statistics.median(self.seconds[method, dataset])
        size = n_points(dataset)
        known = {n_points(other): statistics.median(values)
                 for (name, other), values in self.seconds.items() if name == method}
        larger = [n for n in known if n >= size]
        if larger:
            return known[min(larger)]
        return known[max(known)] * size / max(known) if known else None

    def of_all(self, runs: Sequence[Run]) -> tuple[float, int]:
        """Seconds of all whose time is known, and how many are not."""
        found = [self.of(run.method, run.dataset) for run in runs]
        return sum(seconds for seconds in found if seconds is not None), found.count(None)


def n_points(dataset: str) -> int:
    return SOURCES[dataset].n if dataset in SOURCES else 1000


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
    return "  ".join([*words, f"{record['seconds']['total']:.0f} s", f"{record['peak_memory_mb']:.0f} MB"])


def carry_out_all(
    runs: Sequence[Run], out: Path, workers: Workers, expected: Expected, tell: Callable[[Record], None],
    console: Console,
) -> None:
    """Run all, a line in ``out`` for each when it ends. Ctrl-C leaves a line "stopped" for those under way."""
    waiting = list(runs)
    with records.alone_in(out.parent), workers, Display(len(waiting), console) as display:
        try:
            while waiting or workers.under_way:
                workers.start_next(waiting)
                under_way = [worker.run for worker in workers.under_way.values()]
                display.show(under_way, *expected.of_all([*waiting, *under_way]), jobs=workers.jobs)
                for found in workers.ended():
                    for record in found:
                        records.append(out, record)
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
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"), console=console, disable=not console.is_terminal, transient=True,
        )
        self.task = self.progress.add_task("", total=n_runs, left="")

    def __enter__(self) -> Display:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def show(self, under_way: Sequence[Run], seconds: float, n_unknown: int, *, jobs: int) -> None:
        """What is under way, and how long all that is left will take."""
        words = ", ".join(f"{run.method} {run.dataset} {run.repetition}" for run in under_way)
        unknown = f" and {n_unknown} of unknown length" if n_unknown else ""
        self.progress.update(self.task, description=words, left=f"{duration(seconds / jobs)} left{unknown}")

    def advance(self) -> None:
        self.progress.advance(self.task)
