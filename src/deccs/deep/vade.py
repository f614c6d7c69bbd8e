"""VaDE (Jiang, Zheng, Tan, Tang and Zhou 2017): an autoencoder whose embedding is a mixture of Gaussians."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits
from torch import nn

from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.data.source import rows_at_once
from deccs.deep.base import DeepClustering, embed_all, typical_deviation
from deccs.deep.coordinates import linear_at, round_clusters
from deccs.events import Progress
from deccs.network.autoencoder import Autoencoder
from deccs.seeds import generator_for, seed_for
from deccs.settings import Pretraining
from deccs.training.batches import endless_batches
from deccs.training.best import Best

LOG_2_PI = math.log(2 * math.pi)


def log_normal(x: torch.Tensor, mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:
    """log N(x; mean, diag(variance)), summed over the last dimension.

    >>> log_normal(torch.zeros(1), torch.ones(1), torch.zeros(1))                # -log(2 pi) / 2 - 1 / 2
    tensor(-1.4189)
    """
    return -0.5 * (LOG_2_PI + log_variance + (x - mean).square() / log_variance.exp()).sum(-1)


def expected_log_normal(
    q_mean: torch.Tensor,
    q_log_variance: torch.Tensor,
    mean: torch.Tensor,
    log_variance: torch.Tensor,
) -> torch.Tensor:
    """Mean of log N(z; mean, diag(variance)) over z ~ N(q_mean, diag(q_variance)), which has a closed form."""
    return log_normal(q_mean, mean, log_variance) - 0.5 * (q_log_variance - log_variance).exp().sum(
        -1
    )


def entropy(log_variance: torch.Tensor) -> torch.Tensor:
    """Of N(., diag(variance)): how much q(z | x) leaves open.

    >>> entropy(torch.zeros(1))                                                  # (log(2 pi) + 1) / 2
    tensor(1.4189)
    """
    return 0.5 * (LOG_2_PI + 1 + log_variance).sum(-1)


class Mixture(nn.Module):
    """p(c) and p(z | c): weight, mean and diagonal variance of each cluster, as numbers without bounds.

    The means are learned in units of the first deviation within clusters: embeddings differ in scale, and a
    rate that suits one would leave the means of another where they are, or throw them about.
    """

    unit: torch.Tensor  # (d,)

    def __init__(self, weights: torch.Tensor, means: torch.Tensor, variances: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("unit", variances.mean(0).sqrt())
        self.logits = nn.Parameter(weights.log())  # (k,)
        self.places = nn.Parameter(means / self.unit)  # (k, d)
        self.log_variances = nn.Parameter(variances.log())  # (k, d)

    @property
    def means(self) -> torch.Tensor:
        return self.places * self.unit

    def log_weights(self) -> torch.Tensor:
        return self.logits.log_softmax(0)

    def log_responsibilities(self, z: torch.Tensor) -> torch.Tensor:
        """log gamma = log p(c | z) (Eq. 16): (n, d) -> (n, k)."""
        joint = self.log_weights() + log_normal(z[:, None], self.means, self.log_variances)
        return joint.log_softmax(1)


def divergence(
    q_mean: torch.Tensor, q_log_variance: torch.Tensor, log_gamma: torch.Tensor, mixture: Mixture
) -> torch.Tensor:
    """KL(q(z, c | x) || p(z, c)), the ELBO but for the reconstruction: (n, d), (n, d), (n, k) -> (n,)."""
    log_z = expected_log_normal(
        q_mean[:, None], q_log_variance[:, None], mixture.means, mixture.log_variances
    )
    open_clusters = log_gamma.exp() * (log_gamma - mixture.log_weights() - log_z)  # (n, k)
    return open_clusters.sum(1) - entropy(q_log_variance)


class Posterior(nn.Module):
    """q(z | x): the encoder gives the mean; a new head beside its last layer gives the log-variance.

    The output of an encoder that does not end in a linear layer is what its head looks at instead.
    """

    def __init__(self, encoder: nn.Module, log_variance: torch.Tensor) -> None:
        super().__init__()
        n_hidden = n_latent = len(log_variance)
        hidden: nn.Module = encoder
        mean: nn.Module = nn.Identity()
        last = linear_at(encoder, -1)
        if last is not None:
            hidden, mean, n_hidden = (
                nn.Sequential(*list(encoder.children())[:-1]),
                last,
                last.in_features,
            )
        self.hidden, self.mean = hidden, mean
        self.log_variance = nn.Linear(n_hidden, n_latent)
        nn.init.zeros_(self.log_variance.weight)  # at first the same for all points
        self.log_variance.bias.data.copy_(log_variance)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.hidden(x)
        return self.mean(hidden), self.log_variance(hidden)  # (batch, d) each


def first_mixture(Z: torch.Tensor, n_clusters: int, root: int, max_points: int = 20_000) -> Mixture:
    """Fitted to the pretrained embedding (n, d), with variances along its axes."""
    some = Z[draw_rows(len(Z), max_points, generator_for(root, "mixture"))].double() / (
        unit := typical_deviation(Z)
    )
    found = GaussianMixture(
        n_clusters,
        covariance_type="diag",
        reg_covar=1e-4,
        n_init=3,
        random_state=seed_for(root, "mixture"),
    )
    with threadpool_limits(
        1, user_api="openmp"
    ):  # k-means, where it starts, adds up in the order its threads arrive
        found.fit(some.numpy())
    weights, means, variances = (
        torch.from_numpy(part).float()
        for part in (found.weights_, found.means_ * unit, found.covariances_ * unit**2)
    )
    return Mixture(weights.clamp(min=1e-6), means, variances)


def noise_variance(variance: float, n_features: int, n_latent: int) -> float:
    """The variance of p(x | z): that of a column, less where there are few columns per dimension of the embedding.

    A point's reconstruction is worth at most n_features / 2 * variance / noise, the price of its embedding grows
    with n_latent. At the full variance a dimension must tell much about 25 columns to be worth it, and data with
    fewer than that would lose its embedding.

    >>> noise_variance(1.0, 784, 10), noise_variance(1.0, 16, 10)
    (1.0, 0.064)
    """
    return variance * min(1.0, n_features / n_latent / 25)


def n_alive(labels: torch.Tensor, n_clusters: int) -> int:
    """Clusters with at least a hundredth of an even share of the points.

    >>> n_alive(torch.tensor([0] * 500 + [1] * 500 + [2]), n_clusters=3)
    2
    """
    return int(
        (torch.bincount(labels, minlength=n_clusters) * 100 * n_clusters >= len(labels)).sum()
    )


class VaDE(DeepClustering):
    """Variational deep embedding: a variational autoencoder with a mixture of Gaussians as its prior.

    A point is thought to be made by drawing a cluster, then its embedding from that cluster's Gaussian, then
    the point by the decoder, with noise. Encoder, decoder and mixture are trained together for the evidence
    lower bound (ELBO): to give the points back, from embeddings that look drawn from the mixture. The first
    mixture is fitted to the pretrained embedding, which gets coordinates in which its clusters are round, and
    starts out nearly certain.

    A state in which a cluster has lost its points is not kept: training goes back to the last good one and on
    at half the rate.

    Parameters
    ----------
    n_clusters : int, default=8
    output_variance : float or "auto"
        Of the noise around the decoder's output, per column of the scaled data: the larger it is, the more the
        mixture counts against the reconstruction. "auto": see :func:`noise_variance`.
    n_steps : int or "auto"
        "auto": 30 passes over the data, at least 1,000 and at most 4,000 steps.
    learning_rate, batch_size
        Adam's. The mixture learns ten times as fast.
    autoencoder, layers, dropout, pretraining, scale, device, random_state, verbose, callbacks
        As for :class:`deccs.deep.DEC`. A pretrained encoder gives the mean of q(z | x); its variance is learned
        by a second head beside the encoder's last layer.

    Attributes
    ----------
    labels_, autoencoder_, scaler_ : as for :class:`deccs.DECCS`; ``transform`` gives the mean of q(z | x)
    weights_, means_, covariances_ : (n_clusters,), (n_clusters, n_latent) twice; the mixture
    cluster_centers_ : the same as ``means_``
    n_iter_ : steps trained
    n_collapses_ : how often training went back

    Examples
    --------
    >>> from deccs import datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = VaDE(2, n_steps=10, pretraining=Pretraining(epochs=2), random_state=0).fit(X)
    >>> model.covariances_.shape, bool((model.predict(X) == model.labels_).all())
    ((2, 2), True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        output_variance: float | str = "auto",
        autoencoder: Autoencoder | tuple[Any, Any] | None = None,
        layers: Sequence[int] | str = "auto",
        dropout: float = 0.0,
        pretraining: Pretraining | None = None,
        n_steps: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float = 3e-4,
        scale: str | None = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.output_variance = output_variance
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

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        given = self.output_variance
        if given != "auto" and (isinstance(given, str) or not 0 < given < math.inf):
            raise ValueError(f"output_variance must be 'auto' or a number above 0, got {given!r}.")

    def _train(
        self,
        autoencoder: Autoencoder,
        rows: Rows,
        root: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        Z = round_clusters(autoencoder, rows, self.n_clusters, root)  # (n_points, n_latent)
        mixture = first_mixture(Z, self.n_clusters, root)
        # A hundredth of the variance within clusters: nearly the pretrained autoencoder, which has none.
        within = mixture.logits.exp() @ mixture.log_variances.exp()  # (n_latent,)
        posterior = Posterior(autoencoder.encoder, (within / 100).detach().log()).to(rows.device)
        mixture = mixture.to(rows.device)
        log_noise = torch.tensor(math.log(self._noise(rows, Z.shape[1], root)), device=rows.device)
        learners = autoencoder, posterior.log_variance, mixture
        optimizer, good = adam(*learners, self.learning_rate), Best(*learners)
        batches = endless_batches(
            torch.arange(len(rows)), self.batch_size, generator_for(root, "batches")
        )
        n_steps = self._steps(len(rows))
        interval = max(100, 2 * math.ceil(len(rows) / self.batch_size))
        labels = assigned(Z, mixture)
        n_alive_first, total, last, self.n_collapses_ = (
            n_alive(labels, self.n_clusters),
            torch.zeros(()),
            0,
            0,
        )
        autoencoder.train()
        for step in range(1, n_steps + 1):
            x = rows[next(batches)]
            mean, log_variance = posterior(x)  # (batch, n_latent) each
            z = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
            reconstruction = log_normal(x, autoencoder.decoder(z), log_noise)  # (batch,)
            price = divergence(mean, log_variance, mixture.log_responsibilities(z), mixture)
            loss = (price - reconstruction).mean()  # -ELBO
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach().cpu()
            if step % interval == 0 or step == n_steps:
                now = assigned(embed_all(autoencoder, rows), mixture)
                if bool(total.isfinite()) and n_alive(now, self.n_clusters) >= n_alive_first:
                    good.keep()
                else:
                    good.restore()
                    now, self.n_collapses_ = labels, self.n_collapses_ + 1
                    optimizer = adam(*learners, self.learning_rate / 2**self.n_collapses_)
                changed = float((now != labels).float().mean())
                on_progress(Progress("VaDE", step, n_steps, float(total) / (step - last), changed))
                labels, total, last = now, torch.zeros(()), step
                autoencoder.train()
        self.n_iter_ = n_steps
        self.autoencoder_ = autoencoder
        self.weights_ = mixture.log_weights().detach().cpu().double().softmax(0).numpy()
        self.means_ = self.cluster_centers_ = mixture.means.detach().cpu().double().numpy()
        self.covariances_ = mixture.log_variances.detach().cpu().double().exp().numpy()

    def _noise(self, rows: Rows, n_latent: int, root: int) -> float:
        if self.output_variance != "auto":
            return float(self.output_variance)
        some = draw_rows(len(rows), rows_at_once(rows.n_features), generator_for(root, "noise"))
        variance = float(rows[some].var(0, correction=0).mean())
        return noise_variance(variance or 1.0, rows.n_features, n_latent)

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        """gamma at the mean of q(z | x)."""
        square = np.square(Z[:, None, :] - self.means_) / self.covariances_  # (n, k, d)
        return softmax(
            np.log(self.weights_) - 0.5 * (np.log(self.covariances_) + square).sum(axis=2), axis=1
        )


def adam(
    autoencoder: nn.Module, log_variance: nn.Module, mixture: Mixture, rate: float
) -> torch.optim.Optimizer:
    """The mixture has few numbers, which at the network's rate lag behind the embedding they describe."""
    network: dict[str, Any] = {
        "params": [*autoencoder.parameters(), *log_variance.parameters()],
        "lr": rate,
    }
    return torch.optim.Adam([network, {"params": list(mixture.parameters()), "lr": 10 * rate}])


@torch.no_grad()
def assigned(Z: torch.Tensor, mixture: Mixture) -> torch.Tensor:
    """(n, d) -> (n,) the most likely cluster, on the CPU."""
    parts = [
        mixture.log_responsibilities(z.to(mixture.means.device)).argmax(1).cpu()
        for z in Z.split(4096)
    ]
    return torch.cat(parts)
