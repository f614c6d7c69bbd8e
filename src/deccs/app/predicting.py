"""``deccs predict``: labels for new rows, a moment after they were asked for. Nothing a fit needs is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from deccs.answer import Answer
from deccs.app.labels_file import LabelsFormat, LabelsWriter
from deccs.app.output import UNEXPECTED, Output, give_up, warnings_as_notes
from deccs.app.request import PredictRequest
from deccs.app.run_error import RunError
from deccs.app.run_reading import load_predictor
from deccs.app.watching import check_novelty, checked_rate, drift_in, rejecting
from deccs.data.tables import Table, read_like
from deccs.data.tables.databases import without_password
from deccs.storage.atomic import replacing


def predict(request: PredictRequest, output: Output) -> None:
    out = request.out
    if out is not None and out.exists() and not request.overwrite:
        raise RunError(f"{out} exists. Give another file with --out, or add --overwrite.")
    model, preprocessing = load_predictor(request.run)
    rate = checked_rate(request.reject)
    if rate is not None or request.novelty:
        check_novelty(model, "--novelty" if rate is None else "--reject")
    labels_format = LabelsFormat.for_file(out, request)
    table = read_like(
        request.file,
        preprocessing,
        getattr(model, "coding_", None),
        missing=request.missing,
        encoding=request.encoding,
        header=request.header,
        query=request.query,
    )
    for note in table.notes:
        output.note(note)
    names = getattr(model, "cluster_names_", None)
    with warnings_as_notes(output):
        answers: Iterable[Answer] = ()
        if table.kept.any():
            told = model.answers(table.rows, novelty=rate is not None or request.novelty)
            answers = rejecting(told, rate, shown=request.novelty)
        if out is None:
            print_labels(labels_format.opened(sys.stdout, table, names), answers, output)
        else:
            with replacing(out) as file:
                write_labels(labels_format.opened(file, table, names), answers)
            output.note(f"Wrote {table.kept.sum():,} labels to {out}.")
        tell_drift(request, model, table, output)


def tell_drift(request: PredictRequest, model: Any, table: Table, output: Output) -> None:
    """Say whether the file still looks like that of the fit, and write a page if that was asked for."""
    if output.quiet and request.drift is None:
        return
    drift = drift_in(model, table)
    if drift is None:
        output.note("The file has too few rows to be compared with the data of the fit.")
        return
    output.note(drift.line())
    if request.drift is not None:
        from deccs.report.drift_page import write_drift_page  # the only use of the report

        write_drift_page(
            drift, request.drift, f"Drift of {without_password(request.file).rpartition('/')[2]}"
        )
        output.note(f"Wrote {request.drift}.")


def print_labels(file: LabelsWriter, answers: Iterable[Answer], output: Output) -> None:
    try:
        write_labels(file, answers)
        sys.stdout.flush()
    except OSError as error:
        give_up(sys.stdout)
        message = f"Not all labels could be written to stdout: {error}. Give a file with --out."
        raise output.failure(message, UNEXPECTED) from error


def write_labels(file: LabelsWriter, answers: Iterable[Answer]) -> None:
    for answer in answers:
        file.write(answer)
    file.finish()
