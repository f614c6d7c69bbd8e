"""``deccs benchmark``: run methods on named data sets, with any settings, and print a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deccs.app.output import UNEXPECTED, Output, errors_as_messages
from deccs.app.request import setting_in, split_names
from deccs.spreading import on_cluster
from deccs_paper import grid, records, table
from deccs_paper.experiments import named
from deccs_paper.processes import ClusterWorkers, Workers
from deccs_paper.reproduce import known_names
from deccs_paper.runner import Run
from deccs_paper.settings import METHODS, PAPER, TOYS


def command(
    datasets: Sequence[str],
    methods: str,
    n_seeds: int,
    settings: Sequence[str],
    *,
    jobs: int,
    experiment: str | None,
    out: Path,
    cache: Path,
    page: Path | None,
) -> None:
    """What ``deccs benchmark`` does."""
    output = Output()
    with errors_as_messages(output):
        runs = runs_for(
            known_names(datasets, (*PAPER, *TOYS), "benchmark"),
            known_names(split_names(methods), list(METHODS), "--methods"),
            n_seeds,
            changes_in(settings),
            experiment,
        )
        failed = 0

        def tell(record: records.Record) -> None:
            nonlocal failed
            failed += record["status"] != "ok"
            output.note(
                f"{record['dataset']} {record['method']} {record['repetition']}: "
                f"{grid.summary(record)}"
            )

        if runs:
            workers = ClusterWorkers(cache) if on_cluster() else Workers(jobs, cache)
            grid.run_missing(
                runs,
                lambda: records.read_all([out]),
                out,
                workers,
                tell,
                output.stderr,
                again=True,
            )
        name = runs[0].experiment if runs else experiment or named(changes_in(settings))
        rows = table.of_file(out, name)
        output.result({}, rows)
        if page:
            table.TABLE.rewrite(page, rows)
        if failed:
            raise output.failure(f"{failed} of the runs have failed; see {out}.", UNEXPECTED)


def runs_for(
    datasets: Sequence[str],
    methods: Sequence[str],
    n_seeds: int,
    changes: dict[str, Any],
    experiment: str | None,
) -> list[Run]:
    """Without a name, records are named after what was changed: they must not pass for the tables' own."""
    for method in methods:
        model = METHODS[method].build("synth")
        unknown = sorted(set(changes) - set(model.get_params(deep=True)))
        if unknown:
            raise ValueError(
                f"--set: {type(model).__name__} has no parameter {', '.join(unknown)}. "
                f"It has {', '.join(sorted(model.get_params(deep=True)))}."
            )
    return [
        Run(experiment or named(changes), method, name, repetition, changes)
        for name in datasets
        for repetition in range(n_seeds)
        for method in methods
    ]


def changes_in(settings: Sequence[str]) -> dict[str, Any]:
    """Parameters by scikit-learn's names, from settings as they are typed.

    >>> changes_in(["rounds.n_rounds=3", "network.layers=[8, 2]"])
    {'rounds__n_rounds': 3, 'network__layers': [8, 2]}
    """
    pairs = [setting_in(text) for text in settings]
    return {name.replace(".", "__"): value for name, value in pairs}
