"""A live display of a fit: pretraining, then a row per round."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rich import progress as bars
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from deccs.events import Callback, Progress
from deccs.rounds.records import Round


class Display(Callback):
    """Progress bars with the time left, and a line per round above them.

    ``extra`` adds words to a round's line, e.g. scores against a known truth.
    """

    def __init__(
        self,
        console: Console | None = None,
        extra: Callable[[Round], str] = lambda finished: "",
    ) -> None:
        self.n_rounds, self.extra = 0, extra
        self.progress = bars.Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console or Console(stderr=True),
        )
        self.stages: dict[str, int] = {}

    def __enter__(self) -> Display:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()

    def say(self, words: str) -> None:
        self.progress.console.print(words, highlight=False, soft_wrap=True)

    def on_fit_start(self, estimator: Any) -> None:
        if hasattr(estimator, "rounds"):
            self.n_rounds = estimator.settings_for("rounds").n_rounds

    def on_progress(self, progress: Progress) -> None:
        task = self._task(progress.stage, progress.n_steps)
        words = progress.stage
        for name, value in (("loss", progress.loss), ("held-out error", progress.held_out)):
            if not math.isnan(value):
                words += f", {name} {value:.4f}"
        if not math.isnan(progress.changed):
            words += f", {progress.changed:.1%} of the labels changed"
        self.progress.update(task, completed=progress.step, description=words)  # type: ignore[arg-type]

    def on_round(self, finished: Round) -> None:
        task = self._task(
            f"rounds{f', start {finished.start + 1}' if finished.start else ''}", self.n_rounds + 1
        )
        losses = finished.losses
        words = [f"round {finished.number:2d}  agreement {finished.agreement:.3f}"]
        if losses is not None:
            words.append(
                f"loss {losses.total:.4f} (rec {losses.reconstruction:.4f}, "
                f"CE {losses.classification:.4f}, cons {losses.consensus:.4f})"
            )
        self.say("  ".join([*words, self.extra(finished)]).rstrip())
        self.progress.update(task, completed=finished.number + 1)  # type: ignore[arg-type]

    def _task(self, name: str, total: int) -> int:
        if name not in self.stages:
            self.stages[name] = self.progress.add_task(name, total=total)
        return self.stages[name]
