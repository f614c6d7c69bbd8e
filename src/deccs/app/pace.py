"""How fast this machine is: matrix products and reading, measured in a second or two."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from deccs.data.scanned import survey_frame

SIDE = 2048  # of the square matrices
SECONDS = 0.7  # for all products
REPEATS = 3
READ_ROWS, READ_COLUMNS = 2**17, 32  # of the temporary file: 17 MB


@dataclass(frozen=True)
class Pace:
    """What one process does in a second."""

    products: (
        float  # multiplications and additions, in products of large matrices in single precision
    )
    bytes_read: float  # of values of a Parquet file that is in memory already
    threads: int  # of the products


def measured_pace(threads: int | None = None) -> Pace:
    """The pace of this machine, with so many threads or torch's usual number of them."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads or before)
        return Pace(product_rate(), read_rate(), torch.get_num_threads())
    finally:
        torch.set_num_threads(before)


def product_rate() -> float:
    """Multiplications and additions a second of a product of square matrices in single precision."""
    left, right = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    return 2 * SIDE**3 / best_seconds(lambda: left @ right, SECONDS)


def read_rate() -> float:
    """Bytes of values a second of the pass that looks for gaps and draws a sample."""
    import polars as pl

    values = torch.rand(READ_COLUMNS, READ_ROWS).numpy()
    with tempfile.TemporaryDirectory(prefix="deccs-") as folder:
        file = Path(folder) / "rows.parquet"
        pl.DataFrame({f"c{place}": column for place, column in enumerate(values)}).write_parquet(
            file
        )
        return values.nbytes / best_seconds(lambda: survey_frame(pl.scan_parquet(file), READ_ROWS))


def best_seconds(work: Callable[[], Any], at_least: float = 0.0) -> float:
    """The shortest of some runs, for so many seconds or more: what others do on the machine only adds to it."""
    seconds: list[float] = []
    while len(seconds) < REPEATS or sum(seconds) < at_least:
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
