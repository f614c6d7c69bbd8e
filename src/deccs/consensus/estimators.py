"""Consensus clustering as estimators: members cluster, a consensus function combines, new points follow."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from deccs.answer import Answer
from deccs.base import AutoencoderEmbedder, Clusterer, Fit
from deccs.checks import (
    ANY,
    CALLABLE,
    N_CLUSTERS,
    N_JOBS,
    NONE,
    TIMEOUT,
    check_parameters,
    instance,
    whole,
)
from deccs.clock import Clock
from deccs.consensus.functions import FUNCTIONS
from deccs.consensus.partitions import check_weights
from deccs.counting.cluster_stability import draw
from deccs.data.sampling import draw_rows
from deccs.data.source import RowSource, SelectedRows, each_block
from deccs.estimators import Estimator, Transformer
from deccs.events import Progress
from deccs.inference.nearest import NearestInSample
from deccs.labels import NOISE, align_labels, majority_map
from deccs.members.agreement import average_agreement, pairwise_agreement
from deccs.members.asking import Jobs
from deccs.members.checks import members_for
from deccs.members.default import Member, default_names
from deccs.members.running import cluster
from deccs.seeds import generator_for, seed_for
from deccs.storage import reals, wholes

MOST_MATCHED = 5_000  # clusters of a member in a file: matching them takes two seconds and 200 MB


@dataclass(eq=False, repr=False, kw_only=True)
class ConsensusClustering(Clusterer, Estimator):
    """Members cluster the data as it is, and a consensus function combines their clusterings.

    Parameters
    ----------
    n_clusters : int, "auto", a range or None, default=8
    members : list of (name, clusterer) pairs or None
        As for :class:`deccs.DECCS`.
    function : str or callable, default="lwea"
        Name of a function of :mod:`deccs.consensus`, or your own
        ``(base_partitions, n_clusters, weights=..., random_state=...) -> labels``.
    weights : one number per member, or None
        How much each member counts.
    sample_size : int, default=11_000
        Points the members cluster, at most: single linkage, which the agglomerative member tries
        first, holds all pairs of them. All other points get the label of their nearest neighbor in
        this sample.
    n_jobs : int or None
        Members that run at the same time.
    member_timeout, scale, random_state, verbose, callbacks
        As for :class:`deccs.DECCS`.

    Attributes
    ----------
    labels_ : (n_points,)
    base_partitions_ : (n_members, n_sample) the members' labels of the sample, -1 for no label
    member_names_ : the members that took part
    sample_ : (n_sample,) row numbers the members have clustered; all rows up to ``sample_size``
    agreement_ : average pairwise NMI of the members
    n_clusters_ : clusters found
    scaler_ : what was learned about the columns' scale
    seconds_ : seconds by phase

    Notes
    -----
    New points get the label of their nearest neighbor among the points the members have clustered.
    DECCS uses linear classifiers instead, because its representation makes clusters compact; they
    could not separate two moons of raw data.

    Examples
    --------
    >>> from deccs import datasets
    >>> from deccs.consensus import ConsensusClustering
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = ConsensusClustering(n_clusters=2, random_state=0).fit(X)
    >>> model.labels_.shape, bool((model.predict(X) == model.labels_).all())
    ((120,), True)
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "n_clusters_": Annotated[int, whole(at_least=1)],
        "sample_": wholes("n_sample", least=0),
        "base_partitions_": wholes("n_members", "n_sample"),
        "member_names_": tuple[str, ...],
        "agreement_": float,
        "seconds_": dict[str, float],
        "_root": Annotated[int, whole(at_least=0)],
        "_sample_Z": reals("n_sample", "n_columns"),
        "_sample_labels": wholes("n_sample"),
        "_known": wholes("n_known", least=0, below="n_sample"),
    }
    RENAMED: ClassVar[dict[str, str]] = {"max_points": "sample_size"}

    n_clusters: Annotated[int | str | range | None, N_CLUSTERS | NONE] = field(  # type: ignore[assignment]
        default=8, kw_only=False
    )
    members: Annotated[Sequence[Member] | None, ANY] = None
    function: Annotated[
        str | Callable[..., np.ndarray], CALLABLE | instance(str, words="the name of one")
    ] = "lwea"
    weights: Annotated[Sequence[float] | None, ANY] = None
    sample_size: Annotated[int, whole(at_least=2)] = 11_000
    n_jobs: Annotated[int | None, N_JOBS] = None
    member_timeout: Annotated[float | None, TIMEOUT] = None

    def members_predict(self, X: Any) -> np.ndarray:
        """Each member's labels, numbered alike: (n_members, n_points), ordered as ``member_names_``."""
        return np.concatenate(
            [answer.members for answer in self._answers(self._checked(X))], axis=1
        )

    def consensus_confidence(self, X: Any) -> np.ndarray:
        """The share of the members that confirm the label of each point: (n_points,).

        A member confirms it if most points of its cluster have this label. Members count by their
        weights; a member without a label for the point does not confirm it.
        """
        return np.concatenate([answer.confidence for answer in self._answers(self._checked(X))])

    def with_function(self, function: str | Callable[..., np.ndarray], X: Any) -> Self:
        """A fitted copy that combines the same base partitions by another function.

        X is the data of the fit.
        """
        source = self._checked(X)
        other = copy.copy(self)
        other.function = function
        check_parameters(other)
        clock = Clock()
        other._combine(self._root)
        clock.lap("combine")
        other.labels_ = np.concatenate([answer.labels for answer in other._answers(source)])
        other.__dict__.pop("_stability", None)
        other._drawn = draw(source, other.scaler_, other.labels_, other._root)
        clock.lap("carry")
        other.seconds_ = self.seconds_ | clock.laps
        return other

    def _check_learned(self) -> None:
        super()._check_learned()
        partitions, labels = self.base_partitions_, self._sample_labels
        if len(partitions) != len(self.member_names_) or not partitions.size:
            raise ValueError("base_partitions_ must have a row for each of member_names_")
        if not np.array_equal(self._known, np.flatnonzero(labels != NOISE)) or not len(self._known):
            raise ValueError("_known must name the points with a label")
        # Each member's clusters are matched with those of the result before each answer.
        widest = np.maximum(partitions.max(axis=1), labels.max()) + 1.0  # (n_members,)
        if np.square(widest).sum() > MOST_MATCHED**2:
            raise ValueError(f"base_partitions_ has too many clusters: up to {widest.max():,.0f}")

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        function_named(self.function)
        check_weights(self.weights, len(members_for(self.n_wanted, self.members, n_points)))

    def _learn(self, fit: Fit) -> None:
        clock, n_points = Clock(), fit.source.shape[0]
        members = members_for(self.n_wanted, self.members, n_points)
        self._root = fit.root
        self._prepare(fit)
        generator = generator_for(fit.root, "sample")
        self.sample_ = draw_rows(n_points, int(self.sample_size), generator).numpy()
        sample = SelectedRows(fit.source, self.sample_)
        self._sample_Z = np.concatenate(list(self._embedded(sample)))  # (n_sample, n_columns)
        clock.lap("embed")
        fit.listeners.tell("on_progress", Progress("members", 0, len(members)))
        partitions = cluster(
            members,
            self._sample_Z,
            self.sample_,
            fit.root,
            min_cluster_size=1,
            jobs=Jobs(self.n_jobs, self.member_timeout, fit.group),
        )
        fit.listeners.tell("on_progress", Progress("members", len(members), len(members)))
        self.member_names_, self.base_partitions_ = partitions.names, partitions.labels
        self.agreement_ = average_agreement(pairwise_agreement(partitions.labels))
        clock.lap("cluster")
        self._combine(fit.root)
        clock.lap("combine")
        self.seconds_ = clock.laps

    def _prepare(self, fit: Fit) -> None:
        """Learn the representation; data as it is needs none."""

    def _combine(self, root: int) -> None:
        """One clustering of the sample from those of the members."""
        labels = function_named(self.function)(
            self.base_partitions_,
            self.n_wanted,
            weights=None if self.weights is None else self._member_weights(),
            random_state=seed_for(root, "function"),
        )
        self._sample_labels = labels  # (n_sample,)
        # A point that no member has labeled follows its neighbor, like a new point.
        self._known = np.flatnonzero(labels != NOISE)
        self.n_clusters_ = int(labels.max()) + 1

    def _member_weights(self) -> np.ndarray:
        """(n_members,) of the members that took part."""
        names = (
            default_names(self.n_wanted)
            if self.members is None
            else [name if isinstance(name, str) else name[0] for name in self.members]
        )
        weight_of = dict(zip(names, check_weights(self.weights, len(names)), strict=True))
        return np.array([weight_of[name] for name in self.member_names_])

    def _embedded(self, source: RowSource) -> Iterator[np.ndarray]:
        """What members and neighbors see of the rows, block by block."""
        return (self.scaler_(block) for _, block in each_block(source))

    def _learned_answers(self, source: RowSource) -> Iterator[Answer]:
        known = self._known
        labels = self._sample_labels[known]  # (n_known,)
        partitions = self.base_partitions_[:, known]  # (n_members, n_known)
        members = np.stack([align_labels(partition, labels) for partition in partitions])
        confirms = np.stack([is_confirmed(partition, labels) for partition in partitions])
        confidence = np.average(confirms, axis=0, weights=self._member_weights())
        nearest = NearestInSample(self._sample_Z[known], labels)
        for Z in self._embedded(source):
            places = nearest.places(Z)  # (n,)
            yield Answer(
                Z=Z,
                labels=labels[places],
                confidence=confidence[places],
                members=members[:, places],
            )

    def _learned_training_answers(self, fit: Fit) -> Iterator[Answer]:
        clock = Clock()
        yield from self._learned_answers(fit.source)
        clock.lap("carry")
        self.seconds_ |= clock.laps


@dataclass(eq=False, repr=False, kw_only=True)
class AutoencoderConsensus(Transformer, ConsensusClustering, AutoencoderEmbedder):
    """:class:`ConsensusClustering` of an autoencoder's embedding.

    Parameters
    ----------
    network, pretraining, device, checkpoint
        As for :class:`deccs.DECCS`; a pretrained autoencoder is used as it is.
    n_clusters, members, function, weights, sample_size, n_jobs, member_timeout
        As for :class:`ConsensusClustering`.
    scale, random_state, verbose, callbacks
        As for :class:`ConsensusClustering`.

    Attributes
    ----------
    autoencoder_ : the pretrained autoencoder; ``transform`` embeds with it
    labels_, base_partitions_, member_names_, ... : as for :class:`ConsensusClustering`
    """

    RENAMED: ClassVar[dict[str, str]] = {
        **ConsensusClustering.RENAMED,
        **AutoencoderEmbedder.RENAMED,
    }

    def _prepare(self, fit: Fit) -> None:
        self.autoencoder_ = self._start(fit, self._rows_to_train_on(fit)).autoencoder.cpu().eval()

    def _embedded(self, source: RowSource) -> Iterator[np.ndarray]:
        return AutoencoderEmbedder._embedded(self, source)


def function_named(function: str | Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A consensus function by its name; your own function is returned as it is."""
    if callable(function):
        return function
    if function not in FUNCTIONS:
        raise ValueError(
            f"function must be a function or one of {', '.join(FUNCTIONS)}, got {function!r}."
        )
    return FUNCTIONS[function]


def is_confirmed(partition: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n_points,) whether most points of the point's cluster have the point's label; not for noise.

    >>> is_confirmed(np.array([0, 0, 0, 1, -1]), np.array([2, 2, 1, 1, 1]))
    array([ True,  True, False,  True, False])
    """
    has_cluster = partition != NOISE
    clusters, labels = partition[has_cluster], labels[has_cluster]
    label_of = majority_map(clusters, labels, int(partition.max()) + 1)  # (n_clusters,)
    confirmed = np.zeros(len(partition), dtype=bool)
    confirmed[has_cluster] = label_of[clusters] == labels
    return confirmed
