"""Evidence for each k: by hand, and laws of the curves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from deccs.counting import evidence as module
from deccs.counting.evidence import (
    N_RESAMPLES,
    Sample,
    best_partitions,
    deepest,
    evidence_for,
    local_gap,
    numbers_to_try,
    of_finer,
    scaled_rows,
)
from deccs.counting.valleys import DEEPEST, Ties
from deccs.data.source import source_of
from deccs.members.agreement import adjusted_rand
from tests.helpers.quick_count import quick_counts

CURVES = ("stability", "agreement", "valley", "split", "gap")
KS = [2, 3, 4, 5, 6]


@pytest.fixture(scope="module", autouse=True)
def quick():
    with quick_counts():
        yield


def sample_of(X, seed=0):
    return Sample(X, X, seed)


@pytest.fixture(scope="module")
def blobs3():
    """Three far blobs of 25 rows, in order."""
    rng = np.random.default_rng(0)
    return np.repeat([[0.0, 0], [9, 0], [0, 9]], 25, axis=0) + rng.normal(size=(75, 2))


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def found(blobs3, told):
    return evidence_for(sample_of(blobs3), KS, lambda *parts: told.append(parts))


# ---- by hand


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [
        (8, [2, 3, 4]),  # n / 2
        (30, list(range(2, 11))),  # 10 at least
        (100, list(range(2, 13))),  # n / 8
        (184, [*range(2, 21), 22, 23]),  # 10 % of 20 more, and the last one
        (4, [2]),
        (2, [2]),
    ],
)
def test_numbers_to_try_by_hand(n_rows, expected):
    assert numbers_to_try(n_rows) == expected


@pytest.mark.parametrize("n_rows", [10, 77, 500, 2_000, 10**6])
def test_numbers_to_try_rise_by_at_most_10_percent_and_end_at_120(n_rows):
    numbers = np.array(numbers_to_try(n_rows))
    steps = np.diff(numbers)
    assert (steps >= 1).all() and (steps <= np.ceil(0.1 * numbers[:-1])).all()
    assert numbers[0] == 2 and numbers[-1] == min(120, n_rows // 2, max(10, n_rows // 8))


def test_numbers_to_try_between_bounds():
    assert numbers_to_try(1_000, 5, 7) == [5, 6, 7]
    assert numbers_to_try(1_000, 1, 2) == [2]  # 1 is judged by other means
    assert numbers_to_try(1_000, high=21)[-2:] == [20, 21]  # the bound itself is tried


def test_a_finer_clustering_has_a_quarter_and_one_more():
    ks = [2, 3, 4, 5, 6, 8, 10]
    curve = np.array(ks, dtype=float)  # so that it tells which k was taken
    # 3.5 -> 4, 4.75 -> 5, 6, 7.25 -> 8, 8.5 -> 9 -> 10 (the next tried), 11 and 13.5 -> the last
    assert_array_equal(of_finer(curve, ks), [4, 5, 6, 8, 10, 10, 10])


def test_the_gap_by_hand():
    gap = local_gap(np.array([1.0, 0.9, 0.8, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1]), [2, 3, 4, 5, 6])
    # around 4, behind 2 to 6, are 0.8, 0.2, 0.1, 0.1, 0.1; around 5, from 3 on, 0.2 and four 0.1
    assert_allclose(gap[[2, 3]], [1.3 / 5 - 0.1, 0.6 / 5 - 0.1], atol=1e-12)


@pytest.mark.parametrize("k", [4, 5, 9, 10])
def test_the_gap_is_widest_where_the_eigenvalues_drop(k):
    values = np.array([1.0] * k + [0.2] * 10)
    gap = local_gap(values, list(range(2, 11)))
    assert gap.argmax() == k - 2  # also at the end of the range
    assert gap[k - 2] == pytest.approx((1 + 1 + 0.2 + 0.2 + 0.2) / 5 - 0.2)


def test_equal_eigenvalues_have_no_gap():
    assert_allclose(local_gap(np.full(30, 0.7), numbers_to_try(160)), 0, atol=1e-12)


def test_numbers_beyond_the_eigenvalues_have_the_last_one():
    ks = [2, 3, 4, 5, 6, 7]
    assert_allclose(local_gap(np.array([1.0, 0.5, 0.25]), ks)[2:], 0, atol=1e-12)


def test_the_deepest_partition_counts_by_its_mean():
    ties = Ties(np.array([[0, 1], [2, 3], [1, 2]]), np.array([3.0, 2.0, 1.0]))
    cut, crossed = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert deepest(ties, [crossed]) == -DEEPEST  # no tie inside
    assert deepest(ties, [crossed, cut]) == 1  # min(3, 2) - 1 on both sides


# ---- agreement of partitions


@pytest.mark.parametrize("seed", range(10))
def test_adjusted_rand_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 6, 50), rng.integers(0, 3, 50)
    second[:20] = first[:20]
    assert adjusted_rand(first, second) == pytest.approx(adjusted_rand_score(first, second))
    assert adjusted_rand(second, first) == pytest.approx(adjusted_rand_score(first, second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0, 0, 0], [0, 0, 0]),  # one cluster each
        ([0, 1, 2], [2, 1, 0]),  # each row by itself
        ([0, 0, 0], [0, 1, 2]),
        ([0, 1, 2, 3], [0, 0, 0, 0]),
        ([0, 3, 3], [1, 5, 5]),  # gaps in the numbers
        ([0, 0, 1, 1], [0, 1, 0, 1]),  # less than chance
        ([0], [0]),
    ],
)
def test_adjusted_rand_at_the_edges_is_scikit_learns(first, second):
    expected = adjusted_rand_score(first, second)
    assert adjusted_rand(np.array(first), np.array(second)) == pytest.approx(expected)


# ---- the curves


def test_curves_have_their_range(found):
    n = len(KS)
    assert all(getattr(found, name).shape == (n,) for name in CURVES)
    for name in ("stability", "agreement"):
        curve = getattr(found, name)
        assert (curve <= 1).all() and (curve >= -0.5).all()
    assert (np.abs(found.valley) <= DEEPEST).all() and (np.abs(found.gap) <= 2).all()
    assert set(found.split) <= set(found.valley)


def test_three_far_blobs_are_stable_and_separated_at_three(found):
    place = KS.index(3)
    assert found.stability[place] == 1 and found.agreement[place] == 1
    assert found.valley[place] > 1.5 and found.split[place] < found.valley[place]
    for name in ("raw kmeans", "manifold ward", "raw spectral"):
        assert_array_equal(found.panel.by(name)[place], np.repeat([0, 1, 2], 25))


def test_the_partition_to_show_for_each_k(found, blobs3):
    partitions, names = best_partitions(sample_of(blobs3), found.panel)
    assert partitions.shape == (len(KS), 75) and len(names) == len(KS)
    assert_array_equal(partitions[KS.index(3)], np.repeat([0, 1, 2], 25))
    for k, labels, name, at in zip(KS, partitions, names, found.panel.at, strict=True):
        assert_array_equal(np.unique(labels), np.arange(k))
        assert_array_equal(labels, at[name])


def test_progress_is_told_in_order_to_the_end(found, told):
    total = N_RESAMPLES + 3
    assert told == [(done, total) for done in range(total + 1)]


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(found, blobs3):
    again = evidence_for(sample_of(blobs3), KS)
    for name in CURVES:
        assert_array_equal(getattr(again, name), getattr(found, name))
    for first, second in zip(again.panel.at, found.panel.at, strict=True):
        assert list(first) == list(second)
        assert all(np.array_equal(first[name], second[name]) for name in first)
    assert Sample(blobs3, blobs3, 1).manifold.tolist() != sample_of(blobs3).manifold.tolist()


def test_a_resample_leaves_out_a_fifth_of_the_rows(found, blobs3, monkeypatch):
    asked = []

    def layout(X, *_, **__):
        asked.append(X)
        return X

    sample = sample_of(blobs3)
    assert len(sample.manifold) == 75  # made before the function is replaced
    monkeypatch.setattr(module, "manifold_embedding", layout)
    for number in (0, 1):
        module.resampled(sample, KS, number)
    assert [len(rows) for rows in asked] == [60, 60]
    assert not np.array_equal(asked[0], asked[1])


def test_members_of_different_kinds_must_agree(found, blobs3, monkeypatch):
    def by_chance(Z, ks):
        return [np.random.default_rng(k).integers(0, k, len(Z)) for k in ks]

    def again():
        return module.found_again(found.panel, module.resampled(sample_of(blobs3), KS, 0))

    stable, agree = again()
    assert agree[KS.index(3)] == 1 and agree[-1] < 1
    monkeypatch.setattr(module, "by_ward", by_chance)
    with_nonsense = again()
    assert with_nonsense[0] == stable  # of k-means with itself
    assert with_nonsense[1][KS.index(3)] == pytest.approx(0.5, abs=0.1)  # the other half is chance


def test_a_sample_of_rows_is_scaled_and_in_order():
    X = np.arange(20.0).reshape(10, 2)
    rows = np.array([1, 4, 9])
    assert_array_equal(scaled_rows(source_of(X), lambda block: 2 * block, rows), 2 * X[rows])
