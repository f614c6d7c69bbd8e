"""Batches of row numbers."""

from __future__ import annotations

from collections.abc import Iterator

import torch


def shuffled_batches(
    index: torch.Tensor, size: int, generator: torch.Generator
) -> Iterator[torch.Tensor]:
    """Row numbers of one epoch, batch by batch; a rest of one row joins the batch before."""
    order = index[torch.randperm(len(index), generator=generator)]
    parts = list(order.split(size))
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    yield from parts


def endless_batches(
    index: torch.Tensor, size: int, generator: torch.Generator
) -> Iterator[torch.Tensor]:
    """Full batches for ever, reshuffled each time the rows run out."""
    size = min(size, len(index))
    while size:
        order = index[torch.randperm(len(index), generator=generator)]
        yield from (part for part in order.split(size) if len(part) == size)


def hold_out(
    n_points: int, share: float, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Row numbers to train on and to hold out; very small data is used for both."""
    n_held = min(2_000, int(share * n_points))
    order = torch.randperm(n_points, generator=generator)
    if n_held < 2:
        return order, order
    return order[n_held:], order[:n_held]
