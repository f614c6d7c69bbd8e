"""VaDE (Jiang, Zheng, Tan, Tang and Zhou 2017): an autoencoder whose embedding is a mixture of Gaussians."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from scipy.special import softmax
from sklearn.mixture import GaussianMixture
from torch import nn

from deccs.base import Fit
from deccs.checks import AUTO, number
from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.data.source import blocks, rows_at_once
from deccs.deep.base import (
    MOST_DIFFERENCES,
    AutoencoderMethod,
    batches_of,
    typical_deviation,
)
from deccs.deep.coordinates import linear_at, round_clusters
from deccs.network.autoencoder import Autoencoder, encode
from deccs.network.reconstruction import SQUARED, error_for
from deccs.rules import default_output_variance
from deccs.seeds import generator_for, reproducible_threads, seed_for
from deccs.storage import reals
from deccs.training.engine import Check, Learner

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
    at_mean = log_normal(q_mean, mean, log_variance)
    return at_mean - 0.5 * (q_log_variance - log_variance).exp().sum(-1)


def entropy(log_variance: torch.Tensor) -> torch.Tensor:
    """The entropy of N(., diag(variance)).

    >>> entropy(torch.zeros(1))                                                  # (log(2 pi) + 1) / 2
    tensor(1.4189)
    """
    return 0.5 * (LOG_2_PI + 1 + log_variance).sum(-1)


class Mixture(nn.Module):
    """p(c) and p(z | c): weight, mean and diagonal variance of each cluster, as unbounded parameters.

    The means are learned in units of the first deviation within clusters. Embeddings differ in scale: a rate
    that suits one would be far too small or far too large for another.
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
    """KL(q(z, c | x) || p(z, c)), the ELBO without the reconstruction: (n, d), (n, d), (n, k) -> (n,)."""
    log_z = expected_log_normal(
        q_mean[:, None], q_log_variance[:, None], mixture.means, mixture.log_variances
    )
    open_clusters = log_gamma.exp() * (log_gamma - mixture.log_weights() - log_z)  # (n, k)
    return open_clusters.sum(1) - entropy(q_log_variance)


class Posterior(nn.Module):
    """q(z | x): the encoder gives the mean; a new head beside its last layer gives the log-variance.

    If the encoder does not end in a linear layer, the input of the head is the encoder's output.
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


def first_mixture(
    Z: torch.Tensor, n_clusters: int, root: int, sample_size: int = 20_000
) -> Mixture:
    """Fitted to the pretrained embedding (n, d), with variances along its axes."""
    unit = typical_deviation(Z)
    sample = draw_rows(len(Z), sample_size, generator_for(root, "mixture"))
    model = GaussianMixture(
        n_clusters,
        covariance_type="diag",
        reg_covar=1e-4,
        n_init=3,
        random_state=seed_for(root, "mixture"),
    )
    with reproducible_threads():  # it starts from k-means
        model.fit((Z[sample].double() / unit).numpy())
    weights, means, variances = (
        torch.from_numpy(part).float()
        for part in (model.weights_, model.means_ * unit, model.covariances_ * unit**2)
    )
    return Mixture(weights.clamp(min=1e-6), means, variances)


def n_alive(labels: torch.Tensor, n_clusters: int) -> int:
    """Clusters with at least a hundredth of an even share of the points.

    >>> n_alive(torch.tensor([0] * 500 + [1] * 500 + [2]), n_clusters=3)
    2
    """
    counts = torch.bincount(labels, minlength=n_clusters)
    return int((counts * 100 * n_clusters >= len(labels)).sum())


@dataclass(eq=False, repr=False, kw_only=True)
class VaDE(AutoencoderMethod, method="VaDE"):
    """Variational deep embedding: a variational autoencoder with a mixture of Gaussians as its prior.

    The model of a point: draw a cluster, then an embedding from that cluster's Gaussian, then the point itself
    by the decoder, with noise. Encoder, decoder and mixture are trained together to maximize the evidence lower
    bound (ELBO): to reconstruct the points from embeddings that look drawn from the mixture. The first mixture
    is fitted to the pretrained embedding, in coordinates in which its clusters are round, and the variance of
    q(z | x) starts out small.

    When a cluster has lost its points, training goes back to the last good state and continues at half the rate.

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
    output_variance : float or "auto"
        Variance of the noise around the decoder's output, per column of the scaled data. The larger it is, the
        more the mixture counts against the reconstruction. "auto": see :func:`deccs.rules.default_output_variance`.
    n_steps : int or "auto"
        "auto": 30 passes over the data, at least 1,000 and at most 4,000 steps.
    learning_rate : float, default=0.0003
        Adam's. The mixture learns ten times as fast.
    batch_size : int, default=256
    network, pretraining, scale, device, random_state, verbose, checkpoint, callbacks
        As for :class:`deccs.DECCS`. The encoder gives the mean of q(z | x); its variance is learned by a second
        head beside the encoder's last layer.

    Attributes
    ----------
    labels_, autoencoder_, scaler_ : as for :class:`deccs.DECCS`; ``transform`` gives the mean of q(z | x)
    weights_, means_, covariances_ : (n_clusters,), (n_clusters, n_latent) twice; the mixture
    cluster_centers_ : the same as ``means_``
    n_iter_ : steps trained
    n_collapses_ : how often training went back

    Examples
    --------
    >>> from deccs import Pretraining, datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = VaDE(2, n_steps=10, pretraining=Pretraining(n_epochs=2), random_state=0).fit(X)
    >>> model.covariances_.shape, bool((model.predict(X) == model.labels_).all())
    ((2, 2), True)
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "weights_": reals("n_wanted", least=0),
        "means_": reals("n_wanted", "n_latent"),
        "covariances_": reals("n_wanted", "n_latent", least=1e-100),
        "n_collapses_": int,
    }

    output_variance: Annotated[float | str, AUTO | number(above=0)] = "auto"
    learning_rate: Annotated[float, number(above=0)] = 3e-4

    def _train(self, autoencoder: Autoencoder, rows: Rows, fit: Fit) -> None:
        learner = VariationalMixture(autoencoder, rows, self, fit.root)
        interval = max(100, 2 * math.ceil(len(rows) / self.batch_size))
        self.n_collapses_ = self._run(learner, rows, fit, check_every=interval).n_rescues
        mixture = learner.mixture
        self.weights_ = mixture.log_weights().detach().cpu().double().softmax(0).numpy()
        self.means_ = self.cluster_centers_ = mixture.means.detach().cpu().double().numpy()
        self.covariances_ = mixture.log_variances.detach().cpu().double().exp().numpy()

    def _noise(self, rows: Rows, n_latent: int, root: int) -> float:
        """The variance of p(x | z)."""
        if self.output_variance != "auto":
            return float(self.output_variance)
        sample = draw_rows(len(rows), rows_at_once(rows.n_features), generator_for(root, "noise"))
        variance = float(rows[sample].var(0, correction=0).mean())
        return default_output_variance(variance or 1.0, rows.n_features, n_latent)

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        """gamma at the mean of q(z | x)."""
        at_once = max(1, MOST_DIFFERENCES // self.means_.size)
        parts = [self._log_density(Z[rows]) for rows in blocks(len(Z), at_once)]
        return softmax(np.concatenate(parts), axis=1)

    def _log_density(self, Z: np.ndarray) -> np.ndarray:
        """(n, n_clusters) log p(z, c), up to a constant."""
        square = np.square(Z[:, None, :] - self.means_) / self.covariances_  # (n, k, d)
        density: np.ndarray = (np.log(self.covariances_) + square).sum(axis=2)
        return np.log(self.weights_) - 0.5 * density


class VariationalMixture(Learner):
    """Maximize the ELBO; a state in which a cluster has lost its points is not kept."""

    stage = "VaDE"
    learned = ("autoencoder", "log_variance", "mixture", "labels")
    random = ("batches",)

    def __init__(self, autoencoder: Autoencoder, rows: Rows, method: VaDE, root: int) -> None:
        Z = round_clusters(autoencoder, rows, method.n_wanted, root)  # (n_points, n_latent)
        mixture = first_mixture(Z, method.n_wanted, root)
        # A hundredth of the variance within clusters: nearly the pretrained autoencoder, which has none.
        within = mixture.logits.exp() @ mixture.log_variances.exp()  # (n_latent,)
        self.autoencoder, self.rows, self.device = autoencoder, rows, rows.device
        self.error = error_for(rows)
        self.posterior = Posterior(autoencoder.encoder, (within / 100).detach().log()).to(
            rows.device
        )
        self.log_variance = self.posterior.log_variance  # the only part beside the autoencoder
        self.mixture = mixture.to(rows.device)
        noise = method._noise(rows, Z.shape[1], root)
        self.log_noise = torch.tensor(math.log(noise), device=rows.device)
        self.batches = batches_of(rows, method.batch_size, root)
        self.n_clusters = method.n_wanted
        self.labels = assigned(Z, self.mixture)
        self.n_alive_at_first = n_alive(self.labels, method.n_wanted)
        autoencoder.train()

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        network: dict[str, Any] = {
            "params": [*self.autoencoder.parameters(), *self.log_variance.parameters()],
            "lr": rate,
        }
        # The mixture has few numbers, which at the network's rate lag behind the embedding they describe.
        mixture: dict[str, Any] = {"params": list(self.mixture.parameters()), "lr": 10 * rate}
        return [torch.optim.Adam([network, mixture])]

    def loss(self, step: int) -> torch.Tensor:
        x = self.rows[next(self.batches)]
        mean, log_variance = self.posterior(x)  # (batch, n_latent) each
        z = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        reconstruction = self._log_likelihood(
            x, self.autoencoder.decoder(z)
        )  # (batch,), or its mean
        log_gamma = self.mixture.log_responsibilities(z)
        price = divergence(mean, log_variance, log_gamma, self.mixture)
        return (price - reconstruction).mean()  # -ELBO

    def _log_likelihood(self, x: torch.Tensor, back: torch.Tensor) -> torch.Tensor:
        """log p(x | z); of a table up to a constant."""
        if self.error is SQUARED:
            return log_normal(x, back, self.log_noise)
        return -0.5 * self.rows.n_features * self.error(back, x) / self.log_noise.exp()

    def check(self, step: int) -> Check:
        before = self.labels
        self.labels = assigned(encode(self.autoencoder, self.rows), self.mixture)
        self.autoencoder.train()
        changed = float((self.labels != before).float().mean())
        lost = n_alive(self.labels, self.n_clusters) < self.n_alive_at_first
        return Check(changed=changed, lost=lost)


@torch.no_grad()
def assigned(Z: torch.Tensor, mixture: Mixture) -> torch.Tensor:
    """(n, d) -> (n,) the most likely cluster, on the device of the mixture."""
    device = mixture.unit.device
    parts = [mixture.log_responsibilities(z.to(device)).argmax(1) for z in Z.split(4096)]
    return torch.cat(parts)
