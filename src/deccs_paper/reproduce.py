"""``deccs reproduce``: run what is missing, then tables, claims, figures and the page from the records alone."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from rich.console import Console

from deccs_paper import claims, records, render
from deccs_paper.experiments import EXPERIMENTS, FIGURES, TABLES, Experiment, narrowed, runs_of
from deccs_paper.figures import FIGURES as DRAWINGS
from deccs_paper.grid import carry_out_missing, place, summary
from deccs_paper.page import Drawn, Page, picture_of
from deccs_paper.processes import Workers
from deccs_paper.records import Record
from deccs_paper.results import Results, chosen_by_truth, comparisons
from deccs_paper.runner import Run, headers
from deccs_paper.settings import PAPER, RECIPE, TOYS

RECORDS, PAGE = "records.jsonl", "index.html"
WITH_A_TEST = ("table2", "table3")
EVERYTHING, CLAIMS = "all", "claims"
NAMES = (*EXPERIMENTS, CLAIMS, EVERYTHING)


@dataclass(frozen=True)
class Wanted:
    """What was asked for: experiments by name, narrowed to data sets and methods; claims beside them."""

    experiments: Mapping[str, Experiment]
    with_claims: bool
    n_seeds: int | None = None
    fresh: bool = False  # as if nothing were published: the reader checks it all

    def runs(self) -> list[Run]:
        return runs_of(self.experiments, self.n_seeds)


def wanted(
    what: Sequence[str],
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_seeds: int | None = None,
    *,
    fresh: bool = False,
) -> Wanted:
    """By names; errors name those there are."""
    names = known_names(what, NAMES, "reproduce")
    everything = EVERYTHING in names
    chosen = (
        EXPERIMENTS
        if everything
        else {name: EXPERIMENTS[name] for name in dict.fromkeys(names) if name != CLAIMS}
    )
    if datasets is not None:
        datasets = known_names(datasets, (*PAPER, *TOYS), "--data")
    if methods is not None:
        rows = [row for experiment in chosen.values() for row in experiment.rows]
        methods = known_names(
            methods,
            list(dict.fromkeys(name for row in rows for name in (row.label, row.method))),
            f"--methods of {' '.join(names)}",
        )
    if n_seeds is not None and n_seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {n_seeds}.")
    found = {name: narrowed(experiment, datasets, methods) for name, experiment in chosen.items()}
    for name, experiment in found.items():
        if chosen[name].rows and not (experiment.rows and experiment.datasets) and not everything:
            raise ValueError(
                f"Nothing of {name} is left with --data {' '.join(datasets or ['all'])} and --methods "
                f"{' '.join(methods or ['all'])}; it has the data sets {', '.join(chosen[name].datasets)} "
                f"and the rows {', '.join(row.label for row in chosen[name].rows)}."
            )
    return Wanted(found, everything or CLAIMS in names, n_seeds, fresh)


def known_names(given: Sequence[str], known: Sequence[str], where: str) -> list[str]:
    """As they are spelled here, whatever their case."""
    spelled = {name.lower(): name for name in known}
    for name in given:
        if name.lower() not in spelled:
            close = get_close_matches(name.lower(), spelled, n=1, cutoff=0.5)
            hint = f" Did you mean {spelled[close[0]]!r}?" if close else ""
            raise ValueError(
                f"{where}: {name!r} is not known.{hint} There are {', '.join(known) or 'none'}."
            )
    return [spelled[name.lower()] for name in given]


def read_records(out: Path, *, fresh: bool = False) -> list[Record]:
    """Those published in the checkout, unless all shall be made anew, then those of this folder."""
    own = out / RECORDS
    published = (
        [] if fresh else [path for path in records.published() if path.resolve() != own.resolve()]
    )
    return records.read_all([*published, own])


def run_missing(
    asked: Wanted, out: Path, workers: Workers, console: Console, *, again: bool = False
) -> None:
    """Run what has no record. Who makes all anew sees beside each run what the published one has."""
    earlier = records.read_all(records.published()) if asked.fresh else []
    published = {
        place(record): record for found in Results(earlier).places.values() for record in found
    }

    def tell(record: Record) -> None:
        other = published.get(place(record))
        beside = (
            f"  (published: {summary(other)})"
            if other and other.get("n") == record.get("n")
            else ""
        )
        console.print(
            f"{record['dataset']} {record['method']} {record['repetition']} ({record['experiment']}): "
            f"{summary(record)}{beside}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )

    carry_out_missing(
        asked.runs(),
        lambda: read_records(out, fresh=asked.fresh),
        out / RECORDS,
        workers,
        tell,
        console,
        again=again,
        earlier=earlier,
    )


def failed_of(asked: Wanted, results: Results) -> list[Record]:
    """The runs asked for whose last word is an error."""
    places = {place(header) for run in asked.runs() for header in headers(run)}
    return [record for record in results.failed if place(record) in places]


def write_all(
    asked: Wanted, out: Path, cache: Path | None, *, draw: bool, console: Console
) -> tuple[list[Path], list[str]]:
    """Tables, figures and the page from the records: the files, and the figures that could not be drawn.

    Without ``draw`` only figures that need no fit are drawn anew.
    """
    there = read_records(out, fresh=asked.fresh)
    results = Results(there)
    page = Page(results, verdicts=claims.check_all(results) if asked.with_claims else [])
    written = []
    for name, experiment in asked.experiments.items():
        if name in TABLES and experiment.rows and experiment.datasets:
            shown = [record for record in there if record["dataset"] in experiment.datasets]
            if name == "table2" and (best := chosen_by_truth(shown)):
                note = f"{experiment.note} By the truth, where tried: {'; '.join(best)}."
                experiment = replace(experiment, note=note)
            table = results.table(name, experiment, asked.n_seeds)
            tested = comparisons(experiment, table) if name in WITH_A_TEST else []
            page.tables[name] = experiment, table, tested
            for kind, form in render.FORMATS.items():
                written.append(write_text(out / f"{name}.{kind}", form(experiment, table, tested)))
        elif name in FIGURES:
            page.figures.append(drawn(name, there, out, cache, draw=draw, console=console))
    if page.verdicts:
        written.append(write_text(out / f"{CLAIMS}.md", render.claims_markdown(page.verdicts)))
    undrawn = [figure.name for figure in page.figures if figure.failed]
    return [*written, write_text(out / PAGE, page.html())], undrawn


def drawn(
    name: str, there: list[Record], out: Path, cache: Path | None, *, draw: bool, console: Console
) -> Drawn:
    """A figure drawn now, or as it was drawn before: those with fits of their own take minutes."""
    path, picture = out / f"{name}.json", picture_of(out, name)
    before = json.loads(path.read_text()) if path.exists() else {}
    fresh = picture is not None and before.get("recipe") == RECIPE
    if DRAWINGS[name].needs or (draw and not fresh):
        console.print(f"Drawing {name}: {DRAWINGS[name].title}", highlight=False)
        try:
            before = records.finite(DRAWINGS[name].draw(there, out, cache=cache)) | {
                "recipe": RECIPE
            }
        except Exception as error:  # a figure that fails is told in its place; the tables stand
            reason = f"not drawn: {type(error).__name__}: {error}"
            console.print(f"{name} {reason}", style="red", highlight=False, markup=False)
            return Drawn(name, None, reason, failed=True)
        write_text(path, json.dumps(before, indent=1))
        picture = picture_of(out, name)
    return Drawn(
        name, picture, f"not yet drawn: deccs reproduce {name}", claims=before.get("claims", ())
    )


def write_text(path: Path, text: str) -> Path:
    """All of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(
        f".{path.name}.{os.getpid()}.part"
    )  # another process may write it, too
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path
