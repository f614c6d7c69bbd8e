"""Rows of a fit that its model keeps, to judge clusters and labels by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from deccs.checks import whole
from deccs.inference.seen import MOST_COMPONENTS
from deccs.storage import reals, stored, wholes

MOST_DRAWN = 1_000  # rows: their neighbors and trees take a fraction of a second


@stored
@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows of the fit, as plain members see them, with the labels of the result."""

    points: Annotated[np.ndarray, reals("n_drawn", "n_components")]
    labels: Annotated[np.ndarray, wholes("n_drawn")]
    seed: Annotated[int, whole(at_least=0)]
    # Which rows they are of those that were learned from; older models do not say it.
    rows: Annotated[np.ndarray, wholes("n_drawn", least=0)] | None = None

    def check_stored(self) -> None:
        """Raise a ValueError for more rows than can be judged in seconds, for none, or for no seed."""
        n_drawn, n_components = self.points.shape
        if not 1 <= n_drawn <= MOST_DRAWN or not 1 <= n_components <= MOST_COMPONENTS:
            raise ValueError(f"Drawn has {n_drawn} rows of {n_components} columns")
        if self.seed >= 2**32:
            raise ValueError(f"Drawn has the seed {self.seed}, which is too large")
