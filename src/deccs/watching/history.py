"""What was seen in file after file: one JSON line each, beside the model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deccs.watching.drift import Drift

HISTORY = "watch.jsonl"  # in the folder of a run
MOST_BYTES = 2**26
MOST_KEPT = 50  # columns that moved, in one line
FORMAT = 1
LINE_FIELDS: dict[str, type | tuple[type, ...]] = {
    "format": int,
    "file": str,
    "sha256": (str, type(None)),
    "model": str,
    "time": str,
    "n_rows": int,
    "is_drift": bool,
    "rejected": (int, float, type(None)),
    "expected": (int, float, type(None)),
    "clusters": list,
    "moved": list,
    "summary": str,
}


@dataclass(frozen=True)
class Entry:
    """A file that was compared with the fit."""

    document: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.document[name]
        except KeyError:
            raise AttributeError(name) from None


def entry_of(drift: Drift, *, file: str, sha256: str | None, model: str, time: str) -> Entry:
    """The line of a file."""
    rejected = drift.rejected
    return Entry(
        {
            "format": FORMAT,
            "file": file,
            "sha256": sha256,
            "model": model,
            "time": time,
            "n_rows": drift.n_rows,
            "is_drift": drift.is_drift,
            "rejected": None if rejected is None else rejected.share,
            "expected": None if rejected is None else rejected.expected,
            "clusters": [[each.cluster, each.name, each.then, each.now] for each in drift.clusters],
            "moved": [
                [each.name, each.what, each.effect, each.then, each.now]
                for each in drift.moved[:MOST_KEPT]
            ],
            "summary": drift.line(),
        }
    )


def append(path: Path, entry: Entry) -> None:
    """Add a line in one write, and wait until it is on the disk: a crash can break no other line."""
    line = json.dumps(dict(entry.document), allow_nan=False) + "\n"
    broken = path.exists() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        rest = memoryview((b"\n" if broken else b"") + line.encode())
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def read(path: Path) -> list[Entry]:
    """The lines of a history, in their order; one that a crash has cut off is skipped.

    Raises a ValueError for a file that no ``deccs watch`` has written: it may come from anyone.
    """
    if not path.exists():
        return []
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} is no history of `deccs watch`: it is no file, or too large.")
    entries = []
    for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1):
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        check_line(path, number, document)
        entries.append(Entry(document))
    return entries


def check_line(path: Path, number: int, document: Any) -> None:
    """Raise a ValueError for a line with other fields."""
    is_right = isinstance(document, dict) and all(
        isinstance(document.get(name, ...), kind) for name, kind in LINE_FIELDS.items()
    )
    if is_right:
        is_right = all(fits(row, (int, str, float, float)) for row in document["clusters"])
        is_right &= all(fits(row, (str, str, float, str, str)) for row in document["moved"])
    if not is_right:
        raise ValueError(
            f"{path}, line {number} was not written by `deccs watch`. Remove the line, or the file."
        )


def fits(row: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a list has values of these kinds; a whole number is a number, too."""
    return (
        isinstance(row, list)
        and len(row) == len(kinds)
        and all(
            isinstance(value, (int, float) if kind is float else kind)
            for value, kind in zip(row, kinds, strict=True)
        )
    )


def known_as(entries: list[Entry], sha256: str | None, model: str) -> Entry | None:
    """The line of the same file, compared with the same model; None for a new one."""
    if sha256 is None:
        return None
    for entry in entries:
        if entry.sha256 == sha256 and entry.model == model:
            return entry
    return None
