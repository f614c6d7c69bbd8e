"""Programs that several processes of this machine run together, started by torchrun."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 6 * 3600  # seconds


@dataclass(frozen=True)
class Ended:
    """How such a program has ended."""

    code: int
    seconds: float
    ended_at: float  # on the clock of time.time
    err: str

    @property
    def messages(self) -> list[str]:
        """What the processes have said of others that have ended, each once.

        >>> Ended(1, 0.0, 0.0, "[rank2]: deccs.group.watch.GroupError: Process 1 of 3 (h, pid 7) has ended.").messages
        ['rank 2: Process 1 of 3 (h, pid 7) has ended.']
        """
        line = r"^\[rank(\d+)\]: \S*GroupError: (Process .+)$"
        found = re.findall(line, self.err, flags=re.MULTILINE)
        return sorted({f"rank {rank}: {words}" for rank, words in found})

    def check(self) -> None:
        """Raise a RuntimeError if it has failed."""
        if self.code:
            raise RuntimeError(f"exit code {self.code}: {self.err[-2000:]}")


def run_together(words: Sequence[object], n_processes: int, threads: int = 1) -> Ended:
    """``python -m`` these words in some processes, each with so many threads; also where it is one process."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_processes)]
    limits = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS"), str(threads))
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *launcher, "-m", *map(str, words)],
        env={**os.environ, **limits},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        timeout=LONGEST,
        check=False,
    )
    return Ended(done.returncode, time.perf_counter() - start, time.time(), done.stderr)
