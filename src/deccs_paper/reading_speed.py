"""``make bench-reading``: seconds and memory of reading tables, beside polars itself.

Every number comes from a process of its own. ``pixels`` is 70,000 x 784 whole numbers in CSV, read to numbers in
memory, in turn by polars and by deccs. ``large`` is 10,000,000 rows of mixed columns, read and then passed over twice
without ever being in memory: once for gaps and ranges of all columns, once for all rows in their order. Beside both
stands the whole way to rows that a fit takes: kinds of columns, codes of levels, doubles.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from deccs.data.source import each_block
from deccs.data.tables.readers import read_raw
from deccs.data.tables.reading import read_table
from deccs.environment import peak_memory_mb
from deccs_paper import records

REPEATS = 3
READY = "deccs, ready to fit"  # with the kinds of all columns, and rows of doubles
BY = ("polars", "deccs", READY)
PIXELS, LARGE = (70_000, 784), 10_000_000
BATCH = 50_000  # rows
COLORS = ("red", "green", "blue", "violet")
BYTES_PER_ROW = 200  # of the large file, with some to spare


def write_pixels(path: Path, n_rows: int = PIXELS[0], seed: int = 0) -> None:
    """Whole numbers from 0 to 255, four of five of them 0."""
    rng = np.random.default_rng(seed)
    with path.open("wb") as out:
        out.write((",".join(f"p{place}" for place in range(PIXELS[1])) + "\n").encode())
        for start in range(0, n_rows, 10_000):
            shape = (min(10_000, n_rows - start), PIXELS[1])
            X = rng.integers(0, 256, shape) * (rng.random(shape) < 0.2)  # (n_rows, 784)
            pl.DataFrame(X).write_csv(out, include_header=False)


def write_mixed(path: Path, n_rows: int = LARGE, seed: int = 0) -> None:
    """Twelve columns of fractions, four of whole numbers, three of words, one of days."""
    rng = np.random.default_rng(seed)
    with path.open("wb") as out:
        for start in range(0, n_rows, 500_000):
            n = min(500_000, n_rows - start)
            frame = pl.DataFrame(
                {f"real {place}": rng.normal(size=n) for place in range(12)}
                | {f"whole {place}": rng.integers(0, 10**6, n) for place in range(4)}
                | {f"word {place}": rng.choice(COLORS, n) for place in range(3)}
                | {"day": rng.integers(18_000, 21_000, n)}
            ).with_columns(pl.col("day").cast(pl.Int32).cast(pl.Date))
            frame.write_csv(out, include_header=start == 0, float_precision=5)


def read_pixels(path: Path, by: str) -> dict[str, Any]:
    if by == READY:
        rows = read_table(path).rows
        total = sum(float(block.sum()) for _, block in each_block(rows))
        return {"rows": rows.shape[0], "sum": int(total)}
    frame = pl.read_csv(path) if by == "polars" else None
    if frame is None:
        table = read_raw(path)
        assert table.frame is not None
        frame = table.frame.collect()
    return {"rows": frame.height, "sum": int(frame.sum().sum_horizontal()[0])}


def read_mixed(path: Path, by: str) -> dict[str, Any]:
    """Seconds to read, for gaps and ranges, and for all rows in order."""
    start = time.perf_counter()
    if by == READY:
        rows = read_table(path).rows
        return {"rows": rows.shape[0], "seconds_read": round(time.perf_counter() - start, 2)}
    frame = pl.scan_csv(path, try_parse_dates=True) if by == "polars" else read_raw(path).frame
    assert frame is not None
    read = time.perf_counter()
    ranges = frame.select(
        pl.all().null_count().name.prefix("gaps "),
        pl.all().min().name.prefix("least "),
        pl.all().max().name.prefix("most "),
    ).collect(engine="streaming")
    passed = time.perf_counter()
    n_rows = sum(rows.height for rows in frame.collect_batches(chunk_size=BATCH))
    return {
        "rows": n_rows,
        "gaps": sum(ranges.select("^gaps .*$").row(0)),
        "seconds_read": round(read - start, 2),
        "seconds_ranges": round(passed - read, 2),
        "seconds_rows": round(time.perf_counter() - passed, 2),
    }


TASKS = {"pixels": (write_pixels, read_pixels), "large": (write_mixed, read_mixed)}


def measure(task: str, path: Path, by: str) -> dict[str, Any]:
    """Measure in this process, which should be a new one."""
    start = time.perf_counter()
    found = TASKS[task][1](path, by)
    seconds = round(time.perf_counter() - start, 3)
    return {"task": task, "by": by, "seconds": seconds, "peak_memory_mb": peak_memory_mb()} | found


def measurements(task: str, n_rows: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Each number as it comes; the file is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="deccs-bench-") as folder:
        free, needed = shutil.disk_usage(folder).free, n_rows * BYTES_PER_ROW
        if task == "large" and free < needed + 2**30:
            raise SystemExit(f"{task} needs {needed:,} bytes in {folder}, there are {free:,}.")
        path = Path(folder) / f"{task}.csv"
        TASKS[task][0](path, n_rows)
        for repeat in range(repeats):
            for by in BY:
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    found = pool.submit(measure, task, path, by).result()
                yield found | {"repeat": repeat, "file_mb": round(path.stat().st_size / 1e6, 1)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deccs_paper.reading_speed", description=__doc__
    )
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--rows", type=int, help="of the files, instead of the full size")
    parser.add_argument("--out", type=Path, help="a file to which a JSON line per number is added")
    given = parser.parse_args(arguments)
    for task in given.tasks:
        n_rows = given.rows or {"pixels": PIXELS[0], "large": LARGE}[task]
        seconds: dict[str, list[float]] = {by: [] for by in BY}
        for found in measurements(task, n_rows, REPEATS if task == "pixels" else 1):
            seconds[found["by"]].append(found["seconds"])
            print(" ".join(f"{name} {value}" for name, value in found.items()), flush=True)
            if given.out:
                records.append(given.out, {"experiment": "reading"} | found | records.made_with())
        polars = statistics.median(seconds["polars"])
        for by in BY[1:]:
            ratio = statistics.median(seconds[by]) / polars
            print(f"{task}: {by} takes {ratio:.2f} times as long as polars", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
