"""Genie: single linkage that never lets cluster sizes become too unequal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from deccs.checks import Parameters, check_parameters, share, whole
from deccs.members.spanning_tree import parts_of, spanning_tree


@dataclass(eq=False, repr=False)
class Genie(ClusterMixin, Parameters, BaseEstimator):
    """The Genie algorithm of Gagolewski, Bartoszuk and Cena (2016).

    Single linkage finds clusters of any shape, but a few stray points spoil it: they become
    clusters, and all else is merged. Genie merges along the same tree. Whenever the Gini index of
    the cluster sizes is above ``gini``, the next merge must take in one of the smallest clusters.

    Our own code: the authors' package has the AGPL as its license.
    """

    n_clusters: Annotated[int, whole(at_least=1)] = 8
    gini: Annotated[float, share(zero=True, one=True)] = 0.3

    def fit(self, X: np.ndarray, y: object = None) -> Genie:
        check_parameters(self)
        self.labels_ = merged(spanning_tree(X).edges, self.n_clusters, self.gini)
        return self


def merged(edges: np.ndarray, n_clusters: int, gini: float) -> np.ndarray:
    """Merge the ends of edges, the first ones first, until ``n_clusters`` are left: (n_points,) labels.

    >>> chain = np.array([[0, 1], [2, 3], [1, 2], [4, 5], [3, 4]])
    >>> merged(chain, 3, gini=1.0), merged(chain, 3, gini=0.0)
    (array([0, 0, 0, 0, 1, 2]), array([0, 0, 1, 1, 2, 2]))
    """
    return parts_of(genie_merges(edges, gini, n_clusters), len(edges) + 1)


def genie_merges(edges: np.ndarray, gini: float, n_clusters: int = 1) -> np.ndarray:
    """The edges of a spanning tree in the order Genie merges along them: (n_points - n_clusters, 2).

    >>> chain = np.array([[0, 1], [2, 3], [1, 2], [4, 5], [3, 4]])
    >>> genie_merges(chain, gini=0.0).tolist()  # 4 and 5 are the smallest, so they go before 1 and 2
    [[0, 1], [2, 3], [4, 5], [1, 2], [3, 4]]
    """
    n = len(edges) + 1
    parent, size, sizes = list(range(n)), [1] * n, Counter({1: n})
    ends = edges.tolist()
    waiting = list(range(n - 1))  # edges not used yet, in order
    first = 0  # all before this place in `waiting` are used
    used = []

    def root(point: int) -> int:
        while parent[point] != point:
            parent[point] = parent[parent[point]]
            point = parent[point]
        return point

    for n_left in range(n, n_clusters, -1):
        while waiting[first] < 0:
            first += 1
        place = first
        if gini_index(sizes, n_left) > gini:
            smallest = min(sizes)
            while waiting[place] < 0 or smallest not in (
                size[root(ends[place][0])],
                size[root(ends[place][1])],
            ):
                place += 1
        waiting[place] = -1
        used.append(place)
        a, b = root(ends[place][0]), root(ends[place][1])
        sizes.subtract((size[a], size[b]))
        sizes += Counter()  # drops the sizes no cluster has any more
        parent[b] = a
        size[a] += size[b]
        sizes[size[a]] += 1
    return edges[np.array(used, dtype=np.int64)]


def gini_index(sizes: Counter[int], n_clusters: int) -> float:
    """How unequal cluster sizes are: 0 for equal ones, up to 1. ``sizes`` counts clusters by size.

    The mean difference of two clusters, divided by twice the mean size.

    >>> gini_index(Counter({1: 2, 4: 1}), 3)  # differences 0, 3, 3 of sizes that add up to 6
    0.5
    """
    if n_clusters < 2:
        return 0.0
    difference, n_smaller, points_in_smaller = 0, 0, 0
    for size, count in sorted(sizes.items()):
        difference += count * (size * n_smaller - points_in_smaller)
        n_smaller += count
        points_in_smaller += count * size
    return difference / ((n_clusters - 1) * points_in_smaller)
