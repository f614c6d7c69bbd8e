"""``make bench-consensus``: seconds and memory of every consensus function, as N grows.

Four members of ten clusters, each the truth with 10 % of its labels drawn at random. Every number
comes from a separate process: the fastest of three runs after a small one that loads everything, and
the most memory the process ever held, including Python and the library.
"""

from __future__ import annotations

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from deccs import scores
from deccs.consensus import FUNCTIONS
from deccs.environment import peak_memory_mb
from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.textbook import TEXTBOOK

SECONDS = Block("speed", "python -m deccs_paper.consensus_speed")

SIZES = (1_000, 10_000, 70_000, 1_000_000)
TEXTBOOK_UP_TO = 10_000  # points: a larger matrix of all pairs does not fit into memory
N_CLUSTERS, N_MEMBERS, NOISE_SHARE = 10, 4, 0.1


@dataclass(frozen=True)
class Measured:
    """One function at one size."""

    function: str
    version: str  # "deccs" or "textbook"
    n_points: int
    seconds: float
    peak_memory_mb: float
    nmi: float  # with the truth the members were made from
    n_clusters: int


def noisy_ensemble(n_points: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The truth (n_points,), and members (n_members, n_points) with a share of labels drawn at random."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(N_CLUSTERS, size=n_points)
    members = np.tile(truth, (N_MEMBERS, 1))
    drawn = rng.random(members.shape) < NOISE_SHARE
    members[drawn] = rng.integers(N_CLUSTERS, size=drawn.sum())
    return truth, members


def measure(function: str, version: str, n_points: int) -> Measured:
    """Measure in this process, which should be a new one."""
    warnings.simplefilter("ignore")

    def answer(members: np.ndarray) -> np.ndarray:
        if version == "textbook":
            return TEXTBOOK[function](members, N_CLUSTERS)
        return FUNCTIONS[function](members, N_CLUSTERS, random_state=0)

    answer(noisy_ensemble(200)[1])
    truth, members = noisy_ensemble(n_points)
    seconds = []
    for _ in range(3 if n_points <= 100_000 and version == "deccs" else 1):
        start = time.perf_counter()
        labels = answer(members)
        seconds.append(time.perf_counter() - start)
    return Measured(
        function,
        version,
        n_points,
        round(min(seconds), 4),
        peak_memory_mb(),
        round(scores.nmi(truth, labels), 4),
        len(np.unique(labels)),
    )


def measure_in_process(function: str, version: str, n_points: int) -> Measured:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, function, version, n_points).result()


def markdown(rows: list[Measured]) -> str:
    """Seconds by size; the textbook's time as a multiple; memory and NMI at the two largest sizes."""
    by_place = {(row.function, row.version, row.n_points): row for row in rows}
    sizes = sorted({row.n_points for row in rows})
    lines = [
        "| function | "
        + " | ".join(f"{n:,}" for n in sizes)
        + " | MB at "
        + " | MB at ".join(f"{n:,}" for n in sizes[-2:])
        + " | NMI |",
        "|---" * (len(sizes) + 2 + len(sizes[-2:])) + "|",
    ]
    for function in dict.fromkeys(row.function for row in rows):
        cells = []
        for n in sizes:
            ours, textbook = by_place[function, "deccs", n], by_place.get((function, "textbook", n))
            ratio = f" (textbook {textbook.seconds / ours.seconds:.0f} x)" if textbook else ""
            cells.append(f"{ours.seconds:.3f} s{ratio}")
        largest = [by_place[function, "deccs", n] for n in sizes[-2:]]
        lines.append(
            f"| {function} | "
            + " | ".join(cells)
            + " | "
            + " | ".join(f"{row.peak_memory_mb:.0f}" for row in largest)
            + f" | {largest[-1].nmi:.3f} |"
        )
    return "\n".join(lines)


def of_records(path: Path) -> list[Measured]:
    """The measurements in a file; of one made twice the later."""
    names = list(Measured.__dataclass_fields__)
    rows = [Measured(**{name: record[name] for name in names}) for record in records.read(path)]
    return list({(row.function, row.version, row.n_points): row for row in rows}.values())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deccs_paper.consensus_speed", description=__doc__
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument(
        "--page", type=Path, help="measure nothing; write the table of --out into this page"
    )
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=list(FUNCTIONS))
    parser.add_argument("--out", type=Path, help="a file to which a JSON line per number is added")
    given = parser.parse_args(arguments)
    if given.page:
        SECONDS.rewrite(given.page, markdown(of_records(given.out)))
        return 0
    wanted = [
        (function, version, n)
        for function in given.functions
        for n in given.sizes
        for version in ("deccs", "textbook")
        if version == "deccs" or (function in TEXTBOOK and n <= TEXTBOOK_UP_TO)
    ]
    console = Console()
    measured = []
    for place in track(wanted, "measuring", console=Console(stderr=True)):
        measured.append(measure_in_process(*place))
        if given.out:
            facts = {"experiment": "consensus-speed", **asdict(measured[-1])}
            records.append(given.out, facts | records.made_with())
    console.print(markdown(measured), soft_wrap=True, highlight=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
