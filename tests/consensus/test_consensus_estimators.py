"""Consensus clustering as estimators."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.cluster import DBSCAN, KMeans
from sklearn.utils.estimator_checks import check_estimator

from deccs import Pretraining, scores
from deccs.consensus import FUNCTIONS, AutoencoderConsensus, ConsensusClustering, FewerClusters
from deccs.datasets import make_synth
from deccs.network.autoencoder import Autoencoder

QUICK = {"layers": (4, 2), "pretraining": Pretraining(epochs=2)}


@pytest.mark.parametrize(
    "model",
    [
        ConsensusClustering(3, random_state=0),
        AutoencoderConsensus(3, random_state=0, **QUICK),
    ],
)
def test_scikit_learn_finds_no_fault(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(model)


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
    assert_array_equal(model.members_predict(blobs.X), model.base_partitions_)


def test_the_same_seed_gives_the_same_answer_and_the_truth_changes_nothing(blobs):
    model = ConsensusClustering(4, function="cspa", random_state=3)
    assert_array_equal(model.fit(blobs.X).labels_, model.fit(blobs.X, blobs.y).labels_)


def test_two_moons_of_raw_data_are_carried_to_new_points():
    X, y = make_synth(random_state=0)
    model = ConsensusClustering(4, random_state=0, scale=None, max_points=1_000).fit(X)
    assert len(model.sample_) == 1_000 and model.labels_.shape == (2_000,)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.predict(X[model.sample_]), model._sample_labels)
    # What is carried is what the members would have said: nearest neighbors keep a curved cluster whole.
    spectral = model.members_predict(X)[model.member_names_.index("spectral")]
    assert scores.nmi(y, spectral) > 0.95


def test_another_function_on_the_same_members_is_a_fit_with_it(blobs):
    first = ConsensusClustering(3, function="eac", random_state=0).fit(blobs.X)
    again = ConsensusClustering(3, function="hbgf", random_state=0).fit(blobs.X)
    assert_array_equal(first.with_function("hbgf", blobs.X).labels_, again.labels_)
    assert first.function == "eac"


def test_your_own_function(blobs):
    model = ConsensusClustering(
        3, function=lambda partitions, k, *, weights, random_state: partitions[0]
    ).fit(blobs.X)
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
    own = Autoencoder(
        torch.nn.Linear(blobs.X.shape[1], 2), torch.nn.Linear(2, blobs.X.shape[1]), pretrained=True
    )
    model = AutoencoderConsensus(3, autoencoder=own, random_state=0).fit(blobs.X)
    assert torch.equal(model.autoencoder_.encoder.weight, own.encoder.weight)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"function": "median"}, "function must be one of cspa.*got 'median'"),
        ({"max_points": 1}, "max_points must be a whole number of at least 2, got 1"),
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


def test_it_tells_what_it_does(blobs, capsys):
    ConsensusClustering(3, random_state=0, verbose=True).fit(blobs.X)
    assert "4 members cluster" in capsys.readouterr().err


def test_pendigits_lwea(load_real):
    data = load_real("pendigits")
    model = ConsensusClustering(10, random_state=0).fit(data.X[:3_000])
    members = [scores.nmi(data.y[:3_000], said) for said in model.base_partitions_]
    assert scores.nmi(data.y[:3_000], model.labels_) > max(0.7, np.mean(members))
