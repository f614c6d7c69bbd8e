"""``python -m deccs_paper usps --seeds 5``: run methods on named data sets, a JSON line per run."""

from __future__ import annotations

import argparse
import ast
import dataclasses
from pathlib import Path
from typing import Any

from rich.console import Console

from deccs.settings import Pretraining
from deccs_paper import records, table
from deccs_paper.experiments import named
from deccs_paper.grid import carry_out_missing, summary
from deccs_paper.processes import Workers
from deccs_paper.runner import Run
from deccs_paper.settings import METHODS, PAPER


def setting(text: str) -> tuple[str, Any]:
    """``name=value``; a value that is no Python literal is text."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deccs_paper", description=__doc__)
    parser.add_argument(
        "dataset",
        nargs="*",
        choices=[*PAPER, []],
        metavar="dataset",
        help=f"of {', '.join(PAPER)}; none: only print the table",
    )
    parser.add_argument("--seeds", type=int, default=1, help="repetitions per data set")
    parser.add_argument("--method", nargs="+", default=["DECCS"], choices=list(METHODS))
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument(
        "--experiment", help="the name the records go under (default: what --set changes)"
    )
    parser.add_argument("--out", type=Path, default=Path("results/deccs.jsonl"))
    parser.add_argument(
        "--cache", type=Path, default=Path("runs/autoencoders"), help="pretrained autoencoders"
    )
    parser.add_argument(
        "--set",
        nargs="*",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="change parameters of DECCS, or of its pretraining as pretraining.NAME=VALUE",
    )
    parser.add_argument(
        "--page", type=Path, help="a Markdown page whose table is made anew from the records"
    )
    given = parser.parse_args(arguments)
    # Records with other settings must not pass for those of the tables.
    given.experiment = given.experiment or named(dict(given.set))
    return given


def changes_from(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    changes = {name: value for name, value in pairs if not name.startswith("pretraining.")}
    inner = {
        name.removeprefix("pretraining."): value
        for name, value in pairs
        if name.startswith("pretraining.")
    }
    return changes | ({"pretraining": dataclasses.replace(Pretraining(), **inner)} if inner else {})


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    for method in given.method:
        model = METHODS[method].build("synth")
        unknown = sorted(
            {name for name, _ in given.set if "." not in name} - set(model.get_params(deep=False))
        )
        if unknown:
            raise SystemExit(
                f"--set: {type(model).__name__} has no parameter {', '.join(unknown)}."
            )
    console = Console()
    runs = [
        Run(given.experiment, method, name, repetition, changes_from(given.set))
        for name in given.dataset
        for repetition in range(given.seeds)
        for method in given.method
    ]
    failed = []

    def tell(record: records.Record) -> None:
        if record["status"] != "ok":
            failed.append(record)
        console.print(
            f"{record['dataset']} {record['method']} {record['repetition']}: {summary(record)}",
            highlight=False,
        )

    if runs:
        workers = Workers(given.jobs, given.cache)
        carry_out_missing(
            runs,
            lambda: records.read_all([given.out]),
            given.out,
            workers,
            tell,
            console,
            again=True,
        )
    made = records.read_all([given.out])
    deccs = any(record["method"].startswith("DECCS") for record in made)
    rows = (table.markdown if deccs else table.consensus_markdown)(made, given.experiment)
    console.print(rows, soft_wrap=True, highlight=False)
    if given.page:
        given.page.write_text(table.put_into(given.page.read_text(), rows))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
