"""Whole ``deccs fit`` runs on Parquet tables of growing size, each in a process with little memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from deccs import scores
from deccs.app import run_folder
from deccs.app.pace import measured_pace
from deccs.app.parts import LABELS_PARTS
from deccs_paper.scale.moons import N_COLUMNS, N_PAIRS, classes_of

MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")  # version 1; root alone can make groups
LIMIT = 2_500_000_000  # bytes


@contextmanager
def memory_group(limit: int) -> Iterator[Path | None]:
    """A group of processes that the kernel stops when they hold more than ``limit`` bytes; None without such groups."""
    group = MEMORY_GROUPS / f"deccs-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit))
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        group.rmdir()


def run_in(group: Path | None, command: list[str], log: Path) -> tuple[int, Any]:
    """Run a command in the group: its exit code, and what it has used."""

    def join() -> None:
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, preexec_fn=join)
        _, status, usage = os.wait4(process.pid, 0)
    return os.waitstatus_to_exitcode(status), usage


def measure(
    path: Path, n_rows: int, seed: int, out: Path, n_columns: int = N_COLUMNS
) -> dict[str, Any]:
    """A fit of a table, or of its first columns, from the file to the report."""
    pace = measured_pace()
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "deccs", "fit", str(path), "--clusters", str(2 * N_PAIRS)]
    command += ["--seed", str(seed), "--out", str(out), "--quiet"]
    if n_columns < N_COLUMNS:
        command += ["--columns", ",".join(f"c{place}" for place in range(n_columns))]
    log = out.with_suffix(".log")
    with memory_group(LIMIT) as group:
        start = time.perf_counter()
        code, usage = run_in(group, command, log)
        seconds = time.perf_counter() - start
    facts = {
        "rows": n_rows,
        "columns": n_columns,
        "processes": 1,
        "threads": pace.threads,
        "gigaflops_of_products": round(pace.products / 1e9, 2),
        "read_mb_per_second": round(pace.bytes_read / 1e6, 1),
        "file_mb": round(path.stat().st_size / 1e6, 1),
        "limit_mb": None if group is None else LIMIT / 1e6,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mb": round(usage.ru_maxrss / 1024, 1),
        "load": round(os.getloadavg()[0], 2),
    }
    if code:
        return facts | {"status": f"exit code {code}", "log": log.read_text()[-2000:]}
    summary = json.loads((out / "summary.json").read_text())
    phases = summary["seconds"]
    return facts | {
        "status": "ok",
        "seconds_read": phases["read"],
        "seconds_learn": round(phases["fit"] - phases["label"], 2),
        "seconds_members": round(seconds_of_members(out), 2),
        "seconds_label": phases["label"],
        "nmi": round(scores.nmi(classes_of(n_rows, seed=0), labels_of(out)), 4),
    }


def seconds_of_members(out: Path) -> float:
    """How long the members of all rounds of a run took."""
    lines = (out / run_folder.ROUNDS).read_text().splitlines()
    return sum(json.loads(line)["seconds"]["cluster"] for line in lines)


def labels_of(out: Path) -> np.ndarray:
    """The labels that a run has written: (n_rows,)."""
    import polars as pl

    place = out / LABELS_PARTS
    if place.is_dir():
        return pl.read_parquet(sorted(place.glob("part-*.parquet")), columns=["label"])[
            "label"
        ].to_numpy()
    return pl.read_csv(out / "labels.csv", columns=["label"])["label"].to_numpy()
