"""A live display of a fit: pretraining, then a row per round."""

from __future__ import annotations

import math
from collections.abc import Callable

from rich import progress as bars
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from deccs.events import Epoch, Progress
from deccs.rounds.records import Round


class Display:
    """Progress bars with the time left, and a line per round above them.

    ``extra`` adds words to a round's line, e.g. scores against a known truth.
    """

    def __init__(
        self,
        n_rounds: int,
        console: Console | None = None,
        extra: Callable[[Round], str] = lambda finished: "",
    ) -> None:
        self.n_rounds, self.extra = n_rounds, extra
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

    def on_epoch(self, epoch: Epoch) -> None:
        task = self._task(f"pretraining, {epoch.stage}", epoch.n_epochs)
        self.progress.update(
            task,
            completed=epoch.number,  # type: ignore[arg-type]
            description=f"pretraining, {epoch.stage}: error {epoch.error:.4f}",
        )

    def on_progress(self, part: Progress) -> None:
        task = self._task(part.stage, part.n_steps)
        words = f"{part.stage}: loss {part.loss:.4f}"
        if not math.isnan(part.changed):
            words += f", {part.changed:.1%} of the labels changed"
        self.progress.update(task, completed=part.step, description=words)  # type: ignore[arg-type]

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
