"""A line for each request, written by a thread: whoever does not read stderr must not stop the service."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from deccs.serving.answering import Reply
from deccs.storage.values import printable

MOST_WAITING = 10_000  # lines; others are counted and lost
SECONDS = 0.25  # between two writes
LONGEST_PATH = 60  # characters


class RequestLog:
    """Lines that wait to be written together."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self.write, self.n_lost = write, 0
        self.lines: deque[str] = deque()
        self.is_closed = threading.Event()
        self.thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self.thread.start()

    def __call__(self, line: str) -> None:
        if len(self.lines) < MOST_WAITING:
            self.lines.append(line)
        else:
            self.n_lost += 1

    def request(self, scope: Any, reply: Reply, seconds: float) -> None:
        """The line of a request that was answered."""
        self(line_of(scope, reply, seconds))

    def close(self) -> None:
        """Write what waits, unless nobody reads it."""
        self.is_closed.set()
        self.thread.join(timeout=1)

    def _write_all(self) -> None:
        while True:
            is_last = self.is_closed.wait(SECONDS)
            lines = [self.lines.popleft() for _ in range(len(self.lines))]
            if self.n_lost:
                lines.append(f"({self.n_lost} lines are lost: stderr is not read fast enough)")
                self.n_lost = 0
            if lines:
                self.write("\n".join(lines))
            if is_last:
                return


def line_of(scope: Any, reply: Reply, seconds: float) -> str:
    """When, who, what, with which result, how many rows, how long.

    >>> scope = {"client": ("127.0.0.1", 5), "method": "POST", "path": "/v1/predict"}
    >>> line_of(scope, Reply(200, b"{}", n_rows=3), 0.0012)[20:]
    ' 127.0.0.1 POST /v1/predict 200 3 rows 1.2 ms 2 bytes'
    """
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    client = (scope.get("client") or ("-",))[0]
    path = printable(" ".join(scope["path"].split()), LONGEST_PATH)
    return (
        f"{at} {client} {scope['method']} {path} {reply.status} {reply.n_rows} rows "
        f"{seconds * 1000:.1f} ms {len(reply.body)} bytes"
    )
