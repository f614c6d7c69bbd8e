"""What IEC and AGAE share: k-means members on the raw data, an embedding of their labels, k-means on that."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from deccs.consensus.fuzzy import check_clusters
from deccs.consensus.partitions import DistinctRows, distinct_rows
from deccs.consensus.projections import check_at_least
from deccs.data.inputs import as_table
from deccs.data.scaling import Scaler, fit_scaler
from deccs.data.source import blocks, dense_block, rows_at_once
from deccs.deep.base import DeepClustering, first_centers, squared_distances
from deccs.display import Display
from deccs.events import Progress, tell
from deccs.labels import NOISE, canonical
from deccs.seeds import root_seed, seed_for
from deccs.storage import stored

SAMPLE = (
    5_000  # points a single k-means sees: enough for its centers, and another ground of diversity
)


@stored
@dataclass(frozen=True, eq=False)
class Ensemble:
    """The members as centers, which label any point."""

    centers: list[np.ndarray]  # per member (n_centers, n_features), scaled
    numbers: list[
        np.ndarray
    ]  # per member (n_centers,) number of the cluster, -1 if no training point is in it

    def memberships(self, X: Any, scaler: Scaler) -> Iterator[csr_array]:
        """(n_block, n_all_clusters) of raw rows, new or old, block by block."""
        n_clusters = np.array([numbers.max() + 1 for numbers in self.numbers])
        for nearest in nearest_centers(X, scaler, self.centers):
            labels = [numbers[own] for numbers, own in zip(self.numbers, nearest.T, strict=True)]
            yield membership(np.stack(labels, axis=1), n_clusters)


def kmeans_ensemble(
    X: Any,
    scaler: Scaler,
    n_members: int,
    fewest: int,
    most: int,
    root: int,
    report: Callable[[int, float], None] = lambda member, error: None,
) -> tuple[Ensemble, np.ndarray]:
    """k-means ``n_members`` times, and the base partitions: (n_members, n_points), numbered by first appearance.

    Each has its own sample of the points and its own number of clusters from ``fewest`` to ``most``, which is
    what makes the members differ ("random parameter selection").
    """
    centers = []
    for member in range(n_members):
        own, error = some_centers(X, scaler, fewest, most, seed_for(root, "base partition", member))
        centers.append(own)
        report(member + 1, error)
    nearest = np.concatenate(list(nearest_centers(X, scaler, centers))).T  # (n_members, n_points)
    base_partitions = np.stack([canonical(own) for own in nearest])
    numbers = [np.full(len(own), NOISE) for own in centers]
    for own, raw, labels in zip(numbers, nearest, base_partitions, strict=True):
        own[raw] = labels
    return Ensemble(centers, numbers), base_partitions


def some_centers(
    X: Any, scaler: Scaler, fewest: int, most: int, seed: int
) -> tuple[np.ndarray, float]:
    """(n_centers, n_features) of one k-means on a sample of the points, and the mean squared distance to them."""
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.choice(X.shape[0], min(SAMPLE, X.shape[0]), replace=False))
    n_centers = min(int(rng.integers(fewest, most + 1)), len(sample))
    block = scaler(dense_block(X, sample)).astype(np.float32)  # (n_sample, n_features)
    with (
        warnings.catch_warnings(),
        threadpool_limits(1, user_api="openmp"),
    ):  # same bits, as for DECCS
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points
        kmeans = KMeans(n_centers, n_init=1, max_iter=30, random_state=seed).fit(block)
    return kmeans.cluster_centers_.astype(np.float64), float(kmeans.inertia_) / len(sample)


def nearest_centers(X: Any, scaler: Scaler, centers: list[np.ndarray]) -> Iterator[np.ndarray]:
    """(n_block, n_members): the nearest of each member's centers, block by block."""
    stacked = np.concatenate(centers)  # (n_all_centers, d)
    ends = np.cumsum([len(own) for own in centers])[:-1]
    lengths = np.square(stacked).sum(axis=1)
    for index in blocks(X.shape[0], rows_at_once(max(X.shape[1], len(stacked)))):
        block = scaler(dense_block(X, index))
        distances = (
            lengths - 2 * block @ stacked.T
        )  # without the length of x, which is the same for all
        slack = 1e-12 * (np.square(block).sum(axis=1) + lengths.max())
        yield np.stack(
            [first_least(own, slack) for own in np.split(distances, ends, axis=1)], axis=1
        )


def first_least(values: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """The first column within ``slack`` (a number a row) of the row's least.

    A product of matrices gives a row another last digit among other rows. A point between two centers
    must have the same one alone as among thousands.

    >>> first_least(np.array([[3.0, 1 + 1e-15, 1.0]]), slack=np.array([1e-12]))
    array([1])
    """
    return np.argmax(values <= (values.min(axis=1) + slack)[:, None], axis=1)


def membership(labels: np.ndarray, n_clusters: np.ndarray) -> csr_array:
    """H, (n, n_all_clusters): one where the point is in the cluster; (n, n_members) labels, -1 for none.

    >>> membership(np.array([[0, 1], [1, -1]]), n_clusters=np.array([2, 2])).toarray()
    array([[1., 0., 0., 1.],
           [0., 1., 0., 0.]])
    """
    first = np.cumsum(n_clusters) - n_clusters
    row, member = np.nonzero(labels != NOISE)
    shape = len(labels), int(n_clusters.sum())
    return csr_array((np.ones(len(row)), (row, labels[row, member] + first[member])), shape=shape)


class EnsembleEmbedding(DeepClustering):
    """The contract of the deep methods for an embedding of base partitions instead of an autoencoder's.

    A method says how many clusters a member has at most (``_most_clusters``), how it learns (``_learn``) and
    how it embeds memberships (``_embed``). A point is seen through its base labels alone, so points with the
    same ones are one row, and a new point is embedded like an old one.
    """

    n_partitions: int

    def fit(self, X: Any, y: object = None) -> Any:
        """Cluster X many times, learn the embedding, and cluster that. ``y`` is ignored."""
        X = as_table(self, X, reset=True)
        self._check(X.shape[0])
        root = root_seed(self.random_state)
        self.scaler_ = fit_scaler(X, self.scale)
        with Display(0) if self.verbose else nullcontext() as display:
            on_progress = tell(
                [*(self.callbacks or []), *([display] if display else [])], "on_progress"
            )
            stage = f"{type(self).__name__}, base partitions"
            self.ensemble_, self.base_partitions_ = kmeans_ensemble(
                X,
                self.scaler_,
                self.n_partitions,
                self.n_clusters,
                self._most_clusters(X.shape[0]),
                root,
                lambda member, error: on_progress(
                    Progress(stage, member, self.n_partitions, error, math.nan)
                ),
            )
            rows = distinct_rows(self.base_partitions_)
            Z = self._learn(rows, X, root, on_progress)  # (n_rows, n_components)
        points = torch.from_numpy(Z[rows.row_of]).float()  # (n_points, n_components)
        self.cluster_centers_ = first_centers(points, self.n_clusters, root).double().numpy()
        labels = [self._belongs(Z[some]).argmax(axis=1) for some in blocks(len(Z), 1_000)]
        self.labels_ = np.concatenate(labels)[rows.row_of]
        return self

    def _check(self, n_points: int) -> None:
        check_clusters(self.n_clusters, n_points)
        check_at_least("n_partitions", self.n_partitions, 1)

    def _most_clusters(self, n_points: int) -> int:
        raise NotImplementedError

    def _learn(
        self, rows: DistinctRows, X: Any, root: int, on_progress: Callable[[Progress], None]
    ) -> np.ndarray:
        """Learn, and give back what ``_embed`` gives for the rows."""
        raise NotImplementedError

    def _embed(self, H: csr_array) -> np.ndarray:
        """(n, n_all_clusters) -> (n, n_components) doubles, each row by itself."""
        raise NotImplementedError

    def _embedded(self, X: Any) -> Iterator[np.ndarray]:
        return (self._embed(H) for H in self.ensemble_.memberships(X, self.scaler_))

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        """One for the nearest center: the assignments of k-means are hard."""
        return np.eye(self.n_clusters)[squared_distances(Z, self.cluster_centers_).argmin(axis=1)]

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[1])
