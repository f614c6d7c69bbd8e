"""DCN (Yang, Fu, Sidiropoulos and Hong 2017): k-means and the network take turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from deccs.base import Fit
from deccs.checks import number
from deccs.data.rows import Rows
from deccs.deep.base import (
    AutoencoderMethod,
    batches_of,
    first_centers,
    one_hot,
    squared_distances,
)
from deccs.deep.coordinates import round_clusters
from deccs.network.autoencoder import Autoencoder
from deccs.network.reconstruction import error_for
from deccs.training.engine import Learner


def nearest(z: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """(n, d), (k, d) -> (n,) number of the nearest center."""
    return torch.cdist(z, centers).argmin(1)


def count_weighted(
    centers: torch.Tensor, counts: torch.Tensor, z: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Eq. 8: each point moves its center by 1 / (points the center has had), so a center is their running mean.

    A whole batch at once, which is the same as point by point; a center without points in the batch stays.

    >>> count_weighted(torch.tensor([[0.0]]), torch.tensor([2.0]), torch.tensor([[3.0], [6.0]]), torch.tensor([0, 0]))
    (tensor([[2.2500]]), tensor([4.]))
    """
    new = torch.zeros_like(counts).index_add_(0, labels, torch.ones(len(labels), device=z.device))
    sums = torch.zeros_like(centers).index_add_(0, labels, z)
    after = counts + new
    return (centers * counts[:, None] + sums) / after.clamp(min=1)[:, None], after


@dataclass(eq=False, repr=False, kw_only=True)
class DCN(AutoencoderMethod, method="DCN"):
    """Deep clustering network: reconstruction and the distance to the nearest center, with hard assignments.

    It starts from k-means on the pretrained embedding, in coordinates in which its clusters are round. In turns,
    batch by batch: the network learns with assignments and centers held fixed, then the points of the batch are
    assigned again and move their centers, each by one over the number of points the center has had.

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
    lambda_cluster : float, default=0.1
        Weight of half the squared distance to the center, against the mean squared error over columns.
    n_steps, learning_rate, batch_size, network, pretraining, scale, device, random_state, verbose, ...
        As for :class:`deccs.deep.DEC`, but all steps are done.

    Attributes
    ----------
    labels_, autoencoder_, scaler_, n_iter_ : as for :class:`deccs.deep.DEC`
    cluster_centers_ : (n_clusters, n_latent)
    """

    lambda_cluster: Annotated[float, number(at_least=0)] = 0.1

    def _train(self, autoencoder: Autoencoder, rows: Rows, fit: Fit) -> None:
        learner = HardAssignments(autoencoder, rows, self, fit.root)
        self._run(learner, rows, fit)
        self.cluster_centers_ = learner.centers.cpu().double().numpy()

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        """One for the nearest center: the assignments of DCN are hard."""
        nearest_center = squared_distances(Z, self.cluster_centers_).argmin(axis=1)  # (n,)
        return one_hot(nearest_center, self.n_wanted)


class HardAssignments(Learner):
    """Reconstruction and the distance to the nearest center; the centers follow each batch."""

    stage = "DCN"
    learned = ("autoencoder", "centers", "counts")
    random = ("batches",)

    def __init__(self, autoencoder: Autoencoder, rows: Rows, method: DCN, root: int) -> None:
        Z = round_clusters(autoencoder, rows, method.n_wanted, root)  # (n_points, n_latent)
        self.autoencoder, self.rows, self.device = autoencoder, rows, rows.device
        self.error = error_for(rows)
        self.lambda_cluster = method.lambda_cluster
        self.centers = first_centers(Z, method.n_wanted, root).to(rows.device)
        # As if each center had had 100 points: the first batches must not move it far.
        self.counts = torch.full((method.n_wanted,), 100.0, device=rows.device)
        self.batches = batches_of(rows, method.batch_size, root)
        autoencoder.train()

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam(self.autoencoder.parameters(), lr=rate)]

    def loss(self, step: int) -> torch.Tensor:
        self.x = self.rows[next(self.batches)]
        z = self.autoencoder.encoder(self.x)  # (batch, n_latent)
        nearest_centers = self.centers[nearest(z.detach(), self.centers)]
        distance = (z - nearest_centers).square().sum(1).mean()
        error = self.error(self.autoencoder.decoder(z), self.x)
        return error + self.lambda_cluster / 2 * distance

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        z = self.autoencoder.encoder(self.x)
        labels = nearest(z, self.centers)
        self.centers, self.counts = count_weighted(self.centers, self.counts, z, labels)
