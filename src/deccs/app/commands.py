"""What the commands do, a function each; imported when one is run."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import typer
from rich.console import Group as Lines
from rich.table import Table as Grid

from deccs.app import run_folder
from deccs.app.comparison import compare_runs, draw_flow
from deccs.app.editing import edited_run
from deccs.app.given import given_to
from deccs.app.labels_file import LabelsFormat
from deccs.app.methods import estimator_for, methods
from deccs.app.output import (
    BAD_INPUT,
    INTERRUPTED,
    UNEXPECTED,
    Output,
    in_words,
    printable,
    prints_to_stderr,
    warnings_as_notes,
)
from deccs.app.pace import measured_pace
from deccs.app.plan import Job, headline, plan_of, table_of
from deccs.app.renaming import rename_in_run
from deccs.app.request import (
    CompareRequest,
    DatasetsRequest,
    EditRequest,
    ExportRequest,
    FitRequest,
    InfoRequest,
    PlanRequest,
    RenameRequest,
    ReportRequest,
    RequestError,
    WatchRequest,
)
from deccs.app.run_error import RunError
from deccs.app.run_folder import RunLog, RunWriter, write_run_report
from deccs.app.run_reading import load_model, read_summary, training_table
from deccs.app.summary import is_of_same_fit, summarize, summary_text
from deccs.app.watching import (
    DRIFTED,
    drift_in,
    entry_for,
    file_sha256,
    model_sha256,
    table_rows,
)
from deccs.base import Clusterer
from deccs.clock import Clock
from deccs.data.kinds import ColumnKind, short
from deccs.data.tables import Table, read_like, read_table
from deccs.data.tables.databases import without_password
from deccs.data.tables.raw import GoneError, TableError, listed
from deccs.data.tables.readers import READERS
from deccs.datasets.sources import SOURCES
from deccs.datasets.store import cache_folder, file_at_hand
from deccs.display import Display
from deccs.edits.documents import in_words as edit_in_words
from deccs.environment import processor_name, versions
from deccs.group.group import ALONE, Group
from deccs.group.joining import distributed, is_launched
from deccs.group.watch import GroupError
from deccs.json_values import finite
from deccs.members import default
from deccs.network.device import pick_device
from deccs.report.drift_page import write_history_page
from deccs.storage import CheckpointError, FolderCheckpoint, InUseError
from deccs.storage.locks import NAME as LOCK
from deccs.watching import history

MOST_KINDS_SHOWN = 60  # columns
MOST_MOVES_SHOWN = 20  # between two runs
EXTRAS = (
    "fastexcel",
    "connectorx",
    "h5py",
    "zarr",
    "pyarrow",
    "PIL",
    "matplotlib",
    "pymetis",
    "mtkahypar",
    "onnx",
    "onnxruntime",
)


def fit(request: FitRequest, output: Output) -> None:
    with launched_processes(output) as group:
        (lead_fit if group.is_first else help_fit)(request, output, group)


@contextmanager
def launched_processes(output: Output) -> Iterator[Group]:
    """The processes that torchrun or another launcher has started; this one alone without a launcher."""
    if not is_launched():
        yield ALONE
        return
    with distributed() as group:
        if group.is_first:
            output.note(f"{group.size} processes on {listed(group.hosts)}.")
        try:
            yield group
        except Exception as error:
            if group.is_first or not group.all_know(error):
                raise
            raise typer.Exit(BAD_INPUT) from error  # the first process tells the user


def lead_fit(request: FitRequest, output: Output, group: Group) -> None:
    """The fit, as the first process does it, or the only one."""
    out = request.folder
    model = estimator_for(request)
    can_replace = request.overwrite or run_folder.was_interrupted(out)
    group.once(lambda: run_folder.check_free(out, overwrite=can_replace))
    clock = Clock()
    table = table_to_fit(request, group)
    clock.lap("read")
    describe_table(output, request.file, table)
    if model.n_clusters == 1:
        output.note("One cluster is asked for: every row gets the label 0.")
    with run_folder.in_use(out) as lock:
        settled = run_folder.settle(out)
        ended_early = settled or (lock.was_left and not request.overwrite)
        is_done = ended_early and finish_interrupted(request, table, output)
        if group.once(lambda: is_done):
            return
        # Another command may have written results meanwhile.
        group.once(lambda: run_folder.check_free(out, overwrite=request.overwrite))
        check_shared(out, table, group)
        fit_into(out, request, model, table, clock, output)


def help_fit(request: FitRequest, output: Output, group: Group) -> None:
    """What the other processes do meanwhile: their part of the reading, the learning and the labels."""
    out = request.folder
    model = estimator_for(request)
    group.once(lambda: None)  # the first process looks whether the folder is free
    table = table_to_fit(request, group)
    if group.once(lambda: False):
        return
    group.once(lambda: None)  # ... and once more
    check_shared(out, table, group)
    writer = RunWriter(out, table, LabelsFormat.of(request), leads=False)
    model.set_params(callbacks=[writer])
    if "checkpoint" in model.get_params(deep=False):
        model.set_params(checkpoint=FolderCheckpoint(out / run_folder.CHECKPOINT))
    given = given_to(request, table)
    with warnings_as_notes(Output(quiet=True)), prints_to_stderr():
        try:
            model.fit(table.rows, **given)
        except CheckpointError:
            if not request.overwrite:
                raise
            model.fit(table.rows, **given)


def table_to_fit(request: FitRequest, group: Group) -> Table:
    if request.like is not None:
        return table_like(request)
    return read_table(
        request.file,
        columns=request.columns,
        exclude=(*request.exclude, *([request.partial] if request.partial else [])),
        kinds={name: str(kind) for name, kind in request.kind.items()},
        id_column=request.id,
        missing=request.missing,
        encoding=request.encoding,
        header=request.header,
        query=request.query,
        group=group,
    )


def table_like(request: FitRequest) -> Table:
    """The data of a fit that is like an earlier one: columns are read as its model wants them."""
    assert request.like is not None
    for name in ("columns", "exclude", "kind"):
        if getattr(request, name):
            raise RequestError(
                f"--{name} has no effect with --like: the columns are those of {request.like}. Leave it out."
            )
    model, preprocessing = load_model(Path(request.like))
    if request.id is not None:
        preprocessing = {**preprocessing, "id_column": request.id}
    return read_like(
        request.file,
        preprocessing,
        getattr(model, "coding_", None),
        encoding=None if request.encoding == "utf-8" else request.encoding,
        header=request.header,
        query=request.query,
    )


def check_shared(out: Path, table: Table, group: Group) -> None:
    """Raise a RunError if processes cannot write their parts of a large table to the same folder."""
    sees = group.each((out / LOCK).exists)
    if table.is_large and not all(sees):
        raise RunError(
            f"{out} must be a folder that all processes see, such as one on a network drive; process "
            f"{sees.index(False)} does not see what process 0 has written to it. Give another --out."
        )


def finish_interrupted(request: FitRequest, table: Table, output: Output) -> bool:
    """What was left to do after a kill, if the same fit has already written its results."""
    out = request.folder
    if not (out / run_folder.SUMMARY).is_file():
        return False
    summary, checkpoint = read_summary(out), FolderCheckpoint(out / run_folder.CHECKPOINT)
    is_later = checkpoint.last_saved() > (out / run_folder.SUMMARY).stat().st_mtime_ns
    if is_later or not is_of_same_fit(summary, request, table):  # the kill hit another fit
        return False
    output.note(f"The interrupted fit had already written its results to {out}.")
    with report_failures(out, output):
        checkpoint.discard()
        if not (out / run_folder.REPORT).exists():
            model, _ = load_model(out)
            write_run_report(model, table, out / run_folder.REPORT, title_of(request.file))
    output.result({"out": str(out), **summary}, f"The results are in {out}.")
    return True


def fit_into(
    out: Path, request: FitRequest, model: Clusterer, table: Table, clock: Clock, output: Output
) -> None:
    """Fit the model, and write all results to a folder that nobody else writes to."""
    checkpoint = FolderCheckpoint(out / run_folder.CHECKPOINT)
    try:
        with RunWriter(out, table, LabelsFormat.of(request)) as writer:
            given = given_to(request, table)
            train(model, table, given, writer, checkpoint, output, overwrite=request.overwrite)
            clock.lap("fit")
            seconds = clock.laps | writer.seconds
            summary = summarize(request, table, model, writer.answer(), seconds)
            writer.finish(model, summary)
    except KeyboardInterrupt as error:
        raise output.failure(f"Stopped. {what_is_kept(checkpoint)}", INTERRUPTED) from error
    except (
        OSError,
        MemoryError,
        GroupError,
    ) as error:  # such as a full disk, or another process that has ended
        words = str(error) if isinstance(error, TableError) else in_words(error)
        message = f"{words.rstrip('.')}. {what_is_kept(checkpoint)}"
        raise output.failure(message, UNEXPECTED) from error
    with report_failures(out, output):
        checkpoint.discard()
        title = title_of(request.file)
        write_run_report(model, table, out / run_folder.REPORT, title, writer.answer())
    output.result({"out": str(out), **finite(summary)}, summary_text(out, summary))


@contextmanager
def report_failures(out: Path, output: Output) -> Iterator[None]:
    """Say that the results are there if only the report fails."""
    kept = f"The results are complete in {out}; `deccs report {shlex.quote(str(out))}` writes it."
    try:
        yield
    except KeyboardInterrupt as error:
        message = f"Stopped before the report was written. {kept}"
        raise output.failure(message, INTERRUPTED) from error
    except Exception as error:  # whatever it was, it must not look as if the fit had failed
        reason = f"{type(error).__name__}: {error}".rstrip(".")
        message = f"The report could not be written ({reason}). {kept}"
        raise output.failure(message, UNEXPECTED) from error


def train(
    model: Clusterer,
    table: Table,
    given: Mapping[str, Any],
    writer: RunWriter,
    checkpoint: FolderCheckpoint,
    output: Output,
    *,
    overwrite: bool,
) -> None:
    """Fit the model with a display of its progress, from the checkpoint if there is one."""
    can_resume = "checkpoint" in model.get_params(deep=False)
    resume = can_resume and checkpoint.has_states()
    if checkpoint.has_states() and not (can_resume or overwrite):
        raise RunError(
            f"{checkpoint.folder} holds the checkpoint of another fit. Resume that one with its "
            "options, give another --out, or add --overwrite to remove it."
        )
    log = RunLog(writer.log, lambda: checkpoint.owner.resumes)
    with ExitStack() as stack:
        stack.enter_context(warnings_as_notes(output))
        stack.enter_context(prints_to_stderr())
        callbacks: list[Any] = [writer, log, *output.listeners]
        if not output.quiet:
            callbacks.append(stack.enter_context(Display(output.stderr)))
        model.set_params(callbacks=callbacks)
        if can_resume:
            model.set_params(checkpoint=checkpoint)
        try:
            model.fit(table.rows, **given)
        except CheckpointError as error:
            if not overwrite:
                raise RunError(f"{error} Or add --overwrite to remove it.") from error
            checkpoint.discard()
            model.fit(table.rows, **given)
        except (InUseError, GoneError):  # the states are those of somebody else, or will be used
            raise
        except ValueError:
            if can_resume and not resume:  # bad input leaves nothing
                checkpoint.discard()
            raise


def what_is_kept(checkpoint: FolderCheckpoint) -> str:
    """How a fit that was stopped can be resumed; a checkpoint without progress is removed."""
    out = checkpoint.folder.parent
    if run_folder.holds_complete_results(out):
        return f"The results are complete; the same command moves them into place in {out}."
    if checkpoint.has_states():
        return f"The progress is kept in {checkpoint.folder}; the same command resumes from it."
    checkpoint.discard()
    return "There was no progress to keep, and nothing was written."


def describe_table(output: Output, file: str, table: Table) -> None:
    """Say what is clustered, of what kind each column is, and what is left out and why."""
    place = without_password(file)
    output.note(
        f"{place}: {len(table.kept):,} rows, {len(table.feature_names)} columns to cluster."
    )
    of_several_kinds = any(kind.kind != "number" or kind.n_missing for kind in table.kinds)
    if of_several_kinds and len(table.kinds) <= MOST_KINDS_SHOWN:
        output.table(kinds_table(table.kinds))
        if any(kind.kind == "id" and kind.name != table.id_column for kind in table.kinds):
            output.note(
                "--id COLUMN keeps a column of ids beside the labels; --kind COLUMN=KIND changes a kind."
            )
    else:
        by_reason: dict[str, list[str]] = {}
        for name, reason in table.left_out.items():
            by_reason.setdefault(reason, []).append(name)
        for reason, names in by_reason.items():
            is_id = reason.startswith(("named like an id", "counts"))
            hint = " (--id keeps it beside the labels)" if is_id else ""
            output.note(f"Left out: {listed(names)}: {reason}{hint}.")
    for note in table.notes:
        output.note(note)


def kinds_table(kinds: Sequence[ColumnKind]) -> Grid:
    """What each column is, as a table for the terminal."""
    rows = [
        [
            printable(short(kind.name, 40)),
            kind.kind if kind.is_used else f"{kind.kind}, left out",
            printable(kind.values),
            f"{kind.n_missing:,}" if kind.n_missing else "",
            printable(kind.why),
        ]
        for kind in kinds
    ]
    return grid(["column", "kind", "values", ">missing", "why"], rows)


def title_of(file: str) -> str:
    return f"Clusters of {without_password(file).rpartition('/')[2]}"


def watch(request: WatchRequest, output: Output) -> None:
    """Compare files with the fit; lines of earlier files stay as they are."""
    model, preprocessing = load_model(request.run)
    path, fingerprint = request.run / history.HISTORY, model_sha256(request.run)
    if not request.run.is_dir():
        raise RunError(f"{request.run} is a file. Give the folder that `deccs fit` has written.")
    entries, compared = history.read(path), []
    for file in request.files:
        sha256 = file_sha256(file)
        entry = history.known_as(entries, sha256, fingerprint)
        if entry is not None:
            output.note(f"{without_password(file)} was compared before, as {entry.file}.")
            compared.append(entry)
            continue
        coding = getattr(model, "coding_", None)
        table = read_like(file, preprocessing, coding, missing=request.missing, query=request.query)
        with warnings_as_notes(output):
            drift = drift_in(model, table)
        if drift is None:
            output.note(f"{without_password(file)} has too few rows to be compared.")
            continue
        entry = entry_for(drift, file, sha256, fingerprint)
        history.append(path, entry)
        entries.append(entry)
        compared.append(entry)
        output.note(f"{entry.file}: {entry.summary}")
    if request.page is not None:
        write_history_page(entries, request.page, f"Drift since the fit of {request.run.name}")
        output.note(f"Wrote {request.page}.")
    heads = [
        "file",
        ">rows",
        ">unlike the fit",
        "cluster that changed most",
        "columns that moved",
        "",
    ]
    rows = [[printable(cell) for cell in row] for row in table_rows(entries)]
    output.result({"files": [dict(entry.document) for entry in entries]}, grid(heads, rows))
    if request.fail_on_drift and any(entry.is_drift for entry in compared):
        raise typer.Exit(DRIFTED)


def report(request: ReportRequest, output: Output) -> None:
    model, preprocessing = load_model(request.run)
    table = training_table(request.run, request.data, preprocessing, model, request.query)
    path = request.out or request.run / run_folder.REPORT
    data = request.data or str(read_summary(request.run)["data"]["file"])
    write_run_report(model, table, path, title_of(data))
    output.note(f"Wrote the report to {path}.")


def export(request: ExportRequest, output: Output) -> None:
    out = request.out or Path(f"{request.run.resolve().name}.onnx")
    if out.exists() and not request.overwrite:
        raise RunError(f"{out} exists. Give another file with --out, or add --overwrite.")
    model, _ = load_model(request.run)
    with warnings_as_notes(output):
        model.export(out, precision=request.precision, outputs=request.outputs)
    output.note(f"Wrote {out}: {out.stat().st_size:,} bytes.")


def rename(request: RenameRequest, output: Output) -> None:
    out = request.run
    with run_folder.in_use(out):
        run_folder.settle(out)
        rename_in_run(out, request.cluster, request.name)
    where = f"the model, {run_folder.SUMMARY}, {run_folder.CLUSTERS} and the labels"
    output.note(f"Cluster {request.cluster} is {request.name!r} now, in {where}.")
    try:
        model, preprocessing = load_model(out)
        table = training_table(out, None, preprocessing, model)
        data = str(read_summary(out)["data"]["file"])
        write_run_report(model, table, out / run_folder.REPORT, title_of(data))
    except (ValueError, OSError) as error:
        output.note(
            f"The report still has the old name ({str(error).rstrip('.')}); `deccs report "
            f"{shlex.quote(str(out))} --data FILE` writes it again."
        )
    else:
        output.note("The report is written again.")


def edit(request: EditRequest, output: Output) -> None:
    out = request.run
    if not (request.words or request.edits):
        edits = list(load_model(out)[0].edits_)
        lines = [f"{at:>3}  {edit_in_words(one)}" for at, one in enumerate(edits, start=1)]
        output.result({"edits": edits}, "\n".join(lines) or "Nothing was edited.")
        return
    with run_folder.in_use(out):
        if run_folder.settle(out):
            raise RunError(
                f"An earlier command was interrupted after it had written all of {out}; its files are in place "
                f"now. Look at `deccs edit {shlex.quote(str(out))}`, and repeat the edit if it is not there."
            )
        title = title_of(request.data or str(read_summary(out)["data"]["file"]))
        with warnings_as_notes(output):
            model = edited_run(request, title)
    output.note(f"{edits_so_far(model)} The files in {out} follow.")


def edits_so_far(model: Clusterer) -> str:
    """What was done, and which clusters there are now."""
    edits = model.edits_
    last = f"Edit {len(edits)}: {edit_in_words(edits[-1])}." if edits else "No edits are left."
    return f"{last} The clusters are {listed(map(str, model.clusters_), most=30)}."


def compare(request: CompareRequest, output: Output) -> None:
    comparison = compare_runs(request.folders)
    runs = [
        [
            run["run"],
            f"{run['rows']:,}",
            "-" if run["agreement"] is None else f"{run['agreement']:.3f}",
            listed(run["sizes"], most=20),
        ]
        for run in comparison["runs"]
    ]
    pairs = [
        [*pair["runs"], f"{pair['rows_in_common']:,}", f"{pair['nmi']:.3f}", f"{pair['ari']:.3f}"]
        for pair in comparison["pairs"]
    ]
    moves = [
        [pair["runs"][1], move["from"], move["to"], f"{move['rows']:,}", f"{move['share']:.1%}"]
        for pair in comparison["pairs"]
        for move in pair.get("moves", ())[:MOST_MOVES_SHOWN]
    ]
    parts: list[Any] = [
        grid(["run", ">rows", ">agreement", "cluster sizes"], runs),
        "",
        grid(["run", "and run", ">rows in common", ">NMI", ">ARI"], pairs),
    ]
    if moves:
        parts += ["", grid(["in run", "from cluster", "to cluster", ">rows", ">of it"], moves)]
    text = Lines(*parts)
    output.result(comparison, text)
    if request.picture is not None:
        draw_flow(request.folders, request.picture)
        output.note(f"Wrote {request.picture}.")


def plan(request: PlanRequest, output: Output) -> None:
    job, pace = job_of(request), measured_pace(request.threads)
    document = plan_of(job, pace, request.network)
    table = grid(["phase", ">time", ""], table_of(job, pace, request.network))
    text = Lines(headline(job, pace), "", table, "", document["advice"])
    output.result({"plan": document}, text)


def job_of(request: PlanRequest) -> Job:
    """The fit that was asked for, if it can be done."""
    rows, columns = request.rows, request.columns
    if rows is None or columns is None:
        raise RequestError(
            "deccs plan needs --rows and --columns, such as --rows 1e9 --columns 64."
        )
    limits: dict[str, tuple[float | None, float, float]] = {
        "--rows": (rows, 2, 1e15),
        "--columns": (columns, 1, 131_072),
        "--processes": (request.processes, 1, 1e6),
        "--threads": (request.threads, 1, 1024),
        "--network": (request.network, 1e-3, 1e6),
        "--bytes-per-value": (request.bytes_per_value, 1e-3, 1024),
    }
    for name, (value, least, most) in limits.items():
        if value is not None and not least <= value <= most:
            raise RequestError(f"{name} must be from {least:g} to {most:g}, got {value:g}.")
    if rows != int(rows):
        raise RequestError(f"--rows must be a whole number, got {rows:g}.")
    return Job(int(rows), columns, request.processes, request.bytes_per_value)


def datasets(request: DatasetsRequest, output: Output) -> None:
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "title": source.title,
            "rows": source.n,
            "columns": source.d,
            "clusters": source.k,
            "here": location(name),
            "from": source.page,
        }
        for name, source in SOURCES.items()
    ]
    lines = [
        [
            row["name"],
            f"{row['rows']:,}",
            str(row["columns"]),
            str(row["clusters"]),
            {None: "no", "generated": "generated"}.get(row["here"], "yes"),
            row["from"],
        ]
        for row in rows
    ]
    heads = ["name", ">rows", ">columns", ">clusters", "here", "from"]
    output.result({"datasets": rows}, grid(heads, lines))


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Grid:
    """A table for the terminal; ``>`` before a head aligns its column to the right."""
    table = Grid(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        justify: Any = "right" if head.startswith(">") else "left"
        table.add_column(head.removeprefix(">"), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def location(name: str) -> str | None:
    """The file of a data set, "generated", or None."""
    path = file_at_hand(name)
    if path:
        return str(path)
    return "generated" if SOURCES[name].generate else None


def info(request: InfoRequest, output: Output) -> None:
    facts: dict[str, Any] = {
        **versions(),
        **{extra: find_spec(extra) is not None for extra in EXTRAS},
        "system": platform.platform(),
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": str(pick_device("auto")),
        "data folder": os.environ.get("DECCS_DATA") or None,
        "cache folder": str(cache_folder()),
        "methods": list(methods()),
        "members": list(default.MEMBERS),
        "files": list(READERS),
    }
    lines = [f"{name:14}{fact_text(value)}" for name, value in facts.items()]
    output.result({"info": facts}, "\n".join(lines))


def fact_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "not installed"
    if isinstance(value, list):
        return ", ".join(value)
    return str(value or "none")
