"""What novelty is worth, as tables of a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.novelty.cases import set_of
from deccs_paper.novelty.runs import METHODS
from deccs_paper.records import Record
from deccs_paper.table import markdown
from deccs_paper.yardstick.runs import OK, latest

PAGE = Block("novelty", "deccs novelty ../shared/data --page docs/watching.md")


def page_text(out: Path) -> str:
    """The table as Markdown, by data set and over all."""
    made = [r for r in latest(records.read(out), METHODS).values() if r["status"] == OK]
    sets = list(dict.fromkeys(set_of(record["dataset"]) for record in made))
    rows = [row(name, [r for r in made if set_of(r["dataset"]) == name]) for name in sets]
    means = [
        [name, *(f"{mean_of_sets(made, name, key):.{digits}f}" for key, digits in COLUMNS)]
        for name in METHODS
        if any(record["method"] == name for record in made)
    ]
    heads = ["data set", "classes left out", "fresh rows", *(f"AUROC: {name}" for name in METHODS)]
    by_set = markdown([*heads, "false rejects at 1 % / 5 %", "found at 1 %"], rows)
    over_all = markdown(
        ["mean over data sets", "AUROC", "false rejects at 1 %", "at 5 %", "found at 1 %"], means
    )
    return f"{by_set}\n\n{over_all}"


COLUMNS = (("auroc", 3), ("false 0.01", 4), ("false 0.05", 4), ("found 0.01", 3))


def row(name: str, made: Sequence[Record]) -> list[str]:
    """A data set: the AUROC of every score, and what ours rejects."""
    ours = [record for record in made if record["method"] == "DECCS"]
    aurocs = [mean(value(r, "auroc") for r in made if r["method"] == method) for method in METHODS]
    false = [mean(value(record, f"false {rate}") for record in ours) for rate in (0.01, 0.05)]
    return [
        name.upper(),
        ", ".join(str(record["left_out"]) for record in ours),
        f"{sum(record['n_fresh'] for record in ours):,}",
        *(f"{auroc:.3f}" for auroc in aurocs),
        " / ".join(f"{100 * share:.1f} %" for share in false),
        f"{mean(value(record, 'found 0.01') for record in ours):.0%}",
    ]


def value(record: Record, key: str) -> float:
    """A number of a record, "auroc" or "false 0.01".

    >>> value({"false": {"0.01": 0.02}}, "false 0.01")
    0.02
    """
    name, _, rate = key.partition(" ")
    return float(record[name][rate] if rate else record[name])


def mean_of_sets(made: Sequence[Record], method: str, key: str) -> float:
    """All data sets count alike."""
    by_set: dict[str, list[float]] = {}
    for record in made:
        if record["method"] == method:
            by_set.setdefault(set_of(record["dataset"]), []).append(value(record, key))
    return mean(mean(values) for values in by_set.values())


def mean(values: object) -> float:
    return float(np.mean(list(values)))  # type: ignore[call-overload]
