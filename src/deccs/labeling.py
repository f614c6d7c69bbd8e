"""Labeling more rows than a fit learns from, in parts that are safe as soon as they are done.

Every process of a group has its own parts, which follow one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from deccs.answer import Answer
from deccs.group.group import Group
from deccs.storage import Checkpoint

ROWS_OF_PART = 2**18  # 1 MB of labels; some seconds of work


class PartLabels:
    """The labels of the parts of this process, in order; those done before a kill are known."""

    def __init__(self, n_rows: int, group: Group, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.parts = own_parts(n_rows, group)
        self.known: dict[range, np.ndarray] = {}
        for part in self.parts:
            labels = known_labels(checkpoint, part)
            if labels is not None:
                self.known[part] = labels

    @property
    def unknown(self) -> list[range]:
        return [part for part in self.parts if part not in self.known]

    def keep(self, part: range, labels: np.ndarray) -> None:
        """The labels of a part, (n_part,), are known from now on."""
        self.known[part] = labels.astype(np.int32)
        self.checkpoint.save(state_name(part), {"labels": self.known[part]})

    def joined(self) -> np.ndarray:
        """(n_own,) the labels of all parts."""
        return np.concatenate([np.zeros(0, np.int32), *(self.known[part] for part in self.parts)])


def own_parts(n_rows: int, group: Group) -> list[range]:
    """The rows of the parts of this process, in order; none where there are more processes than parts.

    >>> from deccs.group.group import ALONE
    >>> own_parts(2**18 + 5, ALONE)
    [range(0, 262144), range(262144, 262149)]
    """
    starts = range(0, n_rows, ROWS_OF_PART)[group.own(-(-n_rows // ROWS_OF_PART))]
    return [range(start, min(start + ROWS_OF_PART, n_rows)) for start in starts]


def spans_of(parts: Sequence[range]) -> Iterator[list[range]]:
    """Parts that follow one another, together: a table is read best without a break.

    >>> list(spans_of([range(0, 2), range(2, 4), range(6, 8)]))
    [[range(0, 2), range(2, 4)], [range(6, 8)]]
    """
    span: list[range] = []
    for part in parts:
        if span and span[-1].stop != part.start:
            yield span
            span = []
        span.append(part)
    if span:
        yield span


def by_part(answers: Iterable[Answer], parts: Sequence[range]) -> Iterator[tuple[range, Answer]]:
    """Answers for the rows of parts that follow one another, each with its part; none belongs to two parts."""
    coming, at = iter(parts), parts[0].start
    part = next(coming)
    for answer in answers:
        first = 0
        while first < len(answer):
            if at == part.stop:
                part = next(coming)
            last = min(first + part.stop - at, len(answer))
            whole = (first, last) == (0, len(answer))
            yield part, answer if whole else answer.rows(np.arange(first, last))
            at += last - first
            first = last


def state_name(part: range) -> str:
    """The state that holds the labels of a part.

    >>> state_name(range(0, 2**18)), state_name(range(2**18, 2**18 + 5))
    ('labels-0', 'labels-1')
    """
    return f"labels-{number_of(part)}"


def number_of(part: range) -> int:
    """Which part it is, from 0."""
    return part.start // ROWS_OF_PART


def known_labels(checkpoint: Checkpoint, part: range) -> np.ndarray | None:
    """The labels of a part that was finished before, (n_part,); None for any other."""
    return checkpoint.restore(state_name(part), partial(checked, len(part)))


def checked(size: int, state: dict[str, Any]) -> np.ndarray:
    """The labels of a state, if they are those of so many rows."""
    labels = state["labels"]
    if not (
        isinstance(labels, np.ndarray) and labels.dtype == np.int32 and labels.shape == (size,)
    ):
        raise ValueError(f"It must have the labels of {size:,} rows")
    return labels
