"""What a missing cell most likely holds, given the other cells of its row.

Members compare whole rows, so gaps are filled for them: with the expected value under a factor model
of the columns (x = mean + loadings z + noise), learned from rows with gaps by EM (Rubin and Thayer
1982). A row is filled by itself, so new rows are filled like those of the fit. The mean of a column
would pull rows with gaps to the center of the data, and make clusters of them.

Own code: scikit-learn's imputers need the whole table again for new rows (nearest neighbors), or a
regression per column (minutes for 800 columns); its FactorAnalysis takes no gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from deccs.data.source import blocks, rows_at_once
from deccs.storage import reals, stored

MOST_FACTORS = 20
MOST_ROUNDS = 60
LEAST_NOISE = 0.05  # of a column's variance: no column is known from the others for certain
DIGITS = 9  # of what is filled in
SMALLEST_CHANGE = 1e-3  # of the noise, between two rounds of EM


@stored
@dataclass(frozen=True, eq=False)
class Filling:
    """A factor model of the columns, which fills in what is missing in a row."""

    mean: Annotated[np.ndarray, reals("n_columns")]
    loadings: Annotated[np.ndarray, reals("n_columns", "n_factors")]
    noise: Annotated[np.ndarray, reals("n_columns", least=1e-12)]  # variance

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Rows with their gaps filled: (n, n_columns). Rows without gaps are not changed.

        >>> twins = Filling(np.zeros(2), np.ones((2, 1)), np.full(2, 0.25))
        >>> twins(np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, 4.0]]))
        array([[1. , 0.8],
               [0. , 0. ],
               [3. , 4. ]])
        """
        gaps = np.isnan(rows)
        with_gaps = np.flatnonzero(gaps.any(axis=1))
        if not len(with_gaps):
            return rows
        filled = rows.copy()
        for place in blocks(len(with_gaps), rows_at_once(self.loadings.shape[1] ** 2)):
            some = with_gaps[place]
            z, _ = factors_of(rows[some], self)
            expected = self.mean + z @ self.loadings.T
            # Sums in another order, such as of a row alone, must not decide which of two rows is nearer.
            filled[some] = np.where(gaps[some], expected.round(DIGITS), rows[some])
        return filled


def factors_of(rows: np.ndarray, model: Filling) -> tuple[np.ndarray, np.ndarray]:
    """What is known of the factors of each row: means (n, q) and covariances (n, q, q)."""
    d, q = model.loadings.shape
    known = ~np.isnan(rows)
    centered = np.where(known, rows - model.mean, 0.0)
    squares = (model.loadings[:, :, None] * model.loadings[:, None, :]).reshape(d, q * q)
    precision = np.eye(q) + ((known / model.noise) @ squares).reshape(-1, q, q)  # (n, q, q)
    covariance = np.linalg.inv(precision)
    pull = (centered / model.noise) @ model.loadings  # (n, q)
    return (covariance @ pull[:, :, None])[:, :, 0], covariance


def fit_filling(rows: np.ndarray, n_factors: int | None = None) -> Filling:
    """The factor model of rows with gaps (n, n_columns), whose columns have about unit variance.

    A column without any value is expected to be 0.
    """
    n, d = rows.shape
    q = n_factors or default_factors(n, d)
    known = ~np.isnan(rows)
    counts = known.sum(axis=0)  # (d,)
    values = np.where(known, rows, 0.0)
    mean = values.sum(axis=0) / np.maximum(counts, 1)
    centered = np.where(known, rows - mean, 0.0)
    variance = np.square(centered).sum(axis=0) / np.maximum(counts, 1)
    floor = np.maximum(LEAST_NOISE * variance, 1e-6)
    model = Filling(mean, first_loadings(centered, q), np.maximum(0.5 * variance, floor))
    for _ in range(MOST_ROUNDS):
        noise = model.noise
        model = next_model(rows, known, counts, model, floor)
        if np.abs(model.noise - noise).max() < SMALLEST_CHANGE * noise.max():
            break
    return model


def default_factors(n_rows: int, n_columns: int) -> int:
    """One less than there are columns, at most 20, and few where rows are few.

    >>> default_factors(150, 4), default_factors(2_000, 784), default_factors(30, 50)
    (3, 20, 6)
    """
    return max(1, min(n_columns - 1, MOST_FACTORS, 1 + n_rows // 6))


def first_loadings(centered: np.ndarray, n_factors: int) -> np.ndarray:
    """Principal axes of rows whose gaps are 0, times their deviations: (n_columns, q)."""
    q = min(n_factors, *centered.shape)
    if not centered.any():
        return np.zeros((centered.shape[1], q))
    from sklearn.decomposition import PCA  # a fit needs it, and filling rows does not

    pca = PCA(q, random_state=0).fit(centered)  # the same signs on every machine
    deviations = np.sqrt(np.maximum(pca.explained_variance_, 1e-6))
    return np.ascontiguousarray(pca.components_.T * deviations)


def next_model(
    rows: np.ndarray, known: np.ndarray, counts: np.ndarray, model: Filling, floor: np.ndarray
) -> Filling:
    """One round of EM: what is known of the factors, then the loadings that fit best."""
    d, q = model.loadings.shape
    second = np.zeros((d, (q + 1) ** 2))  # of (z, 1), summed over the rows where a column is known
    first = np.zeros((d, q + 1))
    square = np.zeros(d)
    for place in blocks(len(rows), rows_at_once((q + 1) ** 2)):
        z, covariance = factors_of(rows[place], model)
        z1 = np.column_stack([z, np.ones(len(z))])  # (n, q + 1): the mean is learned as a loading
        moments = z1[:, :, None] * z1[:, None, :]
        moments[:, :q, :q] += covariance
        values = np.where(known[place], rows[place], 0.0)
        second += known[place].T.astype(float) @ moments.reshape(len(z), -1)
        first += values.T @ z1
        square += np.square(values).sum(axis=0)
    second = second.reshape(d, q + 1, q + 1)
    # A little weight for loadings of 0: columns with few values must not follow their noise.
    prior = np.diag([*np.ones(q), 1e-9])
    loadings = np.linalg.solve(second + prior, first[:, :, None])[:, :, 0]  # (d, q + 1)
    # What is left of the squares, the weight above included: else a round can be worse than the last.
    noise = (square - (loadings * first).sum(axis=1)) / np.maximum(counts, 1)
    return Filling(loadings[:, q].copy(), loadings[:, :q].copy(), np.maximum(noise, floor))
