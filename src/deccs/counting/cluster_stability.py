"""Is this cluster real? What becomes of it when the data are drawn again.

After training, members agree on anything, even on noise. So a cluster is judged by data that no
training has touched: rows are left out, plain members cluster the rest again, and the cluster is
compared with the most similar one they find (the Jaccard similarity of fpc's ``clusterboot``). One
normal cloud with the same covariance tells how similar that is by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deccs.counting.drawn import MOST_DRAWN, Drawn
from deccs.counting.evidence import (
    N_DIMENSIONS,
    RESAMPLE_STEPS,
    affordable,
    scaled_rows,
)
from deccs.counting.one_group import one_cloud
from deccs.counting.panel import Partitions, by_genie, by_kmeans, by_mixture, by_ward
from deccs.counting.records import ClusterStability
from deccs.counting.untrained import Untrained
from deccs.counting.valleys import ties_between, valleys
from deccs.data.sampling import draw_rows
from deccs.data.source import RowSource
from deccs.labels import NOISE
from deccs.members.agreement import adjusted_rand
from deccs.members.manifold import manifold_embedding
from deccs.members.running import of_one_scale
from deccs.members.spanning_tree import spanning_tree
from deccs.members.views import fit_components
from deccs.seeds import generator_for, seed_for

N_RESAMPLES = 12
ROW_SHARE = 0.8  # of the rows in a resample
VERY_STABLE, STABLE, DOUBTFUL = 0.85, 0.75, 0.6  # least Jaccard similarities, as fpc advises
ABOVE_CHANCE = 0.05  # what a cluster must have more than one of data without clusters
LEAST_ROWS = 3  # of a cluster in the sample, for anything to be said of it


def draw(source: RowSource, scaler: Any, labels: np.ndarray, root: int) -> Drawn:
    """A sample of the rows of a fit, small enough to be kept in a model."""
    rows = rows_to_judge(source, root)
    scaled = scaled_rows(source, scaler, rows)
    components = fit_components(scaled, seed_for(root, "stability"))
    return Drawn(components(scaled), labels[rows], seed_for(root, "stability"), rows)


def rows_to_judge(source: RowSource, root: int) -> np.ndarray:
    """The numbers of the rows that tell what a fit is worth: (n_drawn,)."""
    n_rows, n_features = source.shape
    most = affordable(MOST_DRAWN, n_features)
    return draw_rows(n_rows, most, generator_for(root, "stability")).numpy()


def stability_of(drawn: Drawn) -> list[ClusterStability]:
    """What is known of each cluster: nothing of the only one, of noise and of a few stray rows."""
    return judged(drawn)[0]


def judged(drawn: Drawn) -> tuple[list[ClusterStability], Untrained | None]:
    """What is known of each cluster, and the partitions of resamples it is known from.

    There are none for a single cluster.
    """
    known = drawn.labels != NOISE
    labels, points = drawn.labels[known], of_one_scale(drawn.points[known])
    clusters, numbers = np.unique(labels, return_inverse=True)  # numbers have no gaps
    k = len(clusters)
    if k < 2:
        return [], None
    found = Members(points, k, drawn.seed).stability(numbers)
    reference = reference_stability(points, k, drawn.seed)
    depth = valleys(ties_between(points, spanning_tree(points)), numbers)
    sizes = np.bincount(numbers)
    stability = [
        ClusterStability(
            cluster=int(cluster),
            size=int(size),
            jaccard=float(similarity),
            reference=reference,
            agreement=float(by_members),
            separation=float(valley),
            verdict=verdict(float(similarity), reference, float(valley)),
        )
        for cluster, size, similarity, by_members, valley in zip(
            clusters, sizes, found.jaccard, found.agreement, depth, strict=True
        )
        if size >= LEAST_ROWS
    ]
    return stability, Untrained(spread(found.resamples, known))


def spread(partitions: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Partitions of the known rows as partitions of all: (m, n_known), (n,) -> (m, n), -1 elsewhere.

    >>> spread(np.array([[0, 1]]), np.array([True, False, True]))
    array([[ 0, -1,  1]], dtype=int16)
    """
    whole = np.full((len(partitions), len(known)), NOISE, dtype=np.int16)
    whole[:, known] = partitions
    return whole


def verdict(jaccard: float, reference: float, depth: float) -> str:
    """In a word. A cluster without a valley that is no more stable than chance is doubtful at best.

    >>> verdict(0.9, 0.5, 1.0), verdict(0.9, 0.9, 0.0), verdict(0.7, 0.5, 1.0), verdict(0.4, 0.3, 1.0)
    ('very stable', 'doubtful', 'doubtful', 'dissolves')
    """
    if jaccard < DOUBTFUL:
        return "dissolves"
    if jaccard < STABLE or (jaccard < reference + ABOVE_CHANCE and depth <= 0):
        return "doubtful"
    return "very stable" if jaccard >= VERY_STABLE else "stable"


Cluster = Callable[[np.ndarray, int, int], np.ndarray | None]  # points, k, seed -> labels
CLUSTER: dict[str, Cluster] = {
    "kmeans": lambda Z, k, seed: by_kmeans(Z, [k], seed)[0],
    "ward": lambda Z, k, seed: by_ward(Z, [k])[0],
    "genie": lambda Z, k, seed: by_genie(spanning_tree(Z), [k])[0],
    "mixture": lambda Z, k, seed: by_mixture(Z, [k], seed)[0],
}


@dataclass(frozen=True, eq=False)
class Found:
    """What plain members have found in points with labels."""

    jaccard: np.ndarray  # (k,) of each cluster, under resampling
    agreement: np.ndarray  # (k,) of each cluster, with the members
    resamples: np.ndarray  # (n_resamples, n) partitions of resamples, -1 for rows left out


@dataclass(frozen=True, eq=False)
class Members:
    """Plain members that cluster points, all of them or some, into k clusters."""

    points: np.ndarray  # (n, n_components)
    k: int
    seed: int

    @cached_property
    def manifold(self) -> np.ndarray:
        """A layout of all points: (n, n_dimensions)."""
        n_dimensions = min(N_DIMENSIONS, max(2, self.points.shape[1]))
        layout = manifold_embedding(self.points, n_dimensions, self.seed, n_steps=RESAMPLE_STEPS)
        return of_one_scale(layout)

    def ask(self, rows: np.ndarray, seed: int, only: str | None = None) -> Partitions:
        """What each member says of some rows, or what one of them says."""
        said: Partitions = {}
        for view, Z in (("raw", self.points[rows]), ("manifold", self.manifold[rows])):
            for name, cluster in CLUSTER.items():
                if only in (None, f"{view} {name}"):
                    labels = cluster(Z, self.k, seed)
                    if labels is not None:
                        said[f"{view} {name}"] = labels
        return said

    def stability(self, labels: np.ndarray | None = None) -> Found:
        """Of each cluster the Jaccard similarity under resampling and with the members, and the resamples.

        The member whose partition is most like the labels stands for the method in the resamples.
        Without labels it is k-means on the manifold, and its clusters are judged.
        """
        n = len(self.points)
        said = self.ask(np.arange(n), self.seed)
        if labels is None:
            labels = said["manifold kmeans"]
        n_clusters = int(labels.max()) + 1
        surrogate = max(said, key=lambda name: adjusted_rand(labels, said[name]))
        resamples, again = [], []
        for number in range(N_RESAMPLES):
            rng = np.random.default_rng(seed_for(self.seed, "resample", number))
            rows = np.sort(rng.permutation(n)[: max(self.k, int(ROW_SHARE * n))])
            partition = self.ask(rows, seed_for(self.seed, number), surrogate).get(surrogate)
            if partition is not None:
                again.append(best_jaccard(labels[rows], partition, n_clusters))
                resamples.append(np.full(n, NOISE))
                resamples[-1][rows] = partition
        agreement = [best_jaccard(labels, other, n_clusters) for other in said.values()]
        return Found(
            jaccard=np.nanmean(again, axis=0),
            agreement=np.nanmean(agreement, axis=0),
            resamples=np.stack(resamples),
        )


def best_jaccard(labels: np.ndarray, other: np.ndarray, n_clusters: int) -> np.ndarray:
    """Of each cluster the similarity with the most similar one: (n_clusters,), NaN for an empty one.

    >>> best_jaccard(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), 2)  # 2 of 3, and 1 of 2
    array([0.66666667, 0.5       ])
    """
    n_other = int(other.max()) + 1
    counts = np.bincount(labels * n_other + other, minlength=n_clusters * n_other)
    shared = counts.reshape(n_clusters, n_other)
    either = shared.sum(axis=1, keepdims=True) + shared.sum(axis=0) - shared
    best = (shared / np.maximum(either, 1)).max(axis=1)
    return np.where(shared.sum(axis=1) > 0, best, np.nan)


def reference_stability(points: np.ndarray, k: int, seed: int) -> float:
    """The mean Jaccard similarity of k clusters of data without clusters."""
    made = of_one_scale(one_cloud(points, np.random.default_rng(seed)))
    return float(np.nanmean(Members(made, k, seed).stability().jaccard))
