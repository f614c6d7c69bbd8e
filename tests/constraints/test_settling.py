"""Partitions with constraints built in, and what constraints say of partitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from deccs.constraints.evidence import HALF, STRENGTH, Outcomes, outcomes
from deccs.constraints.given import constraints_of
from deccs.constraints.settling import (
    KEPT,
    folds,
    normalized_ties,
    repair,
    settle,
    settled,
    spread,
)
from deccs.constraints.violations import violations_of
from deccs.members.neighbors import neighbor_graph


@pytest.fixture(scope="module")
def line():
    """Two groups of ten rows on a line, with a gap between them."""
    X = np.concatenate([np.arange(10), np.arange(20, 30)]).astype(float)[:, None]
    return normalized_ties(neighbor_graph(X, 4))


def test_spreading_is_the_limit_of_its_steps(line):
    first = np.zeros((20, 2))
    first[3, 0] = first[15, 1] = 1
    exact = (1 - KEPT) * np.linalg.solve(np.eye(20) - KEPT * line.toarray(), first)
    assert_allclose(spread(line, first), exact, atol=0.02 * exact.max())


def test_ties_are_normalized_by_hand():
    path = sp.csr_array(np.array([[5.0, 1, 0], [1, 5, 1], [0, 1, 5]]))
    half = 1 / np.sqrt(2)
    assert_allclose(normalized_ties(path).toarray(), [[0, half, 0], [half, 0, half], [0, half, 0]])


def test_neighbors_follow_a_label_that_speaks_against_the_partition(line):
    wrong = np.repeat([0, 1, 0, 1], 5)  # cuts both groups
    given = constraints_of(20, partial=[0] + 18 * [-1] + [1])
    found = settle(wrong, 2, line, given, prior=0.001)
    assert_array_equal(found, np.repeat([0, 1], 10))
    kept = settle(wrong, 2, line, given, prior=1000.0)  # a heavy partition: neighbors stay
    assert (kept != wrong).sum() <= 2


def test_without_constraints_on_a_part_the_partition_stays(line):
    right = np.repeat([1, 0], 10)
    given = constraints_of(20, must_link=[[0, 4]], cannot_link=[[2, 15]])
    assert_array_equal(settle(right, 2, line, given, prior=0.03), right)


def test_repair_by_hand():
    # Row 0 is sure of cluster 0; 1 leans to 0, but must not be with 0; 2 and 3 are joined, and 3 is surer.
    opinions = np.array([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.1, 0.9], [0.3, 0.7]])
    given = constraints_of(5, must_link=[[2, 3]], cannot_link=[[0, 1]])
    assert_array_equal(repair(opinions, given), [0, 1, 1, 1, 1])


def test_repair_leaves_nothing_violated_where_pairs_are_few():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=200)
    opinions = np.eye(4)[truth] + rng.uniform(0, 2, size=(200, 4))
    pairs = rng.permutation(200)[:80].reshape(-1, 2)
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    given = constraints_of(200, pairs[same], pairs[~same])
    before, after = (
        violations_of(given, each) for each in (opinions.argmax(1), repair(opinions, given))
    )
    assert before.any and not after.any


def test_labels_and_clusters_are_matched():
    given = constraints_of(4, partial=[0, 0, 1, -1], must_link=[[0, 3]], cannot_link=[[2, 3]])
    found = outcomes(given, np.array([1, 1, 0, 0]))
    assert_array_equal(found.labels, [True, True, True])  # numbers of clusters do not count
    assert_array_equal(found.must, [False])
    assert_array_equal(found.cannot, [False])


def test_evidence_by_hand():
    half, none = np.array([True, False] * HALF), np.zeros(0, dtype=bool)
    assert Outcomes(half, none, none).evidence == pytest.approx(STRENGTH * 2 / 3 * 0.5)
    assert Outcomes(none, none, none).evidence == 0


def test_every_constraint_is_kept_back_once():
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(60) < 0.5, rng.integers(3, size=60), -1)
    given = constraints_of(
        60, cannot_link=[[0, 1]] if labels[0] != labels[1] else None, partial=labels
    )
    held = []
    for known, held_out in folds(given, seed=0):
        assert not set(known.labeled) & set(held_out.labeled)
        assert len(known.labeled) + len(held_out.labeled) == len(given.labeled)
        held.extend(held_out.labeled)
    assert sorted(held) == given.labeled.tolist()


def test_what_a_settled_partition_is_worth_is_not_what_it_was_told(line):
    """Labels by chance are all satisfied by the result, and not by results that have not seen them."""
    rng = np.random.default_rng(0)
    by_chance = constraints_of(20, partial=rng.integers(2, size=20))
    found = settled(np.repeat([0, 1], 10), 2, line, by_chance, 0.03, seed=0)
    assert_array_equal(found.labels, by_chance.partial)
    assert found.outcomes.labels.mean() < 0.8
    true = constraints_of(20, partial=np.repeat([0, 1], 10))
    assert settled(np.repeat([1, 0], 10), 2, line, true, 0.03, seed=0).outcomes.labels.all()


def test_violations_in_words():
    given = constraints_of(5, must_link=[[0, 1], [2, 3]], partial=["a", None, None, None, "b"])
    found = violations_of(given, np.array([0, 1, 1, 1, 0]))
    assert found.counts == {"must_link": 1, "cannot_link": 0, "partial": 1}
    assert found.sentence == (
        "1 of 2 labels of partial are violated (rows 4); 1 of 2 must-links are violated (pairs 0-1)"
    )
    assert not violations_of(given, np.array([0, 0, 1, 1, 1])).any
