"""The tables in README.md and docs: mean and deviation over runs, next to the paper's numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.experiments import DEFAULT
from deccs_paper.records import Record
from deccs_paper.results import Result, Results
from deccs_paper.settings import PAPER, PAPER_TABLES

TABLE = Block("table", "deccs benchmark")
HEADS = (
    "data set",
    "members on the plain autoencoder",
    "DECCS",
    "runs",
    "paper",
    "ARI",
    "accuracy",
    "minutes",
    "MB",
)


def of_file(path: Path, experiment: str = DEFAULT) -> str:
    """The table of a file of records: that of DECCS, or of the methods it is compared with."""
    results = Results(records.read_all([path]))
    is_deccs = any(method.startswith("DECCS") for _, method, _ in results.places)
    return (deccs_table if is_deccs else comparison_table)(results, experiment)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(markdown(["method", "USPS"], [["DEC", "0.80"]]))
    | method | USPS |
    |---|---|
    | DEC | 0.80 |
    """
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


def deccs_table(results: Results, experiment: str = DEFAULT) -> str:
    """NMI of DECCS with the paper's settings, and of its members on the plain autoencoder."""
    rows = []
    for name in PAPER:
        made = results.places.get((experiment, "DECCS", name), [])
        ok = succeeded(made)
        if not made:
            continue
        mean, deviation = PAPER_TABLES["table2"]["DECCS"][name]
        seconds = [record["seconds"]["total"] for record in ok]
        memory = max((record["peak_memory_mb"] for record in ok), default=math.nan)
        rows.append(
            [
                name.upper() + ("*" if name == "kmnist" else ""),
                first_round(ok),
                f"**{plus_minus(scores(ok, 'nmi'))}**",
                f"{len(ok)} of {len(made)}",
                f"{mean:.2f} ± {deviation:.2f}",
                plus_minus(scores(ok, "ari")),
                plus_minus(scores(ok, "accuracy")),
                f"{np.mean(seconds) / 60 if seconds else math.nan:.1f}",
                f"{memory:.0f}",
            ]
        )
    return markdown(HEADS, rows)


def comparison_table(results: Results, experiment: str = DEFAULT) -> str:
    """NMI of the other methods by data set, with the paper's number, bold where ours is not below it."""
    places = {
        (method, dataset): made
        for (name, method, dataset), made in results.places.items()
        if name == experiment and not method.startswith("DECCS")
    }
    printed = PAPER_TABLES["table2"]
    names = [name for name in PAPER if any(dataset == name for _, dataset in places)]
    in_paper = list(printed)
    methods = sorted(
        {method for method, _ in places},
        key=lambda method: (
            method.startswith("AE+"),
            in_paper.index(method) if method in in_paper else len(in_paper),
            method,
        ),
    )
    rows = []
    for method in methods:
        cells = []
        for name in names:
            made = places.get((method, name), [])
            values = scores(succeeded(made), "nmi")
            paper = printed.get(method, {}).get(name, ())
            cells.append(cell(Result(tuple(values), len(made) - len(values), 0, tuple(paper))))
        rows.append([method, *cells])
    return markdown(["method", *(name.upper() for name in names)], rows)


def cell(result: Result) -> str:
    """The mean, how many runs succeeded if some did not, and the paper's number.

    >>> cell(Result((0.7, 0.8), 0, 0, (0.72, 0.01))), cell(Result((0.6,), 1, 0, (0.72, 0.01)))
    ('**0.75** (0.72)', '0.60, 1 of 2 (0.72)')
    >>> cell(Result((), 0, 0)), cell(Result((), 2, 0))
    ('', 'failed')
    """
    n_ok, n_runs = len(result.values), len(result.values) + result.n_failed
    if not n_runs:
        return ""
    paper = f" ({result.printed[0]:.2f})" if result.printed else ""
    if not n_ok:
        return f"failed{paper}"
    mean = f"{result.mean:.2f}"
    if result.printed and float(mean) >= result.printed[0]:
        mean = f"**{mean}**"
    return mean + (f", {n_ok} of {n_runs}" if n_ok < n_runs else "") + paper


def plus_minus(values: Sequence[float]) -> str:
    """Mean and deviation; a single run has no deviation.

    >>> plus_minus([0.4, 0.6]), plus_minus([0.4]), plus_minus([])
    ('0.500 ± 0.100', '0.400', 'not run')
    """
    return Result(tuple(values), 0, 0, reason="not run").number


def succeeded(made: Sequence[Record]) -> list[Record]:
    return [record for record in made if record["status"] == "ok"]


def scores(made: Sequence[Record], name: str) -> list[float]:
    return [record["scores"][name] for record in made]


def first_round(made: Sequence[Record]) -> str:
    """Mean NMI of each member in round 0."""
    values: dict[str, list[float]] = defaultdict(list)
    for record in made:
        for name, member in record["rounds"][0]["members"].items():
            values[name].append(member["nmi"])
    return " ".join(f"{np.mean(value):.2f}" for value in values.values())
