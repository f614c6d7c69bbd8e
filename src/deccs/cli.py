"""The command line: from a file to labels, and on to next month's file."""

from __future__ import annotations

import csv
import json
import os
import platform
import shlex
import sys
import time
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console, Group
from rich.table import Table as Grid
from sklearn.cluster import HDBSCAN, Birch, BisectingKMeans
from sklearn.exceptions import ConvergenceWarning

from deccs import DECCS, Pretraining, __version__, demo, runs
from deccs.benchmark import claims
from deccs.benchmark import reproduce as reproducing
from deccs.benchmark.processes import Workers
from deccs.benchmark.records import finite, machine, peak_memory_mb
from deccs.benchmark.results import Results
from deccs.datasets.sources import SOURCES
from deccs.datasets.store import DatasetError, cache_folder, cached_file, user_file
from deccs.embedding import pick_device
from deccs.ensemble import Member, default_members
from deccs.files import CheckpointError
from deccs.files.models import versions
from deccs.progress import Display
from deccs.runs import RunError
from deccs.tables import Table, read_like, read_table
from deccs.tables.reading import MISSING_CHOICES
from deccs.tables.source import listed

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130
SCALES = ("auto", "global", "columns", "none")
OWN_OPTIONS = ("n_clusters", "members", "n_rounds", "scale", "random_state", "autoencoder", "verbose", "callbacks",
               "checkpoint")

app = typer.Typer(
    help="Consensus clustering of tables and images: labels, how far to trust them, and a model for the next file.",
    no_args_is_help=True, pretty_exceptions_show_locals=False, context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    app(prog_name="deccs")


class Voice:
    """What a command says: words to stderr, results to stdout, one JSON object in their place if asked for."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        # A pipe has no width; rich would break the lines at 80.
        self.stderr = Console(stderr=True, width=None if sys.stderr.isatty() else 160)

    def note(self, words: str) -> None:
        if not self.quiet:
            self.stderr.print(words, markup=False, highlight=False, soft_wrap=True)

    def result(self, document: Mapping[str, Any], words: Any) -> None:
        if self.as_json:
            print(json.dumps({"status": "ok", **document}, allow_nan=False))
        elif not self.quiet:
            wide = None if sys.stdout.isatty() else 160
            Console(soft_wrap=True, width=wide).print(words, markup=False, highlight=False)

    def stop(self, words: str, code: int) -> typer.Exit:
        """Say why, and give what to raise."""
        self.stderr.print(f"deccs: {words}", markup=False, highlight=False, soft_wrap=True)
        if self.as_json:
            status = "interrupted" if code == INTERRUPTED else "error"
            print(json.dumps({"status": status, "exit_code": code, "message": words}))
        return typer.Exit(code)


@contextmanager
def plain_errors(voice: Voice) -> Iterator[None]:
    """Bad input is told in a sentence; what nobody expected keeps its traceback."""
    try:
        yield
    except ValueError as error:
        raise voice.stop(str(error), BAD_INPUT) from error
    except (OSError, DatasetError, MemoryError) as error:
        raise voice.stop(f"{type(error).__name__}: {error}", UNEXPECTED) from error
    except KeyboardInterrupt as error:
        raise voice.stop("Stopped; nothing was written.", INTERRUPTED) from error


@contextmanager
def told_warnings(voice: Voice) -> Iterator[None]:
    """Warnings as plain lines, without the code that gave them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.showwarning = lambda message, *place: voice.note(f"Note: {message}")
        yield


# What a fit is asked for: on the command line, else in the config file, else the default.

@dataclass(frozen=True)
class FitOptions:
    """All of it has a default. ``settings`` are parameters of ``DECCS`` for which there is no option."""

    clusters: int = 8
    members: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    id: str | None = None
    scale: str = "auto"
    missing: str = "error"
    rounds: int = 10
    seed: int = 0
    encoding: str = "utf-8"
    header: bool | None = None
    settings: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name, choices in {"scale": SCALES, "missing": MISSING_CHOICES}.items():
            if getattr(self, name) not in choices:
                raise RunError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}.")
        for name in ("clusters", "rounds", "seed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < (name == "clusters"):
                raise RunError(f"{name} must be a whole number of at least {int(name == 'clusters')}, got {value!r}.")


def names_in(text: str | Sequence[str]) -> tuple[str, ...]:
    """
    >>> names_in('age,"height, cm"'), names_in(["age"])
    (('age', 'height, cm'), ('age',))
    """
    words = next(csv.reader([text], skipinitialspace=True), []) if isinstance(text, str) else text
    if isinstance(words, str | bytes) or not all(isinstance(word, str) for word in words):
        raise RunError(f"Names are given as a,b,c or as a list of texts, got {text!r}.")
    return tuple(word.strip() for word in words)


def fit_options(config: Path | None, **given: Any) -> FitOptions:
    """The config file's options, and over them those of the command line."""
    options = {} if config is None else read_config(config)
    options |= {name: value for name, value in given.items() if value is not None}
    for name in ("members", "columns"):
        if options.get(name) is not None:
            options[name] = names_in(options[name])
    return FitOptions(**options)


def read_config(path: Path) -> dict[str, Any]:
    """TOML or JSON with the names of the long options, and a table ``settings``."""
    try:
        text = path.read_text(encoding="utf-8")
        options = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise RunError(f"The config file {path} cannot be read: {error}. It is TOML, or JSON if its name ends with "
                       ".json.") from error
    if not isinstance(options, dict):
        raise RunError(f"The config file {path} must hold names and values, got {type(options).__name__}.")
    known = {field.name: field for field in fields(FitOptions)}
    check_known(options, known, f"The config file {path}")
    for name, value in options.items():
        kinds = {"clusters": int, "rounds": int, "seed": int, "header": bool, "settings": dict,
                 "members": (list, str), "columns": (list, str)}.get(name, str)
        if not isinstance(value, kinds):  # type: ignore[arg-type]
            raise RunError(f"The config file {path}: {name} = {value!r} has the wrong type.")
    return options


def check_known(given: Mapping[str, Any], known: Sequence[str] | Mapping[str, Any], where: str) -> None:
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise RunError(f"{where}: {name!r} is not known.{hint} There are {', '.join(known)}.")


def members_named(names: Sequence[str] | None, n_clusters: int) -> list[Member] | None:
    """Clusterers by name; None leaves the choice to DECCS."""
    if names is None:
        return None
    wanted = max(2, n_clusters)
    known = dict(default_members(wanted)) | {
        "bisecting": BisectingKMeans(wanted), "birch": Birch(n_clusters=wanted), "hdbscan": HDBSCAN(copy=True),
    }
    check_known(dict.fromkeys(names), known, "--members")
    return [(name, known[name]) for name in names]


def estimator(options: FitOptions) -> DECCS:
    settings = dict(options.settings or {})
    known = [name for name in DECCS().get_params(deep=False) if name not in OWN_OPTIONS]
    check_known(settings, known, "settings in the config file")
    if isinstance(settings.get("pretraining"), dict):
        check_known(settings["pretraining"], [field.name for field in fields(Pretraining)],
                    "settings.pretraining in the config file")
        settings["pretraining"] = Pretraining(**settings["pretraining"])
    if isinstance(settings.get("layers"), list):
        settings["layers"] = tuple(settings["layers"])
    return DECCS(
        options.clusters, members=members_named(options.members, options.clusters), n_rounds=options.rounds,
        scale=None if options.scale == "none" else options.scale, random_state=options.seed, **settings,
    )


File = Annotated[Path, typer.Argument(metavar="FILE", help="CSV, TSV, Parquet, Feather, .npy, .npz (array X), or a "
                                                           "folder of images of one size.", show_default=False)]
Run = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that `deccs fit` has written.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace results that are there.")]
Encoding = Annotated[str | None, typer.Option(help="Of CSV and TSV. (default: utf-8)", show_default=False)]
Header = Annotated[bool | None, typer.Option("--header/--no-header", show_default=False,
                                             help="Whether CSV and TSV begin with names. (default: looks)")]


@app.command()
def fit(
    file: File,
    clusters: Annotated[int | None, typer.Option("--clusters", "-k", help="How many. (default: 8)",
                                                 show_default=False)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", show_default=False, help=(
        "Folder for the results. (default: the file's name with -run)"))] = None,
    members: Annotated[str | None, typer.Option(show_default=False, help=(
        "Clusterers that must agree, of kmeans, spectral, agglomerative, mixture, bisecting, birch, hdbscan. "
        "(default: the first four)"))] = None,
    columns: Annotated[str | None, typer.Option(show_default=False, help=(
        "Columns to cluster: a,b,c. (default: all numeric ones)"))] = None,
    id: Annotated[str | None, typer.Option(metavar="COLUMN", show_default=False, help=(
        "Column that names the rows. (default: row numbers)"))] = None,
    scale: Annotated[str | None, typer.Option(show_default=False, help=(
        "One of auto, global (one scale for all, for pixels), columns, none. (default: auto)"))] = None,
    missing: Annotated[str | None, typer.Option(show_default=False, help=(
        "Missing values: error, drop (such rows get no label) or mean. (default: error)"))] = None,
    rounds: Annotated[int | None, typer.Option(help="At most so many. (default: 10)", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same result. (default: 0)", show_default=False)] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", show_default=False, help=(
        "TOML or JSON with any of these options, and settings of DECCS. The command line wins."))] = None,
    encoding: Encoding = None,
    header: Header = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cluster a file: labels, confidence, embedding, model and a report go to a folder.

    Stopped with Ctrl-C or killed, the same command goes on where it was.
    """
    voice = Voice(as_json=as_json, quiet=quiet)
    with plain_errors(voice):
        out = out or Path(f"{file.resolve().stem}-run")
        options = fit_options(config, clusters=clusters, members=members, columns=columns, id=id, scale=scale,
                              missing=missing, rounds=rounds, seed=seed, encoding=encoding, header=header)
        model = estimator(options)
        runs.check_free(out, overwrite=overwrite)
        started = time.perf_counter()
        table = read_table(file, columns=options.columns, id_column=options.id, missing=options.missing,
                           encoding=options.encoding, header=options.header)
        tell_table(voice, file, table)
        read = time.perf_counter()
        try:
            fit_in(out, model, table, voice, overwrite=overwrite)
            seconds = {"read": read - started, "fit": time.perf_counter() - read}
            summary = finite(summarised(file, table, options, model, seconds))
            runs.write_run(out, model, table, summary)
        except KeyboardInterrupt as error:
            raise voice.stop(how_to_go_on(out), INTERRUPTED) from error
        finally:
            runs.tidy(out)
        runs.write_run_report(model, table, out / runs.REPORT, title_of(file))
        voice.result({"out": str(out), **summary}, summary_words(out, summary))


def fit_in(out: Path, model: DECCS, table: Table, voice: Voice, *, overwrite: bool) -> None:
    """Fit with a display of the rounds, and a checkpoint in the folder to go on from."""
    runs.make_folder(out)
    checkpoint = out / runs.CHECKPOINT
    resumed = checkpoint.exists()
    display = nullcontext() if voice.quiet else Display(model.n_rounds, voice.stderr)
    with told_warnings(voice), display as shown:
        model.set_params(checkpoint=checkpoint, callbacks=[] if shown is None else [shown])
        try:
            model.fit(table.X)
        except CheckpointError as error:
            if not overwrite:
                raise RunError(f"{error} Or add --overwrite: it is removed then.") from error
            runs.forget_checkpoint(out)
            model.fit(table.X)
        except ValueError:
            if not resumed:             # bad input leaves nothing
                runs.forget_checkpoint(out)
            raise
    model.set_params(checkpoint=None, callbacks=None)


def how_to_go_on(out: Path) -> str:
    if (out / runs.CHECKPOINT).exists():
        return f"Stopped. What was done is kept in {out / runs.CHECKPOINT}; the same command goes on from there."
    return "Stopped before there was anything to keep. Nothing was written."


def tell_table(voice: Voice, file: Path, table: Table) -> None:
    rows, n_columns = len(table.kept), len(table.feature_names)
    voice.note(f"{file}: {rows:,} rows, {n_columns} columns to cluster.")
    by_reason: dict[str, list[str]] = {}
    for name, reason in table.left_out.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        hint = " (--id keeps it in labels.csv)" if reason.startswith(("named like an id", "counts")) else ""
        voice.note(f"Left out: {listed(names)}: {reason}{hint}.")
    for note in table.notes:
        voice.note(note)


def title_of(file: Path) -> str:
    return f"Clusters of {file.name}"


def summarised(
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
            {"label": label, "size": int(size),
             "confidence": float(confidence[model.labels_ == label].mean()) if size else None}
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
    sizes = listed((f"{cluster['label']}: {cluster['size']}" for cluster in summary["clusters"]), most=30)
    return "\n".join([
        f"clusters    {sizes}",
        f"agreement   {agreements[0]:.3f} at first, {summary['agreement']:.3f} in the best round "
        f"({summary['best_round']} of {len(agreements) - 1})",
        f"confidence  {summary['confidence']:.3f} on average, {data['rows_without_label']} rows without a label",
        f"seconds     {summary['seconds']['read']:.1f} to read, {summary['seconds']['fit']:.1f} to fit",
        f"written     {', '.join(str(out / name) for name in (*runs.RESULTS[1:], runs.REPORT))}",
        f"next        deccs predict {shlex.quote(str(out))} NEW_FILE",
    ])


@app.command()
def predict(
    run: Run,
    file: File,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", show_default=False, help=(
        "CSV file for the labels. (default: stdout)"))] = None,
    missing: Annotated[str | None, typer.Option(show_default=False, help=(
        "Missing values: error, drop or mean (the fit's). (default: as in the fit)"))] = None,
    encoding: Annotated[str | None, typer.Option(help="Of CSV and TSV. (default: as in the fit)",
                                                 show_default=False)] = None,
    header: Header = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Label another file with the model of a run: columns by name, scaled and filled as in the fit."""
    voice = Voice(quiet=quiet)
    with plain_errors(voice):
        if out is not None and out.exists() and not overwrite:
            raise RunError(f"{out} is there already. Name another file with --out, or add --overwrite.")
        model, preprocessing = runs.load_model(run)
        table = read_like(file, preprocessing, missing=missing, encoding=encoding, header=header)
        for note in table.notes:
            voice.note(note)
        labels = model.predict(table.X) if table.kept.any() else np.empty(0, dtype=int)
        text = runs.labels_csv(table, *runs.labelled(model, table, labels))
        if out is None:
            sys.stdout.write(text)
        else:
            runs.write(out, lambda opened: opened.write(text.encode()))
            voice.note(f"{table.kept.sum():,} labels are in {out}.")


@app.command()
def report(
    run: Run,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", show_default=False, help=(
        "HTML file. (default: report.html in DIR)"))] = None,
    data: Annotated[Path | None, typer.Option(metavar="FILE", show_default=False, help=(
        "The data of the fit, if it is not where it was."))] = None,
    quiet: Quiet = False,
) -> None:
    """Write the report of a run anew: one HTML file that needs no network."""
    voice = Voice(quiet=quiet)
    with plain_errors(voice):
        model, preprocessing = runs.load_model(run)
        table = runs.training_table(run, data, preprocessing)
        path = out or run / runs.REPORT
        runs.write_run_report(model, table, path, title_of(data or Path(runs.read_summary(run)["data"]["file"])))
        voice.note(f"The report is in {path}.")


@app.command()
def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR DIR ...", help="Folders that `deccs fit` has written.",
                                                  show_default=False)],
    as_json: AsJson = False,
) -> None:
    """How far the labels of runs agree, row by row (NMI and ARI; rows are matched by id)."""
    voice = Voice(as_json=as_json)
    with plain_errors(voice):
        found = runs.compare(folders)
        grid = Grid(box=None, pad_edge=False, header_style="bold")
        for name in ("run", "rows", "agreement", "cluster sizes"):
            grid.add_column(name, justify="right" if name in ("rows", "agreement") else "left", overflow="fold")
        for run in found["runs"]:
            grid.add_row(run["run"], f"{run['rows']:,}", f"{run['agreement']:.3f}", listed(run["sizes"], most=20))
        pairs = Grid(box=None, pad_edge=False, header_style="bold")
        for name in ("run", "and run", "rows in common", "NMI", "ARI"):
            pairs.add_column(name, justify="left" if "run" in name else "right", overflow="fold")
        for pair in found["pairs"]:
            pairs.add_row(*pair["runs"], f"{pair['rows_in_common']:,}", f"{pair['nmi']:.3f}", f"{pair['ari']:.3f}")
        voice.result(found, Group(grid, "", pairs))


@app.command()
def reproduce(
    what: Annotated[list[str] | None, typer.Argument(metavar="WHAT...", show_default=False, help=(
        "table1, table2, table3, accuracy, fig1 to fig9, study-ensemble-size, study-sample-size, study-lambda, claims, "
        "or all. (with --page-only all)"))] = None,
    data: Annotated[str | None, typer.Option(show_default=False, help="Only these data sets: a,b,c.")] = None,
    methods: Annotated[str | None, typer.Option(show_default=False, help="Only these rows: a,b,c.")] = None,
    seeds: Annotated[int | None, typer.Option(show_default=False, help=(
        "Runs of each cell. (default: DECCS 5, others 3; on MNIST, FMNIST and KMNIST 3 and 1)"))] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time; each gets its share of the cores.")] = 1,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for records, tables and page.")] = (
        Path("reproduced")),
    cache: Annotated[Path | None, typer.Option(metavar="DIR", show_default=False, help=(
        "Pretrained autoencoders, shared by all methods of a seed. (default: autoencoders in --out)"))] = None,
    again: Annotated[bool, typer.Option("--again", help="Also repeat runs that failed.")] = False,
    page_only: Annotated[bool, typer.Option("--page-only", help="Run nothing: from the records alone.")] = False,
) -> None:
    """The paper's tables, figures and studies with our numbers beside the printed ones.

    Runs in results/ of a checkout and those made before are not repeated. Stopped or killed, the same command goes on.
    """
    voice = Voice()
    with plain_errors(voice):
        if not (what or page_only):
            raise RunError(f"Say what to reproduce: {', '.join(reproducing.NAMES)}.")
        asked = reproducing.wanted(what or ["all"], names_in(data) if data else None,
                                   names_in(methods) if methods else None, seeds)
        cache = cache or out / "autoencoders"
        try:
            made = [] if page_only else reproducing.run_missing(asked, out, Workers(jobs, cache), voice.stderr,
                                                                again=again)
        except KeyboardInterrupt as error:
            raise voice.stop(f"Stopped. Runs that ended are in {out / reproducing.RECORDS}; the same command goes on "
                             "from there.", INTERRUPTED) from error
        written = reproducing.write_all(asked, out, cache, draw=not page_only, console=voice.stderr)
        if asked.with_claims:
            results = Results(reproducing.read_records(out))
            voice.result({}, claims.in_words(claims.check_all(results)))
        voice.note(f"The page is {written[-1]}.")
        failed = sum(record["status"] != "ok" for record in made)
        if failed:
            raise voice.stop(f"{failed} of {len(made)} records are of failed runs; they are on the page with their "
                             "errors.", UNEXPECTED)


@app.command()
def datasets(as_json: AsJson = False) -> None:
    """The eight data sets of the paper: their sizes, whether they are here, where they come from."""
    voice = Voice(as_json=as_json)
    with plain_errors(voice):
        rows: list[dict[str, Any]] = [
            {"name": name, "title": source.title, "rows": source.n, "columns": source.d, "clusters": source.k,
             "here": where_is(name), "from": source.page}
            for name, source in SOURCES.items()
        ]
        grid = Grid(box=None, pad_edge=False, header_style="bold")
        for name in ("name", "rows", "columns", "clusters", "here", "from"):
            grid.add_column(name, justify="right" if name in ("rows", "columns", "clusters") else "left",
                            overflow="fold")
        for row in rows:
            here = {None: "no", "generated": "generated"}.get(row["here"], "yes")
            grid.add_row(row["name"], f"{row['rows']:,}", str(row["columns"]), str(row["clusters"]), here, row["from"])
        voice.result({"datasets": rows}, grid)


def where_is(name: str) -> str | None:
    """The file of a data set, "generated", or None."""
    path = user_file(name) or cached_file(name)
    return str(path) if path else "generated" if SOURCES[name].generate else None


@app.command()
def info(as_json: AsJson = False) -> None:
    """Versions, cores, device and folders: what to write into a bug report."""
    voice = Voice(as_json=as_json)
    with plain_errors(voice):
        facts: dict[str, Any] = {
            **versions(),
            **{extra: installed(extra) for extra in ("pyarrow", "PIL", "matplotlib", "pymetis", "mtkahypar")},
            "system": platform.platform(), "processor": machine()["processor"], "cores": os.cpu_count(),
            "threads": torch.get_num_threads(), "device": str(pick_device("auto")),
            "data folder": os.environ.get("DECCS_DATA") or None, "cache folder": str(cache_folder()),
        }
        voice.result({"info": facts}, "\n".join(
            f"{name:14}{'not installed' if value is False else 'yes' if value is True else value or 'none'}"
            for name, value in facts.items()))


def installed(module: str) -> bool:
    return find_spec(module) is not None


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder to write to.")] = Path("out"),
    seed: int = 0,
) -> None:
    """DECCS on the paper's SYNTH: labels, representation and a picture."""
    with plain_errors(Voice()):
        demo.run(out, seed)


def say_version(wanted: bool) -> None:
    if wanted:
        print(f"deccs {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", callback=say_version, is_eager=True,
                                          help="Say the version and stop.")] = False,
) -> None:
    pass
