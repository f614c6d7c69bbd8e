"""Temporary files for text that has to be rewritten before polars can read it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEPT: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


class Scratch:
    """A folder for temporary files, made when the first is asked for."""

    def __init__(self) -> None:
        self.folder: tempfile.TemporaryDirectory[str] | None = None

    def file(self, name: str) -> Path:
        if self.folder is None:
            self.folder = tempfile.TemporaryDirectory(prefix="deccs-")
        return Path(self.folder.name) / name

    def keep(self) -> None:
        """Leave the files until the process ends: a frame scans them."""
        if self.folder is not None:
            KEPT.append(self.folder)
            self.folder = None


@contextmanager
def scratch() -> Iterator[Scratch]:
    """Temporary files that are gone after the block, also after Ctrl-C."""
    files = Scratch()
    try:
        yield files
    finally:
        if files.folder is not None:
            files.folder.cleanup()
