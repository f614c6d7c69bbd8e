"""Evidence for each number of clusters, from a sample of the rows.

Four curves over k. All compare partitions by the adjusted Rand index, which is 0 by chance for any k:

- stability: is the clustering found again when rows are left out and the manifold is made again?
- agreement: do members of different kinds find the same, each on other rows and its own manifold?
- valley: is the data thinner between the clusters than inside them?
- gap: do the eigenvalues of the neighbor graph drop behind the k-th?

The first two speak against too many clusters. A finer clustering that still has valleys speaks
against too few: its valley is the curve "split".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from deccs.counting.panel import (
    Panel,
    by_kmeans,
    by_ward,
    eigenpairs_of,
    panel_of,
)
from deccs.counting.valleys import Ties, ties_between, valleys
from deccs.data.source import RowSource, SelectedRows, each_block
from deccs.members.agreement import adjusted_rand
from deccs.members.choice import Judge
from deccs.members.manifold import manifold_embedding
from deccs.members.neighbors import neighbor_graph
from deccs.members.running import of_one_scale
from deccs.members.spanning_tree import SpanningTree, spanning_tree
from deccs.members.views import NEAR, WIDE
from deccs.seeds import seed_for
from deccs.spreading import each

MOST_VALUES = 20_000_000  # of a sample
N_DIMENSIONS = 5  # of the manifold: one for all k
N_RESAMPLES = 5
ROW_SHARE = 0.8  # of the rows in a resample
RESAMPLE_STEPS = 1_000  # of a resample's layout: it is only compared, never shown
AROUND = 2  # numbers to either side that an eigenvalue is compared with


def affordable(most_rows: int, n_features: int) -> int:
    """Fewer rows of very wide data: a sample of them is held as a dense array of 160 MB at most.

    >>> affordable(2_000, 784), affordable(2_000, 100_000)
    (2000, 200)
    """
    return min(most_rows, max(MOST_VALUES // n_features, 100))


def scaled_rows(source: RowSource, scaler: Callable[..., Any], rows: np.ndarray) -> np.ndarray:
    """Some rows of a source, scaled: (n_rows, n_features) doubles."""
    blocks = each_block(SelectedRows(source, rows))
    return np.concatenate([np.asarray(scaler(block), dtype=np.float64) for _, block in blocks])


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows as members see them."""

    scaled: np.ndarray  # (n, n_features)
    raw: np.ndarray  # (n, n_components), of one scale
    seed: int

    @cached_property
    def manifold(self) -> np.ndarray:
        """(n, n_dimensions), of one scale."""
        seed = seed_for(self.seed, "manifold")
        return of_one_scale(manifold_embedding(self.scaled, self.n_dimensions, seed))

    @cached_property
    def tree(self) -> SpanningTree:
        return spanning_tree(self.raw)

    @cached_property
    def ties(self) -> Ties:
        return ties_between(self.raw, self.tree)

    @cached_property
    def graph(self) -> sp.csr_array:
        return neighbor_graph(self.scaled, WIDE)

    @property
    def n_dimensions(self) -> int:
        return min(N_DIMENSIONS, max(2, self.scaled.shape[1]))

    def __len__(self) -> int:
        return len(self.scaled)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The curves over k, and the clustering for each k that they speak of."""

    ks: np.ndarray  # (n_ks,)
    stability: np.ndarray  # (n_ks,)
    agreement: np.ndarray
    valley: np.ndarray
    split: np.ndarray
    gap: np.ndarray
    panel: Panel


def numbers_to_try(n_rows: int, low: int = 2, high: int | None = None) -> list[int]:
    """All numbers up to 20, then in steps of 10 %; up to n / 8, 10 at least and 120 at most.

    >>> numbers_to_try(60), numbers_to_try(1_000, 18, 30)
    ([2, 3, 4, 5, 6, 7, 8, 9, 10], [18, 19, 20, 22, 25, 28, 30])
    """
    if high is None:
        high = max(low, min(max(10, n_rows // 8), 120, n_rows // 2))
    numbers = [max(low, 2)]
    while numbers[-1] < high:
        numbers.append(min(numbers[-1] + next_step(numbers[-1]), high))
    return numbers


def evidence_for(
    sample: Sample, ks: Sequence[int], tell: Callable[[int, int], None] = lambda done, total: None
) -> Evidence:
    """The curves over k. ``tell`` hears how many of how many parts are done."""
    total = N_RESAMPLES + 3
    tell(0, total)
    eigenpairs = eigenpairs_of(sample.graph, min(max(ks) * 2, len(sample)))
    tell(1, total)
    panel = panel_of(
        sample.raw,
        sample.manifold,
        sample.tree,
        eigenpairs,
        ks,
        seed_for(sample.seed, "panel"),
    )
    tell(2, total)
    again = []
    resamples = [(number,) for number in range(N_RESAMPLES)]
    for number, resample in enumerate(each(resampled, (sample, ks), resamples)):
        again.append(found_again(panel, resample))
        tell(3 + number, total)
    stability, agreement = np.mean(again, axis=0)  # (n_ks,) each
    valley = np.array([deepest(sample.ties, here.values()) for here in panel.at])
    tell(total, total)
    return Evidence(
        np.array(ks),
        stability,
        agreement,
        valley,
        of_finer(valley, ks),
        local_gap(eigenpairs.values, ks),
        panel,
    )


@dataclass(frozen=True, eq=False)
class Resample:
    """What members say when rows are left out, for each k."""

    rows: np.ndarray  # (n_rows,) places in the sample
    kmeans: list[np.ndarray]  # on a manifold made again
    ward: list[np.ndarray]
    same_layout: list[np.ndarray]  # by k-means on the manifold of the sample


def resampled(sample: Sample, ks: Sequence[int], number: int) -> Resample:
    rng = np.random.default_rng(seed_for(sample.seed, "resample", number))
    rows = np.sort(rng.permutation(len(sample))[: max(2, int(ROW_SHARE * len(sample)))])
    seed = seed_for(sample.seed, "resample", number, "members")
    ks = [min(k, len(rows)) for k in ks]
    layout = manifold_embedding(
        sample.scaled[rows], sample.n_dimensions, seed, n_steps=RESAMPLE_STEPS
    )
    remade = of_one_scale(layout)
    kmeans, ward = by_kmeans(remade, ks, seed, n_init=2), by_ward(remade, ks)
    return Resample(rows, kmeans, ward, by_kmeans(sample.manifold[rows], ks, seed, n_init=2))


def found_again(panel: Panel, resample: Resample) -> tuple[list[float], list[float]]:
    """What a resample says of the stability and of the agreement for each k: (n_ks,) each."""
    rows, kmeans, ward = resample.rows, resample.kmeans, resample.ward
    first_kmeans = [labels[rows] for labels in panel.by("manifold kmeans")]
    first_ward = [labels[rows] for labels in panel.by("manifold ward")]
    stable = [
        (adjusted_rand(first, new) + adjusted_rand(first, kept)) / 2
        for first, new, kept in zip(first_kmeans, kmeans, resample.same_layout, strict=True)
    ]
    agree = [
        (adjusted_rand(a, d) + adjusted_rand(b, c)) / 2
        for a, b, c, d in zip(first_kmeans, first_ward, kmeans, ward, strict=True)
    ]
    return stable, agree


def deepest(ties: Ties, partitions: Iterable[np.ndarray]) -> float:
    """The mean depth of the valleys around the clusters of that partition where it is deepest."""
    return max(float(valleys(ties, labels).mean()) for labels in partitions)


def of_finer(curve: np.ndarray, ks: Sequence[int]) -> np.ndarray:
    """A curve at clearly more clusters, a quarter and one more: (n_ks,) -> (n_ks,).

    >>> of_finer(np.array([5.0, 4, 3, 2]), [2, 3, 4, 5])  # 2 -> 4, 3 and more -> 5
    array([3., 2., 2., 2.])
    """
    finer = [min(math.ceil(1.25 * k + 1), ks[-1]) for k in ks]
    return curve[np.searchsorted(ks, finer)]


def local_gap(values: np.ndarray, ks: Sequence[int]) -> np.ndarray:
    """How far the eigenvalue behind the k-th lies below those behind numbers around k: (n_ks,).

    ``values`` are (n_values,), the largest first. Up to two numbers to either side count: the first
    k has none below it, and beyond the last k numbers go on in the same steps.

    >>> local_gap(np.array([1.0, 1, 0.5, 0.5, 0.5, 0.4, 0.4, 0.4]), [2, 3, 4]).round(3)
    array([ 0.   , -0.025, -0.04 ])
    """
    wider = list(ks)
    for _ in range(AROUND):
        wider.append(wider[-1] + next_step(wider[-1]))
    behind = values[np.minimum(wider, len(values) - 1)]  # the (k + 1)-th largest
    means = [behind[max(0, i - AROUND) : i + AROUND + 1].mean() for i in range(len(ks))]
    return np.asarray(means - behind[: len(ks)])


def next_step(k: int) -> int:
    """1 up to 20, then 10 %."""
    return 1 if k < 20 else math.ceil(0.1 * k)


def best_partitions(sample: Sample, panel: Panel) -> tuple[np.ndarray, tuple[str, ...]]:
    """The clustering to show for each k, chosen as the result of DECCS is: (n_ks, n), and by whom."""
    near = neighbor_graph(sample.scaled, NEAR)
    chosen, names = [], []
    for k, partitions in zip(panel.ks, panel.at, strict=True):
        said = np.stack(list(partitions.values()))
        judge = Judge(near, sample.graph, sample.tree, said, k)
        place = int(np.argmax([judge(labels) for labels in said]))
        chosen.append(said[place])
        names.append(list(partitions)[place])
    return np.stack(chosen).astype(np.int16), tuple(names)
