"""What could be the result of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from deccs.storage import stored, wholes


@stored
@dataclass(frozen=True, eq=False)
class Candidate:
    """A partition that could be the result."""

    name: str
    labels: Annotated[np.ndarray, wholes("n_sample")]  # of the sample that all candidates share
    evidence: float  # the highest one is taken
