"""What members look at: the embedding of a round, the raw data, or a manifold of the raw data.

The raw data and its manifold do not change from round to round, and no training has touched them.
So members that see them are asked once, and the neighbors found there judge every result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.data.source import blocks, rows_at_once
from deccs.members.carry import NearestInSample
from deccs.members.manifold import manifold_embedding
from deccs.members.neighbors import neighbor_graph, normalized_cut
from deccs.seeds import generator_for, seed_for
from deccs.storage import stored

EMBEDDING, RAW, MANIFOLD = VIEWS = ("embedding", "raw", "manifold")
MOST_VIEWED = 10_000  # rows: members that compare all pairs still take seconds
MOST_COMPONENTS = 50  # of the raw data
MOST_DIMENSIONS = 10  # of the manifold


@stored
@dataclass(frozen=True, eq=False)
class Components:
    """Scaled rows as members see them: their principal components, or as they are if they have few columns."""

    mean: np.ndarray  # (n_features,)
    axes: np.ndarray | None  # (n_features, n_components)

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """(n, n_features) -> (n, n_components)"""
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
    components: Components
    graphs: tuple[sp.csr_array, ...]  # neighbors in the raw data and on the manifold

    def view(self, name: str) -> np.ndarray:
        return self.raw if name == RAW else self.manifold

    def cut(self, labels: np.ndarray) -> float:
        """The share of ties between neighbors that a partition of the sample cuts, mean over graphs."""
        return float(np.mean([normalized_cut(graph, labels) for graph in self.graphs]))

    def carried(self, rows: Rows, labelings: np.ndarray) -> np.ndarray:
        """Labels of the sample carried to all rows: (m, n_sample) -> (m, n_rows)."""
        if len(self.sample) == len(rows):
            return labelings
        nearest = NearestInSample(self.raw, np.arange(len(self.raw)))
        places = [
            nearest.places(self.components(rows.scaled(place)))
            for place in blocks(len(rows), rows_at_once(rows.n_features))
        ]
        return labelings[:, np.concatenate(places)]


def views_of(rows: Rows, n_clusters: int, root: int) -> Views:
    """Look at the raw data, all rows or a sample of them."""
    sample = draw_rows(len(rows), MOST_VIEWED, generator_for(root, "views")).numpy()
    scaled = rows.scaled(sample)
    components = fit_components(scaled, seed_for(root, "components"))
    raw = components(scaled)
    n_dimensions = min(max(n_clusters, 2), MOST_DIMENSIONS)
    manifold = manifold_embedding(raw, n_dimensions, seed_for(root, "manifold"))
    # Two sizes of neighborhood on the manifold: the layout tears its own small ones apart.
    graphs = neighbor_graph(raw, 10), neighbor_graph(manifold, 10), neighbor_graph(manifold, 20)
    return Views(sample, raw, manifold, components, graphs)


@stored
@dataclass(frozen=True, eq=False)
class Seen:
    """What a fitted model keeps of the views: any row is judged by its nearest row of the sample."""

    components: Components
    raw: np.ndarray  # (n_sample, n_components)
    labels: np.ndarray  # (n_sample,) the result
    names: tuple[str, ...]  # of the members of the views
    partitions: np.ndarray  # (n_members, n_sample) what they said

    def places(self, scaled: np.ndarray) -> np.ndarray:
        """(n, n_features) -> (n,) the place in the sample of each row's nearest neighbor."""
        return self._nearest.places(self.components(scaled))

    def partition(self, name: str) -> np.ndarray:
        """(n_sample,)"""
        partition: np.ndarray = self.partitions[self.names.index(name)]
        return partition

    @cached_property
    def _nearest(self) -> NearestInSample:
        return NearestInSample(self.raw, np.arange(len(self.raw)))
