"""Batches of row numbers."""

from __future__ import annotations

from typing import Any

import torch

from deccs.data.sampling import Index, permutation, shuffled, split_rows

MOST_HELD_OUT = 2_000  # points are enough to tell when to stop


class Batches:
    """Row numbers, batch by batch without end; every pass has an order of its own.

    With ``rest=False`` all batches are full and what is left of a pass is not used. With
    ``rest=True`` a pass holds every row; a rest of one row joins the batch before.

    The place in the pass can be saved and restored (``state_dict``, ``load_state_dict``): the pass
    is then shuffled again from the generator's state at its beginning.
    """

    def __init__(
        self, index: Index, size: int, generator: torch.Generator, *, rest: bool = False
    ) -> None:
        self.index, self.size, self.generator = index, min(size, len(index)), generator
        n_full, n_left = divmod(len(index), max(self.size, 1))
        self.per_pass = n_full + (1 if rest and n_left > 1 else 0)
        self.joins = rest and n_left == 1  # the last batch has one row more
        self.number = self.per_pass  # in the pass; the first call begins a new one
        self.began = generator.get_state()
        self.order: Index | None = None

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> torch.Tensor:
        """(batch,) row numbers."""
        if not self.size:
            raise StopIteration
        if self.number == self.per_pass:
            self._shuffle()
        start = self.number * self.size
        self.number += 1
        last = self.joins and self.number == self.per_pass
        assert self.order is not None
        return self.order[start : start + self.size + int(last)]

    def _shuffle(self) -> None:
        self.began, self.number = self.generator.get_state(), 0
        self.order = shuffled(self.index, self.generator)

    def state_dict(self) -> dict[str, Any]:
        return {"began": self.began, "number": self.number, "generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not 0 <= state["number"] <= self.per_pass:
            raise ValueError(f"A pass of {self.per_pass} batches has no batch {state['number']}")
        if state["number"] < self.per_pass:
            self.generator.set_state(state["began"])
            self._shuffle()
        self.began, self.number = state["began"], state["number"]
        self.generator.set_state(state["generator"])


def hold_out(n_points: int, share: float, generator: torch.Generator) -> tuple[Index, torch.Tensor]:
    """Row numbers to train on and to hold out; very small data is used for both."""
    n_held = min(MOST_HELD_OUT, int(share * n_points))
    if n_held < 2:
        order = permutation(n_points, generator)
        return order, order[:MOST_HELD_OUT]
    return split_rows(n_points, n_held, generator)
