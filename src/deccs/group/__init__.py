"""Several processes that fit one model together, on one machine or on many."""

from deccs.group.group import ALONE, Group, check_same, share
from deccs.group.joining import current_group, distributed, is_launched
from deccs.group.watch import GroupError

__all__ = [
    "ALONE",
    "Group",
    "GroupError",
    "check_same",
    "current_group",
    "distributed",
    "is_launched",
    "share",
]
