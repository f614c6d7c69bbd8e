"""Limits so low that a table of a few thousand rows counts as large, and such tables."""

from importlib import import_module

import polars as pl
from sklearn.datasets import make_blobs

from deccs import base, labeling
from deccs.app import labels_file, parts, run_folder
from deccs.data import learning_rows, scanned
from deccs.data.tables import TableError, columnar, delimited, json_lines
from deccs.data.tables.isolated import IsolatedError

N_LEARNED = 300
N_PART = 256
CENTERS = [[0, 0, 0, 0], [8, 0, 8, 0], [0, 8, 0, 8]]


def call_here(function, *arguments, seconds=0):
    """What :func:`deccs.data.tables.isolated.isolated` does, in this process: it knows the low limits."""
    module, _, name = function.partition(":")
    try:
        return getattr(import_module(module), name)(*arguments)
    except TableError:
        raise
    except Exception as error:
        raise IsolatedError(str(error)) from error


def lower_limits(monkeypatch):
    """Learn from 300 rows, label 256 at a time, and leave files of more than a kilobyte on the disk."""
    for module in (learning_rows, base):
        monkeypatch.setattr(module, "MOST_ROWS", N_LEARNED)
    monkeypatch.setattr(learning_rows, "LEAST_ROWS", 16)
    for module in (labeling, base, parts, labels_file, run_folder):
        if hasattr(module, "ROWS_OF_PART"):
            monkeypatch.setattr(module, "ROWS_OF_PART", N_PART)
    for module in (columnar, delimited, json_lines):
        monkeypatch.setattr(module, "LARGE", 1_000)
    monkeypatch.setattr(scanned, "AT_ONCE", 400)
    monkeypatch.setattr(columnar, "isolated", call_here)


def blobs_of(n_rows, seed=0):
    """(n_rows, 4) doubles in three far blobs, in a mixed order, and whose each is."""
    return make_blobs(n_rows, centers=CENTERS, cluster_std=0.7, random_state=seed)


def frame_of(X, **columns):
    """A frame of the columns a to d, with others beside them."""
    return pl.DataFrame(dict(zip("abcd", X.T, strict=True))).with_columns(
        pl.Series(name, values) for name, values in columns.items()
    )
