"""A ``deccs`` command with a fault: a kill at a file-system call, little memory, small files.

    python child.py '{"kill": 9, "call": 17, "below": "/tmp/run"}' fit data.csv --out /tmp/run

The fault begins when everything is imported. The number of calls goes to the file ``count``.
"""

import json
import os
import resource
import sys
from importlib import import_module
from pathlib import Path

CALLS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree")


def main():
    fault = json.loads(sys.argv.pop(1))
    from deccs.app.cli import main as deccs_main

    import_module("deccs.app.commands")  # or the fault would hit the imports
    calls = Calls(fault)
    sys.addaudithook(calls)
    for limit, name in ((resource.RLIMIT_AS, "memory"), (resource.RLIMIT_FSIZE, "file_size")):
        if name in fault:
            used = memory_in_use() if name == "memory" else 0
            resource.setrlimit(limit, (used + fault[name], used + fault[name]))
    if "ready" in fault:
        Path(fault["ready"]).touch()
    try:
        deccs_main()
    finally:
        if "count" in fault:
            Path(fault["count"]).write_text(str(calls.number))


class Calls:
    """Counts the calls that change files below a folder, and sends a signal at one of them."""

    def __init__(self, fault):
        self.below, self.fault, self.number = fault.get("below"), fault, 0

    def __call__(self, event, details):
        if self.below and event in CALLS and self.changes(event, details):
            self.number += 1
            if self.number == self.fault.get("call"):
                os.kill(os.getpid(), self.fault["kill"])

    def changes(self, event, details):
        path = str(details[0])
        if event == "open":
            flags = details[2] or 0
            return path.startswith(self.below) and flags & (os.O_WRONLY | os.O_RDWR)
        in_open_folder = not os.path.isabs(path) and event in ("os.remove", "os.rmdir")  # of rmtree
        return path.startswith(self.below) or in_open_folder


def memory_in_use():
    """Bytes of address space."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main()
