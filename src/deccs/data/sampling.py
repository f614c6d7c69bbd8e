"""Drawing and shuffling row numbers, in memory that does not grow with the number of rows.

What holds row numbers here is an ``Index``: a tensor, or an object that computes the numbers when
asked for them.
"""

from __future__ import annotations

from typing import Protocol

import torch

from deccs.checks import is_whole

MOST_IN_MEMORY = (
    2**20
)  # rows whose numbers are held as a vector, of 8 MB; beyond, they are computed


class Index(Protocol):
    """Row numbers by their place: ``index[2:5]`` and ``index[tensor]`` give tensors."""

    def __len__(self) -> int: ...

    def __getitem__(self, places: slice | torch.Tensor, /) -> torch.Tensor: ...


class EveryRow:
    """The numbers from 0 to n - 1."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, places: slice | torch.Tensor) -> torch.Tensor:
        return torch.arange(*places.indices(self.n)) if isinstance(places, slice) else places


class Permutation(EveryRow):
    """All numbers from 0 to n - 1 in a random order, each computed from its place.

    A Feistel network permutes a power of four that is not below n; a number that comes out too
    high is permuted again until it fits, which takes less than four turns on average.

    >>> order = Permutation(10, torch.Generator().manual_seed(0))
    >>> sorted(order[0:10].tolist()) == list(range(10)), len(order[3:5])
    (True, 2)
    """

    N_TURNS = 6  # of the network; from four on its output passes for random

    def __init__(self, n: int, generator: torch.Generator) -> None:
        super().__init__(n)
        self.half_bits = max(1, (max(n - 1, 1).bit_length() + 1) // 2)
        self.keys = torch.randint(2**62, (self.N_TURNS,), generator=generator).tolist()

    def __getitem__(self, places: slice | torch.Tensor) -> torch.Tensor:
        numbers = self._permuted(super().__getitem__(places))
        too_high = (numbers >= self.n).nonzero()[:, 0]
        while len(too_high):
            numbers[too_high] = self._permuted(numbers[too_high])
            too_high = too_high[numbers[too_high] >= self.n]
        return numbers

    def _permuted(self, numbers: torch.Tensor) -> torch.Tensor:
        mask = 2**self.half_bits - 1
        left, right = numbers >> self.half_bits, numbers & mask
        for key in self.keys:
            left, right = right, left ^ (scrambled(right ^ key) & mask)
        return (left << self.half_bits) | right


def scrambled(numbers: torch.Tensor) -> torch.Tensor:
    """Whole numbers as others that look random (the finalizer of SplitMix64, products wrap around)."""
    numbers = (numbers ^ (numbers >> 30)) * -0x40A7B892E31B1A47
    numbers = (numbers ^ (numbers >> 27)) * -0x6B2FB644ECCEEE15
    return numbers ^ (numbers >> 31)


class Chosen:
    """The rows of an index at some places: ``index[places]``, computed when asked for."""

    def __init__(self, index: Index, places: Index) -> None:
        self.index, self.places = index, places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, places: slice | torch.Tensor) -> torch.Tensor:
        return self.index[self.places[places]]


class Range(EveryRow):
    """The numbers from ``start`` to ``stop`` - 1."""

    def __init__(self, start: int, stop: int) -> None:
        super().__init__(stop - start)
        self.start = start

    def __getitem__(self, places: slice | torch.Tensor) -> torch.Tensor:
        return super().__getitem__(places) + self.start


class Others(EveryRow):
    """The numbers from 0 to n_rows - 1 that are not in a sample, in order.

    >>> Others(6, torch.tensor([1, 4]))[0:4]
    tensor([0, 2, 3, 5])
    """

    def __init__(self, n_rows: int, sample: torch.Tensor) -> None:
        super().__init__(n_rows - len(sample))
        # The k-th of the others is k plus the sampled numbers before it.
        self.n_others_before = sample - torch.arange(len(sample))  # (n_sample,), sample is in order

    def __getitem__(self, places: slice | torch.Tensor) -> torch.Tensor:
        numbers = super().__getitem__(places)
        return numbers + torch.searchsorted(self.n_others_before, numbers, right=True)


def permutation(n: int, generator: torch.Generator) -> Index:
    """The numbers from 0 to n - 1 in a random order."""
    if n <= MOST_IN_MEMORY:
        return torch.randperm(n, generator=generator)
    return Permutation(n, generator)


def shuffled(index: Index, generator: torch.Generator) -> Index:
    """The same row numbers in a random order."""
    return taken(index, permutation(len(index), generator))


def taken(index: Index, places: Index) -> Index:
    """``index[places]``, as a tensor where the places are one."""
    return index[places] if isinstance(places, torch.Tensor) else Chosen(index, places)


def draw_rows(n_rows: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """(size,) row numbers without replacement, in order; all of them if there are no more."""
    return permutation(n_rows, generator)[:size].sort().values


def sample_count(sample_size: int | float | str, n_points: int, default: int) -> int:
    """Points of a sample: a number, a share of all points, or "auto" for the default.

    >>> sample_count(200, 180, default=50), sample_count(0.5, 180, 50), sample_count("auto", 180, 50)
    (180, 90, 50)
    """
    if isinstance(sample_size, str):
        return min(default, n_points)
    size = int(sample_size) if is_whole(sample_size) else max(2, round(sample_size * n_points))
    return min(size, n_points)


def split_rows(
    n_rows: int, n_held_out: int, generator: torch.Generator
) -> tuple[Index, torch.Tensor]:
    """Row numbers to train on, and (n_held_out,) to hold out."""
    order = permutation(n_rows, generator)
    if isinstance(order, torch.Tensor):
        return order[n_held_out:], order[:n_held_out]
    return Chosen(order, Range(n_held_out, n_rows)), order[:n_held_out]
