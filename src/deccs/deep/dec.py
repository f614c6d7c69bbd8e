"""DEC (Xie, Girshick and Farhadi 2016) and IDEC (Guo, Gao, Liu and Yin 2017): sharpen soft assignments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from deccs.data.rows import Rows
from deccs.deep.base import DeepClustering, embed_all, first_centers, squared_distances
from deccs.deep.coordinates import round_clusters
from deccs.events import Progress
from deccs.network.autoencoder import Autoencoder
from deccs.seeds import generator_for
from deccs.settings import Pretraining
from deccs.training.batches import endless_batches


def soft_assignment(z: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """q (Eq. 1 of DEC): Student's t around the centers, (n, d), (k, d) -> (n, k), rows sum to 1.

    >>> soft_assignment(torch.tensor([[0.0]]), torch.tensor([[0.0], [1.0]]))     # 1 and 1/2
    tensor([[0.6667, 0.3333]])
    """
    q = 1 / (1 + torch.cdist(z, centers, compute_mode="donot_use_mm_for_euclid_dist").square())
    return q / q.sum(1, keepdim=True)


def target_distribution(q: torch.Tensor) -> torch.Tensor:
    """p (Eq. 3): q squared over the size of its cluster, rows sum to 1. Sizes are those of *all* the data.

    >>> target_distribution(torch.tensor([[0.5, 0.5], [0.9, 0.1]]))
    tensor([[0.3000, 0.7000],
            [0.9720, 0.0280]])
    """
    p = q.square() / q.sum(0)
    return p / p.sum(1, keepdim=True)


class DEC(DeepClustering):
    """Deep embedded clustering: points are drawn to the centers they already lean to.

    k-means on the pretrained embedding, in coordinates in which its clusters are round, gives the centers. Then
    the encoder and the centers are trained so that the soft assignments q come near their own sharpened version
    p, which is worked out on all the data at intervals. The decoder is not used again (see :class:`IDEC`).

    Parameters
    ----------
    n_clusters : int, default=8
    n_steps : int or "auto"
        At most. "auto": 30 passes over the data, at least 1,000 and at most 4,000 steps.
    tol : float, default=0.001
        Training ends when fewer than this share of the labels changed since the last target.
    update_interval : int or "auto"
        Steps between two targets. "auto": about one pass over the data, at least 50, in which labels can change at
        all, and 140 at most (the authors' number).
    learning_rate : float or "auto"
        Adam's. "auto": see :func:`deccs.rules.default_rate`; 0.001 for IDEC.
    batch_size : int, default=256
    autoencoder, layers, dropout, pretraining, scale, device, random_state, verbose, callbacks
        As for :class:`deccs.DECCS`; callbacks get ``on_progress``.

    Attributes
    ----------
    labels_, autoencoder_, scaler_ : as for :class:`deccs.DECCS`
    cluster_centers_ : (n_clusters, n_latent)
    n_iter_ : steps trained

    Examples
    --------
    >>> from deccs import datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = DEC(2, n_steps=10, pretraining=Pretraining(epochs=2), random_state=0).fit(X)
    >>> model.predict_proba(X).shape, bool((model.predict(X) == model.labels_).all())
    ((120, 2), True)
    """

    reconstructs = False

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        autoencoder: Autoencoder | tuple[Any, Any] | None = None,
        layers: Sequence[int] | str = "auto",
        dropout: float = 0.0,
        pretraining: Pretraining | None = None,
        n_steps: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float | str = "auto",
        tol: float = 1e-3,
        update_interval: int | str = "auto",
        scale: str | None = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.autoencoder = autoencoder
        self.layers = layers
        self.dropout = dropout
        self.pretraining = pretraining
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.tol = tol
        self.update_interval = update_interval
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
        centers = nn.Parameter(first_centers(Z, self.n_clusters, root).to(rows.device))
        trained = autoencoder if self.reconstructs else autoencoder.encoder
        rate = self._rate(autoencoder)
        optimizer = torch.optim.Adam([*trained.parameters(), centers], lr=rate)
        batches = endless_batches(
            torch.arange(len(rows)), self.batch_size, generator_for(root, "batches")
        )
        n_steps, interval = self._lengths(len(rows))
        labels, total, last = None, torch.zeros(()), 0
        for step in range(n_steps + 1):
            if step % interval == 0 or step == n_steps:
                with torch.no_grad():
                    q = soft_assignment(
                        embed_all(autoencoder, rows).to(rows.device), centers
                    )  # (n_points, k)
                target, now = target_distribution(q), q.argmax(1)
                changed = math.nan if labels is None else float((now != labels).float().mean())
                on_progress(
                    Progress(
                        type(self).__name__,
                        step,
                        n_steps,
                        float(total) / max(step - last, 1),
                        changed,
                    )
                )
                if changed < self.tol or step == n_steps:
                    break
                labels, total, last = now, torch.zeros(()), step
                autoencoder.train()
            batch = next(batches)
            x, p = rows[batch], target[batch.to(target.device)]
            z = autoencoder.encoder(x)  # (batch, n_latent)
            loss = self._loss(autoencoder, x, z, p, soft_assignment(z, centers))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach().cpu()
        self.n_iter_ = step
        self.autoencoder_ = autoencoder
        self.cluster_centers_ = centers.detach().cpu().double().numpy()

    def _loss(
        self,
        autoencoder: Autoencoder,
        x: torch.Tensor,
        z: torch.Tensor,
        p: torch.Tensor,
        q: torch.Tensor,
    ) -> torch.Tensor:
        return divergence(p, q)

    def _lengths(self, n_points: int) -> tuple[int, int]:
        """Steps at most, and between two targets."""
        per_pass = math.ceil(n_points / self.batch_size)
        n_steps = self._steps(n_points)
        return n_steps, max(50, min(140, per_pass)) if self.update_interval == "auto" else int(
            self.update_interval
        )

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        q = 1 / (1 + squared_distances(Z, self.cluster_centers_))
        return q / q.sum(axis=1, keepdims=True)


def divergence(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """KL(p || q), mean over points."""
    return (p * (p.clamp(min=1e-12).log() - q.clamp(min=1e-12).log())).sum(1).mean()


class IDEC(DEC):
    """Improved DEC: the reconstruction stays in the loss, and the clustering term has the weight ``gamma``.

    Parameters
    ----------
    gamma : float, default=0.1
        Of the clustering term; the reconstruction has weight 1.
    n_clusters, n_steps, tol, update_interval, learning_rate, batch_size, ...
        As for :class:`DEC`.
    """

    reconstructs = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: float = 0.1,
        autoencoder: Autoencoder | tuple[Any, Any] | None = None,
        layers: Sequence[int] | str = "auto",
        dropout: float = 0.0,
        pretraining: Pretraining | None = None,
        n_steps: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        tol: float = 1e-3,
        update_interval: int | str = "auto",
        scale: str | None = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(
            n_clusters,
            autoencoder=autoencoder,
            layers=layers,
            dropout=dropout,
            pretraining=pretraining,
            n_steps=n_steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            tol=tol,
            update_interval=update_interval,
            scale=scale,
            device=device,
            random_state=random_state,
            verbose=verbose,
            callbacks=callbacks,
        )
        self.gamma = gamma

    def _loss(
        self,
        autoencoder: Autoencoder,
        x: torch.Tensor,
        z: torch.Tensor,
        p: torch.Tensor,
        q: torch.Tensor,
    ) -> torch.Tensor:
        return (autoencoder.decoder(z) - x).square().mean() + self.gamma * divergence(p, q)
