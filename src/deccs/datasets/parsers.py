"""From the published files to ``(X, y)``: train rows, then test rows, values and dtype as published.

Each parser takes the paths of a data set's files in the order of ``sources.toml``.
A damaged file raises one of ``DAMAGED``; the parsers never guess.
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from deccs.datasets.generators import Arrays

# gzip and bz2 report damage as OSError or EOFError, numpy as ValueError.
DAMAGED = (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error)

MICE_OTHER_COLUMNS = ("MouseID", "Genotype", "Treatment", "Behavior", "class")


def parse_idx(paths: Sequence[Path]) -> Arrays:
    """MNIST's format: train images, train labels, test images, test labels, each an IDX array in gzip."""
    train_images, train_labels, test_images, test_labels = map(read_idx, paths)
    images = np.concatenate([train_images, test_images])  # (n, height, width), uint8
    labels = np.concatenate([train_labels, test_labels])
    return images.reshape(len(images), -1), labels.astype(np.int64)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """One gzipped IDX array: 0, 0, 8 (for uint8), number of axes, big-endian length of each axis, values."""
    with gzip.open(path) as file:
        content = file.read()
    if content[:3] != b"\x00\x00\x08":
        raise ValueError(
            f"{path.name} is not an IDX file of unsigned bytes: it starts with {content[:4]!r}"
        )
    header = 4 + 4 * content[3]
    shape = tuple(int(length) for length in np.frombuffer(content[4:header], dtype=">u4"))
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def parse_libsvm(paths: Sequence[Path]) -> Arrays:
    """USPS: train and test as bzipped ``label index:value ...`` lines, labels 1..10 for the digits 0..9."""
    n_pixels = 16 * 16
    options = {"n_features": n_pixels, "dtype": np.float32, "zero_based": False}
    parts = [load_svmlight_file(str(path), **options) for path in paths]
    X = np.concatenate([pixels.toarray() for pixels, _ in parts])
    y = np.concatenate([labels for _, labels in parts])
    return X, y.astype(np.int64) - 1


def parse_pendigits(paths: Sequence[Path]) -> Arrays:
    """UCI's zip with ``pendigits.tra`` and ``pendigits.tes``: sixteen integers 0..100, then the digit."""
    with zipfile.ZipFile(paths[0]) as archive:
        rows = np.concatenate(
            [_table(archive, f"pendigits.{part}", ",") for part in ("tra", "tes")]
        )
    return rows[:, :-1].astype(np.uint8), rows[:, -1].astype(np.int64)


def parse_har(paths: Sequence[Path]) -> Arrays:
    """UCI's zip contains another zip with ``X_train.txt``, ``y_train.txt`` and the same for test."""
    with zipfile.ZipFile(paths[0]) as outer:
        inner = io.BytesIO(outer.read(_member(outer, "UCI HAR Dataset.zip")))
    with zipfile.ZipFile(inner) as archive:
        X, y = (
            np.concatenate([_table(archive, f"{array}_{part}.txt") for part in ("train", "test")])
            for array in ("X", "y")
        )
    return X.astype(np.float32), y.ravel().astype(np.int64) - 1


def parse_mice(paths: Sequence[Path]) -> Arrays:
    """UCI's csv, one row per measurement; rows with a missing value are dropped, as in the paper.

    Classes are numbered in the order of the file, starting with c-CS-m, c-SC-m.
    """
    with open(paths[0], newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise ValueError(f"{paths[0].name} has no rows")
    proteins = [column for column in rows[0] if column not in MICE_OTHER_COLUMNS]
    classes = dict.fromkeys(row["class"] for row in rows)
    label_of = {name: label for label, name in enumerate(classes)}
    X = np.array([[float(row[protein] or "nan") for protein in proteins] for row in rows])
    y = np.array([label_of[row["class"]] for row in rows], dtype=np.int64)
    complete = ~np.isnan(X).any(axis=1)
    return X[complete], y[complete]


def _member(archive: zipfile.ZipFile, name: str) -> str:
    """Full path of the only file called ``name``; its folders differ between copies."""
    matches = [member for member in archive.namelist() if PurePosixPath(member).name == name]
    if len(matches) != 1:
        raise ValueError(f"expected one {name} in the archive, found {len(matches)}")
    return matches[0]


def _table(archive: zipfile.ZipFile, name: str, delimiter: str | None = None) -> NDArray[Any]:
    with archive.open(_member(archive, name)) as file:
        return np.loadtxt(io.TextIOWrapper(file, "ascii"), delimiter=delimiter, ndmin=2)
