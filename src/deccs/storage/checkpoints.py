"""States of a fit under way: killed at any moment and started again, it goes on where it was.

Every state says its own name and which fit it belongs to. One that is damaged, or of another fit, or
that cannot be used, is set aside with a warning, and the fit goes on from the last good state.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from deccs.environment import versions
from deccs.loaded import is_sparse
from deccs.storage import container
from deccs.storage.atomic import LEFTOVER, sync_folder
from deccs.storage.locks import FolderLock
from deccs.storage.values import ModelFileError, Reader, Writer

FORMAT, FORMAT_VERSION = "deccs checkpoint", 2  # version 1 did not say whose state it was
LEAST_PAUSE = 2.0  # seconds between two states of pretraining ...
PAUSE_PER_COST = (
    30  # ... and at least so many times what the last one cost: 3 % of the time at most
)
BLOCK = 2**24  # bytes of a table that are looked at at once
STATE = re.compile(r"[a-z0-9-]+\.state\.zip(\.bad)?")

T = TypeVar("T")


class CheckpointError(ValueError):
    """The folder holds the states of another fit."""


class CheckpointWarning(UserWarning):
    """A state of an earlier fit cannot be used and was set aside."""


@dataclass(frozen=True)
class FitFacts:
    """What tells one fit from another."""

    facts: Mapping[str, str]  # data and settings, in words
    seed: int
    by_chance: bool = False  # nobody asked for this seed
    from_version_1: Callable[[Mapping[str, str]], dict[str, str]] = (
        dict  # older facts, in today's names
    )
    n_processes: int = 1  # with another number a resumed fit has other bits


@dataclass
class Owner:
    """The fit that a checkpoint is used by."""

    fit: str = ""  # a digest of its facts; empty before they are known
    has_version_1: bool = False  # its first states were written before states said whose they are
    resumes: bool = False  # it goes on with the states of an earlier one


class Checkpoint:
    """``save`` and ``restore`` states by name and place. This one keeps nothing."""

    owner = Owner()

    def at(self, *place: object) -> Checkpoint:
        """The part of the checkpoint below a place."""
        return self

    def save(self, name: str, state: Mapping[str, Any]) -> None:
        """Keep a state in place of the last one of this name."""

    def is_due(self) -> bool:
        """Whether the last state was saved so long ago that another one is worth its time."""
        return False

    def save_at_times(self, name: str, state: Callable[[], Mapping[str, Any]]) -> None:
        """``save(name, state())``, unless the last time was a moment ago."""
        if self.is_due():
            self.save(name, state())

    def load(self, name: str) -> dict[str, Any] | None:
        """The last state saved under this name, None if there is none."""
        return None

    def restore(self, name: str, use: Callable[[dict[str, Any]], T]) -> T | None:
        """What ``use`` makes of the last state of this name; None if there is no good one.

        ``use`` raises an error if a state is not what it should be, and has changed nothing then.
        """
        state = self.load(name)
        return None if state is None else use(state)

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

    def __init__(
        self, folder: str | PathLike[str], place: str = "", owner: Owner | None = None
    ) -> None:
        self.folder, self.place, self.owner = Path(folder), place, owner or Owner()
        self.next_save = time.monotonic() + LEAST_PAUSE

    def at(self, *place: object) -> FolderCheckpoint:
        below = self.place + "".join(f"{word}-" for word in place)
        return FolderCheckpoint(self.folder, below, self.owner)

    def save(self, name: str, state: Mapping[str, Any]) -> None:
        began = time.monotonic()
        writer = Writer()
        document = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "versions": versions(),
            "name": self.place + name,
            "fit": self.owner.fit,
            "state": writer.tree(dict(state), "state"),
        }
        container.write(self._path(name), document, writer.arrays)
        now = time.monotonic()
        self.next_save = now + max(LEAST_PAUSE, PAUSE_PER_COST * (now - began))

    def is_due(self) -> bool:
        return time.monotonic() >= self.next_save

    def load(self, name: str) -> dict[str, Any] | None:
        return self._read(name)[1] if os.path.lexists(self._path(name)) else None

    def restore(self, name: str, use: Callable[[dict[str, Any]], T]) -> T | None:
        try:
            return super().restore(name, use)
        except (OSError, MemoryError):  # the machine is to blame, not the state
            raise
        except Exception as error:  # noqa: BLE001  a state can be wrong in any way
            self._set_aside(name, error)
            return None

    def claim(self, fit: FitFacts) -> int:
        """Take up the states of an earlier fit with the same facts, or begin a new checkpoint.

        A seed drawn by chance gives way to that of the earlier fit. A folder with states of other
        data, settings or libraries is an error: going on would not give the same bits.
        """
        self.owner = Owner()
        before = self.restore("fit", checked_facts) if self.has_states() else None
        seed = before[1] if before and fit.by_chance else fit.seed
        now = {**fit.facts, **versions(), "seed": seed}
        if before:
            facts = before[0] if "method" in before[0] else fit.from_version_1(before[0])
            self._check_same({**facts, "seed": before[1]}, now)
            self.owner.has_version_1 = self._read("fit")[0] == 1
            self._warn_of_other_processes(before[2], fit.n_processes)
        self.owner.fit, self.owner.resumes = digest(now), before is not None
        if not before:
            state = {"facts": {**fit.facts, **versions()}, "seed": seed}
            self.save("fit", {**state, "processes": fit.n_processes})
        return seed

    def in_use(self) -> AbstractContextManager[object]:
        return FolderLock(self.folder)

    def has_states(self) -> bool:
        """Whether there is more than the facts of a fit that has not come far."""
        return any(path != self._path("fit") for path in self.folder.glob("*.state.zip"))

    def last_saved(self) -> int:
        """When the last state was saved, in nanoseconds; 0 if there is none."""
        states = self.folder.glob("*.state.zip")
        return max((path.lstat().st_mtime_ns for path in states), default=0)

    def remove(self) -> None:
        """Remove all states; the one that tells whose they are goes last."""
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            ours = STATE.fullmatch(path.name) or LEFTOVER.fullmatch(path.name)
            if ours and path != self._path("fit") and not path.is_dir():
                path.unlink(missing_ok=True)
        sync_folder(self.folder)
        self._path("fit").unlink(missing_ok=True)
        with suppress(OSError):  # there are other files
            self.folder.rmdir()

    def discard(self) -> None:
        """Remove all states, if no fit uses them."""
        if self.folder.is_dir():
            with self.in_use():
                self.remove()

    def _warn_of_other_processes(self, before: int, now: int) -> None:
        if before != now:
            warnings.warn(
                f"{self.folder} holds the checkpoint of a fit by {before} process(es), and {now} go on with it: the "
                "result will differ in the last digits from that of an uninterrupted fit.",
                CheckpointWarning,
                stacklevel=4,
            )

    def _check_same(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        differing = [
            f"{name} ({before.get(name)} there, {now.get(name)} now)"
            for name in {**now, **before}
            if before.get(name) != now.get(name)
        ]
        if differing:
            raise CheckpointError(
                f"{self.folder} holds the checkpoint of another fit; what differs: "
                f"{', '.join(differing)}. To go on with that one, give the same data and settings; "
                "to start over, remove the folder or give another."
            )

    def _read(self, name: str) -> tuple[int, dict[str, Any]]:
        """The version of the format and the state; raises a ModelFileError if it is not ours."""
        path = self._path(name)
        document, arrays = container.read(path, FORMAT, FORMAT_VERSION)
        self._check_place(document, name)
        try:
            reader = Reader(arrays)
            state = reader.value(document["state"])
            reader.finish()
        except Exception as error:  # as for models
            raise ModelFileError(f"{path} is no state of a fit: {in_words(error)}.") from error
        if not isinstance(state, dict):
            raise ModelFileError(f"{path} is no state of a fit: it has no names.")
        return document["format_version"], state

    def _check_place(self, document: Mapping[str, Any], name: str) -> None:
        place, is_facts = self.place + name, self.place + name == "fit"
        if document["format_version"] == 1:
            if not (is_facts or self.owner.has_version_1 or not self.owner.fit):
                raise ModelFileError("It does not say which fit it belongs to.")
        elif document.get("name") != place:
            raise ModelFileError(f"It is the state {document.get('name')!r:.60}, not {place!r}.")
        elif self.owner.fit and document.get("fit") != self.owner.fit:
            raise ModelFileError("It belongs to a fit with other data, settings or seed.")

    def _set_aside(self, name: str, error: Exception) -> None:
        path = self._path(name)
        bad = path.with_name(f"{path.name}.bad")
        os.replace(path, bad)
        warnings.warn(
            f"{path} cannot be used: {in_words(error)}. It is now {bad.name}, and the fit goes on "
            "from the last good state before it.",
            CheckpointWarning,
            stacklevel=4,
        )

    def _path(self, name: str) -> Path:
        return self.folder / f"{self.place}{name}.state.zip"


def checked_facts(state: dict[str, Any]) -> tuple[dict[str, str], int, int]:
    """Facts, seed and number of processes of a fit, as :meth:`FolderCheckpoint.claim` has saved them."""
    facts, seed, n_processes = state["facts"], state["seed"], state.get("processes", 1)
    if not isinstance(facts, dict) or type(seed) is not int or type(n_processes) is not int:
        raise ModelFileError("It does not say what was fitted.")
    return facts, seed, n_processes


def digest(facts: Mapping[str, Any]) -> str:
    """A short name for the facts of a fit."""
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def in_words(error: Exception) -> str:
    """An error as a part of a message; a KeyError alone says too little."""
    words = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return words[:500].rstrip(".")


def fingerprint(X: Any) -> str:
    """sha256 of a table: an array, a memory map or a sparse matrix, block by block."""
    digest = hashlib.sha256(f"{X.dtype} {X.shape}".encode())
    names = ("data", "indices", "indptr") if is_sparse(X) else ()
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
