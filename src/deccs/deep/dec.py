"""DEC (Xie, Girshick and Farhadi 2016) and IDEC (Guo, Gao, Liu and Yin 2017): sharpen soft assignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import nn

from deccs.base import Fit
from deccs.checks import AUTO, number, whole
from deccs.data.rows import Rows
from deccs.deep.base import AutoencoderMethod, batches_of, first_centers, squared_distances
from deccs.deep.coordinates import round_clusters
from deccs.network.autoencoder import Autoencoder, encode
from deccs.network.reconstruction import error_for
from deccs.rules import default_update_interval
from deccs.training.engine import Check, Learner


def soft_assignment(z: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """q (Eq. 1 of DEC): Student's t around the centers, (n, d), (k, d) -> (n, k), rows sum to 1.

    >>> soft_assignment(torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0]]))     # 1 and 1/2
    tensor([[0.6667, 0.3333]])
    """
    q = 1 / (1 + torch.cdist(z, centers, compute_mode="donot_use_mm_for_euclid_dist").square())
    return q / q.sum(1, keepdim=True)


def target_distribution(q: torch.Tensor) -> torch.Tensor:
    """p (Eq. 3): q squared over the size of its cluster, rows sum to 1. Give q of *all* the data.

    >>> target_distribution(torch.tensor([[0.5, 0.5], [0.9, 0.1]]))
    tensor([[0.3000, 0.7000],
            [0.9720, 0.0280]])
    """
    p = q.square() / q.sum(0)
    return p / p.sum(1, keepdim=True)


@dataclass(eq=False, repr=False, kw_only=True)
class DEC(AutoencoderMethod, method="DEC"):
    """Deep embedded clustering: points are drawn to the centers they are already close to.

    k-means on the pretrained embedding, in coordinates in which its clusters are round, gives the centers. Then
    the encoder and the centers are trained so that the soft assignments q approach their sharpened version p,
    which is computed from all the data at intervals. The decoder is not used again (see :class:`IDEC`).

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
    n_steps : int or "auto"
        The most there can be. "auto": 30 passes over the data, at least 1,000 and at most 4,000 steps.
    tol : float, default=0.001
        Training ends when fewer than this share of the labels changed since the last target.
    update_interval : int or "auto"
        Steps between two targets. "auto": about one pass over the data, at least 50 (labels hardly change in
        fewer) and at most 140 (the authors' number).
    learning_rate : float or "auto"
        Adam's. "auto": see :func:`deccs.rules.default_rate`; 0.001 for IDEC.
    batch_size : int, default=256
    network, pretraining, scale, device, random_state, verbose, checkpoint, callbacks
        As for :class:`deccs.DECCS`.

    Attributes
    ----------
    labels_, autoencoder_, scaler_ : as for :class:`deccs.DECCS`
    cluster_centers_ : (n_clusters, n_latent)
    n_iter_ : steps trained

    Examples
    --------
    >>> from deccs import Pretraining, datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = DEC(2, n_steps=10, pretraining=Pretraining(n_epochs=2), random_state=0).fit(X)
    >>> model.predict_proba(X).shape, bool((model.predict(X) == model.labels_).all())
    ((120, 2), True)
    """

    reconstructs: ClassVar[bool] = False

    tol: Annotated[float, number(at_least=0)] = 1e-3
    update_interval: Annotated[int | str, AUTO | whole(at_least=1)] = "auto"

    def _train(self, autoencoder: Autoencoder, rows: Rows, fit: Fit) -> None:
        learner = SoftAssignments(autoencoder, rows, self, fit.root)
        self._run(learner, rows, fit, check_every=self._interval(len(rows)))
        self.cluster_centers_ = learner.centers.detach().cpu().double().numpy()

    def _interval(self, n_points: int) -> int:
        """Steps between two targets."""
        if self.update_interval == "auto":
            return default_update_interval(n_points, self.batch_size)
        return int(self.update_interval)

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        q = 1 / (1 + squared_distances(Z, self.cluster_centers_))
        return q / q.sum(axis=1, keepdims=True)


class SoftAssignments(Learner):
    """Bring the soft assignments near their sharpened version, which every check computes again."""

    learned = ("autoencoder", "centers", "target", "labels")
    random = ("batches",)

    def __init__(self, autoencoder: Autoencoder, rows: Rows, method: DEC, root: int) -> None:
        Z = round_clusters(autoencoder, rows, method.n_wanted, root)  # (n_points, n_latent)
        self.autoencoder, self.rows, self.device = autoencoder, rows, rows.device
        self.error = error_for(rows)
        self.method, self.stage = method, type(method).__name__
        self.centers = nn.Parameter(first_centers(Z, method.n_wanted, root).to(rows.device))
        self.batches = batches_of(rows, method.batch_size, root)
        self.target, self.labels = self._sharpened()

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        trained = self.autoencoder if self.method.reconstructs else self.autoencoder.encoder
        return [torch.optim.Adam([*trained.parameters(), self.centers], lr=rate)]

    def loss(self, step: int) -> torch.Tensor:
        batch = next(self.batches)
        x, p = self.rows[batch], self.target[batch.to(self.target.device)]
        z = self.autoencoder.encoder(x)  # (batch, n_latent)
        clustering = divergence(p, soft_assignment(z, self.centers))
        if not self.method.reconstructs:
            return clustering
        error = self.error(self.autoencoder.decoder(z), x)
        return error + self.method.lambda_cluster * clustering

    def check(self, step: int) -> Check:
        before = self.labels
        self.target, self.labels = self._sharpened()
        changed = float((self.labels != before).float().mean())
        return Check(changed=changed, stop=changed < self.method.tol)

    @torch.no_grad()
    def _sharpened(self) -> tuple[torch.Tensor, torch.Tensor]:
        """p (n_points, n_clusters) and the labels (n_points,), of all the data."""
        q = soft_assignment(encode(self.autoencoder, self.rows).to(self.device), self.centers)
        self.autoencoder.train()
        return target_distribution(q), q.argmax(1)


def divergence(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """KL(p || q), mean over points."""
    return (p * (p.clamp(min=1e-12).log() - q.clamp(min=1e-12).log())).sum(1).mean()


@dataclass(eq=False, repr=False, kw_only=True)
class IDEC(DEC, method="IDEC"):
    """Improved DEC: the reconstruction stays in the loss.

    Parameters
    ----------
    lambda_cluster : float, default=0.1
        Weight of the clustering loss; the reconstruction has weight 1.
    n_clusters, n_steps, tol, update_interval, learning_rate, batch_size, ...
        As for :class:`DEC`.
    """

    RENAMED: ClassVar[dict[str, str]] = {**DEC.RENAMED, "gamma": "lambda_cluster"}
    reconstructs: ClassVar[bool] = True

    lambda_cluster: Annotated[float, number(at_least=0)] = 0.1
    learning_rate: Annotated[float | str, AUTO | number(above=0)] = 1e-3
