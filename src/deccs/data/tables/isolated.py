"""Work on files from strangers in a process of its own, with a limit of memory.

Libraries in Rust and C end the process where memory is short or a file is damaged. A spreadsheet of 5 KB can ask
for 500 GB, and HDF5 reads beyond the end of what it has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from deccs.data.tables.raw import TableError

MEMORY = 6 * 2**30  # bytes of addresses, or half of the machine's memory if that is more
SECONDS = 600
CODE = "import sys; sys.path[:] = {path!r}; from deccs.data.tables.isolated import main; main()"


class IsolatedError(Exception):
    """What went wrong in the other process."""


def isolated(function: str, *arguments: Any, seconds: int = SECONDS) -> Any:
    """Call ``"module:function"`` in a new process, with values that JSON can hold; it returns such a value."""
    request = json.dumps({"function": function, "arguments": arguments})
    code = CODE.format(path=[str(Path(place or ".").absolute()) for place in sys.path])
    try:
        result = subprocess.run(
            [sys.executable, "-c", code],
            input=request,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise IsolatedError(f"it takes longer than {seconds // 60} minutes") from None
    except OSError as error:
        raise IsolatedError(f"no process for it can be started: {error}") from error
    if result.returncode:
        out = "memory allocation" in result.stderr or "MemoryError" in result.stderr
        why = "there is not enough memory for it" if out else "it is damaged"
        raise IsolatedError(why)
    answer = json.loads(result.stdout.splitlines()[-1])
    if "error" in answer:
        raise (TableError if answer["is_told"] else IsolatedError)(answer["error"])
    return answer["result"]


def main() -> None:
    """Do one request from standard input in this process."""
    limit_memory()
    request = json.loads(sys.stdin.read())
    module, name = request["function"].split(":")
    function = getattr(import_module(module), name)
    try:
        answer = {"result": function(*request["arguments"])}
    except Exception as error:  # noqa: BLE001 - whatever it is, the other process tells the user
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        answer = {"error": reason, "is_told": isinstance(error, TableError)}
    print(json.dumps(answer))


def limit_memory() -> None:
    """The system refuses more; Windows has no such limit, and macOS does not keep to it."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = memory() if hard == resource.RLIM_INFINITY else min(memory(), hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def memory() -> int:
    """Bytes that the other process may take."""
    try:
        return max(MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    except (AttributeError, ValueError, OSError):  # not this system
        return MEMORY
