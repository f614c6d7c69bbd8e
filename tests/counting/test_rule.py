"""From evidence to support, ranks and reasons."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs.counting.rule import (
    MOST_CANDIDATES,
    WEIGHTS,
    candidates_of,
    in_degrees,
    reasons_for,
    support_of,
    support_with,
    terms_of,
)


def evidence_of(ks, **curves):
    """Flat curves, but for those given."""
    flat = dict.fromkeys(("stability", "agreement", "valley", "split", "gap"), np.zeros(len(ks)))
    given = {name: np.array(curve, dtype=float) for name, curve in curves.items()}
    return SimpleNamespace(ks=np.array(ks), **(flat | given))


def random_evidence(seed, n=20):
    rng = np.random.default_rng(seed)
    names = ("stability", "agreement", "valley", "split", "gap")
    return evidence_of(np.arange(2, n + 2), **{name: rng.uniform(-1, 1, n) for name in names})


def test_terms_by_hand():
    terms = terms_of(evidence_of([2, 4], stability=[0.9, 0.5], valley=[1, 2], split=[-1, 0.5]))
    assert set(terms) == set(WEIGHTS)
    assert_allclose(terms["few"], [-np.log(2), -np.log(4)])
    assert_array_equal(terms["valley"], [2, 1.5])  # 1 - -1, 2 - 0.5
    assert_array_equal(terms["stability"], [0.9, 0.5])


def test_support_by_hand():
    terms = {"a": np.array([0.0, np.log(2), np.log(3)]), "b": np.array([np.log(2), 0, 0])}
    everything = np.array([True, True, True])
    assert_allclose(support_with({"a": 1, "b": 0}, terms, everything), [1 / 6, 2 / 6, 3 / 6])
    assert_allclose(support_with({"a": 1, "b": 1}, terms, everything), [2 / 7, 2 / 7, 3 / 7])
    assert_allclose(
        support_with({"a": 2, "b": 0}, terms, np.array([True, True, False])), [0.2, 0.8, 0]
    )


@pytest.mark.parametrize("seed", range(5))
def test_support_adds_up_to_1_over_what_is_allowed(seed):
    terms = terms_of(random_evidence(seed))
    allowed = np.random.default_rng(seed).uniform(size=20) < 0.4
    allowed[3] = True
    everywhere = support_of(terms, np.ones(20, dtype=bool))
    support = support_of(terms, allowed)
    assert support.sum() == pytest.approx(1) and (support >= 0).all()
    assert (support[~allowed] == 0).all()
    # leaving numbers out does not change how the others compare
    assert_allclose(support[allowed], everywhere[allowed] / everywhere[allowed].sum())


def test_huge_evidence_does_not_overflow():
    support = support_with({"a": 1e6}, {"a": np.array([1.0, 2.0])}, np.array([True, True]))
    assert_array_equal(support, [0, 1])


@pytest.mark.parametrize("name", ["stability", "agreement", "valley", "gap"])
def test_more_evidence_is_more_support_and_a_split_is_less(name):
    even = np.array([True, True])
    rising = support_of(terms_of(evidence_of([5, 6], **{name: [0, 0.5]})), even)
    flat = support_of(terms_of(evidence_of([5, 6])), even)
    assert rising[1] > flat[1]
    assert flat[0] > flat[1]  # all else equal, fewer
    split = support_of(terms_of(evidence_of([5, 6], split=[0.5, 0])), even)
    assert split[0] < flat[0]


def test_candidates_are_ranked_and_few():
    evidence = random_evidence(0)
    support = support_of(terms_of(evidence), np.ones(20, dtype=bool))
    candidates = candidates_of(evidence, support)
    assert len(candidates) == MOST_CANDIDATES
    by_rank = [candidate.support for candidate in candidates]
    assert by_rank == sorted(support, reverse=True)[:MOST_CANDIDATES]
    assert all(candidate.support == support[candidate.k - 2] for candidate in candidates)


def test_what_is_not_allowed_is_no_candidate_and_of_equals_the_fewest_come_first():
    evidence = evidence_of([2, 3, 4])
    candidates = candidates_of(evidence, np.array([0.0, 0.5, 0.5]))
    assert [candidate.k for candidate in candidates] == [3, 4]


@pytest.mark.parametrize(
    ("stability", "words"),
    [
        (1.0, "very stable"),
        (0.9, "very stable"),
        (0.89, "fairly stable"),
        (0.7, "fairly stable"),
        (0.69, "unstable"),
        (-0.1, "unstable"),
    ],
)
def test_stability_in_words(stability, words):
    assert in_degrees(stability) == words


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        (
            {"stability": [0.95], "agreement": [0.7], "valley": [1.234], "split": [-0.2]},
            (
                "very stable under resampling (0.95)",
                "members agree (0.70)",
                "valleys between clusters (1.23)",
                "finer clusters have none",
            ),
        ),
        (
            {"stability": [0.8], "agreement": [0.4], "valley": [0.5], "split": [0.25]},
            (
                "fairly stable under resampling (0.80)",
                "members partly agree (0.40)",
                "valleys between clusters (0.50)",
                "finer clusters have valleys, too (0.25)",
            ),
        ),
        (
            {"stability": [0.3], "agreement": [0.1], "valley": [-1], "split": [-2]},
            (
                "unstable under resampling (0.30)",
                "members disagree (0.10)",
                "no valleys between clusters (-1.00)",
            ),
        ),
    ],
)
def test_reasons_in_words(curves, expected):
    assert reasons_for(evidence_of([3], **curves), 0) == expected
