"""``deccs novelty``: leave a class out of a fit, and look whether its rows are found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deccs.app.output import UNEXPECTED, Output, errors_as_messages
from deccs_paper.novelty.cases import cases
from deccs_paper.novelty.runs import EXPERIMENT, METHODS, NoveltyRun
from deccs_paper.novelty.tables import PAGE, page_text
from deccs_paper.records import Record
from deccs_paper.yardstick.command import run_missing
from deccs_paper.yardstick.pool import read_pool
from deccs_paper.yardstick.runs import missing

JUDGED_ON = ("synth", "pendigits", "har", "usps", "mice", "mnist")  # no weight was chosen on them


def command(
    folders: Sequence[Path],
    data: str | None,
    n_classes: int,
    *,
    jobs: int,
    out: Path,
    page: Path | None,
    again: bool,
) -> None:
    """What ``deccs novelty`` does."""
    output = Output()
    with errors_as_messages(output):
        wanted = data.split(",") if data else JUDGED_ON
        files = [file for folder in folders for file in read_pool(folder)]
        unknown = set(wanted) - {file.name for file in files} if folders else set()
        if unknown:
            raise ValueError(f"The folders have no data set {', '.join(sorted(unknown))}.")
        waiting = cases([file for file in files if file.name in wanted], n_classes)
        failed = run_missing(
            output,
            lambda known: missing(
                waiting,
                list(METHODS),
                1,
                known,
                again=again,
                experiment=EXPERIMENT,
                kind=NoveltyRun,
            ),
            jobs,
            out,
            result,
        )
        output.result({}, page_text(out))
        if page:
            PAGE.rewrite(page, page_text(out))
        if failed:
            raise output.failure(f"{failed} of the runs have failed; see {out}.", UNEXPECTED)


def result(record: Record) -> str:
    """The record of a run in one line."""
    return (
        f"AUROC {record['auroc']:.3f}, of fresh rows {record['false']['0.01']:.2%} rejected at 1 %, "
        f"of unknown ones {record['found']['0.01']:.0%}, {record['cpu_seconds']:.1f} CPU s"
    )
