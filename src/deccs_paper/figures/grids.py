"""Figures 2 and 9: every member before and after the rounds."""

from __future__ import annotations

from deccs.plots import new_figure
from deccs_paper.figures.fits import Fitted, fit, member_scores
from deccs_paper.figures.members import member_grid
from deccs_paper.figures.parts import Task, save

Scores = dict[str, float]


def draw_before_and_after(
    data: str, task: Task, name: str, score: str
) -> tuple[Fitted, dict[str, Scores]]:
    """Draw a fit's members on the plain embedding and on the last one, and score them on both."""
    fitted = fit(data, task)
    figure = new_figure(10, 5)
    member_grid(figure, fitted.truth, fitted.rounds, fitted.last)
    save(figure, task.out, name)
    before, after = (
        member_scores(fitted.rounds[number], fitted.truth, score) for number in (0, fitted.last)
    )
    return fitted, {"autoencoder": before, "consensus_representation": after}
