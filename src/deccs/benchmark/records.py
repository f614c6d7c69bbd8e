"""Records: one JSON line per run, written when the run ends. A run that failed is a row too."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    """One whole line in one write, on the disk before we go on: a crash can break no other line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(finite(record), allow_nan=False, default=str) + "\n"
    with open(path, "ab") as file:
        if file.tell() and not ends_with_newline(path):
            file.write(b"\n")  # a run was killed while writing: its broken line stays alone
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


def finite(value: Any) -> Any:
    """JSON knows no NaN: an update that went astray and was taken back has null."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
    place = ("experiment", "method", "dataset", "dataset_sha256", "seed", "recipe", "settings")
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
    """The commit of a checkout, with a mark where the package was changed since; its version elsewhere."""
    folder = Path(__file__).parent.parent

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        changed = git("diff", "--quiet", "HEAD", "--", ".").returncode == 1
    except OSError:
        return version("deccs")
    return commit.stdout.strip() + ("-changed" if changed else "") if commit.returncode == 0 else version("deccs")


def peak_memory_mb() -> float:
    """The most memory this process ever held; getrusage would count its parent's on Linux."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return round(int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024, 1)
    except (OSError, StopIteration):
        import resource  # not on Windows

        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024, 1)  # macOS counts bytes
