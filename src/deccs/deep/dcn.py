"""DCN (Yang, Fu, Sidiropoulos and Hong 2017): k-means and the network, by turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from deccs.data.rows import Rows
from deccs.deep.base import DeepClustering, first_centers, squared_distances
from deccs.deep.coordinates import round_clusters
from deccs.events import Progress
from deccs.network.autoencoder import Autoencoder
from deccs.seeds import generator_for
from deccs.settings import Pretraining
from deccs.training.batches import endless_batches


def nearest(z: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """(n, d), (k, d) -> (n,) number of the nearest center."""
    return torch.cdist(z, centers).argmin(1)


def count_weighted(
    centers: torch.Tensor, counts: torch.Tensor, z: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Eq. 8: each point moves its center by 1 / (points that center has had), so a center is their running mean.

    A batch at once, which is the same as point by point; a center without points in the batch stays.

    >>> count_weighted(torch.tensor([[0.0]]), torch.tensor([2.0]), torch.tensor([[3.0], [6.0]]), torch.tensor([0, 0]))
    (tensor([[2.2500]]), tensor([4.]))
    """
    new = torch.zeros_like(counts).index_add_(0, labels, torch.ones(len(labels), device=z.device))
    sums = torch.zeros_like(centers).index_add_(0, labels, z)
    after = counts + new
    return (centers * counts[:, None] + sums) / after.clamp(min=1)[:, None], after


class DCN(DeepClustering):
    """Deep clustering network: reconstruction and the distance to the own center, with hard assignments.

    It starts from k-means on the pretrained embedding, in coordinates in which its clusters are round. By turns,
    batch by batch: the network learns with assignments and centers held fixed, then the points
    of the batch are assigned anew and move their centers, each by one over the points the center has had.

    Parameters
    ----------
    n_clusters : int, default=8
    lambda_cluster : float, default=0.1
        Weight of half the squared distance to the center, against the mean squared error over columns.
    n_steps : int or "auto"
        "auto": 30 passes over the data, at least 1,000 and at most 4,000 steps.
    learning_rate : float or "auto"
        Adam's. "auto": see :func:`deccs.rules.default_rate`.
    batch_size : int, default=256
    autoencoder, layers, dropout, pretraining, scale, device, random_state, verbose, callbacks
        As for :class:`deccs.deep.DEC`.

    Attributes
    ----------
    labels_, autoencoder_, scaler_ : as for :class:`deccs.DECCS`
    cluster_centers_ : (n_clusters, n_latent)
    n_iter_ : steps trained
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        lambda_cluster: float = 0.1,
        autoencoder: Autoencoder | tuple[Any, Any] | None = None,
        layers: Sequence[int] | str = "auto",
        dropout: float = 0.0,
        pretraining: Pretraining | None = None,
        n_steps: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float | str = "auto",
        scale: str | None = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.lambda_cluster = lambda_cluster
        self.autoencoder = autoencoder
        self.layers = layers
        self.dropout = dropout
        self.pretraining = pretraining
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.scale = scale
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _train(
        self,
        autoencoder: Autoencoder,
        rows: Rows,
        root: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        Z = round_clusters(autoencoder, rows, self.n_clusters, root)  # (n_points, n_latent)
        centers = first_centers(Z, self.n_clusters, root).to(rows.device)
        # Each center starts as the mean of a batch's worth of points, lest the first ones throw it about.
        counts = torch.full((self.n_clusters,), 100.0, device=rows.device)
        rate = self._rate(autoencoder)
        optimizer = torch.optim.Adam(autoencoder.parameters(), lr=rate)
        batches = endless_batches(
            torch.arange(len(rows)), self.batch_size, generator_for(root, "batches")
        )
        n_steps = self._steps(len(rows))
        autoencoder.train()
        total = torch.zeros(())
        for step in range(1, n_steps + 1):
            x = rows[next(batches)]
            z = autoencoder.encoder(x)  # (batch, n_latent)
            own = centers[nearest(z.detach(), centers)]
            distance = (z - own).square().sum(1).mean()
            loss = (autoencoder.decoder(z) - x).square().mean() + self.lambda_cluster / 2 * distance
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                moved = autoencoder.encoder(x)
                centers, counts = count_weighted(centers, counts, moved, nearest(moved, centers))
            total += loss.detach().cpu()
            if step % 100 == 0 or step == n_steps:
                on_progress(
                    Progress("DCN", step, n_steps, float(total) / ((step - 1) % 100 + 1), math.nan)
                )
                total = torch.zeros(())
        self.n_iter_ = n_steps
        self.autoencoder_ = autoencoder
        self.cluster_centers_ = centers.cpu().double().numpy()

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        """One for the nearest center: the assignments of DCN are hard."""
        return np.eye(self.n_clusters)[squared_distances(Z, self.cluster_centers_).argmin(axis=1)]
