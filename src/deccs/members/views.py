"""What members look at: the embedding of a round, the raw data, or a manifold of the raw data.

The raw data and its manifold do not change from round to round, and no training for agreement has
touched them. So members that see them are asked once, and can judge what the rounds make of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

from deccs.data.rows import Rows
from deccs.data.source import blocks, rows_at_once
from deccs.members.carry import NearestInSample
from deccs.members.manifold import manifold_embedding
from deccs.members.neighbors import neighbor_graph
from deccs.members.spanning_tree import SpanningTree, spanning_tree
from deccs.storage import reals, stored, wholes

EMBEDDING, RAW, MANIFOLD = VIEWS = ("embedding", "raw", "manifold")
MOST_VIEWED = 10_000  # rows: members that compare all pairs still take seconds
MOST_COMPONENTS = 50  # of the raw data
MOST_DIMENSIONS = 10  # of the manifold
NEAR, WIDE = 5, 10  # neighbors of a point in the two graphs, itself included


@stored
@dataclass(frozen=True, eq=False)
class Components:
    """Scaled rows as members see them: principal components, or as they are if they have few columns."""

    mean: Annotated[np.ndarray, reals("n_features")]
    axes: Annotated[np.ndarray, reals("n_features", "n_components")] | None

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """(n, n_features) -> (n, n_components)."""
        return block if self.axes is None else (block - self.mean) @ self.axes


def fit_components(sample: np.ndarray, seed: int) -> Components:
    """Principal components of (n_sample, n_features) where there are more columns than components."""
    n_sample, n_features = sample.shape
    if n_features <= MOST_COMPONENTS:
        return Components(np.zeros(n_features), None)
    pca = PCA(min(MOST_COMPONENTS, n_sample), random_state=seed).fit(sample)
    return Components(pca.mean_, pca.components_.T.copy())


@dataclass(frozen=True, eq=False)
class Views:
    """A sample of the rows, the same for all rounds, as members and judge see it."""

    sample: np.ndarray  # (n_sample,) row numbers, in order
    raw: np.ndarray  # (n_sample, n_components)
    manifold: np.ndarray  # (n_sample, n_dimensions)
    near: sp.csr_array  # graph of the nearest neighbors in the raw data
    wide: sp.csr_array  # ... and of more of them
    tree: SpanningTree  # of the raw data

    def view(self, name: str) -> np.ndarray:
        return self.raw if name == RAW else self.manifold


def views_of(
    scaled: np.ndarray, components: Components, sample: np.ndarray, n_clusters: int, seed: int
) -> Views:
    """The views of a sample, from its scaled rows (n_sample, n_features).

    Neighbors are found in all columns: 50 components of word counts hold too little of them.
    """
    n_dimensions = min(max(n_clusters, 2), MOST_DIMENSIONS)
    manifold = manifold_embedding(scaled, n_dimensions, seed)
    graphs = neighbor_graph(scaled, NEAR), neighbor_graph(scaled, WIDE)
    return Views(sample, components(scaled), manifold, *graphs, spanning_tree(scaled))


@stored
@dataclass(frozen=True, eq=False)
class Seen:
    """What a fitted model keeps of the views: a row is what its nearest row of the sample is."""

    components: Components
    raw: Annotated[np.ndarray, reals("n_sample", "n_components")]
    names: tuple[str, ...]  # of the members of the views
    partitions: Annotated[np.ndarray, wholes("n_members", "n_sample")]  # what they said
    # The result, if it is not that of a classifier.
    labels: Annotated[np.ndarray, wholes("n_sample", least=0)] | None

    def places(self, scaled: np.ndarray) -> np.ndarray:
        """(n, n_features) -> (n,) the place in the sample of each row's nearest neighbor."""
        return self._nearest.places(self.components(scaled))

    def at(self, places: np.ndarray) -> Seen:
        """What was said of the rows at these places."""
        labels = None if self.labels is None else self.labels[places]
        return replace(self, labels=labels, partitions=self.partitions[:, places])

    @cached_property
    def _nearest(self) -> NearestInSample:
        return NearestInSample(self.raw, np.arange(len(self.raw)))


def carried(
    labels: np.ndarray, points: np.ndarray, sample: np.ndarray, rows: Rows, components: Components
) -> np.ndarray:
    """Labels of a sample for all rows, by the nearest row of the sample: (n_sample,) -> (n_rows,)."""
    if len(sample) == len(rows):
        return labels
    nearest = NearestInSample(points, labels)
    places = blocks(len(rows), rows_at_once(rows.n_features))
    return np.concatenate([nearest(components(rows.scaled(place))) for place in places])
