"""Coordinates of the embedding in which clusters are round, as k-means and everything that starts from it assume."""

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

    The reconstruction stays the same. If the embedding does not have a linear layer on both sides, it stays the
    same too.
    """
    Z = encode(autoencoder, rows)
    sample = draw_rows(len(Z), 20_000, generator_for(root, "coordinates"))
    forth, back = rounding(Z[sample], n_clusters, seed_for(root, "coordinates"))
    changed = change_coordinates(autoencoder, forth, back)
    return encode(autoencoder, rows) if changed else Z


def rounding(
    Z: torch.Tensor, n_clusters: int, seed: int, n_turns: int = 4
) -> tuple[torch.Tensor, torch.Tensor]:
    """The map after which the clusters of k-means are round on average, and its inverse: (n, d) -> (d, d) twice.

    In turns: clusters in the present coordinates, then coordinates in which the points within clusters vary equally
    in all directions. The axes of an autoencoder's embedding have no meaning, and neither have their relative
    lengths, but k-means depends on both. The overall size stays, because the methods weigh it against the
    reconstruction. After four turns little changes.
    """
    points = Z.double()
    forth = torch.eye(points.shape[1], dtype=torch.float64)
    centers: torch.Tensor | None = None
    for _ in range(n_turns):
        turned = points @ forth
        start = "k-means++" if centers is None else (centers @ forth).numpy()
        n_init = 10 if centers is None else 1
        kmeans = KMeans(n_clusters, init=start, n_init=n_init, random_state=seed)
        with reproducible_threads():
            labels = torch.from_numpy(kmeans.fit(turned.numpy()).labels_).long()
        centers = means_of(points, labels, n_clusters)
        forth, back = roots(within(points - centers[labels]))
    return forth, back


def means_of(Z: torch.Tensor, labels: torch.Tensor, n_clusters: int) -> torch.Tensor:
    """(n, d), (n,) -> (k, d); 0 for a cluster without points."""
    member = nn.functional.one_hot(labels, n_clusters).to(Z)  # (n, k)
    return member.T @ Z / member.sum(0).clamp(min=1)[:, None]


def within(residuals: torch.Tensor) -> torch.Tensor:
    """Covariance of the differences of points from their centers, in units of the mean variance: (n, d) -> (d, d).

    It is shrunk towards a round one, more so the fewer points there are per dimension (Ledoit and Wolf 2004), and
    always by a millionth, so that it has an inverse.
    """
    covariance = torch.from_numpy(ledoit_wolf(residuals.numpy(), assume_centered=True)[0])
    identity, size = torch.eye(len(covariance)).to(covariance), covariance.diagonal().mean()
    return (covariance / size + 1e-6 * identity) / (1 + 1e-6) if size > 0 else identity


def roots(covariance: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The map that makes this covariance the identity, and its inverse: (d, d) -> (d, d) twice, both symmetric.

    >>> forth, back = roots(torch.tensor([[5.0, 4.0], [4.0, 5.0]]))
    >>> back.round(decimals=4)  # variances 9 and 1 along the diagonals: deviations 3 and 1
    tensor([[2., 1.],
            [1., 2.]])
    """
    squares, axes = torch.linalg.eigh(covariance)
    return (axes / squares.sqrt()) @ axes.T, (axes * squares.sqrt()) @ axes.T


def linear_at(network: nn.Module, position: int) -> nn.Linear | None:
    """The first (0) or last (-1) layer of a ``Sequential``, if it is linear."""
    layer = network[position] if isinstance(network, nn.Sequential) and len(network) else None
    return layer if isinstance(layer, nn.Linear) else None


@torch.no_grad()
def change_coordinates(autoencoder: Autoencoder, forth: torch.Tensor, back: torch.Tensor) -> bool:
    """Let the encoder apply ``forth`` and the decoder ``back``; False if it has no linear layers to change."""
    last, first = linear_at(autoencoder.encoder, -1), linear_at(autoencoder.decoder, 0)
    if last is None or first is None:
        return False
    forth, back = forth.to(last.weight.device), back.to(last.weight.device)
    last.weight.copy_(forth @ last.weight.double())
    if last.bias is not None:
        last.bias.copy_(forth @ last.bias.double())
    first.weight.copy_(first.weight.double() @ back)
    return True
