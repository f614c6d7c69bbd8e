"""Several processes that fit one model together, on one machine or on many."""

from deccs.group.group import ALONE, Group, GroupError
from deccs.group.joining import current_group, distributed
