"""Members and the partitions they make: names, small clusters, noise, and members that fail."""

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import DBSCAN, HDBSCAN, AgglomerativeClustering, Birch, KMeans
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deccs.labels import canonical
from deccs.members.asking import Jobs, MemberWarning
from deccs.members.default import default_members
from deccs.members.guard import is_known
from deccs.members.running import cluster, without_small_clusters
from deccs.members.spectral import NeighborSpectral
from deccs.rules import smallest_cluster
from tests.helpers.meddling import Meddles, change_everything, global_state


class Says(ClusterMixin, BaseEstimator):
    """A member whose answer is known beforehand."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, X, y=None):
        if isinstance(self.answer, BaseException):
            raise self.answer
        self.labels_ = np.asarray(self.answer)
        return self


class Dice(ClusterMixin, BaseEstimator):
    """Random labels from its random_state."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y=None):
        rng = (
            np.random.RandomState(self.random_state) if self.random_state is not None else np.random
        )
        self.labels_ = rng.randint(0, 2, len(X))
        return self


def run(members, Z, root=0, sample=None, **settings):
    return cluster(members, Z, np.arange(len(Z)) if sample is None else sample, root, **settings)


def clusters_of(partitions):
    return [len(np.unique(labels[labels >= 0])) for labels in partitions.labels]


def test_small_clusters_become_noise():
    assert_array_equal(
        without_small_clusters(np.array([4, 4, 7, 9, 9, -1]), min_size=2), [0, 0, -1, 1, 1, -1]
    )
    assert_array_equal(without_small_clusters(np.array([-1, -1]), min_size=2), [-1, -1])


def test_the_least_size_shrinks_with_the_sample():
    assert [smallest_cluster(n, 3) for n in (1000, 90, 60, 30, 10)] == [6, 6, 4, 2, 1]


def test_members_do_not_depend_on_the_names_of_their_clusters(blobs):
    others = [("spectral", NeighborSpectral(3)), ("ward", AgglomerativeClustering(3))]
    plain = run([("mine", Says(blobs.y)), *others], blobs.X)
    renamed = run([("mine", Says(np.array([20, 5, 11])[blobs.y])), *others], blobs.X)
    assert_array_equal(plain.labels, renamed.labels)


def test_partitions_are_numbered_alike(blobs):
    partitions = run(default_members(3), blobs.X)
    assert partitions.names == ("kmeans", "spectral", "agglomerative", "mixture")
    assert clusters_of(partitions) == [3, 3, 3, 3]
    for labels in partitions.labels:
        assert_array_equal(labels, blobs.y)  # far blobs, numbered by first appearance


def test_partitions_of_different_k_are_numbered_alike(blobs):
    joined = np.array([0, 0, 1])[blobs.y]
    partitions = run([("three", Says(blobs.y)), ("two", Says(joined))], blobs.X)
    assert clusters_of(partitions) == [3, 2]
    assert_array_equal(
        partitions.labels[1][blobs.y == 2], 2
    )  # the number of its partner, 1 is left out


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (RuntimeError("no luck"), "RuntimeError: no luck"),
        (np.zeros(180, dtype=int), r"found 1 cluster\(s\)"),
        (np.full(180, -1), r"found 0 cluster\(s\)"),
        (np.zeros(7, dtype=int), r"returned shape \(7,\) for 180 points"),
        (["a"] * 180, r"found 1 cluster\(s\)"),
        (np.tile([0, 0.5, 1], 60), "0.5 is no label"),
        (np.tile([0, np.inf, 1], 60), "inf is no label"),
        (np.tile([0, 1j, 1], 60), "is no label"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_a_member_that_fails_is_left_out_by_name(blobs, answer, reason):
    members = [("good", Says(blobs.y)), ("bad one", Says(answer)), ("kmeans", KMeans(3, n_init=1))]
    with pytest.warns(MemberWarning, match=f"Member 'bad one' is left out.*{reason}"):
        partitions = run(members, blobs.X)
    assert partitions.names == ("good", "kmeans")
    assert partitions.labels.shape == (2, 180)


def test_fewer_than_two_partitions_are_no_ensemble(blobs):
    members = [("good", Says(blobs.y)), ("bad", Says(ValueError("no")))]
    with (
        pytest.warns(MemberWarning),
        pytest.raises(ValueError, match="Only 1 of 2 members gave a partition"),
    ):
        run(members, blobs.X)


def test_noise_of_dbscan_takes_no_part(blobs):
    X = np.vstack([blobs.X, [[99, 99, 99, 99]]])
    partitions = run([("kmeans", KMeans(3, n_init=1)), ("dbscan", DBSCAN(eps=0.7))], X)
    assert partitions.labels[1, -1] == -1
    assert clusters_of(partitions)[1] >= 2


@pytest.mark.parametrize(
    ("standardize", "deviations"),
    [
        (True, [1, 1, 0]),  # each by itself; a constant one stays finite
        (
            False,
            [3**0.5 / 10_001**0.5, 100 * 3**0.5 / 10_001**0.5, 0],
        ),  # all by the root of the mean variance
    ],
)
def test_members_see_the_sample_scaled_by_one_number_or_column_by_column(standardize, deviations):
    seen = []

    class Watches(Says):
        def fit(self, X, y=None):
            seen.append(X)
            return super().fit(X)

    column = np.array([-1, 1] * 20)  # mean 0, deviation 1
    Z = column[:, None] * [1, 100, 0] + [0, 5, 7]
    run(
        [("a", Watches([0, 1] * 20)), ("b", Says([0, 1] * 20))],
        Z.astype(np.float32),
        standardize=standardize,
    )
    assert np.abs(seen[0].mean(axis=0)).max() < 1e-5
    np.testing.assert_allclose(seen[0].std(axis=0), deviations, atol=1e-5)


def test_a_labeling_is_read_where_the_sample_is():
    everyone = np.array([0, 0, 0, 1, 1, 1, 0, 1])
    sample = np.array([0, 1, 3, 4, 6, 7])
    partitions = run([("a", everyone), ("b", everyone)], np.zeros((6, 1)), sample=sample)
    assert_array_equal(partitions.labels[0], [0, 0, 1, 1, 0, 1])


def test_each_member_has_a_seed_of_its_own(blobs):
    """A new member changes no other, and the root changes all."""
    a, b, c = ((name, Dice()) for name in "abc")
    pair, three, other = (
        run([a, b], blobs.X),
        run([c, a, b], blobs.X),
        run([a, b], blobs.X, root=1),
    )
    same = [
        normalized_mutual_info_score(x, y)
        for x, y in zip(pair.labels, three.labels[1:], strict=True)
    ]
    assert same == pytest.approx([1, 1])
    assert normalized_mutual_info_score(pair.labels[0], pair.labels[1]) < 0.5
    assert normalized_mutual_info_score(pair.labels[0], other.labels[0]) < 0.5


def test_a_members_own_seed_is_respected(blobs):
    first, second = (
        run([("a", Dice(random_state=3)), ("b", Dice())], blobs.X, root=root) for root in (0, 1)
    )
    assert_array_equal(first.labels[0], second.labels[0])


def test_the_seed_reaches_a_member_inside_a_pipeline(blobs):
    members = [("a", make_pipeline(StandardScaler(), Dice())), ("b", Says(blobs.y))]
    first, again = run(members, blobs.X), run(members, blobs.X)
    assert_array_equal(first.labels, again.labels)


def test_given_members_are_not_changed(blobs):
    kmeans = KMeans(3, n_init=1)
    run([("a", kmeans), ("b", Says(blobs.y))], blobs.X)
    assert kmeans.random_state is None
    assert not hasattr(kmeans, "labels_")


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_two_jobs_give_what_one_gives(blobs, backend):
    members = default_members(3)
    one = run(members, blobs.X, jobs=Jobs(1))
    with parallel_config(backend=backend):
        two = run(members, blobs.X, jobs=Jobs(2))
    assert_array_equal(one.labels, two.labels)


# A member's answer


@pytest.mark.parametrize("nothing", [np.nan, None, -1])
def test_nan_and_none_of_a_member_are_no_label(blobs, nothing):
    answer = np.where(np.arange(180) < 10, nothing, blobs.y)
    labels = run([("good", Says(blobs.y)), ("gaps", Says(answer))], blobs.X).labels[1]
    assert_array_equal(labels[:10], -1)
    assert_array_equal(labels[10:], blobs.y[10:])


def test_a_member_may_name_its_clusters(blobs):
    names = np.array(["ant", "bee", "cat"])[blobs.y]
    assert_array_equal(run([("a", Says(names)), ("b", Says(blobs.y))], blobs.X).labels[0], blobs.y)


# What a member may not change


def spoil(X):
    X[:] = 0


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_a_member_that_changes_its_input_does_not_spoil_the_next(backend):
    X = np.random.default_rng(0).normal(
        size=(3_000, 50)
    )  # joblib gives so large an array read-only
    members = [("first", Meddles(spoil)), ("next", Meddles(spoil))]
    expected = canonical((X[:, 0] > np.median(X[:, 0])).astype(int))
    assert_array_equal(run(members, X).labels, [expected, expected])
    with parallel_config(backend=backend):
        assert_array_equal(run(members, X, jobs=Jobs(2)).labels, [expected, expected])


@pytest.mark.parametrize(
    "member", [KMeans(3, copy_x=False, n_init=1), HDBSCAN(copy=False), Birch(n_clusters=3)]
)
def test_members_of_scikit_learn_may_work_in_place(blobs, member):
    partitions = run([("in place", member), ("good", Says(blobs.y))], blobs.X)
    assert partitions.names == ("in place", "good")


def change_and_fail(X):
    change_everything(X)
    raise RuntimeError("and it fails")


def test_a_member_leaves_the_process_as_it_was(blobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = global_state()
    good = [("good", Says(blobs.y)), ("same", Says(blobs.y))]
    with pytest.warns(MemberWarning, match="and it fails"):
        run([("a", Meddles(change_everything)), ("b", Meddles(change_and_fail)), *good], blobs.X)
    assert global_state() == before


def test_global_seeds_do_not_reach_a_member_nor_come_back_from_it(blobs):
    """A member without random_state draws from seeds of its place: those of the user change nothing."""
    drawn = []

    def draw(X):
        drawn.append(np.random.rand())  # noqa: NPY002

    members = [("a", Meddles(draw)), ("b", Says(blobs.y))]
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        before = global_state()
        run(members, blobs.X)
        assert global_state() == before
    run(members, blobs.X, root=1)
    assert drawn[0] == drawn[1] != drawn[2]


def test_members_of_strangers_are_guarded_in_pipelines_and_as_functions():
    assert is_known(make_pipeline(StandardScaler(), KMeans(2)))
    assert not is_known(make_pipeline(StandardScaler(), Dice()))
    assert not is_known(DBSCAN(metric=spoil))
    assert not is_known(Dice())
