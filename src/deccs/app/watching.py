"""``deccs predict`` and ``deccs watch``: files compared with those of the fit."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from deccs.answer import Answer
from deccs.app.run_error import RunError
from deccs.app.run_folder import MODEL
from deccs.app.run_reading import files_at, files_sha256
from deccs.base import Clusterer
from deccs.data.tables.databases import without_password
from deccs.labels import NOISE
from deccs.watching import history
from deccs.watching.drift import Drift, drift_of

DRIFTED = 3  # exit code of `deccs watch --fail-on-drift`
LEAST_ROWS = 20  # of a file, for anything to be said of it


def checked_rate(text: str | None) -> float | None:
    """The share of rows to reject, as it was typed."""
    if text is None:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = np.nan
    if not 0 < rate < 1:
        raise RunError(f"--reject must be a share between 0 and 1, such as 0.01, got {text!r:.60}.")
    return rate


def rejecting(answers: Iterable[Answer], rate: float | None, *, shown: bool) -> Iterator[Answer]:
    """Answers without a label for rows that are more unusual than they should be; novelty only if it is shown."""
    for answer in answers:
        if rate is not None and answer.novelty is not None:
            labels = np.where(answer.novelty > 1 - rate, NOISE, answer.labels)
            answer = replace(answer, labels=labels)
        yield answer if shown else replace(answer, novelty=None)


def check_novelty(model: Clusterer, why: str) -> None:
    """Raise a RunError for an option that the model has no novelty for."""
    if getattr(model, "novelty_", None) is None:
        raise RunError(f"{why} needs novelty. {model._why_no_novelty()}")


def drift_in(model: Clusterer, table: Any) -> Drift | None:
    """The drift of a table; None for one of a few rows."""
    return drift_of(model, table.rows) if table.kept.sum() >= LEAST_ROWS else None


def file_sha256(file: str) -> str | None:
    """What tells a file again, None for databases and the like."""
    files = [] if "://" in file else files_at(Path(file))
    return files_sha256(files) if files else None


def model_sha256(run: Path) -> str:
    """What tells a model again: a refit or an edit makes another one."""
    folder = run / MODEL if (run / MODEL).is_dir() else run
    files = sorted(folder.iterdir()) if folder.is_dir() else [folder]
    digest = hashlib.sha256()
    for path in files:
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def entry_for(drift: Drift, file: str, sha256: str | None, model: str) -> history.Entry:
    name = without_password(file).rpartition("/")[2] or without_password(file)
    now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    return history.entry_of(drift, file=name, sha256=sha256, model=model, time=now)


def table_rows(entries: Iterable[history.Entry]) -> list[list[str]]:
    """A line for each file: rows, rejected, what has grown and what has moved, verdict."""
    return [
        [
            entry.file,
            f"{entry.n_rows:,}",
            "" if entry.rejected is None else f"{entry.rejected:.1%}",
            grown(entry),
            ", ".join(name for name, *_ in entry.moved[:4])
            + (" ..." if len(entry.moved) > 4 else ""),
            "drift" if entry.is_drift else "no drift",
        ]
        for entry in entries
    ]


def grown(entry: history.Entry) -> str:
    """The cluster whose share has changed most.

    >>> grown(history.Entry({"clusters": [[0, "loyal", 0.5, 0.7], [1, "new", 0.25, 0.2]]}))
    'loyal 50% -> 70%'
    """
    if not entry.clusters:
        return ""
    _, name, then, now = max(entry.clusters, key=lambda row: abs(row[3] - row[2]))
    return f"{name} {then:.0%} -> {now:.0%}"
