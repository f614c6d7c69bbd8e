"""Where and how networks compute: device, threads, precision."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn


def pick_device(device: str) -> str:
    """The device to use: the best available one for "auto"; any other is checked."""
    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.zeros(1, device=device).item()  # which the device "meta" does not have
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
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


@dataclass
class Override:
    """Torch's default dtype while fits need another; there is one for all threads."""

    n_fits: int = 0
    users: torch.dtype = torch.float32


OVERRIDE, ONE_AT_A_TIME = Override(), threading.Lock()


@contextmanager
def single_precision() -> Iterator[None]:
    """float32 as torch's default dtype: what a fit gives does not depend on the user's.

    The first of several fits remembers the user's, the last one to end restores it.
    """
    with ONE_AT_A_TIME:
        if OVERRIDE.n_fits == 0:
            OVERRIDE.users = torch.get_default_dtype()
            torch.set_default_dtype(torch.float32)
        OVERRIDE.n_fits += 1
    try:
        yield
    finally:
        with ONE_AT_A_TIME:
            OVERRIDE.n_fits -= 1
            if OVERRIDE.n_fits == 0:
                torch.set_default_dtype(OVERRIDE.users)


def precision_for(device: torch.device) -> AbstractContextManager[None]:
    """bfloat16 products where the hardware has units for them; exact single precision on a CPU."""
    return torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else nullcontext()
