"""Ensembles of random projections: many views of few dimensions, each clustered softly, then brought together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.cluster.hierarchy import linkage as merge
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from deccs.consensus.fuzzy import check_clusters, check_fuzzifier, fuzzy_c_means, memberships
from deccs.data.inputs import as_table
from deccs.data.scaling import Scaler, fit_scaler
from deccs.data.source import blocks, dense_block, rows_at_once
from deccs.members.agreement import average_agreement, pairwise_agreement
from deccs.seeds import root_seed, seed_for
from deccs.storage import ModelFiles, stored

MOST_AT_ONCE = 5_000  # points whose pairs are held: 0.2 GB for the linkage
DIMENSIONS = (5, 10, 20, 50, 100)  # q that "auto" tries
TRIAL_PROJECTIONS = 5
TRIAL_POINTS = 2_000
LINKAGES = ("complete", "average", "single")
COVARIANCES = ("full", "tied", "diag", "spherical")
VERSIONS = ("concatenate", "average")


@stored
@dataclass(frozen=True, eq=False)
class FuzzyCenters:
    """The fuzzy partition of one projection, for points old and new."""

    centers: np.ndarray  # (n_clusters, q)
    fuzzifier: float

    def predict_proba(self, Z: np.ndarray) -> np.ndarray:
        return memberships(Z, self.centers, self.fuzzifier)


@stored
@dataclass(frozen=True, eq=False)
class Projection:
    """One view of the data and its soft clustering."""

    matrix: np.ndarray  # (n_features, q)
    clustering: Any  # predict_proba: (n, q) -> (n, n_clusters)


class RandomProjections(ModelFiles, ClusterMixin, BaseEstimator):
    """What both estimators share: project, cluster each projection softly, aggregate on a sample, assign all."""

    n_clusters: int
    n_projections: int
    n_components: int | str
    sample_size: int | float | str
    scale: str | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None

    def fit(self, X: Any, y: object = None) -> Any:
        """Cluster X. ``y`` is ignored."""
        X = as_table(self, X, reset=True)
        n_points = X.shape[0]
        self.n_clusters_ = check_clusters(self.n_clusters, n_points)
        check_at_least("n_projections", self.n_projections, 1)
        if self.n_components != "auto":
            check_at_least("n_components", self.n_components, 1, " or 'auto'")
        self._check()
        size = check_sample_size(self.sample_size, n_points, self.n_clusters_)
        root = root_seed(self.random_state)

        self.scaler_ = fit_scaler(X, self.scale)
        sample = draw_sample(n_points, size, seed_for(root, "sample"))  # (n_sample,)
        self.n_components_ = self._dimension(X, sample, root)
        self.projections_ = self._project(X, sample, self.n_components_, self.n_projections, root)
        F = np.concatenate(
            [self._soft(block) for block in scaled_blocks(X, self.scaler_, sample, self._width())]
        )
        self._aggregate(F, root)
        self.labels_ = self._labels(X)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each point, new or old."""
        check_is_fitted(self, "projections_")
        return self._labels(as_table(self, X, reset=False))

    def predict_proba(self, X: Any) -> np.ndarray:
        """How far each point belongs to each cluster: (n_points, n_clusters_), rows sum to 1."""
        check_is_fitted(self, "projections_")
        return np.concatenate(list(self._belonging(as_table(self, X, reset=False))))

    def _labels(self, X: Any) -> np.ndarray:
        return np.concatenate([belongs.argmax(axis=1) for belongs in self._belonging(X)])

    def _belonging(self, X: Any) -> Iterator[np.ndarray]:
        for block in scaled_blocks(X, self.scaler_, None, self._width()):
            yield self._belongs(self._soft(block))

    def _soft(self, block: np.ndarray) -> np.ndarray:
        """F: the memberships of all projections side by side, (n, n_projections * n_clusters)."""
        return np.hstack(
            [view.clustering.predict_proba(block @ view.matrix) for view in self.projections_]
        )

    def _width(self) -> int:
        return max(self.n_features_in_, self.n_projections * self.n_clusters_)

    def _dimension(self, X: Any, sample: np.ndarray, root: int) -> int:
        """q: the one asked for, or that of the grid whose partitions agree most with one another."""
        n_features = X.shape[1]
        if self.n_components != "auto":
            return min(int(self.n_components), n_features)
        candidates = dimensions_to_try(n_features)
        if len(candidates) == 1:
            return candidates[0]
        trial = draw_sample(len(sample), min(len(sample), TRIAL_POINTS), seed_for(root, "trial"))
        agreements = [
            self._agreement(X, sample[trial], q, seed_for(root, "trial", q)) for q in candidates
        ]
        return candidates[int(np.argmax(agreements))]

    def _agreement(self, X: Any, sample: np.ndarray, q: int, seed: int) -> float:
        views = self._project(X, sample, q, TRIAL_PROJECTIONS, seed)
        rows = np.concatenate(
            [
                np.stack(
                    [
                        view.clustering.predict_proba(block @ view.matrix).argmax(axis=1)
                        for view in views
                    ],
                    axis=1,
                )
                for block in scaled_blocks(X, self.scaler_, sample, X.shape[1])
            ]
        )  # (n_trial, n_views)
        return average_agreement(pairwise_agreement(rows.T))

    def _project(
        self, X: Any, sample: np.ndarray, q: int, n_projections: int, seed: int
    ) -> list[Projection]:
        """Draw the projections and cluster the sample in each."""
        seeds = [seed_for(seed, "projection", i) for i in range(n_projections)]
        matrices = [gaussian_matrix(X.shape[1], q, seed_for(own, "matrix")) for own in seeds]
        Z = np.concatenate(
            [
                block @ np.hstack(matrices)
                for block in scaled_blocks(X, self.scaler_, sample, X.shape[1])
            ]
        )  # (n_sample, n * q)
        views = np.split(Z, n_projections, axis=1)
        scales = [overall_deviation(view) for view in views]
        clusterings = Parallel(n_jobs=self.n_jobs)(
            delayed(self._cluster)(view / scale, seed_for(own, "cluster"))
            for view, scale, own in zip(views, scales, seeds, strict=True)
        )
        return [
            Projection(matrix / scale, clustering)
            for matrix, scale, clustering in zip(matrices, scales, clusterings, strict=True)
        ]

    def _check(self) -> None:
        raise NotImplementedError

    def _cluster(self, Z: np.ndarray, seed: int) -> Any:
        """The soft clustering of one projected sample, (n_sample, q) of deviation 1."""
        raise NotImplementedError

    def _aggregate(self, F: np.ndarray, root: int) -> None:
        raise NotImplementedError

    def _belongs(self, F: np.ndarray) -> np.ndarray:
        """(n, n_projections * n_clusters) -> (n, n_clusters), rows sum to 1."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags = (
            ClassifierTags()
        )  # scikit-learn's sparse checks read them of all with predict_proba
        return tags


class RandomProjectionEM(RandomProjections):
    """Cluster ensemble of random projections and Gaussian mixtures (Fern and Brodley, ICML 2003).

    Each of ``n_projections`` Gaussian random projections to q dimensions is clustered by EM, and P_ij,
    the probability that points i and j are in the same cluster, is averaged over the projections.
    Agglomerative clustering on P gives the clusters.

    P is never built for all points: with F the memberships of all projections side by side,
    P = F F^T / n_projections. Mixtures and agglomeration see a sample. Then every point, those of the
    sample too, gets the cluster with whose sample points its P is highest on average, which is F times the
    cluster means of F. So ``predict`` of the training data is ``labels_``, to the bit.

    Parameters
    ----------
    n_clusters : int, default=8
        Of the result, and components of every mixture.
    n_projections : int, default=30
    n_components : int or "auto"
        q, the dimension of the projections; never above the number of columns. "auto" takes that of
        5, 10, 20, 50 and 100 for which the partitions of five projections agree most with one another
        (average pairwise NMI, on at most 2,000 points). No label is looked at.
    covariance_type : "full", "tied", "diag" or "spherical"
        Of the mixtures. A random projection mixes all columns, which leaves no dimension by itself.
    linkage : "complete", "average" or "single"
        "complete" is the paper's: the similarity of two clusters is the least P_ij between them. Once all
        points are assigned, "average" does no better (NMI 0.75 instead of 0.77 on PENDIGITS, 0.72 both on USPS).
    sample_size : "auto", int or float
        Points, as a number or a share, that mixtures and agglomeration see. "auto": all, at most 5,000.
    scale : "auto", "global", "columns" or None
        As for :class:`deccs.DECCS`.
    n_jobs : int or None
        Projections clustered at the same time.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : (n_points,)
    n_components_ : int, the q used
    n_clusters_ : int
    projections_ : list of Projection, a matrix and its mixture each
    cluster_means_ : (n_clusters, n_projections * n_clusters), means of F
    scaler_ : what was learned about the columns' scale

    Examples
    --------
    >>> X = np.repeat([[0.0, 0, 0], [9, 9, 0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 3))
    >>> model = RandomProjectionEM(2, n_projections=5, n_components=2, random_state=0).fit(X)
    >>> sorted(np.bincount(model.labels_).tolist()), model.predict(X[:2]).shape
    ([20, 20], (2,))
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_projections: int = 30,
        n_components: int | str = "auto",
        covariance_type: str = "full",
        linkage: str = "complete",
        sample_size: int | float | str = "auto",
        scale: str | None = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_projections = n_projections
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.linkage = linkage
        self.sample_size = sample_size
        self.scale = scale
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self) -> None:
        check_choice("covariance_type", self.covariance_type, COVARIANCES)
        check_choice("linkage", self.linkage, LINKAGES)

    def _cluster(self, Z: np.ndarray, seed: int) -> GaussianMixture:
        mixture = GaussianMixture(
            self.n_clusters_,
            covariance_type=self.covariance_type,
            reg_covar=1e-5,
            random_state=seed,
        )
        with (
            warnings.catch_warnings(),
            threadpool_limits(1, user_api="openmp"),
        ):  # same bits, as for DECCS
            warnings.simplefilter("ignore", ConvergenceWarning)  # one of many need not be perfect
            return mixture.fit(Z)

    def _aggregate(self, F: np.ndarray, root: int) -> None:
        self.cluster_means_ = co_membership_clusters(
            F, self.n_projections, self.n_clusters_, self.linkage
        )

    def _belongs(self, F: np.ndarray) -> np.ndarray:
        return shares(F @ self.cluster_means_.T)


class RandomProjectionFCM(RandomProjections):
    """Random projections fuzzy c-means, RPFCM (Popescu, Keller, Bezdek and Zare, FUZZ-IEEE 2015).

    Each of ``n_projections`` Gaussian random projections to q dimensions is clustered by fuzzy c-means.
    The fuzzy partitions U, (n_points, n_clusters) each, are brought together in one of two versions:
    "average" clusters the average of the products U U^T, the soft co-memberships, by agglomeration;
    "concatenate" puts the U side by side and clusters their rows by fuzzy c-means again.
    The names of the two are ours.

    Fuzzy c-means and aggregation see a sample, and no matrix of all pairs of points is built. In version
    "average" every point, those of the sample too, gets the cluster with the highest average co-membership,
    as in :class:`RandomProjectionEM`; in version "concatenate" that of its highest membership.

    Parameters
    ----------
    n_clusters : int, default=8
        Of the result and of every projection.
    n_projections : int, default=30
    n_components : int or "auto"
        q, as for :class:`RandomProjectionEM`.
    version : "concatenate" or "average"
        The first is linear in the size of the sample, and no worse on PENDIGITS and USPS.
    fuzzifier : float above 1, or "auto"
        m, of all projections and of the aggregation. "auto" follows from the number of points and
        dimensions of each, see :func:`deccs.rules.default_fuzzifier`.
    linkage : "complete", "average" or "single"
        Of version "average".
    sample_size, scale, n_jobs, random_state
        As for :class:`RandomProjectionEM`.

    Attributes
    ----------
    labels_ : (n_points,)
    n_components_ : int, the q used
    n_clusters_ : int
    projections_ : list of Projection, a matrix and its centers each
    cluster_means_ : (n_clusters, n_projections * n_clusters), means of the memberships, or their fuzzy centers
    fuzzifier_ : float, m of the aggregation in version "concatenate", else of the projections
    scaler_ : what was learned about the columns' scale

    Examples
    --------
    >>> X = np.repeat([[0.0, 0, 0], [9, 9, 0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 3))
    >>> model = RandomProjectionFCM(2, n_projections=5, n_components=2, random_state=0).fit(X)
    >>> sorted(np.bincount(model.labels_).tolist()), model.predict(X[:2]).shape
    ([20, 20], (2,))
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_projections: int = 30,
        n_components: int | str = "auto",
        version: str = "concatenate",
        fuzzifier: float | str = "auto",
        linkage: str = "complete",
        sample_size: int | float | str = "auto",
        scale: str | None = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_projections = n_projections
        self.n_components = n_components
        self.version = version
        self.fuzzifier = fuzzifier
        self.linkage = linkage
        self.sample_size = sample_size
        self.scale = scale
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check(self) -> None:
        check_choice("version", self.version, VERSIONS)
        check_choice("linkage", self.linkage, LINKAGES)
        check_fuzzifier(self.fuzzifier, 2, 2)

    def _cluster(self, Z: np.ndarray, seed: int) -> FuzzyCenters:
        result = fuzzy_c_means(Z, self.n_clusters_, fuzzifier=self.fuzzifier, random_state=seed)
        return FuzzyCenters(result.centers, result.fuzzifier)

    def _aggregate(self, F: np.ndarray, root: int) -> None:
        if self.version == "average":
            self.cluster_means_ = co_membership_clusters(
                F, self.n_projections, self.n_clusters_, self.linkage
            )
            self.fuzzifier_ = self.projections_[0].clustering.fuzzifier
            return
        seed = seed_for(root, "aggregate")
        result = fuzzy_c_means(
            F, self.n_clusters_, fuzzifier=self.fuzzifier, n_init=10, random_state=seed
        )
        self.cluster_means_, self.fuzzifier_ = result.centers, result.fuzzifier

    def _belongs(self, F: np.ndarray) -> np.ndarray:
        if self.version == "average":
            return shares(F @ self.cluster_means_.T)
        return memberships(F, self.cluster_means_, self.fuzzifier_)


# Numbers users give


def check_at_least(name: str, value: Any, least: int, also: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}{also}, got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}, got {value!r}.")


def check_sample_size(size: Any, n_points: int, n_clusters: int) -> int:
    """Points of the sample, from a number, a share or "auto".

    >>> check_sample_size("auto", 70_000, 10), check_sample_size("auto", 150, 3), check_sample_size(0.5, 90, 3)
    (5000, 150, 45)
    """
    share = isinstance(size, float) and 0 < size <= 1
    number = isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 2
    if not (size == "auto" or share or number):
        raise ValueError(
            f"sample_size must be 'auto', a share in (0, 1] or a number of points, got {size!r}."
        )
    wanted = (
        max(MOST_AT_ONCE, n_clusters)
        if size == "auto"
        else round(size * n_points)
        if share
        else int(size)
    )
    if wanted < max(2, n_clusters):
        raise ValueError(
            f"sample_size={size!r} is {wanted} of {n_points} points, fewer than n_clusters={n_clusters} or than two. "
            "Give a larger sample."
        )
    return min(wanted, n_points)


# The steps


def draw_sample(n_points: int, size: int, seed: int) -> np.ndarray:
    """(size,) row numbers, rising; all of them if there are no more."""
    if size == n_points:
        return np.arange(n_points)
    return np.sort(np.random.default_rng(seed).choice(n_points, size, replace=False))


def dimensions_to_try(n_features: int) -> list[int]:
    """
    >>> dimensions_to_try(784), dimensions_to_try(16), dimensions_to_try(3)
    ([5, 10, 20, 50, 100], [5, 10, 16], [3])
    """
    return sorted({min(q, n_features) for q in DIMENSIONS})


def gaussian_matrix(n_features: int, q: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n_features, q))


def overall_deviation(Z: np.ndarray) -> float:
    """One number that scales Z as a whole; 1 where all points are the same."""
    return float(np.sqrt(Z.var(axis=0).mean())) or 1.0


def scaled_blocks(
    X: Any, scaler: Scaler, rows: np.ndarray | None, width: int
) -> Iterator[np.ndarray]:
    """Scaled rows (None: all) as doubles, so many at once that ``width`` numbers for each fit into memory."""
    for index in blocks(X.shape[0] if rows is None else len(rows), rows_at_once(width)):
        yield scaler(dense_block(X, index if rows is None else rows[index]))


def co_membership_clusters(
    F: np.ndarray, n_projections: int, n_clusters: int, linkage: Any
) -> np.ndarray:
    """Agglomerate the points of F (n, n_projections * k) and give the mean of F in each cluster.

    >>> F = np.array([[1, 0, 0.9, 0.1], [1, 0, 0.7, 0.3], [0, 1, 0, 1]])   # two projections, k = 2
    >>> co_membership_clusters(F, n_projections=2, n_clusters=2, linkage="complete")
    array([[1. , 0. , 0.8, 0.2],
           [0. , 1. , 0. , 1. ]])
    """
    tree = merge(soft_distances(F, n_projections), linkage)
    labels = cut(tree, n_clusters)  # (n,)
    members = coo_array((np.ones(len(F)), (labels, np.arange(len(F)))), shape=(n_clusters, len(F)))
    return (members @ F) / np.bincount(labels, minlength=n_clusters)[:, None]


def soft_distances(F: np.ndarray, n_projections: int) -> np.ndarray:
    """1 - P_ij for i < j, in scipy's order: (n (n - 1) / 2,). P_ij averages sum_l P(l|i) P(l|j).

    >>> soft_distances(np.array([[1, 0], [0.5, 0.5], [0, 1]]), n_projections=1)
    array([0.5, 1. , 0.5])
    """
    n = len(F)
    distances = np.empty(n * (n - 1) // 2)
    filled = 0
    for index in blocks(n, 256):
        products = F[index] @ F[index.start :].T  # (n_block, n_left)
        later = np.arange(products.shape[1]) > np.arange(products.shape[0])[:, None]
        pairs = products[later]
        distances[filled : filled + len(pairs)] = 1 - pairs / n_projections
        filled += len(pairs)
    return np.maximum(distances, 0, out=distances)


def cut(tree: np.ndarray, n_clusters: int) -> np.ndarray:
    """(n,) labels by first appearance: all but the last ``n_clusters - 1`` merges of scipy's tree are made.

    >>> cut(merge(np.array([[0.0], [9], [1], [10], [30]]), "complete"), n_clusters=3)
    array([0, 1, 0, 1, 2])
    """
    n = len(tree) + 1
    kept = tree[: n - n_clusters, :2].astype(int)  # (n - n_clusters, 2)
    parents = np.repeat(np.arange(n, n + len(kept)), 2)
    graph = coo_array(
        (np.ones(len(parents)), (parents, kept.ravel())), shape=(2 * n - 1, 2 * n - 1)
    )
    return connected_components(graph, directed=False)[1][:n].astype(np.int64)


def shares(values: np.ndarray) -> np.ndarray:
    """Rows divided by their sums; a row of zeros becomes an even one.

    >>> shares(np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    total = values.sum(axis=1, keepdims=True)
    return np.where(total > 0, values / np.where(total > 0, total, 1), 1 / values.shape[1])
