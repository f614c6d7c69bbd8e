"""What a fitted model keeps of the rows of its fit, to compare any row with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from deccs.inference.nearest import NearestInSample
from deccs.storage import reals, stored, wholes

MOST_COMPONENTS = 50  # of the raw data


@stored
@dataclass(frozen=True, eq=False)
class Components:
    """Scaled rows as members see them: principal components, or as they are if they have few columns."""

    mean: Annotated[np.ndarray, reals("n_features")]
    axes: Annotated[np.ndarray, reals("n_features", "n_components")] | None

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """(n, n_features) -> (n, n_components)."""
        return block if self.axes is None else (block - self.mean) @ self.axes


@stored
@dataclass(frozen=True, eq=False)
class Seen:
    """What a fitted model keeps of the views: a row is what its nearest row of the sample is."""

    components: Components
    raw: Annotated[np.ndarray, reals("n_sample", "n_components")]
    names: tuple[str, ...]  # of the members of the views
    partitions: Annotated[np.ndarray, wholes("n_members", "n_sample")]  # what they said
    # The result, if it is not that of a classifier.
    labels: Annotated[np.ndarray, wholes("n_sample", least=0)] | None

    def places(self, scaled: np.ndarray) -> np.ndarray:
        """(n, n_features) -> (n,) the place in the sample of each row's nearest neighbor."""
        return self._nearest.places(self.components(scaled))

    def at(self, places: np.ndarray) -> Seen:
        """What was said of the rows at these places."""
        labels = None if self.labels is None else self.labels[places]
        return replace(self, labels=labels, partitions=self.partitions[:, places])

    @cached_property
    def _nearest(self) -> NearestInSample:
        return NearestInSample(self.raw, np.arange(len(self.raw)))
