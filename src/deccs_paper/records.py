"""Records: one JSON line per run, written when the run ends. A run that failed has a line, too."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deccs.environment import machine, versions
from deccs.json_values import each_number, finite

Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    """Add one line in one write and wait until it is on the disk: a crash can break no other line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(finite(record), allow_nan=False, default=str) + "\n"
    with open(path, "ab", buffering=0) as file:
        # A line that a crash has cut off stays by itself.
        begin = b"\n" if file.tell() and not ends_with_newline(path) else b""
        rest = memoryview(begin + line.encode())
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())


def mend(path: Path) -> None:
    """Remove a last line that a crash has cut off: its run has no record then, and is repeated."""
    if not path.exists() or path.stat().st_size == 0 or ends_with_newline(path):
        return
    whole, newline, last = path.read_bytes().rpartition(b"\n")
    try:
        json.loads(last)
    except ValueError:
        os.truncate(path, len(whole + newline))
    else:
        with open(path, "ab") as file:  # only its end is missing
            file.write(b"\n")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process at a time makes runs for a file of records: two would make the same ones.

    The lock ends with the process, however that ends. Windows has no such lock; users have to take care.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(path.with_name(f".{path.name}.lock"), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"Another process is making runs for {path}. Wait for it, or choose another --out."
            ) from error
        yield


def rounded(value: Any, digits: int = 4) -> Any:
    """All numbers rounded: rounds are most of a record, and hundreds of records are published.

    >>> rounded({"nmi": [0.123456, None, 1]})
    {'nmi': [0.1235, None, 1]}
    """
    return each_number(value, lambda number: round(number, digits))


def ends_with_newline(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read(path: Path) -> Iterator[Record]:
    """The complete lines; one that a crash has cut off is skipped."""
    if not path.exists():
        return
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


IDENTITY = ("experiment", "method", "dataset", "repetition", "seed", "settings")


def same_run(record: Record, header: Record) -> bool:
    """Whether a record belongs to this run, whatever its result; the recipe is another question."""
    return all(as_stored(record.get(name)) == as_stored(header[name]) for name in IDENTITY)


def as_stored(value: Any) -> Any:
    """As it is read from a file, where tuples are lists."""
    return json.loads(json.dumps(finite(value), default=str))


def published() -> list[Path]:
    """The records in ``results/`` of the checkout this package is in; none if it is installed elsewhere."""
    return sorted((Path(__file__).parents[2] / "results").glob("*.jsonl"))


def read_all(paths: Iterable[Path]) -> list[Record]:
    """The paper's runs in several files; lines of other kinds (speed, the yardstick) are left out."""
    return [
        record
        for path in paths
        for record in read(path)
        if {"method", "status", "repetition"} <= record.keys()
    ]


def made_with() -> dict[str, Any]:
    """Versions, machine and code: what every record says about how it was made."""
    return {"versions": versions(), "machine": machine(), "code": code_version()}


def code_version() -> str:
    """The commit of a checkout, marked where the code was changed since; else the version of the package."""
    folder = Path(__file__).parent.parent

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, check=False
        )

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        ours = git("ls-files", "--error-unmatch", __file__).returncode == 0
        changed = git("diff", "--quiet", "HEAD", "--", ".").returncode == 1
    except OSError:  # there is no git
        return version("deccs")
    if commit.returncode != 0 or not ours:  # not a repository, or that of something else
        return version("deccs")
    return commit.stdout.strip() + ("-changed" if changed else "")
