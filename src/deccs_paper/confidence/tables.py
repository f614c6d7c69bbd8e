"""What confidence is worth, as tables of a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from deccs import plots
from deccs.calibration import Bins
from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.confidence import noise
from deccs_paper.confidence.runs import EXPERIMENT, METHODS
from deccs_paper.how_many.no_clusters import kind_of
from deccs_paper.records import Record
from deccs_paper.settings import PAPER
from deccs_paper.table import markdown
from deccs_paper.yardstick.runs import OK, latest

PAGE = Block("confidence", "deccs confidence ../shared/pool --page docs/confidence.md")
HEADS = (
    "data set",
    "rows",
    "accuracy",
    "... by majority",
    "members' support",
    "confidence",
    "calibration error",
    "AUROC: support",
    "AUROC: confidence",
    "agreement before / after training",
    "warned",
)
OF_KNOWN = ("accuracy", "accuracy_by_majority", "support", "confidence", "confidence_error")


def page_text(out: Path) -> str:
    """All tables as Markdown."""
    made = [
        record
        for record in latest(records.read(out), METHODS).values()
        if record["status"] == OK and record["method"] == "DECCS"
    ]
    paper, pool = known_sets(out)
    noisy = [record for record in made if record["experiment"] == noise.EXPERIMENT]
    trained = [
        record
        for record in latest(records.read(out), METHODS).values()
        if record["status"] == OK and record["method"] == "DECCS, views=None"
    ]
    parts = []
    if noisy:
        parts.append(f"**Noise: {len(noisy)} draws, asked for 5 clusters**\n\n{noise_table(noisy)}")
    if trained:
        text = noise_table(trained)
        parts.append(f"**The same by the paper's method, 10 columns**\n\n{text}")
    if paper:
        parts.append(f"**The paper's data sets**\n\n{known_table(paper)}")
    if pool:
        parts.append(
            f"**The pool, {len({r['dataset'] for r in pool})} data sets**\n\n{pool_table(pool)}"
        )
    return "\n\n".join(parts)


def known_sets(out: Path) -> tuple[list[Record], list[Record]]:
    """The runs of DECCS on data sets with classes: the paper's, and the others."""
    made = [
        record
        for record in latest(records.read(out), METHODS).values()
        if record["status"] == OK
        and record["method"] == "DECCS"
        and record["experiment"] == EXPERIMENT
    ]
    return (
        [record for record in made if record["dataset"] in PAPER],
        [record for record in made if record["dataset"] not in PAPER],
    )


def noise_table(made: Sequence[Record]) -> str:
    kinds = list(dict.fromkeys(kind_of(record["dataset"]) for record in made))
    rows = []
    for kind in [*kinds, None]:
        chosen = [record for record in made if kind in (None, kind_of(record["dataset"]))]
        rows.append(
            [
                kind or "all",
                str(len(chosen)),
                f"{average(chosen, 'agreement_before'):.2f} / {average(chosen, 'agreement_after'):.2f}",
                f"{average(chosen, 'support'):.3f}",
                f"{average(chosen, 'confidence'):.3f}",
                f"{max(record['confidence'] for record in chosen):.3f}",
                f"{average(chosen, 'warned'):.0%}",
            ]
        )
    heads = ["kind", "draws", "agreement before / after training", "members' support"]
    return markdown([*heads, "confidence", "highest mean confidence", "warned"], rows)


def known_table(made: Sequence[Record]) -> str:
    names = [name for name in PAPER if any(record["dataset"] == name for record in made)]
    rows = []
    for name in names:
        chosen = [record for record in made if record["dataset"] == name]
        first = chosen[0]
        rows.append(
            [
                name.upper(),
                f"{first.get('n_used', first['n']):,}",
                *(f"{average(chosen, key):.3f}" for key in OF_KNOWN),
                *(ranked(chosen, key) for key in ("support_auroc", "confidence_auroc")),
                f"{average(chosen, 'agreement_before'):.2f} / {average(chosen, 'agreement_after'):.2f}",
                "yes" if any(record["warned"] for record in chosen) else "no",
            ]
        )
    errors = average(made, "confidence_error")
    note = (
        f"Mean calibration error {errors:.3f}; of all their rows in one {pooled(made).error:.3f}."
    )
    return f"{markdown(list(HEADS), rows)}\n\n{note}"


def pooled(made: Iterable[Record]) -> Bins:
    """The bins of all rows of some runs."""
    bins = [record["bins"] for record in made]
    rows, confidence, right = (
        np.sum([each[key] for each in bins], axis=0) for key in ("rows", "confidence", "right")
    )
    with np.errstate(invalid="ignore"):  # empty bins have no mean
        return Bins(rows, confidence / rows, right / rows)


def write_picture(out: Path, picture: Path) -> None:
    """The reliability plot of the paper's data sets, and that of the pool beside it."""
    paper, pool = known_sets(out)
    named = {"The paper's data sets": paper, "The pool, weights learned on it": pool}
    parts = {name: made for name, made in named.items() if made}
    if not parts:
        raise ValueError(f"{out} has no records of labeled data sets to draw.")
    figure = plots.new_figure(4 * len(parts), 3.8)
    for place, (name, made) in enumerate(parts.items(), start=1):
        ax = figure.add_subplot(1, len(parts), place)
        plots.draw_reliability(pooled(made), ax)
        ax.set_title(f"{name}\n{ax.get_title()}", fontsize=plots.TEXT, color=plots.INK)
    figure.savefig(picture, format="png", dpi=100, metadata={"Software": None})


def pool_table(made: Sequence[Record]) -> str:
    rows = []
    for name in ("support", "confidence"):
        gaps = [abs(record[name] - record["accuracy"]) for record in made]
        rows.append(
            [
                {"support": "members' support"}.get(name, name),
                f"{average(made, name):.3f}",
                f"{np.mean(gaps):.3f}",
                f"{average(made, f'{name}_error'):.3f}",
                ranked(made, f"{name}_auroc"),
            ]
        )
    heads = ["", "mean", "mean gap to the accuracy", "mean calibration error", "AUROC"]
    warned = sorted({record["dataset"] for record in made if record["warned"]})
    note = (
        f"Mean accuracy is {average(made, 'accuracy'):.3f}, by majority "
        f"{average(made, 'accuracy_by_majority'):.3f}. Calibration error of all rows in one: "
        f"{pooled(made).error:.3f}. Warned of one group: "
    )
    return f"{markdown(heads, rows)}\n\n{note}{', '.join(warned) or 'none'}."


def average(made: Iterable[Record], key: str) -> float:
    return float(np.mean([record[key] for record in made]))


def ranked(made: Iterable[Record], key: str) -> str:
    """The mean AUROC of those runs that have one."""
    values = [record[key] for record in made if record[key] is not None]
    return f"{np.mean(values):.3f}" if values else "-"
