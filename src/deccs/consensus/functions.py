"""The registry of consensus functions, and the steps all of them begin with."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from deccs.consensus.partitions import distinct_rows, one_cluster_per_row, wanted_clusters
from deccs.seeds import root_seed, seed_for


class ConsensusFunction(Protocol):
    """Many partitions in, one out; see :mod:`deccs.consensus`."""

    def __call__(
        self,
        base_partitions: ArrayLike,
        n_clusters: int | None = None,
        *,
        weights: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        **options: Any,
    ) -> np.ndarray: ...


Function = TypeVar("Function", bound=Callable[..., np.ndarray])
FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {}  # by name, filled by the functions themselves


def consensus_function(function: Function) -> Function:
    """Make a function known by its name: ``ConsensusClustering(function="name")``."""
    FUNCTIONS[function.__name__] = function
    return function


def on_distinct_rows(method: Callable[..., np.ndarray]) -> ConsensusFunction:
    """Make a consensus function of a method that works on distinct rows.

    The method is called as ``method(rows, n_clusters)``, with the distinct label vectors and the
    number of clusters wanted, which is at most the number of rows. It gets a ``seed`` if it takes
    one. Its keyword-only parameters become parameters of the consensus function.
    """
    parameters = signature(method).parameters

    @wraps(method, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def function(
        base_partitions: ArrayLike, n_clusters: int | None = None, **options: Any
    ) -> np.ndarray:
        random_state = options.pop("random_state", None)
        rows = distinct_rows(base_partitions, options.pop("weights", None))
        n_wanted = wanted_clusters(rows, n_clusters)
        if n_wanted > len(rows):
            return one_cluster_per_row(rows, n_wanted)
        if "seed" in parameters:
            options["seed"] = seed_for(root_seed(random_state), method.__name__)
        return method(rows, n_wanted, **options)

    # What help() shows: the common parameters, and those of the method in place of **options.
    shared = signature(ConsensusFunction.__call__)
    _, partitions, n_clusters, weights, random_state, _ = shared.parameters.values()
    special = [option for option in parameters.values() if option.kind is Parameter.KEYWORD_ONLY]
    function.__signature__ = Signature(  # type: ignore[attr-defined]
        [partitions, n_clusters, *special, weights, random_state],
        return_annotation=shared.return_annotation,
    )
    return function
