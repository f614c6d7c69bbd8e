"""``deccs reproduce``: run what is missing, then make tables, figures, claims and the page from the records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from rich.console import Console

from deccs.app.output import INTERRUPTED, UNEXPECTED, Output, errors_as_messages
from deccs.app.request import split_names
from deccs.json_values import finite
from deccs.spreading import on_cluster
from deccs.storage.atomic import write_text
from deccs_paper import claims, grid, records, render
from deccs_paper.experiments import EXPERIMENTS, FIGURES, TABLES, Experiment, narrowed, runs_of
from deccs_paper.figures import FIGURES as DRAWINGS
from deccs_paper.grid import place, summary
from deccs_paper.page import Drawn, Page, picture_of
from deccs_paper.processes import ClusterWorkers, Workers
from deccs_paper.records import Record
from deccs_paper.results import Results, chosen_by_truth, comparisons
from deccs_paper.runner import Run
from deccs_paper.settings import PAPER, RECIPE, TOYS, row_methods

RECORDS, PAGE, CACHE = "records.jsonl", "index.html", "autoencoders"
WITH_A_TEST = ("table2", "table3")
EVERYTHING, CLAIMS = "all", "claims"
NAMES = (*EXPERIMENTS, CLAIMS, EVERYTHING)


def command(
    what: Sequence[str] | None,
    data: str | None,
    methods: str | None,
    n_seeds: int | None,
    *,
    jobs: int,
    out: Path,
    cache: Path | None,
    again: bool,
    fresh: bool,
    page_only: bool,
) -> None:
    """What ``deccs reproduce`` does."""
    output = Output()
    with errors_as_messages(output):
        if not (what or page_only):
            raise ValueError(f"Say what to reproduce: {', '.join(NAMES)}.")
        selection = select(
            what or [EVERYTHING],
            split_names(data) if data else None,
            split_names(methods) if methods else None,
            n_seeds,
            fresh=fresh,
        )
        cache = cache or out / CACHE
        try:
            if not page_only:
                workers = ClusterWorkers(cache) if on_cluster() else Workers(jobs, cache)
                run_missing(selection, out, workers, output.stderr, again=again)
            files, not_drawn = write_all(
                selection, out, cache, draw=not page_only, console=output.stderr
            )
        except KeyboardInterrupt as error:
            raise output.failure(
                f"Stopped. Finished runs are in {out / RECORDS}; the same command resumes.",
                INTERRUPTED,
            ) from error
        results = Results(read_records(out, fresh=fresh))
        if selection.with_claims:
            output.result({}, claims.in_words(claims.check_all(results)))
        output.note(
            f"The page is {files[-1]}; it shows what you asked for."
            + ("" if page_only else f" Everything: deccs reproduce --page-only --out {out}.")
        )
        failed = failed_runs(selection, results)
        if failed and not page_only:
            raise output.failure(
                f"{len(failed)} of the runs have failed; the page shows their errors. "
                "--again repeats them.",
                UNEXPECTED,
            )
        if not_drawn:
            raise output.failure(
                f"{', '.join(not_drawn)} could not be drawn; see the reason above.", UNEXPECTED
            )


@dataclass(frozen=True)
class Selection:
    """What to reproduce: experiments by name, narrowed to data sets and methods, and the claims."""

    experiments: Mapping[str, Experiment]
    with_claims: bool
    n_seeds: int | None = None
    fresh: bool = False  # as if nothing were published: the reader checks everything

    def runs(self) -> list[Run]:
        return runs_of(self.experiments, self.n_seeds)


def select(
    what: Sequence[str],
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_seeds: int | None = None,
    *,
    fresh: bool = False,
) -> Selection:
    """By names; an error lists those that exist."""
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
        labels = dict.fromkeys(name for row in rows for name in (row.label, row.method))
        methods = known_names(methods, list(labels), f"--methods of {' '.join(names)}")
    if n_seeds is not None and n_seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {n_seeds}.")
    selected = {
        name: narrowed(experiment, datasets, methods) for name, experiment in chosen.items()
    }
    for name, experiment in selected.items():
        if chosen[name].rows and not (experiment.rows and experiment.datasets) and not everything:
            raise ValueError(
                f"Nothing of {name} is left with --data {','.join(datasets or ['all'])} and --methods "
                f"{','.join(methods or ['all'])}; it has the data sets "
                f"{', '.join(chosen[name].datasets)} and the rows "
                f"{', '.join(row.label for row in chosen[name].rows)}."
            )
    return Selection(selected, everything or CLAIMS in names, n_seeds, fresh)


def known_names(given: Sequence[str], known: Sequence[str], where: str) -> list[str]:
    """Names in their usual spelling; upper and lower case do not matter."""
    spelled = {name.lower(): name for name in known}
    for name in given:
        if name.lower() not in spelled:
            close = get_close_matches(name.lower(), spelled, n=1, cutoff=0.5)
            hint = f" Did you mean {spelled[close[0]]!r}?" if close else ""
            raise ValueError(
                f"{where}: {name!r} is not known.{hint} Choose from {', '.join(known) or 'none'}."
            )
    return [spelled[name.lower()] for name in given]


def read_records(out: Path, *, fresh: bool = False) -> list[Record]:
    """Those published in the checkout, unless everything is rerun, then those of this folder."""
    local = out / RECORDS
    published = (
        [] if fresh else [path for path in records.published() if path.resolve() != local.resolve()]
    )
    return records.read_all([*published, local])


def run_missing(
    selection: Selection, out: Path, workers: Workers, console: Console, *, again: bool = False
) -> None:
    """Run what has no record. With ``fresh``, each result is printed next to the published one."""
    earlier = records.read_all(records.published()) if selection.fresh else []
    published = {
        place(record): record for group in Results(earlier).places.values() for record in group
    }

    def tell(record: Record) -> None:
        other = published.get(place(record))
        same_size = other is not None and other.get("n") == record.get("n")
        beside = f"  (published: {summary(other)})" if other and same_size else ""
        console.print(
            f"{record['dataset']} {record['method']} {record['repetition']} ({record['experiment']}): "
            f"{summary(record)}{beside}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )

    grid.run_missing(
        selection.runs(),
        lambda: read_records(out, fresh=selection.fresh),
        out / RECORDS,
        workers,
        tell,
        console,
        again=again,
        earlier=earlier,
    )


def failed_runs(selection: Selection, results: Results) -> list[Record]:
    """The selected runs that failed and have not succeeded since."""
    places = {
        (run.experiment, method, run.dataset, run.repetition)
        for run in selection.runs()
        for method in row_methods(run.method)
    }
    return [record for record in results.failed if place(record) in places]


def write_all(
    selection: Selection, out: Path, cache: Path | None, *, draw: bool, console: Console
) -> tuple[list[Path], list[str]]:
    """Tables, figures and the page from the records: the files, and the figures that could not be drawn.

    Without ``draw``, only figures that need no fit are drawn again.
    """
    out.mkdir(parents=True, exist_ok=True)
    known = read_records(out, fresh=selection.fresh)
    results = Results(known)
    page = Page(results, verdicts=claims.check_all(results) if selection.with_claims else [])
    texts: dict[str, str] = {}  # by the name of the file
    for name, experiment in selection.experiments.items():
        if name in TABLES and experiment.rows and experiment.datasets:
            shown = [record for record in known if record["dataset"] in experiment.datasets]
            if name == "table2" and (best := chosen_by_truth(shown)):
                note = f"{experiment.note} Chosen by the true classes: {'; '.join(best)}."
                experiment = replace(experiment, note=note)
            table = results.table(name, experiment, selection.n_seeds)
            tested = comparisons(experiment, table) if name in WITH_A_TEST else []
            page.tables[name] = experiment, table, tested
            for kind, form in render.FORMATS.items():
                texts[f"{name}.{kind}"] = form(experiment, table, tested)
        elif name in FIGURES:
            page.figures.append(drawn(name, known, out, cache, draw=draw, console=console))
    if page.verdicts:
        texts[f"{CLAIMS}.md"] = render.claims_markdown(page.verdicts)
    texts[PAGE] = page.html()
    for name, text in texts.items():
        write_text(out / name, text)
    not_drawn = [figure.name for figure in page.figures if figure.failed]
    return [out / name for name in texts], not_drawn


def drawn(
    name: str, known: list[Record], out: Path, cache: Path | None, *, draw: bool, console: Console
) -> Drawn:
    """A figure drawn now, or as it was drawn before: those with fits of their own take minutes."""
    path, picture = out / f"{name}.json", picture_of(out, name)
    numbers = json.loads(path.read_text()) if path.exists() else {}
    up_to_date = picture is not None and numbers.get("recipe") == RECIPE
    if DRAWINGS[name].needs or (draw and not up_to_date):
        console.print(f"Drawing {name}: {DRAWINGS[name].title}", highlight=False)
        try:
            numbers = finite(DRAWINGS[name].draw(known, out, cache=cache)) | {"recipe": RECIPE}
        except Exception as error:  # noqa: BLE001  its place on the page says so
            reason = f"not drawn: {type(error).__name__}: {error}"
            console.print(f"{name} {reason}", style="red", highlight=False, markup=False)
            return Drawn(name, None, reason, failed=True)
        write_text(path, json.dumps(numbers, indent=1))
        picture = picture_of(out, name)
    return Drawn(
        name, picture, f"not drawn yet: deccs reproduce {name}", claims=numbers.get("claims", ())
    )
