"""What a user knows of some rows, checked: must-links, cannot-links and a few labels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from deccs.labels import NOISE, as_labels, name_of

NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints of rows that are numbered from 0.

    >>> some = constraints_of(4, must_link=[[0, 1]], cannot_link=[[1, 2]], partial=["a", None, None, "b"])
    >>> some.labels, some.classes  # row 1 is in the cluster of row 0
    (array([ 0,  0, -1,  1]), ('a', 'b'))
    """

    must: np.ndarray  # (n_must, 2) row numbers
    cannot: np.ndarray  # (n_cannot, 2)
    partial: np.ndarray  # (n_rows,) the class of a row, -1 where it is not known
    classes: tuple[str, ...] = ()  # their names, in order

    @property
    def n_rows(self) -> int:
        return len(self.partial)

    @cached_property
    def labeled(self) -> np.ndarray:
        """The rows whose class was given: (n_labeled,)."""
        return np.flatnonzero(self.partial != NOISE)

    @property
    def any(self) -> bool:
        return bool(len(self.must) or len(self.cannot) or len(self.labeled))

    @cached_property
    def linked(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that take part in anything, in order, and the component of each: (n_linked,) twice.

        A component is what must-links join, directly or by way of other rows.
        """
        rows = np.unique(np.concatenate([self.must.ravel(), self.cannot.ravel(), self.labeled]))
        graph = graph_of(np.searchsorted(rows, self.must), len(rows))
        return rows, connected_components(graph, directed=False)[1]

    @cached_property
    def labels(self) -> np.ndarray:
        """The classes, also of rows that must be where a labeled row is: (n_rows,)."""
        rows, component = self.linked
        known = self.partial[rows] != NOISE
        of_component = np.full(component.max(initial=-1) + 1, NOISE)
        of_component[component[known]] = self.partial[rows][known]
        labels = self.partial.copy()
        labels[rows] = of_component[component]
        return labels

    def within(self, index: np.ndarray) -> Constraints:
        """The constraints of some rows, which are numbered by their places in ``index``: (n,), in order.

        What follows by way of rows outside is kept: of must-links 0-5 and 5-1 without row 5, 0-1 remains.
        """
        rows, component = self.linked
        place = np.searchsorted(index, rows).clip(max=max(len(index) - 1, 0))
        inside = index[place] == rows if len(index) else np.zeros(len(rows), dtype=bool)
        # Who speaks for a row: itself, or the first row of its component that is inside.
        first = np.full(component.max(initial=-1) + 1, NOISE)
        first[component[inside][::-1]] = place[inside][::-1]
        speaker = np.where(inside, place, first[component])
        order = np.flatnonzero(inside)[np.argsort(component[inside], kind="stable")]
        follows = component[order][1:] == component[order][:-1]
        must = np.column_stack([place[order][:-1], place[order][1:]])[follows]
        cannot = speaker[np.searchsorted(rows, self.cannot)].reshape(-1, 2)
        return Constraints(must, cannot[(cannot >= 0).all(1)], self.labels[index], self.classes)

    def without(self, components: np.ndarray) -> Constraints:
        """Without all that concerns the components of these numbers."""
        rows, component = self.linked
        gone = np.zeros(self.n_rows, dtype=bool)
        gone[rows[np.isin(component, components)]] = True
        return Constraints(
            self.must[~gone[self.must].any(1)],
            self.cannot[~gone[self.cannot].any(1)],
            np.where(gone, NOISE, self.partial),
            self.classes,
        )

    @property
    def digest(self) -> str:
        """What tells these constraints from others, for checkpoints and groups of processes."""
        parts = [self.must, self.cannot, self.labeled, self.partial[self.labeled]]
        content = b"".join(str(part.shape).encode() + part.tobytes() for part in parts)
        return hashlib.sha256(content + "\0".join(self.classes).encode()).hexdigest()


def constraints_of(
    n_rows: int, must_link: Any = None, cannot_link: Any = None, partial: Any = None
) -> Constraints:
    """What was given for a fit of so many rows. What cannot be is a ValueError that names rows."""
    labels, classes = classes_of(partial, n_rows)
    must = pairs_of(must_link, "must_link", n_rows)
    cannot = pairs_of(cannot_link, "cannot_link", n_rows)
    constraints = Constraints(must, cannot, labels, classes)
    check_no_contradiction(constraints)
    return constraints


def pairs_of(given: Any, name: str, n_rows: int) -> np.ndarray:
    """Pairs of row numbers: (n_pairs, 2)."""
    pairs = np.asarray([] if given is None else given)
    if pairs.size == 0:
        return NO_PAIRS
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be pairs of row numbers, whole numbers of shape (n_pairs, 2); got "
            f"{pairs.dtype} of shape {pairs.shape}."
        )
    wrong = pairs[(pairs < 0) | (pairs >= n_rows)]
    if len(wrong):
        raise ValueError(
            f"{name} names row {wrong[0]}, but the rows are numbered from 0 to {n_rows - 1}."
        )
    same = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(same):
        raise ValueError(
            f"{name}[{same[0]}] is a pair of row {pairs[same[0], 0]} with itself. Leave it out."
        )
    return pairs.astype(np.int64)


def classes_of(given: Any, n_rows: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """The class of each row, -1 for none, and the names of the classes in order: numbers by size.

    >>> classes_of([7, -1, 3, 7], 4)
    (array([ 1, -1,  0,  1]), ('3', '7'))
    """
    if given is None:
        return np.full(n_rows, NOISE), ()
    try:
        shape = tuple(np.shape(given))
        numbers = as_labels(given) if shape == (n_rows,) else None
    except (TypeError, ValueError) as error:
        raise ValueError(f"partial must have a label or -1 for each row: {error}.") from error
    if numbers is None:
        raise ValueError(
            f"partial must have one label per row, shape ({n_rows},), with -1, NaN or None where it "
            f"is not known; got shape {shape}."
        )
    known, first = np.unique(numbers, return_index=True)
    values = np.asarray(given, dtype=object)[first[known != NOISE]].tolist()
    are_numbers = all(isinstance(value, Number) for value in values)
    order = sorted(range(len(values)), key=values.__getitem__ if are_numbers else in_words(values))
    rank = np.append(np.argsort(order), NOISE).astype(np.int64)  # the last place is for -1
    return rank[numbers], tuple(name_of(values[place]) for place in order)


def in_words(values: list[Any]) -> Any:
    return lambda place: name_of(values[place])


def check_no_contradiction(constraints: Constraints) -> None:
    """Raise a ValueError for two rows that would have to be together and apart."""
    rows, component = constraints.linked
    labels = constraints.partial
    of_component: dict[int, int] = {}
    for row, number in zip(rows.tolist(), component.tolist(), strict=True):
        if labels[row] == NOISE:
            continue
        other = of_component.setdefault(number, row)
        if labels[other] != labels[row]:
            first, second = (constraints.classes[labels[each]] for each in (other, row))
            raise ValueError(
                f"must_link joins row {other} and row {row}{chain(constraints, other, row)}, but partial "
                f"calls them {first!r} and {second!r}. Change one of them."
            )
    component_of = dict(zip(rows.tolist(), component.tolist(), strict=True))
    for one, two in constraints.cannot.tolist():
        if component_of[one] == component_of[two]:
            raise ValueError(
                f"cannot_link keeps row {one} and row {two} apart, but must_link joins them"
                f"{chain(constraints, one, two)}. Leave one of the two out."
            )
        both = constraints.labels[one], constraints.labels[two]
        if both[0] == both[1] != NOISE:
            raise ValueError(
                f"cannot_link keeps row {one} and row {two} apart, but by partial both are "
                f"{constraints.classes[both[0]]!r}. Change one of the two."
            )


def chain(constraints: Constraints, first: int, last: int) -> str:
    """By way of which other rows must-links join two rows, in words."""
    rows = constraints.linked[0]
    graph = graph_of(np.searchsorted(rows, constraints.must), len(rows))
    start, place = np.searchsorted(rows, [first, last])
    before = breadth_first_order(graph, start, directed=False)[1]
    way: list[str] = []
    while (place := before[place]) != start:
        way.insert(0, str(rows[place]))
    return f" by way of {', '.join(way[:10])}" if way else ""


def graph_of(pairs: np.ndarray, n: int) -> sp.csr_array:
    """(n, n) with a tie for each pair."""
    ones = np.ones(len(pairs))
    return sp.csr_array(sp.coo_array((ones, (pairs[:, 0], pairs[:, 1])), (n, n)))
