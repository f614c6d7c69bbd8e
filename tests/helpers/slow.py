"""Parameters of which a few are tried each time, and the others by ``make test-slow``."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_slow(values: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """All values for ``pytest.mark.parametrize``; those that are not in ``quick`` are slow."""
    return [
        value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values
    ]
