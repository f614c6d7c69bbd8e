"""Values as JSON can hold them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def each_number(value: Any, change: Callable[[float], float | None]) -> Any:
    """A JSON value with every float in it changed; tuples become lists."""
    if isinstance(value, dict):
        return {key: each_number(inner, change) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [each_number(inner, change) for inner in value]
    return change(value) if isinstance(value, float) else value


def finite(value: Any) -> Any:
    """The value with None in place of NaN and infinity, which JSON does not have.

    >>> finite({"losses": (0.5, float("nan")), "n": 3})
    {'losses': [0.5, None], 'n': 3}
    """
    return each_number(value, lambda number: number if math.isfinite(number) else None)
