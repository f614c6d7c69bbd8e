"""Whether there are clusters at all, or the data is one group.

Three signs of clusters, each of which data without clusters hardly ever shows:

- valleys: they are deeper than in one normal cloud and in one filled box with the same spread;
- parts: the graph of the nearest neighbors falls apart into large parts, or that of fewer neighbors
  does and the gap between them is among the longest edges of the spanning tree;
- mixture: several normal clouds fit the rows better than one, by more than they fit rows whose
  columns were permuted. So skewed columns alone do not count; heavy tails that columns share do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.mixture import GaussianMixture

from deccs.counting.panel import MOST_MIXED, by_genie, by_kmeans, by_mixture, by_ward
from deccs.counting.valleys import ties_between, valleys
from deccs.members.neighbors import neighbor_graph
from deccs.members.running import of_one_scale
from deccs.members.spanning_tree import single_linkage, spanning_tree
from deccs.members.views import NEAR, WIDE
from deccs.seeds import reproducible_threads, seed_for

MOST_ROWS = 1_000  # enough to see valleys of many clusters, and quick to make again
NUMBERS = (2, 3, 4, 5, 6, 8, 10)
N_REFERENCES = 2  # of each kind
MARGIN = 0.2  # what the valleys must be deeper than in any of the references
LEAST_EACH = 20  # rows of a cluster on average: fewer have valleys around them by chance
FEW_LONGER = 0.005  # of the edges of the spanning tree: a few stray rows
LARGE = 0.1  # of the rows: a part that is smaller may be a few stray rows
LEAST_GAIN = 0.15  # of a mixture over one cloud, beyond that of permuted columns; noise has 0
MOST_CLOUDS = 5
N_COMPONENTS = 5  # the mixture sees: with more columns it would need more rows


@dataclass(frozen=True)
class Signs:
    """What speaks for clusters, and what the same is in data without clusters."""

    depth: float  # of the valleys
    reference_depth: float  # the deepest of all references
    n_parts: int  # large parts with gaps between them
    gain: float  # of a mixture over one cloud, for each row, less that of permuted columns

    @property
    def of_clusters(self) -> bool:
        return (
            self.depth > self.reference_depth + MARGIN or self.n_parts > 1 or self.gain > LEAST_GAIN
        )


def signs_of(raw: np.ndarray, scaled: np.ndarray, seed: int) -> Signs:
    """Look for clusters in rows: (n, n_components) as members see them, and (n, n_features)."""
    rng = np.random.default_rng(seed_for(seed, "one group"))
    drawn = np.sort(rng.permutation(len(raw))[:MOST_ROWS])
    rows = raw[drawn]
    references = [make(rows, rng) for _ in range(N_REFERENCES) for make in (one_cloud, one_box)]
    permuted = [columns_permuted(scaled[drawn], rng) for _ in range(N_REFERENCES)]
    gains = [mixture_gain(each, seed) for each in permuted]
    return Signs(
        depth=deepest_valley(rows, seed),
        reference_depth=max(deepest_valley(each, seed) for each in references),
        n_parts=parts_with_gaps(scaled[drawn]),
        gain=mixture_gain(scaled[drawn], seed) - max(gains),
    )


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


def mixture_gain(X: np.ndarray, seed: int) -> float:
    """How much lower the BIC of a mixture is than that of one normal cloud, for each row; 0 at least."""
    components = of_one_scale(principal_components(X)[0][:, :N_COMPONENTS])
    scores = []
    for k in range(1, min(MOST_CLOUDS, len(X) // 3) + 1):
        mixture = GaussianMixture(k, reg_covar=1e-3, random_state=seed)
        with reproducible_threads():
            scores.append(mixture.fit(components).bic(components))
    return float(scores[0] - min(scores)) / len(X)
