"""How near an answer is to the true number of clusters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

FIRST = 3  # candidates that a user would look at


def is_truth(k: int, truth: int) -> bool:
    """Whether it is the truth; beyond 20, where rules leave numbers out, within 5 % of it.

    >>> is_truth(20, 20), is_truth(19, 20), is_truth(96, 100), is_truth(94, 100)
    (True, False, True, False)
    """
    return k == truth or (truth > 20 and 20 * abs(k - truth) <= truth)


def is_within_1(k: int, truth: int) -> bool:
    """Whether at most one beside the truth.

    >>> is_within_1(3, 4), is_within_1(6, 4), is_within_1(96, 100)
    (True, False, True)
    """
    return abs(k - truth) <= 1 or is_truth(k, truth)


def is_right(k: int, truth: int) -> bool:
    """The main measure: within 1 of the truth, or within 20 % of a truth above 10.

    >>> is_right(5, 4), is_right(6, 4), is_right(8, 10), is_right(12, 15), is_right(11, 15)
    (True, False, False, True, False)
    """
    return is_within_1(k, truth) or (truth > 10 and 5 * abs(k - truth) <= truth)


def is_near(k: int, truth: int) -> bool:
    """Within 2 of the truth, or within 20 % of it.

    >>> is_near(6, 4), is_near(7, 4), is_near(12, 15)
    (True, False, True)
    """
    return abs(k - truth) <= 2 or 5 * abs(k - truth) <= truth


def octaves(k: int, truth: int) -> float:
    """How often one must be doubled to get the other.

    >>> octaves(2, 8), octaves(8, 4), octaves(3, 3)
    (2.0, 1.0, 0.0)
    """
    return abs(math.log2(k / truth))


def rank(candidates: Sequence[int], truth: int, counts: Callable[[int, int], bool]) -> int | None:
    """The place of the first candidate that counts, 1 for the best; None if there is none.

    >>> rank([2, 5, 4], 4, is_truth), rank([2, 5, 4], 4, is_right), rank([2], 4, is_truth)
    (3, 2, None)
    """
    places = (place for place, k in enumerate(candidates, 1) if counts(k, truth))
    return next(places, None)


def among_first(place: int | None) -> bool:
    """Whether a rank is among the first three.

    >>> among_first(3), among_first(4), among_first(None)
    (True, False, False)
    """
    return place is not None and place <= FIRST
