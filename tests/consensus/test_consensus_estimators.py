"""Consensus clustering as estimators."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.utils.estimator_checks import parametrize_with_checks

from deccs import Callback, Network, Pretraining, scores
from deccs.consensus import (
    FUNCTIONS,
    AutoencoderConsensus,
    ConsensusClustering,
    FewerClusters,
    consensus_function,
)
from deccs.datasets import make_synth
from deccs.network.autoencoder import Autoencoder

QUICK = {"network": Network(layers=(4, 2)), "pretraining": Pretraining(n_epochs=2)}
SAME = np.repeat([0, 1, 2], 4)  # twelve points on a line, in three groups of four
LINE = np.array([0.0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23])[:, None]


CHEAP = [("kmeans", KMeans(3, n_init=1)), ("ward", AgglomerativeClustering(3))]


@parametrize_with_checks(
    [
        ConsensusClustering(3, members=CHEAP, random_state=0),
        AutoencoderConsensus(3, members=CHEAP, random_state=0, **QUICK),
    ]
)
def test_scikit_learn_finds_no_fault(estimator, check):
    check(estimator)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_finds_clear_blobs_and_labels_new_points(blobs, function):
    half = np.concatenate(
        [np.flatnonzero(blobs.y == cluster)[:30] for cluster in range(3)]
    )  # as many of each
    model = ConsensusClustering(3, function=function, random_state=0).fit(blobs.X[half])
    assert scores.ari(blobs.y[half], model.labels_) == 1
    assert scores.ari(blobs.y, model.predict(blobs.X)) == 1


def test_predict_gives_the_labels_of_the_training_data(blobs):
    model = ConsensusClustering(3, random_state=0).fit(blobs.X)
    assert_array_equal(model.predict(blobs.X), model.labels_)
    assert_array_equal(model.members_predict(blobs.X), model.base_partitions_)  # numbered alike
    assert_array_equal(model.predict(blobs.X[7:8]), model.labels_[7:8])  # alone as among many


def test_the_same_seed_gives_the_same_answer_and_the_truth_changes_nothing(blobs):
    model = ConsensusClustering(4, function="cspa", random_state=3)
    assert_array_equal(model.fit(blobs.X).labels_, model.fit(blobs.X, blobs.y).labels_)


def test_two_moons_of_raw_data_are_carried_to_new_points():
    X, y = make_synth(random_state=0)
    model = ConsensusClustering(4, random_state=0, scale=None, sample_size=1_000).fit(X)
    assert len(model.sample_) == 1_000 and model.labels_.shape == (2_000,)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.predict(X[model.sample_]), model._sample_labels)
    # Nearest neighbors keep a curved cluster whole.
    spectral = model.members_predict(X)[model.member_names_.index("spectral")]
    assert scores.nmi(y, spectral) > 0.95


def test_another_function_on_the_same_members_is_a_fit_with_it(blobs):
    first = ConsensusClustering(3, function="eac", random_state=0).fit(blobs.X)
    again = ConsensusClustering(3, function="hbgf", random_state=0).fit(blobs.X)
    assert_array_equal(first.with_function("hbgf", blobs.X).labels_, again.labels_)
    assert first.function == "eac"


def first_member(partitions, n_clusters=None, *, weights=None, random_state=None):
    return partitions[0]


def test_your_own_function(blobs):
    model = ConsensusClustering(3, function=first_member, random_state=0).fit(blobs.X)
    assert_array_equal(model.labels_, model.base_partitions_[0])


def test_a_registered_function_is_known_by_its_name(blobs, monkeypatch):
    monkeypatch.setitem(FUNCTIONS, "first_member", None)  # removed after the test
    assert consensus_function(first_member) is first_member
    model = ConsensusClustering(3, function="first_member", random_state=0).fit(blobs.X)
    assert_array_equal(model.labels_, model.base_partitions_[0])


def test_a_weight_of_one_member_alone_gives_its_partition(blobs):
    rough = ("rough", np.arange(len(blobs.X)) % 3)
    members = [rough, ("kmeans", KMeans(3, n_init=3))]
    model = ConsensusClustering(3, members=members, weights=[0, 1], random_state=0).fit(blobs.X)
    assert scores.ari(model.labels_, model.base_partitions_[1]) == 1
    model.set_params(weights=[1, 0]).fit(blobs.X)
    assert scores.ari(model.labels_, rough[1]) == 1


def test_noise_of_a_member_is_no_label(blobs):
    X = np.vstack([blobs.X, blobs.X.max(axis=0) + 50])
    members = [("dbscan", DBSCAN(eps=0.3)), ("kmeans", KMeans(3, n_init=3))]
    model = ConsensusClustering(3, members=members, random_state=0).fit(X)
    assert model.base_partitions_[0, -1] == -1 and model.labels_[-1] >= 0


def test_a_point_without_any_label_follows_its_neighbor(blobs):
    labels = blobs.y.copy()
    labels[7] = -1
    model = ConsensusClustering(3, members=[("a", labels), ("b", labels)]).fit(blobs.X)
    assert scores.ari(model.labels_, blobs.y) == 1


def test_sparse_and_data_frames_are_read(blobs):
    dense = ConsensusClustering(3, random_state=0, scale=None).fit(blobs.X)
    sparse = ConsensusClustering(3, random_state=0, scale=None).fit(csr_matrix(blobs.X))
    frame = ConsensusClustering(3, random_state=0, scale=None).fit(
        pd.DataFrame(blobs.X).add_prefix("x")
    )
    assert_array_equal(dense.labels_, sparse.labels_)
    assert_array_equal(dense.labels_, frame.labels_)
    assert frame.feature_names_in_[0] == "x0"


def test_the_autoencoders_consensus_is_the_consensus_of_its_embedding(blobs):
    model = AutoencoderConsensus(3, random_state=0, **QUICK).fit(blobs.X)
    Z = model.transform(blobs.X)
    assert Z.shape == (len(blobs.X), 2)
    plain = ConsensusClustering(3, random_state=0, scale=None).fit(Z)
    assert_array_equal(plain.labels_, model.labels_)
    assert list(model.get_feature_names_out()) == ["autoencoderconsensus0", "autoencoderconsensus1"]


def test_a_pretrained_autoencoder_is_used_as_it_is(blobs):
    given = Autoencoder(torch.nn.Linear(4, 2), torch.nn.Linear(2, 4), pretrained=True)
    model = AutoencoderConsensus(3, network=given, random_state=0).fit(blobs.X)
    assert torch.equal(model.autoencoder_.encoder.weight, given.encoder.weight)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"function": "median"}, "function must be a function or one of .*lwea.*got 'median'"),
        ({"function": 3}, "function must be a function or the name of one, got 3"),
        ({"sample_size": 1}, "sample_size must be a whole number of at least 2, got 1"),
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1"),
        ({"n_clusters": 10_000}, "more than the number of points"),
        ({"weights": [1.0]}, "weights must be 4 numbers.*got \\[1.0\\]"),
    ],
)
def test_errors_say_what_was_given(blobs, changes, message):
    with pytest.raises(ValueError, match=message):
        ConsensusClustering(**({"n_clusters": 3} | changes)).fit(blobs.X)


def test_fewer_clusters_than_asked_for_are_reported(blobs):
    same = [("a", blobs.y), ("b", blobs.y)]
    with pytest.warns(FewerClusters, match="3 clusters instead of 5"):
        model = ConsensusClustering(5, members=same).fit(blobs.X)
    assert model.n_clusters_ == 3


def test_verbose_shows_progress(blobs, capsys):
    ConsensusClustering(3, random_state=0, verbose=True).fit(blobs.X)
    assert "members" in capsys.readouterr().err


class Notes(Callback):
    """Keeps what a fit tells."""

    def __init__(self):
        self.hooks, self.stages, self.answers = [], [], []

    def on_fit_start(self, estimator):
        self.hooks.append("start")

    def on_progress(self, progress):
        self.stages.append((progress.stage, progress.step, progress.n_steps))

    def on_answer(self, answer):
        self.answers.append(answer)

    def on_fit_end(self, estimator):
        self.hooks.append("end")


def test_callbacks_hear_of_the_members_and_every_block_of_rows(blobs, monkeypatch):
    monkeypatch.setattr("deccs.data.source.rows_at_once", lambda width: 50)
    notes = Notes()
    model = ConsensusClustering(3, random_state=0, callbacks=[notes]).fit(blobs.X)
    assert notes.hooks == ["start", "end"]
    assert notes.stages == [("members", 0, 4), ("members", 4, 4)]
    assert [len(answer) for answer in notes.answers] == [50, 50, 50, 30]
    told = np.concatenate([answer.labels for answer in notes.answers])
    assert_array_equal(told, model.labels_)


def test_callbacks_hear_of_the_pretraining(blobs):
    notes = Notes()
    AutoencoderConsensus(3, random_state=0, callbacks=[notes], **QUICK).fit(blobs.X)
    assert {stage for stage, _, _ in notes.stages} == {"pretraining", "members"}


# The answer


def test_the_answer_by_hand():
    """Member b puts the last of the first four with the second four, and knows nothing of the last."""
    b = np.array([5, 5, 5, 1, 1, 1, 1, 1, 0, 0, 0, -1])
    members = [("a", SAME), ("b", b), ("c", SAME)]
    model = ConsensusClustering(3, members=members, function="eac", scale=None).fit(LINE)
    answer = model.answer(LINE)
    assert_array_equal(answer.labels, SAME)
    assert_array_equal(answer.members[1], [0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, -1])  # like the result
    assert_allclose(answer.confidence, [1, 1, 1, 2 / 3, 1, 1, 1, 1, 1, 1, 1, 2 / 3])
    assert_array_equal(answer.Z, LINE)
    assert answer.probabilities is None
    weighted = model.set_params(weights=[1, 2, 1]).fit(LINE)
    assert_allclose(weighted.consensus_confidence(LINE)[[3, 11, 0]], [1 / 2, 1 / 2, 1])


def test_a_new_point_gets_the_answer_for_its_nearest_neighbor():
    members = [("a", SAME), ("b", np.where(np.arange(12) == 3, 1, SAME)), ("c", SAME)]
    model = ConsensusClustering(3, members=members, scale=None).fit(LINE)
    answer, old = model.answer(LINE[[3, 8]] + 0.4), model.answer(LINE[[3, 8]])
    assert_array_equal(answer.labels, old.labels)
    assert_array_equal(answer.members, old.members)
    assert_array_equal(answer.confidence, old.confidence)
    assert_allclose(answer.Z, [[3.4], [20.4]])


def test_all_methods_are_views_of_the_answer(blobs):
    model = AutoencoderConsensus(3, random_state=0, **QUICK).fit(blobs.X)
    answer = model.answer(blobs.X)
    assert_array_equal(answer.Z, model.transform(blobs.X))
    assert_array_equal(answer.labels, model.predict(blobs.X))
    assert_array_equal(answer.members, model.members_predict(blobs.X))
    assert_array_equal(answer.confidence, model.consensus_confidence(blobs.X))
    assert not hasattr(model, "predict_proba")  # a vote of the members is no probability


def test_a_member_of_weight_0_may_know_other_points():
    """Nobody who counts has labeled the last three points: they follow their neighbor."""
    a = np.where(np.arange(12) < 9, SAME, -1)
    other = np.where(np.arange(12) < 9, -1, [0] * 10 + [1, 1])
    members = [("a", a), ("b", a), ("other", other)]
    model = ConsensusClustering(3, members=members, weights=[1, 1, 0], scale=None).fit(LINE)
    answer = model.answer(LINE)
    assert_array_equal(answer.labels, SAME)
    assert_array_equal(answer.members[2], -1)
    assert_array_equal(answer.confidence, 1)


# Many rows, and a fit that is stopped


class Counted:
    """A source of rows that keeps the largest number of rows read at once."""

    def __init__(self, X):
        self.X, self.shape, self.dtype, self.most = X, X.shape, X.dtype, 0

    def read(self, rows):
        block = self.X[rows]
        self.most = max(self.most, len(block))
        return block


def test_rows_are_read_block_by_block(blobs, monkeypatch):
    monkeypatch.setattr("deccs.data.source.rows_at_once", lambda width: 25)
    monkeypatch.setattr("deccs.base.rows_to_sketch", lambda n_rows, n_features: 25)
    source = Counted(blobs.X)
    model = ConsensusClustering(3, sample_size=60, random_state=0).fit(source)
    assert source.most == 25
    assert scores.ari(model.labels_, blobs.y) == 1


class Interrupted(Callback):
    def on_progress(self, progress):
        if progress.stage == "members":
            raise KeyboardInterrupt


def test_a_stopped_fit_resumes_after_the_pretraining(blobs, tmp_path):
    settings = {"random_state": 0, "checkpoint": tmp_path / "states", **QUICK}
    expected = AutoencoderConsensus(3, random_state=0, **QUICK).fit(blobs.X)
    with pytest.raises(KeyboardInterrupt):
        AutoencoderConsensus(3, callbacks=[Interrupted()], **settings).fit(blobs.X)
    notes = Notes()
    model = AutoencoderConsensus(3, callbacks=[notes], **settings).fit(blobs.X)
    assert {stage for stage, _, _ in notes.stages} == {"members"}  # no pretraining any more
    assert_array_equal(model.answer(blobs.X).Z, expected.answer(blobs.X).Z)
    assert_array_equal(model.labels_, expected.labels_)
    assert not (tmp_path / "states").exists()


@pytest.mark.slow
def test_pendigits_lwea(load_real):
    data = load_real("pendigits")
    model = ConsensusClustering(10, random_state=0).fit(data.X[:3_000])
    members = [scores.nmi(data.y[:3_000], labels) for labels in model.base_partitions_]
    assert scores.nmi(data.y[:3_000], model.labels_) > max(0.7, np.mean(members))


def test_clusters_that_no_row_is_in_are_told():
    """Members may split copies of a row, but equal rows get equal labels."""
    X = np.repeat([[0.0, 1], [4, 0], [9, 9]], 10, axis=0)
    with pytest.warns(FewerClusters, match=r"3 cluster\(s\) instead of 4: no row is in the others"):
        model = ConsensusClustering(4, members=["agglomerative", "genie"], random_state=0).fit(X)
    assert len(np.unique(model.labels_)) == 3
