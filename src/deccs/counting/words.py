"""The number of clusters in words: the answer, what else is defensible, which cluster splits into which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deccs.counting.records import ClusterStability, Count, KCandidate
from deccs.counting.signs import LEAST_DEPENDENCE, LEAST_GAIN, Signs
from deccs.labels import NOISE, align_labels

DEFENSIBLE = 0.5  # a number with this share of the answer's support is named beside it
MOST_NAMED = 2  # numbers named beside the answer
MOST_GROUPS = 3  # more changes than this are counted, not listed
STABLE = ("very stable", "stable")  # verdicts that need no warning
REFERENCE = " reference"  # a curve "X reference" belongs to the curve X

MEANINGS = {
    "agreement": "how well members that work differently agree (ARI)",
    "stability": "how well clusterings of parts of the data agree (ARI)",
    "valley": "how deep the valleys between clusters are",
    "split": "the valleys of a finer clustering: low is good",
    "gap": "how far the eigenvalues of the neighbor graph drop behind it",
    "support": "share of all evidence: what the numbers are ranked by",
}


# ---- the answer


def sentence(count: Count, labels: np.ndarray | None = None) -> str:
    """The answer in one or two sentences.

    ``labels`` (n_sample,) are those of the fitted model for the sample: clusters are named by their
    numbers. See ``tests/counting/test_words.py`` for one sentence of each kind.
    """
    if count.n_clusters == 1 and not len(count.ks):  # no other number was tried
        return f"One cluster: {count.candidates[0].reasons[0]}."
    if count.n_clusters == 1:
        return (
            "No clusters: the data looks like one group. "
            "Nothing stands out from a reference without clusters."
        )
    others = runners_up(count)
    if not count.is_clear:
        return unclear(count.n_clusters, [other.k for other in others])
    answer = f"{count.n_clusters} clusters"
    if not others:
        return f"{answer}."
    final = count.sample_labels(count.n_clusters) if labels is None else labels  # (n_sample,)
    changes = {
        other.k: in_words(difference(final, count.sample_labels(other.k))) for other in others
    }
    return f"{answer}; {defensible(changes)}."


def unclear(taken: int, others: Sequence[int]) -> str:
    """What is said where no number stands out.

    >>> unclear(4, [12, 9])
    'No clear number of clusters: 4, 9 and 12 are about equally well supported; 4 is taken.'
    >>> unclear(4, [])
    'No clear number of clusters: little speaks for any; 4 is taken.'
    """
    named = f"{listed(sorted([taken, *others]))} are about equally well supported"
    return (
        f"No clear number of clusters: {named if others else 'little speaks for any'}; "
        f"{taken} is taken."
    )


def defensible(changes: Mapping[int, str]) -> str:
    """What other numbers would do, from what each of them changes.

    >>> defensible({7: "joins 3 and 5"})
    '7 would also be defensible: it joins 3 and 5'
    >>> defensible({7: "joins 3 and 5", 12: "splits 4"})
    '7 and 12 would also be defensible: 7 joins 3 and 5; 12 splits 4'
    """
    if len(changes) == 1:
        ((k, change),) = changes.items()
        what = f": it {change}" if change else ""
        return f"{k} would also be defensible{what}"
    what = "; ".join(f"{k} {change}" for k, change in changes.items() if change)
    return f"{listed(changes)} would also be defensible" + (f": {what}" if what else "")


def runners_up(count: Count) -> tuple[KCandidate, ...]:
    """The numbers named beside the answer: those with enough support, at most two.

    Where the answer is not clear, the next candidate is named in any case.
    """
    answer, *others = count.candidates
    enough = [other for other in others if other.support >= DEFENSIBLE * answer.support]
    if not count.is_clear:
        enough = enough or others[:1]
    return tuple(enough[:MOST_NAMED])


def sentence_of(model: Any) -> str | None:
    """The answer of a fitted model; None if it was told the number of clusters."""
    count = getattr(model, "count_", None)
    return None if count is None else sentence(count, model.labels_[count.sample])


def reasons_for_one_group(signs: Signs) -> tuple[str, ...]:
    """Why the data looks like one group."""
    no_valleys = (
        f"valleys between clusters are no deeper ({signs.depth:.2f}) than in data without clusters "
        f"({signs.reference_depth:.2f})"
    )
    independent = "columns have nothing to do with each other, so clusters are ranges of columns"
    no_gaps = "the graph of nearest neighbors does not fall apart"
    one_cloud = "several normal clouds fit hardly better than one"
    applies = {
        no_valleys: not signs.has_valleys,
        independent: signs.dependence < LEAST_DEPENDENCE,
        no_gaps: True,
        one_cloud: signs.gain <= LEAST_GAIN,
    }
    return tuple(reason for reason, holds in applies.items() if holds)


def warning_of_one_group(signs: Signs) -> str:
    """What to tell of a fit whose data looks like one group."""
    return (
        "Nothing speaks for clusters: the data looks like one group "
        f"({'; '.join(reasons_for_one_group(signs))}). "
        "Labels may say little, and confidence in them is low."
    )


# ---- from one clustering to another


@dataclass(frozen=True)
class Difference:
    """What another clustering does with the clusters of this one, by majority."""

    joined: tuple[tuple[int, ...], ...]  # clusters that become one
    split: tuple[tuple[int, tuple[int, ...]], ...]  # a cluster, and those it becomes


def difference(labels: ArrayLike, other: ArrayLike) -> Difference:
    """What ``other`` joins and splits; noise of either is left out.

    >>> difference([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1, 1])
    Difference(joined=((1, 2),), split=())
    >>> difference([0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2])
    Difference(joined=(), split=((1, (1, 2)),))
    """
    labels, other = np.asarray(labels), np.asarray(other)
    both = (labels != NOISE) & (other != NOISE)
    clusters, rows = np.unique(labels[both], return_inverse=True)
    others, columns = np.unique(other[both], return_inverse=True)
    if not len(clusters):
        return Difference((), ())
    overlap = np.zeros((len(clusters), len(others)))
    np.add.at(overlap, (rows, columns), 1)
    becomes, comes_from = overlap.argmax(axis=1), overlap.argmax(axis=0)
    return Difference(
        joined=tuple(
            sorted(
                tuple(group.tolist())
                for place in range(len(others))
                for group in [clusters[becomes == place]]
                if len(group) > 1
            )
        ),
        split=tuple(
            (int(cluster), tuple(parts.tolist()))
            for place, cluster in enumerate(clusters)
            for parts in [others[comes_from == place]]
            if len(parts) > 1
        ),
    )


def in_words(change: Difference, parts: bool = False) -> str:
    """A difference in words, with what a cluster is split into if ``parts``; empty for none.

    >>> in_words(Difference(joined=((3, 5),), split=()))
    'joins 3 and 5'
    >>> in_words(Difference(joined=((0, 1, 2), (3, 5)), split=((4, (4, 9)),)))
    'joins 0 with 1 and 2, and 3 with 5, and splits 4'
    >>> in_words(Difference(joined=((0, 1), (2, 3), (4, 5)), split=()))
    'joins 0 with 1, 2 with 3, and 4 with 5'
    >>> in_words(Difference(joined=(), split=((4, (4, 9)),)), parts=True)
    'splits 4 into 4 and 9'
    >>> in_words(Difference(joined=((0, 1), (2, 3), (4, 5), (6, 7)), split=()))
    'joins 8 clusters into 4'
    """
    joins, splits = joins_in_words(change.joined), splits_in_words(change.split, parts)
    return f"{joins}, and {splits}" if joins and splits else joins or splits


def joins_in_words(groups: Sequence[Sequence[int]]) -> str:
    if not groups:
        return ""
    if len(groups) > MOST_GROUPS:
        return f"joins {sum(len(group) for group in groups)} clusters into {len(groups)}"
    if len(groups) == 1:
        return f"joins {listed(groups[0])}"
    return "joins " + several(f"{first} with {listed(rest)}" for first, *rest in groups)


def splits_in_words(splits: Sequence[tuple[int, Sequence[int]]], parts: bool) -> str:
    if not splits:
        return ""
    if len(splits) > MOST_GROUPS:
        into = f" into {sum(len(made) for _, made in splits)}" if parts else ""
        return f"splits {len(splits)} clusters{into}"
    if not parts:
        return f"splits {listed(cluster for cluster, _ in splits)}"
    return "splits " + several(f"{cluster} into {listed(made)}" for cluster, made in splits)


def several(phrases: Iterable[str]) -> str:
    """Phrases that may hold an "and" themselves.

    >>> several(["4 into 4 and 9", "5 into 5 and 8"])
    '4 into 4 and 9, and 5 into 5 and 8'
    """
    *others, last = phrases
    return ", ".join([*others, f"and {last}" if others else last])


# ---- over all numbers tried


def ks_with_answer(count: Count) -> list[int]:
    """The numbers tried, and the answer if it is not one of them: ascending."""
    return sorted({count.n_clusters, *count.ks.tolist()})


def ks_spread(count: Count, most: int) -> list[int]:
    """At most ``most`` of the numbers tried: the answer, the candidates, and others over the range."""
    ks = ks_with_answer(count)
    if len(ks) <= most:
        return ks
    kept = list(dict.fromkeys([count.n_clusters, *(one.k for one in count.candidates)]))
    kept = [k for k in kept if k in ks][: max(1, most // 2)]
    others = [k for k in ks if k not in kept]
    room = most - len(kept)
    return sorted([*kept, *(others[place * len(others) // room] for place in range(room))])


def ks_around(count: Count, most: int) -> list[int]:
    """At most ``most`` of the numbers tried: those nearest to the answer and the runners-up."""
    named = np.array([count.n_clusters, *(one.k for one in runners_up(count))])
    ks = np.array(ks_with_answer(count))  # (n_ks,)
    distances = np.abs(np.log(ks)[:, None] - np.log(named)).min(axis=1)
    return sorted(ks[np.argsort(distances, kind="stable")[:most]].tolist())


def continued(
    ks: Iterable[int], answer: int, labels_of: Callable[[int], np.ndarray]
) -> Iterator[tuple[int, np.ndarray]]:
    """(k, labels) with the answer first, then downward, then upward from it.

    Clusters are numbered like those of the next k they continue. The answer's keep their numbers.

    >>> tried = {2: np.array([1, 1, 1, 0]), 3: np.array([0, 2, 2, 1])}
    >>> list(continued(tried, 3, tried.__getitem__))
    [(3, array([0, 2, 2, 1])), (2, array([2, 2, 2, 1]))]
    """
    ks = sorted(set(ks) | {answer})
    final = labels_of(answer)
    yield answer, final
    for way in (reversed([k for k in ks if k < answer]), [k for k in ks if k > answer]):
        before = final
        for k in way:
            before = align_labels(labels_of(k), before)
            yield k, before


def sample_clusterings(
    count: Count, labels: np.ndarray | None = None, ks: Iterable[int] | None = None
) -> dict[int, np.ndarray]:
    """The labels of the sample for each k, ascending, numbered as in ``continued``."""

    def labels_of(k: int) -> np.ndarray:
        return labels if k == count.n_clusters and labels is not None else count.sample_labels(k)

    wanted = ks_with_answer(count) if ks is None else ks
    return dict(sorted(continued(wanted, count.n_clusters, labels_of)))


@dataclass(frozen=True)
class Step:
    """From one number tried to the next: which cluster splits into which."""

    before: int  # clusters
    after: int
    change: Difference

    def __str__(self) -> str:
        words = in_words(self.change, parts=True) or "changes no cluster"
        return f"{self.before} to {self.after}: {words}"


def hierarchy(
    count: Count, labels: np.ndarray | None = None, ks: Iterable[int] | None = None
) -> list[Step]:
    """Which cluster splits into which over the numbers tried, in the numbers of ``continued``."""
    clusterings = sample_clusterings(count, labels, ks)
    return [
        Step(before, after, difference(clusterings[before], clusterings[after]))
        for before, after in pairwise(clusterings)
    ]


def with_references(
    curves: Mapping[str, np.ndarray],
) -> list[tuple[str, np.ndarray, np.ndarray | None]]:
    """The curves by name, each with its reference if there is one.

    >>> with_references({"a": 1, "a reference": 2, "b": 3})
    [('a', 1, 2), ('b', 3, None)]
    """
    return [
        (name, values, curves.get(name + REFERENCE))
        for name, values in curves.items()
        if name.removesuffix(REFERENCE) == name or name.removesuffix(REFERENCE) not in curves
    ]


# ---- each cluster


def stability_sentence(stability: Sequence[ClusterStability]) -> str:
    """The clusters that are not stable, those that dissolve first.

    "Clusters 3 and 7 dissolve when the data are drawn again; 5 is doubtful."
    """
    by_verdict: dict[str, list[int]] = {}
    for each in sorted(stability, key=lambda each: each.verdict != "dissolves"):
        if each.verdict not in STABLE:
            by_verdict.setdefault(each.verdict, []).append(each.cluster)
    if not by_verdict:
        return "The only cluster is stable." if len(stability) == 1 else "All clusters are stable."
    parts = []
    for verdict, clusters in by_verdict.items():
        one = len(clusters) == 1
        if verdict == "dissolves":
            fate = f"{'dissolves' if one else 'dissolve'} when the data are drawn again"
        else:
            fate = f"{'is' if one else 'are'} {verdict}"
        parts.append(f"{listed(clusters)} {fate}")
    first = next(iter(by_verdict.values()))
    return f"{'Cluster' if len(first) == 1 else 'Clusters'} {'; '.join(parts)}."


def n_stable(stability: Sequence[ClusterStability]) -> int:
    """The number of clusters that are at least stable."""
    return sum(each.verdict in STABLE for each in stability)


def listed(values: Iterable[object]) -> str:
    """Values in words.

    >>> listed([3]), listed([3, 5]), listed([3, 5, 7])
    ('3', '3 and 5', '3, 5 and 7')
    """
    *others, last = (str(value) for value in values)
    return f"{', '.join(others)} and {last}" if others else last
