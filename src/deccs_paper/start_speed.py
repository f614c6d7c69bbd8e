"""``make bench-start``: how soon a fitted model answers, and how many rows it labels, before and after a change.

Everything is measured in new processes, those of both versions in turn: on a shared machine only that can be compared.
Seconds are those on the wall and of the processor, the least of some runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.scale.moons import batch

LIST = Block("start", "make bench-start")
REPEATS = 7
TABLES = {"small": (150, 4), "wide": (300, 64)}  # rows and columns
N_LABELED = 100_000
ALONE = ("numpy", "polars", "torch", "sklearn.base")  # what takes how long to load
BEFORE = "import deccs; model = deccs.DECCS.load({model!r})"
AFTER = "import deccs; model = deccs.load({model!r})"
ESTIMATOR = "import deccs; model = deccs.DECCS.load({model!r})"
# A network as fits of large tables have it. It need not be good to be fast.
FIT_LARGE = """
import numpy as np
from deccs import DECCS, Network, Pretraining, Rounds
X = np.load({rows!r})[:2_000]
short = {{"pretraining": Pretraining(n_epochs=2), "rounds": Rounds(n_rounds=0, n_init=1)}}
DECCS(10, views=None, network=Network(layers=(256, 256, 512, 10)), random_state=0, **short).fit(X).save({model!r})
"""
LABEL = """
import json, time, warnings
import numpy as np
warnings.simplefilter("ignore")
{load}
X = np.load({rows!r})
def best(work, n):
    seconds = []
    for _ in range(n):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)
one = X[:1].astype(float)
found = {{
    "one_row_ms": 1e3 * best(lambda: model.predict(one), 200),
    "one_answer_ms": 1e3 * best(lambda: model.answer(one), 100),
    "rows_per_cpu_second": len(X) / best(lambda: model.predict(X), 3),
    "labels": int(np.dot(model.predict(X), np.arange(len(X)) % 1_000)),
}}
import torch
torch.set_num_threads(1)
A, B = torch.rand(2048, 2048), torch.rand(2048, 2048)
found["products_per_cpu_second"] = 2 * 2048**3 / best(lambda: A @ B, 10)
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Version:
    """A version of deccs, and how it loads a model that shall answer."""

    name: str
    source: Path
    load: str


def run(code: Sequence[str], source: Path, folder: Path) -> tuple[float, float, str]:
    """Seconds on the wall and of the processor of a new process, and what it has printed."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *code], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(code)[:200]} has failed in {folder}.")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, printed


def least(
    codes: Mapping[str, tuple[Sequence[str], Path]], folder: Path, repeats: int
) -> dict[str, dict[str, float]]:
    """The least seconds of several commands, which are run in turn."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in codes}
    for _ in range(repeats):
        for name, (code, source) in codes.items():
            seconds[name].append(run(code, source, folder)[:2])
    return {
        name: {
            "seconds": min(wall for wall, _ in taken),
            "cpu_seconds": min(cpu for _, cpu in taken),
        }
        for name, taken in seconds.items()
    }


def write_tables(folder: Path) -> None:
    """The tables to fit, one row of each, and rows to label."""
    X, _ = batch(0, N_LABELED, seed=0)  # (n, 64)
    np.save(folder / "rows.npy", X)
    for name, (n_rows, n_columns) in TABLES.items():
        frame = pl.DataFrame({f"c{place}": X[:n_rows, place] for place in range(n_columns)})
        frame.write_csv(folder / f"{name}.csv")
        frame[:1].write_csv(folder / f"{name}-one.csv")


def make_runs(folder: Path, source: Path) -> None:
    """Runs of the command line, and a model of a large network, by the older version: both can read them."""
    write_tables(folder)
    for name in TABLES:
        command = ["-m", "deccs", "fit", f"{name}.csv", "--out", name, "-k", "3", "--quiet"]
        run(command, source, folder)
    run(["-c", FIT_LARGE.format(rows="rows.npy", model="large")], source, folder)


def measurements(
    versions: Sequence[Version], folder: Path, repeats: int
) -> Iterator[dict[str, Any]]:
    """Each number as it comes."""
    here = versions[-1].source
    alone = {module: (["-c", f"import {module}"], here) for module in ALONE}
    for module, found in least({"python": (["-c", ""], here), **alone}, folder, repeats).items():
        yield {"task": "import", "what": module} | found
    for table in TABLES:
        shell = ["-m", "deccs", "predict", table, f"{table}-one.csv"]
        codes = {one.name: (shell, one.source) for one in versions}
        for name, found in least(codes, folder, repeats).items():
            yield {"task": "shell", "table": table, "version": name} | found
        loads = {
            one.name: (["-c", one.load.format(model=f"{table}/model")], one.source)
            for one in versions
        }
        loads["after, estimator"] = (["-c", ESTIMATOR.format(model=f"{table}/model")], here)
        for name, found in least(loads, folder, repeats).items():
            yield {"task": "load", "table": table, "version": name} | found
    for one in versions:
        code = LABEL.format(load=one.load.format(model="large"), rows="rows.npy")
        found = json.loads(run(["-c", code], one.source, folder)[2])
        share = found["rows_per_cpu_second"] * flops_per_row() / found["products_per_cpu_second"]
        yield {"task": "labels", "version": one.name, "share_of_products": share} | found


def flops_per_row() -> int:
    """Multiplications and additions that a label takes at least, with the large network."""
    layers = (64, 256, 256, 512, 10, 10)
    return 2 * sum(a * b for a, b in pairwise(layers))


def in_words(found: Mapping[str, Any]) -> str:
    """A measurement as a line of a list."""
    if found["task"] == "labels":
        return (
            f"- labels with 64-256-256-512-10, {found['version']}: {found['rows_per_cpu_second']:,.0f} rows per CPU "
            f"second, {100 * found['share_of_products']:.0f} % of the rate of matrix products; one row "
            f"{found['one_row_ms']:.2f} ms, with all that is known of it {found['one_answer_ms']:.2f} ms"
        )
    what = {
        "import": f"`import {found.get('what')}` alone",
        "shell": f"`deccs predict` of one row, {found.get('table')} table, {found.get('version')}",
        "load": f"a loaded model in Python, {found.get('table')} table, {found.get('version')}",
    }[found["task"]]
    what = "an empty program" if found.get("what") == "python" else what
    return f"- {what}: {found['seconds']:.2f} s, {found['cpu_seconds']:.2f} CPU seconds"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deccs_paper.start_speed", description=__doc__)
    parser.add_argument("--before", type=Path, help="the src folder of an older version")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--folder", type=Path, help="for the runs, which are kept; else a new one")
    parser.add_argument("--out", type=Path, help="a file to which a JSON line per number is added")
    parser.add_argument("--page", type=Path, help="a page whose list of figures is rewritten")
    given = parser.parse_args(arguments)
    after = Version("after", Path(__file__).parents[1], AFTER)
    before = [Version("before", given.before.resolve(), BEFORE)] if given.before else []
    lines = []
    with tempfile.TemporaryDirectory(prefix="deccs-start-") as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "large").exists():
            make_runs(folder, (before or [after])[0].source)
        for found in measurements([*before, after], folder, given.repeats):
            lines.append(in_words(found))
            print(lines[-1].removeprefix("- "), flush=True)
            if given.out:
                records.append(given.out, {"experiment": "start"} | found | records.made_with())
    if given.page:
        LIST.rewrite(given.page, "\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
