"""Consensus clustering as estimators: members cluster, a consensus function combines, new points follow."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from deccs.clock import Clock
from deccs.consensus.functions import FUNCTIONS
from deccs.consensus.partitions import check_weights
from deccs.data.inputs import as_table, output_dtype
from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.data.scaling import fit_scaler
from deccs.data.source import blocks, dense_block, rows_at_once
from deccs.display import Display
from deccs.labels import NOISE
from deccs.members.agreement import average_agreement, pairwise_agreement
from deccs.members.checks import members_for
from deccs.members.default import Member
from deccs.members.running import cluster
from deccs.network.autoencoder import Autoencoder, encode_exactly
from deccs.network.device import pick_device
from deccs.seeds import generator_for, root_seed, seed_for
from deccs.settings import Pretraining
from deccs.storage import ModelFiles
from deccs.training.start import starting_autoencoder


class ConsensusClustering(ModelFiles, ClusterMixin, BaseEstimator):
    """Members cluster the data as it is, and a consensus function makes one clustering of theirs.

    Parameters
    ----------
    n_clusters : int or None, default=8
        Clusters of the result and of the default members. None: the number most members have.
    members : list of (name, clusterer) pairs, default=None
        As for :class:`deccs.DECCS`: anything with ``fit_predict``, or an array of labels. None: k-means,
        spectral, agglomerative clustering and a Gaussian mixture.
    function : str or callable, default="lwea"
        Name of a function of :mod:`deccs.consensus`, or your own
        ``(base_partitions, n_clusters, weights=..., random_state=...) -> labels``.
    weights : one number per member, or None
        How much each member counts.
    max_points : int, default=11_000
        Above it the members cluster a sample of this size, and the other points get the labels of their
        nearest neighbor in it: single linkage, which is tried first, holds all pairs of what it clusters.
    scale : {"auto", "global", "columns"} or None
        As for :class:`deccs.DECCS`.
    n_jobs : members that run at the same time
    random_state : int, RandomState or None
        Fixes everything.
    verbose : bool
        Tell what is going on.

    Attributes
    ----------
    labels_ : (n_points,)
    base_partitions_ : (n_members, n_sample) what the members say of the sample, -1 for no label
    member_names_ : the members in place
    sample_ : (n_sample,) row numbers the members have clustered; all of them up to ``max_points``
    agreement_ : mean pairwise NMI of the members
    n_clusters_ : clusters found
    scaler_ : what was learned about the columns' scale
    seconds_ : seconds by phase

    Notes
    -----
    New points get the label of their nearest neighbor among those the members have clustered. A linear
    classifier, which serves DECCS because its representation makes clusters compact, cannot tell
    two moons of raw data apart.

    Examples
    --------
    >>> from deccs import datasets
    >>> from deccs.consensus import ConsensusClustering
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = ConsensusClustering(n_clusters=2, random_state=0).fit(X)
    >>> model.labels_.shape, bool((model.predict(X) == model.labels_).all())
    ((120,), True)
    """

    def __init__(
        self,
        n_clusters: int | None = 8,
        *,
        members: Sequence[Member] | None = None,
        function: str | Callable[..., np.ndarray] = "lwea",
        weights: Sequence[float] | None = None,
        max_points: int = 11_000,
        scale: str | None = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.members = members
        self.function = function
        self.weights = weights
        self.max_points = max_points
        self.scale = scale
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: object = None) -> ConsensusClustering:
        """Cluster X. ``y`` is ignored."""
        X = as_table(self, X, reset=True)
        most = self.max_points
        if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 2:
            raise ValueError(f"max_points must be a whole number of at least 2, got {most!r}.")
        function_of(self.function)
        members = members_for(self.n_clusters, self.members, X.shape[0])
        root, clock = root_seed(self.random_state), Clock()
        self._root = root
        with Display(0) if self.verbose else nullcontext() as display:
            say = display.say if display else lambda words: None
            self.scaler_ = fit_scaler(X, self.scale)
            self._prepare(X, root, display)
            self.sample_ = draw_rows(X.shape[0], int(most), generator_for(root, "sample")).numpy()
            self._sample_Z = np.concatenate(
                list(self._represented(X[self.sample_]))
            )  # (n_sample, n_columns)
            clock.lap("embed")
            say(f"{len(members)} members cluster {len(self.sample_)} of {X.shape[0]} points")
            partitions = cluster(
                members, self._sample_Z, self.sample_, root, min_cluster_size=1, n_jobs=self.n_jobs
            )
            self.member_names_, self.base_partitions_ = partitions.names, partitions.labels
            self.agreement_ = average_agreement(pairwise_agreement(partitions.labels))
            clock.lap("cluster")
            say(f"agreement {self.agreement_:.3f}")
            self._combine(members, root)
            clock.lap("combine")
            self.labels_ = self._carried(X)
            clock.lap("carry")
        self.seconds_ = clock.laps
        return self

    def _combine(self, members: Sequence[Member], root: int) -> None:
        """One clustering of the sample from what the members say of it."""
        weights = None
        if self.weights is not None:
            given = dict(
                zip(
                    [name for name, _ in members],
                    check_weights(self.weights, len(members)),
                    strict=True,
                )
            )
            weights = [given[name] for name in self.member_names_]
        function = function_of(self.function)
        seed = seed_for(root, "function")
        labels = function(
            self.base_partitions_, self.n_clusters, weights=weights, random_state=seed
        )
        self._sample_labels = labels  # (n_sample,)
        # A point that no member has labeled follows its neighbor, like a new one.
        self._known = np.flatnonzero(labels != NOISE)
        self.n_clusters_ = int(labels.max()) + 1

    def with_function(
        self, function: str | Callable[..., np.ndarray], X: Any
    ) -> ConsensusClustering:
        """A fitted copy that combines the same members' partitions by another function; X is what was fitted."""
        X = self._checked(X)
        other = copy.copy(self)
        other.function = function
        clock = Clock()
        other._combine(members_for(self.n_clusters, self.members, X.shape[0]), self._root)
        clock.lap("combine")
        other.labels_ = other._carried(X)
        clock.lap("carry")
        other.seconds_ = self.seconds_ | clock.laps
        return other

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each point, new or old: that of its nearest neighbor in the sample."""
        return self._carried(self._checked(X))

    def members_predict(self, X: Any) -> np.ndarray:
        """What each member says: (n_members, n_points), in the order of ``member_names_``."""
        return self.base_partitions_[:, self._nearest(self._checked(X))]

    def _carried(self, X: Any) -> np.ndarray:
        return self._sample_labels[self._nearest(X)]

    def _nearest(self, X: Any) -> np.ndarray:
        """(n_points,) the place in the sample of each point's nearest neighbor; itself, if it is in it."""
        neighbors = NearestNeighbors(n_neighbors=1).fit(self._sample_Z[self._known])
        found = [neighbors.kneighbors(Z, return_distance=False)[:, 0] for Z in self._represented(X)]
        return self._known[np.concatenate(found)]

    def _prepare(self, X: Any, root: int, display: Display | None) -> None:
        """What the representation needs; raw data needs nothing."""

    def _represented(self, X: Any) -> Iterator[np.ndarray]:
        """What members and neighbors see of the points, block by block."""
        for index in blocks(X.shape[0], rows_at_once(X.shape[1])):
            yield self.scaler_(dense_block(X, index))

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "labels_")
        return as_table(self, X, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class AutoencoderConsensus(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ConsensusClustering):
    """:class:`ConsensusClustering` of an autoencoder's embedding.

    Parameters
    ----------
    autoencoder, layers, dropout, pretraining, device
        As for :class:`deccs.DECCS`; a pretrained autoencoder is used as it is.
    n_clusters, members, function, weights, max_points, scale, n_jobs, random_state, verbose
        As for :class:`ConsensusClustering`.

    Attributes
    ----------
    autoencoder_ : the pretrained autoencoder; ``transform`` embeds with it
    """

    def __init__(
        self,
        n_clusters: int | None = 8,
        *,
        members: Sequence[Member] | None = None,
        function: str | Callable[..., np.ndarray] = "lwea",
        weights: Sequence[float] | None = None,
        autoencoder: Autoencoder | tuple[Any, Any] | None = None,
        layers: Sequence[int] | str = "auto",
        dropout: float = 0.0,
        pretraining: Pretraining | None = None,
        max_points: int = 11_000,
        scale: str | None = "auto",
        n_jobs: int | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            n_clusters,
            members=members,
            function=function,
            weights=weights,
            max_points=max_points,
            scale=scale,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.autoencoder = autoencoder
        self.layers = layers
        self.dropout = dropout
        self.pretraining = pretraining
        self.device = device

    def transform(self, X: Any) -> np.ndarray:
        """The embedding of X: (n_points, n_latent)."""
        X = self._checked(X)
        return np.concatenate(list(self._represented(X))).astype(output_dtype(X), copy=False)

    def _prepare(self, X: Any, root: int, display: Display | None) -> None:
        rows = Rows(X, self.scaler_, pick_device(self.device))
        self.autoencoder_ = starting_autoencoder(
            rows,
            root,
            autoencoder=self.autoencoder,
            layers=self.layers,
            dropout=self.dropout,
            pretraining=self.pretraining,
            on_epoch=display.on_epoch if display else lambda epoch: None,
        ).autoencoder.cpu()

    def _represented(self, X: Any) -> Iterator[np.ndarray]:
        return encode_exactly(self.autoencoder_, X, self.scaler_)

    @property
    def _n_features_out(self) -> int:
        return int(self._sample_Z.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def function_of(function: str | Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    if callable(function):
        return function
    if function not in FUNCTIONS:
        raise ValueError(
            f"function must be one of {', '.join(FUNCTIONS)} or your own, got {function!r}."
        )
    return FUNCTIONS[function]
