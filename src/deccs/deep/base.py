"""What the deep methods share: check the input, take or pretrain the autoencoder, train, embed, predict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.cluster import KMeans
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from deccs.data.inputs import as_table, output_dtype
from deccs.data.rows import Rows
from deccs.data.scaling import fit_scaler
from deccs.display import Display
from deccs.events import Epoch, Progress, tell
from deccs.network.autoencoder import Autoencoder, encode, encode_exactly
from deccs.network.device import pick_device, threads_for
from deccs.rules import default_deep_steps as default_steps
from deccs.rules import default_rate
from deccs.seeds import root_seed, seed_for, torch_seeded
from deccs.settings import Pretraining
from deccs.storage import ModelFiles
from deccs.training.start import starting_autoencoder


class DeepClustering(
    ModelFiles, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """The contract of :class:`deccs.DECCS` for a method that trains one network for one clustering.

    A method says how it trains (``_train``: sets ``autoencoder_`` and whatever it learns) and how far an
    embedded point belongs to each cluster (``_belongs``: (n, n_latent) doubles -> (n, n_clusters), rows
    that sum to 1). ``CONTRIBUTING.md`` says how to add one.
    """

    n_clusters: int
    autoencoder: Autoencoder | tuple[Any, Any] | None
    layers: Sequence[int] | str
    dropout: float
    pretraining: Pretraining | None
    n_steps: Any  # a number, or "auto" where the method has a rule
    learning_rate: Any
    batch_size: int
    scale: str | None
    device: str
    random_state: int | np.random.RandomState | None
    verbose: bool
    callbacks: Sequence[Any] | None

    def fit(self, X: Any, y: object = None) -> Any:
        """Learn the embedding and the clustering. ``y`` is ignored."""
        X = as_table(self, X, reset=True)
        self._check(X.shape[0])
        root = root_seed(self.random_state)
        self.scaler_ = fit_scaler(X, self.scale)
        rows = Rows(X, self.scaler_, pick_device(self.device))
        with Display(0) if self.verbose else nullcontext() as display:
            listeners = [*(self.callbacks or []), *([display] if display else [])]
            start = self._start(rows, root, tell(listeners, "on_epoch"))
            with torch_seeded(root, type(self).__name__), threads_for(start, self.batch_size):
                self._train(start, rows, root, tell(listeners, "on_progress"))
        self.autoencoder_.cpu().eval()
        self.labels_ = self._labels(X)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The embedding of X: (n_points, n_latent)."""
        X = self._checked(X)
        return np.concatenate(list(self._embedded(X))).astype(output_dtype(X), copy=False)

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each point, new or old."""
        return self._labels(self._checked(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """How far each point belongs to each cluster: (n_points, n_clusters), rows sum to 1."""
        return np.concatenate([self._belongs(Z) for Z in self._embedded(self._checked(X))])

    def _labels(self, X: Any) -> np.ndarray:
        return np.concatenate([self._belongs(Z).argmax(axis=1) for Z in self._embedded(X)])

    def _check(self, n_points: int) -> None:
        k = self.n_clusters
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"n_clusters must be a whole number of at least 1, got {k!r}.")
        if k > n_points:
            raise ValueError(
                f"n_clusters={k} is more than the number of points, n_samples={n_points}. Ask for fewer."
            )
        if not isinstance(self.batch_size, int | np.integer) or self.batch_size < 2:
            raise ValueError(
                f"batch_size must be a whole number of at least 2, got {self.batch_size!r}."
            )

    def _start(self, rows: Rows, root: int, on_epoch: Callable[[Epoch], None]) -> Autoencoder:
        """The network the training begins with: the user's, or built and pretrained."""
        return starting_autoencoder(
            rows,
            root,
            autoencoder=self.autoencoder,
            layers=self.layers,
            dropout=self.dropout,
            pretraining=self.pretraining,
            on_epoch=on_epoch,
        ).autoencoder

    def _steps(self, n_points: int) -> int:
        return (
            default_steps(n_points, self.batch_size)
            if self.n_steps == "auto"
            else int(self.n_steps)
        )

    def _rate(self, network: Autoencoder) -> float:
        return default_rate(network) if self.learning_rate == "auto" else float(self.learning_rate)

    def _train(
        self,
        autoencoder: Autoencoder,
        rows: Rows,
        root: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        raise NotImplementedError

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _embedded(self, X: Any) -> Iterator[np.ndarray]:
        return encode_exactly(self.autoencoder_, X, self.scaler_)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "labels_")
        return as_table(self, X, reset=False)

    @property
    def _n_features_out(self) -> int:
        with torch.no_grad():
            return int(self.autoencoder_.encoder(torch.zeros(2, self.n_features_in_)).shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags = (
            ClassifierTags()
        )  # scikit-learn's sparse checks read them of all with predict_proba
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def embed_all(autoencoder: Autoencoder, rows: Rows) -> torch.Tensor:
    """(n_points, n_latent), on the CPU."""
    return encode(autoencoder, rows, torch.arange(len(rows)))


def typical_deviation(Z: torch.Tensor) -> float:
    """The root of the mean variance of the columns; 1 where all points are one. Autoencoders choose it as they like.

    >>> typical_deviation(torch.tensor([[1.0, 1.0], [-1.0, 3.0]]))        # variances 1 and 1
    1.0
    """
    return float(Z.var(0, correction=0).mean().sqrt()) or 1.0


def first_centers(Z: torch.Tensor, n_clusters: int, root: int, n_init: int = 20) -> torch.Tensor:
    """Centers of k-means on the pretrained embedding: (n_clusters, n_latent)."""
    with threadpool_limits(1, user_api="openmp"):  # it adds up in the order its threads arrive
        kmeans = KMeans(n_clusters, n_init=n_init, random_state=seed_for(root, "centres")).fit(
            Z.numpy()
        )
    return torch.from_numpy(kmeans.cluster_centers_).float()


def squared_distances(Z: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(n, d), (k, d) -> (n, k), by differences: exact for a point alone as among many."""
    return np.square(Z[:, None, :] - centers[None]).sum(axis=2)
