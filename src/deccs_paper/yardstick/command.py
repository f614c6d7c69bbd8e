"""``deccs yardstick``: run methods over a folder of data sets and compare them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path

from deccs.app.output import UNEXPECTED, Output, errors_as_messages
from deccs.app.request import split_names
from deccs.spreading import on_cluster
from deccs_paper import records
from deccs_paper.grid import Display
from deccs_paper.processes import ClusterWorkers, Workers, work_through
from deccs_paper.records import Record
from deccs_paper.reproduce import known_names
from deccs_paper.yardstick import preload, timed
from deccs_paper.yardstick.by_dataset import RIVALS, rivals_table
from deccs_paper.yardstick.methods import METHODS
from deccs_paper.yardstick.pool import read_pool
from deccs_paper.yardstick.runs import FAILED, OK, PoolRun, carry_out, headers, missing
from deccs_paper.yardstick.tables import (
    PAGE,
    SHORT,
    page_text,
    pool_records,
    short_text,
    terminal_tables,
)

ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
Find = Callable[[list[Record]], list[PoolRun]]  # known records -> runs without one


def command(
    folder: Path,
    methods: str | None,
    data: str | None,
    n_seeds: int,
    *,
    jobs: int,
    out: Path,
    page: Path | None,
    again: bool,
) -> None:
    """What ``deccs yardstick`` does."""
    output = Output()
    with errors_as_messages(output):
        files = {file.name: file for file in read_pool(folder)}
        wanted = known_names(split_names(data), list(files), "--data") if data else list(files)
        rows = (
            known_names(split_names(methods), list(METHODS), "--methods")
            if methods
            else [name for name, method in METHODS.items() if method.by_default]
        )
        failed = run_missing(
            output,
            lambda known: missing(
                [file for name, file in files.items() if name in wanted],
                rows,
                n_seeds,
                known,
                again=again,
            ),
            jobs,
            out,
        )
        output.result({}, terminal_tables(pool_records(out)))
        if page:
            rewrite(page, out)
        if failed:
            raise output.failure(f"{failed} of the runs have failed; see {out}.", UNEXPECTED)


def rewrite(page: Path, out: Path) -> None:
    """Rewrite the table that a page has: of the pool, the same in short, or by data set."""
    text = page.read_text(encoding="utf-8")
    for block, content in ((RIVALS, rivals_table), (SHORT, short_text)):
        if block.begin in text:
            block.rewrite(page, content(out))
            return
    PAGE.rewrite(page, page_text(out))


def timed_command(data: str | None, n_seeds: int, *, jobs: int, out: Path, again: bool) -> None:
    """What ``deccs yardstick --timed`` does."""
    output = Output()
    with errors_as_messages(output):
        names = list(timed.known_loaders())
        wanted = known_names(split_names(data), names, "--data") if data else names
        sets = timed.timed_sets(wanted)
        failed = run_missing(
            output,
            lambda known: missing(
                sets, timed.COMPARED, n_seeds, known, again=again, experiment=timed.EXPERIMENT
            ),
            jobs,
            out,
        )
        output.result({}, timed.terminal_table(list(records.read(out))))
        if failed:
            raise output.failure(f"{failed} of the runs have failed; see {out}.", UNEXPECTED)


def line(record: Record) -> str:
    """The result of a run in one line."""
    scores = record["scores"]
    return (
        f"NMI {scores['nmi']:.3f}  AMI {scores['ami']:.3f}  ARI {scores['ari']:.3f}  "
        f"{record['cpu_seconds']:.1f} CPU s  {record['peak_memory_mb']:.0f} MB"
    )


def run_missing(
    output: Output,
    find: Find,
    jobs: int,
    out: Path,
    result: Callable[[Record], str] = line,
) -> int:
    """Run what has no record in ``out``; returns how many runs failed."""
    n_failed = 0

    def take(made: list[Record]) -> None:
        nonlocal n_failed
        for record in made:
            records.append(out, record)
            n_failed += record["status"] == FAILED
            outcome = (
                result(record)
                if record["status"] == OK
                else f"{record['status']}: {record.get('error', '')}"
            )
            output.note(f"{record['dataset']} {record['method']} {record['seed']}: {outcome}")
        display.advance()

    with records.locked(out):
        records.mend(out)
        waiting = find(list(records.read(out)))
        output.note(f"{sum(len(run.methods) for run in waiting)} runs to do.")
        if waiting:
            with (
                workers_for(waiting, jobs) as workers,
                Display(len(waiting), output.stderr) as display,
            ):
                work_through(waiting, workers, out, display.show, take)
    return n_failed


def workers_for(waiting: Sequence[PoolRun], jobs: int) -> Workers:
    """Processes with one thread each, forked from one that has loaded and compiled everything; or a cluster."""
    if on_cluster():
        return ClusterWorkers(None, carry_out, headers=headers)
    os.environ |= dict.fromkeys(ONE_THREAD, "1")
    os.environ["NUMBA_THREADING_LAYER"] = "workqueue"  # a process that used OpenMP must not fork
    methods = {run.registry[name] for run in waiting for name in run.methods}
    modules = {module for method in methods for module in method.needs}
    os.environ[preload.COMPILE] = ",".join(sorted(modules))
    start_method = "spawn" if sys.platform == "win32" else "forkserver"
    loaded = [preload.__name__, *sorted({type(run).__module__ for run in waiting})]
    get_context(start_method).set_forkserver_preload(loaded)
    return Workers(jobs, None, carry_out, start_method, threads=1, headers=headers)
