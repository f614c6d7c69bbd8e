"""Members and the partitions they make: names, small clusters, noise, and members that fail."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deccs.labels import as_labeling, canonical
from deccs.members.agglomerative import Agglomerative, parts_between_gaps, ward
from deccs.members.checks import check_members
from deccs.members.default import default_members
from deccs.members.running import MemberWarning, cluster, without_small_clusters
from deccs.members.spectral import NeighborSpectral, leading_eigenvectors
from deccs.rules import smallest_cluster
from deccs.scores import ari


class Says(ClusterMixin, BaseEstimator):
    """A member whose answer is known beforehand."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, X, y=None):
        if isinstance(self.answer, Exception):
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


def test_canonical_numbers_by_first_appearance():
    assert_array_equal(canonical(np.array([5, -1, 3, 5, 9])), [0, -1, 1, 0, 2])
    assert_array_equal(canonical(np.array([-1, -1])), [-1, -1])
    assert_array_equal(canonical(np.array([2, 1, 0])), [0, 1, 2])


def test_canonical_does_not_see_names():
    labels = np.random.default_rng(0).integers(0, 5, 50)
    assert_array_equal(canonical((labels * 7 + 3) % 5), canonical(labels))
    assert_array_equal(canonical(canonical(labels)), canonical(labels))


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
        (["a"] * 180, "ValueError"),
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


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (
            [("a", [0, 1]), ("b", KMeans(2))],
            r"'a' must have fit_predict or be one label per point.*\(4,\).*\(2,\)",
        ),
        ([("a", np.zeros((4, 1))), ("b", KMeans(2))], r"got ndarray of shape \(4, 1\)"),
        ([("a", None), ("b", KMeans(2))], "got NoneType"),
        (
            [("a", [[0], [1, 2]]), ("b", KMeans(2))],
            "'a' has no fit_predict and is no array of labels",
        ),
        ([("a", KMeans(2)), ("a", KMeans(3))], r"name of its own, got \['a', 'a'\]"),
        (
            [("a", KMeans), ("b", KMeans(3))],
            r"'a' is the class KMeans; give an object: KMeans\(...\)",
        ),
        ([("a", KMeans(2))], r"at least two ensemble members, got 1: \['a'\]"),
        ([], "at least two ensemble members, got 0"),
        (
            [KMeans(2), KMeans(3)],
            r"list of pairs like \('kmeans', KMeans\(10\)\).*KMeans\(n_clusters=2\)",
        ),
        ({"a": KMeans(2), "b": KMeans(3)}, "list of pairs"),
        ("kmeans", "list of pairs.*'kmeans'"),
    ],
)
def test_wrong_members_are_named(members, words):
    with pytest.raises(ValueError, match=f"(?s){words}"):
        check_members(members, n_points=4)


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
    one = run(members, blobs.X, n_jobs=1)
    with parallel_config(backend=backend):
        two = run(members, blobs.X, n_jobs=2)
    assert_array_equal(one.labels, two.labels)


def test_parts_between_gaps_by_hand():
    line = np.array([[0.0], [1], [2], [9], [10], [11], [20], [21], [22]])
    assert_array_equal(parts_between_gaps(line, n_parts=3, min_size=3), [0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert_array_equal(
        parts_between_gaps(line, n_parts=2, min_size=3), [0, 0, 0, 0, 0, 0, 1, 1, 1]
    )  # the wider gap
    assert parts_between_gaps(line, n_parts=4, min_size=3) is None  # only two gaps
    assert parts_between_gaps(line, n_parts=2, min_size=5) is None  # only 3 beyond


def test_stray_points_are_no_part():
    stray = np.array([[0.0], [1], [2], [9], [10], [11], [500]])
    assert_array_equal(parts_between_gaps(stray, n_parts=2, min_size=2), [0, 0, 0, 1, 1, 1, 1])


def test_parts_equal_single_linkage_where_gaps_are_clean():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(center, 0.3, (30, 2)) for center in (0, 10, 30)])
    expected = AgglomerativeClustering(3, linkage="single").fit_predict(X)
    assert_array_equal(parts_between_gaps(X, 3, min_size=10), canonical(expected))


def test_agglomerative_takes_single_linkage_for_rings_and_ward_for_touching_blobs():
    angle = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    rings = Agglomerative(2).fit(np.concatenate([ring, 5 * ring]))
    assert rings.linkage_ == "single"
    assert_array_equal(rings.labels_, np.repeat([0, 1], 80))
    touching = np.random.default_rng(1).normal(size=(300, 2))
    assert Agglomerative(3).fit(touching).linkage_ == "ward"
    assert Agglomerative(3, linkage="complete").fit(touching).linkage_ == "complete"


def test_agglomerative_finds_as_many_clusters_as_wanted():
    """A gap below other merges must not split what was merged above it."""
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(100, 2))
        assert len(np.unique(Agglomerative(2).fit(X).labels_)) == 2


def test_spectral_of_a_tiny_sample():
    X = np.array([[0.0], [0.1], [0.2], [9], [9.1], [9.2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a graph in parts is no reason to warn
        labels = NeighborSpectral(2, n_neighbors=2, random_state=0).fit_predict(X)
        assert NeighborSpectral(2, random_state=0).fit_predict(X).shape == (
            6,
        )  # 10 neighbors there are not
    assert_array_equal(canonical(labels), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("seed", range(3))
def test_ward_is_scikit_learns(seed):
    X, _ = make_blobs(300, centers=5, n_features=4, cluster_std=3.0, random_state=seed)
    for k in (1, 2, 5, 9, 300):
        assert ari(ward(X, k), AgglomerativeClustering(k).fit_predict(X)) == 1


def test_ward_of_equal_points():
    labels = ward(np.repeat([[0.0], [5.0]], 4, axis=0), 2)
    assert_array_equal(labels, [0, 0, 0, 0, 1, 1, 1, 1])


def test_leading_eigenvectors_are_those_of_the_dense_matrix():
    """Two parts, one large enough for Lanczos; products of rows do not depend on the basis."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(600, 3)), rng.normal(size=(40, 3)) + 50])
    graph = kneighbors_graph(X, 10, include_self=True)
    graph = 0.5 * (graph + graph.T)
    degree = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    values, vectors = np.linalg.eigh(graph.toarray() / degree / degree[:, None])
    slow = vectors[:, -6:] * values[-6:] ** 20
    fast = leading_eigenvectors(graph, 6, random_state=0)
    assert_allclose(fast @ fast.T, slow @ slow.T, atol=1e-6)


def test_spectral_finds_two_moons():
    X, y = make_moons(1_000, noise=0.05, random_state=0)
    assert ari(y, NeighborSpectral(2, random_state=0).fit_predict(X)) == 1


def test_spectral_does_not_halve_a_long_cluster():
    """A strip with two blobs beside it: beyond the third, eigenvectors only wave along the strip."""
    rng = np.random.default_rng(0)
    strip = np.column_stack([rng.uniform(0, 40, 800), 0.3 * rng.normal(size=800)])
    blobs = [0.5 * rng.normal(size=(100, 2)) + place for place in ([5, 6], [12, 6])]
    X, y = np.concatenate([strip, *blobs]), np.repeat([0, 1, 2], [800, 100, 100])
    few, many = (
        ari(y, NeighborSpectral(3, n_components=n, random_state=0).fit_predict(X)) for n in (3, 6)
    )
    assert ari(y, NeighborSpectral(3, random_state=0).fit_predict(X)) == few == 1 > many
