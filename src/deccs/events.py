"""What callbacks see of a fit, and how they are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """A part of the training of a deep method, as callbacks (``on_progress``) and the display see it."""

    stage: str  # the method's name
    step: int
    n_steps: int
    loss: float  # mean since the last report
    changed: float  # share of the labels that changed since; NaN where the method does not look


def tell(listeners: Sequence[Any], event: str) -> Callable[[Any], None]:
    """Hand an event to everyone who listens; a plain function listens to rounds."""

    def call(record: Any) -> None:
        for listener in listeners:
            if hasattr(listener, event):
                getattr(listener, event)(record)
            elif event == "on_round" and callable(listener):
                listener(record)

    return call


@dataclass(frozen=True)
class Epoch:
    """One pass over the data, as callbacks and the progress display see it."""

    stage: str  # "layer 1", ..., "whole network"
    number: int  # from 1
    n_epochs: int
    error: float  # mean squared reconstruction error on the held-out points
