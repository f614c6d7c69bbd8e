"""What happens during a fit, and who is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """A part of a training, at one of its checks."""

    stage: str  # "pretraining", or the method's name
    step: int
    n_steps: int
    loss: float = math.nan  # mean over the steps since the last check, where there is a loss
    held_out: float = math.nan  # error on held-out points, where the training has some
    changed: float = (
        math.nan
    )  # share of the labels that changed since the last check, where it looks


class Callback:
    """What a fit tells while it runs; override the hooks you need.

    Pass objects of a subclass as ``callbacks=[...]``. A plain function in that list is called with
    every round, like ``on_round``.
    """

    def on_fit_start(self, estimator: Any) -> None:
        """The input is checked, and the fit begins."""

    def on_progress(self, progress: Progress) -> None:
        """A training has come to one of its checks; see :class:`Progress`."""

    def on_round(self, finished: Any) -> None:
        """A round of DECCS is finished; see :class:`deccs.Round`."""

    def on_answer(self, answer: Any) -> None:
        """A block of rows is labeled, in the order of the rows; see :class:`deccs.Answer`."""

    def on_parts(self, n_known: int) -> None:
        """The rows of a large table are about to be labeled, in parts; so many parts are known from before a kill.

        The answers for the rows of a part follow, in order, and then ``on_part``. Of several processes each tells
        of its own parts.
        """

    def on_part(self, rows: range) -> None:
        """All answers for these rows were told, now or before a kill. What was written of them must be safe now."""

    def on_fit_end(self, estimator: Any) -> None:
        """The estimator is fitted."""

    def stop(self) -> bool:
        """Whether to end the training at the next check and finish with what has been learned.

        It is asked after every event.
        """
        return False


class Listeners:
    """All callbacks of a fit. Objects with only some of the hooks are accepted."""

    def __init__(self, callbacks: Sequence[Any] | None = None) -> None:
        self.callbacks = list(callbacks or ())
        self.stopped = False  # a callback asked to end the training

    def tell(self, hook: str, record: Any) -> None:
        for callback in self.callbacks:
            if hasattr(callback, hook):
                getattr(callback, hook)(record)
            elif hook == "on_round" and callable(callback):
                callback(record)
            if hasattr(callback, "stop") and callback.stop():
                self.stopped = True


NOBODY = Listeners()
