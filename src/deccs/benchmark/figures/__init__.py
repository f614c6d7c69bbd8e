"""The paper's nine figures as data: ``FIGURES["fig1"].draw(records, out)``."""

from deccs.benchmark.figures.catalogue import FIGURES
from deccs.benchmark.figures.members import before_and_after, most_halfway, plot_member
from deccs.benchmark.figures.parts import Figure, Need

__all__ = ["FIGURES", "Figure", "Need", "before_and_after", "most_halfway", "plot_member"]
