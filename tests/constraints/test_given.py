"""What may be given beside the rows, and what follows from it."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deccs.constraints.given import Constraints, chain, classes_of, constraints_of
from deccs.labels import NOISE


def test_labels_reach_rows_by_way_of_others():
    given = constraints_of(6, [[0, 1], [1, 2]], partial=[-1, -1, 9, 4, -1, -1])
    assert given.classes == ("4", "9")
    assert_array_equal(given.labels, [1, 1, 1, 0, -1, -1])
    assert_array_equal(given.labeled, [2, 3])  # those that were given, not those that follow


@pytest.mark.parametrize(
    ("values", "numbers", "names"),
    [
        ([10, 9, -1], [1, 0, -1], ("9", "10")),  # numbers in their order, not in that of words
        (["b", None, "a"], [1, -1, 0], ("a", "b")),
        ([2.0, np.nan, 2.0], [0, -1, 0], ("2",)),
        ([-1, -1, -1], [-1, -1, -1], ()),
        (np.array(["10", "9", "-1"], dtype=object), [0, 1, -1], ("10", "9")),
    ],
)
def test_classes_are_in_order(values, numbers, names):
    found, classes = classes_of(values, 3)
    assert_array_equal(found, numbers)
    assert classes == names


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"must_link": [[0, 9]]}, "must_link names row 9, but the rows are numbered from 0 to 4"),
        ({"cannot_link": [[0, -1]]}, "cannot_link names row -1"),
        ({"must_link": [[0, 1], [2, 2]]}, r"must_link\[1\] is a pair of row 2 with itself"),
        ({"must_link": [0, 1]}, r"shape \(n_pairs, 2\); got int64 of shape \(2,\)"),
        ({"must_link": [[0.5, 1]]}, "got float64"),
        ({"partial": [0, 1]}, r"shape \(5,\).*got shape \(2,\)"),
        ({"partial": [0.5, 1, 1, 1, 1]}, "0.5 is no label"),
        (
            {"must_link": [[0, 1], [1, 2]], "cannot_link": [[0, 2]]},
            "keeps row 0 and row 2 apart, but must_link joins them by way of 1",
        ),
        (
            {"must_link": [[0, 1], [1, 4]], "partial": ["a", None, None, None, "b"]},
            "must_link joins row 0 and row 4 by way of 1, but partial calls them 'a' and 'b'",
        ),
        (
            {"cannot_link": [[0, 4]], "partial": [7, -1, -1, -1, 7]},
            "row 0 and row 4 apart, but by partial both are '7'",
        ),
    ],
)
def test_what_cannot_be_is_told_with_rows(given, words):
    with pytest.raises(ValueError, match=words):
        constraints_of(5, **given)


def test_nothing_given_is_nothing():
    nothing = constraints_of(3, must_link=[], cannot_link=None, partial=[-1, -1, -1])
    assert not nothing.any
    assert not nothing.within(np.array([0, 2])).any


def test_of_a_sample_remains_what_follows_by_way_of_rows_outside():
    given = constraints_of(
        8, must_link=[[0, 5], [5, 2], [6, 7]], cannot_link=[[5, 3], [6, 1]], partial=[-1] * 7 + [3]
    )
    inside = given.within(np.array([0, 2, 3, 6]))
    assert_array_equal(inside.must, [[0, 1]])  # 0 and 2, joined by 5
    assert_array_equal(inside.cannot, [[0, 2]])  # 5 is where 0 is; row 1 is outside
    assert_array_equal(inside.labels, [-1, -1, -1, 0])  # 6 is where 7 is


def follows(given, rows):
    """All that constraints say of pairs of rows, by a slow closure over must-links."""
    group = {row: {row} for row in range(given.n_rows)}
    for one, two in given.must.tolist():
        joined = group[one] | group[two]
        for row in joined:
            group[row] = joined
    together = {(a, b) for a in rows for b in group[a] if b in rows and a < b}
    apart = {
        tuple(sorted((a, b)))
        for one, two in given.cannot.tolist()
        for a in group[one]
        for b in group[two]
        if a in rows and b in rows
    }
    return together, apart


def test_a_sample_implies_what_the_whole_implies():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=40)
    pairs = rng.integers(40, size=(60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    given = constraints_of(40, pairs[same], pairs[~same])
    index = np.sort(rng.permutation(40)[:25])
    local = given.within(index)
    found = follows(local, set(range(25)))
    expected = follows(given, set(index.tolist()))
    place = {row: place for place, row in enumerate(index.tolist())}
    assert found == tuple({(place[a], place[b]) for a, b in each} for each in expected)


def test_the_digest_tells_constraints_apart():
    some = {"must_link": [[0, 1]], "partial": ["a", None, "b"]}
    one = constraints_of(3, **some).digest
    assert one == constraints_of(3, **some).digest
    for change in (
        {"must_link": [[0, 2]]},
        {"partial": ["a", None, "c"]},
        {"cannot_link": [[0, 2]]},
    ):
        other = some | change
        if change == {"must_link": [[0, 2]]}:
            other = {"must_link": [[0, 1]], "partial": [None, "a", "b"]}
        assert constraints_of(3, **other).digest != one


def test_the_way_between_two_rows():
    given = Constraints(
        np.array([[3, 8], [8, 5], [5, 1]]), np.zeros((0, 2), int), np.full(9, NOISE)
    )
    assert chain(given, 3, 1) == " by way of 8, 5"
    assert chain(given, 8, 5) == ""
