"""States of a fit under way: killed at any moment and started again, it goes on where it was."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from deccs.environment import versions
from deccs.storage import container
from deccs.storage.atomic import LEFTOVER
from deccs.storage.locks import FolderLock
from deccs.storage.values import ModelFileError, Reader, Writer

FORMAT, FORMAT_VERSION = "deccs checkpoint", 1
LEAST_PAUSE = 2.0  # seconds between two states of pretraining ...
PAUSE_PER_COST = (
    30  # ... and at least so many times what the last one cost: 3 % of the time at most
)
BLOCK = 2**24  # bytes of a table that are looked at at once


class CheckpointError(ValueError):
    """The folder holds the states of another fit."""


@dataclass(frozen=True)
class FitFacts:
    """What tells one fit from another."""

    facts: Mapping[str, str]  # data and settings, in words
    seed: int
    by_chance: bool = False  # nobody asked for this seed
    from_version_1: Callable[[Mapping[str, str]], dict[str, str]] = (
        dict  # older facts, in today's names
    )


class Checkpoint:
    """``save`` and ``load`` states by name and place. This one keeps nothing."""

    def at(self, *place: object) -> Checkpoint:
        """The part of the checkpoint below a place."""
        return self

    def save(self, name: str, state: Mapping[str, Any]) -> None:
        """Keep a state in place of the last one of this name."""

    def save_at_times(self, name: str, state: Any) -> None:
        """``save(name, state())``, unless the last time was a moment ago."""

    def load(self, name: str) -> dict[str, Any] | None:
        """The last state saved under this name, None if there is none."""
        return None

    def claim(self, fit: FitFacts) -> int:
        """The seed of the fit; raises a CheckpointError where the states belong to another fit."""
        return fit.seed

    def in_use(self) -> AbstractContextManager[object]:
        """While this is entered, no other fit uses the checkpoint; raises an InUseError if one does."""
        return nullcontext()

    def remove(self) -> None:
        """The fit is done."""


NO_CHECKPOINT = Checkpoint()


class FolderCheckpoint(Checkpoint):
    """One file a name in a folder, each replaced at one stroke."""

    def __init__(self, folder: str | PathLike[str], place: str = "") -> None:
        self.folder, self.place = Path(folder), place
        self.next_save = time.monotonic() + LEAST_PAUSE

    def at(self, *place: object) -> FolderCheckpoint:
        return FolderCheckpoint(self.folder, self.place + "".join(f"{word}-" for word in place))

    def save(self, name: str, state: Mapping[str, Any]) -> None:
        began = time.monotonic()
        writer = Writer()
        document = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "versions": versions(),
            "state": writer.tree(dict(state), "state"),
        }
        container.write(self._path(name), document, writer.arrays)
        now = time.monotonic()
        self.next_save = now + max(LEAST_PAUSE, PAUSE_PER_COST * (now - began))

    def save_at_times(self, name: str, state: Any) -> None:
        if time.monotonic() >= self.next_save:
            self.save(name, state())

    def load(self, name: str) -> dict[str, Any] | None:
        path = self._path(name)
        if not path.exists():
            return None
        document, arrays = container.read(path, FORMAT, FORMAT_VERSION)
        try:
            return Reader(arrays).value(document["state"])
        except Exception as error:  # as for models
            raise ModelFileError(
                f"{path} is no state of a fit: {error}. Remove it to start over."
            ) from error

    def claim(self, fit: FitFacts) -> int:
        """Take up the states of an earlier fit with the same facts, or begin a new checkpoint.

        A seed drawn by chance gives way to that of the earlier fit. A folder with states of other
        data, settings or libraries is an error: going on would not give the same bits.
        """
        before = self.load("fit") if self.has_states() else None
        if before is None:
            self.save("fit", {"facts": {**fit.facts, **versions()}, "seed": fit.seed})
            return fit.seed
        seed = before["seed"] if fit.by_chance else fit.seed
        there = before["facts"]
        there = {
            **(there if "method" in there else fit.from_version_1(there)),
            "seed": before["seed"],
        }
        now = {**fit.facts, **versions(), "seed": seed}
        differing = [
            f"{name} ({there.get(name)} there, {now.get(name)} now)"
            for name in now | there
            if there.get(name) != now.get(name)
        ]
        if differing:
            raise CheckpointError(
                f"{self.folder} holds the checkpoint of another fit; what differs: "
                f"{', '.join(differing)}. To go on with that one, give the same data and settings; "
                "to start over, remove the folder or give another."
            )
        return seed

    def in_use(self) -> AbstractContextManager[object]:
        return FolderLock(self.folder)

    def has_states(self) -> bool:
        """Whether there is more than the facts of a fit that has not come far."""
        return any(path != self._path("fit") for path in self.folder.glob("*.state.zip"))

    def remove(self) -> None:
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            if STATE.fullmatch(path.name) or LEFTOVER.fullmatch(path.name):
                path.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _path(self, name: str) -> Path:
        return self.folder / f"{self.place}{name}.state.zip"


STATE = re.compile(r"[a-z0-9-]+\.state\.zip")


def fingerprint(X: Any) -> str:
    """sha256 of a table: an array, a memory map or a sparse matrix, block by block."""
    digest = hashlib.sha256(f"{X.dtype} {X.shape}".encode())
    names = ("data", "indices", "indptr") if sp.issparse(X) else ()
    for part in [getattr(X, name) for name in names] or [np.atleast_1d(X)]:
        at_once = max(1, BLOCK // max(1, part[:1].nbytes))
        for start in range(0, len(part), at_once):
            digest.update(np.ascontiguousarray(part[start : start + at_once]).tobytes())
    return digest.hexdigest()[:16]


def as_fact(value: Any) -> str:
    """A setting in words that are the same in another process: arrays and weights by their sha256."""
    if isinstance(value, np.ndarray):
        return f"array {fingerprint(value) if value.dtype != object else value.tolist()}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(as_fact(part) for part in value)}]"
    if isinstance(value, np.generic):  # a number of NumPy is that number
        value = value.item()
    words = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    if not hasattr(value, "state_dict"):
        return words
    weights = [
        f"{name} {as_fact(weight.cpu().numpy())}" for name, weight in value.state_dict().items()
    ]
    return f"{words} with {', '.join(weights)}"
