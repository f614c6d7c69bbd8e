"""What users know of some rows of a file: a column with a few labels, and files of pairs."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deccs.app.request import FitRequest, RequestError
from deccs.data.tables import Table
from deccs.labels import NO_LABEL

MOST_PAIRS = 10_000_000  # in a file: more are a mistake, and would take gigabytes
OPTIONS = ("partial", "must_link", "cannot_link")


def given_to(request: FitRequest, table: Table) -> dict[str, Any]:
    """The arguments of ``fit`` beside the rows; empty where nothing is known of any row."""
    given: dict[str, Any] = {}
    if request.partial is not None:
        given["partial"] = labels_in(table, request.partial)
    for name in ("must_link", "cannot_link"):
        path: str | None = getattr(request, name)
        if path is not None:
            given[name] = pairs_in(Path(path), table)
    return given


def labels_in(table: Table, column: str) -> np.ndarray:
    """The labels of the rows that are clustered, None where there are none: (n_kept,)."""
    if table.frame is None:
        if column not in table.extras:
            raise RequestError(
                f"--partial {column}: a file of numbers alone has no column of labels to leave out. Give a "
                "table with names of columns."
            )
        values = list(table.extras[column])
    else:
        values = table.frame.select(column).collect()[column].to_list()
    words = [None if is_unknown(value) else value for value in values]
    labels = np.empty(len(words), dtype=object)
    labels[:] = words
    return labels[table.kept]


def is_unknown(value: object) -> bool:
    """
    Whether a cell of a column of labels says nothing.

    >>> is_unknown(" "), is_unknown(None), is_unknown(-1), is_unknown("-1"), is_unknown("loyal")
    (True, True, True, True, False)
    """
    return value is None or str(value).strip() in ("", *NO_LABEL)


def pairs_in(path: Path, table: Table) -> np.ndarray:
    """The pairs of a file as numbers of the rows that are clustered: (n_pairs, 2).

    Rows are named by their ids, or by their numbers from 0. Pairs with a row that was dropped are left out.
    """
    row_of = {str(name): row for row, name in enumerate(table.ids.tolist())}
    place = np.where(table.kept, np.cumsum(table.kept) - 1, -1)  # among the rows that are clustered
    pairs = []
    for number, words in numbered_pairs(path):
        if all(word in row_of for word in words):
            pairs.append([row_of[word] for word in words])
        elif number > 1:  # the first line may hold names of columns
            word = next(word for word in words if word not in row_of)
            names = "ids" if table.key == "id" else "row numbers, counted from 0"
            raise RequestError(
                f"{path}, line {number}: there is no row {word!r:.100}. Pairs are named by {names}"
                f"{'' if table.key == 'id' else ' (--id COLUMN names rows by ids)'}."
            )
    rows = place[np.array(pairs, dtype=np.int64).reshape(-1, 2)]
    return np.asarray(rows[(rows >= 0).all(axis=1)])


def numbered_pairs(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file of pairs that are not empty, with their numbers from 1."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            for number, line in enumerate(csv.reader(file), start=1):
                words = [word.strip() for word in line]
                if not any(words):
                    continue
                if len(words) != 2 or number > MOST_PAIRS:
                    raise RequestError(
                        f"{path}, line {number}: a file of pairs has two columns, such as 17,42, and at most "
                        f"{MOST_PAIRS:,} lines; got {','.join(words)!r:.100}."
                    )
                yield number, words
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RequestError(f"The file of pairs {path} cannot be read: {error}.") from error
