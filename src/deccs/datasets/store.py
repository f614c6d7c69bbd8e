"""Where a data set is looked for: the user's folder, then the cache, then the public source.

A file in the cache has its sha256 next to it (``mnist.npz`` and ``mnist.npz.sha256``) and is only used when
the two agree. Files are written atomically, so a file in the cache is never half written.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import urlsplit

import numpy as np
import pooch
from requests import RequestException

from deccs.datasets.generators import Arrays
from deccs.datasets.parsers import DAMAGED
from deccs.datasets.sources import DatasetSource, RemoteFile, content_sha256

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 60  # without an answer, not for the whole download


class DatasetError(RuntimeError):
    """A data set could not be loaded; the message says why and what to do."""


def user_file(name: str) -> Path | None:
    """``<name>.npz`` in the folder DECCS_DATA, if it exists."""
    folder = os.environ.get("DECCS_DATA")
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise DatasetError(
            f"DECCS_DATA is set to {folder!r}, which is not a folder. "
            "Set it to a folder of .npz files with arrays X and y, or unset it."
        )
    path = Path(folder) / f"{name}.npz"
    return path if path.is_file() else None


def file_at_hand(name: str) -> Path | None:
    """The user's file, or the one in the cache; None if the data set must be downloaded or generated."""
    return user_file(name) or cached_file(name)


def cache_folder() -> Path:
    return Path(os.environ.get("DECCS_CACHE") or pooch.os_cache("deccs"))


def cached_file(name: str) -> Path | None:
    """``<name>.npz`` in the cache, if it exists and matches its checksum."""
    path = cache_folder() / f"{name}.npz"
    if not path.is_file():
        return None
    try:
        if _sidecar(path).read_text().strip() == file_sha256(path):
            return path
    except OSError:
        pass  # no checksum next to it counts as a wrong one
    logger.warning("%s does not match its checksum and will be downloaded again.", path)
    return None


def download(name: str, source: DatasetSource) -> Path:
    """Download, decode and check the public files; return the resulting .npz in the cache."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # The raw files are temporary: the folder is removed whatever happens.
        with tempfile.TemporaryDirectory(dir=cache, prefix=f".{name}-") as folder:
            X, y = _decode(
                name, source, [_fetch(name, source, file, Path(folder)) for file in source.files]
            )
        path = cache / f"{name}.npz"
        _write(path, lambda file: np.savez_compressed(file, X=X, y=y))
        _write(_sidecar(path), lambda file: file.write(file_sha256(path).encode()))
        return path
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else str(error)
        raise DatasetError(
            f"Could not write data set {name!r} to the cache {cache}: {reason}. Nothing was kept. "
            f"Free some space, or set DECCS_CACHE to a folder with space. {_by_hand(name, source)}"
        ) from error


def read(path: Path, source: DatasetSource) -> Arrays:
    """X and y of an .npz file, checked against the source's columns and labels.

    The number of rows is not checked: a user's file may hold part of a data set.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            X, y = arrays["X"], arrays["y"]
    except DAMAGED as error:
        raise DatasetError(
            f"Could not read {path}: {error}. Replace it with an .npz file with arrays X (rows, {source.d}) and "
            "y (rows,), or remove it."
        ) from error
    if problem := _problem(X, y, source):
        raise DatasetError(f"{path} is not {source.title}: {problem}. Replace or remove the file.")
    return X, y


def file_sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(name: str, source: DatasetSource, file: RemoteFile, folder: Path) -> Path:
    _check_protected(name, source, file)
    try:
        path = pooch.retrieve(
            file.url,
            known_hash=file.checksum,
            fname=PurePosixPath(urlsplit(file.url).path).name,
            path=folder,
            downloader=pooch.HTTPDownloader(timeout=TIMEOUT_SECONDS),
        )
    except RequestException as error:
        raise DatasetError(
            f"Could not download data set {name!r} from {file.url}: {error}. Nothing was kept. "
            f"Check the network and try again. {_by_hand(name, source)}"
        ) from error
    except ValueError as error:  # pooch: the checksum is wrong
        raise _mismatch(name, source, f"{file.url} should have {file.checksum}; {error}") from error
    return Path(path)


def _check_protected(name: str, source: DatasetSource, file: RemoteFile) -> None:
    """Refuse a file that others could change on its way: neither https nor a sha256 to compare with."""
    is_pinned = source.content or (file.checksum or "").startswith("sha256:")
    if urlsplit(file.url).scheme != "https" and not is_pinned:
        raise DatasetError(
            f"Data set {name!r} is not downloaded from {file.url}: it has no https, and no sha256 is known "
            f"to check it by. {_by_hand(name, source)}"
        )


def _decode(name: str, source: DatasetSource, paths: list[Path]) -> Arrays:
    assert source.parse is not None
    try:
        X, y = source.parse(paths)
    except DAMAGED as error:
        raise _mismatch(name, source, f"a file cannot be decoded: {error}") from error
    problem = _problem(X, y, source)
    if not problem and len(X) != source.n:
        problem = f"expected {source.n} rows, got {len(X)}"
    if not problem and source.content and (content := content_sha256(X, y)) != source.content:
        problem = f"the decoded arrays should have sha256 {source.content}, got {content}"
    if problem:
        raise _mismatch(name, source, problem)
    return X, y


def _problem(X: np.ndarray, y: np.ndarray, source: DatasetSource) -> str | None:
    if X.ndim != 2 or X.shape[1] != source.d or y.shape != X.shape[:1] or len(X) == 0:
        return f"expected X (rows, {source.d}) and y (rows,), got {X.shape} and {y.shape}"
    if not (np.issubdtype(X.dtype, np.integer) or np.issubdtype(X.dtype, np.floating)):
        return f"expected numbers in X, got {X.dtype}"
    if np.issubdtype(X.dtype, np.floating) and not np.isfinite(X).all():
        return "X has values that are missing or infinite"
    if not np.issubdtype(y.dtype, np.integer) or y.min() < 0 or y.max() >= source.k:
        return (
            f"expected labels 0 to {source.k - 1} in y, got {y.dtype} from {y.min()} to {y.max()}"
        )
    return None


def _mismatch(name: str, source: DatasetSource, what: str) -> DatasetError:
    return DatasetError(
        f"What was downloaded for data set {name!r} is not the published data: {what}. Nothing was kept. "
        f"Try again; if it happens again, the source has changed. {_by_hand(name, source)}"
    )


def _by_hand(name: str, source: DatasetSource) -> str:
    urls = ", ".join(file.url for file in source.files)
    return (
        f"Or provide the data yourself: make {name}.npz with arrays X ({source.n}, {source.d}) as published "
        f"and y (labels 0 to {source.k - 1}), and set DECCS_DATA to its folder. Files: {urls}"
    )


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
    # Imported here: the rest of deccs.storage loads torch, which reading a data set does not need.
    from deccs.storage.atomic import replacing

    with replacing(path) as file:
        write(file)
