"""``make bench-scale``: whole fits of 100,000 to 10,000,000 rows, labels a second, and what several processes change.

Tables are written to ``--data`` first (4.5 GB for all), and kept. Each whole fit runs in a process that the kernel
stops at 2.5 GB (where it lets us say so: root on Linux). A record is written as soon as it is made; what has one is not
made again. ``--only`` chooses tasks:

fit          whole fits by one process, also of the first 20 columns
label        ``predict`` of rows in memory, against the rate of matrix products
pretraining  rows a second by one and by two processes
parts        labeling of 2,000,000 rows by one and by two processes, and whether 2, 3 and 4 give a result
quality      NMI on data sets with known classes, by one and by two processes; needs DECCS_DATA
killed       one of three processes is killed, and the fit resumed
seeds        whole fits of the smallest and the largest table with other seeds: how much NMI depends on chance
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from deccs.app.pace import measured_pace
from deccs_paper import records
from deccs_paper.records import Record
from deccs_paper.scale import costs, fits, labeling, moons, page, several

EXPERIMENT = "scale"
SIZES = (100_000, 1_000_000, 10_000_000)
NARROW = (1_000_000, 20)  # rows and columns: members also see the raw data
LABELED = 1_000_000  # rows in memory
SEED = 0
FIT, LABEL, PRETRAINING, PARTS, QUALITY, KILLED, SEEDED = TASKS = (
    "fit",
    "label",
    "pretraining",
    "parts",
    "quality",
    "killed",
    "seeds",
)
# Rows, columns, batch, steps, and numbers of processes; the small batch tells the work of a step from that of a row.
TRAININGS = (
    (200_000, 64, 128, 1_000, (1, 2)),
    (200_000, 64, 32, 1_000, (1,)),
    (20_000, 784, 128, 200, (1, 2)),
    (20_000, 784, 32, 200, (1,)),
)
IN_PARTS = ((2_000_000, (1, 2)), (300_000, (2, 3, 4)))  # rows, and numbers of processes
DATASETS, SEEDS = ("usps", "pendigits"), (0, 1, 2)
KILLED_FIT = (9_000, 3_000)  # rows and steps


@dataclass(frozen=True)
class Measurement:
    """What is measured: the facts that tell it from others, and the work."""

    facts: Record
    work: Callable[[], Record]

    def is_in(self, known: Sequence[Record]) -> bool:
        """Whether a record tells of it."""
        return any(
            record["status"] == "ok"
            and all(record.get(name) == value for name, value in self.facts.items())
            for record in known
        )


def measurements(sizes: Sequence[int], data: Path) -> Iterator[Measurement]:
    """Everything that is measured, in order."""
    for n_rows in sizes:
        yield whole_fit(n_rows, moons.N_COLUMNS, run_of(data, n_rows), data)
    yield whole_fit(*NARROW, data / "run-narrow", data)
    run = run_of(data, sizes[-1])
    if (run / "summary.json").exists():
        facts = {"task": LABEL, "rows": LABELED}
        yield Measurement(facts, partial(labeling.measure, run, LABELED, SEED))
    for rows, columns, batch, steps, counts in TRAININGS:
        for n_processes in counts:
            options = {"rows": rows, "columns": columns, "batch": batch, "steps": steps}
            facts = {"task": PRETRAINING, **options, "processes": n_processes}
            yield Measurement(facts, partial(trained, data, n_processes, options))
    for n_rows, numbers in IN_PARTS:
        for n_processes in numbers:
            facts = {"task": PARTS, "rows": n_rows, "processes": n_processes}
            yield Measurement(facts, partial(labeled_in_parts, data, n_rows, n_processes))
    for dataset in DATASETS:
        for seed in SEEDS:
            for n_processes in (1, 2):
                place = {"dataset": dataset, "seed": seed}
                work = partial(several.measured, QUALITY, data, n_processes, **place)
                yield Measurement({"task": QUALITY, **place, "processes": n_processes}, work)
    rows, steps = KILLED_FIT
    yield Measurement(
        {"task": KILLED, "rows": rows, "processes": 3}, partial(several.killed, data, rows, steps)
    )
    for seed in SEEDS[1:]:
        for n_rows in (sizes[0], sizes[-1]):
            yield Measurement(
                {"task": SEEDED, "rows": n_rows, "seed": seed},
                partial(seeded_fit, data, n_rows, seed),
            )


def seeded_fit(data: Path, n_rows: int, seed: int) -> Record:
    return fits.measure(table_of(data, n_rows), n_rows, seed, data / "run-seed", moons.N_COLUMNS)


def whole_fit(n_rows: int, n_columns: int, run: Path, data: Path) -> Measurement:
    def work() -> Record:
        return fits.measure(table_of(data, n_rows), n_rows, SEED, run, n_columns)

    return Measurement({"task": FIT, "rows": n_rows, "columns": n_columns, "processes": 1}, work)


def trained(data: Path, n_processes: int, options: dict[str, Any]) -> Record:
    pace = measured_pace(threads=1)
    result = several.measured(PRETRAINING, data, n_processes, **options)
    return {"gigaflops_of_products": round(pace.products / 1e9, 2), **result}


def labeled_in_parts(data: Path, n_rows: int, n_processes: int) -> Record:
    return several.whole_fit(table_of(data, n_rows), n_rows, data, n_processes)


def table_of(data: Path, n_rows: int) -> Path:
    """The table of so many rows; written where there is none."""
    table = data / f"moons-{n_rows}.parquet"
    if not table.exists():
        moons.write_table(table, n_rows, SEED)
    return table


def made(measurement: Measurement) -> Record:
    """The record of a measurement; one that fails has a record, too."""
    try:
        return {"status": "ok", **measurement.facts, **measurement.work()}
    except (RuntimeError, OSError, ValueError) as error:
        return {"status": f"{type(error).__name__}: {error}", **measurement.facts}


def run_of(data: Path, n_rows: int) -> Path:
    return data / f"run-{n_rows}"


def known_in(path: Path) -> list[Record]:
    """The records that are there."""
    if not path.exists():
        return []
    return [record for record in records.read(path) if record["experiment"] == EXPERIMENT]


def summary(made: Sequence[Record]) -> list[str]:
    """What was asked for, and what was measured.

    >>> fit = {"task": "fit", "columns": 64, "status": "ok", "seconds": 60, "seconds_label": 1, "peak_mb": 900}
    >>> small = fit | {"rows": 10, "nmi": 0.8, "seconds_learn": 20}
    >>> large = fit | {"rows": 90, "nmi": 0.9, "seconds_learn": 30}
    >>> print("\\n".join(summary([small, large])))
    10 rows: 1.0 minutes, 20 s to learn, 1 s to label, 900 MB, NMI 0.800
    90 rows: 1.0 minutes, 30 s to learn, 1 s to label, 900 MB, NMI 0.900
    learning: 1.50 times from the shortest to the longest (asked for: 1.30)
    """
    fitted = {
        r["rows"]: r
        for r in made
        if r["task"] == FIT and r["status"] == "ok" and r.get("columns") == moons.N_COLUMNS
    }
    lines = [
        f"{rows:,} rows: {record['seconds'] / 60:.1f} minutes, {record['seconds_learn']:.0f} s to learn, "
        f"{record['seconds_label']:.0f} s to label, {record['peak_mb']:.0f} MB, NMI {record['nmi']:.3f}"
        for rows, record in sorted(fitted.items())
    ]
    seconds: list[float] = [record["seconds_learn"] for record in fitted.values()]
    if len(seconds) > 1:
        ratio = max(seconds) / min(seconds)
        lines.append(
            f"learning: {ratio:.2f} times from the shortest to the longest (asked for: 1.30)"
        )
    for record in made:
        if record["task"] == LABEL and record["status"] == "ok":
            lines.append(
                f"labels: {record['rows_per_second']:,} rows a second, {record['share_of_products']:.0%} of the rate "
                f"of matrix products (asked for: 60 %); {record['other_labels']} of {record['rows']:,} differ from "
                f"those in double precision, {record['other_labels_of_clear_rows']} of them not close"
            )
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deccs_paper.scale.command",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "deccs-scale")
    parser.add_argument("--out", type=Path, default=Path("results/scale.jsonl"))
    parser.add_argument(
        "--page", type=Path, help="write the tables of this page, and measure nothing"
    )
    parser.add_argument(
        "--costs",
        action="store_true",
        help="print the costs that fit the records, and measure nothing",
    )
    given = parser.parse_args(arguments)
    if given.page:
        page.PAGE.rewrite(given.page, page.page_text(given.out))
        page.PLAN.rewrite(given.page, page.plan_text(given.out))
        return 0
    if given.costs:
        found = asdict(costs.fitted(page.good(known_in(given.out))))
        print("\n".join(f"    {name}={value:.3g}," for name, value in found.items()))
        return 0
    given.data.mkdir(parents=True, exist_ok=True)
    for measurement in measurements(given.sizes, given.data):
        if measurement.facts["task"] not in given.only or measurement.is_in(known_in(given.out)):
            continue
        record = made(measurement)
        records.append(given.out, {"experiment": EXPERIMENT, **record, **records.made_with()})
        print(" ".join(f"{name} {value}" for name, value in record.items()), flush=True)
    print("\n".join(summary(known_in(given.out))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
