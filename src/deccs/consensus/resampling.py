"""Consensus clustering by resampling (Monti et al. 2003), without the matrix of all pairs of rows.

A member clusters many random parts of the rows. The consensus index of two rows is the share of the
parts with both of them in which they are in one cluster. How these numbers spread, for each number
of clusters, says how stable a clustering is.

Names are those of Monti and of the R package ConsensusClusterPlus: consensus index, CDF, delta area,
item consensus, cluster consensus. PAC is that of Senbabaoglu et al. (2014).
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from deccs.answer import Answer
from deccs.base import CHECKPOINT, Clusterer, Fit
from deccs.checks import CALLABLE, N_JOBS, NONE, Rule, instance, is_number, is_whole, whole
from deccs.clock import Clock
from deccs.consensus.estimators import function_named
from deccs.consensus.projections import draw_in_order, overall_deviation
from deccs.consensus.resamples import (
    NOT_DRAWN,
    Resample,
    check_member,
    cluster_resample,
    draw_resample,
    resample_size,
)
from deccs.consensus.tree import Dense, merge_tree
from deccs.data.source import RowSource, SelectedRows, blocks, each_block
from deccs.estimators import Estimator
from deccs.events import Progress
from deccs.inference.nearest import NearestInSample
from deccs.labels import NOISE, canonical
from deccs.seeds import seed_for
from deccs.spreading import parallel
from deccs.storage import Checkpoint, reals, stored, wholes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINKED = 5_000  # rows that linkage sees: all pairs of them take 200 MB
MOST_SHOWN = 1_000  # rows of a heat map
AT_ONCE = 1_024  # clusters of several resamples in one product of matrices


def checked_labels(shape: tuple[int, int], state: dict[str, Any]) -> np.ndarray:
    """The labels of a resample of a checkpoint: (n_k, n_tracked)."""
    labels: np.ndarray = state["labels"]
    if labels.shape != shape or labels.dtype.kind != "i" or labels.min() < NOT_DRAWN:
        raise ValueError(f"These are no labels of shape {shape}")
    if labels.max() >= shape[1]:
        raise ValueError(f"A label of {shape[1]} rows cannot be {labels.max()}")
    return labels


def is_range(value: Any) -> bool:
    """Whether these are numbers of clusters: one or more, each a whole number of at least 1."""
    if not isinstance(value, range | list | tuple | np.ndarray) or not len(value):
        return False
    return all(is_whole(k) and k >= 1 for k in value)


def is_interval(value: Any) -> bool:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    return all(is_number(end) for end in value) and 0 <= value[0] < value[1] <= 1


KS = (
    whole(at_least=1)
    | Rule("a range or list of such, at least one", is_range)
    | Rule(
        "None for a member that chooses the number of clusters by itself",
        lambda value: value is None,
    )
)
MEMBER = Rule(
    "the name of a member or an object with fit_predict",
    lambda value: (
        isinstance(value, str) or (hasattr(value, "fit_predict") and not isinstance(value, type))
    ),
)
SHARE = Rule("a share in (0, 1]", lambda value: is_number(value) and bool(0 < value <= 1))
INTERVAL = Rule("a pair (low, high) with 0 <= low < high <= 1", is_interval)


# Counting


def all_pairs(n: int) -> np.ndarray:
    """(2, n (n - 1) / 2) every pair of n rows once.

    >>> all_pairs(3)
    array([[0, 0, 1],
           [1, 2, 2]])
    """
    return np.stack(np.triu_indices(n, 1))


def random_pairs(n: int, n_pairs: int, seed: int) -> np.ndarray:
    """(2, n_pairs) pairs of different rows, each drawn by itself: a pair may come twice.

    Independent draws are what the bound of :func:`cdf_error` is about.

    >>> first, second = random_pairs(5, 1_000, seed=0)
    >>> bool((first != second).all()), len(set(zip(first.tolist(), second.tolist())))
    (True, 20)
    """
    rng = np.random.default_rng(seed)
    first = rng.integers(n, size=n_pairs)
    return np.stack([first, (first + rng.integers(1, n, size=n_pairs)) % n])


def cdf_error(n_pairs: int, certainty: float = 0.95) -> float:
    """How far the CDF of random pairs is from that of all pairs, at most and anywhere.

    The bound of Dvoretzky, Kiefer and Wolfowitz, with Massart's constant.

    >>> round(cdf_error(1_000_000), 5)
    0.00136
    """
    return float(np.sqrt(np.log(2 / (1 - certainty)) / (2 * n_pairs)))


def pair_counts(partitions: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each pair, the resamples that put it together and those that have drawn both of its rows.

    (n_resamples, n_tracked) labels and (2, n_pairs) -> two times (n_pairs,). Noise is drawn, and
    never together with anything.

    >>> partitions = np.array([[0, 0, 1], [0, NOT_DRAWN, 0], [NOISE, NOISE, 0]])
    >>> pair_counts(partitions, all_pairs(3))
    (array([1, 1, 0], dtype=int32), array([2, 3, 2], dtype=int32))
    """
    first, second = pairs
    together, both = (np.zeros(len(first), dtype=np.int32) for _ in range(2))
    for labels in partitions:
        a, b = labels[first], labels[second]  # (n_pairs,)
        both += (a != NOT_DRAWN) & (b != NOT_DRAWN)
        together += (a == b) & (a >= 0)
    return together, both


@stored
@dataclass(frozen=True, eq=False)
class ConsensusIndex:
    """The consensus indices of many pairs: their distinct values, and how many pairs have each."""

    values: Annotated[np.ndarray, reals("n_values", least=0)]  # rising, from 0 to 1
    counts: Annotated[np.ndarray, wholes("n_values", least=1)]  # pairs

    @classmethod
    def of(cls, together: np.ndarray, both: np.ndarray) -> ConsensusIndex:
        """From the counts of pairs; those never drawn together have no index, and are left out.

        >>> ConsensusIndex.of(np.array([1, 2, 0, 0]), np.array([2, 4, 3, 0]))
        ConsensusIndex(values=array([0. , 0.5]), counts=array([1, 2]))
        """
        known = both > 0
        # There are few distinct pairs of counts, and many pairs of rows.
        code = together[known].astype(np.int64) * (int(both.max(initial=0)) + 1) + both[known]
        codes, counts = np.unique(code, return_counts=True)
        index = codes // (int(both.max(initial=0)) + 1) / (codes % (int(both.max(initial=0)) + 1))
        values, place = np.unique(index, return_inverse=True)
        return cls(values, np.bincount(place, weights=counts).astype(np.int64))

    def cdf(self, grid: ArrayLike) -> np.ndarray:
        """The share of the pairs with an index of at most each value of the grid.

        >>> ConsensusIndex(np.array([0, 0.5, 1]), np.array([2, 1, 1])).cdf([0, 0.4, 0.5, 1])
        array([0.5 , 0.5 , 0.75, 1.  ])
        """
        reached = np.concatenate([[0], np.cumsum(self.counts)])
        return reached[np.searchsorted(self.values, np.asarray(grid), side="right")] / reached[-1]

    @property
    def area(self) -> float:
        """The area under the CDF from 0 to 1, which is 1 less the mean index.

        >>> ConsensusIndex(np.array([0, 0.5, 1]), np.array([2, 1, 1])).area
        0.625
        """
        return float(1 - self.values @ self.counts / self.counts.sum())

    def ambiguous(self, low: float, high: float) -> float:
        """PAC, the proportion of ambiguous clustering: CDF(high) - CDF(low).

        >>> ConsensusIndex(np.array([0, 0.5, 1]), np.array([2, 1, 1])).ambiguous(0.1, 0.9)
        0.25
        """
        at_low, at_high = self.cdf([low, high])
        return float(at_high - at_low)


def delta_area(areas: np.ndarray) -> np.ndarray:
    """The first area, then how much each grows, as a share of the one before it: (n_k,) -> (n_k,).

    >>> delta_area(np.array([0.4, 0.5, 0.5]))
    array([0.4 , 0.25, 0.  ])
    """
    before = areas[:-1]
    growth = np.divide(np.diff(areas), before, out=np.zeros(len(before)), where=before > 0)
    return np.concatenate([areas[:1], growth])


def consensus_block(
    partitions: np.ndarray, rows: np.ndarray | slice, columns: np.ndarray
) -> np.ndarray:
    """(n, m) consensus index of tracked rows with others, from (n_resamples, n_tracked) labels.

    NaN for pairs that were never drawn together; 1 for a row with itself has to be set by the caller.

    >>> partitions = np.array([[0, 0, 1], [0, NOT_DRAWN, NOT_DRAWN], [0, 1, 0]])
    >>> consensus_block(partitions, np.arange(3), np.arange(3))[0]
    array([1. , 0.5, 0.5], dtype=float32)
    """
    ours, theirs = partitions[:, rows], partitions[:, columns]  # (n_resamples, n), (..., m)
    together = np.zeros((ours.shape[1], theirs.shape[1]), dtype=np.float32)
    n_clusters = int(partitions.max(initial=0)) + 1
    numbers = np.arange(n_clusters, dtype=partitions.dtype)
    # Whole numbers below 2^24 are exact in single precision, and so are sums of them.
    for part in blocks(len(partitions), max(1, AT_ONCE // n_clusters)):
        a, b = (
            (labels[part].T[:, :, None] == numbers).reshape(labels.shape[1], -1).astype(np.float32)
            for labels in (ours, theirs)
        )  # (n, n_part * n_clusters), (m, ...)
        together += a @ b.T
    both = (ours != NOT_DRAWN).astype(np.float32).T @ (theirs != NOT_DRAWN).astype(np.float32)
    return np.divide(together, both, out=np.full_like(both, np.nan), where=both > 0)


def average_linkage(consensus: np.ndarray, n_clusters: int) -> np.ndarray:
    """(n,) labels by average linkage on 1 - consensus, (n, n); pairs without an index count 0.

    >>> average_linkage(np.array([[1, 0.9, 0.2], [0.9, 1, np.nan], [0.2, np.nan, 1]]), 2)
    array([0, 0, 1])
    """
    similarity = np.nan_to_num(consensus.astype(np.float64), nan=0.0)
    tree = merge_tree(Dense(similarity, np.ones(len(similarity)), "average"))
    return canonical(tree.cut(n_clusters))


def mostly_noise(partitions: np.ndarray) -> np.ndarray:
    """(n_tracked,) whether a row is noise in more than half of the resamples that have drawn it.

    >>> mostly_noise(np.array([[0, NOISE, NOISE], [0, NOISE, 1], [0, 0, NOT_DRAWN]]))
    array([False,  True, False])
    """
    n_drawn = (partitions != NOT_DRAWN).sum(axis=0)
    return 2 * (partitions == NOISE).sum(axis=0) > n_drawn


def sums_by_cluster(
    consensus: np.ndarray, labels: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sum and number of the indices that are known, over the columns of each cluster.

    (n, m) and (m,) labels -> two times (n, n_clusters).

    >>> sums_by_cluster(np.array([[0.5, np.nan, 1.0]]), np.array([0, 0, 1]), 2)
    (array([[0.5, 1. ]]), array([[1., 1.]]))
    """
    inside = (labels[:, None] == np.arange(n_clusters)).astype(np.float64)  # (m, n_clusters)
    known = ~np.isnan(consensus)
    return np.where(known, consensus, 0) @ inside, known @ inside


# The estimator


@dataclass(eq=False, repr=False, kw_only=True)
class ConsensusMatrix(Clusterer, Estimator):
    """Consensus clustering by resampling (Monti et al. 2003), for any number of rows.

    For each number of clusters k, a member clusters ``n_resamples`` random parts of the rows. The
    consensus index of two rows is the share of the resamples with both in which they are in one
    cluster. A good k puts nearly all pairs near 0 or 1: its CDF is flat and its PAC is low.

    With few rows all pairs are counted, and all numbers are exact. With more than ``n_pairs`` pairs,
    random pairs are; with more than ``n_tracked`` rows, they are pairs of a random part of the rows.
    No matrix of all pairs is ever held.

    Parameters
    ----------
    n_clusters : int, range, list or None
        The numbers of clusters to compare, from 2 to 10 by default. None for a member that chooses
        the number by itself, such as "hdbscan": there is one entry then, called by the number that
        it finds most often.
    member : str or object with fit_predict, default="kmeans"
        One of the members of :class:`deccs.DECCS` by name, or your own. The label -1 is noise: such
        a row is drawn, and together with no other.
    n_resamples : int, default=50
    row_share, column_share : float, default=0.8 and 1.0
        The part of the rows and columns that each resample draws, without replacement.
    sample_size : int, default=5_000
        The most rows of a resample that the member is fitted on. The others get their labels from its
        ``predict`` (k-means: the nearest center) or, without one, from the nearest fitted row.
    n_pairs : int, default=1_000_000
        The most pairs that are counted. Random ones give the CDF of all pairs of tracked rows up to
        0.0014 with a certainty of 95 %.
    n_tracked : int, default=20_000
        The most rows that get labels in each resample.
    function : str or callable, default="eac"
        How ``labels_at`` finds the consensus labels. "eac" is average linkage on 1 - consensus, as in
        ConsensusClusterPlus; the other functions of :mod:`deccs.consensus` combine the partitions
        of the resamples, with "no label" where a row was not drawn.
    ambiguous : pair, default=(0.1, 0.9)
        Between which indices a pair is ambiguous, for PAC.
    n_jobs : int or None
        Resamples that run at the same time. The result does not depend on it.
    checkpoint : folder or None
        Finished resamples are stored there; a fit that was interrupted continues with the next one.
    scale, random_state, verbose, callbacks
        As for :class:`deccs.DECCS`.

    Attributes
    ----------
    k_range_ : (n_k,) numbers of clusters, in order
    area_ : (n_k,) area under the CDF
    delta_area_ : (n_k,) relative change of the area; the first entry is the area itself
    pac_ : (n_k,) proportion of ambiguous clustering
    n_clusters_ : the k with the lowest PAC, the largest of equals
    labels_ : (n_points,) the consensus labels for it
    tracked_ : (n_tracked,) row numbers that were followed through the resamples, in order
    partitions_ : (n_k, n_resamples, n_tracked) their labels; -1 is noise, -2 not drawn
    shown_ : (n_shown,) row numbers of heat maps, at most 1,000 of the tracked ones, in order
    cdf_error_ : how far the CDF may be from that of all pairs of tracked rows; 0 if all are counted
    scaler_ : what was learned about the columns' scale
    seconds_ : seconds by phase

    Examples
    --------
    >>> X = np.concatenate([np.random.default_rng(0).normal(m, 1, (30, 2)) for m in (0, 9, 18)])
    >>> matrix = ConsensusMatrix(range(2, 5), n_resamples=10, random_state=0).fit(X)
    >>> matrix.k_range_, matrix.n_clusters_, matrix.labels_at(2).shape
    (array([2, 3, 4]), 3, (90,))
    >>> matrix.cdf(3, [0.0, 0.5]).round(2)
    array([0.67, 0.67])
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "n_clusters_": Annotated[int, whole(at_least=1)],
        "tracked_": wholes("n_tracked", least=0, below="n_points"),
        "shown_": wholes("n_shown", least=0),
        "partitions_": wholes("n_k", "n_resamples", "n_tracked", least=NOT_DRAWN, small=True),
        "k_range_": wholes("n_k", least=1),
        "area_": reals("n_k"),
        "delta_area_": reals("n_k"),
        "pac_": reals("n_k"),
        "cdf_error_": float,
        "seconds_": dict[str, float],
        "_root": Annotated[int, whole(at_least=0)],
        "_core": wholes("n_core", least=0, below="n_tracked"),
        "_Z": reals("n_tracked", "n_features"),
        "_indices": list[ConsensusIndex],
        "_nearest": wholes("n_points", least=0, below="n_tracked"),
    }

    n_clusters: Annotated[int | Sequence[int] | None, KS] = field(  # type: ignore[assignment]
        default=tuple(range(2, 11)), kw_only=False
    )
    member: Annotated[Any, MEMBER] = "kmeans"
    n_resamples: Annotated[int, whole(at_least=1)] = 50
    row_share: Annotated[float, SHARE] = 0.8
    column_share: Annotated[float, SHARE] = 1.0
    sample_size: Annotated[int, whole(at_least=2)] = 5_000
    n_pairs: Annotated[int, whole(at_least=1)] = 1_000_000
    n_tracked: Annotated[int, whole(at_least=2)] = 20_000
    function: Annotated[Any, CALLABLE | instance(str, words="the name of one")] = "eac"
    ambiguous: Annotated[tuple[float, float], INTERVAL] = (0.1, 0.9)
    n_jobs: Annotated[int | None, N_JOBS] = None
    checkpoint: Annotated[str | PathLike[str] | Checkpoint | None, CHECKPOINT | NONE] = None

    # What it says of the pairs

    def cdf(self, k: int, grid: ArrayLike | None = None) -> np.ndarray:
        """The share of the pairs with a consensus index of at most each value of ``grid``.

        The default grid has 101 values from 0 to 1.
        """
        grid = np.linspace(0, 1, 101) if grid is None else grid
        place = self._place_of(k)
        return self._indices[place].cdf(grid)

    def matrix(self, k: int, rows: ArrayLike | None = None) -> np.ndarray:
        """The consensus matrix of some rows: (n, n), NaN for pairs that were never drawn together.

        ``rows`` are numbers of tracked rows; ``shown_`` by default.
        """
        partitions = self._partitions(k)
        places = self._places(self.shown_ if rows is None else rows)
        consensus = consensus_block(partitions, places, places).astype(np.float64)
        consensus[places[:, None] == places] = 1.0
        return consensus

    # What it says of rows and clusters

    def labels_at(self, k: int, function: Any = None) -> np.ndarray:
        """(n_points,) consensus labels for k clusters; -1 for rows that are mostly noise.

        ``function`` takes the place of that of the fit. A row that is not tracked has the label of
        the nearest tracked row.
        """
        return self._labels(k, self.function if function is None else function)[self._nearest]

    def item_consensus(self, k: int) -> np.ndarray:
        """The mean consensus index of each tracked row with the other rows of each cluster.

        (n_tracked, n_clusters), with the numbers of ``labels_at(k)``. NaN where there is no such row:
        a row has no index with a cluster that holds only itself. Beyond 5,000 tracked rows the mean
        is over the rows of the cluster in a random part of 5,000.
        """
        sums, counts = self._sums(k)
        return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)

    def cluster_consensus(self, k: int) -> np.ndarray:
        """The mean consensus index of the pairs of rows in each cluster: (n_clusters,), NaN for one row."""
        sums, counts = self._sums(k)
        labels = self._labels(k, self.function)
        core = self._core[labels[self._core] != NOISE]
        own = labels[core]  # (n_core,)
        n_clusters = sums.shape[1]
        totals = np.bincount(own, weights=sums[core, own], minlength=n_clusters)
        pairs = np.bincount(own, weights=counts[core, own], minlength=n_clusters)  # each twice
        return np.divide(totals, pairs, out=np.full(n_clusters, np.nan), where=pairs > 0)

    # Plots

    def plot_cdf(self, ax: Axes | None = None) -> Axes:
        """The CDF of the consensus index, one curve per k."""
        from deccs.consensus import resampling_plots as plots

        return plots.plot_cdf(self, ax)

    def plot_delta_area(self, ax: Axes | None = None) -> Axes:
        """The relative change in the area under the CDF."""
        from deccs.consensus import resampling_plots as plots

        return plots.plot_delta_area(self, ax)

    def plot_heatmap(self, k: int, ax: Axes | None = None) -> Axes:
        """The consensus matrix of at most 1,000 rows, in the order of the clusters and their tree."""
        from deccs.consensus import resampling_plots as plots

        return plots.plot_heatmap(self, k, ax)

    def plot_tracking(self, ax: Axes | None = None) -> Axes:
        """The cluster of each row for each k."""
        from deccs.consensus import resampling_plots as plots

        return plots.plot_tracking(self, ax)

    def plot_item_consensus(self, k: int, ax: Axes | None = None) -> Axes:
        """The item consensus of at most 1,000 rows, a stack of one bar per cluster each."""
        from deccs.consensus import resampling_plots as plots

        return plots.plot_item_consensus(self, k, ax)

    def plot_cluster_consensus(self, ax: Axes | None = None) -> Axes:
        """The cluster consensus of every cluster, grouped by k."""
        from deccs.consensus import resampling_plots as plots

        return plots.plot_cluster_consensus(self, ax)

    def score(self, X: Any, y: object = None) -> float:
        """How well the clusters of ``n_clusters_`` keep neighbors together, as for the other estimators."""
        chosen = copy.copy(self)
        chosen.n_clusters = self._n_found
        return super(ConsensusMatrix, chosen).score(X)

    # The fit

    def _sizes(self) -> dict[str, int]:
        return {"n_features": self._widths[0], "n_points": len(self.labels_)}

    def _check_learned(self) -> None:
        super()._check_learned()
        self._place_of(self._n_found)
        rises = np.all(np.diff(self.tracked_) > 0) and np.all(np.diff(self._core) > 0)
        if not rises or not len(self._core) or len(self._core) > MOST_LINKED:
            raise ValueError(f"_core must have 1 to {MOST_LINKED:,} rows, in order")
        if (
            len(self._indices) != len(self.k_range_)
            or self.partitions_.max(initial=0) >= MOST_LINKED
        ):
            raise ValueError("partitions_ has too many clusters, or a k without its index")
        # What the fit has found, so that no answer has to find it again.
        found = {(self._n_found, self.function): self.labels_[self.tracked_]}
        self.__dict__["_known_labels"] = found

    def _check(self, n_points: int) -> None:
        function_named(self.function)
        check_member(self.member, has_k=self.n_clusters is not None)
        n_drawn = resample_size(n_points, self.row_share)
        n_fitted = min(n_drawn, int(self.sample_size))
        if n_drawn < 2:
            raise ValueError(
                f"row_share={self.row_share} of n_samples={n_points} rows is a resample of {n_drawn} "
                "row(s), which has no pair of rows. Raise row_share, or give more rows."
            )
        largest = max(k or 1 for k in self._ks())
        if largest > n_fitted:
            cause = (
                f"row_share={self.row_share} of n_samples={n_points} rows"
                if n_fitted == n_drawn
                else f"sample_size={self.sample_size}"
            )
            raise ValueError(
                f"n_clusters goes up to {largest}, but in each resample the member sees only "
                f"{n_fitted} rows ({cause}). Ask for fewer clusters, or raise "
                f"{'row_share' if n_fitted == n_drawn else 'sample_size'}."
            )

    def _ks(self) -> tuple[int | None, ...]:
        """The numbers of clusters that are asked for, in order."""
        if self.n_clusters is None:
            return (None,)
        return tuple(np.unique(self.n_clusters).tolist())

    def _learn(self, fit: Fit) -> None:
        clock, n_points, root = Clock(), fit.source.shape[0], fit.root
        self.__dict__.pop("_known_labels", None)  # of an earlier fit
        self._root = root
        self.tracked_ = draw_in_order(
            n_points, min(int(self.n_tracked), n_points), seed_for(root, "tracked")
        )
        n_tracked = len(self.tracked_)
        self._core = draw_in_order(n_tracked, min(MOST_LINKED, n_tracked), seed_for(root, "core"))
        shown = draw_in_order(
            len(self._core), min(MOST_SHOWN, len(self._core)), seed_for(root, "shown")
        )
        self.shown_ = self.tracked_[self._core[shown]]
        self._Z = self._read(fit.source, self.tracked_)  # (n_tracked, n_columns)
        clock.lap("read")
        self.partitions_ = np.stack(self._resampled(fit), axis=1)  # (n_k, n_resamples, n_tracked)
        self.k_range_ = np.array([k or number_found(self.partitions_[0]) for k in self._ks()])
        clock.lap("cluster")
        self._count(root)
        clock.lap("count")
        self.n_clusters_ = most_stable(self.k_range_, self.pac_)
        self._labels(self.n_clusters_, self.function)
        clock.lap("link")
        self.seconds_ = clock.laps

    def _read(self, source: RowSource, rows: np.ndarray) -> np.ndarray:
        """(n, n_columns) scaled rows."""
        selected = SelectedRows(source, rows)
        parts = [self.scaler_(block) for _, block in each_block(selected)]
        return np.concatenate(parts) if parts else np.empty((0, self._widths[0]))

    def _resampled(self, fit: Fit) -> list[np.ndarray]:
        """The labels of the tracked rows in every resample, (n_k, n_tracked) each."""
        n = int(self.n_resamples)
        shape = len(self._ks()), len(self.tracked_)
        take = partial(checked_labels, shape)
        labels = [fit.checkpoint.restore(f"resample-{number}", take) for number in range(n)]
        missing = [number for number in range(n) if labels[number] is None]
        done = n - len(missing)
        fit.listeners.tell("on_progress", Progress("resamples", done, n))
        mean, deviation = self._Z.mean(axis=0), overall_deviation(self._Z)
        Z = (self._Z - mean) / deviation  # members see one scale, as in the other estimators

        def resample(number: int) -> Resample:
            seed = seed_for(fit.root, "resample", number)
            draw = draw_resample(
                fit.source.shape[0],
                Z.shape[1],
                self.tracked_,
                (self.row_share, self.column_share),
                self.sample_size,
                seed,
            )
            others_Z = (self._read(fit.source, draw.others) - mean) / deviation
            return Resample(number, seed, self.member, self._ks(), draw, Z, others_Z)

        answers = parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(cluster_resample)(resample(number)) for number in missing
        )
        for number, answer in zip(missing, answers, strict=False):
            labels[number] = answer
            fit.checkpoint.save(f"resample-{number}", {"labels": answer})
            done += 1
            fit.listeners.tell("on_progress", Progress("resamples", done, n))
            if fit.listeners.stopped:  # finish with the resamples there are
                answers.close()
                break
        return [part for part in labels if part is not None]

    def _bounds(self) -> None:
        """All numbers are asked for; none is to be found before the fit."""
        return None

    def _count(self, root: int) -> None:
        """The consensus index of all pairs of tracked rows, or of random ones."""
        n = len(self.tracked_)
        few = n * (n - 1) // 2 <= self.n_pairs
        pairs = all_pairs(n) if few else random_pairs(n, int(self.n_pairs), seed_for(root, "pairs"))
        self.cdf_error_ = 0.0 if few else cdf_error(int(self.n_pairs))
        self._indices = [
            ConsensusIndex.of(*pair_counts(partitions, pairs)) for partitions in self.partitions_
        ]
        if not len(self._indices[0].values):
            raise ValueError(
                f"No two rows were drawn together: row_share={self.row_share} and "
                f"n_resamples={self.n_resamples} are too small. Raise them."
            )
        self.area_ = np.array([index.area for index in self._indices])
        self.delta_area_ = delta_area(self.area_)
        self.pac_ = np.array([index.ambiguous(*self.ambiguous) for index in self._indices])

    def _learned_training_answers(self, fit: Fit) -> Iterator[Answer]:
        clock, n_points, filled = Clock(), fit.source.shape[0], 0
        labels = self._labels(self._n_found, self.function)  # (n_tracked,)
        self._nearest = np.empty(n_points, dtype=np.int32)
        for Z, places in self._carried(fit.source):
            # Rows with the same values may have different labels: each tracked row keeps its own.
            begin, end = np.searchsorted(self.tracked_, [filled, filled + len(Z)])
            places[self.tracked_[begin:end] - filled] = np.arange(begin, end)
            self._nearest[filled : filled + len(Z)] = places
            filled += len(Z)
            fit.listeners.tell("on_progress", Progress("labels", filled, n_points))
            yield Answer(Z=Z, labels=labels[places])
        clock.lap("carry")
        self.seconds_ |= clock.laps

    def _learned_answers(self, source: RowSource) -> Iterator[Answer]:
        labels = self._labels(self._n_found, self.function)
        return (Answer(Z=Z, labels=labels[places]) for Z, places in self._carried(source))

    def _carried(self, source: RowSource) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Scaled rows, and the place of the nearest tracked row of each, block by block."""
        nearest = NearestInSample(self._Z, np.arange(len(self._Z)))
        blocks_of_rows = (self.scaler_(block) for _, block in each_block(source))
        results: Iterator[tuple[np.ndarray, np.ndarray]] = parallel(
            n_jobs=self.n_jobs, prefer="threads", return_as="generator"
        )(delayed(with_places)(nearest, Z) for Z in blocks_of_rows)
        return results

    # Consensus labels of tracked rows

    def _labels(self, k: int, function: Any) -> np.ndarray:
        """(n_tracked,) consensus labels; found once for each k and function."""
        known = self.__dict__.setdefault("_known_labels", {})
        if (k, function) not in known:
            known[k, function] = self._find_labels(k, function)
        return known[k, function]

    def _find_labels(self, k: int, function: Any) -> np.ndarray:
        partitions = self._partitions(k)
        drawn = (partitions != NOT_DRAWN).any(axis=0)
        labels = np.where(mostly_noise(partitions), NOISE, NOT_DRAWN)  # (n_tracked,)
        clustered = drawn & (labels != NOISE)
        core = self._core[clustered[self._core]]
        if not len(core):
            return np.full(len(labels), NOISE)
        if function == "eac":
            labels[core] = average_linkage(consensus_block(partitions, core, core), k)
        else:
            seed = seed_for(self._root, "function", k)
            found = function_named(function)(
                np.maximum(partitions[:, core], NOISE).astype(np.int64), k, random_state=seed
            )
            labels[core] = np.where(found == NOISE, NOT_DRAWN, found)
        # Beyond the core, a row joins the cluster that it has the highest item consensus with.
        left = np.flatnonzero(clustered & (labels == NOT_DRAWN))
        core = core[labels[core] != NOT_DRAWN]
        for part in blocks(len(left), MOST_SHOWN):
            consensus = consensus_block(partitions, left[part], core)
            sums, counts = sums_by_cluster(consensus, labels[core], int(labels.max()) + 1)
            best = (sums / np.maximum(counts, 1)).argmax(axis=1)
            labels[left[part]] = np.where(counts.any(axis=1), best, NOT_DRAWN)
        # Few resamples may leave rows that were never drawn, or never with a row of the core.
        never, known = np.flatnonzero(labels == NOT_DRAWN), np.flatnonzero(labels != NOT_DRAWN)
        if len(never):
            labels[never] = NearestInSample(self._Z[known], labels[known])(self._Z[never])
        return canonical(labels)

    def _sums(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Sum and number of the known indices of each tracked row with the core of each cluster."""
        labels, partitions = self._labels(k, self.function), self._partitions(k)
        core = self._core[labels[self._core] != NOISE]
        n, n_clusters = len(labels), int(labels.max()) + 1
        sums, counts = np.zeros((n, n_clusters)), np.zeros((n, n_clusters))
        for part in blocks(n, MOST_SHOWN):
            consensus = consensus_block(partitions, part, core)
            consensus[np.arange(part.start, part.stop)[:, None] == core] = np.nan  # not with itself
            sums[part], counts[part] = sums_by_cluster(consensus, labels[core], n_clusters)
        return sums, counts

    # Places

    def _place_of(self, k: int) -> int:
        check_is_fitted(self, "k_range_")
        places = np.flatnonzero(self.k_range_ == k)
        if not len(places):
            raise ValueError(
                f"k={k!r} was not fitted; there are {self.k_range_.tolist()}. Give one of these, or "
                "fit again with n_clusters that has it."
            )
        return int(places[0])

    def _partitions(self, k: int) -> np.ndarray:
        """(n_resamples, n_tracked)."""
        partitions: np.ndarray = self.partitions_[self._place_of(k)]
        return partitions

    def _places(self, rows: ArrayLike) -> np.ndarray:
        """The places of row numbers among the tracked ones."""
        wanted = np.asarray(rows, dtype=np.int64).reshape(-1)
        places = np.minimum(np.searchsorted(self.tracked_, wanted), len(self.tracked_) - 1)
        unknown = wanted[self.tracked_[places] != wanted]
        if len(unknown):
            raise ValueError(
                f"Row {unknown[0]} is not among the {len(self.tracked_)} tracked rows. Give numbers "
                "of tracked_, or fit again with a larger n_tracked."
            )
        return places

    def _learned(self) -> dict[str, Any]:
        learned = super()._learned()
        learned.pop("_known_labels", None)  # found again when asked for
        return learned


def most_stable(k_range: np.ndarray, pac: np.ndarray) -> int:
    """The k with the lowest PAC; the largest of equals, since it shows most. 1 only if there is no other.

    One cluster is always stable, and says nothing.

    >>> most_stable(np.array([1, 2, 3, 4]), np.array([0, 0.1, 0.1, 0.3]))
    3
    """
    return int(max(zip(k_range > 1, -pac, k_range, strict=True))[2])


def number_found(partitions: np.ndarray) -> int:
    """The number of clusters that most resamples have; the smaller one of two that are as frequent.

    >>> number_found(np.array([[0, 0, 1], [0, 1, NOISE], [0, 1, 2], [NOISE, NOISE, NOISE]]))
    2
    """
    numbers = [len(np.unique(labels[labels >= 0])) for labels in partitions]
    found = Counter(number for number in numbers if number)
    if not found:
        raise ValueError(
            "The member found no cluster in any resample: all rows are noise. Give it other "
            "settings, or another member."
        )
    return min(found, key=lambda number: (-found[number], number))


def with_places(nearest: NearestInSample, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return Z, nearest.places(Z)
