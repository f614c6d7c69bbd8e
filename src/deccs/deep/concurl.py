"""ConCURL (Regatti, Deshmukh, Manavoglu and Dogan 2021): two views of an image, many projections, one clustering."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from scipy.special import softmax
from torch import nn
from torch.nn.functional import cross_entropy, normalize
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR

from deccs.base import Fit
from deccs.checks import AUTO, NONE, Rule, instance, is_widths, number, whole
from deccs.data.augment import draw_motion, move
from deccs.data.rows import Rows
from deccs.deep.base import TrainedMethod, batches_of, first_centers, squared_distances
from deccs.network.autoencoder import Autoencoder, encode
from deccs.rules import default_image_shape
from deccs.seeds import generator_for, torch_seeded
from deccs.storage import stored_layer
from deccs.training.engine import Learner

IMAGE_SHAPE = AUTO | Rule(
    "(height, width) or (channels, height, width)",
    lambda value: is_widths(value) and len(value) in (2, 3),
)


def shape_of_images(image_shape: Sequence[int] | str, n_features: int) -> tuple[int, int, int]:
    """(channels, height, width) of a row.

    >>> shape_of_images("auto", 784), shape_of_images((2, 5), 10), shape_of_images((3, 32, 32), 3072)
    ((1, 28, 28), (1, 2, 5), (3, 32, 32))
    """
    if isinstance(image_shape, str):
        shape = default_image_shape(n_features)
        if shape[1] != shape[2]:
            warnings.warn(
                f"{n_features} columns are not a square image; the rows are used as images of height 1. "
                "Set image_shape=(height, width) or (channels, height, width).",
                stacklevel=5,
            )
        return shape
    if math.prod(image_shape) != n_features:
        raise ValueError(
            f"image_shape must have {n_features} values in all, one per column, "
            f"got {image_shape!r} with {math.prod(image_shape)}."
        )
    channels, height, width = (1, *image_shape)[-3:]
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
    # Large images are averaged, so that the linear layer stays small.
    height, width = min(height, 4), min(width, 4)
    layers += [
        nn.AdaptiveAvgPool2d((height, width)),
        nn.Flatten(),
        nn.Linear(64 * height * width, n_out, bias=False),
    ]
    return nn.Sequential(*layers, nn.BatchNorm1d(n_out), nn.ReLU())


@torch.no_grad()
def balanced(scores: torch.Tensor, epsilon: float = 0.05, n_iterations: int = 3) -> torch.Tensor:
    """Soft assignments from scores (..., n, k) such that every cluster gets about n / k (Sinkhorn and Knopp).

    Columns are scaled to a sum of 1, then rows, and again; in logarithms, which do not overflow.

    >>> balanced(torch.tensor([[0.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    q = scores / epsilon
    for _ in range(n_iterations):
        q = q - q.logsumexp(-2, keepdim=True)
        q = q - q.logsumexp(-1, keepdim=True)
    return q.exp()


def info_nce(z: torch.Tensor, temperature: float = 0.5) -> torch.Tensor:
    """The representation loss (InfoNCE): the other view of an image must be found among those of the whole batch.

    ``z``: (2, batch, n_latent) of unit length. A cross-entropy over cosines, from each view to the other.
    """
    cosines = z[0] @ z[1].T / temperature  # (batch, batch)
    same = torch.arange(len(cosines), device=z.device)  # the image itself
    return (cross_entropy(cosines, same) + cross_entropy(cosines.T, same)) / 2


def consensus_loss(
    z: torch.Tensor, prototypes: torch.Tensor, projections: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Each projected space must predict, from one view, the assignment of the other: a mean cross-entropy.

    ``z``: (2, batch, d), ``prototypes``: (k, d), ``projections``: (m, d, d_small). The targets are the
    assignments in the whole space, balanced over the batch.
    """
    target = balanced(normalize(z, dim=-1) @ normalize(prototypes, dim=-1).T)  # (2, batch, k)
    points = normalize(z @ projections[:, None], dim=-1)  # (m, 2, batch, d_small)
    centers = normalize(prototypes @ projections, dim=-1)[:, None]  # (m, 1, k, d_small)
    log_p = (points @ centers.mT / temperature).log_softmax(-1)  # (m, 2, batch, k)
    return -(target.flip(0) * log_p).sum(-1).mean()


@stored_layer
class UnitLength(nn.Module):
    """Each row divided by its length."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return normalize(x, dim=-1)


@dataclass(eq=False, repr=False, kw_only=True)
class ConCURL(TrainedMethod, method="ConCURL"):
    """Consensus clustering with unsupervised representation learning, for images.

    Each step shows the network two views of every image in a batch: rotated, sheared, shifted and scaled at
    random. The first half of the steps learns features by which a view is told apart from other images.
    k-means on them gives the prototypes. The second half adds the consensus: random projections of features
    and prototypes make an ensemble of soft assignments, and each member must predict from one view the
    assignment of the other.

    The authors train a ResNet-18 for 300 epochs, which is out of reach on a CPU. The default here is a small
    convolutional network and a few dozen epochs. They start from random prototypes and run k-means after
    training. Here k-means comes before the consensus, so that the consensus starts from real clusters.

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
    image_shape : "auto", (height, width) or (channels, height, width)
        Of the image in each row of the table, channel by channel and line by line. "auto": square and gray,
        or of height 1 (with a warning) if the number of columns is not a square.
    encoder : torch.nn.Module, optional
        (n, channels, height, width) -> (n, any number of features). It is copied. Default: three
        convolutions of 16, 32 and 64 channels.
    n_latent : int, default=64
        Length of the vectors that are compared, a linear map of the encoder's features.
    n_projections : int, default=16
        Members of the ensemble: Gaussian projections to 0.6 of ``n_latent``.
    lambda_cons : float, default=1.0
        Weight of the consensus; the representation loss has weight 1.
    temperature : float, default=0.1
        Soft assignments are softmax(cosine / temperature).
    n_steps : int or "auto"
        "auto": 30 passes over the data, at least 1,000 and at most 4,000 steps.
    learning_rate : float, default=0.001
        Adam's, at its peak; it follows one cycle, up and down.
    batch_size : int, default=128
    scale, device, random_state, verbose, checkpoint, callbacks
        As for :class:`deccs.DECCS`.

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

    RENAMED: ClassVar[dict[str, str]] = {"lambda_consensus": "lambda_cons"}

    image_shape: Annotated[Sequence[int] | str, IMAGE_SHAPE] = "auto"
    encoder: Annotated[nn.Module | None, NONE | instance(nn.Module, words="a torch module")] = None
    n_latent: Annotated[int, whole(at_least=1)] = 64
    n_projections: Annotated[int, whole(at_least=1)] = 16
    lambda_cons: Annotated[float, number(at_least=0)] = 1.0
    temperature: Annotated[float, number(above=0)] = 0.1
    batch_size: Annotated[int, whole(at_least=2)] = 128
    learning_rate: Annotated[float, number(above=0)] = 1e-3

    def _network(self, fit: Fit, rows: Rows) -> Autoencoder:
        """The untrained map from rows to vectors of unit length, without a decoder."""
        if rows.n_inputs > rows.n_features and not isinstance(self.image_shape, str):
            raise ValueError(
                f"image_shape={self.image_shape!r} needs rows without missing values. Fill them first."
            )
        shape = shape_of_images(self.image_shape, rows.n_inputs)
        with torch_seeded(fit.root, "initial weights"):
            encoder = (
                small_convolutions(*shape)
                if self.encoder is None
                else copy.deepcopy(self.encoder).float()
            )
            projection = nn.Linear(features_out(encoder, shape), self.n_latent)
        layers = nn.Sequential(nn.Unflatten(1, shape), encoder, projection, UnitLength())
        return Autoencoder(layers, nn.Identity()).to(rows.device)

    def _train(self, autoencoder: Autoencoder, rows: Rows, fit: Fit) -> None:
        learner = TwoViews(autoencoder, rows, self, fit.root)
        self._run(learner, rows, fit)
        Z, prototypes = encode(autoencoder, rows), learner.prototypes.detach().cpu()
        self.cluster_centers_ = final_prototypes(Z, prototypes, fit.root)

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        # Of unit vectors: |z - c|^2 = 2 - 2 cosine. The 2 cancels in the softmax.
        return softmax(
            -squared_distances(Z, self.cluster_centers_) / (2 * self.temperature), axis=1
        )


class TwoViews(Learner):
    """Tell images apart by two views of each; in the second half, agree on their clusters too."""

    stage = "ConCURL"
    learned = ("autoencoder", "prototypes", "has_prototypes")
    random = ("batches", "motions")

    def __init__(self, autoencoder: Autoencoder, rows: Rows, method: ConCURL, root: int) -> None:
        self.autoencoder, self.rows, self.method, self.root = autoencoder, rows, method, root
        self.device = rows.device
        to_images, *layers = autoencoder.encoder.children()
        self.to_images, self.embed = to_images, nn.Sequential(*layers)  # rows -> images -> vectors
        self.half_time = method._n_steps(len(rows)) // 2
        prototypes = torch.zeros(method.n_wanted, method.n_latent, device=rows.device)
        self.prototypes, self.has_prototypes = nn.Parameter(prototypes), False
        shape = method.n_projections, method.n_latent, math.ceil(0.6 * method.n_latent)
        projections = torch.randn(shape, generator=generator_for(root, "projections"))
        self.projections = projections.to(rows.device)
        self.batches = batches_of(rows, method.batch_size, root)
        self.motions = generator_for(root, "motions")
        autoencoder.train()

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam([*self.embed.parameters(), self.prototypes], lr=rate)]

    def schedule(self, optimizer: torch.optim.Optimizer, n_steps: int) -> LRScheduler:
        return OneCycleLR(optimizer, optimizer.param_groups[0]["lr"], total_steps=n_steps + 1)

    def before_step(self, step: int) -> None:
        if step > self.half_time and not self.has_prototypes:
            Z = encode(self.autoencoder, self.rows)  # (n_points, n_latent)
            centers = first_centers(Z, len(self.prototypes), self.root, n_init=5)
            self.prototypes.data.copy_(centers)
            self.has_prototypes = True
            self.autoencoder.train()

    def loss(self, step: int) -> torch.Tensor:
        rows = self.rows[next(self.batches)]
        images = self.to_images(rows).repeat(2, 1, 1, 1)  # (2 batch, channels, height, width)
        views = move(images, draw_motion(len(images), self.motions))
        z = self.embed(views).unflatten(0, (2, -1))  # (2, batch, n_latent)
        loss = info_nce(z)
        if not self.has_prototypes:
            return loss
        consensus = consensus_loss(z, self.prototypes, self.projections, self.method.temperature)
        return loss + self.method.lambda_cons * consensus


def final_prototypes(Z: torch.Tensor, prototypes: torch.Tensor, root: int) -> np.ndarray:
    """(n, d), (k, d) -> (k, d) of unit length: the prototypes, or k-means' centers if some have no points."""
    if len((Z @ normalize(prototypes).T).argmax(1).unique()) < len(prototypes):
        prototypes = first_centers(Z, len(prototypes), root, n_init=5)
    return normalize(prototypes.double()).numpy()


@torch.no_grad()
def features_out(encoder: nn.Module, shape: tuple[int, int, int]) -> int:
    """How many features an encoder gives for images of this shape."""
    try:
        features = encoder.cpu().eval()(torch.zeros(2, *shape))
    except RuntimeError as error:
        raise ValueError(f"The encoder does not take images of shape {shape}: {error}") from error
    if features.ndim != 2:
        raise ValueError(
            f"The encoder must give (n, n_features), got {tuple(features.shape)} for n = 2."
        )
    return int(features.shape[1])
