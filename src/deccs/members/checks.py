"""Checks of the members a user gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deccs.labels import as_labeling
from deccs.members.default import (
    MEMBERS,
    Member,
    ViewMember,
    default_members,
    default_view_members,
)
from deccs.members.views import EMBEDDING, VIEWS


def with_names_made(members: Sequence[Any] | None, n_clusters: int | None) -> Any:
    """Members given by name alone as the clusterers of that name; all else as it is.

    >>> with_names_made(["kmeans", ("mine", [0, 1])], 3)
    [('kmeans', KMeans(n_clusters=3, n_init=10)), ('mine', [0, 1])]
    """
    if members is None or isinstance(members, str):
        return members
    made: list[Any] = []
    for member in members:
        if isinstance(member, str):
            if member not in MEMBERS:
                raise ValueError(
                    f"There is no member named {member!r}. Choose from {', '.join(MEMBERS)}, or give "
                    "a pair of a name and an object with fit_predict."
                )
            member = (member, MEMBERS[member](max(2, int(n_clusters or 2))))
        made.append(member)
    return made


def is_labeling(member: Any) -> bool:
    """Whether this is meant as an array of labels rather than a clusterer."""
    return not hasattr(member, "fit_predict")


def asked_clusters(member: Any, n_found: int) -> int:
    """The number of clusters a member was asked for; the number found, if it takes no such number."""
    for name in ("n_clusters", "n_components"):
        if isinstance(getattr(member, name, None), int | np.integer):
            return int(getattr(member, name))
    return n_found


@dataclass(frozen=True)
class Ensemble:
    """Who clusters what."""

    on_embedding: list[Member]  # asked in every round
    on_views: list[ViewMember]  # asked once: what they see does not change


def ensemble_for(
    n_clusters: int | None,
    members: Sequence[Member | ViewMember] | None,
    n_points: int,
    views: Sequence[str] = (),
) -> Ensemble:
    """The user's members, checked; the default members for ``n_clusters`` if there are none.

    ``views`` are those there are beside the embedding; the default members cluster all of them.
    """
    members = with_names_made(members, n_clusters)
    if members is None:
        on_embedding = members_for(n_clusters, None, n_points)
        return Ensemble(on_embedding, default_view_members(max(2, int(n_clusters or 2)), views))
    checked = check_members([without_view(member) for member in members], n_points)
    pairs: list[Member] = []
    on_views: list[ViewMember] = []
    for (name, member), given in zip(checked, members, strict=True):
        # A single cluster leaves nothing to choose: all members cluster the embedding.
        view = view_of(given, views) if n_clusters != 1 else EMBEDDING
        if view == EMBEDDING or is_labeling(member):
            pairs.append((name, member))
        else:
            on_views.append((name, member, view))
    if not pairs:
        raise ValueError(
            f"All members cluster other views than the embedding: {[name for name, _ in checked]}. "
            "At least one must cluster the embedding, since that is what the rounds change."
        )
    return Ensemble(pairs, on_views)


def most_asked(ensemble: Ensemble) -> int:
    """The number of clusters most members were asked for, 2 at least."""
    clusterers: list[Any] = [pair[1] for pair in ensemble.on_embedding]
    clusterers += [triple[1] for triple in ensemble.on_views]
    asked = [
        asked_clusters(member, 0) or len(np.unique(member[member >= 0]))
        for member in clusterers
        if is_labeling(member) or asked_clusters(member, 0)
    ]
    return max(2, Counter(asked).most_common(1)[0][0] if asked else 2)


def without_view(member: Any) -> Any:
    """The pair of name and clusterer of a triple; anything else as it is.

    >>> without_view(("a", "A")), without_view(("b", "B", "raw"))
    (('a', 'A'), ('b', 'B'))
    """
    is_triple = isinstance(member, tuple | list) and len(member) == 3
    return tuple(member[:2]) if is_triple else member


def view_of(member: Any, views: Sequence[str]) -> str:
    """What a member clusters: a pair the embedding, a triple the view it names.

    >>> view_of(("a", "A"), ("raw",)), view_of(("b", "B", "raw"), ("raw",))
    ('embedding', 'raw')
    """
    if len(member) == 2:
        return EMBEDDING
    name, _, view = member
    if not isinstance(view, str) or view not in VIEWS:
        raise ValueError(
            f"Member {name!r} is to cluster the view {view!r}, but there are only "
            f"{', '.join(VIEWS)}."
        )
    if view not in (EMBEDDING, *views):
        raise ValueError(
            f"Member {name!r} is to cluster the view {view!r}, but with views=None all members "
            "cluster the embedding. Leave the view out, or set views='auto'."
        )
    return view


def is_pair(member: Any) -> bool:
    return isinstance(member, tuple | list) and len(member) == 2 and isinstance(member[0], str)


def members_for(
    n_clusters: int | None, members: Sequence[Member] | None, n_points: int
) -> list[Member]:
    """The user's members, checked; the default members for ``n_clusters`` if there are none."""
    if members is not None:
        return check_members(with_names_made(members, n_clusters), n_points)
    if n_clusters is None:
        raise ValueError(
            "n_clusters=None takes the number of clusters most members have, so it needs members. "
            "Give members or n_clusters."
        )
    return default_members(max(2, int(n_clusters)))


def check_members(members: Sequence[Member], n_points: int) -> list[Member]:
    """Pairs (name, clusterer or labels), at least two, no name twice."""
    if isinstance(members, str) or not all(is_pair(pair) for pair in members):
        raise ValueError(
            "members must be a list of pairs like ('kmeans', KMeans(10)): a name, and an object with "
            f"fit_predict or an array with one label per point. Got {members!r}."
        )
    names = [name for name, _ in members]
    if len(set(names)) < len(names):
        raise ValueError(f"Members must have different names, got {names}.")
    if len(names) < 2:
        raise ValueError(
            f"Agreement needs at least two ensemble members, got {len(names)}: {names}. Add a "
            "clusterer, or use deccs.deep.AutoencoderClustering for a single one."
        )
    checked: list[Member] = []
    for name, member in members:
        if isinstance(member, type):
            raise ValueError(
                f"Member {name!r} is the class {member.__name__}; give an object: "
                f"{member.__name__}(...)."
            )
        if is_labeling(member):
            member = as_labeling(name, member, n_points)
        checked.append((name, member))
    return checked
