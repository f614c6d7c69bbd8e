"""SpectralNet: the graph, the walks and the losses on numbers worked out by hand, and rings that k-means cannot see."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from torch import nn

from deccs import Network, Pretraining, datasets, scores
from deccs.deep.spectralnet import (
    RandomWalk,
    SpectralNet,
    affinity,
    contrastive_loss,
    distances_to,
    neighbors,
    orthonormalizer,
    siamese_pairs,
    spectral_loss,
)
from deccs.network.autoencoder import Autoencoder

QUICK = {
    "n_clusters": 3,
    "network": Network(layers=(8, 2)),
    "n_steps": 30,
    "siamese_steps": 30,
    "batch_size": 32,
    "hidden": (16,),
    "pretraining": Pretraining(n_epochs=5, batch_size=32, learning_rate=1e-2),
    "random_state": 0,
}


def graph(Z, n_neighbors, scale_neighbors):
    index = neighbors(Z, n_neighbors)
    return affinity(distances_to(Z, index), index, scale_neighbors)


def as_it_is():
    """An autoencoder whose embedding is the data."""
    return Autoencoder(nn.Identity(), nn.Identity(), pretrained=True)


@pytest.fixture(scope="module")
def rings():
    X, y = datasets.make_rings(n_per_cluster=150, random_state=0)
    model = SpectralNet(
        2,
        network=as_it_is(),
        hidden=(64, 64),
        n_steps=200,
        siamese_steps=0,
        batch_size=256,
        random_state=0,
    )
    return model.fit(X), X, y


def test_neighbors_are_those_of_all_distances():
    Z = np.random.default_rng(0).normal(size=(50, 3))
    all_distances = np.linalg.norm(Z[:, None] - Z, axis=2) + np.diag(np.full(50, np.inf))
    index = neighbors(Z, 4)
    assert_array_equal(index, all_distances.argsort(axis=1)[:, :4])
    assert_allclose(distances_to(Z, index), np.sort(all_distances, axis=1)[:, :4])
    assert neighbors(Z[:3], 20).shape == (3, 2)  # no more than there are


def test_affinity_by_hand():
    Z = np.array([[0.0], [1.0], [3.0]])  # nearest at 1, 1 and 2: the scales
    W = graph(Z, 1, scale_neighbors=1).toarray()
    one_way = np.exp(-4 / (2 * 1)) / 2  # the third's neighbor has another nearer
    assert_allclose(W, [[0, np.exp(-1), 0], [np.exp(-1), 0, one_way], [0, one_way, 0]])


def test_the_scale_is_that_of_the_learned_distance():
    """Neighbors by the embedding, nearest first; the siamese network may have put them in another order."""
    distances, index = (
        np.array([[3.0, 1.0], [3.0, 2.0], [1.0, 2.0]]),
        np.array([[1, 2], [0, 2], [0, 1]]),
    )
    W = affinity(distances, index, scale_neighbors=1).toarray()  # scales 1, 2 and 1
    assert_allclose(
        W, np.exp([[-np.inf, -9 / 2, -1], [-9 / 2, -np.inf, -4 / 2], [-1, -4 / 2, -np.inf]])
    )


def test_affinity_is_symmetric_sparse_and_stands_equal_points():
    Z = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 5, axis=0)
    W = graph(Z, 6, scale_neighbors=3)  # scales of 0: four others at the same place
    assert (W != W.T).nnz == 0
    assert W.nnz <= 2 * 6 * len(Z)
    assert np.isfinite(W.data).all() and W.data.max() == 1


def test_walks_follow_the_graph():
    """Starts by degree D, then t steps of P = W / D: the pairs follow D P^t, which is symmetric."""
    W = np.array([[0, 2, 0, 1], [2, 0, 1, 0], [0, 1, 0, 3], [1, 0, 3, 0]], dtype=float)
    degree = W.sum(axis=1)
    for length in (1, 2, 5):
        start, end = RandomWalk(sp.csr_array(W)).pairs(
            40_000, length, torch.Generator().manual_seed(0)
        )
        seen = np.zeros((4, 4))
        np.add.at(seen, (start.numpy(), end.numpy()), 1 / len(start))
        expected = np.diag(degree / degree.sum()) @ np.linalg.matrix_power(
            W / degree[:, None], length
        )
        assert_allclose(seen, expected, atol=0.01)


def test_spectral_loss_of_two_points_by_hand():
    start, end = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    assert float(spectral_loss(start, end)) == 25
    assert float(spectral_loss(start, start)) == 0


def test_spectral_loss_of_drawn_pairs_is_the_sum_over_the_graph():
    rng = np.random.default_rng(0)
    W = graph(rng.normal(size=(30, 2)), 5, scale_neighbors=3)
    y = torch.from_numpy(rng.normal(size=(30, 2)))
    slow = (
        sum(W[i, j] * float((y[i] - y[j]).square().sum()) for i in range(30) for j in range(30))
        / W.sum()
    )
    start, end = RandomWalk(W).pairs(100_000, 1, torch.Generator().manual_seed(0))
    assert float(spectral_loss(y[start], y[end])) == pytest.approx(slow, rel=0.02)


def test_orthonormalizer_makes_orthonormal():
    y = torch.randn(
        100, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ) @ torch.diag(torch.tensor([1e-3, 1.0, 10.0, 1e3], dtype=torch.float64))
    Y = y @ orthonormalizer(y, jitter=0)
    assert_allclose(Y.T @ Y / 100, np.eye(4), atol=1e-9)


@pytest.mark.parametrize("y", [torch.zeros(6, 3), torch.ones(6, 3), torch.eye(3)[:2]])
def test_a_batch_of_too_few_different_points_does_no_harm(y):
    y = y.double().requires_grad_()
    Y = y @ orthonormalizer(y)
    spectral_loss(*Y.chunk(2)).backward()
    assert torch.isfinite(Y).all() and torch.isfinite(y.grad).all()
    assert float(Y.detach().square().sum(1).mean()) <= 3 + 1e-6  # no direction beyond unit length


def test_siamese_pairs_are_near_or_far_as_they_say():
    Z = np.random.default_rng(0).normal(size=(40, 2))
    index = torch.from_numpy(neighbors(Z, 3))
    first, second, near = siamese_pairs(index, 500, torch.Generator().manual_seed(0))
    is_neighbor = (index[first] == second[:, None]).any(1)
    assert torch.equal(is_neighbor, near) and int(near.sum()) == 500
    assert not (first == second).any()


def test_contrastive_loss_by_hand():
    distance, near = torch.tensor([3.0, 0.25, 2.0]), torch.tensor([True, False, False])
    assert float(contrastive_loss(distance, near, margin=1.0)) == pytest.approx(
        (9 + 0.75**2 + 0) / 3
    )


def test_rings_are_found_where_k_means_cannot(rings):
    model, X, y = rings
    assert scores.ari(y, KMeans(2, n_init=5, random_state=0).fit_predict(X)) < 0.05
    assert scores.ari(y, model.labels_) == 1


def test_new_points_on_the_rings_are_told_apart(rings):
    new, truth = datasets.make_rings(n_per_cluster=100, random_state=1)
    assert scores.ari(truth, rings[0].predict(new)) > 0.95


def test_the_map_is_orthonormal(rings):
    model, X, _ = rings
    Y = model.transform(X)  # (300, 2)
    assert_allclose(Y.T @ Y / len(Y), np.eye(2), atol=1e-4)
    assert Y.shape == (300, 2) and len(model.get_feature_names_out()) == 2
    assert model.cluster_centers_.shape == (2, 2)


def test_with_siamese_distances_too():
    X, y = datasets.make_rings(n_per_cluster=100, random_state=0)
    model = SpectralNet(
        2,
        network=as_it_is(),
        hidden=(64, 64),
        n_steps=200,
        siamese_steps=200,
        batch_size=256,
        random_state=0,
    )
    assert scores.ari(y, model.fit(X).labels_) == 1


def test_the_autoencoder_stays_as_it_was(trained, blobs):
    model = SpectralNet(**(QUICK | {"network": trained})).fit(blobs.X)
    before, after = trained.state_dict(), model.autoencoder_.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert model.transform(blobs.X).shape == (
        len(blobs.X),
        3,
    )  # a column per cluster, not per latent


def test_a_sample_is_enough_for_all_points(trained, blobs):
    changes = {"network": trained, "sample_size": 90, "n_steps": 100, "batch_size": 64}
    model = SpectralNet(**(QUICK | changes)).fit(blobs.X)
    assert len(model.labels_) == len(blobs.X) and scores.ari(blobs.y, model.labels_) > 0.95


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_size": 2},  # a pair: rank two at most, three wanted
        {"n_clusters": 1},
        {"n_neighbors": 1_000, "scale_neighbors": 2_000, "siamese_neighbors": 1_000},
    ],
)
def test_odd_settings_do_no_harm(trained, blobs, changes):
    model = SpectralNet(**(QUICK | {"network": trained} | changes)).fit(blobs.X)
    assert np.isfinite(model.transform(blobs.X)).all()
    assert_array_equal(model.predict(blobs.X), model.labels_)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1, got 0"),
        ({"walk_length": 0}, "walk_length must be a whole number of at least 1, got 0"),
        (
            {"siamese_steps": -1},
            "siamese_steps must be 'auto' or a whole number of at least 0, got -1",
        ),
        ({"hidden": ()}, "hidden must be a tuple of layer widths"),
        ({"sample_size": 2}, "sample_size must be at least n_clusters=3, got 2"),
    ],
)
def test_errors_say_what_was_given(blobs, changes, message):
    with pytest.raises(ValueError, match=message):
        SpectralNet(**(QUICK | changes)).fit(blobs.X)
