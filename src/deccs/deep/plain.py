"""Any clusterer on the embedding of a plain autoencoder: the row every deep method has to beat."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.deep.base import DeepClustering
from deccs.events import Progress
from deccs.labels import NOISE
from deccs.members.checks import asked_clusters
from deccs.members.running import fresh_copy
from deccs.network.autoencoder import Autoencoder, encode_exactly
from deccs.seeds import generator_for, seed_for
from deccs.settings import Pretraining
from deccs.storage import NotKept, stored


def cluster_means(Z: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """(n, d), (n,) -> (n_clusters, d): the mean of each cluster, NaN for one without points; noise counts nowhere.

    >>> cluster_means(np.array([[0.0], [2.0], [9.0]]), np.array([0, 0, NOISE]), n_clusters=2)
    array([[ 1.],
           [nan]])
    """
    means = np.full((n_clusters, Z.shape[1]), np.nan)
    for label in np.unique(labels[labels != NOISE]):
        means[label] = Z[labels == label].mean(axis=0)
    return means


def one_hot(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """(n,) -> (n, n_clusters): one for the own cluster; a row of zeros for noise.

    >>> one_hot(np.array([1, NOISE]), 2)
    array([[0., 1.],
           [0., 0.]])
    """
    return (labels[:, None] == np.arange(n_clusters)).astype(float)


@stored
@dataclass(frozen=True, eq=False)
class NearestInSample:
    """Labels of any point by its nearest neighbor in a sample."""

    Z: np.ndarray  # (n_sample, n_latent)
    labels: np.ndarray  # (n_sample,)

    def __post_init__(self) -> None:
        # A tree works with differences: a point finds itself, alone as among many.
        object.__setattr__(
            self, "tree", NearestNeighbors(n_neighbors=1, algorithm="kd_tree").fit(self.Z)
        )

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """(n, n_latent) -> (n,)"""
        return self.labels[self.tree.kneighbors(Z, return_distance=False)[:, 0]]  # type: ignore[attr-defined]


class AutoencoderClustering(DeepClustering):
    """A clusterer on the autoencoder's embedding, which knows nothing of clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Of k-means. A ``clusterer`` brings its own number.
    clusterer : object with ``fit_predict``, default=None
        It sees the embedding. None: k-means, the best of 20 starts.
    max_points : int, default=11_000
        Above it the clusterer sees a sample of this size: many hold all pairs of what they cluster.
    autoencoder, layers, dropout, pretraining, scale, device, random_state, verbose, callbacks
        As for :class:`deccs.deep.DEC`; a pretrained autoencoder is used as it is.

    Attributes
    ----------
    labels_, autoencoder_, scaler_ : as for :class:`deccs.DECCS`; -1 is noise, where the clusterer knows such
    clusterer_ : the fitted clusterer
    sample_ : (n_sample,) row numbers it has clustered; all of them up to ``max_points``
    cluster_centers_ : (n_clusters_, n_latent) mean of each cluster in the sample, NaN for one without points
    n_clusters_ : clusters asked for, or found by a clusterer that nobody asked

    Notes
    -----
    A point that is not in the sample is labeled by the clusterer's own ``predict`` if it has one, else like its
    nearest neighbor in the sample; if that is noise, so is the point. ``predict_proba`` is the clusterer's own if
    it has one, else 1 for the label. The row of a noise point is all zeros.

    Examples
    --------
    >>> from sklearn.cluster import AgglomerativeClustering
    >>> from deccs import datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> single = AgglomerativeClustering(2, linkage="single")
    >>> model = AutoencoderClustering(clusterer=single, pretraining=Pretraining(epochs=2), random_state=0).fit(X)
    >>> model.predict_proba(X).shape, bool((model.predict(X) == model.labels_).all())
    ((120, 2), True)
    """

    batch_size = 256  # for the template; nothing is trained here after the pretraining

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        clusterer: Any = None,
        max_points: int = 11_000,
        autoencoder: Autoencoder | tuple[Any, Any] | None = None,
        layers: Sequence[int] | str = "auto",
        dropout: float = 0.0,
        pretraining: Pretraining | None = None,
        scale: str | None = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.clusterer = clusterer
        self.max_points = max_points
        self.autoencoder = autoencoder
        self.layers = layers
        self.dropout = dropout
        self.pretraining = pretraining
        self.scale = scale
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _check(self, n_points: int) -> None:
        if self.clusterer is None:
            super()._check(n_points)
        elif isinstance(self.clusterer, type) or not hasattr(self.clusterer, "fit_predict"):
            raise ValueError(
                f"clusterer must be an object with fit_predict, like KMeans(8), got {self.clusterer!r}."
            )
        most = self.max_points
        least = max(2, self.n_clusters if self.clusterer is None else 2)
        if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < least:
            raise ValueError(
                f"max_points must be a whole number of at least {least}, got {most!r}."
            )

    def _train(
        self,
        autoencoder: Autoencoder,
        rows: Rows,
        root: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        def report(step: int, centers: np.ndarray) -> None:
            loss = np.square(Z - centers).sum(axis=1).mean()
            on_progress(Progress("AutoencoderClustering", step, 1, float(loss), math.nan))

        self.autoencoder_ = autoencoder
        self.sample_ = draw_rows(
            len(rows), int(self.max_points), generator_for(root, "sample")
        ).numpy()
        Z = np.concatenate(
            list(encode_exactly(autoencoder, rows.X[self.sample_], self.scaler_))
        )  # (n_sample, d)
        report(0, Z.mean(axis=0))
        clusterer = KMeans(self.n_clusters, n_init=20) if self.clusterer is None else self.clusterer
        self.clusterer_ = fresh_copy(
            clusterer, seed_for(seed_for(root, "clusterer"), "random_state")
        )
        with threadpool_limits(
            1, user_api="openmp"
        ):  # k-means adds up in the order its threads arrive
            labels = checked_labels(self.clusterer_.fit_predict(Z), len(Z))  # (n_sample,)
        self.n_clusters_ = max(asked_clusters(clusterer, 1), int(labels.max()) + 1)
        self.cluster_centers_ = cluster_means(Z, labels, self.n_clusters_)
        report(
            1, np.where((labels == NOISE)[:, None], Z.mean(axis=0), self.cluster_centers_[labels])
        )
        if not hasattr(self.clusterer_, "predict"):
            self._nearest = NearestInSample(Z, labels)

    def _learned(self) -> dict[str, Any]:
        """Only a clusterer that predicts is needed for more than its name."""
        learned = super()._learned()
        if not hasattr(self.clusterer_, "predict") and not isinstance(self.clusterer_, NotKept):
            learned["clusterer_"] = NotKept(repr(self.clusterer_))
        return learned

    def _labels(self, X: Any) -> np.ndarray:
        return np.concatenate([self._cluster_of(Z) for Z in self._embedded(X)])

    def _cluster_of(self, Z: np.ndarray) -> np.ndarray:
        """(n, n_latent) -> (n,)"""
        if hasattr(self.clusterer_, "predict"):
            return checked_labels(self.clusterer_.predict(Z), len(Z))
        return self._nearest(Z)

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        if hasattr(self.clusterer_, "predict_proba"):
            return np.asarray(self.clusterer_.predict_proba(Z), dtype=float)
        return one_hot(self._cluster_of(Z), self.n_clusters_)


def checked_labels(labels: Any, n_points: int) -> np.ndarray:
    """Whole numbers from 0, or -1 for noise, one per point."""
    labels = np.asarray(labels)
    if labels.shape != (n_points,) or labels.dtype.kind not in "iu" or labels.min() < NOISE:
        raise ValueError(
            f"The clusterer must label {n_points} points by whole numbers from 0, or -1 for noise; "
            f"it gave shape {labels.shape}: {labels!r:.100}."
        )
    return labels.astype(np.int64)
