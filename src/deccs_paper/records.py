"""Records: one JSON line per run, written when the run ends. A run that failed is a row too."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    """One whole line in one write, on the disk before we go on: a crash can break no other line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(finite(record), allow_nan=False, default=str) + "\n"
    with open(path, "ab", buffering=0) as file:
        # After a crash while writing, the broken line stays alone.
        begin = b"\n" if file.tell() and not ends_with_newline(path) else b""
        rest = memoryview(begin + line.encode())
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())


def mend(path: Path) -> None:
    """Take away a last line that a crash left unfinished: its run has no record then, and is made again."""
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
def alone_with(path: Path) -> Iterator[None]:
    """Only one process at a time makes runs for a file of records: two would make the same ones.

    The lock ends with the process, however it ends. Windows has none; there it is up to the user.
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
                f"Another process makes runs for {path}. Wait for it, or give another --out."
            ) from error
        yield


def each_number(value: Any, change: Callable[[float], float | None]) -> Any:
    """A JSON value with every float in it changed."""
    if isinstance(value, dict):
        return {key: each_number(inner, change) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [each_number(inner, change) for inner in value]
    return change(value) if isinstance(value, float) else value


def finite(value: Any) -> Any:
    """JSON knows no NaN: an update that went astray and was taken back has null."""
    return each_number(value, lambda number: number if math.isfinite(number) else None)


def rounded(value: Any, digits: int = 4) -> Any:
    """Rounds are most of a record, and hundreds of records are published.

    >>> rounded({"nmi": [0.123456, None, 1]})
    {'nmi': [0.1235, None, 1]}
    """
    return each_number(value, lambda number: round(number, digits))


def ends_with_newline(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read(path: Path) -> Iterator[Record]:
    """The whole lines; a broken one (a crash while writing) is passed over."""
    if not path.exists():
        return
    for line in path.read_text().splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


PLACE = ("experiment", "method", "dataset", "repetition", "seed", "settings")


def same_run(record: Record, wanted: Record) -> bool:
    """Whether a record is of this very run, whatever came of it; the recipe is another question."""
    return all(plain(record.get(name)) == plain(wanted[name]) for name in PLACE)


def plain(value: Any) -> Any:
    """As it comes back from a file: tuples are lists there."""
    return json.loads(json.dumps(finite(value), default=str))


def published() -> list[Path]:
    """The records in ``results/`` of the checkout this package is in; none if it is installed elsewhere."""
    return sorted((Path(__file__).parents[2] / "results").glob("*.jsonl"))


def read_all(paths: Iterable[Path]) -> list[Record]:
    """The runs of several files; lines of other kinds (speed) are left out."""
    return [
        record
        for path in paths
        for record in read(path)
        if "method" in record and "status" in record
    ]


def machine() -> dict[str, Any]:
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def code_version() -> str:
    """The commit of a checkout, with a mark where the package was changed since; its version elsewhere."""
    folder = Path(__file__).parent.parent

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, check=False
        )

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        if git(
            "ls-files", "--error-unmatch", __file__
        ).returncode:  # the repository of something else
            return version("deccs")
        changed = git("diff", "--quiet", "HEAD", "--", ".").returncode == 1
    except OSError:
        return version("deccs")
    return (
        commit.stdout.strip() + ("-changed" if changed else "")
        if commit.returncode == 0
        else version("deccs")
    )


def peak_memory_mb() -> float:
    """The most memory this process ever held; getrusage would count its parent's on Linux."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return round(
            int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024, 1
        )
    except (OSError, StopIteration):
        import resource  # not on Windows

        return round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024, 1
        )  # macOS counts bytes
