"""Ensembles of random projections: each projection is clustered softly, then the results are combined."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from joblib import delayed
from scipy.cluster.hierarchy import linkage as merge
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from deccs.answer import Answer
from deccs.base import Fit, SoftClusterer
from deccs.checks import AUTO, N_JOBS, number, one_of, whole
from deccs.consensus.fuzzy import FUZZIFIER, fuzzy_c_means, memberships
from deccs.data.sampling import sample_count
from deccs.data.source import RowSource, SelectedRows, blocks, each_block
from deccs.estimators import SoftEstimator
from deccs.events import NOBODY, Listeners, Progress
from deccs.members.agreement import average_agreement, pairwise_agreement
from deccs.rules import default_projection_sample, dimensions_to_try
from deccs.seeds import reproducible_threads, seed_for
from deccs.settings import COUNT_OR_SHARE
from deccs.spreading import parallel
from deccs.storage import reals, stored

TRIAL_PROJECTIONS = 5  # for each dimension that "auto" tries ...
TRIAL_POINTS = 2_000  # ... of so many points


@stored
@dataclass(frozen=True, eq=False)
class FuzzyCenters:
    """The fuzzy partition of one projection, for any points."""

    centers: Annotated[np.ndarray, reals("n_clusters", "q")]
    fuzzifier: Annotated[float, number(above=1)]

    def predict_proba(self, Z: np.ndarray) -> np.ndarray:
        return memberships(Z, self.centers, self.fuzzifier)


@stored
@dataclass(frozen=True, eq=False)
class Projection:
    """A projection of the data and its soft clustering."""

    matrix: Annotated[np.ndarray, reals("n_features", "q")]
    # predict_proba: (n, q) -> (n, n_clusters)
    clustering: FuzzyCenters | GaussianMixture

    def memberships(self, Z: np.ndarray) -> np.ndarray:
        """(n, n_features) scaled rows -> (n, n_clusters)."""
        return np.asarray(self.clustering.predict_proba(Z @ self.matrix))


@dataclass(eq=False, repr=False, kw_only=True)
class RandomProjections(SoftClusterer, SoftEstimator):
    """Project, cluster each projection softly, combine on a sample, assign all points.

    A method says how a projection is clustered (``_soft_clusterer``). It may say how the memberships
    of all projections are combined (``_aggregate``, ``_belongs``).
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "n_clusters_": Annotated[int, whole(at_least=1)],
        "n_components_": int,
        "projections_": list[Projection],
        "cluster_means_": reals("n_wanted", "n_memberships"),
    }

    n_projections: Annotated[int, whole(at_least=1)] = 30
    n_components: Annotated[int | str, AUTO | whole(at_least=1)] = "auto"
    linkage: Annotated[str, one_of("complete", "average", "single")] = "complete"
    sample_size: Annotated[int | float | str, COUNT_OR_SHARE] = "auto"
    n_jobs: Annotated[int | None, N_JOBS] = None

    def _check_learned(self) -> None:
        super()._check_learned()
        if len(self.projections_) != self.n_projections or self._n_found != self.n_wanted:
            raise ValueError("projections_ must be as many as n_projections says, for n_clusters")

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        size = self._sample_count(n_points)
        if size < max(2, self.n_wanted):
            raise ValueError(
                f"sample_size={self.sample_size!r} is {size} of {n_points} points, fewer than "
                f"n_clusters={self.n_wanted}. Give a larger sample."
            )

    def _sample_count(self, n_points: int) -> int:
        default = default_projection_sample(n_points, self.n_wanted)
        return sample_count(self.sample_size, n_points, default)

    def _learn(self, fit: Fit) -> None:
        n_points, root = fit.source.shape[0], fit.root
        self.n_clusters_ = int(self.n_wanted)
        index = draw_in_order(n_points, self._sample_count(n_points), seed_for(root, "sample"))
        sample = SelectedRows(fit.source, index)
        self.n_components_ = self._dimension(sample, root, fit.listeners)
        self.projections_ = self._project(
            sample, self.n_components_, self.n_projections, root, fit.listeners
        )
        F = np.concatenate([self._memberships(Z) for Z in self._scaled(sample, self._width())])
        self._aggregate(F, root)

    def _learned_answers(self, source: RowSource) -> Iterator[Answer]:
        for Z in self._scaled(source, self._width()):
            belongs = self._belongs(self._memberships(Z))  # (n, n_clusters)
            yield Answer(Z, belongs.argmax(axis=1), belongs, belongs.max(axis=1))

    def _scaled(self, source: RowSource, width: int | None = None) -> Iterator[np.ndarray]:
        """(n_block, n_features) scaled rows, block by block."""
        return (self.scaler_(block) for _, block in each_block(source, width))

    def _memberships(self, Z: np.ndarray) -> np.ndarray:
        """F: the memberships of all projections side by side, (n, n_projections * n_clusters)."""
        return np.hstack([projection.memberships(Z) for projection in self.projections_])

    def _width(self) -> int:
        return self.n_projections * self._n_found

    def _dimension(self, sample: RowSource, root: int, listeners: Listeners) -> int:
        """q: the one asked for, or the one whose partitions agree best with each other."""
        n_points, n_features = sample.shape[0], self._widths[0]
        if not isinstance(self.n_components, str):
            return min(int(self.n_components), n_features)
        candidates = dimensions_to_try(n_features)
        if len(candidates) == 1:
            return candidates[0]
        trial = draw_in_order(n_points, min(n_points, TRIAL_POINTS), seed_for(root, "trial"))
        agreements = []
        for q in candidates:
            seed = seed_for(root, "trial", q)
            agreements.append(self._agreement(SelectedRows(sample, trial), q, seed))
            done = Progress("dimension of the projections", len(agreements), len(candidates))
            listeners.tell("on_progress", done)
        return candidates[int(np.argmax(agreements))]

    def _agreement(self, sample: RowSource, q: int, seed: int) -> float:
        """How well the partitions of a few projections to q dimensions agree."""
        projections = self._project(sample, q, TRIAL_PROJECTIONS, seed)
        partitions = np.concatenate(
            [
                [projection.memberships(Z).argmax(axis=1) for projection in projections]
                for Z in self._scaled(sample)
            ],
            axis=1,
        )  # (n_projections, n_sample)
        return average_agreement(pairwise_agreement(partitions))

    def _project(
        self,
        sample: RowSource,
        q: int,
        n_projections: int,
        root: int,
        listeners: Listeners = NOBODY,
    ) -> list[Projection]:
        """Draw the projections and cluster the sample in each."""
        n_features = self._widths[0]
        seeds = [seed_for(root, "projection", number) for number in range(n_projections)]
        matrices = [gaussian_matrix(n_features, q, seed_for(seed, "matrix")) for seed in seeds]
        side_by_side = np.hstack(matrices)  # (n_features, n_projections * q)
        projected = np.concatenate([Z @ side_by_side for Z in self._scaled(sample)])
        views = np.split(projected, n_projections, axis=1)  # (n_sample, q) each
        scales = [overall_deviation(view) for view in views]
        cluster = self._soft_clusterer()
        clusterings = parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(cluster)(view / scale, seed_for(seed, "cluster"))
            for view, scale, seed in zip(views, scales, seeds, strict=True)
        )
        projections = []
        for matrix, scale, clustering in zip(matrices, scales, clusterings, strict=True):
            projections.append(Projection(matrix / scale, clustering))
            done = Progress("projections", len(projections), n_projections)
            listeners.tell("on_progress", done)
        return projections

    @abstractmethod
    def _soft_clusterer(self) -> Callable[[np.ndarray, int], Any]:
        """What clusters a projected sample, (n_sample, q) of deviation 1, with a seed.

        It runs in other processes, so it holds nothing of the estimator but the settings it needs.
        """

    def _aggregate(self, F: np.ndarray, root: int) -> None:
        """Cluster the memberships F of the sample: by their average co-membership."""
        self.cluster_means_ = co_membership_clusters(
            F, self.n_projections, self.n_clusters_, self.linkage
        )

    def _belongs(self, F: np.ndarray) -> np.ndarray:
        """(n, n_projections * n_clusters) -> (n, n_clusters), rows sum to 1."""
        return shares(F @ self.cluster_means_.T)


@dataclass(eq=False, repr=False, kw_only=True)
class RandomProjectionEM(RandomProjections):
    """Cluster ensemble of random projections and Gaussian mixtures (Fern and Brodley, ICML 2003).

    Each of ``n_projections`` Gaussian random projections to q dimensions is clustered by EM. P_ij,
    the probability that points i and j are in the same cluster, is averaged over the projections,
    and agglomerative clustering on P gives the clusters.

    P is never built for all points: with F the memberships of all projections side by side,
    P = F F^T / n_projections. Mixtures and agglomeration see a sample. Then every point, in the
    sample or not, gets the cluster with whose sample points its average P is highest; that is F
    times the cluster means of F. So ``predict`` gives exactly ``labels_`` for the training data.

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
        Clusters of the result, and components of every mixture.
    n_projections : int, default=30
    n_components : int or "auto"
        q, the dimension of the projections, at most the number of columns. "auto" tries 5, 10, 20,
        50 and 100 and takes the one for which the partitions of five projections agree best
        (average pairwise NMI, on at most 2,000 points). It uses no true labels.
    covariance_type : "full", "tied", "diag" or "spherical"
        Of the mixtures. A random projection mixes all columns, so its dimensions are correlated.
    linkage : "complete", "average" or "single"
        "complete" is the paper's: the similarity of two clusters is the lowest P_ij between them.
        "average" is no better after all points are assigned (NMI 0.75 instead of 0.77 on PENDIGITS,
        0.72 for both on USPS).
    sample_size : "auto", int or float
        Points that mixtures and agglomeration see, as a number or a share. "auto": at most 5,000.
    n_jobs : int or None
        Projections that are clustered at the same time.
    scale, random_state, verbose, callbacks
        As for :class:`deccs.DECCS`.

    Attributes
    ----------
    labels_ : (n_points,)
    n_components_ : int, the q that was used
    n_clusters_ : int
    projections_ : list of Projection, a matrix and its mixture each
    cluster_means_ : (n_clusters, n_projections * n_clusters), means of F
    scaler_ : what was learned about the columns' scale

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(40, 3))
    >>> X = np.repeat([[0.0, 0, 0], [9, 9, 0]], 20, axis=0) + noise
    >>> model = RandomProjectionEM(2, n_projections=5, n_components=2, random_state=0).fit(X)
    >>> sorted(np.bincount(model.labels_).tolist()), model.predict(X[:2]).shape
    ([20, 20], (2,))
    """

    covariance_type: Annotated[str, one_of("full", "tied", "diag", "spherical")] = "full"

    def _soft_clusterer(self) -> Callable[[np.ndarray, int], GaussianMixture]:
        return partial(
            fitted_mixture, n_clusters=self._n_found, covariance_type=self.covariance_type
        )


@dataclass(eq=False, repr=False, kw_only=True)
class RandomProjectionFCM(RandomProjections):
    """Random projections fuzzy c-means, RPFCM (Popescu, Keller, Bezdek and Zare, FUZZ-IEEE 2015).

    Each of ``n_projections`` Gaussian random projections to q dimensions is clustered by fuzzy
    c-means. The fuzzy partitions U, (n_points, n_clusters) each, are combined in one of two ways:
    "average" agglomerates the average of the products U U^T, the soft co-memberships; "concatenate"
    puts the U side by side and clusters their rows by fuzzy c-means again. These two names are ours.

    Fuzzy c-means and the combination see a sample, and no matrix of all pairs of points is built.
    With "average" every point gets the cluster of its highest average co-membership, as in
    :class:`RandomProjectionEM`; with "concatenate" that of its highest membership.

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
        Clusters of the result and of every projection.
    version : "concatenate" or "average"
        The first is linear in the size of the sample, and no worse on PENDIGITS and USPS.
    fuzzifier : float above 1, or "auto"
        m, for all projections and the combination. "auto" follows from the number of points and
        dimensions of each, see :func:`deccs.rules.default_fuzzifier`.
    linkage : "complete", "average" or "single"
        Of version "average".
    n_projections, n_components, sample_size, scale, n_jobs, random_state, verbose, callbacks
        As for :class:`RandomProjectionEM`.

    Attributes
    ----------
    labels_, n_components_, n_clusters_, scaler_ : as for :class:`RandomProjectionEM`
    projections_ : list of Projection, a matrix and its centers each
    cluster_means_ : (n_clusters, n_projections * n_clusters)
        Means of the memberships, or their fuzzy centers.
    fuzzifier_ : float, m of the combination in version "concatenate", else of the projections

    Examples
    --------
    >>> X = np.concatenate([np.random.default_rng(0).normal(m, 1, (20, 3)) for m in (0, 9)])
    >>> model = RandomProjectionFCM(2, n_projections=5, version="average", random_state=0).fit(X)
    >>> model.n_components_, bool((model.predict_proba(X).max(axis=1) > 0.9).all())
    (3, True)
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {"fuzzifier_": Annotated[float, number(above=1)]}

    version: Annotated[str, one_of("concatenate", "average")] = "concatenate"
    fuzzifier: Annotated[float | str, FUZZIFIER] = "auto"

    def _soft_clusterer(self) -> Callable[[np.ndarray, int], FuzzyCenters]:
        return partial(fuzzy_centers, n_clusters=self._n_found, fuzzifier=self.fuzzifier)

    def _aggregate(self, F: np.ndarray, root: int) -> None:
        if self.version == "average":
            super()._aggregate(F, root)
            self.fuzzifier_ = self.projections_[0].clustering.fuzzifier
            return
        seed = seed_for(root, "aggregate")
        result = fuzzy_c_means(
            F, self.n_clusters_, fuzzifier=self.fuzzifier, n_init=10, random_state=seed
        )
        self.cluster_means_, self.fuzzifier_ = result.centers, result.fuzzifier

    def _belongs(self, F: np.ndarray) -> np.ndarray:
        if self.version == "average":
            return super()._belongs(F)
        return memberships(F, self.cluster_means_, self.fuzzifier_)


def fitted_mixture(
    Z: np.ndarray, seed: int, n_clusters: int, covariance_type: str
) -> GaussianMixture:
    mixture = GaussianMixture(
        n_clusters, covariance_type=covariance_type, reg_covar=1e-5, random_state=seed
    )
    with warnings.catch_warnings(), reproducible_threads():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one of many need not be perfect
        return mixture.fit(Z)


def fuzzy_centers(
    Z: np.ndarray, seed: int, n_clusters: int, fuzzifier: float | str
) -> FuzzyCenters:
    result = fuzzy_c_means(Z, n_clusters, fuzzifier=fuzzifier, random_state=seed)
    return FuzzyCenters(result.centers, result.fuzzifier)


def draw_in_order(n_points: int, size: int, seed: int) -> np.ndarray:
    """(size,) row numbers without replacement, in order; all of them if there are no more.

    NumPy's ``choice`` holds at most 50 numbers for each one it draws, however many points there are.
    """
    if size == n_points:
        return np.arange(n_points)
    return np.sort(np.random.default_rng(seed).choice(n_points, size, replace=False))


def gaussian_matrix(n_features: int, q: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n_features, q))


def overall_deviation(Z: np.ndarray) -> float:
    """One number that scales Z as a whole; 1 where all points are the same."""
    return float(np.sqrt(Z.var(axis=0).mean())) or 1.0


def co_membership_clusters(
    F: np.ndarray, n_projections: int, n_clusters: int, linkage: Any
) -> np.ndarray:
    """Agglomerate the points of F (n, n_projections * k), and return the mean of F in each cluster.

    >>> F = np.array([[1, 0, 0.9, 0.1], [1, 0, 0.7, 0.3], [0, 1, 0, 1]])   # two projections, k = 2
    >>> co_membership_clusters(F, n_projections=2, n_clusters=2, linkage="complete")
    array([[1. , 0. , 0.8, 0.2],
           [0. , 1. , 0. , 1. ]])
    """
    tree = merge(soft_distances(F, n_projections), linkage)
    labels = cut(tree, n_clusters)  # (n,)
    inside = coo_array((np.ones(len(F)), (labels, np.arange(len(F)))), shape=(n_clusters, len(F)))
    return (inside @ F) / np.bincount(labels, minlength=n_clusters)[:, None]


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
    """(n,) labels by first appearance, from scipy's tree without its last ``n_clusters - 1`` merges.

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
