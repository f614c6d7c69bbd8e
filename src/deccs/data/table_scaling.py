"""Coded rows of tables with categories, dates and gaps, on one scale and without gaps.

Members that compare rows need to know nothing of kinds: two different levels are one standard deviation
of a number apart, in the spirit of Gower's similarity. Giving levels the variance of numbers was tried
first. Rows then lie in clumps, one for each combination of levels, and what looks for gaps finds these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from deccs.data.coding import Cell, Coding
from deccs.data.filling import Filling, fit_filling
from deccs.data.scaling import (
    EPSILON,
    FARTHEST,
    FINITE_COLUMNS,
    LARGE,
    POSITIVE_COLUMNS,
    SMALL,
    TINIEST,
    Scaler,
    automatic_scale,
    facts_of,
    unusual_exponents,
)
from deccs.data.source import FilledRows, RowSource
from deccs.storage import reals, stored, wholes

MOST_SAMPLED = 20_000  # rows that shares, spreads and tails are learned from
MOST_FILLED_FROM = 5_000  # rows that the filling is learned from
MOST_FILLED_VALUES = 400_000  # ... or fewer, where rows are wide
LARGEST_STEP = 0.5  # between neighbors of an ordered category, in deviations of a number
TAILS = 0.5  # share of a column's variance that the outermost hundredth of its values may hold
LEAST_FOR_TAILS = 100  # values: the outermost hundredth is a value or more


@stored
@dataclass(frozen=True, eq=False)
class TableScaler(Scaler):
    """Cells of coded rows as numbers of one scale: ``scaler(cells)`` for members, ``inputs`` for networks.

    Of a number: ``(bent(x) - mean) / deviation``. Of a level: a column per level, with the cell's
    weight where the row has it. Gaps are filled by what the rest of the row says.
    """

    # Numbers with long tails are bent: asinh((x - center) / unit); a unit of 0 leaves them straight.
    center: Annotated[np.ndarray, FINITE_COLUMNS]
    unit: Annotated[np.ndarray, reals("n_features", least=0, most=LARGE)]
    n_levels: Annotated[np.ndarray, wholes("n_features", least=0)]  # 0 for a number
    weight: Annotated[np.ndarray, POSITIVE_COLUMNS]  # of a cell, or of each of its levels
    column: Annotated[np.ndarray, wholes("n_features", least=0)]  # that a cell belongs to
    shares: Annotated[np.ndarray, reals("n_scaled", least=0, most=1)]  # of levels; 0 for numbers
    masked: Annotated[np.ndarray, wholes("n_masked", least=0)]  # cells whose gaps networks are told
    filling: Filling

    def check_stored(self) -> None:
        """Raise a ValueError for parts that do not fit each other."""
        n_cells = len(self.n_levels)
        if self.kind != "table" or np.ndim(self.mean) != 1 or len(self.mean) != n_cells:
            raise ValueError("TableScaler must have a mean for each cell")
        if len(self.shares) != self.n_scaled or len(self.filling.mean) != self.n_scaled:
            raise ValueError("TableScaler must have a share and a filling for each scaled column")
        if len(self.masked) and self.masked.max() >= n_cells:
            raise ValueError("TableScaler has masks of cells that are not there")
        if self.weight.max(initial=0) > LARGE or self.n_scaled > 2**20:
            raise ValueError("TableScaler has weights that are too large, or too many levels")

    @cached_property
    def starts(self) -> np.ndarray:
        """(n_cells,) the first scaled column of each cell."""
        return np.concatenate([[0], np.cumsum(np.maximum(self.n_levels, 1))[:-1]]).astype(np.int64)

    @property
    def n_scaled(self) -> int:
        return int(np.maximum(self.n_levels, 1).sum())

    @property
    def n_inputs(self) -> int:
        return self.n_scaled + len(self.masked)

    @cached_property
    def numbers(self) -> np.ndarray:
        """The cells that are numbers."""
        return np.flatnonzero(self.n_levels == 0)

    @cached_property
    def levels(self) -> np.ndarray:
        """The cells that are levels."""
        return np.flatnonzero(self.n_levels)

    def __call__(self, block: np.ndarray) -> np.ndarray:
        """(n, n_cells) -> (n, n_scaled), without gaps."""
        return self.filling(self.with_gaps(block))

    def inputs(self, block: np.ndarray) -> np.ndarray:
        """What networks see: the scaled rows, then 1 where a column that had gaps in the fit has one."""
        return np.concatenate([self(block), np.isnan(block[:, self.masked])], axis=1)

    def with_gaps(self, block: np.ndarray) -> np.ndarray:
        """Scaled rows, NaN where a cell is missing: (n, n_scaled)."""
        out = np.zeros((len(block), self.n_scaled))
        with np.errstate(over="ignore"):
            values = bent(
                block[:, self.numbers], self.center[self.numbers], self.unit[self.numbers]
            )
            mean, deviation = self.mean[self.numbers], self.deviation[self.numbers]
            scaled = (values - mean) / deviation
            # The difference of two doubles may be larger than any double. That of quotients is not.
            scaled = np.where(np.isinf(scaled), values / deviation - mean / deviation, scaled)
        out[:, self.starts[self.numbers]] = (scaled * self.weight[self.numbers]).clip(
            -FARTHEST, FARTHEST
        )
        rows = np.arange(len(block))
        for cell in self.levels:
            codes, first, n_levels = block[:, cell], self.starts[cell], self.n_levels[cell]
            known = ~np.isnan(codes)
            places = codes[known].astype(np.int64).clip(0, n_levels - 1)
            out[rows[known], first + places] = self.weight[cell]
            out[~known, first : first + n_levels] = np.nan
        return out


def check_coding(scaler: Scaler, coding: Coding | None, n_cells: int) -> None:
    """Raise a ValueError for a scaler that was not learned from rows of this coding."""
    if not isinstance(scaler, TableScaler):
        if coding is not None and not coding.is_plain:
            raise ValueError("scaler_ must be that of a table, as coding_ is")
        return
    if len(scaler.n_levels) != n_cells:
        raise ValueError(f"scaler_ must be for {n_cells} cells, got {len(scaler.n_levels)}")
    if coding is not None and [cell.n_levels for cell in coding.cells] != scaler.n_levels.tolist():
        raise ValueError("scaler_ and coding_ have other levels")


def bent(values: np.ndarray, center: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Values with long tails drawn in: straight near the center, a logarithm far from it.

    >>> bent(np.array([[7.0, 20.0], [9.0, np.e**3]]), np.array([0.0, 0.0]), np.array([0.0, 0.5])).round(1)
    array([[7. , 4.4],
           [9. , 4.4]])
    """
    straight = unit == 0
    curved = np.arcsinh((values - center) / np.where(straight, 1.0, unit))
    return np.where(straight, values, curved)


def fit_table_scaler(
    source: RowSource, coding: Coding | None, scale: str | None = "auto"
) -> TableScaler:
    """How to bring coded rows to one scale; from at most 20,000 of them.

    Numbers have variance 1, unless ``scale`` says otherwise: "global" takes one mean and deviation for all, None
    leaves them as they are. With "robust", the default where a table has several kinds of columns, numbers whose
    outermost hundredth of values holds more than half of their variance are bent first, so that a few giants do
    not push all others together.
    """
    n_rows, n_cells = source.shape
    cells = tuple(Cell(place) for place in range(n_cells)) if coding is None else coding.cells
    sample = source.read(evenly(n_rows, MOST_SAMPLED))
    if scale == "auto":
        scale = scale_of_numbers(source) if coding is None or coding.is_plain else "robust"
    if scale == "rows":
        raise ValueError(
            "scale='rows' needs rows of numbers without gaps. Use scale='auto', or fill the gaps first."
        )
    n_levels = np.array([cell.n_levels for cell in cells])
    is_number = n_levels == 0
    center, unit = tails_of(sample, is_number & (scale == "robust"))
    values = bent(sample, center, unit)
    mean, deviation = spread_of(values, is_number, scale)
    if coding is not None:
        deviation = np.where(are_steps(coding), np.maximum(deviation, 1 / LARGEST_STEP), deviation)
    shares = [shares_of(sample[:, place], count) for place, count in enumerate(n_levels)]
    has_gaps = np.isnan(sample).any(axis=0)
    first_of_column = np.diff([-1, *(cell.column for cell in cells)]) != 0
    draft = TableScaler(
        kind="table",
        mean=mean,
        deviation=deviation,
        center=center,
        unit=unit,
        n_levels=n_levels,
        weight=np.array([weight_of(cell) for cell in cells]),
        column=np.array([cell.column for cell in cells]),
        shares=np.concatenate(shares),
        masked=np.flatnonzero(has_gaps & first_of_column),
        filling=Filling(np.zeros(1), np.zeros((1, 1)), np.ones(1)),
    )
    n_scaled = draft.n_scaled
    most = max(200, min(MOST_FILLED_FROM, MOST_FILLED_VALUES // n_scaled))
    scaled = draft.with_gaps(sample[evenly(len(sample), most)])
    return replace(draft, filling=fit_filling(scaled))


def evenly(n: int, most: int) -> np.ndarray:
    """At most so many of n row numbers, evenly spaced.

    >>> evenly(3, 5), evenly(9, 3)
    (array([0, 1, 2]), array([0, 4, 8]))
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def tails_of(sample: np.ndarray, may_bend: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Center and unit of cells with long tails, twice (n_cells,); a unit of 0 for all others."""
    center, unit = np.zeros(sample.shape[1]), np.zeros(sample.shape[1])
    for place in np.flatnonzero(may_bend):
        values = sample[~np.isnan(sample[:, place]), place]
        if len(values) < LEAST_FOR_TAILS or share_of_tails(values) <= TAILS:
            continue
        if np.abs(values).max() > LARGE:  # no unit for these is fit for every value
            continue
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        spread = (high - low) / 1.349  # the deviation, if the middle is normal
        if spread > SMALL:
            center[place], unit[place] = middle, spread
    return center, unit


def share_of_tails(values: np.ndarray) -> float:
    """The share of the variance that the outermost hundredth of the values holds.

    A normal distribution has 0.08, an exponential one 0.2, incomes and counts of visits 0.5 and more.

    >>> round(share_of_tails(np.array([*np.zeros(99), 100.0])), 2)
    0.99
    """
    values = values / (np.abs(values).max() or 1.0)  # the squares of 1e300 are too large
    squares = np.square(values - values.mean())
    outermost = np.sort(squares)[-max(1, len(values) // 100) :]
    total = squares.sum()
    return float(outermost.sum() / total) if total > 0 else 0.0


def are_steps(coding: Coding) -> np.ndarray:
    """(n_cells,) whether a cell is the place on a scale of words.

    Such places are at most half a deviation apart. With variance 1 the three steps of "low, medium, high" would be
    as far apart as nothing else in a table is, and be its clusters.
    """
    return np.array([coding.columns[cell.column].kind == "ordered" for cell in coding.cells])


def spread_of(
    values: np.ndarray, is_number: np.ndarray, scale: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of the numbers, twice (n_cells,); 0 and 1 for levels."""
    mean, deviation = np.zeros(values.shape[1]), np.ones(values.shape[1])
    known = is_number & ~np.isnan(values).all(axis=0)
    if scale is None or not known.any():
        return mean, deviation
    numbers, axis = values[:, known], None if scale == "global" else 0
    units = units_of(np.nanmax(np.abs(numbers), axis=axis))
    numbers = numbers / units
    spread = np.nanstd(numbers, axis=axis)
    rounding = 64 * EPSILON * np.nanmax(np.abs(numbers), axis=axis)
    spread = np.where(spread > rounding, spread, np.maximum(1.0, 1e6 * rounding))
    mean[known] = np.nanmean(numbers, axis=axis) * units
    deviation[known] = np.maximum(spread * units, TINIEST)
    return mean, deviation


def units_of(sizes: np.ndarray) -> np.ndarray:
    """Powers of two to measure numbers of these sizes in, so that squares can be computed; mostly 1.

    >>> units_of(np.array([0.0, 3.0, 2.0**400]))
    array([1.00000000e+000, 1.00000000e+000, 2.58224988e+120])
    """
    usual = (sizes == 0) | ((sizes > SMALL) & (sizes < LARGE))
    return np.where(usual, 1.0, np.ldexp(0.5, np.frexp(sizes)[1]))


def shares_of(codes: np.ndarray, n_levels: int) -> np.ndarray:
    """The share of each level among the known codes: (n_levels,), or one 0 for a number."""
    if n_levels == 0:
        return np.zeros(1)
    known = codes[~np.isnan(codes)].astype(np.int64)
    return np.bincount(known, minlength=n_levels)[:n_levels] / max(len(known), 1)


def weight_of(cell: Cell) -> float:
    """What a number is multiplied by, or the value of the level that a row has.

    Rows of different levels differ in two places, so their distance is the weight times the root of 2.

    >>> weight_of(Cell(0)), round(weight_of(Cell(0, n_levels=3)) * 2**0.5, 9)
    (1.0, 1.0)
    """
    return cell.weight * (1.0 if cell.n_levels == 0 else 0.5**0.5)


def scale_of_numbers(source: RowSource) -> str | None:
    """What the rule for complete numbers says where gaps hold the mean of their column."""
    sample = source.read(evenly(source.shape[0], MOST_SAMPLED))
    filled = FilledRows(source, spread_of(sample, np.ones(sample.shape[1], bool), "columns")[0])
    facts = facts_of(filled)
    if unusual_exponents(facts, "auto") is not None:
        return "columns"
    chosen = automatic_scale(facts, filled)
    return {"none": None, "global": "global"}.get(chosen, "columns")
