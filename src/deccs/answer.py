"""What a fitted model says of some points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of a fitted model for some rows, all from one pass over them.

    What a method does not have is None.
    """

    Z: np.ndarray  # (n, n_latent) the representation, in double precision
    labels: np.ndarray  # (n,) -1 for noise
    probabilities: np.ndarray | None = None  # (n, n_clusters)
    confidence: np.ndarray | None = None  # (n,) how sure the label is, from 0 to 1
    support: np.ndarray | None = None  # (n,) how well the members agree with it, from 0 to 1
    members: np.ndarray | None = None  # (n_members, n) labels, numbered like the clusters
    unedited: np.ndarray | None = None  # (n,) labels before edits, of a model that was edited
    novelty: np.ndarray | None = None  # (n,) the share of the rows of the fit that are less unusual

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def joined(cls, blocks: Iterable[Answer]) -> Answer:
        """One answer for all rows of some blocks, in their order."""
        parts = list(blocks)
        whole: dict[str, np.ndarray | None] = {}
        for field in fields(cls):
            arrays = [getattr(part, field.name) for part in parts]
            axis = 1 if field.name == "members" else 0
            whole[field.name] = None if arrays[0] is None else np.concatenate(arrays, axis=axis)
        return cls(**whole)  # type: ignore[arg-type]

    def rows(self, index: np.ndarray) -> Answer:
        """The answer for the rows at these places, in their order."""
        parts: dict[str, np.ndarray | None] = {}
        for field in fields(self):
            part = getattr(self, field.name)
            axis = 1 if field.name == "members" else 0
            parts[field.name] = None if part is None else part.take(index, axis=axis)
        return Answer(**parts)  # type: ignore[arg-type]
