"""``make bench-scale``: whole fits of 100,000 to 10,000,000 rows, and how fast a model labels rows.

Tables are written to ``--data`` first (3 GB for all), and kept. Each fit runs in a process that the kernel stops at
2.5 GB (where it lets us say so: root on Linux). A record is written as soon as it is made; what has one is not made
again.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deccs_paper import records
from deccs_paper.records import Record
from deccs_paper.scale import fits, labeling, moons

EXPERIMENT = "scale"
SIZES = (100_000, 1_000_000, 10_000_000)
LABELED = 1_000_000  # rows in memory
SEED = 0
FIT, LABEL = "fit", "label"


def measurements(sizes: Sequence[int], data: Path, known: Sequence[Record]) -> Iterator[Record]:
    """What has no record yet, one after the other."""
    done = {(record["task"], record["rows"]) for record in known if record["status"] == "ok"}
    for n_rows in sizes:
        if (FIT, n_rows) in done:
            continue
        table = data / f"moons-{n_rows}.parquet"
        if not table.exists():
            moons.write_table(table, n_rows, SEED)
        yield {"task": FIT} | fits.measure(table, n_rows, SEED, run_of(data, n_rows))
    run = run_of(data, sizes[-1])
    if (LABEL, LABELED) not in done and (run / "summary.json").exists():
        yield {"task": LABEL, "status": "ok"} | labeling.measure(run, LABELED, SEED)


def run_of(data: Path, n_rows: int) -> Path:
    return data / f"run-{n_rows}"


def known_in(path: Path) -> list[Record]:
    """The records that are there."""
    if not path.exists():
        return []
    return [record for record in records.read(path) if record["experiment"] == EXPERIMENT]


def summary(made: Sequence[Record]) -> list[str]:
    """What was asked for, and what was measured.

    >>> fit = {"task": "fit", "status": "ok", "seconds": 60, "seconds_label": 1, "peak_mb": 900}
    >>> small = fit | {"rows": 10, "nmi": 0.8, "seconds_learn": 20}
    >>> large = fit | {"rows": 90, "nmi": 0.9, "seconds_learn": 30}
    >>> print("\\n".join(summary([small, large])))
    10 rows: 1.0 minutes, 20 s to learn, 1 s to label, 900 MB, NMI 0.800
    90 rows: 1.0 minutes, 30 s to learn, 1 s to label, 900 MB, NMI 0.900
    learning: 1.50 times from the shortest to the longest (asked for: 1.30)
    """
    fitted = {r["rows"]: r for r in made if r["task"] == FIT and r["status"] == "ok"}
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
        if record["task"] == LABEL:
            lines.append(
                f"labels: {record['rows_per_second']:,} rows a second, {record['share_of_products']:.0%} of the rate "
                f"of matrix products (asked for: 60 %); {record['other_labels']} of {record['rows']:,} differ from "
                f"those in double precision, {record['other_labels_of_clear_rows']} of them not close"
            )
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deccs_paper.scale.command", description=__doc__
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "deccs-scale")
    parser.add_argument("--out", type=Path, default=Path("results/scale.jsonl"))
    given = parser.parse_args(arguments)
    given.data.mkdir(parents=True, exist_ok=True)
    for record in measurements(given.sizes, given.data, known_in(given.out)):
        whole: dict[str, Any] = {"experiment": EXPERIMENT} | record | records.made_with()
        records.append(given.out, whole)
        print(" ".join(f"{name} {value}" for name, value in record.items()), flush=True)
    print("\n".join(summary(known_in(given.out))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
