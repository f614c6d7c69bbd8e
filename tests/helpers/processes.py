"""Programs that run in several processes at once, as a launcher would start them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

LONGEST = 120  # seconds


@dataclass
class Ended:
    """A process that has ended."""

    code: int
    out: str
    err: str
    seconds: float  # since all were started


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(rank, size, port, **changes):
    names = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **names, **changes}
    return {name: str(value) for name, value in variables.items() if value is not None}


def start(command, size, ranks=None, port=None, **changes):
    """Start a command in several processes; ``changes`` are variables of the environment."""
    port = port or free_port()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
    return [
        subprocess.Popen(command, env=environment(rank, size, port, **changes), **pipes)
        for rank in (range(size) if ranks is None else ranks)
    ]


def program(body):
    """The command for a program that begins in a block of ``deccs.distributed()``, as ``group``."""
    head = (
        "import os, signal, sys, time\nimport numpy as np\nimport deccs\n"
        "patience = float(os.environ.get('PATIENCE', 60))\n"
    )
    inside = textwrap.indent(textwrap.dedent(body), "    ")
    return [sys.executable, "-c", f"{head}with deccs.distributed(patience) as group:\n{inside}"]


def wait_for(processes):
    began = time.monotonic()
    ended = []
    for process in processes:
        try:
            out, err = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        ended.append(Ended(process.returncode, out, err, time.monotonic() - began))
    return ended


def run_together(body, size, **changes):
    """Run a program in several processes; how each of them has ended, by rank."""
    return wait_for(start(program(body), size, **changes))
