"""What each tool does, in the process of a worker: the commands of the command line, and a short answer.

An answer is small enough for an agent to read: numbers, a few words for each cluster, and where the files are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
import typer

from deccs.app import commands, predicting, run_folder
from deccs.app.comparison import compare_runs
from deccs.app.output import Output, errors_as_messages
from deccs.app.request import FitRequest, PredictRequest, Request
from deccs.app.run_error import RunError
from deccs.app.run_reading import MOST_SUMMARY, read_plain, read_summary
from deccs.checks import check_bounds, k_bounds
from deccs.counting.count import count_clusters_of
from deccs.data.scalers import fit_scaler
from deccs.data.tables import read_table
from deccs.events import Callback, Listeners, Progress
from deccs.json_values import finite
from deccs.seeds import root_seed

Asked = TypeVar("Asked", bound=Request)
MOST_CLUSTERS = 40  # in an answer
MOST_LETTERS = 6_000  # of a text in an answer
MOST_NOTES = 20
LEAST_SECONDS = 0.5  # between two words of progress of the same stage


class Failure(Exception):
    """A tool cannot do what it was asked; the message says why, and what to do."""


class Teller(Callback):
    """Tells how far a fit is: each new stage and round at once, steps now and then."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell, self.stage, self.told = tell, "", 0.0

    def on_progress(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.stage == self.stage and now - self.told < LEAST_SECONDS:
            return
        self.stage, self.told = progress.stage, now
        self.tell(f"{progress.stage}: {progress.step:,} of {progress.n_steps:,}")

    def on_round(self, finished: Any) -> None:
        self.tell(f"round {finished.number}: agreement {finished.agreement:.3f}")


class Collected(Output):
    """Keeps what a command would print."""

    def __init__(self, *listeners: Callback) -> None:
        super().__init__(as_json=False, quiet=True)
        self.listeners = listeners
        self.notes: list[str] = []
        self.document: dict[str, Any] = {}

    def note(self, message: str) -> None:
        self.notes.append(message)

    def result(self, document: Mapping[str, Any], text: Any) -> None:
        self.document = dict(document)

    def failure(self, message: str, code: int) -> typer.Exit:
        self.message = message
        return typer.Exit(code)


@contextmanager
def collected(*listeners: Callback) -> Iterator[Collected]:
    """What a command tells; one that ends early is a Failure with its message."""
    output = Collected(*listeners)
    try:
        with errors_as_messages(output):
            yield output
    except typer.Exit as ended:
        raise Failure(output.message) from ended


def asked(request: type[Asked], options: Mapping[str, Any]) -> Asked:
    """The request made of options as they are in JSON."""
    entries = request.entries()
    typed = {
        name: Path(value) if entries[name].kind is Path else value
        for name, value in options.items()
    }
    return request.read({**typed, "quiet": True})


def fit(options: dict[str, Any], teller: Teller) -> dict[str, Any]:
    with collected(teller) as output:
        request = asked(FitRequest, options)
        commands.fit(request, output)
        out = request.folder
    return {**run_facts(out), "notes": output.notes[:MOST_NOTES]}


def predict(options: dict[str, Any], teller: Teller) -> dict[str, Any]:
    with collected() as output:
        request = asked(PredictRequest, options)
        if request.out is None or request.out.suffix not in (".csv", ".parquet"):
            raise RunError(f"out must end with .csv or .parquet, got {options.get('out')!r}.")
        predicting.predict(request, output)
        facts = labels_facts(request.out)
    return {"out": request.out.as_posix(), **facts, "notes": output.notes[:MOST_NOTES]}


def describe(options: dict[str, Any], teller: Teller) -> dict[str, Any]:
    with collected():
        out = Path(options["run"])
        path = out / run_folder.CLUSTERS
        text = read_plain(path, MOST_SUMMARY).decode() if path.is_file() else ""
        return {**run_facts(out), "text": shortened(text)}


def compare(options: dict[str, Any], teller: Teller) -> dict[str, Any]:
    with collected():
        document: dict[str, Any] = finite(compare_runs([Path(run) for run in options["runs"]]))
    return document


def how_many(options: dict[str, Any], teller: Teller) -> dict[str, Any]:
    with collected() as output:
        bounds = k_bounds(options["clusters"])
        if bounds is None:
            raise RunError(
                f"clusters must be auto or a range such as 3-20, got {options['clusters']!r:.100}."
            )
        table = read_table(
            options["file"],
            columns=options.get("columns"),
            exclude=options.get("exclude", ()),
            id_column=options.get("id"),
        )
        commands.describe_table(output, options["file"], table)
        check_bounds(options["clusters"], table.rows.shape[0])
        scaler, listeners = fit_scaler(table.rows, "auto"), Listeners([teller])
        root = root_seed(options.get("seed", 0))
        count = count_clusters_of(table.rows, scaler, bounds, root, listeners)
    candidates = [
        {"k": one.k, "support": round(one.support, 3), "reasons": list(one.reasons)}
        for one in count.candidates[:5]
    ]
    return {
        "n_clusters": count.n_clusters,
        "is_clear": count.is_clear,
        "candidates": candidates,
        "notes": output.notes[:MOST_NOTES],
    }


TOOLS = {
    "fit": fit,
    "predict": predict,
    "describe": describe,
    "compare": compare,
    "how_many": how_many,
}


def run_facts(out: Path) -> dict[str, Any]:
    """A run in few words, and its files."""
    summary = read_summary(out)
    clusters = sorted(summary.get("clusters") or [], key=lambda one: -one.get("size", 0))
    n_rows = sum(one.get("size", 0) for one in clusters) + summary.get("noise", 0)
    shown = [
        {
            "cluster": one.get("label"),
            **({"name": one["name"]} if "name" in one else {}),
            "size": one.get("size", 0),
            "share": round(one.get("size", 0) / max(n_rows, 1), 4),
            "confidence": rounded(one.get("confidence")),
            "stability": (one.get("stability") or {}).get("verdict"),
        }
        for one in clusters[:MOST_CLUSTERS]
    ]
    facts = {
        "out": out.as_posix(),
        "method": summary.get("method"),
        "n_rows": n_rows,
        "n_clusters": len(clusters),
        "clusters": shown,
        "noise": summary.get("noise", 0),
        "labels_from": summary.get("labels_from"),
        "agreement": rounded(summary.get("agreement")),
        "confidence": rounded(summary.get("confidence")),
        "how_many": (summary.get("k") or {}).get("sentence"),
        "warning": summary.get("warning"),
        "files": [name for name in run_folder.RESULTS if (out / name).exists()],
    }
    known: dict[str, Any] = finite(
        {key: value for key, value in facts.items() if value is not None}
    )
    return known


def labels_facts(path: Path) -> dict[str, Any]:
    """What a file of labels says, in few words."""
    frame = (pl.read_parquet if path.suffix == ".parquet" else pl.read_csv)(path)
    labels = frame["label"].drop_nulls().cast(int).to_numpy()
    numbers, sizes = np.unique(labels, return_counts=True)
    largest = np.argsort(-sizes, kind="stable")[:MOST_CLUSTERS]
    facts: dict[str, Any] = {
        "n_rows": frame.height,
        "without_label": frame.height - len(labels),
        "clusters": [
            {"cluster": int(numbers[place]), "size": int(sizes[place])} for place in largest
        ],
    }
    if "confidence" in frame.columns:
        confidence = frame["confidence"].drop_nulls().cast(float).to_numpy()
        facts["confidence"] = rounded(float(confidence.mean())) if len(confidence) else None
    return facts


def rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def shortened(text: str) -> str:
    """A text cut at the end of a line where it is long."""
    if len(text) <= MOST_LETTERS:
        return text
    kept = text[:MOST_LETTERS].rpartition("\n")[0] or text[:MOST_LETTERS]
    return f"{kept}\n... ({len(text) - len(kept):,} more letters in {run_folder.CLUSTERS})"
