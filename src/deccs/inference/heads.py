"""Linear heads: the members' classifiers, and the one for the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deccs.storage import reals
from deccs.storage.schema import check_fields

MOST_HEADS = 2**14  # clusters of all members in a file: each takes room for every point
FIELDS = {
    "weight": reals("n_members", "widest", "n_latent"),
    "bias": reals("n_members", "widest"),
    "n_clusters": list[int],
}


@dataclass(frozen=True, eq=False)
class LinearHeads:
    """``softmax(W_i z + b_i)`` for every member i. Clusters a member lacks are padding, with a bias of -1e9."""

    weight: np.ndarray  # (n_members, widest, n_latent)
    bias: np.ndarray  # (n_members, widest)

    @cached_property
    def exact(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and biases in double precision."""
        return self.weight.astype(np.float64), self.bias.astype(np.float64)

    def heads(self) -> LinearHeads:
        """Themselves, as classifiers of torch give theirs."""
        return self

    def logits(self, Z: np.ndarray) -> np.ndarray:
        """(n, n_latent) -> (n, n_members, widest), in double precision, each row by itself."""
        weight, bias = self.exact
        return np.einsum("nd,mkd->nmk", Z, weight) + bias


def check_heads(fields: Mapping[str, Any]) -> None:
    """Raise a ValueError for fields of a file that are no heads."""
    check_fields("Classifiers", fields, FIELDS)
    if fields["bias"].size > MOST_HEADS or len(fields["n_clusters"]) != len(fields["bias"]):
        raise ValueError(f"Classifiers has more than {MOST_HEADS:,} clusters, or unknown members")


def softmax(values: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis."""
    values = np.exp(values - values.max(axis=-1, keepdims=True))
    return values / values.sum(axis=-1, keepdims=True)
