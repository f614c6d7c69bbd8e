"""How far a label can be trusted, judged by what no training has touched.

After training, members agree on anything, even on noise: their support says little by itself. So it
is weighed together with what is known of a label without any training:

- together: how much of its cluster stays with the nearest rows when rows are left out and plain members
  cluster the rest again;
- density: how near other rows are, compared with what is usual in the cluster. A row that is unlike
  all others is far from them, and nobody can be sure of it;
- valley: how much thinner the data is around its cluster than inside it;
- shallowest: the same of the cluster that has the least of a valley around it. It tells how often labels
  are right in data like this.

The weights were learned on a pool of data sets with known classes (docs/confidence.md). No class of
the data at hand takes part. Where nothing speaks for clusters at all, confidence is low everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from deccs.counting.drawn import Drawn
from deccs.counting.signs import Signs
from deccs.counting.untrained import Untrained
from deccs.data.source import blocks
from deccs.inference.nearest import distances
from deccs.inference.seen import Components
from deccs.storage import reals, stored

WEIGHTS = {
    "always": 0.53,
    "support": 0.05,
    "together": 1.94,
    "density": 0.99,
    "valley": 0.60,
    "shallowest": 1.09,
}
# Of fits without views, where the pool has nothing to learn from, and of models of an earlier deccs.
OLD_WEIGHTS = {"always": 0.05, "support": 0.2, "neighbors": 0.35, "stability": 2.0, "density": 1.25}
SUREST = 0.999  # support beyond this is alike
DENSEST = 1.0  # ... and density
FLAT = -1.0  # valleys: where the data is even denser between clusters, they are as little apart
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
    # What a plain member says of resamples, and the depth of the valley around each cluster; None for fits
    # without views, and in older models.
    untrained: Untrained | None = None
    valleys: Annotated[np.ndarray, reals("n_clusters")] | None = None

    def check_stored(self) -> None:
        """Raise a ValueError for parts that do not fit each other."""
        axes = self.components.axes
        width = len(self.components.mean) if axes is None else axes.shape[1]
        if width != self.drawn.points.shape[1]:
            raise ValueError("components of trust and its sample have different columns")
        if not len(self.drawn.labels) or self.drawn.labels.max() >= len(self.stability):
            raise ValueError("the sample of trust has clusters that nothing is known of")
        if (self.untrained is None) != (self.valleys is None):
            raise ValueError("trust must have both untrained and valleys, or none of them")
        if self.untrained is not None:
            n_drawn = len(self.drawn.labels)
            if self.untrained.resamples.shape[1] != n_drawn:
                raise ValueError("the resamples of trust must be of the rows of its sample")

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
        weights = OLD_WEIGHTS if self.untrained is None else WEIGHTS
        logs = weighed(weights, self.terms(scaled, labels, support, exactly=exactly))
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
        look = neighbors_of if exactly else about_neighbors_of
        with np.errstate(over="ignore", invalid="ignore"):  # rows far out of any range
            places, distance = self._neighbors(self.components(scaled), look)
            density = self.usual[labels] - np.log(distance)
        terms = {
            "always": np.ones(len(labels)),
            "support": logit(np.clip(support, 1 - SUREST, SUREST)),
            "density": np.minimum(density, DENSEST),
        }
        if self.untrained is None or self.valleys is None:
            same = self.drawn.labels[places] == labels[:, None]  # (n, n_neighbors)
            return terms | {
                "neighbors": logit(share_of(same)),
                "stability": self.stability[labels],
            }
        valleys = np.maximum(self.valleys, FLAT)  # (n_clusters,)
        return terms | {
            "together": share_of(self._together[places, labels[:, None]]),
            "valley": valleys[labels],
            "shallowest": np.full(len(labels), valleys.min()),
        }

    @cached_property
    def _together(self) -> np.ndarray:
        """How much of each cluster stays with each drawn row: (n_drawn, n_clusters)."""
        assert self.untrained is not None
        return self.untrained.togetherness(self.drawn.labels, len(self.stability))

    def _neighbors(
        self, points: np.ndarray, look: Callable[..., Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of each point its nearest drawn rows, and the distance of a farther one."""
        parts = [look(points[rows], self.drawn) for rows in blocks(len(points), AT_ONCE)]
        places, distance = (np.concatenate(part) for part in zip(*parts, strict=True))
        return places, distance


def of_each(known: Mapping[int, float], n_clusters: int) -> np.ndarray:
    """What is known of some clusters as one number for each, (n_clusters,): the mean for the others.

    >>> of_each({0: 0.5, 2: 1.0}, 3)
    array([0.5 , 0.75, 1.  ])
    """
    mean = float(np.mean(list(known.values()))) if known else 0.0
    return np.array([known.get(cluster, mean) for cluster in range(n_clusters)])


def neighbors_of(points: np.ndarray, drawn: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """The places of the nearest drawn rows, (n, n_neighbors), and the distance of a farther one, (n,).

    A drawn row is not its own neighbor. Distances are differences of coordinates, so that a point
    gets the same numbers alone as among thousands.

    >>> drawn = Drawn(np.array([[0.0], [1], [2], [9]]), np.array([0, 0, 1, 1]), seed=0)
    >>> places, distance = neighbors_of(np.array([[0.0], [1.6]]), drawn)
    >>> places.tolist(), distance
    ([[1, 2], [2, 1]], array([2. , 0.6]))
    """
    n_far = max(1, min(N_FAR, len(drawn.labels) - 2))
    if len(drawn.labels) < 3:  # nobody but the row itself
        return nobody(len(points)), np.full(len(points), smallest(drawn))
    n_neighbors = min(N_NEIGHBORS, n_far)
    apart = np.nan_to_num(distances(points, drawn.points), nan=np.inf)  # (n, n_drawn)
    nearest = np.argpartition(apart, n_far, axis=1)[:, : n_far + 1]
    near = np.take_along_axis(apart, nearest, axis=1)
    order = np.lexsort((nearest, near), axis=1)
    nearest = np.take_along_axis(nearest, order, axis=1)
    near = np.take_along_axis(near, order, axis=1)
    first = (near[:, 0] == 0).astype(int)[:, None]  # behind the row itself
    places = np.take_along_axis(nearest, first + np.arange(n_neighbors), axis=1)
    far = np.take_along_axis(near, first + n_far - 1, axis=1)[:, 0]
    return places, np.maximum(far, smallest(drawn))


def about_neighbors_of(points: np.ndarray, drawn: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """The same in single precision, by a product of matrices."""
    n_far = max(1, min(N_FAR, len(drawn.labels) - 2))
    far_out = np.abs(points).max(initial=0) > FAR_OUT  # squares would lose all digits, or overflow
    if len(drawn.labels) < 3 or far_out:
        return neighbors_of(points, drawn)
    center = drawn.points.mean(axis=0)  # near 0 squares lose least
    Z = (points - center).astype(np.float32)
    sample = (drawn.points - center).astype(np.float32)
    own = np.square(Z).sum(1, keepdims=True)
    lengths = np.square(sample).sum(1, keepdims=True)  # (n_drawn, 1)
    # |z|^2 + |s|^2 - 2 z s as one product of (z, |z|^2, 1) and (-2 s, 1, |s|^2)
    left = np.concatenate([Z, own, np.ones_like(own)], axis=1)
    right = np.concatenate([-2 * sample, np.ones_like(lengths), lengths], axis=1)
    squares = left @ right.T  # (n, n_drawn)
    near, nearest = smallest_of(np.maximum(squares, 0, out=squares), n_far + 1)
    # A row that was drawn is not its own neighbor.
    first = (near[:, :1] <= SAME * (own + lengths.max())).astype(int)
    n_neighbors = min(N_NEIGHBORS, n_far)
    places = np.take_along_axis(nearest, first + np.arange(n_neighbors), axis=1)
    far = np.take_along_axis(near, first + n_far - 1, axis=1)[:, 0]
    return places, np.maximum(np.sqrt(far.astype(np.float64)), smallest(drawn))


def nobody(n: int) -> np.ndarray:
    """No neighbors: (n, 0) places."""
    return np.zeros((n, 0), dtype=np.int64)


def share_of(values: np.ndarray) -> np.ndarray:
    """The mean over neighbors, (n, n_neighbors) -> (n,), with half a neighbor added to either side.

    So no share is 0 or 1, and without neighbors it is a half.

    >>> share_of(np.array([[True, True, False]])), share_of(np.zeros((1, 0)))
    (array([0.625]), array([0.5]))
    """
    return np.asarray((values.sum(axis=1, dtype=np.float64) + 0.5) / (values.shape[1] + 1))


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
