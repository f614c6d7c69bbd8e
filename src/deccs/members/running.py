"""Running the members: base partitions of an embedding."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deccs.labels import NOISE, align_labels, canonical
from deccs.members.asking import ONE_BY_ONE, Jobs, MemberWarning, ask_all
from deccs.members.default import EARLIER, PARTIAL, Member, ViewMember
from deccs.members.views import Views
from deccs.rules import smallest_cluster
from deccs.seeds import seed_for


@dataclass(frozen=True)
class Partitions:
    """The partitions of a sample by the members that took part.

    Clusters are numbered alike (Hungarian): a member with fewer clusters than the first one skips
    numbers.
    """

    names: tuple[str, ...]
    labels: np.ndarray  # (n_members, n_sample), from 0, -1 for "no label"


class TooFewMembers(ValueError):
    """Fewer than two members gave a partition."""


def without_small_clusters(labels: np.ndarray, min_size: int) -> np.ndarray:
    """Points of clusters below ``min_size`` become noise.

    >>> without_small_clusters(np.array([0, 0, 0, 1]), min_size=2)
    array([ 0,  0,  0, -1])
    """
    labels = canonical(labels)
    sizes = np.bincount(labels[labels != NOISE], minlength=1)
    return canonical(np.where((labels == NOISE) | (sizes[labels] < min_size), NOISE, labels))


def cluster(
    members: Sequence[Member],
    Z: np.ndarray,
    sample: np.ndarray,
    root: int,
    *,
    standardize: bool = False,
    min_cluster_size: int = 6,
    jobs: Jobs = ONE_BY_ONE,
) -> Partitions:
    """Let every member cluster the embedded sample.

    The sample is scaled as a whole, by one number. ``standardize`` scales each dimension by itself,
    as the authors' program does (the paper does not say); members do worse with it on all our data
    sets. A member that fails or finds fewer than two clusters is left out with a warning; at least
    two must remain.
    """
    standard = of_one_scale(Z, each_column=standardize)
    questions = {name: (member, standard, sample, seed_for(root, name)) for name, member in members}
    answers = ask_all(questions, jobs)
    names: list[str] = []
    partitions: list[np.ndarray] = []
    for (name, _), (answer, complaint) in zip(members, answers, strict=True):
        if answer is not None:
            n_found = len(np.unique(answer[answer != NOISE]))
            min_size = smallest_cluster(len(Z), max(n_found, 1), min_cluster_size)
            min_size = (
                1 if name in (PARTIAL, EARLIER) else min_size
            )  # a class may have a single known row
            labels = without_small_clusters(answer, min_size)
            if labels.max() >= 1:
                names.append(name)
                partitions.append(align_labels(labels, partitions[0]) if partitions else labels)
                continue
            complaint = f"it found {n_found} cluster(s), but needs at least two with {min_size} point(s) each"
        warnings.warn(f"Member {name!r} is left out: {complaint}.", MemberWarning, stacklevel=2)
    if len(names) < 2:
        raise TooFewMembers(
            f"Only {len(names)} of {len(members)} members gave a partition; agreement needs two. "
            "The warnings above say why. Try other members, fewer clusters or a larger sample."
        )
    return Partitions(tuple(names), np.stack(partitions))


def cluster_views(
    members: Sequence[ViewMember], views: Views, root: int, *, jobs: Jobs = ONE_BY_ONE
) -> Partitions:
    """Let members cluster the sample of the views. One that fails is left out with a warning."""
    scaled = {view: of_one_scale(views.view(view)) for view in {view for _, _, view in members}}
    questions = {
        name: (member, scaled[view], views.sample, seed_for(root, view, name))
        for name, member, view in members
    }
    answers = ask_all(questions, jobs)
    names, partitions = [], []
    for (name, _, _), (answer, complaint) in zip(members, answers, strict=True):
        if answer is None:
            warnings.warn(f"Member {name!r} is left out: {complaint}.", MemberWarning, stacklevel=2)
        else:
            names.append(name)
            partitions.append(canonical(answer))
    if not names:
        raise TooFewMembers(
            f"None of the {len(members)} members of the views gave a partition. The warnings above "
            "say why. Try other members, fewer clusters or views=None."
        )
    return Partitions(tuple(names), np.stack(partitions))


def of_one_scale(Z: np.ndarray, each_column: bool = False) -> np.ndarray:
    """Centered, and divided by one deviation, or by that of each column: (n, d) -> (n, d)."""
    Z = Z.astype(np.float64)
    deviation = Z.std(axis=0) if each_column else np.sqrt(Z.var(axis=0).mean(keepdims=True))
    return np.asarray((Z - Z.mean(axis=0)) / np.where(deviation > 1e-9, deviation, 1))
