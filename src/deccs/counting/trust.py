"""How far a label can be trusted, judged by rows that no training has touched.

After training, members agree on anything, even on noise: their support says little by itself. So it
is weighed together with what the raw data says of a label:

- neighbors: how many of the nearest rows of a sample have the same label;
- stability: how much better its cluster is found again when rows are left out than one of data
  without clusters;
- density: how near other rows are, compared with what is usual in the cluster. A row that is unlike
  all others is far from them, and nobody can be sure of it.

The weights were learned on a pool of data sets with known classes (docs/confidence.md). No class of
the data at hand takes part. Where nothing speaks for clusters at all, confidence is low everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from scipy.spatial.distance import cdist

from deccs.counting.cluster_stability import Drawn, rows_to_judge, stability_of
from deccs.counting.evidence import scaled_rows
from deccs.counting.one_group import Signs, signs_of
from deccs.counting.records import ClusterStability
from deccs.data.source import RowSource, SelectedRows, blocks
from deccs.labels import NOISE
from deccs.members.running import of_one_scale
from deccs.members.views import Components, fit_components
from deccs.seeds import seed_for
from deccs.storage import reals, stored

WEIGHTS = {"always": 0.05, "support": 0.2, "neighbors": 0.35, "stability": 2.0, "density": 1.25}
SUREST = 0.999  # support beyond this is alike
DENSEST = 1.0  # ... and density
N_NEIGHBORS = 10  # whose labels are compared
N_FAR = 20  # neighbors that the density is measured by
WITHOUT_SIGNS = 0.3  # what is left of confidence where nothing speaks for clusters
FAR_OUT = 1e4  # deviations: single precision has few digits left for differences
SAME = 1e-6  # of the squares of two rows: their distance is nothing but rounding
AT_ONCE = 1_000  # rows whose distances are held at once


@stored
@dataclass(frozen=True, eq=False)
class Trust:
    """What a fitted model keeps to judge its labels."""

    components: Components  # how any row is compared with the sample
    drawn: Drawn  # the sample, with its labels
    # Jaccard similarity of each cluster under resampling, less that by chance.
    stability: Annotated[np.ndarray, reals("n_clusters", least=-1, most=1)]
    # The log of the distance to neighbors inside each cluster.
    usual: Annotated[np.ndarray, reals("n_clusters")]
    signs: Signs  # of clusters in the data

    def check_stored(self) -> None:
        """Raise a ValueError for parts that do not fit each other."""
        axes = self.components.axes
        width = len(self.components.mean) if axes is None else axes.shape[1]
        if width != self.drawn.points.shape[1]:
            raise ValueError("components of trust and its sample have different columns")
        if not len(self.drawn.labels) or self.drawn.labels.max() >= len(self.stability):
            raise ValueError("the sample of trust has clusters that nothing is known of")

    def is_of(self, n_features: int, n_clusters: int) -> bool:
        """Whether it can judge rows of so many columns with labels of so many clusters."""
        return len(self.components.mean) == n_features and len(self.stability) == n_clusters

    def confidence(
        self,
        scaled: np.ndarray,
        labels: np.ndarray,
        support: np.ndarray,
        *,
        exactly: bool = True,
    ) -> np.ndarray:
        """How sure labels are: (n,) from 0 to 1, of (n, n_features) rows with the members' support.

        Not ``exactly`` is in single precision, ten times as fast.
        """
        logs = weighed(WEIGHTS, self.terms(scaled, labels, support, exactly=exactly))
        return sigmoid(logs) * (WITHOUT_SIGNS if self.signs.of_one_group else 1.0)

    def terms(
        self,
        scaled: np.ndarray,
        labels: np.ndarray,
        support: np.ndarray,
        *,
        exactly: bool = True,
    ) -> dict[str, np.ndarray]:
        """What is weighed, (n,) each."""
        look = around if exactly else about_around
        with np.errstate(over="ignore", invalid="ignore"):  # rows far out of any range
            share, distance = self._around(self.components(scaled), labels, look)
            density = self.usual[labels] - np.log(distance)
        return {
            "always": np.ones(len(labels)),
            "support": logit(np.clip(support, 1 - SUREST, SUREST)),
            "neighbors": logit(share),
            "stability": self.stability[labels],
            "density": np.minimum(density, DENSEST),
        }

    def _around(
        self, points: np.ndarray, labels: np.ndarray, look: Callable[..., Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of each point the share of neighbors with its label, and the distance of farther ones."""
        parts = [
            look(points[rows], labels[rows], self.drawn) for rows in blocks(len(points), AT_ONCE)
        ]
        share, distance = (np.concatenate(part) for part in zip(*parts, strict=True))
        return share, distance


def judge(
    source: RowSource,
    scaler: Callable[[np.ndarray], np.ndarray],
    label: Callable[[RowSource], np.ndarray],
    root: int,
    n_clusters: int,
    signs: Signs | None = None,
) -> tuple[Trust, list[ClusterStability]]:
    """What is known of the labels of a fit, and of each cluster, from a sample of its rows.

    ``label`` gives the labels of rows; ``signs`` are those of clusters, if they are known.
    """
    rows, seed = rows_to_judge(source, root), seed_for(root, "stability")
    scaled = scaled_rows(source, scaler, rows)
    components = fit_components(scaled, seed)
    points = components(scaled)
    drawn = Drawn(points, label(SelectedRows(source, rows)), seed, rows)
    signs = signs or signs_of(of_one_scale(points), scaled, seed)
    stability = stability_of(drawn)
    return trust_in(drawn, n_clusters, components, signs, stability), stability


def signs_for(model: Any, source: RowSource) -> Signs | None:
    """The signs of clusters in the data of a fit, known or looked for now; None for one cluster."""
    if getattr(model, "n_clusters_", 2) < 2:
        return None
    for part in (getattr(model, "trust_", None), getattr(model, "count_", None)):
        if part is not None and part.signs is not None:
            return part.signs
    if not hasattr(model, "scaler_"):  # a model of somebody else
        return None
    seed = seed_for(0, "stability")
    scaled = scaled_rows(source, model.scaler_, rows_to_judge(source, 0))
    return signs_of(of_one_scale(fit_components(scaled, seed)(scaled)), scaled, seed)


def trust_in(
    drawn: Drawn,
    n_clusters: int,
    components: Components,
    signs: Signs,
    stability: Sequence[ClusterStability],
) -> Trust:
    """What the drawn rows tell of the labels of a fit. Of clusters too small to judge, the mean."""
    above_chance = {each.cluster: each.jaccard - each.reference for each in stability}
    mean = np.mean(list(above_chance.values())) if above_chance else 0.0
    _, distance = around(drawn.points, drawn.labels, drawn)
    logs = np.log(distance)
    usual = np.full(n_clusters, np.median(logs))
    for cluster in np.unique(drawn.labels[drawn.labels != NOISE]):
        usual[cluster] = np.median(logs[drawn.labels == cluster])
    known = np.array([above_chance.get(cluster, mean) for cluster in range(n_clusters)])
    return Trust(components, drawn, known, usual, signs)


def around(points: np.ndarray, labels: np.ndarray, drawn: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """The share of the nearest drawn rows with the same label, and the distance of a farther one.

    A drawn row is not its own neighbor. Distances are differences of coordinates, so that a point
    gets the same numbers alone as among thousands. Half a neighbor is added to either side, so that
    no share is 0 or 1.

    >>> drawn = Drawn(np.array([[0.0], [1], [2], [9]]), np.array([0, 0, 1, 1]), seed=0)
    >>> around(np.array([[0.0], [1.6]]), np.array([0, 1]), drawn)  # 1 and 2; 2 and 1
    (array([0.5, 0.5]), array([2. , 0.6]))
    """
    n_far = max(1, min(N_FAR, len(drawn.labels) - 2))
    if len(drawn.labels) < 3:  # nobody but the row itself
        return np.full(len(labels), 0.5), np.full(len(labels), smallest(drawn))
    n_neighbors = min(N_NEIGHBORS, n_far)
    distances = np.nan_to_num(cdist(points, drawn.points), nan=np.inf)  # (n, n_drawn)
    nearest = np.argpartition(distances, n_far, axis=1)[:, : n_far + 1]
    near = np.take_along_axis(distances, nearest, axis=1)
    order = np.lexsort((nearest, near), axis=1)
    nearest = np.take_along_axis(nearest, order, axis=1)
    near = np.take_along_axis(near, order, axis=1)
    first = (near[:, 0] == 0).astype(int)[:, None]  # behind the row itself
    places = first + np.arange(n_neighbors)  # (n, n_neighbors)
    same = drawn.labels[np.take_along_axis(nearest, places, axis=1)] == labels[:, None]
    far = np.take_along_axis(near, first + n_far - 1, axis=1)[:, 0]
    return (same.sum(axis=1) + 0.5) / (n_neighbors + 1), np.maximum(far, smallest(drawn))


@torch.no_grad()
def about_around(
    points: np.ndarray, labels: np.ndarray, drawn: Drawn
) -> tuple[np.ndarray, np.ndarray]:
    """The same in single precision, by a product of matrices."""
    n_far = max(1, min(N_FAR, len(drawn.labels) - 2))
    far_out = np.abs(points).max(initial=0) > FAR_OUT  # squares would lose all digits, or overflow
    if len(drawn.labels) < 3 or far_out:
        return around(points, labels, drawn)
    center = drawn.points.mean(axis=0)  # near 0 squares lose least
    Z = torch.from_numpy((points - center).astype(np.float32))
    sample = torch.from_numpy((drawn.points - center).astype(np.float32))
    lengths = sample.square().sum(1)  # (n_drawn,)
    own = Z.square().sum(1, keepdim=True)
    squares = torch.addmm(lengths, Z, sample.T, alpha=-2).add_(own).clamp_(min=0)  # (n, n_drawn)
    near, nearest = smallest_of(squares.numpy(), n_far + 1)
    # A row that was drawn is not its own neighbor.
    first = (near[:, :1] <= SAME * (own + lengths.max()).numpy()).astype(int)
    n_neighbors = min(N_NEIGHBORS, n_far)
    places = first + np.arange(n_neighbors)  # (n, n_neighbors)
    same = drawn.labels[np.take_along_axis(nearest, places, axis=1)] == labels[:, None]
    far = np.take_along_axis(near, first + n_far - 1, axis=1)[:, 0]
    distance = np.sqrt(far.astype(np.float64))
    return (same.sum(axis=1) + 0.5) / (n_neighbors + 1), np.maximum(distance, smallest(drawn))


def smallest_of(values: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The n smallest of each row in order, and their places: (n_rows, n_columns) singles, none below 0.

    Singles that are not negative are ordered like their bits. The last bits give way to the place, so that
    whole numbers are sorted instead of pairs: ten times as fast, and right to three digits or more.

    >>> smallest_of(np.array([[4.0, 1, 2, 3]], dtype=np.float32), 2)
    (array([[1., 2.]], dtype=float32), array([[1, 2]], dtype=int32))
    """
    mask = np.int32((1 << (values.shape[1] - 1).bit_length()) - 1)
    keys = (values.view(np.int32) & ~mask) | np.arange(values.shape[1], dtype=np.int32)
    keys.partition(n - 1, axis=1)
    keys = keys[:, :n]
    keys.sort(axis=1)
    return (keys & ~mask).view(np.float32), keys & mask


def smallest(drawn: Drawn) -> float:
    """A distance that counts as none: copies of a row are not infinitely near."""
    size = float(np.abs(drawn.points).max(initial=0.0))
    return max(size, 1.0) * 1e-9


def weighed(weights: Mapping[str, float], terms: Mapping[str, np.ndarray]) -> np.ndarray:
    """The weighted sum of the terms."""
    return np.asarray(sum(weight * terms[name] for name, weight in weights.items()))


def logit(share: np.ndarray) -> np.ndarray:
    """The log odds of a share.

    >>> logit(np.array([0.5, 0.75])) == np.log([1, 3])
    array([ True,  True])
    """
    return np.asarray(np.log(share / (1 - share)))


def sigmoid(logs: np.ndarray) -> np.ndarray:
    """The share with these log odds; the inverse of :func:`logit`.

    >>> sigmoid(np.array([0.0, -np.inf]))
    array([0.5, 0. ])
    """
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-logs)))
