"""Where and how networks compute: device, threads, precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import nn


def pick_device(device: str) -> str:
    """The device to use: the best available one for "auto"; any other is checked."""
    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(
            f"device must be 'auto' or one that torch has here, got {device!r}: {error}"
        ) from error
    return device


@contextmanager
def threads_for(network: nn.Module, batch_size: int) -> Iterator[None]:
    """One thread for tiny networks: handing 20 x 20 products to a second core costs more than they do."""
    before = torch.get_num_threads()
    work = batch_size * sum(parameter.numel() for parameter in network.parameters())
    try:
        if work < 10_000_000:
            torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(before)


def precision_for(device: torch.device) -> AbstractContextManager[None]:
    """bfloat16 products where the hardware has units for them; exact single precision on a CPU."""
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()
