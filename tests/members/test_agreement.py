"""NMI between members, the weights it gives, and names for clusters that meet."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import normalized_mutual_info_score

from deccs.members.agreement import average_agreement, member_weights, pairwise_agreement

SAME, RENAMED, CROSSED = [0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]


def random_partitions(n_members=4, n_points=60, seed=0):
    """Labels -1 to 3: noise takes part."""
    return np.random.default_rng(seed).integers(-1, 4, (n_members, n_points))


def test_average_agreement_by_hand():
    assert average_agreement(pairwise_agreement([SAME, RENAMED, CROSSED])) == pytest.approx(
        1 / 3
    )  # pairs: 1, 0, 0


def test_one_member_cannot_agree():
    with pytest.raises(ValueError, match="at least two ensemble members, got 1"):
        average_agreement([[1.0]])


def test_noise_takes_no_part():
    # Of the five points two members have labeled the middle three, alike.
    assert_allclose(pairwise_agreement([[-1, 0, 0, 1, 1], [0, 0, 0, 1, -1]]), np.ones((2, 2)))


def test_members_with_no_common_point_do_not_agree():
    assert_array_equal(pairwise_agreement([[0, 1, -1, -1], [-1, -1, 0, 1]]), np.eye(2))


def test_pairwise_agreement_equals_a_slow_loop():
    partitions = random_partitions()
    matrix = pairwise_agreement(partitions)
    for i, first in enumerate(partitions):
        for j, second in enumerate(partitions):
            pairs = [(a, b) for a, b in zip(first, second, strict=True) if a != -1 and b != -1]
            assert matrix[i, j] == pytest.approx(
                normalized_mutual_info_score(*zip(*pairs, strict=True))
            )


def test_agreement_does_not_see_names():
    partitions = random_partitions()
    renamed = np.where(partitions == -1, -1, 3 - partitions)
    assert_allclose(pairwise_agreement(renamed), pairwise_agreement(partitions))


def test_member_weights_by_hand():
    matrix = [[1, 0.8, 0.4], [0.8, 1, 0], [0.4, 0, 1]]
    assert_allclose(member_weights(matrix), [0.6, 0.4, 0.2])  # the diagonal takes no part


def test_a_member_at_the_floor_or_below_weighs_nothing():
    assert_array_equal(member_weights([[1, 0.25], [0.25, 1]], floor=0.25), [0, 0])
    assert_allclose(member_weights([[1, 0.011], [0.011, 1]]), [0.011, 0.011])
    assert_array_equal(member_weights([[1, 0.009], [0.009, 1]]), [0, 0])


def test_weights_average_to_the_agreement():
    matrix = pairwise_agreement(random_partitions())
    assert member_weights(matrix, floor=-1).mean() == pytest.approx(average_agreement(matrix))
