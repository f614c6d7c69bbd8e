"""Manifold embedding: UMAP's fuzzy graph and layout (McInnes, Healy and Melville, 2018) in NumPy."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from deccs.members.neighbors import nearest_neighbors

A, B = 1.9328083, 0.7904949


def memberships(distances, others):
    k = distances.shape[1]
    target = np.log2(k)
    positive = others & (distances > 0)
    rho = np.where(positive, distances, np.inf).min(axis=1)
    rho[np.isinf(rho)] = 0
    beyond = np.maximum(distances - rho[:, None], 0)
    low, high = np.zeros(len(rho)), np.full(len(rho), np.inf)
    sigma = np.ones(len(rho))
    for _ in range(64):
        total = np.where(others, np.exp(-beyond / sigma[:, None]), 0).sum(axis=1)
        above = total > target
        high = np.where(above, sigma, high)
        low = np.where(above, low, sigma)
        sigma = np.where(np.isinf(high), 2 * low, (low + high) / 2)
    count = np.maximum(others.sum(axis=1), 1)
    mean = np.where(others, distances, 0).sum(axis=1) / count
    mean = np.where(rho > 0, mean, np.where(others, distances, 0).mean())
    sigma = np.maximum(sigma, 1e-3 * mean)
    sigma[sigma == 0] = 1
    return np.where(others, np.exp(-beyond / sigma[:, None]), 0)


def fuzzy_graph(distances, neighbors):
    n, k = neighbors.shape
    rows = np.arange(n)[:, None]
    weights = memberships(distances, neighbors != rows)
    directed = sp.csr_array((weights.ravel(), (np.repeat(np.arange(n), k), neighbors.ravel())), shape=(n, n))
    directed.eliminate_zeros()
    both = directed.multiply(directed.T)
    return sp.csr_array(directed + directed.T - both)


def spectral_start(graph, n_dimensions, rng):
    n = graph.shape[0]
    root = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    scaled = sp.csr_array(sp.diags_array(1 / root) @ graph @ sp.diags_array(1 / root))
    wanted = n_dimensions + 1
    if n <= max(4 * wanted, 500):
        values, vectors = np.linalg.eigh(scaled.toarray())
        vectors = vectors[:, ::-1][:, 1:wanted]
    else:
        try:
            values, vectors = eigsh(scaled, wanted, which="LA", ncv=max(2 * wanted + 1, 20), v0=rng.normal(size=n), maxiter=300, tol=1e-4)
        except ArpackNoConvergence:
            values, vectors = eigsh(scaled, wanted, sigma=1 + 1e-6, v0=rng.normal(size=n), tol=1e-4)
        vectors = vectors[:, np.argsort(-values)][:, 1:]
    return vectors


def start(graph, X, n_dimensions, rng):
    n_parts, part = connected_components(graph, directed=False)
    n = len(part)
    if n_parts == 1 and n > n_dimensions + 1:
        Y = spectral_start(graph, n_dimensions, rng)
        Y = Y * 10 / np.abs(Y).max()
    elif n_parts == 1:
        Y = rng.uniform(-10, 10, size=(n, n_dimensions))
    else:
        centers = np.stack([X[part == p].mean(axis=0) for p in range(n_parts)])
        meta = meta_start(centers, n_dimensions, rng)
        Y = np.empty((n, n_dimensions))
        for p in range(n_parts):
            inside = np.flatnonzero(part == p)
            gap = np.linalg.norm(meta - meta[p], axis=1)
            reach = gap[gap > 0].min() / 2
            if len(inside) < 2 * n_dimensions or len(inside) <= n_dimensions + 1:
                Y[inside] = meta[p] + rng.uniform(-reach, reach, size=(len(inside), n_dimensions))
            else:
                E = spectral_start(graph[inside][:, inside], n_dimensions, rng)
                Y[inside] = meta[p] + E * reach / np.abs(E).max()
        Y = Y * 10 / np.abs(Y).max()
    Y = Y + rng.normal(scale=1e-4, size=Y.shape)
    return 10 * (Y - Y.min(axis=0)) / (Y.max(axis=0) - Y.min(axis=0))


def meta_start(centers, n_dimensions, rng):
    m = len(centers)
    if m <= 2 * n_dimensions:
        k = int(np.ceil(m / 2))
        base = np.eye(k, n_dimensions)
        return np.vstack([base, -base])[:m]
    d2 = ((centers[:, None] - centers[None]) ** 2).sum(axis=2) if m < 200 else np.maximum((centers**2).sum(1)[:, None] - 2 * centers @ centers.T + (centers**2).sum(1), 0)
    affinity = np.exp(-d2)   # as UMAP does
    root = np.sqrt(affinity.sum(axis=1))
    _, vectors = np.linalg.eigh(affinity / np.outer(root, root))
    E = vectors[:, ::-1][:, 1 : n_dimensions + 1]
    return E / np.abs(E).max()


SLOTS = 64


def layout(Y, graph, seed, n_epochs, per_epoch=5, plan='a5a', cap=0, react=0, mix=1, alpha=1.0):
    """Y (n, d) start."""
    rng = np.random.default_rng(seed)
    n, d = Y.shape
    Y = np.ascontiguousarray(Y.T, dtype=np.float32)  # (d, n)
    graph = sp.csr_array(graph, copy=True)
    graph.data[graph.data < graph.data.max() / n_epochs] = 0
    graph.eliminate_zeros()
    degree = np.diff(graph.indptr)
    ends = np.cumsum(graph.data)
    before = np.concatenate([[0], ends])[graph.indptr[:-1]]
    ends = (ends - np.repeat(before, degree)) / np.repeat(np.add.reduceat(graph.data, graph.indptr[:-1]), degree)
    ends[graph.indptr[1:] - 1] = 1.0
    n_steps = n_epochs * per_epoch
    mass = np.asarray(graph.sum(axis=1)).ravel()
    slot = SLOTS
    f = np.float32
    def attract(rate):
        nonlocal slot, table, shares
        if slot == SLOTS:
            slot = 0
            u = np.repeat(rng.random(n), degree)
            upto = np.floor(ends * SLOTS + u).astype(np.int64)
            counts = np.diff(upto, prepend=0)
            counts[graph.indptr[:-1]] = upto[graph.indptr[:-1]]
            table = np.repeat(graph.indices, counts).reshape(n, SLOTS)
            table = (rng.permuted(table, axis=1).T if mix else table.T[rng.permutation(SLOTS)]).copy()
            shares = np.minimum(1, mass / mass[table]).astype(f) if react == 2 else np.ones((SLOTS, n), f)
        tails = table[slot]
        difference = Y.take(tails, axis=1)
        slot += 1
        difference -= Y
        d2 = np.einsum("dn,dn->n", difference, difference)
        d2 += f(1e-12)
        p = np.log(d2); p *= f(B); np.exp(p, out=p)
        # 2ab p / d2 / (1 + a p)
        c = p * f(2 * A * B * rate)
        p *= f(A); p += f(1); p *= d2
        c /= p
        difference *= c
        if react:
            share = shares[slot - 1]
            back = 2 - share if react == 2 else np.ones(n, f)
            for row in difference:
                r = np.bincount(tails, row * share, minlength=n)
                row *= back
                row -= r
        return difference
    table = shares = None
    def repel(rate, m):
        others = rng.integers(n, size=(m, n), dtype=np.int32)
        difference = Y.take(others, axis=1)
        np.subtract(Y[:, None], difference, out=difference)
        d2 = np.einsum("dmn,dmn->mn", difference, difference)
        p = d2 + f(1e-12); np.log(p, out=p); p *= f(B); np.exp(p, out=p); p *= f(A); p += f(1)
        d2 += f(1e-3); p *= d2
        np.divide(f(2 * B), p, out=p)
        difference *= p
        np.clip(difference, -4, 4, out=difference)
        move = difference.sum(axis=1) if m > 1 else difference[:, 0]
        if cap: np.clip(move, -cap, cap, out=move)
        move *= f(rate)
        return move
    for step in range(n_steps):
        rate = alpha * (1 - step / n_steps)
        for c in plan:
            if c == "a":
                Y += attract(rate)
            else:
                Y += repel(rate, int(c))
    return Y.T.astype(np.float64)


def manifold_embedding(X, n_dimensions, seed, n_neighbors=15, n_epochs=None, per_epoch=5, **kw):
    distances, neighbors = nearest_neighbors(X, min(n_neighbors, len(X) - 1))
    graph = fuzzy_graph(distances, neighbors)
    rng = np.random.default_rng(seed)
    Y = start(graph, X, n_dimensions, rng)
    return layout(Y, graph, seed, n_epochs or (500 if len(X) <= 10000 else 200), per_epoch, **kw)
