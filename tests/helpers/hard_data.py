"""Rows on which rounding and ties are hard: copies, near-copies, huge offsets, few integers."""

import numpy as np


def copies(rng, n, d):
    places = rng.normal(size=(rng.integers(1, max(2, n // 3) + 1), d))
    return places[rng.integers(len(places), size=n)]


def spread(rng):
    return 10.0 ** rng.uniform(-16, -8)


def near_copies(rng, n, d):
    return copies(rng, n, d) + spread(rng) * rng.normal(size=(n, d))


def one_place(rng, n, d):
    return rng.normal(size=d) * (1 + spread(rng) * rng.normal(size=(n, d)))


def neighbors_of_1(rng, n, d):
    """The two doubles next to 1, and none else."""
    return np.nextafter(np.ones((n, d)), rng.choice([0.0, 2.0], size=(n, d)))


def offset(rng, n, d):
    return copies(rng, n, d) + 1e-3 * rng.normal(size=(n, d)) + 1e9


def huge_offset(rng, n, d):
    return np.round(10 * rng.normal(size=(n, d))) + 1e15


def integers(rng, n, d):
    return rng.integers(0, rng.integers(2, 100), size=(n, d)).astype(float)


def binary(rng, n, d):
    return rng.integers(0, 2, size=(n, d)).astype(float)


def grid(rng, n, d):
    side = int(np.ceil(np.sqrt(n)))
    return 0.1 * np.stack(np.divmod(np.arange(n), side), axis=1)


def constant_columns(rng, n, d):
    return np.column_stack([rng.normal(size=(n, d)), np.full((n, 2), 7.3)])


def constant(rng, n, d):
    return np.full((n, d), rng.normal())


def outlier(rng, n, d):
    return np.vstack([1e-4 * rng.normal(size=(n - 1, d)), np.full((1, d), 1e6)])


def decades(rng, n, d):
    return 10.0 ** rng.uniform(-12, 12, size=(n, d))


def plain(rng, n, d):
    return rng.normal(size=(n, d))


WITH_TIES = (copies, neighbors_of_1, one_place, huge_offset, integers, binary, grid, constant)
WITHOUT_TIES = (plain, near_copies, offset, constant_columns, outlier, decades)


def cases(kinds, n_cases, most_rows=300, seed=0):
    """(kind, rows) of random sizes from 2 rows on, one kind after the other."""
    rng = np.random.default_rng(seed)
    for number in range(n_cases):
        kind = kinds[number % len(kinds)]
        n, d = int(rng.integers(2, most_rows + 1)), int(rng.integers(1, 12))
        yield kind.__name__, kind(rng, n, d)
