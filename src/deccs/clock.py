"""Seconds by phase."""

from __future__ import annotations

import time


class Clock:
    """``lap("cluster")`` ends a phase."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self.last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.laps[phase] = round(now - self.last, 4)
        self.last = now
