"""The paper's experiments: settings per data set as data, records of runs, the runner."""

from deccs_paper.settings import estimator_for

__all__ = ["estimator_for"]
