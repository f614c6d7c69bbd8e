"""``deccs mixed``: compare ways to cluster real tables on tables with known classes."""

from __future__ import annotations

from pathlib import Path

from deccs.app.output import UNEXPECTED, Output, errors_as_messages
from deccs.app.request import split_names
from deccs_paper.mixed.methods import METHODS
from deccs_paper.mixed.runs import waiting
from deccs_paper.mixed.sets import GROUPS, read_tables
from deccs_paper.mixed.tables import PAGE, page_text, terminal_tables
from deccs_paper.reproduce import known_names
from deccs_paper.yardstick.command import run_missing


def command(
    folder: Path | None,
    methods: str | None,
    data: str | None,
    n_seeds: int,
    *,
    jobs: int,
    out: Path,
    page: Path | None,
    again: bool,
) -> None:
    """What ``deccs mixed`` does."""
    output = Output()
    with errors_as_messages(output):
        names = [name for group in GROUPS.values() for name in group]
        wanted = known_names(split_names(data), names, "--data") if data else names
        rows = (
            known_names(split_names(methods), list(METHODS), "--methods")
            if methods
            else list(METHODS)
        )
        failed = 0
        if folder:
            tables = read_tables(wanted, folder)
            failed = run_missing(
                output,
                lambda known: waiting(tables, rows, n_seeds, known, again=again),
                jobs,
                out,
            )
        output.result({}, terminal_tables(out))
        if page:
            PAGE.rewrite(page, page_text(out))
        if failed:
            raise output.failure(f"{failed} of the runs have failed; see {out}.", UNEXPECTED)
