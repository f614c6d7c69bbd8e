"""Which constraints a result violates, and how users are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from deccs.storage import stored, wholes

if TYPE_CHECKING:  # a fitted model answers without it
    from deccs.constraints.given import Constraints

MOST_SHOWN = 3  # examples of each kind in a message


class ConstraintWarning(UserWarning):
    """The result of a fit violates constraints that were given."""


@stored
@dataclass(frozen=True, eq=False)
class Violations:
    """What the labels of a fit violate, and how much was asked for."""

    must_link: Annotated[np.ndarray, wholes(None, 2, least=0)]  # pairs in different clusters
    cannot_link: Annotated[np.ndarray, wholes(None, 2, least=0)]  # pairs in one cluster
    partial: Annotated[np.ndarray, wholes(None, least=0)]  # rows in the cluster of another class
    n_must_link: int  # that were given
    n_cannot_link: int
    n_partial: int

    @property
    def counts(self) -> dict[str, int]:
        """How many are violated, by kind."""
        return {name: len(getattr(self, name)) for name in ("must_link", "cannot_link", "partial")}

    @property
    def any(self) -> bool:
        return any(self.counts.values())

    @property
    def sentence(self) -> str:
        """All kinds that were given, in words, with the first examples."""
        parts = []
        kinds = (
            ("partial", "labels of partial are"),
            ("must_link", "must-links are"),
            ("cannot_link", "cannot-links are"),
        )
        for name, words in kinds:
            n_given, broken = getattr(self, f"n_{name}"), getattr(self, name)
            if n_given:
                shown = ", ".join(in_words(row) for row in broken[:MOST_SHOWN])
                more = ", ..." if len(broken) > MOST_SHOWN else ""
                what = "rows" if name == "partial" else "pairs"
                examples = f" ({what} {shown}{more})" if len(broken) else ""
                parts.append(f"{len(broken):,} of {n_given:,} {words} violated{examples}")
        return "; ".join(parts)


def in_words(rows: np.ndarray) -> str:
    """
    A row number or a pair of them.

    >>> in_words(np.array([3, 7])), in_words(np.int64(5))
    ('3-7', '5')
    """
    return "-".join(map(str, np.atleast_1d(rows).tolist()))


def violations_of(constraints: Constraints, labels: np.ndarray) -> Violations:
    """What labels (n_rows,) violate; cluster j is to be that of class j.

    >>> from deccs.constraints.given import Constraints
    >>> given = Constraints(np.array([[0, 1]]), np.array([[1, 2]]), np.array([0, -1, 1]), ("a", "b"))
    >>> violations_of(given, np.array([0, 1, 1])).sentence  # doctest: +NORMALIZE_WHITESPACE
    '0 of 2 labels of partial are violated; 1 of 1 must-links are violated (pairs 0-1);
    1 of 1 cannot-links are violated (pairs 1-2)'
    """
    must, cannot, labeled = constraints.must, constraints.cannot, constraints.labeled
    return Violations(
        must_link=must[labels[must[:, 0]] != labels[must[:, 1]]],
        cannot_link=cannot[labels[cannot[:, 0]] == labels[cannot[:, 1]]],
        partial=labeled[labels[labeled] != constraints.partial[labeled]],
        n_must_link=len(must),
        n_cannot_link=len(cannot),
        n_partial=len(labeled),
    )
