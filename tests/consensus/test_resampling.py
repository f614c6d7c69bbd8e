"""Consensus clustering by resampling: numbers by hand, laws, a dense reference, resume, every kind of member."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib import pyplot
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import hypergeom
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import deccs
from deccs.consensus import FUNCTIONS, ConsensusMatrix
from deccs.consensus.resamples import (
    NOT_DRAWN,
    ResampleError,
    cuts,
    draw_resample,
)
from deccs.consensus.resampling import (
    all_pairs,
    average_linkage,
    cdf_error,
    consensus_block,
    number_found,
    pair_counts,
    random_pairs,
)
from deccs.counting.panel import by_ward
from deccs.data.source import source_of
from deccs.members.agglomerative import Agglomerative, ward
from deccs.members.default import MEMBERS
from deccs.members.genie import Genie
from deccs.scores import ari
from deccs.storage import load

GRID = np.linspace(0, 1, 201)
KS = range(2, 6)


def quick(n_clusters=KS, **changes):
    settings = {"member": KMeans(n_init=1), "n_resamples": 10, "random_state": 0}
    return ConsensusMatrix(n_clusters, **settings | changes)


@pytest.fixture(scope="module")
def touching():
    """500 rows of five clusters that touch, so that the number of clusters is not obvious."""
    return make_blobs(500, n_features=3, centers=5, cluster_std=2.0, random_state=3)[0]


@pytest.fixture(scope="module")
def fitted(touching):
    return quick(range(2, 9), n_resamples=20).fit(touching)


def dense_reference(partitions):
    """(n, n) consensus matrix by Monti's definition, one pair after the other; NaN without an index."""
    n = partitions.shape[1]
    result = np.full((n, n), np.nan)
    for i in range(n):
        for j in range(n):
            both = (partitions[:, i] != NOT_DRAWN) & (partitions[:, j] != NOT_DRAWN)
            same = (partitions[:, i] == partitions[:, j]) & (partitions[:, i] >= 0)
            if both.any():
                result[i, j] = (same & both).sum() / both.sum()
    return result


def connectivity_reference(partitions):
    """The same from Monti's matrices of connectivity and indicators, (n, n) each."""
    n = partitions.shape[1]
    connectivity, indicators = np.zeros((n, n)), np.zeros((n, n))
    for labels in partitions:
        drawn = (labels != NOT_DRAWN).astype(float)
        indicators += drawn[:, None] * drawn
        for cluster in set(labels[labels >= 0]):
            inside = (labels == cluster).astype(float)
            connectivity += inside[:, None] * inside
    with np.errstate(invalid="ignore"):
        return connectivity / indicators


def cdf_of(matrix, grid=GRID):
    values = matrix[np.triu_indices(len(matrix), 1)]
    values = values[~np.isnan(values)]
    return np.array([(values <= value).mean() for value in grid])


def random_partitions(n_resamples=7, n=23, k=3, seed=0):
    """Labels with noise and rows that are not drawn."""
    return np.random.default_rng(seed).integers(-2, k, size=(n_resamples, n))


# Numbers by hand


class Fixed(ClusterMixin, BaseEstimator):
    """Knows the labels of four points on a line; the second resample puts 1 to the right."""

    calls = 0

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit_predict(self, X):
        type(self).calls += 1
        order = np.argsort(np.argsort(X[:, 0]))
        return (order >= (2 if type(self).calls % 2 else 1)).astype(int)


def test_everything_by_hand():
    Fixed.calls = 0
    X = np.array([[0.0], [1], [2], [3]])
    model = quick(2, member=Fixed(), n_resamples=4, row_share=1.0).fit(X)
    # 0 0 1 1 twice and 0 1 1 1 twice: the pairs 01, 12 and 13 have 1/2, 23 has 1, 02 and 03 have 0
    expected = [[1, 0.5, 0, 0], [0.5, 1, 0.5, 0.5], [0, 0.5, 1, 1], [0, 0.5, 1, 1]]
    assert_array_equal(model.matrix(2), expected)
    assert_array_equal(model.cdf(2, [0, 0.4, 0.5, 0.9, 1]), [2 / 6, 2 / 6, 5 / 6, 5 / 6, 1])
    assert model.area_ == pytest.approx([1 - 2.5 / 6])
    assert model.delta_area_ == pytest.approx(model.area_)
    assert model.pac_ == pytest.approx([3 / 6])
    # 2 and 3 merge first; then 0-1 and 1-{2, 3} are both at 1/2, and 0-{2, 3} at 0
    labels = model.labels_at(2)
    assert labels[2] == labels[3] and labels[0] != labels[3]
    assert model.item_consensus(2)[0, labels[3]] == pytest.approx(0.5 / 3 if labels[1] else 0)
    assert model.cluster_consensus(2).max() <= 1


def test_item_and_cluster_consensus_by_hand():
    Fixed.calls = 0
    model = quick(2, member=Fixed(), n_resamples=4, row_share=1.0).fit(np.arange(4.0)[:, None])
    model._known_labels = {(2, "eac"): np.array([0, 0, 1, 1])}
    items = model.item_consensus(2)
    assert_allclose(items, [[0.5, 0], [0.5, 0.5], [0.25, 1], [0.25, 1]])
    assert_allclose(model.cluster_consensus(2), [0.5, 1])
    model._known_labels = {(2, "eac"): np.array([0, 1, 1, 1])}
    assert np.isnan(model.item_consensus(2)[0, 0])  # a cluster of one row
    assert_allclose(model.cluster_consensus(2), [np.nan, 2 / 3])


def test_noise_is_drawn_and_never_together():
    partitions = np.array([[-1, -1, 0], [0, 0, 0], [0, NOT_DRAWN, -1]])
    together, both = pair_counts(partitions, all_pairs(3))
    assert_array_equal(together, [1, 1, 1])
    assert_array_equal(both, [2, 3, 2])


def test_the_bound_of_a_million_pairs():
    assert cdf_error(1_000_000) < 0.0014
    assert cdf_error(1_000_000, certainty=0.99) > cdf_error(1_000_000)


def test_the_number_found_is_the_most_frequent_the_smaller_of_equals():
    assert number_found(np.array([[0, 1, 2], [0, 1, 1]])) == 2
    with pytest.raises(ValueError, match="found no cluster in any resample"):
        number_found(np.array([[-1, -1], [-2, -1]]))


# Beside slow references


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_a_dense_matrix(seed):
    partitions = random_partitions(seed=seed)
    reference = dense_reference(partitions)
    assert_allclose(connectivity_reference(partitions)[~np.eye(23, dtype=bool)],
                    reference[~np.eye(23, dtype=bool)])  # fmt: skip
    together, both = pair_counts(partitions, all_pairs(23))
    with np.errstate(invalid="ignore"):
        assert_allclose(together / both, reference[np.triu_indices(23, 1)])
    assert_allclose(consensus_block(partitions, np.arange(23), np.arange(23)), reference, rtol=1e-6)
    assert_allclose(
        consensus_block(partitions, slice(3, 5), np.array([9, 1])),
        reference[3:5, [9, 1]],
        rtol=1e-6,
    )


def test_many_clusters_are_counted_in_several_products():
    partitions = random_partitions(n_resamples=9, n=60, k=300)
    reference = connectivity_reference(partitions)
    assert_allclose(consensus_block(partitions, np.arange(60), np.arange(60)), reference, rtol=1e-6)


def test_500_rows_have_the_cdf_and_the_order_of_pac_of_the_dense_matrix(fitted):
    pac = []
    for k, partitions in zip(fitted.k_range_, fitted.partitions_, strict=True):
        reference = connectivity_reference(partitions)
        assert_array_equal(fitted.cdf(k, GRID), cdf_of(reference))
        low, high = cdf_of(reference, [0.1, 0.9])
        pac.append(high - low)
        upper = reference[np.triu_indices(500, 1)]
        assert fitted.area_[k - 2] == pytest.approx(1 - upper.mean())
    assert fitted.cdf_error_ == 0
    assert_allclose(fitted.pac_, pac)
    assert_array_equal(np.argsort(fitted.pac_), np.argsort(pac))


def test_random_pairs_stay_within_the_bound(fitted, touching):
    sampled = quick(range(2, 9), n_resamples=20, n_pairs=20_000).fit(touching)
    assert_array_equal(sampled.partitions_, fitted.partitions_)
    assert sampled.cdf_error_ == cdf_error(20_000)
    differences = [
        np.abs(sampled.cdf(k, GRID) - fitted.cdf(k, GRID)).max() for k in fitted.k_range_
    ]
    assert 0 < max(differences) < sampled.cdf_error_


def test_average_linkage_is_that_of_scipy(fitted):
    consensus = fitted.matrix(5)
    tree = linkage(squareform(1 - consensus, checks=False), "average")
    for k in (2, 5, 7):
        assert ari(average_linkage(consensus, k), fcluster(tree, k, "maxclust")) == 1


def test_eac_is_the_function_of_that_name(fitted):
    partitions = np.maximum(fitted.partitions_[3].astype(int), -1)
    assert ari(fitted.labels_at(5), FUNCTIONS["eac"](partitions, 5)) == 1


@pytest.mark.parametrize("clusterer", [
    Genie(), Agglomerative(), Agglomerative(linkage="ward"), Agglomerative(linkage="average"),
    AgglomerativeClustering(linkage="complete"), AgglomerativeClustering(),
], ids=str)  # fmt: skip
def test_one_tree_gives_the_labels_of_every_k(clusterer, touching):
    X = touching[:120]
    for k, labels in zip(KS, cuts(clusterer, X, list(KS)), strict=True):
        alone = clone(clusterer).set_params(n_clusters=k).fit_predict(X)
        assert ari(labels, alone) == 1


def test_wards_tree_continues_from_any_level(touching):
    for k, labels in zip((7, 3, 2), by_ward(touching[:80], (7, 3, 2)), strict=True):
        assert_array_equal(labels, ward(touching[:80], k))
    assert cuts(KMeans(), touching, [2]) is None


# Laws


def test_equal_resamples_have_indices_0_and_1_only(touching):
    model = quick(4, member=KMeans(random_state=0), row_share=1.0, n_resamples=3).fit(touching)
    assert set(np.unique(model.matrix(4))) == {0.0, 1.0}
    assert model.pac_ == 0 and model.cdf(4, [0, 0.99])[0] == model.cdf(4, [0.99])[0]
    found = KMeans(4, random_state=0).fit_predict(
        (model.scaler_(touching) - model._Z.mean(0)) / np.sqrt(model._Z.var(0).mean())
    )
    assert ari(model.labels_, found) == 1
    assert_allclose(model.cluster_consensus(4), 1)


def test_the_matrix_is_symmetric_with_ones_on_its_diagonal(fitted):
    consensus = fitted.matrix(4, rows=[3, 400, 7])
    assert_array_equal(consensus, consensus.T)
    assert_array_equal(np.diag(consensus), 1)
    assert_array_equal(fitted.matrix(4)[np.ix_([3, 400, 7], [3, 400, 7])], consensus)


def test_the_cdf_rises_from_0_to_1(fitted):
    for k in fitted.k_range_:
        curve = fitted.cdf(k)
        assert (np.diff(curve) >= 0).all() and curve[-1] == 1 and fitted.cdf(k, [-0.1]) == 0


class Halves(ClusterMixin, BaseEstimator):
    """Splits at the middle of the data: no chance, and no order of the rows."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit_predict(self, X):
        return (X[:, 0] > np.median(X[:, 0])).astype(int)


def test_the_order_of_the_rows_changes_nothing_of_the_counts():
    partitions = random_partitions(n=40)
    order = np.random.default_rng(1).permutation(40)
    one = consensus_block(partitions, np.arange(40), np.arange(40))
    other = consensus_block(partitions[:, order], np.arange(40), np.arange(40))
    assert_array_equal(one[np.ix_(order, order)], other)


def test_permuted_rows_give_permuted_labels_if_all_rows_are_drawn(touching):
    order = np.random.default_rng(1).permutation(500)
    one, other = (
        quick(2, member=Halves(), row_share=1.0).fit(X) for X in (touching, touching[order])
    )
    assert ari(one.labels_[order], other.labels_) == 1
    assert_array_equal(one.cdf(2), other.cdf(2))


# Drawing


def test_a_resample_draws_the_share_exactly_where_all_rows_are_tracked():
    draw = draw_resample(100, 10, np.arange(100), (0.8, 0.3), sample_size=30, seed=1)
    assert (len(draw.drawn), len(draw.fitted), len(draw.others), len(draw.columns)) == (
        80,
        30,
        0,
        3,
    )
    assert np.isin(draw.fitted, draw.drawn).all() and len(np.unique(draw.drawn)) == 80


def test_tracked_rows_are_drawn_as_often_as_if_all_rows_were_drawn_one_by_one():
    tracked = np.sort(np.random.default_rng(0).choice(1_000, 60, replace=False))
    draws = [draw_resample(1_000, 1, tracked, (0.7, 1.0), 50, seed) for seed in range(2_000)]
    counts = np.bincount(np.concatenate([draw.drawn for draw in draws]), minlength=60)
    assert_allclose(counts / 2_000, 0.7, atol=5 * np.sqrt(0.7 * 0.3 / 2_000))
    sizes = np.array([len(draw.drawn) for draw in draws])
    expected = hypergeom(1_000, 60, 700)  # not binomial: the number of rows is fixed
    assert sizes.mean() == pytest.approx(expected.mean(), abs=0.3)
    assert sizes.std() == pytest.approx(expected.std(), rel=0.1)
    # All rows are as likely to be fitted, tracked or not.
    rows = np.concatenate([np.concatenate([tracked[d.fitted], d.others]) for d in draws])
    assert len(rows) == 2_000 * 50
    often = np.bincount(rows, minlength=1_000) / 2_000
    assert np.abs(often - 0.05).max() < 5.5 * np.sqrt(0.05 * 0.95 / 2_000)
    assert often[tracked].mean() == pytest.approx(0.05, abs=0.003)


def test_pairs_are_drawn_evenly():
    first, second = random_pairs(4, 60_000, seed=0)
    counts = np.bincount(first * 4 + second, minlength=16).reshape(4, 4)
    assert_array_equal(np.diag(counts), 0)
    assert_allclose(counts[~np.eye(4, dtype=bool)] / 60_000, 1 / 12, atol=0.006)


# Many rows: a part of them is tracked, a part of each resample is fitted


@pytest.fixture(scope="module")
def many():
    X, y = make_blobs(3_000, n_features=4, centers=4, cluster_std=0.5, random_state=1)
    return X, y


@pytest.mark.parametrize("member", [KMeans(n_init=3), "agglomerative"], ids=str)
def test_labels_of_all_rows_from_a_part_of_them(member, many):
    X, y = many
    model = quick(range(2, 6), member=member, n_tracked=300, sample_size=100, n_resamples=8).fit(X)
    assert model.tracked_.shape == model.shown_.shape == (300,)
    assert model.n_clusters_ == 4 and model.pac_[2] == 0
    assert model.labels_.shape == (3_000,) and ari(y, model.labels_) == 1
    assert_array_equal(model.labels_at(4), model.labels_)
    assert_array_equal(model.predict(X), model.labels_)
    drawn = (model.partitions_[0] != NOT_DRAWN).mean()
    assert drawn == pytest.approx(0.8, abs=0.05)
    assert model.item_consensus(4).shape == (300, 4)


def test_rows_beyond_the_core_join_the_cluster_of_their_highest_consensus(many, monkeypatch):
    X, y = many
    monkeypatch.setattr("deccs.consensus.resampling.MOST_LINKED", 60)
    model = quick(4, n_tracked=500).fit(X)
    assert ari(y, model.labels_) == 1
    assert_allclose(model.cluster_consensus(4), 1)


def test_few_resamples_leave_rows_undrawn(touching):
    model = quick(2, n_resamples=2, row_share=0.3).fit(touching)
    never = (model.partitions_[0] == NOT_DRAWN).all(axis=0)
    assert never.any() and (model.labels_ >= 0).all()
    assert np.isnan(model.matrix(2)[np.ix_(never, ~never)]).all()
    assert np.isnan(model.item_consensus(2)[never]).all()


def test_columns_are_drawn(touching):
    class Columns(Halves):
        seen: ClassVar[list] = []

        def fit_predict(self, X):
            type(self).seen.append(X.shape)
            return super().fit_predict(X)

    quick(2, member=Columns(), column_share=0.67, n_resamples=2).fit(touching)
    assert Columns.seen == [(400, 2)] * 2


# Members


@pytest.mark.parametrize("name", [name for name in MEMBERS if name != "hdbscan"])
def test_every_member_by_name(name, many):
    X, y = many
    model = ConsensusMatrix([3, 4], member=name, n_resamples=3, n_tracked=150, sample_size=100,
                            random_state=0).fit(X)  # fmt: skip
    assert ari(y, model.labels_at(4)) > 0.9


@pytest.mark.parametrize("name", ["genie", "agglomerative", "spectral"])
def test_members_without_predict_may_be_fitted_on_all_rows_of_a_resample(name, many):
    X, y = many[0][:200], many[1][:200]
    model = quick([3, 4], member=name, n_resamples=3).fit(X)
    assert ari(y, model.labels_at(4)) == 1


@pytest.mark.parametrize("member", ["hdbscan", HDBSCAN(min_cluster_size=15, copy=True)], ids=str)
def test_a_member_with_its_own_number_of_clusters_and_noise(member, many):
    X, y = many[0][:400], many[1][:400]
    X = np.concatenate([X, np.random.default_rng(0).uniform(-60, 60, size=(12, 4))])
    model = quick(None, member=member).fit(X)
    assert model.k_range_.tolist() == [4] and model.n_clusters_ == 4
    assert model.area_.shape == model.pac_.shape == (1,)
    assert (model.labels_[400:] == -1).mean() > 0.5
    known = model.labels_[:400] >= 0
    assert known.mean() > 0.9 and ari(y[known], model.labels_[:400][known]) == 1
    noise = np.flatnonzero(model.labels_ == -1)
    assert np.nanmax(model.item_consensus(4)[noise]) <= 0.5


def test_a_clusterer_of_ones_own_keeps_its_number_with_none(touching):
    model = quick(None, member=KMeans(3, n_init=1)).fit(touching)
    assert model.k_range_.tolist() == [3] and len(np.unique(model.labels_)) == 3


@pytest.mark.parametrize("function", ["lwea", "nmf", lambda labels, k, **_: np.arange(500) % k])
def test_other_functions(function, touching):
    model = quick([2, 4], function=function).fit(touching)
    assert len(np.unique(model.labels_at(4))) == 4
    assert ari(model.labels_at(4, function="eac"), quick([2, 4]).fit(touching).labels_at(4)) == 1


# The same bits


def assert_same_model(one, other):
    for name in ("partitions_", "area_", "pac_", "delta_area_", "labels_", "tracked_", "shown_"):
        assert_array_equal(getattr(one, name), getattr(other, name))


def test_the_same_bits_again_and_in_several_processes(many):
    X = many[0]
    settings = {"n_tracked": 200, "sample_size": 100, "n_resamples": 4, "n_pairs": 500}
    one = quick(**settings).fit(X)
    assert_same_model(one, quick(**settings).fit(X))
    assert_same_model(one, quick(**settings, n_jobs=2).fit(X))
    other = quick(**settings | {"random_state": 1}).fit(X)
    assert (one.partitions_ != other.partitions_).any()


def test_more_resamples_begin_with_the_same_ones(touching, fitted):
    model = quick(range(2, 4), n_resamples=12).fit(touching)
    assert_array_equal(model.partitions_, fitted.partitions_[:2, :12])


class Watch(deccs.Callback):
    def __init__(self, interrupt_at=None, stop_at=None):
        self.interrupt_at, self.stop_at, self.steps = interrupt_at, stop_at, []

    def on_progress(self, progress):
        if progress.stage == "resamples":
            self.steps.append((progress.step, progress.n_steps))
            if progress.step == self.interrupt_at:
                raise KeyboardInterrupt

    def stop(self):
        return bool(self.steps) and self.steps[-1][0] == self.stop_at


def test_an_interrupted_fit_continues_to_the_same_bits(touching, fitted, tmp_path):
    settings = {"n_resamples": 20, "checkpoint": tmp_path / "states"}
    with pytest.raises(KeyboardInterrupt):
        quick(range(2, 9), **settings, callbacks=[Watch(interrupt_at=7)]).fit(touching)
    watch = Watch()
    resumed = quick(range(2, 9), **settings, callbacks=[watch]).fit(touching)
    assert watch.steps == [(step, 20) for step in range(7, 21)]
    assert_same_model(resumed, fitted)
    assert not (tmp_path / "states").exists()


def test_a_checkpoint_of_another_fit_is_refused(touching, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        quick(3, checkpoint=tmp_path, callbacks=[Watch(interrupt_at=2)]).fit(touching)
    with pytest.raises(ValueError, match="row_share"):
        quick(3, checkpoint=tmp_path, row_share=0.5).fit(touching)


def test_progress_is_told_and_a_callback_may_stop(touching):
    watch = Watch(stop_at=3)
    model = quick(2, callbacks=[watch]).fit(touching)
    assert watch.steps == [(step, 10) for step in range(4)]
    assert model.partitions_.shape == (1, 3, 500)


def test_a_model_comes_back_from_a_file(fitted, touching, tmp_path):
    fitted.save(tmp_path / "matrix.zip")
    loaded = load(tmp_path / "matrix.zip")
    assert_same_model(loaded, fitted)
    assert_array_equal(loaded.labels_at(3), fitted.labels_at(3))
    assert_array_equal(loaded.cdf(4), fitted.cdf(4))
    assert_array_equal(loaded.predict(touching[:9]), fitted.predict(touching[:9]))


# Input and errors


class Source:
    """Rows of the user's own."""

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def read(self, rows):
        return self.X[rows]


def test_every_kind_of_input_gives_the_same(touching, tmp_path):
    X = touching[:150]
    np.save(tmp_path / "X.npy", X)
    expected = quick(3).fit(X)
    kinds = [
        pd.DataFrame(X),
        sp.csr_array(X),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        Source(X),
    ]
    for given in [*kinds, source_of(X)]:
        assert_same_model(quick(3).fit(given), expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clusters": range(5, 5)}, r"n_clusters must be .*at least one.*, got range\(5, 5\)"),
        ({"n_clusters": [0, 2]}, r"n_clusters must be a whole number of at least 1.*got \[0, 2\]"),
        ({"row_share": 0}, r"row_share must be a share in \(0, 1\], got 0"),
        ({"row_share": 1.2}, r"row_share must be a share in \(0, 1\], got 1.2"),
        ({"column_share": -0.5}, r"column_share must be a share in \(0, 1\]"),
        ({"n_clusters": range(2, 500)}, r"up to 499, but .* sees only 400 rows \(row_share=0.8 of"),
        ({"sample_size": 4}, r"up to 5, but .* only 4 rows \(sample_size=4\).* raise sample_size"),
        ({"row_share": 0.001}, "is a resample of 1 row"),
        ({"member": "kmean"}, "member must be one of kmeans, .* got 'kmean'"),
        ({"member": KMeans}, "member must be the name of a member or an object with fit_predict"),
        ({"member": "hdbscan"}, "'hdbscan' has no parameter n_clusters .* Give n_clusters=None"),
        ({"member": "kmeans", "n_clusters": None}, "needs a number of clusters, got n_clusters=None"),
        ({"function": "eca"}, "function must be a function or one of"),
        ({"ambiguous": (0.9, 0.1)}, "ambiguous must be a pair"),
    ],
)  # fmt: skip
def test_errors_say_what_was_wrong_what_was_given_and_what_to_do(changes, message, touching):
    with pytest.raises(ValueError, match=message):
        quick(**{"n_clusters": KS, **changes}).fit(touching)


def test_errors_of_questions(fitted, many):
    with pytest.raises(ValueError, match=r"k=12 was not fitted; there are \[2, 3"):
        fitted.labels_at(12)
    part = quick(2, n_tracked=50, n_resamples=2).fit(many[0])
    row = int(np.setdiff1d(np.arange(3_000), part.tracked_)[0])
    with pytest.raises(ValueError, match=f"Row {row} is not among the 50 tracked rows"):
        part.matrix(2, rows=[row])
    with pytest.raises(NotFittedError):
        quick().cdf(2)


class Broken(Halves):
    def fit_predict(self, X):
        raise FloatingPointError("no")


def test_a_member_that_fails_is_named(touching):
    with pytest.raises(
        ResampleError, match=r"Broken.* failed in resample 0 for k=2: Floating.*: no"
    ):
        quick(2, member=Broken()).fit(touching)


class Splits(ClusterMixin, BaseEstimator):
    """Two halves by the first column, some rows without a label; it writes into its input."""

    def __init__(self, missing=-1, n_clusters=2):
        self.missing, self.n_clusters = missing, n_clusters

    def fit(self, X, y=None):
        labels = (X[:, 0] > np.median(X[:, 0])).astype(float)
        labels[:5] = self.missing
        X[:] = 0
        self.labels_ = labels
        return self


def test_nan_of_a_member_is_noise_and_its_changes_of_the_rows_reach_no_other_k(touching):
    plain, gaps = (quick(range(2, 4), member=Splits(x)).fit(touching) for x in (-1, np.nan))
    assert_array_equal(gaps.partitions_, plain.partitions_)
    assert_array_equal(plain.partitions_[0], plain.partitions_[1])
    with pytest.raises(ResampleError, match=r"0\.5 is no label"):
        quick(2, member=Splits(0.5)).fit(touching)


@parametrize_with_checks([quick(range(2, 3), n_resamples=2)])
def test_it_is_an_estimator(estimator, check):
    check(estimator)


# Plots


def test_plots(fitted):
    ax = fitted.plot_cdf()
    assert len(ax.get_lines()) == 7 and ax.get_xlabel() == "consensus index"
    line = ax.get_lines()[2]
    assert_array_equal(line.get_ydata(), fitted.cdf(4, line.get_xdata()))
    assert_array_equal(fitted.plot_delta_area().get_lines()[-1].get_ydata(), fitted.delta_area_)
    image = fitted.plot_heatmap(4).get_images()[0].get_array()
    assert image.shape == (500, 500)
    assert_allclose(np.sort(np.asarray(image).ravel()), np.sort(fitted.matrix(4).ravel()))
    assert fitted.plot_tracking().get_images()[0].get_array().shape == (7, 500, 3)
    assert fitted.plot_item_consensus(4).get_ylabel() == "item-consensus"
    assert len(fitted.plot_cluster_consensus().patches) == sum(range(2, 9))
    given = pyplot.Figure().subplots()
    assert fitted.plot_cdf(given) is given
    assert pyplot.get_fignums() == []


def test_a_heat_map_has_a_thousand_rows_at_most(many):
    model = quick(4, n_resamples=20).fit(many[0])
    image = model.plot_heatmap(4).get_images()[0].get_array()
    assert image.shape == (1_000, 1_000)
    # Rows of a cluster stand together: the blocks on the diagonal hold all ones.
    labels = np.sort(model.labels_[model.shown_])
    assert_allclose(np.asarray(image)[labels[:, None] != labels], 0)


def test_a_range_is_not_searched_before_the_fit():
    X = np.random.default_rng(0).random((60, 3))
    model = ConsensusMatrix(n_clusters=range(2, 5), n_resamples=3, random_state=0).fit(X)
    assert not hasattr(model, "count_") and list(model.k_range_) == [2, 3, 4]
