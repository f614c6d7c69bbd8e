"""What each edit does to labels and probabilities, on numbers worked out by hand, and laws of all of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs.edits.steps import (
    Drop,
    Merge,
    Pin,
    Rename,
    Renumber,
    Split,
    apply,
    are_among,
    descends,
    live_numbers,
    lookup_of,
    n_numbers,
)

LABELS = np.array([0, 1, 2, 2])
Z = np.array([[0.0, 0.0], [1.0, 0.0], [-3.0, 5.0], [3.0, 5.0]])
P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8], [0.1, 0.1, 0.8]])
# The parts of cluster 2 lie left and right of 0: logits are -x and x.
HALVES = Split(2, (2, 3), weight=np.array([[-1.0, 0.0], [1.0, 0.0]]), bias=np.zeros(2))
STEPS = [
    Merge((1, 0)),
    HALVES,
    Pin(2, np.array([[1.0, 0.0]])),
    Drop(2),
    Rename(1, "x"),
    Renumber(np.array([4, 0, 2]), 5),
]


def test_a_split_by_hand():
    labels, sure = HALVES.parts(LABELS, Z)
    assert_array_equal(labels, [0, 1, 2, 3])
    own = 1 / (1 + np.exp(-6))  # of logits 3 and -3
    assert_allclose(sure, [1, 1, own, own])
    after = HALVES.probabilities(P, Z)
    assert_allclose(after[2], [0.0, 0.2, 0.8 * own, 0.8 * (1 - own)])


def test_a_pinned_row_belongs_to_its_cluster_for_sure():
    pin = Pin(0, Z[[3]])
    assert_array_equal(pin.parts(LABELS, Z)[0], [0, 1, 2, 0])
    assert_array_equal(pin.probabilities(P, Z)[3], [1, 0, 0])
    moved = Z + 1e-6
    assert_array_equal(pin.parts(LABELS, moved)[0], LABELS)  # other rows, however near


def test_dropped_rows_have_no_cluster_and_leave_their_probability_to_none():
    assert_array_equal(Drop(2).parts(LABELS, Z)[0], [0, 1, -1, -1])
    assert_allclose(Drop(2).probabilities(P, Z).sum(axis=1), 1 - P[:, 2])


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_rows_of_probabilities_sum_to_one_but_for_dropped_clusters(step):
    after = step.probabilities(P, Z)
    assert after.shape == (4, step.n_numbers(3))
    expected = 1 - P[:, 2] if isinstance(step, Drop) else np.ones(4)
    assert_allclose(after.sum(axis=1), expected)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_a_row_goes_only_where_its_cluster_may_go(step):
    allowed = descends([step], 3)
    after = step.parts(LABELS, Z)[0]
    for before, now in zip(LABELS, after, strict=True):
        assert now == -1 or allowed[before, now] or isinstance(step, Pin)


def test_numbers_are_never_used_again():
    steps = [Merge((0, 1)), HALVES]
    assert n_numbers(steps, 3) == 4
    assert live_numbers(steps, 3) == {0, 2, 3}
    assert_array_equal(lookup_of([Merge((0, 1))], 3), [0, 0, 2, -1])


def test_merging_labels_is_merging_before_they_are_told():
    steps = [Merge((0, 1)), Merge((2, 0))]
    one_by_one = LABELS
    for step in steps:
        one_by_one = step.parts(one_by_one, Z)[0]
    assert_array_equal(apply(steps, LABELS, Z, P).labels, one_by_one)
    assert_array_equal(lookup_of(steps, 3)[LABELS], one_by_one)


def test_order_counts():
    first_merged = apply([Merge((2, 0)), HALVES], LABELS, Z, None).labels
    first_split = apply([HALVES, Merge((2, 0))], LABELS, Z, None).labels
    assert_array_equal(first_merged, [2, 1, 2, 3])  # row 0 is at 0: the first part
    assert_array_equal(first_split, [2, 1, 2, 3])
    at_right = Z + np.array([2.0, 0.0])
    assert apply([Merge((2, 0)), HALVES], LABELS, at_right, None).labels[0] == 3
    assert apply([HALVES, Merge((2, 0))], LABELS, at_right, None).labels[0] == 2


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (Merge((0,)), "at least two different clusters"),
        (Merge((0, 0)), "at least two different clusters"),
        (Merge((0, 7)), "no cluster 7; the clusters are 0 to 2"),
        (Drop(3), "no cluster 3"),
        (Rename(-1, "x"), "no cluster -1"),
    ],
)
def test_an_edit_of_a_cluster_that_is_not_there(step, says):
    with pytest.raises(ValueError, match=says):
        step.check(frozenset({0, 1, 2}))


def test_the_last_cluster_cannot_be_dropped():
    with pytest.raises(ValueError, match="the only one left"):
        Drop(0).check(frozenset({0}))


def test_rows_are_found_among_points_as_by_comparing_all_pairs():
    rng = np.random.default_rng(0)
    rows, points = rng.integers(0, 3, (200, 3)) / 7, rng.integers(0, 3, (5, 3)) / 7
    slow = (np.abs(rows[:, None] - points) < 1e-9).all(axis=2).any(axis=1)
    assert_array_equal(are_among(rows + 1e-12, points), slow)
    assert 0 < slow.sum() < 200
