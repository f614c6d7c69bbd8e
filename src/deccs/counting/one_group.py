"""Whether there are clusters at all, or the data is one group.

Three signs of clusters, each of which data without clusters hardly ever shows:

- valleys: they are deeper than in one normal cloud and in one filled box with the same spread;
- parts: the graph of the nearest neighbors falls apart into large parts, or that of fewer neighbors
  does and the gap between them is among the longest edges of the spanning tree;
- mixture: several normal clouds fit the rows better than one, by more than they fit rows whose
  columns were permuted. So skewed columns alone do not count; heavy tails that columns share do.

Where columns do not depend on each other, clusters are no more than ranges of single columns. Then
the valleys must be deep, or a single column must fall into two groups, or the graph of many
neighbors fall apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from sklearn.mixture import GaussianMixture

from deccs.counting.panel import MOST_MIXED, by_genie, by_kmeans, by_mixture, by_ward
from deccs.counting.signs import MOST_ROWS, Signs
from deccs.counting.valleys import ties_between, valleys
from deccs.members.neighbors import nearest_neighbors, neighbor_graph
from deccs.members.running import of_one_scale
from deccs.members.spanning_tree import single_linkage, spanning_tree
from deccs.members.views import NEAR, WIDE
from deccs.seeds import reproducible_threads, seed_for
from deccs.spreading import each

NUMBERS = (2, 3, 4, 5, 6, 8, 10)
N_REFERENCES = 2  # of each kind
LEAST_EACH = 20  # rows of a cluster on average: fewer have valleys around them by chance
FEW_LONGER = 0.005  # of the edges of the spanning tree: a few stray rows
LARGE = 0.1  # of the rows: a part that is smaller may be a few stray rows
MOST_CLOUDS = 5
N_COMPONENTS = 5  # the mixture sees: with more columns it would need more rows
FEW_VALUES = 10  # of a column: it has categories
N_NEAR = 5  # neighbors whose distance tells how close rows are


class OneGroupWarning(UserWarning):
    """Nothing in the data of a fit speaks for clusters."""


def signs_of(raw: np.ndarray, scaled: np.ndarray, seed: int) -> Signs:
    """Look for clusters in rows: (n, n_components) as members see them, and (n, n_features)."""
    rng = np.random.default_rng(seed_for(seed, "one group"))
    drawn = np.sort(rng.permutation(len(raw))[:MOST_ROWS])
    rows = raw[drawn]
    references = [make(rows, rng) for _ in range(N_REFERENCES) for make in (one_cloud, one_box)]
    permuted = [columns_permuted(scaled[drawn], rng) for _ in range(N_REFERENCES)]
    gains = [mixture_gain(made, seed) for made in permuted]
    depth, *of_references = each(deepest_valley, (), [(made, seed) for made in (rows, *references)])
    return Signs(
        depth=depth,
        reference_depth=max(of_references),
        n_parts=large_parts(scaled[drawn]),
        n_near_parts=parts_with_gaps(scaled[drawn]),
        gain=mixture_gain(scaled[drawn], seed) - max(gains),
        dependence=dependence_of(scaled[drawn], permuted),
        split=best_split(scaled[drawn]),
        n_rows=len(rows),
    )


def dependence_of(X: np.ndarray, permuted: Sequence[np.ndarray]) -> float:
    """How much closer rows are than rows whose columns were permuted, as a difference of logarithms.

    0 where columns have nothing to do with each other; a single column depends on itself, and so do
    columns that give all rows one length.
    """
    lengths = np.linalg.norm(X, axis=1)
    if (np.ptp(X, axis=0) > 0).sum() < 2 or np.ptp(lengths) <= 1e-6 * lengths.max():
        return np.inf
    return float(np.mean([log_distance(made) for made in permuted]) - log_distance(X))


def best_split(X: np.ndarray) -> float:
    """The share of its variance that two groups explain of the column they explain best.

    A normal column has 0.64, an even one 0.75. Groups have at least ``LARGE`` of the rows each;
    columns of a few values are categories, and do not count.

    >>> best_split(np.concatenate([np.arange(20.0), np.arange(80.0, 100.0)])[:, None]) > 0.97
    True
    """
    n = len(X)
    columns = np.sort(X, axis=0)
    n_values = (np.diff(columns, axis=0) > 0).sum(axis=0) + 1
    columns = columns - columns.mean(axis=0)
    before = np.arange(1, n)[:, None]  # rows of the lower group: (n - 1, 1)
    between = np.cumsum(columns, axis=0)[:-1] ** 2 * (1 / before + 1 / (n - before))
    large = np.minimum(before, n - before) >= LARGE * n
    variance = np.square(columns).sum(axis=0)
    shares = np.where(large, between, 0).max(axis=0) / np.where(variance > 0, variance, 1)
    return float(np.where(n_values > FEW_VALUES, shares, 0).max(initial=0.0))


def log_distance(X: np.ndarray) -> float:
    """The mean logarithm of the distance to a near neighbor: (n, d) -> number.

    Copies of a row count as very near, not as infinitely near.

    >>> round(log_distance(np.arange(6.0)[:, None]), 3)  # the mean of log 5, log 4 and log 3
    1.365
    """
    distances = nearest_neighbors(X, min(N_NEAR + 1, len(X)))[0][:, -1]
    typical = np.median(distances)
    return float(np.log(np.maximum(distances, 1e-2 * typical if typical > 0 else 1.0)).mean())


def deepest_valley(raw: np.ndarray, seed: int) -> float:
    """The mean depth around the clusters of that partition of a few where it is deepest."""
    Z = of_one_scale(raw)
    tree = spanning_tree(Z)
    ties = ties_between(Z, tree)
    ks = [k for k in NUMBERS if k <= max(2, len(Z) // LEAST_EACH)]
    partitions = [*by_kmeans(Z, ks, seed), *by_ward(Z, ks), *by_genie(tree, ks)]
    if Z.shape[1] <= MOST_MIXED:
        partitions += [labels for labels in by_mixture(Z, ks, seed) if labels is not None]
    return max((float(valleys(ties, labels).mean()) for labels in partitions), default=-np.inf)


def one_cloud(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A normal distribution with the covariance of X: (n, d)."""
    components, axes = principal_components(X)
    return np.asarray(rng.normal(size=components.shape) * components.std(axis=0) @ axes)


def one_box(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A box along the principal components of X, filled evenly, as in the gap statistic: (n, d)."""
    components, axes = principal_components(X)
    low, high = components.min(axis=0), components.max(axis=0)
    return np.asarray(rng.uniform(low, high, size=components.shape) @ axes)


def principal_components(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, m) components and (m, d) axes, the longest first."""
    left, scale, axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return left * scale, axes


def parts_with_gaps(X: np.ndarray) -> int:
    """Large parts of the data with gaps between them; 1 if there are none.

    A single column has gaps between few neighbors by chance.
    """
    n_parts = large_parts(X, WIDE)
    if n_parts > 1 or (np.ptp(X, axis=0) > 0).sum() < 2:
        return n_parts
    return large_parts(X, NEAR) if longer_edges(X) <= FEW_LONGER else 1


def longer_edges(X: np.ndarray) -> float:
    """The share of edges of the spanning tree longer than the longest one between two large parts.

    >>> longer_edges(np.array([[0.0], [1], [2], [9], [10], [30]]))  # that to the stray row, of 6 rows
    0.16666666666666666
    """
    merges, n = single_linkage(X), len(X)
    size = np.concatenate([np.ones(n), merges[:, 3]])
    smaller = size[merges[:, :2].astype(np.int64)].min(axis=1)  # (n - 1,) the shortest edge first
    between = np.flatnonzero(smaller >= max(2, LARGE * n))
    return float((n - 2 - between[-1]) / n) if len(between) else 1.0


def large_parts(X: np.ndarray, n_neighbors: int = WIDE) -> int:
    """Connected parts of the graph of nearest neighbors with at least ``LARGE`` of the rows each.

    >>> large_parts(np.repeat([[0.0], [1.0]], 10, axis=0) + np.linspace(0, 0.1, 20)[:, None])
    2
    """
    part = connected_components(neighbor_graph(X, n_neighbors), directed=False)[1]
    return int((np.bincount(part) >= LARGE * len(X)).sum())


def columns_permuted(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each column in an order of its own: (n, d). What columns say together is gone."""
    return np.stack([rng.permutation(column) for column in X.T], axis=1)


def leading_components(X: np.ndarray, n_components: int) -> np.ndarray:
    """The first principal components: (n, d) -> (n, n_components), quickly where d is large.

    >>> np.abs(leading_components(np.array([[0.0, 0, 0], [3, 4, 0]]), 1))
    array([[2.5],
           [2.5]])
    """
    n, d = X.shape
    if d <= n:
        return principal_components(X)[0][:, :n_components]
    centered = X - X.mean(axis=0)
    last = max(0, n - n_components)
    squares, vectors = eigh(centered @ centered.T, subset_by_index=(last, n - 1))  # ascending
    return np.asarray((vectors * np.sqrt(np.maximum(squares, 0)))[:, ::-1])


def mixture_gain(X: np.ndarray, seed: int) -> float:
    """How much lower the BIC of a mixture is than that of one normal cloud, for each row; 0 at least."""
    components = of_one_scale(leading_components(X, N_COMPONENTS))
    scores = []
    for k in range(1, max(1, min(MOST_CLOUDS, len(X) // 3)) + 1):
        mixture = GaussianMixture(k, reg_covar=1e-3, random_state=seed)
        with reproducible_threads():
            scores.append(mixture.fit(components).bic(components))
    return float(scores[0] - min(scores)) / len(X)
