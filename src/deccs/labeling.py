"""Labeling more rows than a fit learns from, in parts that are safe as soon as they are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from deccs.answer import Answer
from deccs.storage import Checkpoint

ROWS_OF_PART = 2**20  # 4 MB of labels; ten to fifteen seconds of work


def split_at_parts(answers: Iterable[Answer], start: int) -> Iterator[Answer]:
    """The answers of rows from ``start`` on, none of which belongs to two parts."""
    for answer in answers:
        first = 0
        while first < len(answer):
            left = ROWS_OF_PART - start % ROWS_OF_PART
            last = min(first + left, len(answer))
            whole = (first, last) == (0, len(answer))
            yield answer if whole else answer.rows(np.arange(first, last))
            start += last - first
            first = last


def part_name(stop: int) -> str:
    """The state that holds the labels of the part that ends before this row.

    >>> part_name(2**20), part_name(2**20 + 5)
    ('labels-0', 'labels-1')
    """
    return f"labels-{(stop - 1) // ROWS_OF_PART}"


def keep_labels(checkpoint: Checkpoint, labels: np.ndarray) -> None:
    """Keep the labels of the last part: (n_done,) are all labels so far."""
    start = (len(labels) - 1) // ROWS_OF_PART * ROWS_OF_PART
    checkpoint.save(part_name(len(labels)), {"labels": labels[start:].astype(np.int32)})


def restore_labels(checkpoint: Checkpoint, labels: np.ndarray) -> int:
    """Put the labels of finished parts into (n_rows,) labels; how many rows they are."""
    n_done = 0
    while n_done < len(labels):
        stop = min(n_done + ROWS_OF_PART, len(labels))
        known = checkpoint.restore(part_name(stop), partial(checked, stop - n_done))
        if known is None:
            break
        labels[n_done:stop] = known
        n_done = stop
    return n_done


def checked(size: int, state: dict[str, Any]) -> np.ndarray:
    """The labels of a state, if they are those of so many rows."""
    labels = state["labels"]
    if not (
        isinstance(labels, np.ndarray) and labels.dtype == np.int32 and labels.shape == (size,)
    ):
        raise ValueError(f"It must have the labels of {size:,} rows")
    return labels
