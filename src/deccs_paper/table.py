"""A table of what the records say: mean and deviation over runs, the paper's figure beside it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from deccs_paper.records import Record
from deccs_paper.results import Results
from deccs_paper.settings import PAPER, PAPER_TABLES


def plus_minus(values: list[float]) -> str:
    """Mean and deviation; a single run has no deviation to show."""
    if len(values) < 2:
        return f"{values[0]:.3f}" if values else "not run"
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def markdown(records: Iterable[Record], experiment: str = "default") -> str:
    """NMI of DECCS, with its own settings and with nothing but k, beside its members on the plain autoencoder."""
    runs = Results(records).places
    lines = [
        "| data set | members on the plain autoencoder | DECCS | `DECCS(n_clusters=k)` | runs | paper | ARI | accuracy "
        "| minutes | MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in PAPER:
        rows = runs.get((experiment, "DECCS", name), [])
        ok = [row for row in rows if row["status"] == "ok"]
        plain = [
            row for row in runs.get((experiment, "DECCS plain", name), []) if row["status"] == "ok"
        ]
        if not rows and not plain:
            continue
        mean, deviation = PAPER_TABLES["table2"]["DECCS"][name]
        best_of = ok or plain
        minutes = (
            np.mean([row["seconds"]["total"] for row in best_of]) / 60 if best_of else math.nan
        )
        memory = max((row["peak_memory_mb"] for row in best_of), default=math.nan)
        star = "*" if name == "kmnist" else ""
        lines.append(
            f"| {name.upper()}{star} | {round_zero(best_of)} | **{plus_minus(score(ok, 'nmi'))}** "
            f"| {plus_minus(score(plain, 'nmi'))} | {len(ok)} of {len(rows)}, {len(plain)} "
            f"| {mean:.2f} ± {deviation:.2f} | {plus_minus(score(ok, 'ari'))} | {plus_minus(score(ok, 'accuracy'))} "
            f"| {minutes:.1f} | {memory:.0f} |"
        )
    return "\n".join(lines)


def consensus_markdown(records: Iterable[Record], experiment: str = "default") -> str:
    """NMI of the consensus methods by data set, the paper's figure in brackets, bold where ours is not below it."""
    runs = {
        (method, dataset): found
        for (made_for, method, dataset), found in Results(records).places.items()
        if made_for == experiment and not method.startswith("DECCS")
    }
    names = [name for name in PAPER if any(dataset == name for _, dataset in runs)]
    lines = [
        "| method | " + " | ".join(name.upper() for name in names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    known = list(PAPER_TABLES["table2"])
    found = sorted(
        {method for method, _ in runs},
        key=lambda method: (
            method.startswith("AE+"),
            known.index(method) if method in known else len(known),
            method,
        ),
    )
    for method in found:
        cells = []
        for name in names:
            rows = runs.get((method, name), [])
            paper = PAPER_TABLES["table2"].get(method, {}).get(name)
            cells.append(
                cell(
                    [row["scores"]["nmi"] for row in rows if row["status"] == "ok"],
                    len(rows),
                    paper,
                )
            )
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(values: list[float], n_runs: int, paper: list[float] | None) -> str:
    """Mean over the runs that ended well, how many of how many if some did not, and the paper's.

    >>> cell([0.7, 0.8], 2, [0.72, 0.01]), cell([0.6], 2, [0.72, 0.01]), cell([], 0, None)
    ('**0.75** (0.72)', '0.60, 1 of 2 (0.72)', '')
    """
    printed = f" ({paper[0]:.2f})" if paper else ""
    if not values:
        return ("failed" if n_runs else "") + (printed if n_runs else "")
    mean = f"{np.mean(values):.2f}"
    if paper and float(mean) >= paper[0]:
        mean = f"**{mean}**"
    return mean + (f", {len(values)} of {n_runs}" if len(values) < n_runs else "") + printed


def score(rows: list[Record], name: str) -> list[float]:
    return [row["scores"][name] for row in rows]


def round_zero(rows: list[Record]) -> str:
    """Mean NMI of each member in round 0."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, member in row["rounds"][0]["members"].items():
            values[name].append(member["nmi"])
    return " ".join(f"{np.mean(value):.2f}" for value in values.values())


BEGIN, END = "<!-- table: python -m deccs_paper -->", "<!-- end of table -->"


SPEED_BEGIN, SPEED_END = (
    "<!-- speed: python -m deccs_paper.consensus_speed -->",
    "<!-- end of speed -->",
)


def put_into(text: str, rows: str, begin: str = BEGIN, end: str = END) -> str:
    """A page with the table between its marks made anew.

    >>> put_into(f"before {BEGIN}old{END} after", "new").replace(BEGIN, "<").replace(END, ">")
    'before <\\nnew\\n> after'
    """
    before, rest = text.split(begin)
    return f"{before}{begin}\n{rows}\n{end}{rest.split(end)[1]}"
