"""Which files an agent may name: those below one folder, whatever links and dots say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

LONGEST = 4096  # letters of a path


class PlaceError(ValueError):
    """A path that tools do not touch; the message says why."""


class Root:
    """The folder below which all files are."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise PlaceError(f"--root {folder} is not a folder. Give one that exists.")
        self.folder = real(folder)

    def inside(self, text: str) -> Path:
        """A path as seen from the root, if it is below it when all links are followed."""
        if not text.strip() or len(text) > LONGEST or "\0" in text:
            raise PlaceError(
                f"A path has 1 to {LONGEST:,} letters, got {text[:50]!r}. Give the path of a file."
            )
        if "://" in text or any(letter in text for letter in "*?["):
            raise PlaceError(
                f"{text[:200]!r} is an address or a pattern, and tools take files and folders. Give a path "
                "below the root."
            )
        try:
            place = real(self.folder / text)
        except (OSError, ValueError) as error:  # such as letters that no name has
            raise PlaceError(f"{text[:200]!r} is no path here: {error}.") from error
        if not place.is_relative_to(self.folder):
            raise PlaceError(
                f"{text[:200]!r} is not below the root of this server. Give a path as seen from the root."
            )
        return place.relative_to(self.folder)

    def existing(self, text: str) -> str:
        """The same for what must be there; nothing in a folder may lead outside either."""
        place = self.inside(text)
        if not os.path.exists(
            self.folder / place
        ):  # Path.exists raises an error for very long names
            raise PlaceError(f"There is no {text[:200]!r} below the root of this server.")
        for link in links_in(self.folder / place):
            if not real(link).is_relative_to(self.folder):
                where = link.relative_to(self.folder).as_posix()
                raise PlaceError(f"{where} is a link that leads out of the root. Remove it.")
        return place.as_posix()

    def new(self, text: str) -> str:
        """The same for what will be written: not the root itself."""
        place = self.inside(text)
        if place == Path("."):
            raise PlaceError("Results need a file or a folder of their own below the root.")
        return self.existing(text) if os.path.exists(self.folder / place) else place.as_posix()


def real(path: Path) -> Path:
    """Where a path leads when all links are followed; a circle of links leads to itself."""
    return Path(os.path.realpath(path))


def links_in(folder: Path) -> Iterator[Path]:
    """All symbolic links below a folder, none of which is followed."""
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(above, name)
            if path.is_symlink():
                yield path
