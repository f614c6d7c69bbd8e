"""What a result was made with: versions of the libraries, the machine, the memory it took."""

from __future__ import annotations

import math
import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deccs._version import __version__

LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "safetensors")


@cache  # every checkpoint asks for them, and looking them up takes 20 milliseconds
def versions() -> dict[str, str]:
    """Of deccs, Python and the libraries whose numbers a result depends on."""
    libraries = {name: version(name) for name in LIBRARIES}
    return {"deccs": __version__, "python": platform.python_version(), **libraries}


def machine() -> dict[str, Any]:
    """The processor, its cores, the threads torch uses, the system and Python."""
    import torch  # takes seconds to load; the other functions do without

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


def peak_memory_mb() -> float:
    """The most memory this process ever held; NaN where the system does not tell (Windows)."""
    try:
        # Linux: getrusage would count the memory of the parent process, too.
        lines = Path("/proc/self/status").read_text().splitlines()
        peak_kb = int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
    except (OSError, StopIteration):
        try:
            import resource
        except ImportError:
            return math.nan
        peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # macOS: bytes
    return round(peak_kb / 1024, 1)
