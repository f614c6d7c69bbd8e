"""What different members say for every k: trees and eigenvectors give all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from deccs.labels import canonical
from deccs.members.agglomerative import ward_merges
from deccs.members.genie import Genie, genie_merges
from deccs.members.spanning_tree import SpanningTree, parts_of, spanning_tree
from deccs.members.spectral import DIFFUSION, of_length_one
from deccs.seeds import reproducible_threads
from deccs.spreading import each

# All members run up to so many clusters, with several starts: their cost grows with k.
MOST_CAREFUL = 15
MOST_MIXED = 20  # columns up to which a mixture has enough rows for its covariances
N_INIT = 3  # starts of k-means; its stability would show if they were too few

Partitions = dict[str, np.ndarray]  # by member: (n,) labels, numbered by first appearance


def tree_cuts(merges: np.ndarray, ks: Sequence[int]) -> list[np.ndarray]:
    """The clusters that merges (n - 1, 2), the first ones first, leave for each k.

    >>> tree_cuts(np.array([[0, 1], [1, 2]]), [2, 3])
    [array([0, 0, 1]), array([0, 1, 2])]
    """
    n = len(merges) + 1
    return [parts_of(merges[: n - k], n) for k in ks]


def by_kmeans(
    Z: np.ndarray, ks: Sequence[int], seed: int, n_init: int = N_INIT
) -> list[np.ndarray]:
    labels = []
    with reproducible_threads():
        for k in ks:
            starts = n_init if k <= MOST_CAREFUL else 1  # a start costs more, and matters less
            kmeans = KMeans(k, n_init=starts, random_state=seed)
            labels.append(canonical(kmeans.fit_predict(Z).astype(np.int64)))
    return labels


def by_ward(Z: np.ndarray, ks: Sequence[int]) -> list[np.ndarray]:
    return tree_cuts(ward_merges(Z), ks)


def by_genie(tree: SpanningTree, ks: Sequence[int]) -> list[np.ndarray]:
    return tree_cuts(genie_merges(tree.edges, Genie().gini), ks)


def by_mixture(Z: np.ndarray, ks: Sequence[int], seed: int) -> list[np.ndarray | None]:
    """None where a mixture cannot be fitted."""
    labels: list[np.ndarray | None] = []
    for k in ks:
        mixture = GaussianMixture(k, reg_covar=1e-4, random_state=seed)
        try:
            with reproducible_threads():
                labels.append(canonical(mixture.fit_predict(Z).astype(np.int64)))
        except ValueError:  # a cluster has collapsed
            labels.append(None)
    return labels


def by_eigenvectors(
    values: np.ndarray, vectors: np.ndarray, ks: Sequence[int], seed: int
) -> list[np.ndarray]:
    """Spectral clustering from (n_components,) eigenvalues and (n, n_components) vectors."""
    weighted = vectors * np.maximum(values, 0) ** DIFFUSION
    labels = []
    for k in ks:
        with reproducible_threads():
            kmeans = KMeans(k, n_init=N_INIT, random_state=seed)
            labels.append(kmeans.fit_predict(of_length_one(weighted[:, : k * 3 // 2])))
    return [canonical(each.astype(np.int64)) for each in labels]


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """Of the neighbor graph of the raw data, the largest first."""

    values: np.ndarray  # (n_components,)
    vectors: np.ndarray  # (n, n_components)


def eigenpairs_of(graph: sp.csr_array, n_components: int) -> Eigenpairs:
    """All at once and dense: a sample is small, and Lanczos iterations miss repeated eigenvalues."""
    scale = sp.diags_array(1 / np.sqrt(graph.sum(axis=1)))
    values, vectors = np.linalg.eigh((scale @ graph @ scale).toarray())
    return Eigenpairs(values[::-1][:n_components], vectors[:, ::-1][:, :n_components])


def partitions_by(
    raw: np.ndarray,
    manifold: np.ndarray,
    tree: SpanningTree,
    eigenpairs: Eigenpairs,
    ks: Sequence[int],
    seed: int,
    name: str,
) -> Sequence[np.ndarray | None]:
    """What one member says of one view, for each k or for those up to ``MOST_CAREFUL``."""
    careful = [k for k in ks if k <= MOST_CAREFUL]
    view, _, member = name.partition(" ")
    Z = raw if view == "raw" else manifold
    if member == "spectral":
        return by_eigenvectors(eigenpairs.values, eigenpairs.vectors, careful, seed)
    if member == "kmeans":
        return by_kmeans(Z, ks, seed)
    if member == "ward":
        return by_ward(Z, ks)
    if member == "genie":
        return by_genie(tree if view == "raw" else spanning_tree(Z), ks)
    return by_mixture(Z, careful, seed)


@dataclass(frozen=True, eq=False)
class Panel:
    """The partitions of a sample, for each k tried."""

    ks: list[int]
    at: list[Partitions]  # (n_ks,)

    def by(self, member: str) -> list[np.ndarray]:
        """One member's partitions over k."""
        return [partitions[member] for partitions in self.at]


def panel_of(
    raw: np.ndarray,
    manifold: np.ndarray,
    tree: SpanningTree,
    eigenpairs: Eigenpairs,
    ks: Sequence[int],
    seed: int,
) -> Panel:
    """Ask members of different kinds, on the raw data and on its manifold."""
    names = [
        f"{view} {member}"
        for view, Z in (("raw", raw), ("manifold", manifold))
        for member in ("kmeans", "ward", "genie", "mixture")
        if member != "mixture" or Z.shape[1] <= MOST_MIXED
    ]
    names = ["raw spectral", *names]
    shared = (raw, manifold, tree, eigenpairs, ks, seed)
    said = dict(zip(names, each(partitions_by, shared, [(name,) for name in names]), strict=True))
    at: list[Partitions] = []
    for place in range(len(ks)):
        here = {name: labels[place] for name, labels in said.items() if place < len(labels)}
        at.append({name: labels for name, labels in here.items() if labels is not None})
    return Panel(list(ks), at)
