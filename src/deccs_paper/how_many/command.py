"""``deccs how-many``: compare rules for the number of clusters over folders of data sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deccs.app.output import UNEXPECTED, Output, errors_as_messages
from deccs.app.request import split_names
from deccs_paper.how_many import no_clusters
from deccs_paper.how_many.learning import learned_text
from deccs_paper.how_many.rules import FIT, RULES
from deccs_paper.how_many.runs import EXPERIMENT, RuleRun
from deccs_paper.how_many.tables import PAGE, page_text, terminal_tables
from deccs_paper.records import Record
from deccs_paper.reproduce import known_names
from deccs_paper.yardstick.command import run_missing
from deccs_paper.yardstick.pool import DataSet, read_pool
from deccs_paper.yardstick.runs import missing


def command(
    folders: Sequence[Path],
    rules: str | None,
    n_seeds: int,
    *,
    without_clusters: bool,
    fits: bool,
    jobs: int,
    out: Path,
    page: Path | None,
    again: bool,
    learn: bool = False,
) -> None:
    """What ``deccs how-many`` does."""
    output = Output()
    with errors_as_messages(output):
        if learn:
            output.result({}, learned_text(out))
            return
        wanted = wanted_rules(rules, without_clusters=without_clusters, fits=fits)
        files: list[DataSet] = [file for folder in folders for file in read_pool(folder)]
        failed = 0
        if files:
            failed = run_missing(
                output,
                lambda known: missing(
                    files, wanted, n_seeds, known, again=again, experiment=EXPERIMENT, kind=RuleRun
                ),
                jobs,
                out,
                result,
            )
        if without_clusters:
            draws = no_clusters.no_cluster_sets()
            failed += run_missing(
                output,
                lambda known: missing(
                    draws,
                    wanted,
                    1,
                    known,
                    again=again,
                    experiment=no_clusters.EXPERIMENT,
                    kind=RuleRun,
                ),
                jobs,
                out,
                result,
            )
        output.result({}, terminal_tables(out))
        if page:
            PAGE.rewrite(page, page_text(out))
        if failed:
            raise output.failure(f"{failed} of the runs have failed; see {out}.", UNEXPECTED)


def wanted_rules(rules: str | None, *, without_clusters: bool, fits: bool) -> list[str]:
    """The rules to run: those named, else all; of data without clusters only those that can say so."""
    names = [name for name, rule in RULES.items() if rule.by_default]
    if rules:
        names = known_names(split_names(rules), list(RULES), "--rules")
    if without_clusters:
        names = [name for name in names if RULES[name].can_say_one]
    return [*names, FIT] if fits and FIT not in names else names


def result(record: Record) -> str:
    """The answer of a rule in one line."""
    first, *others = record["candidates"][:3]
    more = f" (next: {', '.join(map(str, others))})" if others else ""
    return f"{first}{more}, truth {record['k']}, {record['cpu_seconds']:.1f} CPU s"
