"""The paper's nine figures as data: ``FIGURES["fig1"].draw(records, out)``."""

from deccs_paper.figures.catalogue import FIGURES
from deccs_paper.figures.members import before_and_after, most_halfway, plot_member
from deccs_paper.figures.parts import Figure, Need

__all__ = ["FIGURES", "Figure", "Need", "before_and_after", "most_halfway", "plot_member"]
