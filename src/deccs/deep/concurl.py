"""ConCURL (Regatti, Deshmukh, Manavoglu and Dogan 2021): two views of an image, many projections, one clustering."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from deccs.data.rows import Rows
from deccs.deep.augment import draw_motion, move
from deccs.deep.base import DeepClustering, embed_all, first_centers, squared_distances
from deccs.events import Epoch, Progress
from deccs.network.autoencoder import Autoencoder
from deccs.seeds import generator_for, torch_seeded
from deccs.storage import stored_layer
from deccs.training.batches import endless_batches


def shape_of_images(image_shape: Sequence[int] | str, n_features: int) -> tuple[int, int, int]:
    """(channels, height, width) of a row.

    >>> shape_of_images("auto", 784), shape_of_images((2, 5), 10), shape_of_images((3, 32, 32), 3072)
    ((1, 28, 28), (1, 2, 5), (3, 32, 32))
    """
    if isinstance(image_shape, str) and image_shape == "auto":
        side = math.isqrt(n_features)
        if side * side == n_features:
            return 1, side, side
        warnings.warn(
            f"Rows of {n_features} columns are no square images; taken as strips of height 1. "
            "Set image_shape=(height, width) or (channels, height, width).",
            stacklevel=4,
        )
        return 1, 1, n_features
    sizes = () if isinstance(image_shape, str) else tuple(image_shape)
    if (
        len(sizes) not in (2, 3)
        or any(size < 1 for size in sizes)
        or math.prod(sizes) != n_features
    ):
        raise ValueError(
            f"image_shape must be 'auto', (height, width) or (channels, height, width) with "
            f"{n_features} values in all, one per column; got {image_shape!r}."
        )
    channels, height, width = (1, *sizes)[-3:]
    return channels, height, width


def small_convolutions(channels: int, height: int, width: int, n_out: int = 128) -> nn.Sequential:
    """Three layers of stride 2 with 16, 32 and 64 channels, then a linear one: (n, c, h, w) -> (n, n_out)."""
    layers: list[nn.Module] = []
    for n_in, n_next in ((channels, 16), (16, 32), (32, 64)):
        layers += [
            nn.Conv2d(n_in, n_next, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(n_next),
            nn.ReLU(),
        ]
        height, width = math.ceil(height / 2), math.ceil(width / 2)
    height, width = (
        min(height, 4),
        min(width, 4),
    )  # large images are averaged, so that the linear layer stays small
    layers += [
        nn.AdaptiveAvgPool2d((height, width)),
        nn.Flatten(),
        nn.Linear(64 * height * width, n_out, bias=False),
    ]
    return nn.Sequential(*layers, nn.BatchNorm1d(n_out), nn.ReLU())


@torch.no_grad()
def balanced(scores: torch.Tensor, epsilon: float = 0.05, n_iterations: int = 3) -> torch.Tensor:
    """Soft assignments from scores (..., n, k) such that every cluster gets about n / k (Sinkhorn and Knopp).

    The columns are brought to one sum, then the rows to 1, and again; in logarithms, which do not overflow.

    >>> balanced(torch.tensor([[0.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    q = scores / epsilon
    for _ in range(n_iterations):
        q = q - q.logsumexp(-2, keepdim=True)
        q = q - q.logsumexp(-1, keepdim=True)
    return q.exp()


def telling_apart(z: torch.Tensor, temperature: float = 0.5) -> torch.Tensor:
    """The representation loss: an image's other view must be found among those of the whole batch.

    ``z``: (2, batch, n_latent) of unit length. A cross-entropy over cosines, from each view to the other.
    """
    cosines = z[0] @ z[1].T / temperature  # (batch, batch)
    own = torch.arange(len(cosines), device=z.device)
    return (cross_entropy(cosines, own) + cross_entropy(cosines.T, own)) / 2


def consensus_loss(
    z: torch.Tensor, prototypes: torch.Tensor, projections: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Each projected space must predict, from one view, the assignment of the other: a mean cross-entropy.

    ``z``: (2, batch, d), ``prototypes``: (k, d), ``projections``: (m, d, d_small). The assignments to be
    predicted are those of the whole space, balanced over the batch.
    """
    target = balanced(normalize(z, dim=-1) @ normalize(prototypes, dim=-1).T)  # (2, batch, k)
    points = normalize(z @ projections[:, None], dim=-1)  # (m, 2, batch, d_small)
    centers = normalize(prototypes @ projections, dim=-1)[:, None]  # (m, 1, k, d_small)
    log_p = (points @ centers.mT / temperature).log_softmax(-1)  # (m, 2, batch, k)
    return -(target.flip(0) * log_p).sum(-1).mean()


@stored_layer
class UnitLength(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return normalize(x, dim=-1)


class ConCURL(DeepClustering):
    """Consensus clustering with unsupervised representation learning, for images.

    Each step shows the network two views of every image in a batch: turned, sheared, shifted and scaled at
    random. The first half of the steps learns features by which a view is told apart from other images.
    k-means on them gives the prototypes. The second half adds the consensus: random projections of features
    and prototypes make an ensemble of soft assignments, and each member must predict from one view the
    assignment of the other.

    The authors train a ResNet-18 for 300 epochs, which is out of reach on a CPU. The default here is a small
    convolutional network and a few dozen epochs. They start from random prototypes and run k-means after
    training; here it comes before the consensus, so that the consensus works on clusters that are there.

    Parameters
    ----------
    n_clusters : int, default=8
    image_shape : "auto", (height, width) or (channels, height, width)
        Of the image in each row of the table, channel by channel and line by line. "auto": square and gray,
        or a strip of height 1 (with a warning) where the number of columns is no square.
    encoder : torch.nn.Module, optional
        (n, channels, height, width) -> (n, any number of features). It is copied. Default: three
        convolutions of 16, 32 and 64 channels.
    n_latent : int, default=64
        Length of the vectors that are compared, a linear map of the encoder's features.
    n_projections : int, default=16
        Members of the ensemble: Gaussian projections to 0.6 of ``n_latent``.
    lambda_consensus : float, default=1.0
        Weight of the consensus; the representation loss has weight 1.
    temperature : float, default=0.1
        Soft assignments are softmax(cosine / temperature).
    n_steps : int or "auto"
        "auto": 30 passes over the data, at least 1,000 and at most 4,000 steps.
    learning_rate, batch_size
        Adam's; the rate follows one cycle, up and down.
    scale, device, random_state, verbose, callbacks
        As for :class:`deccs.deep.DEC`.

    Attributes
    ----------
    labels_, scaler_ : as for :class:`deccs.DECCS`
    autoencoder_ : its ``encoder`` maps scaled rows to vectors of unit length; there is no decoder
    cluster_centers_ : (n_clusters, n_latent), the prototypes, of unit length
    n_iter_ : steps trained

    Examples
    --------
    >>> X = np.random.default_rng(0).random((40, 64))                                # 8 x 8 pixels
    >>> model = ConCURL(2, n_steps=4, random_state=0).fit(X)
    >>> model.predict_proba(X).shape, bool((model.predict(X) == model.labels_).all())
    ((40, 2), True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        image_shape: Sequence[int] | str = "auto",
        encoder: nn.Module | None = None,
        n_latent: int = 64,
        n_projections: int = 16,
        lambda_consensus: float = 1.0,
        temperature: float = 0.1,
        n_steps: int | str = "auto",
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        scale: str | None = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.image_shape = image_shape
        self.encoder = encoder
        self.n_latent = n_latent
        self.n_projections = n_projections
        self.lambda_consensus = lambda_consensus
        self.temperature = temperature
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
        for name in ("n_latent", "n_projections"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be a whole number of at least 1, got {getattr(self, name)!r}."
                )

    def _start(self, rows: Rows, root: int, on_epoch: Callable[[Epoch], None]) -> Autoencoder:
        """The untrained map from rows to vectors of unit length, with no decoder."""
        shape = shape_of_images(self.image_shape, rows.n_features)
        with torch_seeded(root, "initial weights"):
            encoder = (
                small_convolutions(*shape)
                if self.encoder is None
                else copy.deepcopy(self.encoder).float()
            )
            projection = nn.Linear(features_out(encoder, shape), self.n_latent)
        whole = nn.Sequential(nn.Unflatten(1, shape), encoder, projection, UnitLength())
        return Autoencoder(whole, nn.Identity()).to(rows.device)

    def _train(
        self,
        autoencoder: Autoencoder,
        rows: Rows,
        root: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        to_images, *layers = autoencoder.encoder.children()
        embed = nn.Sequential(*layers)  # images -> unit vectors
        prototypes = nn.Parameter(torch.zeros(self.n_clusters, self.n_latent, device=rows.device))
        smaller = math.ceil(0.6 * self.n_latent)
        draws = (self.n_projections, self.n_latent, smaller)
        projections = torch.randn(draws, generator=generator_for(root, "projections")).to(
            rows.device
        )
        n_steps = self._steps(len(rows))
        optimizer = torch.optim.Adam([*embed.parameters(), prototypes], lr=self.learning_rate)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, self.learning_rate, total_steps=n_steps + 1
        )
        batches = endless_batches(
            torch.arange(len(rows)), self.batch_size, generator_for(root, "batches")
        )
        motions = generator_for(root, "motions")
        total = torch.zeros(())
        for step in range(1, n_steps + 1):
            if step == n_steps // 2 + 1:
                with torch.no_grad():
                    prototypes.copy_(
                        first_centers(embed_all(autoencoder, rows), self.n_clusters, root, n_init=5)
                    )
            autoencoder.train()
            images = to_images(rows[next(batches)]).repeat(2, 1, 1, 1)  # (2 batch, c, h, w)
            z = embed(move(images, draw_motion(len(images), motions))).unflatten(0, (2, -1))
            loss = telling_apart(z)
            if step > n_steps // 2:
                loss = loss + self.lambda_consensus * consensus_loss(
                    z, prototypes, projections, self.temperature
                )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.detach().cpu()
            if step % 100 == 0 or step == n_steps:
                on_progress(
                    Progress(
                        "ConCURL", step, n_steps, float(total) / ((step - 1) % 100 + 1), math.nan
                    )
                )
                total = torch.zeros(())
        self.n_iter_ = n_steps
        self.autoencoder_ = autoencoder
        self.cluster_centers_ = final_prototypes(
            embed_all(autoencoder, rows), prototypes.detach().cpu(), root
        )

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        # Of unit vectors: |z - c|^2 = 2 - 2 cosine. The 2 cancels in the softmax.
        return softmax(
            -squared_distances(Z, self.cluster_centers_) / (2 * self.temperature), axis=1
        )


def final_prototypes(Z: torch.Tensor, prototypes: torch.Tensor, root: int) -> np.ndarray:
    """(n, d), (k, d) -> (k, d) of unit length: the prototypes, or those of k-means if some hold no point."""
    if len((Z @ normalize(prototypes).T).argmax(1).unique()) < len(prototypes):
        prototypes = first_centers(Z, len(prototypes), root, n_init=5)
    return normalize(prototypes.double()).numpy()


@torch.no_grad()
def features_out(encoder: nn.Module, shape: tuple[int, int, int]) -> int:
    """How many features an encoder gives for images of this shape."""
    try:
        found = encoder.cpu().eval()(torch.zeros(2, *shape))
    except RuntimeError as error:
        raise ValueError(f"The encoder does not take images of shape {shape}: {error}") from error
    if found.ndim != 2:
        raise ValueError(
            f"The encoder must give (n, n_features), got {tuple(found.shape)} for n = 2."
        )
    return int(found.shape[1])
