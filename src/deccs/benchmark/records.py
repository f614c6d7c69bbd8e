"""Records: one JSON line per run, written when the run ends. A run that failed is a row too."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    """One whole line in one write, on the disk before we go on: a crash can break no other line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, allow_nan=True, default=str) + "\n"
    with open(path, "ab") as file:
        if file.tell() and not ends_with_newline(path):
            file.write(b"\n")  # a run was killed while writing: its broken line stays alone
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


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


def same_run(record: Record, wanted: Record) -> bool:
    """Whether a record is of this very run, so that it need not be repeated."""
    place = ("experiment", "method", "dataset", "dataset_sha256", "seed", "settings")
    return record.get("status") == "ok" and all(
        json.loads(json.dumps(record.get(name), default=str)) == json.loads(json.dumps(wanted[name], default=str))
        for name in place
    )


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
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("deccs", "torch", "scikit-learn", "numpy", "scipy")}


def code_version() -> str:
    """The commit of a checkout, with a mark where it was changed since; the package's version elsewhere."""
    folder = Path(__file__).parent
    try:
        command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return version("deccs")


def peak_memory_mb() -> float:
    """The most memory this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)
