"""``deccs confidence``: what confidence is worth, over folders of data sets and on noise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from deccs.app.output import UNEXPECTED, Output, errors_as_messages
from deccs_paper.confidence import noise
from deccs_paper.confidence.learning import learned_text
from deccs_paper.confidence.runs import EXPERIMENT, METHODS, ConfidenceRun
from deccs_paper.confidence.tables import PAGE, page_text, write_picture
from deccs_paper.records import Record
from deccs_paper.yardstick.command import run_missing
from deccs_paper.yardstick.pool import DataSet, read_pool
from deccs_paper.yardstick.runs import PoolRun, missing


def command(
    folders: Sequence[Path],
    n_seeds: int,
    *,
    without_clusters: bool,
    jobs: int,
    out: Path,
    page: Path | None,
    again: bool,
    learn: bool,
    terms: Path | None,
    picture: Path | None,
) -> None:
    """What ``deccs confidence`` does."""
    output = Output()
    with errors_as_messages(output):
        if learn:
            if terms is None:
                raise ValueError("Where are the terms to learn from? Give --terms FOLDER.")
            output.result({}, learned_text(terms))
            return
        files: list[DataSet] = [file for folder in folders for file in read_pool(folder)]
        plain = [name for name, method in METHODS.items() if method.by_default]
        work: list[tuple[Sequence[DataSet], list[str], str]] = [(files, plain, EXPERIMENT)]
        if without_clusters:
            work.append((noise.noise_sets(), plain, noise.EXPERIMENT))
            # Members that were trained to agree on ten columns of noise, as in the paper's method.
            ten = [each for each in noise.noise_sets() if each.d == 10 and each.draw == 0]
            work.append((ten, list(METHODS), noise.EXPERIMENT))
        failed = 0
        for sets, methods, experiment in work:
            if sets:
                kept = terms if experiment == EXPERIMENT else None
                find = partial(
                    runs_to_do, sets, methods, experiment, n_seeds, again=again, terms=kept
                )
                failed += run_missing(output, find, jobs, out, result)
        output.result({}, page_text(out))
        if page:
            PAGE.rewrite(page, page_text(out))
        if picture:
            write_picture(out, picture)
        if failed:
            raise output.failure(f"{failed} of the runs have failed; see {out}.", UNEXPECTED)


def runs_to_do(
    sets: Sequence[DataSet],
    methods: Sequence[str],
    experiment: str,
    n_seeds: int,
    known: Sequence[Record],
    *,
    again: bool,
    terms: Path | None,
) -> list[PoolRun]:
    """The runs that have no record, with the folder where they keep terms."""
    runs = missing(
        sets, methods, n_seeds, known, again=again, experiment=experiment, kind=ConfidenceRun
    )
    return [
        ConfidenceRun(run.file, run.seed, run.methods, run.experiment, terms=terms) for run in runs
    ]


def result(record: Record) -> str:
    """The record of a run in one line."""
    known = f", accuracy {record['accuracy']:.3f}" if "accuracy" in record else ""
    ranked = record.get("confidence_auroc")
    return (
        f"confidence {record['confidence']:.3f} (support {record['support']:.3f}){known}"
        f"{'' if ranked is None else f', AUROC {ranked:.3f}'}"
        f"{', warned' if record['warned'] else ''}, {record['cpu_seconds']:.1f} CPU s"
    )
