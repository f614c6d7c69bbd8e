"""The best state of some modules so far."""

from __future__ import annotations

import copy
import math
from typing import Any

from torch import nn


class Best:
    """The best state of some modules so far, by a number that should be small."""

    def __init__(self, *modules: nn.Module) -> None:
        self.modules, self.value, self.age = modules, math.inf, 0
        self.keep()

    def keep(self) -> None:
        self.states = [copy.deepcopy(module.state_dict()) for module in self.modules]

    def offer(self, value: float) -> bool:
        """Keep the present state if ``value`` is the smallest so far."""
        if value < self.value:
            self.value, self.age = value, 0
            self.keep()
            return True
        self.age += 1
        return False

    def restore(self) -> None:
        for module, state in zip(self.modules, self.states, strict=True):
            module.load_state_dict(state)

    def state(self) -> dict[str, Any]:
        return {"value": self.value, "age": self.age, "states": self.states}

    def load(self, state: dict[str, Any]) -> None:
        self.value, self.age, self.states = state["value"], state["age"], state["states"]
