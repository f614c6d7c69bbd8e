"""One resample: which rows and columns are drawn, and how a member clusters them for every k.

Only *tracked* rows get labels. With few rows all are tracked; with many a random part is, and
neither time nor memory of a resample grows with the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering

from deccs.consensus.projections import cut, draw_in_order
from deccs.counting.panel import by_ward, tree_cuts
from deccs.data.sampling import Others
from deccs.inference.nearest import NearestInSample
from deccs.labels import as_labels, canonical
from deccs.members.agglomerative import Agglomerative, parts_between_gaps
from deccs.members.asking import fresh_copy
from deccs.members.default import MEMBERS
from deccs.members.genie import Genie, genie_merges
from deccs.members.guard import guarded
from deccs.members.spanning_tree import spanning_tree
from deccs.seeds import reproducible_threads, seed_for

NOT_DRAWN = -2  # beside NOISE, which is -1: a noise row was drawn, and is in no cluster
K_NAMES = ("n_clusters", "n_components")  # what clusterers call their number of clusters


class ResampleError(RuntimeError):
    """The member failed in a resample."""


@dataclass(frozen=True, eq=False)
class Draw:
    """What one resample has drawn."""

    drawn: np.ndarray  # (n_drawn,) places of tracked rows, in order
    fitted: np.ndarray  # (n_fitted,) those of them that the member is fitted on, in order
    others: np.ndarray  # (n_others,) numbers of rows that are not tracked: the rest of the fit
    columns: np.ndarray  # (n_columns,) in order


def resample_size(n_rows: int, share: float) -> int:
    """Rows (or columns) in a resample: the share, rounded, and at least one.

    >>> resample_size(500, 0.8), resample_size(3, 0.1)
    (400, 1)
    """
    return max(1, round(share * n_rows))


def draw_resample(
    n_rows: int,
    n_columns: int,
    tracked: np.ndarray,
    shares: tuple[float, float],
    sample_size: int,
    seed: int,
) -> Draw:
    """Draw a share of the rows and of the columns, and at most ``sample_size`` of these rows to fit.

    ``tracked`` (n_tracked,) are row numbers in order, ``shares`` those of rows and columns. The
    result has the same probabilities as drawing all rows of the resample one by one. But all rows
    that are not tracked are alike: how many of them are drawn is one number, from a hypergeometric
    distribution, and only those that are fitted get a number. So a resample of a billion rows takes
    no longer than one of 20,000.

    >>> draw = draw_resample(10, 2, np.arange(10), (0.8, 0.5), sample_size=5, seed=0)
    >>> len(draw.drawn), len(draw.fitted), len(draw.others), len(draw.columns)
    (8, 5, 0, 1)
    >>> draw = draw_resample(10**8, 2, np.array([5, 70, 900]), (0.5, 1.0), sample_size=50, seed=0)
    >>> len(draw.drawn) <= 3, len(draw.fitted) + len(draw.others)
    (True, 50)
    """
    rng = np.random.default_rng(seed)
    n_tracked, n_drawn = len(tracked), resample_size(n_rows, shares[0])
    n_fitted = min(int(sample_size), n_drawn)
    n_drawn_tracked = int(rng.hypergeometric(n_tracked, n_rows - n_tracked, n_drawn))
    drawn = np.sort(rng.choice(n_tracked, n_drawn_tracked, replace=False))
    n_fitted_tracked = int(rng.hypergeometric(n_drawn_tracked, n_drawn - n_drawn_tracked, n_fitted))
    fitted = np.sort(rng.choice(drawn, n_fitted_tracked, replace=False))
    places = draw_in_order(
        n_rows - n_tracked, n_fitted - n_fitted_tracked, seed_for(seed, "others")
    )
    others = Others(n_rows, torch.from_numpy(tracked))[torch.from_numpy(places)].numpy()
    columns = np.sort(rng.choice(n_columns, resample_size(n_columns, shares[1]), replace=False))
    return Draw(drawn, fitted, others, columns)


def clusterer_for(member: Any, k: int | None) -> Any:
    """An unfitted clusterer for k clusters: by name, or a copy of an object; k=None leaves it as it is.

    >>> clusterer_for("kmeans", 3).n_clusters, clusterer_for("mixture", 4).n_components
    (3, 4)
    """
    if isinstance(member, str):
        return MEMBERS[member](k if k is not None else 2)
    fresh = clone(member, safe=False)
    return fresh if k is None else fresh.set_params(**{str(k_name(fresh)): int(k)})


def k_name(clusterer: Any) -> str | None:
    """The parameter that is the number of clusters; None if there is no such parameter.

    >>> k_name(clusterer_for("mixture", 2)), k_name(clusterer_for("hdbscan", 2))
    ('n_components', None)
    """
    parameters: dict[str, Any] = getattr(clusterer, "get_params", dict)()
    return next((name for name in K_NAMES if name in parameters), None)


def check_member(member: Any, has_k: bool) -> None:
    """Raise a ValueError for an unknown name, or if member and n_clusters do not fit together."""
    if isinstance(member, str) and member not in MEMBERS:
        raise ValueError(
            f"member must be one of {', '.join(MEMBERS)} or an object with fit_predict, "
            f"got {member!r}."
        )
    name = k_name(clusterer_for(member, 2 if isinstance(member, str) else None))
    if has_k and name is None:
        raise ValueError(
            f"member={member!r} has no parameter n_clusters or n_components: it chooses the number "
            "of clusters by itself. Give n_clusters=None, or another member."
        )
    if not has_k and isinstance(member, str) and name is not None:
        raise ValueError(
            f"member={member!r} needs a number of clusters, got n_clusters=None. Give a range such "
            "as n_clusters=range(2, 11); None is for members that choose the number themselves, "
            "such as 'hdbscan'."
        )


@dataclass(frozen=True, eq=False)
class Resample:
    """A resample that is ready to be clustered, in this process or another."""

    number: int
    seed: int
    member: Any  # a name, or an object with fit_predict
    ks: tuple[int | None, ...]
    draw: Draw
    Z: np.ndarray  # (n_tracked, d) all tracked rows
    others_Z: np.ndarray  # (n_others, d) the rows of the fit that are not tracked

    def labels(self) -> np.ndarray:
        """(n_k, n_tracked) labels of tracked rows for every k; NOT_DRAWN where a row was not drawn."""
        labels = np.full((len(self.ks), len(self.Z)), NOT_DRAWN, dtype=np.int32)
        n_fitted = len(self.draw.fitted)
        with reproducible_threads():
            for row, (fitted, carried) in zip(labels, self._partitions(), strict=True):
                together = canonical(np.concatenate([fitted[:n_fitted], carried]))
                row[self.draw.fitted], row[self.carried] = np.split(together, [n_fitted])
        return smallest_integers(labels)

    @cached_property
    def carried(self) -> np.ndarray:
        """(n_carried,) places of the tracked rows that are drawn, but not fitted."""
        return np.setdiff1d(self.draw.drawn, self.draw.fitted, assume_unique=True)

    @cached_property
    def fitted_Z(self) -> np.ndarray:
        """(n_fitted + n_others, n_columns) what the member is fitted on."""
        rows = np.concatenate([self.Z[self.draw.fitted], self.others_Z])
        return np.ascontiguousarray(rows[:, self.draw.columns])

    @cached_property
    def carried_Z(self) -> np.ndarray:
        """(n_carried, n_columns)."""
        return np.ascontiguousarray(self.Z[self.carried][:, self.draw.columns])

    @cached_property
    def nearest(self) -> np.ndarray:
        """(n_carried,) the nearest fitted row; the same for every k."""
        if not len(self.carried):
            return np.empty(0, dtype=np.int64)
        return NearestInSample(self.fitted_Z, np.arange(len(self.fitted_Z))).places(self.carried_Z)

    def _partitions(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For every k the labels of the fitted rows and of the carried ones."""
        numbers = [k for k in self.ks if k is not None]
        with self._failing():
            tree_cuts = numbers and cuts(
                clusterer_for(self.member, numbers[0]), self.fitted_Z, numbers
            )
        if tree_cuts:
            return [(labels, labels[self.nearest]) for labels in tree_cuts]
        return [self._partition(k) for k in self.ks]

    def _partition(self, k: int | None) -> tuple[np.ndarray, np.ndarray]:
        clusterer, seed = clusterer_for(self.member, k), seed_for(self.seed, k)
        with self._failing(k):
            with guarded(clusterer, seed):
                clusterer = fresh_copy(clusterer, seed)
                labels = np.asarray(clusterer.fit_predict(self.fitted_Z.copy()))
                if labels.shape != (len(self.fitted_Z),):
                    raise ValueError(
                        f"fit_predict returned shape {labels.shape} for {len(self.fitted_Z)} rows"
                    )
                if len(self.carried) and hasattr(clusterer, "predict"):  # k-means: nearest center
                    carried = np.asarray(clusterer.predict(self.carried_Z.copy()))
                else:
                    carried = labels[self.nearest]
            together = as_labels(np.concatenate([labels, carried]))  # numbered alike
        return together[: len(labels)], together[len(labels) :]

    @contextmanager
    def _failing(self, k: int | None = None) -> Iterator[None]:
        """Say where a member has failed: it may raise anything."""
        try:
            yield
        except Exception as error:
            raise ResampleError(
                f"Member {self.member!r} failed in resample {self.number}"
                f"{'' if k is None else f' for k={k}'}: {type(error).__name__}: {error}. Give "
                "another member, fewer clusters or a larger row_share."
            ) from error


def smallest_integers(labels: np.ndarray) -> np.ndarray:
    """The same labels in as few bytes as hold them.

    >>> smallest_integers(np.array([-2, 127])).dtype, smallest_integers(np.array([128])).dtype
    (dtype('int8'), dtype('int16'))
    """
    return labels.astype(np.min_scalar_type(-1 - max(1, int(labels.max()))))


def cluster_resample(resample: Resample) -> np.ndarray:
    """``resample.labels()``, as a function that other processes can be sent."""
    return resample.labels()


def cuts(clusterer: Any, X: np.ndarray, ks: Sequence[int]) -> list[np.ndarray] | None:
    """The labels for every k from one tree; None if the clusterer makes no tree.

    >>> X = np.array([[0.0], [1], [5], [6], [20]])
    >>> [labels.tolist() for labels in cuts(Agglomerative(linkage="ward"), X, [2, 3])]
    [[0, 0, 0, 0, 1], [0, 0, 1, 1, 2]]
    """
    if type(clusterer) is Genie:
        return tree_cuts(genie_merges(spanning_tree(X).edges, clusterer.gini), ks)
    if type(clusterer) is Agglomerative and clusterer.linkage in ("auto", "ward"):
        parts = {
            k: parts_between_gaps(X, k, int(clusterer.share * len(X) / k))
            for k in ks
            if clusterer.linkage == "auto"
        }
        left = [k for k in ks if parts.get(k) is None]
        parts |= dict(zip(left, by_ward(X, left), strict=True))
        return [labels for k in ks if (labels := parts[k]) is not None]
    if type(clusterer) is Agglomerative:
        clusterer = AgglomerativeClustering(linkage=clusterer.linkage)
    if type(clusterer) is AgglomerativeClustering and clusterer.distance_threshold is None:
        full = clone(clusterer).set_params(n_clusters=min(ks), compute_full_tree=True)
        children = full.fit(X).children_
        return [cut(children, k) for k in ks]
    return None
