"""What is known about the number of clusters: the answer, the runners-up, the evidence for each k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from deccs.counting.signs import Signs
from deccs.inference.nearest import NearestInSample
from deccs.inference.seen import Components
from deccs.labels import majority_map
from deccs.storage import reals, stored, wholes

MOST_SAMPLED = 2**15  # rows: their places are numbers of two bytes


@stored
@dataclass(frozen=True, eq=False)
class KCandidate:
    """A number of clusters, and what speaks for it."""

    k: int
    support: float  # share of the evidence; those of all k tried add up to 1
    reasons: tuple[str, ...]  # in words


@stored
@dataclass(frozen=True, eq=False)
class Count:
    """How many clusters the data has.

    ``partitions`` has one clustering of the sample for each k tried. That for ``n_clusters`` is what
    was known before the fit; a fitted model may have a better one.
    """

    n_clusters: int  # the answer; 1 where nothing stands out from a reference without clusters
    is_clear: bool  # whether the answer stands out from the other candidates
    candidates: tuple[KCandidate, ...]  # ranked, the answer first
    ks: Annotated[np.ndarray, wholes("n_ks", least=1)]  # numbers tried, ascending, from 2
    # Evidence by name.
    curves: Mapping[str, Annotated[np.ndarray, reals("n_ks", with_nan=True)]]
    # A clustering for each k.
    partitions: Annotated[
        np.ndarray, wholes("n_ks", "n_sample", least=0, below="n_sample", small=True)
    ]
    sources: tuple[str, ...]  # (n_ks,) the member that made it
    sample: Annotated[np.ndarray, wholes("n_sample", least=0)]  # row numbers, in order
    components: Components  # how any row is compared with the sample
    # The sample as it is compared.
    points: Annotated[np.ndarray, reals("n_sample", "n_components")]
    signs: Signs | None = None  # of clusters, if one group was a possible answer

    def check_stored(self) -> None:
        """Raise a ValueError for a sample that no count has."""
        if not 0 < len(self.sample) <= MOST_SAMPLED:
            raise ValueError(f"A count has at most {MOST_SAMPLED:,} rows, got {len(self.sample):,}")

    def check(self, n_points: int) -> None:
        """Raise a ValueError if parts of it do not fit each other, or data of so many rows."""
        n_ks, n_sample = self.partitions.shape
        sizes = [len(self.ks), len(self.sources), *(len(curve) for curve in self.curves.values())]
        if sizes != [n_ks] * len(sizes) or [len(self.sample), len(self.points)] != [n_sample] * 2:
            raise ValueError("The evidence for the number of clusters does not fit its sample")
        if not 0 <= self.sample.min() <= self.sample.max() < n_points:
            raise ValueError(f"The sample is not one of {n_points} rows")
        ks = {1, *self.ks.tolist()}
        if self.n_clusters not in ks or not {one.k for one in self.candidates} <= ks:
            raise ValueError(f"The answer is {self.n_clusters!r:.20}, which was not tried")
        if self.partitions.min(initial=0) < 0 or (self.partitions.max(axis=1) >= self.ks).any():
            raise ValueError("A clustering has more clusters than it says")

    def place_of(self, k: int) -> int:
        """The place of a number among those tried."""
        places = np.flatnonzero(self.ks == k)
        if not len(places):
            tried = ", ".join(str(number) for number in self.ks)
            raise ValueError(f"There is no clustering with k = {k}. Numbers tried: {tried}.")
        return int(places[0])

    def sample_labels(self, k: int) -> np.ndarray:
        """(n_sample,) labels from 0; all 0 for k = 1."""
        if k == 1:
            return np.zeros(len(self.sample), dtype=np.int64)
        return self.partitions[self.place_of(k)].astype(np.int64)

    def labels(self, scaled: np.ndarray, k: int) -> np.ndarray:
        """The labels of any scaled rows, by the nearest row of the sample: (n, d) -> (n,)."""
        return self.sample_labels(k)[self.places(scaled)]

    def places(self, scaled: np.ndarray) -> np.ndarray:
        """(n, d) scaled rows -> (n,) the place in the sample of each row's nearest neighbor."""
        return self._nearest.places(self.components(scaled)).astype(np.int16)

    def parents(self, k: int, before: int) -> np.ndarray:
        """For each of k clusters, the one of ``before`` clusters that most of it comes from: (k,)."""
        labels = self.sample_labels(k)
        return majority_map(labels, self.sample_labels(before), int(labels.max()) + 1)

    @cached_property
    def _nearest(self) -> NearestInSample:
        return NearestInSample(self.points, np.arange(len(self.points)))


@stored
@dataclass(frozen=True, eq=False)
class ClusterStability:
    """Whether a cluster is real: what becomes of it when the data are drawn again."""

    cluster: int
    size: int  # rows of the sample
    jaccard: float  # with its most similar cluster, mean over resamples; 1 is the same cluster
    reference: float  # the same for clusters of data without clusters
    agreement: float  # of the members, as the mean Jaccard similarity over members
    separation: float  # depth of the valley around it, see deccs.counting.valleys
    verdict: str  # "very stable", "stable", "doubtful" or "dissolves"
