"""Graph and hypergraph partitioners: weighted vertices into k parts of equal weight, cutting little.

These are METIS and Mt-KaHyPar, both heuristics. The extra ``deccs[partition]`` installs them.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from scipy.sparse import csr_array

IMBALANCE = 0.03  # a part may be heavier than an even part by this share
SMALL = 300  # vertices: up to here a partition is improved by exchanges
MOST = 2**30  # limit of the sum of all edge weights: METIS may be built with 32-bit numbers


def partition_graph(
    graph: csr_array, vertex_weights: np.ndarray, n_parts: int, seed: int
) -> np.ndarray:
    """(n_vertices,) parts of an undirected graph with edge weights, both directions stored."""
    graph = whole_numbers(graph)
    metis = module("pymetis")

    def split(vertices: np.ndarray, n_parts: int) -> np.ndarray:
        part = graph if len(vertices) == graph.shape[0] else csr_array(graph[vertices][:, vertices])
        weights = vertex_weights[vertices]
        if metis is None:
            return by_kahypar(part, weights, n_parts, seed)
        return by_metis(metis, part, weights, n_parts, seed)

    parts = with_all_parts(split, vertex_weights, n_parts)
    return exchanged(graph.toarray(), parts, vertex_weights) if len(parts) <= SMALL else parts


def exchanged(weight: np.ndarray, parts: np.ndarray, vertex_weights: np.ndarray) -> np.ndarray:
    """Move single vertices and swap pairs as long as that cuts less and makes no part too heavy.

    METIS is made for large graphs. On MCLA's few dozen clusters it has cut three times as much as
    necessary, and left a part empty. Graphs of that size are small enough to look at all pairs.
    ``weight`` is (n_vertices, n_vertices).

    >>> pairs = np.kron(np.eye(2), np.ones((2, 2)))
    >>> exchanged(pairs, np.array([0, 1, 0, 1]), np.ones(4))
    array([1, 1, 0, 0])
    """
    parts, weight = parts.copy(), weight - np.diag(np.diag(weight))
    n_parts, vertices = int(parts.max()) + 1, np.arange(len(parts))
    load = np.bincount(parts, vertex_weights, minlength=n_parts)
    limit = max(load.max(), np.ceil((1 + IMBALANCE) * load.sum() / n_parts))
    while True:
        tie = weight @ np.eye(n_parts)[parts]  # (n_vertices, n_parts)
        gain = tie - tie[vertices, parts][:, None]  # of moving a vertex to a part
        alone = np.bincount(parts, minlength=n_parts)[parts] == 1
        full = load + vertex_weights[:, None] > limit
        move = np.where(full | alone[:, None], 0, gain)
        to_other = gain[:, parts]  # of moving i to the part of j
        shift = vertex_weights - vertex_weights[:, None]  # j's weight less i's
        too_much = (load[parts][:, None] + shift > limit) | (load[parts] - shift > limit)
        swap = np.where(too_much | (parts == parts[:, None]), 0, to_other + to_other.T - 2 * weight)
        if max(move.max(), swap.max()) <= 1e-9 * max(weight.sum(), 1e-300):
            return parts
        if move.max() >= swap.max():
            i, new = np.unravel_index(move.argmax(), move.shape)
            parts[i] = new
        else:
            i, j = np.unravel_index(swap.argmax(), swap.shape)
            parts[i], parts[j] = parts[j], parts[i]
        load = np.bincount(parts, vertex_weights, minlength=n_parts)


def partition_hypergraph(
    membership: csr_array,
    vertex_weights: np.ndarray,
    edge_weights: np.ndarray,
    n_parts: int,
    seed: int,
) -> np.ndarray:
    """(n_vertices,) parts of the hypergraph whose edges are the columns of ``membership``."""
    scaled = np.maximum(1, np.rint(edge_weights * (1_000 / edge_weights.max()))).astype(int)

    def split(vertices: np.ndarray, n_parts: int) -> np.ndarray:
        columns = membership[vertices].T.tocsr()
        pins = np.split(columns.indices, columns.indptr[1:-1])
        used = [number for number, edge in enumerate(pins) if len(edge) > 1]
        kahypar, context = kahypar_context(n_parts, seed, "KM1")
        hypergraph = kahypar.create_hypergraph(
            context,
            len(vertices),
            len(used),
            [pins[number].tolist() for number in used],
            vertex_weights[vertices].tolist(),
            scaled[used].tolist(),
        )
        return np.array(hypergraph.partition(context).get_partition())

    return with_all_parts(split, vertex_weights, n_parts)


def with_all_parts(split: Any, vertex_weights: np.ndarray, n_parts: int) -> np.ndarray:
    """Partition; while there are empty parts, divide the heaviest part in two."""
    n_vertices = len(vertex_weights)
    if n_parts >= n_vertices:
        return np.arange(n_vertices)
    if n_parts == 1:
        return np.zeros(n_vertices, dtype=np.int64)
    parts = split(np.arange(n_vertices), n_parts)
    for empty in np.setdiff1d(np.arange(n_parts), parts):
        divisible = np.bincount(parts, minlength=n_parts) > 1
        weight = np.bincount(parts, vertex_weights, minlength=n_parts) * divisible
        inside = np.flatnonzero(parts == weight.argmax())
        halves = split(inside, 2) if len(inside) > 2 else np.arange(len(inside))
        if len(np.unique(halves)) < 2:
            # METIS may not divide a handful of vertices. Any halves will do: exchanges improve them.
            halves = np.cumsum(vertex_weights[inside]) > vertex_weights[inside].sum() / 2
            halves[0] = False
        parts[inside[halves == 1]] = empty
    return parts


def whole_numbers(graph: csr_array) -> csr_array:
    """Edge weights as whole numbers of at least 1, as METIS needs them, without loops."""
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    kept = (graph.indices != rows) & (graph.data > 0)
    weights = graph.data[kept]
    scale = MOST / max(float(weights.sum()), 1e-300)
    scaled = np.maximum(1, np.rint(weights * scale)).astype(np.int64)
    if len(weights) and np.allclose(weights, np.rint(weights), atol=1e-9) and weights.sum() < MOST:
        scaled = np.rint(weights).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=graph.shape[0]))])
    return csr_array((scaled, graph.indices[kept], starts), shape=graph.shape)


def by_metis(
    metis: Any, graph: csr_array, vertex_weights: np.ndarray, n_parts: int, seed: int
) -> np.ndarray:
    adjacency = metis.CSRAdjacency(graph.indptr.astype(np.int64), graph.indices.astype(np.int64))
    options = metis.Options(seed=seed, ufactor=int(1_000 * IMBALANCE))
    result = metis.part_graph(
        n_parts,
        adjacency,
        vweights=vertex_weights.astype(np.int64),
        eweights=graph.data,
        options=options,
        recursive=False,
    )
    return np.array(result.vertex_part)


def by_kahypar(graph: csr_array, vertex_weights: np.ndarray, n_parts: int, seed: int) -> np.ndarray:
    """For systems without a wheel of METIS (Windows)."""
    kahypar, context = kahypar_context(n_parts, seed, "CUT")
    edges = graph.tocoo()
    once = edges.row < edges.col
    ends = list(zip(edges.row[once].tolist(), edges.col[once].tolist(), strict=True))
    weights = edges.data[once].tolist()
    weighted_graph = kahypar.create_graph(
        context, graph.shape[0], len(ends), ends, vertex_weights.tolist(), weights
    )
    return np.array(weighted_graph.partition(context).get_partition())


def kahypar_context(n_parts: int, seed: int, objective: str) -> tuple[Any, Any]:
    mtkahypar = required_kahypar()
    mtkahypar.set_seed(seed)
    initialized = initialize(mtkahypar)
    context = initialized.context_from_preset(mtkahypar.PresetType.DETERMINISTIC_QUALITY)
    context.set_partitioning_parameters(n_parts, IMBALANCE, getattr(mtkahypar.Objective, objective))
    context.logging = False
    return initialized, context


def required_kahypar() -> Any:
    """Mt-KaHyPar is enough for all consensus functions; METIS is preferred where it is installed."""
    mtkahypar = module("mtkahypar")
    if mtkahypar is None:
        raise ImportError(
            "This consensus function needs a partitioner: pip install 'deccs[partition]' (pymetis "
            "for cspa, mcla and hbgf, mtkahypar for hgpa). eac, lwea, lwgp and nmf need none."
        )
    return mtkahypar


@lru_cache(1)
def initialize(mtkahypar: Any) -> Any:
    """Once in a process, with one thread: the graphs are small."""
    return mtkahypar.initialize(1, print_warnings=False)


def module(name: str) -> ModuleType | None:
    """A module, or None if it is not installed."""
    try:
        return __import__(name)
    except ImportError:
        return None
