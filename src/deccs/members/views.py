"""What members look at: the embedding of a round, the raw data, or a manifold of the raw data.

The raw data and its manifold do not change from round to round, and no training for agreement has
touched them. So members that see them are asked once, and can judge what the rounds make of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

from deccs.data.rows import Rows
from deccs.data.source import blocks, rows_at_once
from deccs.inference.nearest import NearestInSample
from deccs.inference.seen import MOST_COMPONENTS, Components
from deccs.members.manifold import manifold_embedding
from deccs.members.neighbors import neighbor_graph
from deccs.members.spanning_tree import SpanningTree, spanning_tree

EMBEDDING, RAW, MANIFOLD = VIEWS = ("embedding", "raw", "manifold")
MOST_VIEWED = 10_000  # rows: members that compare all pairs still take seconds
MOST_DIMENSIONS = 10  # of the manifold
NEAR, WIDE = 5, 10  # neighbors of a point in the two graphs, itself included


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


def carried(
    labels: np.ndarray, points: np.ndarray, sample: np.ndarray, rows: Rows, components: Components
) -> np.ndarray:
    """Labels of a sample for all rows, by the nearest row of the sample: (n_sample,) -> (n_rows,)."""
    if len(sample) == len(rows):
        return labels
    nearest = NearestInSample(points, labels)
    places = blocks(len(rows), rows_at_once(rows.n_features))
    return np.concatenate([nearest(components(rows.scaled(place))) for place in places])
