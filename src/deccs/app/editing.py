"""Edits of a run: the model changes, and all files of the run follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deccs.answer import Answer
from deccs.app import run_folder
from deccs.app.labels_file import LABELS_NAMES, LabelsFormat
from deccs.app.request import EditRequest, RequestError
from deccs.app.run_error import RunError
from deccs.app.run_folder import LABELS, NEW_ROUNDS, REPORT, RunWriter, write_run_report
from deccs.app.run_reading import load_model, read_summary, training_table
from deccs.app.summary import cluster_facts
from deccs.base import Clusterer
from deccs.data.tables import Table
from deccs.edits.documents import FIELDS, read_edits
from deccs.labeling import ROWS_OF_PART, by_part
from deccs.storage.atomic import write_text


def edited_run(request: EditRequest, title: str) -> Clusterer:
    """Make the edits that are asked for; whatever happens, the folder holds the old run or the new one."""
    folder = request.run
    summary = read_summary(folder)
    model, preprocessing = load_model(folder)
    table = training_table(folder, request.data, preprocessing, model, request.query)
    before = model
    n_undone = undone(request.words)
    for _ in range(n_undone):
        model = model.undo(table.rows)
    if not n_undone:
        model = model.edit(edits_of(request, model, table), table.rows)
    if model is before:
        raise RunError("There is nothing to do: the edits are empty.")
    write_run(folder, model, table, summary, title)
    return model


def edits_of(request: EditRequest, model: Clusterer, table: Table) -> list[dict[str, Any]]:
    """The edits of a file, or the one that was typed."""
    if request.edits is not None:
        if request.words:
            raise RequestError("Give an edit or --from FILE, not both.")
        return read_edits(request.edits, len(model.labels_))
    return [typed_edit(request.words, row_numbers(request.rows, table))]


def typed_edit(words: Sequence[str], rows: list[int]) -> dict[str, Any]:
    """The edit that a user has typed.

    >>> typed_edit(["merge", "3", "5"], []), typed_edit(["rename", "4", "very", "loyal"], [])
    ({'edit': 'merge', 'clusters': [3, 5]}, {'edit': 'rename', 'cluster': 4, 'name': 'very loyal'})
    >>> typed_edit(["split", "2", "3"], []), typed_edit(["pin", "3"], [17])
    ({'edit': 'split', 'cluster': 2, 'into': 3}, {'edit': 'pin', 'cluster': 3, 'rows': [17]})
    """
    kind, *rest = words
    if kind == "rename":
        if len(rest) < 2:
            raise RequestError('rename needs a cluster and a name, such as rename 4 "loyal".')
        return {"edit": kind, "cluster": numbers_in(rest[:1])[0], "name": " ".join(rest[1:])}
    if kind not in FIELDS:
        raise RequestError(f"An edit is one of {', '.join(FIELDS)} or undo, got {kind!r:.60}.")
    numbers = numbers_in(rest)
    if kind == "merge":
        return {"edit": kind, "clusters": numbers}
    most = 2 if kind == "split" else 1
    if not 1 <= len(numbers) <= most:
        example = {"split": "split 2, or split 2 3", "pin": "pin 3 --rows a,b", "drop": "drop 7"}
        raise RequestError(f"{kind} is used like this: {example[kind]}.")
    edit: dict[str, Any] = {"edit": kind, "cluster": numbers[0]}
    if len(numbers) == 2:
        edit["into"] = numbers[1]
    if kind == "pin" and not rows:
        raise RequestError("pin needs --rows: the ids of the rows, or their numbers without --id.")
    if rows and kind in ("pin", "split"):
        edit["rows"] = rows
    return edit


def undone(words: Sequence[str]) -> int:
    """How many edits shall be undone.

    >>> undone(["undo"]), undone(["undo", "3"]), undone(["drop", "3"])
    (1, 3, 0)
    """
    if not words or words[0] != "undo":
        return 0
    return 1 if len(words) == 1 else max(1, *numbers_in(words[1:]))


def numbers_in(words: Iterable[str]) -> list[int]:
    """Words as whole numbers."""
    try:
        return [int(word) for word in words]
    except ValueError as error:
        raise RequestError(f"Clusters are given by their numbers: {error}.") from error


def row_numbers(ids: Sequence[str], table: Table) -> list[int]:
    """The rows with these ids, among those that have a label."""
    if not ids:
        return []
    known: dict[str, int] = {}
    for row, name in enumerate(map(str, table.ids[table.kept])):
        known.setdefault(name, row)
    missing = [name for name in ids if name not in known]
    if missing:
        raise RunError(
            f"There is no row {missing[0]!r:.60} with a label. Rows are named as in the file of labels."
        )
    return [known[name] for name in ids]


def write_run(
    folder: Path, model: Clusterer, table: Table, summary: dict[str, Any], title: str
) -> None:
    """Write all results of a run again, with the answers of its edited model."""
    writer = RunWriter(folder, table, format_of(folder, summary))
    rounds = run_folder.read_log(folder / run_folder.ROUNDS)
    with writer:
        tell_answers(writer, model, table)
        answer = writer.answer()
        facts = {**summary, **cluster_facts(model, answer), "edits": list(model.edits_)}
        if rounds:
            write_text(folder / NEW_ROUNDS, rounds.decode())
        writer.finish(model, facts)
    write_run_report(model, table, folder / REPORT, title, writer.answer())


def tell_answers(writer: RunWriter, model: Clusterer, table: Table) -> None:
    """What a fit would tell while it labels its rows."""
    writer.on_fit_start(model)
    if not hasattr(model, "learning_rows_"):
        for answer in model._answers(model._checked(table.rows)):
            writer.on_answer(answer)
    else:
        n_rows = len(model.labels_)
        starts = range(0, n_rows, ROWS_OF_PART)
        parts = [range(start, min(start + ROWS_OF_PART, n_rows)) for start in starts]
        writer.on_parts(0)
        done = 0
        answers: Iterable[Answer] = model._fast_answers(model._checked(table.rows))
        for part, answer in by_part(answers, parts):
            writer.on_answer(answer)
            done += len(answer)
            if done == part.stop:
                writer.on_part(part)
    writer.on_fit_end(model)


def format_of(folder: Path, summary: dict[str, Any]) -> LabelsFormat:
    """The form that the labels of a run have."""
    options = summary.get("options") or {}
    found = [name for name in LABELS_NAMES if (folder / name).is_file()]
    kind = (found[0] if found else LABELS).rpartition(".")[2]
    return LabelsFormat(
        kind, bool(options.get("with_columns", False)), bool(options.get("raw_ids", False))
    )
