"""Coordinates of the embedding in which clusters are round."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans
from torch import nn

from deccs import scores
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.deep.coordinates import change_coordinates, means_of, round_clusters, rounding, within
from deccs.network.autoencoder import Autoencoder


def askew(length, n_points=600):
    """Two clusters stretched along the first axis, one above the other to the right, and which point is in which."""
    Z = np.random.default_rng(0).normal(size=(n_points, 2)) * [length, 0.2]
    y = np.repeat([0, 1], n_points // 2)
    return torch.from_numpy(Z + np.where(y, 1, -1)[:, None]), y


def unscaled(x):
    source = source_of(x.numpy())
    return Rows(source, fit_scaler(source, None))


def k_means(Z):
    return KMeans(2, n_init=10, random_state=0).fit_predict(Z.numpy())


def test_stretched_clusters_are_found_in_the_new_coordinates_and_not_before():
    Z, y = askew(length=1.5)
    forth, _ = rounding(Z, 2, seed=0)
    assert scores.ari(y, k_means(Z)) < 0.5
    assert scores.ari(y, k_means(Z @ forth)) == 1


def test_what_is_within_clusters_varies_alike_in_all_directions_and_as_much_as_before():
    Z, y = askew(length=0.6)
    forth, back = rounding(Z, 2, seed=0)
    residuals = Z - means_of(Z, torch.from_numpy(y), 2)[y]
    seen = residuals @ forth
    pooled = seen.T @ seen / len(seen)
    size = float(residuals.square().mean())
    assert_allclose(pooled, size * np.eye(2), atol=0.06 * size)  # shrunk a little, too
    assert_allclose(forth @ back, np.eye(2), atol=1e-9)


def test_means_by_hand():
    Z = torch.tensor([[0.0, 2.0], [4.0, 2.0], [5.0, 5.0]])
    assert_allclose(means_of(Z, torch.tensor([0, 0, 2]), 3), [[2, 2], [0, 0], [5, 5]])


def test_the_covariance_within_by_hand():
    residuals = torch.tensor(
        [[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]], dtype=torch.float64
    ).repeat(5_000, 1)
    assert_allclose(within(residuals), [[1.8, 0], [0, 0.2]], atol=1e-3)  # 4.5 and 0.5, mean 2.5


def test_few_points_have_a_nearly_round_covariance():
    residuals = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 50)))
    squares = torch.linalg.eigvalsh(within(residuals))
    assert squares.min() > 0.5 and squares.max() < 2  # without: 0 and about 7


@pytest.mark.parametrize(
    "Z", [torch.ones(30, 3), torch.zeros(30, 3), torch.arange(30.0)[:, None] * torch.ones(3)]
)
def test_embeddings_without_extent_get_finite_maps(Z):
    for part in rounding(Z, 1, seed=0):
        assert part.isfinite().all() and torch.linalg.matrix_rank(part) == 3


def test_points_come_back_as_before():
    torch.manual_seed(0)
    autoencoder, x = Autoencoder.feed_forward(5, (8, 2)).eval(), torch.randn(400, 5)
    z, before = autoencoder(x)
    Z = round_clusters(autoencoder, unscaled(x), 3, root=0)
    turned, after = autoencoder(x)
    assert_allclose(Z, turned.detach(), atol=1e-5)
    assert (turned - z).abs().max() > 0.01
    assert_allclose(after.detach(), before.detach(), atol=1e-5)


def test_a_network_without_linear_layers_around_the_embedding_keeps_its_coordinates():
    autoencoder = Autoencoder(nn.Sequential(nn.Linear(5, 2), nn.Tanh()), nn.Linear(2, 5)).eval()
    assert not change_coordinates(autoencoder, 2 * torch.eye(2).double(), torch.eye(2).double() / 2)
    x = torch.randn(50, 5)
    assert_allclose(
        round_clusters(autoencoder, unscaled(x), 2, root=0), autoencoder(x)[0].detach(), atol=1e-6
    )
