"""Linkage of weighted rows. scipy's linkage has no weights, and would need a row for every point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

NEVER = -np.inf  # the similarity with itself, and with rows that are merged into another


class Similarities(Protocol):
    """What merging needs: the similarity of one row with all others, and how to join two rows."""

    def __len__(self) -> int: ...
    def of(self, row: int) -> np.ndarray: ...
    def join(self, kept: int, gone: int) -> None: ...


class Dense:
    """All pairs of rows, (n_rows, n_rows), changed in place."""

    def __init__(self, matrix: np.ndarray, sizes: np.ndarray, linkage: str) -> None:
        self.matrix, self.sizes, self.linkage = matrix, sizes.astype(float), linkage
        np.fill_diagonal(matrix, NEVER)

    def __len__(self) -> int:
        return len(self.sizes)

    def of(self, row: int) -> np.ndarray:
        return self.matrix[row]

    def join(self, kept: int, gone: int) -> None:
        a, b = self.matrix[kept], self.matrix[gone]
        if self.linkage == "single":
            joined = np.maximum(a, b)
        else:
            size_a, size_b = self.sizes[kept], self.sizes[gone]
            joined = (size_a * a + size_b * b) / (size_a + size_b)
        joined[[kept, gone]] = NEVER
        self.matrix[kept] = self.matrix[:, kept] = joined
        self.matrix[:, gone] = NEVER
        self.sizes[kept] += self.sizes[gone]


class Factored:
    """Average linkage without pairs: the mean of F F^T over two sets is the product of the means of F."""

    def __init__(self, factors: np.ndarray, sizes: np.ndarray) -> None:
        self.factors, self.sizes = factors, sizes.astype(float)  # (n_rows, n_factors)
        self.penalty = np.zeros(len(sizes))  # NEVER for rows that are merged into another

    def __len__(self) -> int:
        return len(self.sizes)

    def of(self, row: int) -> np.ndarray:
        similarity = self.factors @ self.factors[row] + self.penalty
        similarity[row] = NEVER
        return similarity

    def join(self, kept: int, gone: int) -> None:
        size_a, size_b = self.sizes[kept], self.sizes[gone]
        self.factors[kept] = (size_a * self.factors[kept] + size_b * self.factors[gone]) / (
            size_a + size_b
        )
        self.penalty[gone] = NEVER
        self.sizes[kept] += size_b


@dataclass(frozen=True, eq=False)
class Tree:
    """Merges from the most similar to the least."""

    pairs: np.ndarray  # (n_rows - 1, 2) a row of each of the two clusters that are merged
    similarity: np.ndarray  # (n_rows - 1,) average or largest similarity of the two, falling

    def cut(self, n_clusters: int) -> np.ndarray:
        """(n_rows,) labels, with the last ``n_clusters - 1`` merges undone."""
        n_rows = len(self.pairs) + 1
        kept = self.pairs[: max(n_rows - n_clusters, 0)]
        graph = coo_array((np.ones(len(kept)), (kept[:, 0], kept[:, 1])), shape=(n_rows, n_rows))
        return connected_components(graph, directed=False)[1]


def merge_tree(similarities: Similarities) -> Tree:
    """Follow nearest neighbors until two are each other's, merge them, continue (Murtagh's chain).

    The tree is the same as if the closest pair was merged each time, for every linkage in which a
    merged cluster is never nearer to others than its parts were. A merge reads about three rows.
    """
    n = len(similarities)
    pairs, heights = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    alive = np.ones(n, dtype=bool)
    chain: list[int] = []
    for merge in range(n - 1):
        if not chain:
            chain.append(int(alive.argmax()))
        while True:
            last = chain[-1]
            similarity = similarities.of(last)
            nearest = int(similarity.argmax())
            # The previous one wins ties, up to rounding; else the chain could run in a circle.
            if len(chain) > 1 and similarity[chain[-2]] >= similarity[nearest] - 1e-12:
                break
            chain.append(nearest)
        gone, kept = sorted((chain.pop(), chain.pop()), reverse=True)
        pairs[merge], heights[merge] = (kept, gone), similarity[kept if last == gone else gone]
        similarities.join(kept, gone)
        alive[gone] = False
    # Equal heights stay in the order of merging: no parent comes before its child.
    order = np.argsort(-heights.round(12), kind="stable")
    return Tree(pairs[order], heights[order])
