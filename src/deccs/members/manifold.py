"""Manifold embedding: UMAP's fuzzy graph and layout (McInnes, Healy and Melville, 2018) in NumPy.

The steps are those of the paper: nearest neighbors, fuzzy graph, spectral start, layout. The layout
differs in its order. UMAP moves one edge after the other, in the order of the rows; here all points
move at once, each along one edge. Where a few hubs are neighbors of everybody, UMAP's order carries
over into the embedding: rows that are near in the file end up near each other.
"""

from __future__ import annotations

import sys

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from deccs.members.neighbors import nearest_neighbors
from deccs.seeds import thread_pools

# 1 / (1 + A d^(2 B)) is the similarity of two points at distance d in the embedding. A and B fit it
# to exp(-d), which is UMAP's curve for min_dist=0 and spread=1, by least squares on 300 points of
# [0, 3]: scipy.optimize.curve_fit(lambda d, a, b: 1 / (1 + a * d ** (2 * b)), d, np.exp(-d))
A, B = np.float32(1.9328084), np.float32(0.79049497)
LONGEST_PUSH = 4  # of one repulsion, in each coordinate
NEGATIVES = 5  # random points that push a point away, for each edge it is pulled along
SLOTS = 64  # edges drawn at once for each point
TINY = np.float32(1e-12)  # keeps the logarithm of a distance of 0 finite
SIGMA_FLOOR = 1e-3  # of the mean distance: ties would otherwise ask for a width of 0
DENSE = 500  # points up to which all eigenvectors are found at once
MOST_INVERTED = 20_000  # points up to which a factorization of the graph fits into memory


def manifold_embedding(
    X: np.ndarray,
    n_dimensions: int,
    seed: int,
    n_neighbors: int = 15,
    neighbors: tuple[np.ndarray, np.ndarray] | None = None,
    n_steps: int | None = None,
) -> np.ndarray:
    """Points whose neighbors are those of the data, in few dimensions: (n, n_dimensions) float64.

    ``neighbors`` are the distances and row numbers of :func:`nearest_neighbors`, if the caller has
    them. ``n_steps`` is 4,000 up to 10,000 points and 1,500 beyond, about UMAP's 500 and 200 epochs:
    an epoch moves a point along six edges on average. A fixed seed gives the same bits with any
    number of threads.
    """
    if len(X) == 1:
        return np.zeros((1, n_dimensions))
    distances, indices = neighbors or nearest_neighbors(X, min(n_neighbors, len(X)))
    graph = fuzzy_graph(distances, indices)
    start = spectral_start(graph, X, n_dimensions, np.random.default_rng([seed, 0]))
    n_steps = n_steps or (4000 if len(X) <= 10_000 else 1500)
    return layout(start, graph, n_steps, np.random.default_rng([seed, 1]))


# The fuzzy graph


def fuzzy_graph(distances: np.ndarray, neighbors: np.ndarray) -> sp.csr_array:
    """(n, k) distances and row numbers -> (n, n) symmetric weights in (0, 1], none on the diagonal.

    A point may be among its own neighbors; that entry is ignored. Two memberships p and q of the
    same edge, one from each end, are combined to p + q - p q.

    >>> distances, neighbors = np.array([[0.0, 1], [0, 1], [0, 2]]), np.array([[0, 1], [1, 0], [2, 1]])
    >>> fuzzy_graph(distances, neighbors).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    n, k = neighbors.shape
    heads = np.arange(n)
    weights = memberships(distances, neighbors != heads[:, None])  # (n, k)
    entries = weights.ravel(), (np.repeat(heads, k), neighbors.ravel())
    directed = sp.csr_array(entries, shape=(n, n))
    directed.eliminate_zeros()
    return sp.csr_array(directed + directed.T - directed.multiply(directed.T))


def memberships(distances: np.ndarray, others: np.ndarray) -> np.ndarray:
    """exp(-(d - rho) / sigma) for each neighbor: (n, k), 0 where ``others`` is False.

    rho is the distance of the nearest other point that is no duplicate. sigma, the point's own
    scale, is such that its memberships add up to log2(k).

    >>> weights = memberships(np.array([[0.0, 1, 2, 3]]), np.array([[False, True, True, True]]))
    >>> weights.round(3), round(float(weights.sum()), 6)  # log2(4)
    (array([[0.   , 1.   , 0.618, 0.382]]), 2.0)
    """
    target = np.log2(distances.shape[1])
    distances = np.where(others, distances, np.inf)
    nearest = np.where(distances > 0, distances, np.inf).min(axis=1)
    rho = np.where(np.isfinite(nearest), nearest, 0)
    beyond = np.maximum(distances - rho[:, None], 0)  # (n, k), inf for the point itself
    low, high, sigma = np.zeros(len(rho)), np.full(len(rho), np.inf), np.ones(len(rho))
    for _ in range(64):  # bisection, after doubling until the sum is large enough
        too_wide = np.exp(-beyond / sigma[:, None]).sum(axis=1) > target
        low, high = np.where(too_wide, low, sigma), np.where(too_wide, sigma, high)
        sigma = np.where(np.isinf(high), np.minimum(2 * sigma, 1e12), (low + high) / 2)
    known = np.where(others, distances, 0)
    mean = np.where(rho > 0, known.sum(axis=1) / np.maximum(others.sum(axis=1), 1), known.mean())
    sigma = np.maximum(sigma, np.maximum(SIGMA_FLOOR * mean, TINY))
    return np.exp(-beyond / sigma[:, None])


# The start


def spectral_start(
    graph: sp.csr_array, X: np.ndarray, n_dimensions: int, rng: np.random.Generator
) -> np.ndarray:
    """Eigenvectors of the graph, each column scaled to [0, 10]: (n, n_dimensions).

    The parts of a graph that is not connected are laid out one by one, around places of their own.
    """
    n_parts, part = connected_components(graph, directed=False)
    # BLAS adds up in another order with more threads, and the layout enlarges such differences.
    with thread_pools(len(sys.modules)).limit(limits=1):
        if n_parts == 1:
            start = part_start(graph, n_dimensions, rng)
        else:
            start = np.empty((len(part), n_dimensions))
            inside = [np.flatnonzero(part == number) for number in range(n_parts)]
            places = part_places(np.stack([X[rows].mean(axis=0) for rows in inside]), n_dimensions)
            places += rng.normal(scale=1e-3, size=places.shape)  # parts may have the same center
            for number, rows in enumerate(inside):
                gaps = np.linalg.norm(places - places[number], axis=1)
                radius = np.delete(gaps, number).min() / 2
                own = part_start(graph[rows][:, rows], n_dimensions, rng)
                start[rows] = places[number] + radius * own
    start = 10 * start + rng.normal(scale=1e-4, size=start.shape)
    low, high = start.min(axis=0), start.max(axis=0)
    return 10 * (start - low) / (high - low)


def part_start(graph: sp.csr_array, n_dimensions: int, rng: np.random.Generator) -> np.ndarray:
    """A connected graph's leading eigenvectors but the constant one, in [-1, 1]; random if small."""
    n, wanted = graph.shape[0], n_dimensions + 1
    if n < max(2 * n_dimensions, n_dimensions + 2):
        return rng.uniform(-1, 1, size=(n, n_dimensions))
    root_degree = np.sqrt(graph.sum(axis=1))
    scale = sp.diags_array(1 / root_degree)
    scaled = sp.csr_array(scale @ graph @ scale)
    if n <= DENSE:
        values, vectors = some_eigenpairs(scaled.toarray(), n - wanted, n - 1)
    else:
        v0 = rng.normal(size=n)
        try:
            values, vectors = eigsh(
                scaled,
                wanted,
                which="LA",
                ncv=max(2 * wanted + 1, 20),
                v0=v0,
                maxiter=300,
                tol=1e-4,
            )
        except ArpackNoConvergence as error:
            # Eigenvalues are close to each other where clusters are long.
            if n <= MOST_INVERTED:
                values, vectors = eigsh(scaled, wanted, sigma=1 + 1e-6, v0=v0, tol=1e-4)
            else:
                missing = wanted - len(error.eigenvalues)
                noise = rng.normal(scale=1 / np.sqrt(n), size=(n, missing))
                values = np.concatenate([error.eigenvalues, np.full(missing, -1.0)])
                vectors = np.hstack([error.eigenvectors, noise])
    vectors = vectors[:, np.argsort(-values, kind="stable")][:, 1:]
    return vectors / np.abs(vectors).max()


def some_eigenpairs(matrix: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of a symmetric matrix from the first to the last, the smallest first, and vectors.

    LAPACK's routine for some of them is fast, but fails or finds too few where many are equal, as
    between copies of a row. The one for all of them does not.

    >>> some_eigenpairs(np.diag([3.0, 1.0, 2.0]), 1, 2)[0]
    array([2., 3.])
    """
    try:
        values, vectors = eigh(matrix, subset_by_index=[first, last])
        if vectors.shape[1] == last - first + 1 and np.isfinite(vectors).all():
            return values, vectors
    except LinAlgError:
        pass
    values, vectors = eigh(matrix, driver="evd")
    return values[first : last + 1], vectors[:, first : last + 1]


def part_places(centers: np.ndarray, n_dimensions: int) -> np.ndarray:
    """Where the parts of a graph start: (n_parts, n_dimensions) in [-1, 1].

    Few parts get the ends of the axes. More are placed by eigenvectors of their centers' similarity.

    >>> part_places(np.zeros((3, 5)), n_dimensions=2)
    array([[ 1.,  0.],
           [ 0.,  1.],
           [-1., -0.]])
    """
    n_parts = len(centers)
    if n_parts <= 2 * n_dimensions:
        axes = np.eye((n_parts + 1) // 2, n_dimensions)
        return np.vstack([axes, -axes])[:n_parts]
    squares = np.square(centers).sum(axis=1)
    gaps = np.maximum(squares[:, None] - 2 * centers @ centers.T + squares, 0)
    similarity = np.exp(-gaps / max(np.median(gaps), 1e-12))
    root_degree = np.sqrt(similarity.sum(axis=1))
    first, last = n_parts - 1 - n_dimensions, n_parts - 2  # without the constant one
    _, vectors = some_eigenpairs(similarity / np.outer(root_degree, root_degree), first, last)
    return vectors[:, ::-1] / np.abs(vectors).max()


# The layout


def layout(
    start: np.ndarray, graph: sp.csr_array, n_steps: int, rng: np.random.Generator
) -> np.ndarray:
    """Move (n, d) points along edges and away from random points, by ever smaller steps: (n, d).

    In a step each point is the head of one edge, drawn by weight. Both ends move, as in UMAP. Heads
    alone would move a group of points as a whole, at random, and tear clusters apart. The random
    points push one after the other: five pushes at once would throw a point far away.
    """
    Y = np.ascontiguousarray(start.T, dtype=np.float32)  # (d, n): long rows suit NumPy
    n = Y.shape[1]
    edges = strong_edges(graph, n_steps)
    mass = np.asarray(edges.sum(axis=1), dtype=np.float32)  # (n,)
    for step in range(n_steps):
        rate = np.float32(1 - step / n_steps)
        if step % SLOTS == 0:
            tails = drawn_tails(edges, rng)  # (SLOTS, n)
            shares = np.minimum(1, mass / mass[tails])  # (SLOTS, n)
        Y += rate * attraction(Y, tails[step % SLOTS], shares[step % SLOTS])
        for others in rng.integers(n, size=(NEGATIVES, n), dtype=np.int32):
            Y += rate * repulsion(Y, others)
    return Y.T.astype(np.float64)


def strong_edges(graph: sp.csr_array, n_steps: int) -> sp.csr_array:
    """A copy without edges so weak that UMAP would never draw them; ours has eight steps an epoch."""
    edges = sp.csr_array(graph, copy=True)
    edges.data[edges.data < edges.data.max() * 8 / max(n_steps, 80)] = 0
    edges.eliminate_zeros()
    return edges


def drawn_tails(edges: sp.csr_array, rng: np.random.Generator) -> np.ndarray:
    """``SLOTS`` neighbors for each point, as often as their weight says, shuffled: (SLOTS, n).

    Rounded by one random number for each point, so that an edge's count is off by less than one.
    """
    n, first, last = edges.shape[0], edges.indptr[:-1], edges.indptr[1:] - 1
    degree = np.diff(edges.indptr)
    total = np.cumsum(edges.data)
    before = np.repeat(total[first] - edges.data[first], degree)
    reached = (total - before) / np.repeat(np.add.reduceat(edges.data, first), degree)
    reached[last] = 1
    upto = np.floor(SLOTS * reached + np.repeat(rng.random(n), degree)).astype(np.int64)
    counts = np.diff(upto, prepend=0)
    counts[first] = upto[first]
    slots = np.repeat(edges.indices.astype(np.int32), counts).reshape(n, SLOTS)
    # Neighbors are sorted by row number: without shuffling each row by itself, all points would
    # move to lower rows together, and the order of the rows would show in the embedding.
    return np.ascontiguousarray(rng.permuted(slots, axis=1).T)


def attraction(Y: np.ndarray, tails: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """How far each point is pulled, as head of one edge and as tail of others: (d, n).

    A head moves by 2 - share, its tail by the share, which is min(1, head's mass / tail's mass). UMAP
    draws a point as often as its mass (the sum of its weights) says, from both ends of each edge.
    With these shares the forces on a point keep UMAP's proportions, though all are drawn alike.
    """
    pull = Y.take(tails, axis=1)  # (d, n)
    pull -= Y
    squares = np.einsum("dn,dn->n", pull, pull) + TINY
    power = np.exp(B * np.log(squares))  # (n,) d^(2 B)
    pull *= 2 * A * B * power / (squares * (1 + A * power))
    d, n = pull.shape
    places = (tails + n * np.arange(d)[:, None]).ravel()  # one sum for all dimensions
    reaction = np.bincount(places, (pull * shares).ravel(), minlength=d * n).reshape(d, n)
    pull *= 2 - shares
    pull -= reaction
    return pull


def repulsion(Y: np.ndarray, others: np.ndarray) -> np.ndarray:
    """How far each point is pushed away from one other point: (d, n)."""
    push = Y - Y.take(others, axis=1)  # (d, n)
    squares = np.einsum("dn,dn->n", push, push)
    power = np.exp(B * np.log(squares + TINY))
    push *= 2 * B / ((np.float32(1e-3) + squares) * (1 + A * power))
    return np.clip(push, -LONGEST_PUSH, LONGEST_PUSH, out=push)
