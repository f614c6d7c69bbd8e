"""Where each data set comes from: the table ``sources.toml``, with its functions looked up by name."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from deccs.datasets import generators, parsers
from deccs.datasets.generators import Arrays


@dataclass(frozen=True)
class RemoteFile:
    """A published file."""

    url: str
    checksum: str | None = None  # "sha256:..." or "md5:...", None where none is published


@dataclass(frozen=True)
class DatasetSource:
    """Facts about a data set, and how to get it: files and their parser, or a generator."""

    title: str
    page: str  # where to read about it
    n: int
    d: int
    k: int
    scaling: Literal["none", "feature", "global"]  # the paper's normalization of this kind of data
    files: tuple[RemoteFile, ...] = ()
    parse: Callable[[Sequence[Path]], Arrays] | None = None
    generate: Callable[[], Arrays] | None = None  # instead of files
    image_shape: tuple[int, int] | None = None
    content: str | None = None  # ``content_sha256`` of the decoded arrays

    @classmethod
    def from_table(cls, entry: Mapping[str, Any]) -> DatasetSource:
        """The source that a table of the TOML file describes."""
        readings: dict[str, Callable[[Any], Any]] = {
            "files": lambda files: tuple(RemoteFile(**file) for file in files),
            "parse": lambda name: getattr(parsers, name),
            "generate": lambda name: getattr(generators, name),
            "image_shape": tuple,
        }
        return cls(**{key: readings.get(key, lambda value: value)(entry[key]) for key in entry})


def content_sha256(X: NDArray[Any], y: NDArray[Any]) -> str:
    """sha256 of X in its published dtype, row by row, followed by y as int64 (little endian)."""
    digest = hashlib.sha256(X.astype(X.dtype.newbyteorder("<"), order="C", copy=False).tobytes())
    digest.update(y.astype("<i8").tobytes())
    return digest.hexdigest()


SOURCES: dict[str, DatasetSource] = {
    name: DatasetSource.from_table(entry)
    for name, entry in tomllib.loads(
        resources.files("deccs.datasets").joinpath("sources.toml").read_text("utf-8")
    ).items()
}
