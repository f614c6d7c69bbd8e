"""``deccs months``: a year of fits of drifting data, like the month before or each by itself.

The table gives means over sets and seeds; a year with a wrong birth or death counts as wrong as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deccs.app.output import Output, errors_as_messages
from deccs.app.run_error import RunError
from deccs_paper.blocks import Block
from deccs_paper.months.made import APPEARS, LEAVES
from deccs_paper.months.runs import APART, LIKE, read_records, run_missing

PAGE = Block("months", "deccs months pendigits usps uci-statlog sipu-aggregation fcps-hepta")


def command(
    names: Sequence[str], folders: Sequence[Path], n_seeds: int, out: Path, page: Path | None
) -> None:
    """What ``deccs months`` does."""
    output = Output()
    with errors_as_messages(output):
        sets = [(name, file_of(name, folders)) for name in names]
        run_missing(sets, range(n_seeds), out, (LIKE, APART))
        text = page_text(read_records(out), names)
        output.result({}, text)
        if page:
            PAGE.rewrite(page, text)


def file_of(name: str, folders: Sequence[Path]) -> Path:
    found = [folder / f"{name}.npz" for folder in folders if (folder / f"{name}.npz").is_file()]
    if not found:
        raise RunError(f"There is no {name}.npz in {', '.join(map(str, folders))}. Give --folder.")
    return found[0]


def page_text(records: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """A row for each data set, with both ways beside each other, and one for their means."""
    lines = [
        "| data set | years | kept: like | kept: apart | right births and deaths: like | NMI: like | NMI: apart | "
        "CPU seconds a month: like / apart |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows = []
    for name in names:
        parts = {
            way: [r for r in records if (r["data"], r["way"]) == (name, way)]
            for way in (LIKE, APART)
        }
        if not all(parts.values()):
            continue
        rows.append([facts_of(parts[LIKE]), facts_of(parts[APART])])
        lines.append(line_of(name, *rows[-1]))
    if rows:
        means = [
            {key: float(np.mean([row[side][key] for row in rows])) for key in rows[0][side]}
            for side in (0, 1)
        ]
        lines.append(line_of("**mean**", *means))
    return "\n".join(lines)


def facts_of(records: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The means over months and years, and the share of years with the right births and deaths."""
    years = sorted({record["seed"] for record in records})
    told = [told_right([r for r in records if r["seed"] == seed]) for seed in years]
    return {
        "years": len(years),
        "kept": float(np.mean([record["kept"] for record in records if "kept" in record])),
        "right": float(np.mean(told)),
        "nmi": float(np.mean([record["nmi"] for record in records])),
        "seconds": float(np.mean([record["cpu_seconds"] for record in records])),
    }


def told_right(records: Sequence[dict[str, Any]]) -> bool:
    """Whether a year has one birth and one death, in the right months.

    >>> told_right([{"month": 5, "born": [9], "gone": []}, {"month": 9, "born": [], "gone": [2]}])
    True
    >>> told_right([{"month": 5, "born": [9], "gone": [1]}, {"month": 9, "born": [], "gone": [2]}])
    False
    """
    changes = {r["month"]: (len(r.get("born", ())), len(r.get("gone", ()))) for r in records}
    expected = {month: (int(month == APPEARS), int(month == LEAVES)) for month in changes}
    return changes == expected


def line_of(name: str, like: dict[str, float], apart: dict[str, float]) -> str:
    return (
        f"| {name} | {like['years']:.0f} | {like['kept']:.3f} | {apart['kept']:.3f} | {like['right']:.0%} | "
        f"{like['nmi']:.3f} | {apart['nmi']:.3f} | {like['seconds']:.1f} / {apart['seconds']:.1f} |"
    )
