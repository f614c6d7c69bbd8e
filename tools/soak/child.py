"""A ``deccs`` command with a fault: a kill at a file-system call, little memory, small files.

    python child.py '{"kill": 9, "call": 17, "below": "/tmp/run"}' fit data.csv --out /tmp/run

The fault begins with the command itself, when its code is loaded and its options are read. The
number of calls goes to the file ``count``.
"""

import json
import os
import resource
import sys
from importlib import import_module
from pathlib import Path

CALLS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree")
# Libraries end the process, or wait for ever, where they find no memory for themselves.
LIBRARIES = (
    "torch._dynamo",
    "pyarrow.parquet",
    "pyarrow.feather",
    "sklearn.mixture",
    "sklearn.cluster",
    "scipy.sparse.linalg",
)


def main():
    fault, name = json.loads(sys.argv.pop(1)), sys.argv[1]
    from deccs.app import cli, commands

    calls, command = Calls(fault), getattr(commands, name)

    def with_fault(*given):
        if "memory" in fault:
            load_libraries()
            limit(resource.RLIMIT_AS, memory_in_use() + fault["memory"])
        if "file_size" in fault:
            limit(resource.RLIMIT_FSIZE, fault["file_size"])
        sys.addaudithook(calls)
        if "ready" in fault:
            Path(fault["ready"]).touch()
        command(*given)

    setattr(commands, name, with_fault)
    try:
        cli.main()
    finally:
        if "count" in fault:
            Path(fault["count"]).write_text(str(calls.number))


def load_libraries():
    """Load what a command loads later, and let each library take its buffers."""
    import numpy as np
    import torch
    from scipy.linalg import eigh

    for name in LIBRARIES:
        import_module(name)
    matrix = np.eye(300)
    eigh(matrix @ matrix)
    np.linalg.svd(matrix)
    torch.eye(300) @ torch.eye(300)


def limit(what, amount):
    resource.setrlimit(what, (amount, amount))


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
