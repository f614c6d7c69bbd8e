"""What the deep methods share: the network they start from, the training, the answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.cluster import KMeans

from deccs.answer import Answer
from deccs.base import AutoencoderEmbedder, Embedder, SoftClusterer, TrainedEmbedder
from deccs.base import Fit as Fit  # a method needs it, too
from deccs.checks import AUTO, number, whole
from deccs.data.rows import Rows
from deccs.data.sampling import EveryRow
from deccs.data.source import blocks
from deccs.estimators import SoftEstimator, Transformer
from deccs.network.autoencoder import Autoencoder
from deccs.network.device import threads_for
from deccs.rules import default_deep_steps, default_rate
from deccs.seeds import generator_for, reproducible_threads, seed_for, torch_seeded
from deccs.storage import Maybe, reals
from deccs.training.batches import Batches
from deccs.training.engine import Learner, Trained, train

MOST_DIFFERENCES = 2**24  # of coordinates, that are held at once
METHODS: dict[str, type[DeepClustering]] = {}  # by the name in the paper, filled by the classes


class DeepClustering(Transformer, SoftClusterer, Embedder, SoftEstimator):
    """A deep method. ``class DEC(..., method="DEC")`` puts it into ``METHODS``, and so on the command line.

    A method says how well a represented point belongs to each cluster (``_belongs``).
    """

    def __init_subclass__(cls, method: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if method:
            METHODS[method] = cls

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        """(n, n_latent) doubles -> (n, n_clusters), rows sum to 1; each row by itself."""
        raise NotImplementedError

    def _answer(self, Z: np.ndarray) -> Answer:
        belongs = self._belongs(Z)
        return Answer(Z, belongs.argmax(axis=1), belongs, belongs.max(axis=1))


@dataclass(eq=False, repr=False, kw_only=True)
class TrainedMethod(DeepClustering, TrainedEmbedder):
    """A method that trains a network in steps.

    A method says which network the training begins with (``_network``), makes a
    :class:`deccs.training.engine.Learner` from it, and keeps what was learned (``_train``).
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "n_iter_": int,
        "cluster_centers_": Maybe(reals("n_wanted", "n_latent")),
    }

    n_steps: Annotated[int | str, AUTO | whole(at_least=0)] = "auto"
    batch_size: Annotated[int, whole(at_least=2)] = 256
    learning_rate: Annotated[float | str, AUTO | number(above=0)] = "auto"

    def _learn(self, fit: Fit) -> None:
        rows = self._rows_to_train_on(fit)
        autoencoder = self._network(fit, rows)
        name = type(self).__name__
        with torch_seeded(fit.root, name), threads_for(autoencoder, self.batch_size):
            self._train(autoencoder, rows, fit)
        self.autoencoder_ = autoencoder.cpu().eval()

    @abstractmethod
    def _network(self, fit: Fit, rows: Rows) -> Autoencoder:
        """The network the training begins with, on the device of the rows."""

    @abstractmethod
    def _train(self, autoencoder: Autoencoder, rows: Rows, fit: Fit) -> None:
        """Train, and keep what was learned; the autoencoder itself is kept by the base class."""

    def _run(self, learner: Learner, rows: Rows, fit: Fit, *, check_every: int = 100) -> Trained:
        """The training of a learner for the method's number of steps."""
        trained = train(
            learner,
            0 if self.n_clusters == 1 else self._n_steps(len(rows)),
            rate=self._rate(learner),
            check_every=check_every,
            listeners=fit.listeners,
            checkpoint=fit.checkpoint,
        )
        self.n_iter_ = trained.n_steps
        return trained

    def _n_steps(self, n_points: int) -> int:
        if self.n_steps == "auto":
            return default_deep_steps(n_points, self.batch_size)
        return int(self.n_steps)

    def _rate(self, learner: Any) -> float:
        if self.learning_rate == "auto":
            return default_rate(learner.autoencoder)
        return float(self.learning_rate)


@dataclass(eq=False, repr=False, kw_only=True)
class AutoencoderMethod(TrainedMethod, AutoencoderEmbedder):
    """A method that trains a pretrained autoencoder further. ``CONTRIBUTING.md`` says how to add one."""

    def _network(self, fit: Fit, rows: Rows) -> Autoencoder:
        return self._start(fit, rows).autoencoder


def batches_of(rows: Rows, size: int, root: int) -> Batches:
    """All rows in batches, in a new order on every pass."""
    return Batches(EveryRow(len(rows)), size, generator_for(root, "batches"))


def typical_deviation(Z: torch.Tensor) -> float:
    """The root of the mean variance of the columns; 1 where all points are the same.

    >>> typical_deviation(torch.tensor([[1.0, 1.0], [-1.0, 3.0]]))        # variances 1 and 1
    1.0
    """
    return float(Z.var(0, correction=0).mean().sqrt()) or 1.0


def first_centers(Z: torch.Tensor, n_clusters: int, root: int, n_init: int = 20) -> torch.Tensor:
    """Centers of k-means on the pretrained embedding: (n_clusters, n_latent)."""
    kmeans = KMeans(n_clusters, n_init=n_init, random_state=seed_for(root, "centres"))
    with reproducible_threads():
        kmeans.fit(Z.numpy())
    return torch.from_numpy(kmeans.cluster_centers_).float()


def one_hot(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """1 for the point's cluster, a row of zeros for noise: (n,) -> (n, n_clusters).

    >>> one_hot(np.array([1, -1]), 2)
    array([[0., 1.],
           [0., 0.]])
    """
    return (labels[:, None] == np.arange(n_clusters)).astype(float)


def squared_distances(Z: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(n, d), (k, d) -> (n, k), by differences: exact for a point alone as among many."""
    at_once = max(1, MOST_DIFFERENCES // max(centers.size, 1))
    parts = [
        np.square(Z[rows, None, :] - centers[None]).sum(axis=2) for rows in blocks(len(Z), at_once)
    ]
    return np.concatenate(parts) if len(parts) != 1 else parts[0]
