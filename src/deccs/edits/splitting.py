"""How a cluster is split: into how many parts, or by rows that somebody has chosen."""

from __future__ import annotations

import numpy as np

from deccs.labels import canonical
from deccs.seeds import generator_for, seed_for

MOST_LEARNED = 5_000  # rows of the cluster: plain clusterers and the classifier take seconds
WEAKEST = 1e-9  # a deviation that counts as none


def partition_of(Z: np.ndarray, into: int, seed: int) -> np.ndarray:
    """The parts of one cluster's rows: (n, n_latent) -> (n,).

    Plain members of several kinds suggest parts. The suggestion that cuts the fewest ties between
    neighbors is taken.
    """
    from deccs.counting.panel import by_genie, by_kmeans, by_mixture, by_ward
    from deccs.members.choice import worst_cut
    from deccs.members.neighbors import neighbor_graph
    from deccs.members.spanning_tree import spanning_tree

    suggested = [
        by_kmeans(Z, [into], seed)[0],
        by_ward(Z, [into])[0],
        by_mixture(Z, [into], seed)[0],
        by_genie(spanning_tree(Z), [into])[0],
    ]
    graph = neighbor_graph(Z)
    usable = [
        labels
        for labels in suggested
        if labels is not None and np.array_equal(np.unique(labels), np.arange(into))
    ]
    if not usable:
        raise ValueError(
            f"The cluster has no {into} parts: too many of its rows are alike. Split it into fewer."
        )
    return min(usable, key=lambda labels: worst_cut(graph, labels))


def head_of(Z: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A linear classifier of parts, numbered without gaps: (n_parts, n_latent) weights, (n_parts,) biases."""
    from sklearn.linear_model import LogisticRegression

    mean, deviation = Z.mean(axis=0), np.maximum(Z.std(axis=0), WEAKEST)
    model = LogisticRegression(C=10.0, max_iter=1_000).fit((Z - mean) / deviation, parts)
    weight, bias = model.coef_, model.intercept_
    if len(weight) == 1:  # of two parts it knows the second alone
        weight, bias = np.vstack([-weight, weight]) / 2, np.append(-bias, bias) / 2
    weight = weight / deviation
    return weight, bias - weight @ mean


def split_of(
    Z: np.ndarray, into: int, chosen: np.ndarray | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The classifier that splits a cluster, its largest part first.

    Z is (n, n_latent), the rows of the cluster. ``chosen`` (n,) are the rows that shall be a part of
    their own; None leaves it to plain members.
    """
    if len(Z) < 2 * into:
        raise ValueError(
            f"The cluster has {len(Z)} rows, which are too few to be split into {into}."
        )
    from deccs.data.sampling import draw_rows

    rows = draw_rows(len(Z), MOST_LEARNED, generator_for(seed, "split")).numpy()
    if chosen is None:
        parts = partition_of(Z[rows], into, seed_for(seed, "split"))
    else:
        rows = np.union1d(rows, np.flatnonzero(chosen)[:MOST_LEARNED])
        parts = chosen[rows].astype(np.int64)
    weight, bias = head_of(Z[rows], canonical(parts))
    sizes = np.bincount((Z @ weight.T + bias).argmax(axis=1), minlength=len(bias))
    if not sizes.all():
        raise ValueError(
            "The cluster cannot be split like this: its parts cannot be told apart by the "
            "representation. Choose other rows, or pin them to a cluster."
        )
    order = np.argsort(-sizes, kind="stable")
    return weight[order], bias[order]


def rows_of(rows: object, n_rows: int) -> np.ndarray:
    """Row numbers that a user gives, (n_chosen,), or a mask of all rows, as numbers.

    >>> rows_of([2, 0], 3), rows_of(np.array([False, True, True]), 3)
    (array([2, 0]), array([1, 2]))
    """
    given = np.atleast_1d(np.asarray(rows))
    if given.dtype == bool and given.shape == (n_rows,):
        return np.flatnonzero(given)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given):
        raise ValueError(
            f"rows must be numbers of rows of the fit, or a mask of all {n_rows:,}, got {rows!r:.100}."
        )
    if given.min() < 0 or given.max() >= n_rows:
        wrong = given[(given < 0) | (given >= n_rows)][0]
        raise ValueError(f"There is no row {wrong}; the fit has the rows 0 to {n_rows - 1}.")
    return np.unique(given) if len(np.unique(given)) < len(given) else given
