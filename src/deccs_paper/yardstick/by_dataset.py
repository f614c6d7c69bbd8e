"""DECCS with default settings and its rivals on each of the paper's data sets: the table of the README."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.records import Record
from deccs_paper.settings import PAPER
from deccs_paper.table import markdown, plus_minus
from deccs_paper.yardstick.runs import OK, latest

OUT = "results/paper-sets.jsonl"
RIVALS = Block("rivals", f"deccs yardstick ../shared/data --out {OUT} --page README.md")
HEADS = (
    "data set",
    "`DECCS(n_clusters=k)`",
    "its surest 95 %",
    "UMAP + mixture",
    "EVoC told k: all / those it labels",
    "k-means",
    "CPU seconds: DECCS / UMAP + mixture",
    "MB",
)


def rivals_table(path: Path) -> str:
    """NMI, seconds and memory, one line per data set, from the records of a file."""
    made: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in latest(records.read(path)).values():
        if record["status"] == OK:
            made[record["dataset"], record["method"]].append(record)
    rows = [line_of(name, made) for name in PAPER if (name, "DECCS") in made]
    return markdown(HEADS, rows)


def line_of(name: str, made: dict[tuple[str, str], list[Record]]) -> list[str]:
    deccs, umap, evoc = (
        made.get((name, method), []) for method in ("DECCS", "umap+mixture", "evoc")
    )
    seconds = [
        np.mean([record["cpu_seconds"] for record in runs]) if runs else np.nan
        for runs in (deccs, umap)
    ]
    labeled = scores(evoc, "nmi_covered")
    return [
        name.upper() + ("*" if name == "kmnist" else ""),
        f"**{plus_minus(scores(deccs, 'nmi'))}** ({len(deccs)})",
        mean(scores(deccs, "nmi_surest")),
        mean(scores(umap, "nmi")),
        f"{mean(scores(evoc, 'nmi'))} / {mean(labeled)}",
        mean(scores(made.get((name, "kmeans"), []), "nmi")),
        " / ".join("" if np.isnan(value) else f"{value:.0f}" for value in seconds),
        f"{max(record['peak_memory_mb'] for record in deccs):.0f}",
    ]


def scores(made: Sequence[Record], name: str) -> list[float]:
    return [record["scores"][name] for record in made if name in record["scores"]]


def mean(values: Sequence[float]) -> str:
    """Two runs as their mean; nothing for none.

    >>> mean([0.4, 0.6]), mean([])
    ('0.500', '')
    """
    return f"{np.mean(values):.3f}" if values else ""
