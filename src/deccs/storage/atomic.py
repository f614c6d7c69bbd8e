"""Write a file completely or not at all. The whole library writes its files this way."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO

LEFTOVER = re.compile(r"\.deccs-[0-9a-f]{16}\.tmp")  # what a killed process may leave in a folder


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write to; it replaces ``path`` once everything is on the disk.

    After an error, ``path`` is unchanged and nothing is left beside it.
    """
    path = Path(path)
    draft = path.with_name(f".deccs-{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_text(path: str | PathLike[str], text: str) -> None:
    """Replace a file by this text, in UTF-8."""
    with replacing(path) as out:
        out.write(text.encode())


def sync_folder(folder: Path) -> None:
    """Make renames within a folder survive a power failure."""
    with suppress(OSError):  # not every system can do that with a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
