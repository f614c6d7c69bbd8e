"""Who is right, by numbers worked out by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

from deccs.members.choice import (
    AGREEMENT_WEIGHT,
    NEVER,
    Candidate,
    Judge,
    best_of,
    nmi_of,
    worst_cut,
)
from deccs.members.spanning_tree import gap_of, spanning_tree

# Points in a line: 0 - 1 - 2 - 3 - 4 - 5, each tied to the next one.
LINE = sp.csr_array(np.eye(6, k=1) + np.eye(6, k=-1))
HALVES, THIRDS = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 2, 2])
# Two groups of three, each point tied to both others of its group.
GROUPS = sp.csr_array(np.kron(np.eye(2), 1 - np.eye(3)))
TREE = spanning_tree(np.array([[0.0], [1], [2], [6], [7], [15]]))  # gaps of 4 and of 8


def judge(panel, graph=LINE, wide=LINE, n_clusters=2):
    return Judge(graph, wide, TREE, np.array(panel), n_clusters)


def test_worst_cut_by_hand():
    assert worst_cut(LINE, HALVES) == pytest.approx(1 / 5)  # of 5 ends of ties in each half
    assert worst_cut(LINE, THIRDS) == pytest.approx(2 / 4)  # the middle one is cut on both sides
    assert worst_cut(LINE, np.array([0, 0, 0, 0, 0, 1])) == 1  # a single point loses its only tie
    assert worst_cut(GROUPS, HALVES) == 0


def test_evidence_by_hand():
    crossed = np.array([0, 1, 0, 1, 0, 1])
    both = judge([HALVES, HALVES])
    assert both(HALVES) == pytest.approx(AGREEMENT_WEIGHT - 1 / 5)
    assert both(1 - HALVES) == pytest.approx(AGREEMENT_WEIGHT - 1 / 5)  # names do not count
    nmi = normalized_mutual_info_score(HALVES, crossed)
    assert judge([HALVES, crossed])(HALVES) == pytest.approx(
        AGREEMENT_WEIGHT * (1 + nmi) / 2 - 1 / 5
    )
    assert both(crossed) == pytest.approx(AGREEMENT_WEIGHT * nmi - 1)  # it cuts every tie


def test_gaps_count_more_than_any_agreement():
    crossed = np.array([0, 1, 0, 1, 0, 1])
    found = judge([crossed, crossed], graph=GROUPS, wide=GROUPS)
    nmi = normalized_mutual_info_score(HALVES, crossed)
    assert found(HALVES) == pytest.approx(1 + 4 / 8)  # its gap, as a share of the widest
    assert found(HALVES) > found(crossed)
    narrow = judge([crossed, crossed], graph=GROUPS, wide=LINE)  # no gap in a wider neighborhood
    assert narrow(HALVES) == pytest.approx(AGREEMENT_WEIGHT * nmi)


def test_of_two_partitions_without_a_cut_the_one_with_the_wider_gap_is_taken():
    apart = sp.csr_array(np.zeros((6, 6)) + np.eye(6))  # no ties but of each point with itself
    found = judge([HALVES, HALVES], graph=apart, wide=apart)
    last_alone = np.array([0, 0, 0, 0, 0, 1])
    assert gap_of(TREE, HALVES) == pytest.approx(4 / 8)
    assert gap_of(TREE, last_alone) == 1
    assert found(last_alone) > found(HALVES)


@pytest.mark.parametrize(
    "labels",
    [[0, 0, 0, 0, 0, 0], [0, 0, 0, 2, 2, 2], [0, 0, 1, 1, 2, 2], [0, 0, -1, 1, 1, 1]],
    ids=["one cluster", "a missing number", "one too many", "noise"],
)
def test_what_is_no_partition_into_k_clusters_is_never_taken(labels):
    one = judge([HALVES])
    assert one(np.array(labels)) == NEVER
    worst = one(np.array([0, 1, 0, 1, 0, 1]))
    assert worst > NEVER  # whatever has k clusters is better
    candidates = [one.candidate("none", np.array(labels)), one.candidate("halves", HALVES)]
    assert best_of(candidates).name == "halves"


def test_the_first_of_several_alike_is_taken():
    candidates = [Candidate(name, HALVES, value) for name, value in (("a", 0), ("b", 1), ("c", 1))]
    assert best_of(candidates).name == "b"


def test_nmi_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for n_first, n_second in ((2, 2), (3, 7), (1, 4), (1, 1)):
        first, second = rng.integers(n_first, size=50), rng.integers(n_second, size=50)
        expected = normalized_mutual_info_score(first, second)
        assert nmi_of(first, second) == pytest.approx(expected, abs=1e-12)


def test_nmi_leaves_noise_out():
    noisy = np.array([0, -1, 0, 1, 1, 1])
    assert nmi_of(HALVES, noisy) == nmi_of(noisy, HALVES) == pytest.approx(1)
    assert nmi_of(HALVES, np.full(6, -1)) == 0
    assert judge([noisy])(HALVES) == pytest.approx(AGREEMENT_WEIGHT - 1 / 5)
