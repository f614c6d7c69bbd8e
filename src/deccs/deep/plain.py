"""Any clusterer on the embedding of a plain autoencoder: the baseline every deep method has to beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture

from deccs.answer import Answer
from deccs.base import AutoencoderEmbedder, Fit
from deccs.checks import NONE, Rule, whole
from deccs.data.sampling import draw_rows
from deccs.data.source import source_of
from deccs.deep.base import DeepClustering, one_hot
from deccs.events import Progress
from deccs.inference.nearest import NearestInSample
from deccs.labels import NOISE
from deccs.members.asking import fresh_copy
from deccs.members.checks import asked_clusters
from deccs.members.guard import guarded
from deccs.seeds import generator_for, seed_for
from deccs.storage import Maybe, NotKept, reals, wholes

CLUSTERER = Rule(
    "an object with fit_predict, like KMeans(8),",
    lambda value: hasattr(value, "fit_predict") and not isinstance(value, type),
)


def cluster_means(Z: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """The mean of each cluster, NaN for one without points: (n, d), (n,) -> (n_clusters, d).

    >>> cluster_means(np.array([[0.0], [2.0], [9.0]]), np.array([0, 0, NOISE]), n_clusters=2)
    array([[ 1.],
           [nan]])
    """
    means = np.full((n_clusters, Z.shape[1]), np.nan)
    for label in np.unique(labels[labels != NOISE]):
        means[label] = Z[labels == label].mean(axis=0)
    return means


@dataclass(eq=False, repr=False, kw_only=True)
class AutoencoderClustering(DeepClustering, AutoencoderEmbedder, method="AE+k-means"):
    """A clusterer on the autoencoder's embedding, which is trained by reconstruction alone.

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
        Of k-means. A ``clusterer`` has its own number.
    clusterer : object with ``fit_predict``, default=None
        It clusters the embedding. None: k-means, the best of 20 starts.
    sample_size : int, default=11_000
        Points the clusterer sees, at most: many clusterers hold all pairs of what they cluster.
    network, pretraining, scale, device, random_state, verbose, checkpoint, callbacks
        As for :class:`deccs.DECCS`; a pretrained autoencoder is used as it is.

    Attributes
    ----------
    labels_, autoencoder_, scaler_ : as for :class:`deccs.DECCS`; -1 where the clusterer says noise
    clusterer_ : the fitted clusterer
    sample_ : (n_sample,) row numbers it has clustered; all rows up to ``sample_size``
    cluster_centers_ : (n_clusters_, n_latent) mean of each cluster in the sample, NaN for an empty one
    n_clusters_ : clusters the clusterer was asked for; those it found, if it takes no such number

    Notes
    -----
    A point outside the sample gets its label from the clusterer's ``predict`` if it has one, else
    from its nearest neighbor in the sample, which may be noise. ``predict_proba`` is the clusterer's
    if it has one, else 1 for the label. The row of a noise point is all zeros.

    Examples
    --------
    >>> from sklearn.cluster import AgglomerativeClustering
    >>> from deccs import Pretraining, datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> single = AgglomerativeClustering(2, linkage="single")
    >>> few = Pretraining(n_epochs=2)
    >>> model = AutoencoderClustering(clusterer=single, pretraining=few, random_state=0).fit(X)
    >>> model.predict_proba(X).shape, bool((model.predict(X) == model.labels_).all())
    ((120, 2), True)
    """

    RENAMED: ClassVar[dict[str, str]] = {
        **AutoencoderEmbedder.RENAMED,
        "max_points": "sample_size",
    }

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "sample_": wholes("n_sample", least=0),
        "clusterer_": KMeans | MiniBatchKMeans | GaussianMixture | NotKept,
        "cluster_centers_": reals("n_clusters", "n_latent", with_nan=True),
        "n_clusters_": Annotated[int, whole(at_least=1)],
        "_nearest": Maybe(NearestInSample),
    }

    clusterer: Annotated[Any, CLUSTERER | NONE] = None
    sample_size: Annotated[int, whole(at_least=2)] = 11_000

    def _check(self, n_points: int) -> None:
        if self.clusterer is not None:  # n_clusters is not used
            return
        super()._check(n_points)
        if self.sample_size < self.n_wanted:
            raise ValueError(
                f"sample_size must be at least n_clusters={self.n_wanted}, got {self.sample_size}."
            )

    def _learn(self, fit: Fit) -> None:
        def tell(step: int, centers: np.ndarray) -> None:
            """The mean squared distance of the points to their centers, (d,) or (n_sample, d)."""
            loss = float(np.square(Z - centers).sum(axis=1).mean())
            fit.listeners.tell("on_progress", Progress("AutoencoderClustering", step, 1, loss))

        self.autoencoder_ = self._start(fit, self._rows_to_train_on(fit)).autoencoder.cpu().eval()
        generator = generator_for(fit.root, "sample")
        self.sample_ = draw_rows(fit.source.shape[0], int(self.sample_size), generator).numpy()
        sample = source_of(fit.source.read(self.sample_))
        Z = np.concatenate(list(self._embedded(sample)))  # (n_sample, n_latent)
        tell(0, Z.mean(axis=0))
        clusterer = KMeans(self.n_wanted, n_init=20) if self.clusterer is None else self.clusterer
        seed = seed_for(seed_for(fit.root, "clusterer"), "random_state")
        self.clusterer_ = fresh_copy(clusterer, seed)
        with guarded(clusterer, seed):
            answer = self.clusterer_.fit_predict(Z.copy(order="K"))  # it may change its copy
        labels = checked_labels(answer, len(Z))  # (n_sample,)
        self.n_clusters_ = max(asked_clusters(clusterer, 1), int(labels.max()) + 1)
        self.cluster_centers_ = cluster_means(Z, labels, self.n_clusters_)
        is_noise = (labels == NOISE)[:, None]
        tell(1, np.where(is_noise, Z.mean(axis=0), self.cluster_centers_[labels]))
        if not hasattr(self.clusterer_, "predict"):
            self._nearest = NearestInSample(Z, labels)

    def _check_learned(self) -> None:
        super()._check_learned()
        if isinstance(self.clusterer_, NotKept) != hasattr(self, "_nearest"):
            raise ValueError("clusterer_ or _nearest must label new points")

    def _learned(self) -> dict[str, Any]:
        """A clusterer without ``predict`` has done its work: files keep its text alone."""
        learned = super()._learned()
        if not hasattr(self.clusterer_, "predict") and not isinstance(self.clusterer_, NotKept):
            learned["clusterer_"] = NotKept(repr(self.clusterer_))
        return learned

    def _answer(self, Z: np.ndarray) -> Answer:
        if hasattr(self.clusterer_, "predict"):
            labels = checked_labels(self.clusterer_.predict(Z), len(Z))
        else:
            labels = self._nearest(Z)
        if hasattr(self.clusterer_, "predict_proba"):
            probabilities = np.asarray(self.clusterer_.predict_proba(Z), dtype=float)
        else:
            probabilities = one_hot(labels, self._n_found)
        return Answer(Z, labels, probabilities, probabilities.max(axis=1))


def checked_labels(labels: Any, n_points: int) -> np.ndarray:
    """Whole numbers from 0, or -1 for noise, one per point."""
    labels = np.asarray(labels)
    if labels.shape != (n_points,) or labels.dtype.kind not in "iu" or labels.min() < NOISE:
        raise ValueError(
            f"The clusterer must give {n_points} points whole numbers from 0, or -1 for noise; "
            f"it gave shape {labels.shape}: {labels!r:.100}."
        )
    return labels.astype(np.int64)
