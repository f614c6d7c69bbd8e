"""DECCS with views, from a fit to a file and back."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.mixture import GaussianMixture

from deccs import DECCS, Callback, Rounds
from deccs.members.asking import MemberWarning
from deccs.members.default import DEFAULT_MEMBERS, VIEW_MEMBERS
from deccs.members.views import MANIFOLD, RAW
from deccs.notebook import summary_html
from deccs.rounds.look import CONSENSUS
from tests.helpers.small import small_deccs

pytestmark = pytest.mark.usefixtures("quick_classifiers", "quick_manifold")
PAIRS = [("a", KMeans(3)), ("b", AgglomerativeClustering(3))]
MIXED = [("a", KMeans(3), "raw"), ("b", GaussianMixture(3), "manifold"), ("c", KMeans(3))]


def new(**changes):
    return small_deccs(**{"views": "auto", **changes})


def near_blobs(n=90):
    """Three blobs that touch each other: members differ, and there are rounds."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 4)) + 2.5 * np.eye(4)[np.arange(n) % 3]


def assert_same_answers(one, two, X):
    assert_array_equal(one.labels_, two.labels_)
    for method in ("predict", "transform", "predict_proba", "members_predict"):
        assert_array_equal(getattr(one, method)(X), getattr(two, method)(X))
    assert_array_equal(one.consensus_confidence(X), two.consensus_confidence(X))
    assert one.label_source_ == two.label_source_
    assert one.member_names_ == two.member_names_


def assert_consistent(model, X):
    """What holds for every fit."""
    assert_array_equal(model.predict(X), model.labels_)
    proba = model.predict_proba(X)
    assert proba.shape == (X.shape[0], model.n_clusters_)
    assert_allclose(proba.sum(axis=1), 1)
    assert_array_equal(proba.argmax(axis=1), model.labels_)
    assert model.members_predict(X).shape == (len(model.member_names_), X.shape[0])
    confidence = model.consensus_confidence(X)
    assert (confidence >= 0).all()
    assert (confidence <= 1 + 1e-12).all()


@pytest.fixture(scope="module")
def X():
    return near_blobs()


@pytest.fixture(scope="module")
def model(X, quick_classifiers, quick_manifold):
    return new().fit(X)


def test_a_fit(model, X):
    assert_consistent(model, X)
    assert set(model.labels_) == {0, 1, 2}
    on_views = [f"{view} {name}" for view in (RAW, MANIFOLD) for name in VIEW_MEMBERS]
    assert model.member_names_ == (*DEFAULT_MEMBERS, "views", *on_views)
    of_rounds = [finished.candidate.name for finished in model.rounds_]
    assert [made.name for made in model.candidates_] == [*on_views, CONSENSUS, *of_rounds]
    best = max(model.candidates_, key=lambda made: made.evidence)
    assert model.label_source_ in (best.name, model.rounds_[model.best_round_].candidate.name)
    assert model.label_source_ in summary_html(model)


def test_new_rows_alone_are_what_they_are_among_many(model):
    new_rows = near_blobs(120)[90:]
    together = model.predict(new_rows)
    assert_array_equal([model.predict(row[None])[0] for row in new_rows], together)
    assert_array_equal(model.predict_proba(new_rows).argmax(axis=1), together)


@pytest.mark.parametrize("name", ["model", "model.zip"])
def test_a_file_brings_back_the_same_bits(model, X, tmp_path, name):
    model.save(tmp_path / name)
    again = DECCS.load(tmp_path / name)
    assert_same_answers(again, model, X)
    assert again.views == "auto"
    for made, before in zip(again.candidates_, model.candidates_, strict=True):
        assert (made.name, made.evidence) == (before.name, before.evidence)
        assert_array_equal(made.labels, before.labels)


def test_the_same_seed_gives_the_same_bits(model, X):
    assert_same_answers(new().fit(X), model, X)


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def mixed(X, quick_classifiers, quick_manifold):
    return new(members=MIXED).fit(X)


@pytest.mark.parametrize("after", [0, 1])
def test_a_fit_that_was_interrupted_resumes_with_the_same_bits(mixed, X, tmp_path, after):
    class Interrupts(Callback):
        def on_round(self, finished):
            if finished.number == after:
                raise Stop

    assert mixed.n_iter_ == 2
    with pytest.raises(Stop):
        new(members=MIXED, checkpoint=tmp_path / "c", callbacks=[Interrupts()]).fit(X)
    assert_same_answers(new(members=MIXED, checkpoint=tmp_path / "c").fit(X), mixed, X)


def test_a_second_fit_without_views_forgets_those_of_the_first(X):
    paper = new(members=PAIRS, views=None).fit(X)
    assert (paper.candidates_, paper.seen_) == ([], None)
    assert paper.member_names_ == ("a", "b")
    again = new(members=MIXED).fit(X).set_params(members=PAIRS, views=None).fit(X)
    assert_same_answers(again, paper, X)
    assert (again.candidates_, again.seen_) == ([], None)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_array])
def test_sparse_equals_dense(mixed, X, kind):
    assert_array_equal(new(members=MIXED).fit(kind(X)).labels_, mixed.labels_)


def test_memory_map_equals_array(mixed, X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_same_answers(new(members=MIXED).fit(mapped), mixed, X)


# Members


def test_members_of_different_views(mixed, X):
    assert_consistent(mixed, X)
    assert mixed.member_names_ == ("c", "views", "a", "b")
    assert mixed.label_source_ in ("a", "b", CONSENSUS, "c, round 0", "c, round 1")


def test_members_without_a_view_cluster_the_embedding_alone(X):
    fitted = new(members=PAIRS).fit(X)
    assert fitted.seen_ is None
    assert_same_answers(fitted, new(members=PAIRS, views=None).fit(X), X)
    named = [(name, clusterer, "embedding") for name, clusterer in PAIRS]
    assert_same_answers(new(members=named).fit(X), fitted, X)


def test_for_one_cluster_all_members_cluster_the_embedding(X):
    fitted = new(n_clusters=1, members=MIXED).fit(X)
    assert fitted.member_names_ == ("a", "b", "c")
    assert_consistent(fitted, X)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": [*MIXED, ("d", KMeans(3), "pixels")]}, "the view 'pixels', but there are only embedding, raw"),
        ({"members": [*MIXED, ("d", KMeans(3), 7)]}, "the view 7, but there are only"),
        ({"members": MIXED, "views": None}, "'a' is to cluster the view 'raw', but with views=None"),
        ({"members": MIXED[:2]}, "At least one must cluster the embedding"),
        ({"members": [*MIXED, KMeans(3)]}, "members must be a list of pairs"),
        ({"members": [*MIXED, ("d", KMeans(3), "raw", 1)]}, "members must be a list of pairs"),
        ({"views": "raw"}, "views must be"),
    ],
)  # fmt: skip
def test_errors_say_what_is_wrong(X, changes, message):
    with pytest.raises(ValueError, match=message):
        new(**changes).fit(X)


def test_noise_of_a_member_of_a_view_is_no_cluster(X):
    noisy = DBSCAN(eps=0.5, min_samples=3)
    fitted = new(members=[*MIXED, ("noisy", noisy, "raw")]).fit(X)
    assert_consistent(fitted, X)
    said = fitted.members_predict(X)[fitted.member_names_.index("noisy")]
    assert_array_equal(said == -1, fitted.seen_.partitions[-1] == -1)
    assert (said == -1).any()


def test_members_with_other_k_leave_the_result_to_their_consensus(blobs):
    """Five of the embedding come first, so that the numbers of the others have gaps."""
    members = [("five", KMeans(5)), ("three", KMeans(3)), ("four", KMeans(4), "raw")]
    fitted = new(members=members).fit(blobs.X)
    assert_consistent(fitted, blobs.X)
    assert set(fitted.labels_) == {0, 1, 2}
    assert "five" not in fitted.label_source_
    assert "four" not in fitted.label_source_


def test_without_n_clusters_the_members_decide(blobs):
    members = [("a", KMeans(4)), ("b", KMeans(3), "raw"), ("c", KMeans(3), "manifold")]
    fitted = new(n_clusters=None, members=members).fit(blobs.X)
    assert fitted.n_clusters_ == 3
    assert_consistent(fitted, blobs.X)


def test_a_member_of_a_view_that_fails_is_left_out(X):
    with pytest.warns(MemberWarning, match="'too many'.*ValueError"):
        fitted = new(members=[*MIXED, ("too many", KMeans(500), "raw")]).fit(X)
    assert fitted.seen_.names == ("a", "b")
    with (
        pytest.warns(MemberWarning, match="'too many'"),
        pytest.raises(ValueError, match="None of the 1 members of the views gave a partition"),
    ):
        new(members=[("too many", KMeans(500), "raw"), *MIXED[2:]]).fit(X)


# Data of every kind


@pytest.mark.parametrize(
    ("rows", "n_clusters"),
    [
        (near_blobs(2), 2),
        (near_blobs(5), 5),
        (near_blobs(14), 3),
        (near_blobs(30)[:, :1], 3),
        (near_blobs(30), 1),
        (np.repeat(near_blobs(6), 10, axis=0), 3),
        (np.repeat([[0.0, 0], [1, 1]], 20, axis=0), 2),
        (np.hstack([near_blobs(30), np.ones((30, 2))]), 3),
        (np.random.default_rng(0).normal(size=(12, 80)), 3),
    ],
    ids=["2 rows", "k rows", "14 rows", "1 column", "1 cluster", "copies", "2 distinct rows",
         "constant columns", "more columns than rows"],
)  # fmt: skip
def test_small_and_odd_data(rows, n_clusters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = new(n_clusters=n_clusters, rounds=Rounds(n_rounds=0)).fit(rows)
    assert_consistent(fitted, rows)
    assert len(set(fitted.labels_)) == n_clusters
