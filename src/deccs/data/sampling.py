"""Drawing and shuffling row numbers."""

from __future__ import annotations

import torch


def draw_rows(n_rows: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """(size,) row numbers without replacement, in order; all of them if there are no more."""
    return torch.randperm(n_rows, generator=generator)[:size].sort().values
