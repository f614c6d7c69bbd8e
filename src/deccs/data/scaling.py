"""Bringing the columns to one scale.

Numbers of any size that doubles can hold are scaled: columns whose squares would overflow or vanish
are measured in units of a power of two, which changes no digit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from deccs.data.source import RowSource, each_block
from deccs.storage import reals, stored

SCALES = ("auto", "global", "columns", "robust", "rows", None)
EPSILON = float(np.finfo(np.float64).eps)
TINIEST = float(np.finfo(np.float64).smallest_subnormal)
FEW_COLUMNS = 8  # so few columns may have falling lengths by chance
MANY_COLUMNS = 100  # so many columns of mostly zeros are words or genes, not answers to questions
SMALL, LARGE = 1e-100, 1e100  # between them squares and their sums neither vanish nor overflow
FARTHEST = 1e9  # deviations from the mean: no row of a fit is so far away, and networks can still compute with it
CHECKED_COLUMNS = 64  # whether so many columns are orthogonal tells enough of the others

LARGEST = float(np.finfo(np.float64).max)
# What means and deviations must be: one number, or one for each column.
FINITE = reals(least=-LARGEST, most=LARGEST)
FINITE_COLUMNS = reals("n_features", least=-LARGEST, most=LARGEST)
POSITIVE = reals(least=TINIEST, most=LARGEST)
POSITIVE_COLUMNS = reals("n_features", least=TINIEST, most=LARGEST)


@stored
@dataclass(frozen=True)
class Scaler:
    """``(x - mean) / deviation``, a number each (pixels) or one per column."""

    kind: str  # "none", "global", "columns" or "rows"
    mean: Annotated[np.ndarray, FINITE] | Annotated[np.ndarray, FINITE_COLUMNS]
    deviation: Annotated[np.ndarray, POSITIVE] | Annotated[np.ndarray, POSITIVE_COLUMNS]

    def check_stored(self) -> None:
        """Raise a ValueError for numbers that make NaN of a row."""
        with np.errstate(all="ignore"):
            if not np.isfinite(self.mean / self.deviation).all():
                raise ValueError("Scaler has a mean that is too many deviations away from 0")

    def __call__(self, block: np.ndarray) -> np.ndarray:
        if self.kind == "none":
            return block
        with np.errstate(over="ignore"):
            scaled: np.ndarray = (block - self.mean) / self.deviation
            if max(scaled.max(initial=0), -scaled.min(initial=0)) > FARTHEST:
                # The difference of two doubles may be larger than any double. That of quotients is not.
                apart = block / self.deviation - self.mean / self.deviation
                scaled = np.where(np.isinf(scaled), apart, scaled).clip(-FARTHEST, FARTHEST)
        return scaled

    def inputs(self, block: np.ndarray) -> np.ndarray:
        """What networks see of raw rows: (n, n_features)."""
        return self(block)

    def in_units(self, exponents: np.ndarray) -> Scaler:
        """The scaler for the data itself, if this one is for data in units of 2 ** exponents."""
        if self.kind == "rows":  # the length of a row does not matter
            return self
        powers = exponents if self.kind == "columns" else exponents.max()
        deviation = np.maximum(np.ldexp(self.deviation, powers), TINIEST)
        return replace(self, mean=np.ldexp(self.mean, powers), deviation=deviation)


@stored
@dataclass(frozen=True)
class RowScaler(Scaler):
    """``x / deviation``, then each row to one length, so that only its direction counts (cosine).

    A class of its own, because versions that do not know it must not read it as a :class:`Scaler`.
    The length is the root of the number of columns: the mean square of all values is then 1.

    >>> RowScaler("rows", np.zeros(()), np.array([1.0, 0.5]))(np.array([[4.0, 1.5], [0, 0]]))
    array([[1.13137085, 0.84852814],
           [0.        , 0.        ]])
    """

    def check_stored(self) -> None:
        """Raise a ValueError for weights of words that make NaN of a row."""
        if self.deviation.min() < SMALL or self.deviation.max() > LARGE:
            raise ValueError(f"RowScaler must have deviations from {SMALL} to {LARGE}")

    def __call__(self, block: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            weighted = block / self.deviation  # (n_rows, n_features)
            lengths = np.linalg.norm(weighted, axis=1, keepdims=True)  # (n_rows, 1)
        odd = ~((lengths > SMALL) & (lengths < LARGE))[:, 0]
        if odd.any():  # rows of 0, and rows whose squares vanish or overflow
            largest = np.abs(block[odd]).max(axis=1, keepdims=True)
            weighted[odd] = block[odd] / np.where(largest, largest, 1.0) / self.deviation
            lengths[odd] = np.linalg.norm(weighted[odd], axis=1, keepdims=True)
        scaled: np.ndarray = weighted * (np.sqrt(block.shape[1]) / np.where(lengths, lengths, 1.0))
        return scaled


def widths_of(scaler: Scaler | None, n_columns: int) -> tuple[int, int]:
    """How many numbers members and networks see of a row of so many columns."""
    n_scaled = getattr(scaler, "n_scaled", n_columns)
    return n_scaled, getattr(scaler, "n_inputs", n_scaled)


class InUnits:
    """A source whose columns are measured in units of 2 ** exponents: no digit changes."""

    def __init__(self, source: RowSource, exponents: np.ndarray) -> None:
        self.source, self.exponents = source, exponents  # (n_features,) whole numbers

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        return np.ldexp(self.source.read(rows), -self.exponents)


@dataclass(frozen=True)
class Facts:
    """What one pass over the rows tells about the columns."""

    n_rows: int
    mean: np.ndarray  # (n_features,)
    variance: np.ndarray  # (n_features,)
    low: np.ndarray  # (n_features,)
    high: np.ndarray  # (n_features,)
    filled: np.ndarray  # (n_features,) how many values are not 0
    filled_in_row: tuple[float, float]  # how many of a row are not 0: mean and deviation
    row_lengths: tuple[float, float]  # of the shortest and the longest row
    whole: bool  # whether all values are whole numbers

    @property
    def deviation(self) -> np.ndarray:
        return np.sqrt(self.variance)

    @property
    def varies(self) -> np.ndarray:
        """(n_features,) False where all values are one, up to rounding.

        The size of the mean does not matter: order numbers and clocks in microseconds may run
        over a billionth of it.
        """
        rounding = 64 * EPSILON * np.maximum(np.abs(self.low), np.abs(self.high))
        return (self.high - self.low > rounding) & (self.variance > 0)

    @property
    def divisor(self) -> np.ndarray:
        """(n_features,) the deviation; for columns of one value what makes their rounding errors vanish.

        The rounding error of 64-bit keys is in the hundreds, and would be larger than all other columns.
        """
        return np.where(self.varies, self.deviation, np.maximum(1.0, 1e6 * (self.high - self.low)))


def fit_number_scaler(source: RowSource, scale: str | None = "auto") -> Scaler:
    """How to bring columns of complete numbers to one scale, learned in one pass over the rows.

    ``"auto"`` leaves data alone that already has one scale. Otherwise it takes

    - one mean and deviation for the whole table (``"global"``) where the columns share one range
      (pixels), and for principal components, whose size is their importance;
    - rows of one length (``"rows"``) where the angle between rows counts: for words and other
      counts that are mostly 0, for the components of an SVD without centering (LSA), and for
      embeddings whose rows have one length already;
    - one mean and deviation per column (``"columns"``) for everything else: measurements.
    """
    if scale is None:
        return Scaler("none", np.zeros(()), np.ones(()))
    facts = facts_of(source)
    exponents = unusual_exponents(facts, scale)
    if exponents is None:
        return scaler_for(facts, source, scale)
    source = InUnits(source, exponents)
    facts = facts_of(source)
    if scale == "auto":
        chosen = automatic_scale(facts, source) if np.ptp(exponents) == 0 else "columns"
        scale = "columns" if chosen == "none" else chosen  # standardized data has no such units
    return scaler_for(facts, source, scale).in_units(exponents)


def scaler_for(facts: Facts, source: RowSource, scale: str) -> Scaler:
    if scale == "auto":
        scale = automatic_scale(facts, source)
    if scale == "none":
        return Scaler("none", np.zeros(()), np.ones(()))
    if scale == "rows":
        weighted = mostly_zero_counts(facts)
        return RowScaler("rows", np.zeros(()), 1 / rarity(facts) if weighted else np.ones(()))
    if scale == "global":
        overall_mean, overall_deviation = overall(facts)
        return Scaler("global", np.asarray(overall_mean), np.asarray(overall_deviation or 1.0))
    return Scaler("columns", facts.mean, facts.divisor)


def unusual_exponents(facts: Facts, scale: str) -> np.ndarray | None:
    """(n_features,) the powers of two to measure columns in; None if all squares can be computed as they are.

    One for all columns, unless their sizes differ by more than doubles can add up: 1e-200 and 1e200.
    """
    size = np.maximum(np.abs(facts.low), np.abs(facts.high))
    used = size > 0
    if ((size[used] > SMALL) & (size[used] < LARGE)).all():
        return None
    exponents = np.frexp(size)[1]
    greatest = exponents[used].max()
    comparable = greatest - exponents[used].min() < np.log2(LARGE)
    if comparable or scale in ("global", "rows"):
        return np.full_like(exponents, greatest)
    return np.where(used, exponents, 0)


def automatic_scale(facts: Facts, source: RowSource) -> str:
    """The scale that the data asks for: "none", "global", "rows" or "columns"."""
    varies = facts.varies
    mean, deviation = facts.mean[varies], facts.deviation[varies]
    overall_mean, overall_deviation = overall(facts)
    columns_done = np.all(np.abs(facts.mean) < 1e-2) and np.all(np.abs(deviation - 1) < 1e-2)
    globally_done = abs(overall_mean) < 1e-2 and abs(overall_deviation - 1) < 1e-2
    if columns_done or globally_done:
        return "none"
    counts = mostly_zero_counts(facts)
    words_or_not = counts and facts.whole and facts.high.max() == 1  # presence, which is no pixel
    if share_one_range(facts.low[varies], facts.high[varies]) and not words_or_not:
        return "global"
    if counts or rows_have_one_length(facts):
        return "rows"
    lengths = np.sqrt(mean**2 + facts.variance[varies])  # root mean squares
    if are_principal_axes(lengths, mean / deviation, source, np.flatnonzero(varies)):
        # The origin of uncentered components (LSA) is that of the data, and directions from it mean
        # something. Around the mean of the data they do not: a cluster there has all directions.
        return "rows" if abs(mean[0]) > deviation[0] else "global"
    return "columns"


@np.errstate(over="ignore", invalid="ignore")
def facts_of(source: RowSource) -> Facts:
    """What the rules of scaling ask for, in one pass; values must be finite.

    Where squares overflow only the lowest and the highest values can be used.
    """
    n_rows, n_features = source.shape
    total, square = np.zeros(n_features), np.zeros(n_features)
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    filled, in_row, in_row_square = np.zeros(n_features), 0.0, 0.0
    shortest, longest, whole = np.inf, 0.0, True
    # Sums around a data point lose no digits to a large mean: as one of the points is at 0 there,
    # the square of the mean is at most n_rows times the variance.
    shift = source.read(slice(0, 1))[0]
    for _, block in each_block(source):
        low, high = np.minimum(low, block.min(0)), np.maximum(high, block.max(0))
        whole = whole and bool((block == np.rint(block)).all())
        not_zero = block != 0
        count = not_zero.sum(axis=1)  # (n_block,)
        filled, in_row = filled + not_zero.sum(axis=0), in_row + float(count.sum())
        in_row_square += float(np.square(count, dtype=np.float64).sum())
        lengths = np.linalg.norm(block[count > 0], axis=1)
        shortest, longest = lengths.min(initial=shortest), lengths.max(initial=longest)
        block = block - shift
        total, square = total + block.sum(0), square + (block * block).sum(0)
    if not (np.isfinite(low) & np.isfinite(high)).all():
        column = int(np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))[0])
        raise ValueError(
            f"Column {column} has values that are missing or infinite. Fill or remove them first."
        )
    mean = total / n_rows  # (n_features,), of the shifted columns
    variance = np.maximum(square / n_rows - mean**2, 0)  # (n_features,)
    per_row = in_row / n_rows
    spread = float(np.sqrt(max(in_row_square / n_rows - per_row**2, 0)))
    return Facts(
        n_rows,
        mean + shift,
        variance,
        low,
        high,
        filled,
        (per_row, spread),
        (float(shortest), float(longest)),
        whole,
    )


def overall(facts: Facts) -> tuple[float, float]:
    """Mean and deviation of all values of the table."""
    return facts.mean.mean(), np.sqrt(facts.variance.mean() + facts.mean.var())


def share_one_range(low: np.ndarray, high: np.ndarray, tolerance: float = 0.05) -> bool:
    """Whether most columns run from the same least to the same greatest value.

    >>> share_one_range(np.array([0, 0, 0]), np.array([255, 255, 250]))
    True
    >>> share_one_range(np.array([0, 0]), np.array([1, 1000]))
    False
    """
    if len(low) < 3:  # two columns with the same range are a coincidence, not an image
        return False
    bottom, top = np.median(low), np.median(high)
    slack = tolerance * (top - bottom)
    same = (np.abs(low - bottom) <= slack) & (np.abs(high - top) <= slack)
    return bool(same.mean() > 0.5 and low.min() >= bottom - slack and high.max() <= top + slack)


def mostly_zero_counts(facts: Facts) -> bool:
    """Whether the columns are words, genes or the like: many, never negative and mostly 0.

    Whole numbers need half of all values to be 0; logarithms and weights of counts need 90 %, as
    do columns of only 0 and 1. Rows must differ in how many values they have: a table of
    measurements beside one-hot columns has as many in each row, and its measurements must not be
    taken for frequent words.
    """
    columns = facts.varies
    if columns.sum() < MANY_COLUMNS or facts.low.min() < 0:
        return False
    zeros = 1 - facts.filled[columns].mean() / facts.n_rows
    per_row, spread = facts.filled_in_row
    enough = 0.5 if facts.whole and facts.high.max() > 1 else 0.9
    return bool(zeros >= enough and spread > 0.1 * per_row and not rows_have_one_length(facts))


def rarity(facts: Facts) -> np.ndarray:
    """log((n + 1) / rows with this word), the weight of a word: (n_features,), 1 for unseen ones.

    Without it the words that every row has would decide. A count of rows, not the deviation: rare
    words would weigh too much.
    """
    seen = facts.filled > 0
    return np.where(seen, np.log((facts.n_rows + 1) / np.where(seen, facts.filled, 1)), 1.0)


def rows_have_one_length(facts: Facts) -> bool:
    """Whether all rows are as long, and not only because of a large constant: normalized vectors."""
    shortest, longest = facts.row_lengths
    # The mean square of a row's length is the variance of the columns and their squared means.
    variance = facts.variance.sum()
    real = variance > 0.05 * (variance + np.square(facts.mean).sum())
    return bool(facts.varies.sum() >= 3 and longest <= (1 + 1e-3) * shortest and real)


def are_principal_axes(
    lengths: np.ndarray, means: np.ndarray, source: RowSource, columns: np.ndarray
) -> bool:
    """Whether columns are orthogonal and ever shorter: the components of a PCA or an SVD.

    Measured columns are never both. ``lengths`` are root mean squares, ``means`` are in units of the
    deviation. Few columns must be so exactly; many may be rows that the components were not fitted
    to, where noise of 1 / sqrt(n_rows) is added.
    """
    if len(lengths) < 2:
        return False
    if len(lengths) < FEW_COLUMNS:
        falling, centered = np.all(lengths[1:] <= 1.01 * lengths[:-1]), np.all(np.abs(means) < 1e-4)
        return bool(falling and centered and mean_cosine(source, columns, lengths) < 1e-4)
    if order_of(lengths) > -0.9:
        return False
    return mean_cosine(source, columns, lengths) < 0.1 + 1 / np.sqrt(source.shape[0])


def order_of(values: np.ndarray) -> float:
    """Rank correlation with the place: 1 for rising, -1 for falling values.

    >>> order_of(np.array([9.0, 4, 1])), order_of(np.array([1, 3.0, 2]))
    (-1.0, 0.5)
    """
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return round(float(np.corrcoef(rank, np.arange(len(values)))[0, 1]), 9)


def mean_cosine(source: RowSource, columns: np.ndarray, lengths: np.ndarray) -> float:
    """Root mean square of the cosines between the first of these columns; 0 if orthogonal."""
    columns, lengths = columns[:CHECKED_COLUMNS], lengths[:CHECKED_COLUMNS]
    products = np.zeros((len(columns), len(columns)))
    for _, block in each_block(source):
        chosen = block[:, columns] / lengths
        products += chosen.T @ chosen
    cosines = products[np.triu_indices(len(columns), 1)] / source.shape[0]
    return float(np.sqrt(np.square(cosines).mean()))
