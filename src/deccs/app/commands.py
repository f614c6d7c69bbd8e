"""What the commands do; loaded when one is run."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from rich.console import Group
from rich.table import Table as Grid

from deccs import DECCS
from deccs.app import run_folder as runs
from deccs.app.output import INTERRUPTED, UNEXPECTED, Voice, plain_errors, told_warnings
from deccs.app.request import FitOptions, estimator, fit_options
from deccs.app.run_folder import RunError
from deccs.data.tables import Table, read_like, read_table
from deccs.data.tables.raw import listed
from deccs.datasets.sources import SOURCES
from deccs.datasets.store import cache_folder, file_at_hand
from deccs.display import Display
from deccs.environment import machine, peak_memory_mb, versions
from deccs.json_values import finite
from deccs.network.device import pick_device
from deccs.storage import CheckpointError


def fit(
    *,
    file: Path,
    clusters: int | None,
    out: Path | None,
    members: str | None,
    columns: str | None,
    id: str | None,
    scale: str | None,
    missing: str | None,
    rounds: int | None,
    seed: int | None,
    config: Path | None,
    encoding: str | None,
    header: bool | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    voice = Voice(as_json=as_json, quiet=quiet)
    with plain_errors(voice):
        out = out or Path(f"{file.resolve().stem}-run")
        options = fit_options(
            config,
            clusters=clusters,
            members=members,
            columns=columns,
            id=id,
            scale=scale,
            missing=missing,
            rounds=rounds,
            seed=seed,
            encoding=encoding,
            header=header,
        )
        model = estimator(options)
        runs.check_free(out, overwrite=overwrite)
        started = time.perf_counter()
        table = read_table(
            file,
            columns=options.columns,
            id_column=options.id,
            missing=options.missing,
            encoding=options.encoding,
            header=options.header,
        )
        tell_table(voice, file, table)
        read = time.perf_counter()
        summary: dict[str, Any] = {}

        def keep(fitted: DECCS) -> None:
            seconds = {"read": read - started, "fit": time.perf_counter() - read}
            summary.update(finite(summarized(file, table, options, fitted, seconds)))
            runs.write_run(out, fitted, table, summary)

        try:
            fit_in(out, model, table, voice, keep, overwrite=overwrite)
        except KeyboardInterrupt as error:
            raise voice.stop(f"Stopped. {how_to_go_on(out)}", INTERRUPTED) from error
        except OSError as error:  # a full disk, say
            raise voice.stop(
                f"{type(error).__name__}: {error}. {how_to_go_on(out)}", UNEXPECTED
            ) from error
        finally:
            runs.tidy(out)
        runs.write_run_report(model, table, out / runs.REPORT, title_of(file))
        voice.result({"out": str(out), **summary}, summary_words(out, summary))


def fit_in(
    out: Path,
    model: DECCS,
    table: Table,
    voice: Voice,
    keep: Callable[[DECCS], None],
    *,
    overwrite: bool,
) -> None:
    """Fit with a display of the rounds, and a checkpoint in the folder to go on from until ``keep`` has written all."""
    runs.make_folder(out)
    checkpoint = out / runs.CHECKPOINT
    resumed = checkpoint.exists()
    display = nullcontext() if voice.quiet else Display(model.n_rounds, voice.stderr)
    with told_warnings(voice), display as shown:
        model.set_params(
            checkpoint=checkpoint,
            callbacks=[SimpleNamespace(on_fit=keep), *([shown] if shown else [])],
        )
        try:
            model.fit(table.X)
        except CheckpointError as error:
            if not overwrite:
                raise RunError(f"{error} Or add --overwrite: it is removed then.") from error
            runs.forget_checkpoint(out)
            model.fit(table.X)
        except ValueError:
            if not (resumed or hasattr(model, "labels_")):  # bad input leaves nothing
                runs.forget_checkpoint(out)
            raise
    model.set_params(checkpoint=None, callbacks=None)


def how_to_go_on(out: Path) -> str:
    if (out / runs.CHECKPOINT).exists():
        return f"What was done is kept in {out / runs.CHECKPOINT}; the same command goes on from there."
    return "There was nothing to keep yet, and nothing was written."


def tell_table(voice: Voice, file: Path, table: Table) -> None:
    rows, n_columns = len(table.kept), len(table.feature_names)
    voice.note(f"{file}: {rows:,} rows, {n_columns} columns to cluster.")
    by_reason: dict[str, list[str]] = {}
    for name, reason in table.left_out.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        hint = (
            " (--id keeps it in labels.csv)"
            if reason.startswith(("named like an id", "counts"))
            else ""
        )
        voice.note(f"Left out: {listed(names)}: {reason}{hint}.")
    for note in table.notes:
        voice.note(note)


def title_of(file: Path) -> str:
    return f"Clusters of {file.name}"


def summarized(
    file: Path, table: Table, options: FitOptions, model: DECCS, seconds: Mapping[str, float]
) -> dict[str, Any]:
    """What summary.json says: enough to know what was done, with what, and what came of it."""
    confidence = model.consensus_confidence(table.X)
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_)
    return {
        "data": runs.data_facts(file, table),
        "options": {field.name: getattr(options, field.name) for field in fields(options)},
        "scaled": model.scaler_.kind,
        "clusters": [
            {
                "label": label,
                "size": int(size),
                "confidence": float(confidence[model.labels_ == label].mean()) if size else None,
            }
            for label, size in enumerate(sizes)
        ],
        "members": list(model.member_names_),
        "labels_from": model.label_source_,
        "agreement": model.agreement_,
        "best_round": model.best_round_,
        "agreement_over_rounds": [this.agreement for this in model.rounds_],
        "confidence": float(confidence.mean()),
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "peak_memory_mb": peak_memory_mb(),
        "versions": versions(),
        "machine": machine(),
    }


def summary_words(out: Path, summary: Mapping[str, Any]) -> str:
    data, agreements = summary["data"], summary["agreement_over_rounds"]
    sizes = listed(
        (f"{cluster['label']}: {cluster['size']}" for cluster in summary["clusters"]), most=30
    )
    return "\n".join(
        [
            f"clusters    {sizes}",
            f"agreement   {agreements[0]:.3f} at first, {summary['agreement']:.3f} in the best round "
            f"({summary['best_round']} of {len(agreements) - 1})",
            f"confidence  {summary['confidence']:.3f} on average, {data['rows_without_label']} rows without a label",
            f"seconds     {summary['seconds']['read']:.1f} to read, {summary['seconds']['fit']:.1f} to fit",
            f"written     {', '.join(str(out / name) for name in (*runs.RESULTS[1:], runs.REPORT))}",
            f"next        deccs predict {shlex.quote(str(out))} NEW_FILE",
        ]
    )


def predict(
    *,
    run: Path,
    file: Path,
    out: Path | None,
    missing: str | None,
    encoding: str | None,
    header: bool | None,
    overwrite: bool,
    quiet: bool,
) -> None:
    voice = Voice(quiet=quiet)
    with plain_errors(voice):
        if out is not None and out.exists() and not overwrite:
            raise RunError(
                f"{out} is there already. Name another file with --out, or add --overwrite."
            )
        model, preprocessing = runs.load_model(run)
        table = read_like(file, preprocessing, missing=missing, encoding=encoding, header=header)
        for note in table.notes:
            voice.note(note)
        labels = model.predict(table.X) if table.kept.any() else np.empty(0, dtype=int)
        text = runs.labels_csv(table, *runs.labeled(model, table, labels))
        if out is None:
            sys.stdout.write(text)
        else:
            runs.write(out, lambda opened: opened.write(text.encode()))
            voice.note(f"{table.kept.sum():,} labels are in {out}.")


def report(*, run: Path, out: Path | None, data: Path | None, quiet: bool) -> None:
    voice = Voice(quiet=quiet)
    with plain_errors(voice):
        model, preprocessing = runs.load_model(run)
        table = runs.training_table(run, data, preprocessing)
        path = out or run / runs.REPORT
        runs.write_run_report(
            model, table, path, title_of(data or Path(runs.read_summary(run)["data"]["file"]))
        )
        voice.note(f"The report is in {path}.")


def compare(*, folders: list[Path], as_json: bool) -> None:
    voice = Voice(as_json=as_json)
    with plain_errors(voice):
        found = runs.compare(folders)
        grid = Grid(box=None, pad_edge=False, header_style="bold")
        for name in ("run", "rows", "agreement", "cluster sizes"):
            grid.add_column(
                name, justify="right" if name in ("rows", "agreement") else "left", overflow="fold"
            )
        for run in found["runs"]:
            grid.add_row(
                run["run"],
                f"{run['rows']:,}",
                f"{run['agreement']:.3f}",
                listed(run["sizes"], most=20),
            )
        pairs = Grid(box=None, pad_edge=False, header_style="bold")
        for name in ("run", "and run", "rows in common", "NMI", "ARI"):
            pairs.add_column(name, justify="left" if "run" in name else "right", overflow="fold")
        for pair in found["pairs"]:
            pairs.add_row(
                *pair["runs"],
                f"{pair['rows_in_common']:,}",
                f"{pair['nmi']:.3f}",
                f"{pair['ari']:.3f}",
            )
        voice.result(found, Group(grid, "", pairs))


def list_datasets(*, as_json: bool) -> None:
    voice = Voice(as_json=as_json)
    with plain_errors(voice):
        rows: list[dict[str, Any]] = [
            {
                "name": name,
                "title": source.title,
                "rows": source.n,
                "columns": source.d,
                "clusters": source.k,
                "here": where_is(name),
                "from": source.page,
            }
            for name, source in SOURCES.items()
        ]
        grid = Grid(box=None, pad_edge=False, header_style="bold")
        for name in ("name", "rows", "columns", "clusters", "here", "from"):
            grid.add_column(
                name,
                justify="right" if name in ("rows", "columns", "clusters") else "left",
                overflow="fold",
            )
        for row in rows:
            here = {None: "no", "generated": "generated"}.get(row["here"], "yes")
            grid.add_row(
                row["name"],
                f"{row['rows']:,}",
                str(row["columns"]),
                str(row["clusters"]),
                here,
                row["from"],
            )
        voice.result({"datasets": rows}, grid)


def where_is(name: str) -> str | None:
    """The file of a data set, "generated", or None."""
    path = file_at_hand(name)
    return str(path) if path else "generated" if SOURCES[name].generate else None


def info(*, as_json: bool) -> None:
    voice = Voice(as_json=as_json)
    with plain_errors(voice):
        facts: dict[str, Any] = {
            **versions(),
            **{
                extra: installed(extra)
                for extra in ("pyarrow", "PIL", "matplotlib", "pymetis", "mtkahypar")
            },
            "system": platform.platform(),
            "processor": machine()["processor"],
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "device": str(pick_device("auto")),
            "data folder": os.environ.get("DECCS_DATA") or None,
            "cache folder": str(cache_folder()),
        }
        voice.result(
            {"info": facts},
            "\n".join(
                f"{name:14}{'not installed' if value is False else 'yes' if value is True else value or 'none'}"
                for name, value in facts.items()
            ),
        )


def installed(module: str) -> bool:
    return find_spec(module) is not None
