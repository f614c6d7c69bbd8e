"""``deccs`` commands as child processes: started, killed, timed, and what they left said."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("child.py")
LIMIT = 180.0  # seconds after which a command hangs
PAUSE = 0.005
# What safetensors (Rust), OpenBLAS and C++ say before they end a process that has no memory left.
LAST_WORDS = ("PanicException", "panicked at", "OpenBLAS error", "terminate called")


class Wrong(AssertionError):
    """Something happened that must not happen."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str
    megabytes: float  # peak memory
    sent: int | None = None  # the signal that was sent to it
    begun: bool = True  # all code was loaded; before that, Python itself answers a Ctrl-C

    memory_limited: bool = False

    @property
    def by_library(self):
        """Whether a library in another language has ended the process for want of memory."""
        told = any(words in self.stderr for words in LAST_WORDS)
        return self.memory_limited and self.code != 0 and (told or self.code in (-6, -11))

    @property
    def message(self):
        """The line that says what was wrong, else the last one."""
        lines = self.stderr.strip().splitlines() or [""]
        return next((line for line in lines if line.startswith("deccs:")), lines[-1])


@dataclass(frozen=True)
class Kill:
    """A signal: at a file-system call below the folder of the run, or some time after the start."""

    signal: signal.Signals
    call: int | None = None
    seconds: float | None = None
    begun: bool = True  # the seconds count from the beginning of the command, after all imports

    def __str__(self):
        since = "imports" if self.begun else "start"
        when = f"at call {self.call}" if self.call else f"{self.seconds:.2f} s after {since}"
        return f"{self.signal.name} {when}"


class Command:
    """A command that runs. Its output goes to files, so that no pipe can fill up."""

    def __init__(self, words, folder, fault=None, kill=None, below=None):
        self.folder, self.kill, self.began = folder, kill, time.monotonic()
        self.memory_limited = "memory" in (fault or {}) and "strict" not in fault
        folder.mkdir(parents=True, exist_ok=True)
        self.ready = folder / "ready"
        self.ready.unlink(missing_ok=True)
        start = [sys.executable, "-m", "deccs"]
        if fault or kill:
            fault = {"ready": str(self.ready), "below": str(below), **(fault or {})}
            if kill and kill.call:
                fault |= {"kill": int(kill.signal), "call": kill.call}
            start = [sys.executable, str(CHILD), json.dumps(fault)]
        with self.file("stdout").open("wb") as out, self.file("stderr").open("wb") as err:
            self.process = subprocess.Popen(
                [*start, *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment(),
                cwd=folder,
                start_new_session=True,
            )

    def file(self, name):
        return self.folder / name

    def wait(self):
        """Wait for the end, and send the signal when its time has come."""
        sent, kill, begun = None, self.kill, None
        while not (gone := os.wait4(self.process.pid, os.WNOHANG))[0]:
            now = time.monotonic()
            if now - self.began > LIMIT:
                os.killpg(self.process.pid, signal.SIGKILL)
                os.wait4(self.process.pid, 0)
                raise Wrong(
                    f"hangs: no end after {LIMIT:.0f} s; {self.file('stderr').read_text()[-500:]}"
                )
            if begun is None and self.ready.exists():
                begun = now
            since = self.began if kill and not kill.begun else begun
            if kill and kill.seconds and not sent and since and now - since >= kill.seconds:
                sent = kill.signal
                os.kill(self.process.pid, sent)
            time.sleep(PAUSE)
        _, status, usage = gone
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if kill and kill.call:
            sent = kill.signal  # by the child itself, if it came to that call
        return Ended(
            self.process.returncode,
            self.file("stdout").read_text(errors="replace"),
            self.file("stderr").read_text(errors="replace"),
            usage.ru_maxrss / 1024,
            sent,
            begun=self.ready.exists() or not kill,
            memory_limited=self.memory_limited,
        )


def environment():
    """That of this process, with our sources and one thread."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
