"""Coordinates of the embedding in which clusters are round, as k-means and all that starts from it take them to be."""

from __future__ import annotations

import torch
from sklearn.cluster import KMeans
from sklearn.covariance import ledoit_wolf
from torch import nn

from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.network.autoencoder import Autoencoder, encode
from deccs.seeds import generator_for, reproducible_threads, seed_for


def round_clusters(
    autoencoder: Autoencoder, rows: Rows, n_clusters: int, root: int
) -> torch.Tensor:
    """Change the coordinates of the embedding so that its clusters are round; the new embedding: (n_points, n_latent).

    What the network reconstructs stays the same. So does the embedding of a network that has no linear layers on
    both sides of it.
    """
    Z = encode(autoencoder, rows)
    some = Z[draw_rows(len(Z), 20_000, generator_for(root, "coordinates"))]
    if not change_coordinates(
        autoencoder, *rounding(some, n_clusters, seed_for(root, "coordinates"))
    ):
        return Z
    return encode(autoencoder, rows)


def rounding(
    Z: torch.Tensor, n_clusters: int, seed: int, n_turns: int = 4
) -> tuple[torch.Tensor, torch.Tensor]:
    """The map after which the clusters of k-means are round on the whole, and its inverse: (n, d) -> (d, d) twice.

    By turns: clusters in the present coordinates, then coordinates in which what is within them varies alike in all
    directions. The axes of an autoencoder's embedding mean nothing, and neither does the length of one against
    another; k-means goes by both. Its size on the whole stays, for the methods weigh it against the reconstruction.
    After four turns little changes.
    """
    points = Z.double()
    forth = torch.eye(points.shape[1], dtype=torch.float64)
    centers: torch.Tensor | None = None
    for _ in range(n_turns):
        seen = points @ forth
        start = "k-means++" if centers is None else (centers @ forth).numpy()
        with reproducible_threads():
            found = KMeans(
                n_clusters, init=start, n_init=10 if centers is None else 1, random_state=seed
            )
            labels = torch.from_numpy(found.fit(seen.numpy()).labels_).long()
        centers = means_of(points, labels, n_clusters)
        forth, back = roots(within(points - centers[labels]))
    return forth, back


def means_of(Z: torch.Tensor, labels: torch.Tensor, n_clusters: int) -> torch.Tensor:
    """(n, d), (n,) -> (k, d); 0 for a cluster without points."""
    own = nn.functional.one_hot(labels, n_clusters).to(Z)
    return own.T @ Z / own.sum(0).clamp(min=1)[:, None]


def within(residuals: torch.Tensor) -> torch.Tensor:
    """Covariance of the differences of points from their centers, in units of the mean variance: (n, d) -> (d, d).

    Drawn towards a round one where there are few points per dimension (Ledoit and Wolf 2004), and by a crumb, so that
    it has an inverse.
    """
    covariance = torch.from_numpy(ledoit_wolf(residuals.numpy(), assume_centered=True)[0])
    one, size = torch.eye(len(covariance), dtype=covariance.dtype), covariance.diagonal().mean()
    return (covariance / size + 1e-6 * one) / (1 + 1e-6) if size > 0 else one


def roots(covariance: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The map that makes this covariance 1, and its inverse: (d, d) -> (d, d) twice, both symmetric.

    >>> forth, back = roots(torch.tensor([[5.0, 4.0], [4.0, 5.0]]))
    >>> back.round(decimals=4)                               # variances 9 and 1 along the diagonals: deviations 3 and 1
    tensor([[2., 1.],
            [1., 2.]])
    """
    squares, axes = torch.linalg.eigh(covariance)
    return (axes / squares.sqrt()) @ axes.T, (axes * squares.sqrt()) @ axes.T


def linear_at(network: nn.Module, place: int) -> nn.Linear | None:
    """The first (0) or last (-1) layer of a stack, if it is linear."""
    layer = network[place] if isinstance(network, nn.Sequential) and len(network) else None
    return layer if isinstance(layer, nn.Linear) else None


@torch.no_grad()
def change_coordinates(autoencoder: Autoencoder, forth: torch.Tensor, back: torch.Tensor) -> bool:
    """The embedding seen through ``forth``, which the decoder undoes. False: there are no linear layers to do it."""
    last, first = linear_at(autoencoder.encoder, -1), linear_at(autoencoder.decoder, 0)
    if last is None or first is None:
        return False
    forth, back = forth.to(last.weight.device), back.to(last.weight.device)
    last.weight.copy_(forth @ last.weight.double())
    if last.bias is not None:
        last.bias.copy_(forth @ last.bias.double())
    first.weight.copy_(first.weight.double() @ back)
    return True
