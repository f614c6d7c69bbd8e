"""The number of clusters of small data: the answer, its bounds, what is no error and what is one."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from deccs import count_clusters
from deccs.counting import count as module
from deccs.counting.rule import CLEAR
from deccs.counting.words import sentence
from deccs.scores import ari
from tests.helpers.quick_count import quick_counts


@pytest.fixture(scope="module", autouse=True)
def quick():
    with quick_counts():
        yield


def blobs(k, n=30, d=4, seed=0):
    """Far blobs on a circle, in a mixed order."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(k) / k
    centers = np.zeros((k, d))
    centers[:, :2] = 10 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    y = rng.permutation(np.arange(k * n) % k)
    return SimpleNamespace(X=centers[y] + rng.normal(size=(k * n, d)), y=y)


@pytest.fixture(scope="module")
def three():
    return blobs(3)


@pytest.fixture(scope="module")
def count3(three):
    return count_clusters(three.X, random_state=0)


@pytest.fixture(scope="module")
def ranged(three):
    return count_clusters(three.X, "4-6", random_state=0)


def assert_same(first, second):
    """Everything that is said is the same to the bit."""
    assert (first.n_clusters, first.is_clear, first.sources) == (
        second.n_clusters,
        second.is_clear,
        second.sources,
    )
    for one, other in zip(first.candidates, second.candidates, strict=True):
        assert (one.k, one.support, one.reasons) == (other.k, other.support, other.reasons)
    assert list(first.curves) == list(second.curves)
    for name in first.curves:
        assert_array_equal(first.curves[name], second.curves[name])
    for name in ("ks", "partitions", "sample"):
        assert_array_equal(getattr(first, name), getattr(second, name))


# ---- the answer


@pytest.mark.parametrize(("k", "n"), [(2, 40), (3, 30), (5, 25)])
def test_clear_blobs_are_counted(k, n):
    data = blobs(k, n)
    count = count_clusters(data.X, random_state=0)
    assert count.n_clusters == k and count.is_clear
    assert ari(data.y, count.labels(scaled_like(data.X), k)) == 1


def scaled_like(X):
    from deccs.data.scalers import fit_scaler
    from deccs.data.source import source_of

    return fit_scaler(source_of(X), "auto")(X)


def test_candidates_are_ranked_and_the_answer_comes_first(count3):
    assert count3.candidates[0].k == count3.n_clusters == 3
    supports = [candidate.support for candidate in count3.candidates]
    assert supports == sorted(supports, reverse=True) and supports[0] >= CLEAR
    assert sum(count3.curves["support"]) == pytest.approx(1)
    at = dict(zip(count3.ks, count3.curves["support"], strict=True))
    assert all(at[candidate.k] == candidate.support for candidate in count3.candidates)
    assert all(candidate.reasons for candidate in count3.candidates)


def test_what_is_kept_for_each_k(count3, three):
    n_ks = len(count3.ks)
    assert count3.ks[0] == 2 and (np.diff(count3.ks) > 0).all()
    assert all(curve.shape == (n_ks,) for curve in count3.curves.values())
    assert count3.partitions.shape == (n_ks, len(three.X)) and len(count3.sources) == n_ks
    assert_array_equal(count3.sample, np.arange(len(three.X)))
    for k in count3.ks:
        assert_array_equal(np.unique(count3.sample_labels(k)), np.arange(k))
        assert_array_equal(count3.labels(scaled_like(three.X), k), count3.sample_labels(k))
    assert not count3.sample_labels(1).any()
    with pytest.raises(ValueError, match="no clustering with k = 77. Numbers tried: 2, 3, 4,"):
        count3.sample_labels(77)


def test_parents_over_k(count3):
    assert_array_equal(count3.parents(3, 3), [0, 1, 2])
    assert_array_equal(count3.parents(3, 1), [0, 0, 0])
    fine, coarse = count3.sample_labels(6), count3.sample_labels(3)
    slow = [np.bincount(coarse[fine == c]).argmax() for c in range(6)]
    assert_array_equal(count3.parents(6, 3), slow)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_gaussian_is_one_cluster(seed):
    count = count_clusters(np.random.default_rng(seed).normal(size=(110, 4)), random_state=0)
    assert count.n_clusters == count.candidates[0].k == 1 and count.is_clear
    assert any("no deeper" in reason for reason in count.candidates[0].reasons)
    assert 1 not in count.ks and count.candidates[1].k in count.ks
    supports = [candidate.support for candidate in count.candidates[1:]]
    assert supports == sorted(supports, reverse=True)


def test_the_same_seed_gives_the_same_bits(count3, three):
    assert_same(count_clusters(three.X, random_state=0), count3)


# ---- bounds


def test_an_answer_never_leaves_its_range(ranged):
    assert set(ranged.ks) == {4, 5, 6} and ranged.n_clusters in ranged.ks  # 3 would be right
    assert {candidate.k for candidate in ranged.candidates} <= {4, 5, 6}
    assert sum(ranged.curves["support"]) == pytest.approx(1)


def test_nobody_can_tell_whether_a_few_rows_are_one_group():
    count = count_clusters(np.random.default_rng(0).normal(size=(60, 4)), random_state=0)
    assert count.n_clusters > 1 and not count.is_clear


def test_noise_is_split_if_the_range_says_so():
    X = np.random.default_rng(0).normal(size=(110, 3))
    count = count_clusters(X, "3-4", random_state=0)
    assert count.n_clusters in (3, 4)
    assert count_clusters(X, "1-4", random_state=0).n_clusters == 1


def test_a_range_in_python_is_the_same_as_in_words(ranged, three):
    assert_same(count_clusters(three.X, range(4, 7), random_state=0), ranged)


def test_ranges_of_a_single_number(three):
    two = count_clusters(three.X, "2-2", random_state=0)
    assert two.n_clusters == 2 and list(two.ks) == [2] and two.candidates[0].support == 1
    one = count_clusters(three.X, "1-1", random_state=0)
    assert one.n_clusters == 1 and len(one.ks) == 0
    assert sentence(one) == "One cluster: no other number was allowed."


def test_narrow_ranges_between_the_steps_are_tried():
    X = np.random.default_rng(0).normal(size=(100, 2))
    count = count_clusters(X, "23-24", random_state=0)  # steps go from 22 to 25
    assert list(count.ks) == [23, 24] and count.n_clusters in (23, 24)


@pytest.mark.parametrize(
    ("k_range", "message"),
    [
        (
            "20-3",
            "must begin at 1 or more and not end before that, got '20-3'. Did you mean '3-20'",
        ),
        ("0-3", "must begin at 1 or more and not end before that, got '0-3'"),
        (range(5, 5), r"must begin at 1 or more .* got range\(5, 5\)"),
        ("2-91", "ends at 91, above the number of points, n_samples=90. End it at 90 or below"),
        ("x-y", "k_range must be .*'auto' or a range such as '3-20', got 'x-y'"),
        ("3-", "got '3-'"),
        ("-3", "got '-3'"),
        ("three", "got 'three'"),
        (3.5, "got 3.5"),
        (None, "got None"),
        (7, "k_range must be 'auto' or a range such as '3-20', got 7"),
    ],
)
def test_bad_ranges_are_named(three, k_range, message):
    with pytest.raises(ValueError, match=message):
        count_clusters(three.X, k_range)


# ---- little and odd data


@pytest.mark.parametrize(
    ("X", "n_distinct"),
    [
        (np.ones((40, 3)), 1),
        (np.eye(3), 3),
        (np.repeat(np.eye(5), 20, axis=0), 5),
    ],
)
def test_too_few_distinct_rows_are_no_error_and_said(X, n_distinct):
    count = count_clusters(X, random_state=0)
    assert count.n_clusters == 1 and not count.is_clear
    (candidate,) = count.candidates
    assert candidate.reasons == (f"only {n_distinct} distinct rows: too few to tell",)
    assert not count.sample_labels(1).any()
    expected = f"One cluster: only {n_distinct} distinct rows: too few to tell."
    assert sentence(count) == expected  # and nothing of a reference, to which it was not compared


def test_too_few_distinct_rows_keep_to_the_range():
    assert count_clusters(np.eye(3), "2-3", random_state=0).n_clusters == 2


def test_rows_with_copies(three):
    X = np.concatenate([three.X, three.X[:30], three.X[:10]])
    assert count_clusters(X, random_state=0).n_clusters == 3


def test_there_are_no_more_clusters_than_distinct_rows():
    X = np.repeat(np.random.default_rng(0).normal(size=(9, 3)), 20, axis=0)  # 22 would be tried
    count = count_clusters(X, random_state=0)
    assert list(count.ks) == list(range(2, 10)) and count.n_clusters <= 9
    for k in count.ks:
        assert_array_equal(np.unique(count.sample_labels(k)), np.arange(k))


def test_constant_columns_and_fewer_rows_than_columns():
    data = blobs(3, 20)
    flat = np.hstack([data.X, np.full((60, 2), 7.0)])
    assert count_clusters(flat, random_state=0).n_clusters == 3
    wide = blobs(3, 12, d=50)
    wide.X[:, 2:] *= 0.1
    count = count_clusters(wide.X, scale=None, random_state=0)
    assert count.n_clusters == 3


def test_few_rows_are_no_error():
    for n in (8, 9, 12):
        X = np.random.default_rng(n).normal(size=(n, 2))
        count = count_clusters(X, random_state=0)
        assert 1 <= count.n_clusters <= n // 2
        assert np.isfinite(count.curves["support"]).all()


# ---- kinds of input


class ReadOnly:
    """A user's source: three attributes, and nothing of an array."""

    def __init__(self, X):
        self.shape, self.dtype, self.read = X.shape, X.dtype, lambda rows: X[rows]


@pytest.mark.parametrize("kind", ["map", "source"])
def test_other_inputs_give_the_same_bits(kind, count3, three, tmp_path):
    np.save(tmp_path / "X.npy", three.X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r") if kind == "map" else ReadOnly(three.X)
    assert_same(count_clusters(X, random_state=0), count3)


def test_a_data_frame_is_counted_as_an_array(count3, three):
    count = count_clusters(pd.DataFrame(three.X, columns=list("abcd")), random_state=0)
    assert_array_equal(count.partitions, count3.partitions)
    # its columns lie elsewhere in memory, so that sums differ in the last digit
    assert_allclose(count.curves["support"], count3.curves["support"], rtol=1e-6)


def test_sparse_rows_are_those_of_a_dense_array(three):
    X = np.where(np.abs(three.X) > 2, three.X, 0)
    dense, sparse = (count_clusters(rows, "2-4", random_state=0) for rows in (X, sp.csr_array(X)))
    assert dense.n_clusters == sparse.n_clusters
    assert_array_equal(dense.partitions, sparse.partitions)


def test_only_a_sample_is_looked_at(three, monkeypatch):
    monkeypatch.setattr(module, "MOST_COUNTED", 60)
    count = count_clusters(three.X, random_state=0)
    assert len(count.sample) == 60 and (np.diff(count.sample) > 0).all()
    assert count.n_clusters == 3
    labels = count.labels(scaled_like(three.X), 3)  # of all 90 rows
    assert_array_equal(labels[count.sample], count.sample_labels(3))
    assert ari(three.y, labels) == 1
