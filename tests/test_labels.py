"""Cluster labels: numbering, matching, and labels users bring."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import normalized_mutual_info_score

from deccs.labels import align_labels, as_labeling, as_labels, canonical, majority_map

SAME, RENAMED, CROSSED = [0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]


def test_canonical_numbers_by_first_appearance():
    assert_array_equal(canonical(np.array([5, -1, 3, 5, 9])), [0, -1, 1, 0, 2])
    assert_array_equal(canonical(np.array([-1, -1])), [-1, -1])
    assert_array_equal(canonical(np.array([2, 1, 0])), [0, 1, 2])


def test_canonical_does_not_see_names():
    labels = np.random.default_rng(0).integers(0, 5, 50)
    assert_array_equal(canonical((labels * 7 + 3) % 5), canonical(labels))
    assert_array_equal(canonical(canonical(labels)), canonical(labels))


@pytest.mark.parametrize(
    "labels",
    [
        [3, 3, -1, 5],
        np.array([3.0, 3.0, np.nan, 5.0]),
        ["cat", "cat", None, "dog"],
        np.array(["cat", "cat", np.nan, "dog"], dtype=object),
        [3.0, 3.0, None, 5.0],
    ],
    ids=["ints", "floats", "strings", "objects", "none"],
)
def test_labeling_with_gaps(labels):
    assert_array_equal(as_labeling("mine", labels, 4), [0, 0, -1, 1])


def test_labeling_of_a_data_frame_column():
    pd = pytest.importorskip("pandas")
    for column in (
        pd.Series(["cat", "cat", None, "dog"]),
        pd.Series([3, 3, None, 5], dtype="Int64"),
        pd.Categorical(["cat", "cat", None, "dog"]),
    ):
        assert_array_equal(as_labeling("mine", column, 4), [0, 0, -1, 1])


def random_partitions(n_members=4, n_points=60, seed=0):
    """Labels -1 to 3: noise takes part."""
    return np.random.default_rng(seed).integers(-1, 4, (n_members, n_points))


def test_align_labels_by_hand():
    assert_array_equal(align_labels(RENAMED, SAME), SAME)
    assert_array_equal(
        align_labels([1, 1, 0, -1], [0, 0, 1, 1]), [0, 0, 1, -1]
    )  # noise stays noise
    assert_array_equal(
        align_labels([0, 0, 1, 1], [2, 2, 0, 1]), [2, 2, 0, 0]
    )  # fewer than the reference
    assert_array_equal(
        align_labels([0, 1, 1, 2], [0, 0, 0, 0]), [1, 0, 0, 2]
    )  # more: the largest meets it


def test_align_labels_without_labels():
    assert_array_equal(align_labels([-1, -1], [0, 1]), [-1, -1])
    assert_array_equal(align_labels([1, 0], [-1, -1]), [1, 0])  # nothing to match
    assert_array_equal(align_labels(np.array([], dtype=int), np.array([], dtype=int)), [])


def test_align_labels_is_the_best_of_all_renamings():
    rng = np.random.default_rng(1)
    for _ in range(5):
        labels, reference = rng.integers(0, 4, (2, 40))
        best = max((np.array(names)[labels] == reference).sum() for names in permutations(range(4)))
        assert (align_labels(labels, reference) == reference).sum() == best


def test_align_labels_keeps_the_clusters():
    labels, reference = random_partitions(2)
    aligned = align_labels(labels, reference)
    assert normalized_mutual_info_score(aligned, labels) == pytest.approx(1)


def test_majority_map_by_hand():
    # Cluster 0 lies in 2 mostly, cluster 1 in 0 by two to one; cluster 2 has no points.
    labels, reference = np.array([0, 0, 0, 1, 1, 1]), np.array([2, 2, 0, 0, 0, 1])
    assert_array_equal(majority_map(labels, reference, 3), [2, 0, -1])
    assert_array_equal(majority_map(np.array([0, 1]), np.array([0, 1]), 2), [0, 1])
    nothing = np.array([], dtype=int)
    assert_array_equal(majority_map(nothing, nothing, 2), [-1, -1])


def test_equal_numbers_of_different_types_are_one_label():
    assert_array_equal(as_labels(np.array([3, 3.0, None, "3", 4], dtype=object)), [0, 0, -1, 0, 1])
    assert_array_equal(as_labels(np.array([2**64 - 1, 0], dtype=np.uint64)), [0, 1])
    assert_array_equal(as_labels(np.ma.array([1, 2, 3], mask=[0, 1, 0])), [0, -1, 1])
    assert_array_equal(as_labels([1e300, -7.0, -1.0]), [0, 1, -1])


@pytest.mark.parametrize("wrong", [0.5, np.inf, -np.inf, 1j])
def test_what_is_no_label_is_told(wrong):
    for labels in ([0, 1, wrong], np.array([0, None, wrong], dtype=object)):
        with pytest.raises(ValueError, match=r"is no label: labels are whole numbers or names"):
            as_labels(labels)
    with pytest.raises(ValueError, match=r"Member 'mine' .* is no label"):
        as_labeling("mine", [0, 1, wrong], 3)
