"""Checks of the members a user gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deccs.labels import as_labeling
from deccs.members.default import Member, default_members


def is_labeling(member: Any) -> bool:
    """Whether this is meant as an array of labels rather than a clusterer."""
    return not hasattr(member, "fit_predict")


def asked_clusters(member: Any, n_found: int) -> int:
    """The number of clusters a member was asked for; the number found, if it takes no such number."""
    for name in ("n_clusters", "n_components"):
        if isinstance(getattr(member, name, None), int | np.integer):
            return int(getattr(member, name))
    return n_found


def members_for(
    n_clusters: int | None, members: Sequence[Member] | None, n_points: int
) -> list[Member]:
    """The user's members, checked; the default members for ``n_clusters`` if there are none."""
    if members is not None:
        return check_members(members, n_points)
    if n_clusters is None:
        raise ValueError(
            "n_clusters=None takes the number of clusters most members have, so it needs members. "
            "Give members or n_clusters."
        )
    return default_members(max(2, int(n_clusters)))


def check_members(members: Sequence[Member], n_points: int) -> list[Member]:
    """Pairs (name, clusterer or labels), at least two, no name twice."""
    if isinstance(members, str) or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)
        for pair in members
    ):
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
