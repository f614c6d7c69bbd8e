"""From raw rows to what members and networks see, as a graph: see :mod:`deccs.data.scaling` and its neighbors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deccs.data.coding import WEEKDAYS, Coding, Column
from deccs.data.filling import DIGITS, Filling
from deccs.data.kinds import YES_NO
from deccs.data.scaling import FARTHEST, LARGE, SMALL, RowScaler, Scaler
from deccs.data.table_scaling import TableScaler
from deccs.export.graph import ML, TEXT, WHOLE, ExportError, Graph, Tensor

MAY_OVERFLOW = 1e290  # a mean beyond it may be farther from a value than any double
YEAR = 365.2425  # days
GAP = -1  # the code of a missing level
OUTPUT_NAMES = ("labels", "probabilities", "confidence", "novelty", "embedding", "members")


@dataclass(frozen=True, eq=False)
class GraphRows:
    """Rows in a graph."""

    scaled: Tensor  # (n, n_scaled) as members see them
    inputs: Tensor  # (n, n_inputs) as networks see them
    odd: Tensor  # (n,) rows with an infinite value, for which predict raises an error


@dataclass(frozen=True, eq=False)
class Cells:
    """Coded rows without gaps, and where the gaps were."""

    numbers: Tensor | None  # (n, n_numbers), 0 in a gap
    known: Tensor | None  # (n, n_numbers)
    codes: list[Tensor]  # (n,) whole numbers for each cell of levels, -1 in a gap


@dataclass(frozen=True)
class ColumnInput:
    """One input of the file, or a place in it."""

    column: str
    input: str
    kind: str
    levels: tuple[str, ...] = ()


def has_one_input(model: Any) -> bool:
    """Whether all columns are numbers, so that rows are one array."""
    coding: Coding | None = getattr(model, "coding_", None)
    return coding is None or coding.is_plain


def column_inputs(coding: Coding) -> list[ColumnInput]:
    """What the columns of a table are called in the file: by their names, but not like an output."""
    inputs: list[ColumnInput] = []
    taken = set(OUTPUT_NAMES)
    for column in coding.columns:
        if column.kind == "text":
            raise ExportError(
                f"The column {column.name!r} is free text, and ONNX has nothing that hashes its letters. "
                f"Fit without it: kinds={{{column.name!r}: 'id'}}."
            )
        name = column.name or "column"
        while name in taken or name.startswith("deccs."):
            name = f"_{name}"
        taken.add(name)
        inputs.append(ColumnInput(column.name, name, column.kind, column.levels))
    return inputs


def graph_rows(graph: Graph, model: Any, columns: list[ColumnInput], real: Any) -> GraphRows:
    """The rows of a model's graph. Values are scaled in double precision, whatever comes after."""
    scaler: Scaler = model.scaler_
    if columns:
        cells, odd = coded_cells(graph, model.coding_, columns, real)
        return table_rows(graph, scaler, cells, odd, real)  # type: ignore[arg-type]
    n_features = int(model.n_features_in_)
    X = graph.input("X", real, n_features).cast(np.float64)
    gaps = X.op("IsNaN", dtype=np.bool_)
    if isinstance(scaler, TableScaler):
        known = ~gaps
        values = known.where(X, 0.0)
        return table_rows(graph, scaler, Cells(values, known, []), not_finite(values), real)
    # A model that has seen no gaps takes them for the mean.
    values = gaps.where(np.broadcast_to(scaler.mean, (1, n_features)), X)
    scaled = plain_scaled(scaler, values, n_features).cast(real)
    return GraphRows(scaled, scaled, not_finite(values))


def not_finite(values: Tensor) -> Tensor:
    """(n,) rows with a value that is not finite: 0 times it is NaN."""
    return (values * 0.0).sum().op("IsNaN", dtype=np.bool_)


def plain_scaled(scaler: Scaler, values: Tensor, n_features: int) -> Tensor:
    """See :meth:`Scaler.__call__` and :meth:`RowScaler.__call__`."""
    if scaler.kind == "none":
        return values * 1.0  # a tensor of its own
    if isinstance(scaler, RowScaler):
        return row_scaled(scaler, values, n_features)
    return standardized(values, scaler.mean, scaler.deviation).clip(-FARTHEST, FARTHEST)


def standardized(values: Tensor, mean: np.ndarray, deviation: np.ndarray) -> Tensor:
    """(values - mean) / deviation; of huge means the difference of quotients, where that of values overflows."""
    scaled = (values - mean) / deviation
    if np.abs(mean).max() < MAY_OVERFLOW:
        return scaled
    apart = values / deviation - mean / deviation
    return scaled.op("IsInf", dtype=np.bool_).where(apart, scaled)


def row_scaled(scaler: RowScaler, values: Tensor, n_features: int) -> Tensor:
    usual = length_of(values / scaler.deviation)  # (n, 1)
    is_usual = (usual > SMALL) & (usual < LARGE)
    largest = values.op("Abs").max(keepdims=True)
    unit = is_usual.where(
        1.0, (largest > 0.0).where(largest, 1.0)
    )  # of rows whose squares overflow
    weighted = values / unit / scaler.deviation
    length = length_of(weighted)
    return weighted * (np.sqrt(float(n_features)) / (length > 0.0).where(length, 1.0))


def length_of(values: Tensor) -> Tensor:
    return values.square().sum(keepdims=True).op("Sqrt")


def table_rows(
    graph: Graph, scaler: TableScaler, cells: Cells, odd: Tensor, real: Any
) -> GraphRows:
    """See :class:`TableScaler`: scaled columns without gaps, then the masks that networks see."""
    parts, known = [], []  # of numbers first, then of each cell of levels
    if cells.numbers is not None:
        parts.append(scaled_numbers(scaler, cells.numbers))
        known.append(cells.known)
    for cell, codes in zip(scaler.levels, cells.codes, strict=True):
        one_hot = np.eye(scaler.n_levels[cell] + 1)[:, :-1] * scaler.weight[cell]
        parts.append(graph.constant(one_hot).take(codes))  # -1 is the last row, of zeros
        known.append((codes >= 0).unsqueeze(1))
    cells_here = np.concatenate([scaler.numbers, scaler.levels])  # in the order of the parts
    place_of = np.argsort(cells_here)
    known_cells = graph.concat(known)  # type: ignore[arg-type]
    first = np.cumsum([0, *np.maximum(scaler.n_levels[cells_here], 1)])
    columns = np.concatenate(
        [np.arange(first[place], first[place + 1]) for place in place_of]
    )  # of the parts, in the order of the scaled columns
    cell_of = np.repeat(place_of, np.maximum(scaler.n_levels, 1))
    with_gaps = in_order(graph.concat(parts), columns)
    scaled = filled(scaler.filling, with_gaps, in_order(known_cells, cell_of)).cast(real)
    if not len(scaler.masked):
        return GraphRows(scaled, scaled, odd)
    masks = (~known_cells.take(place_of[scaler.masked], axis=1)).cast(real)
    return GraphRows(scaled, graph.concat([scaled, masks]), odd)


def in_order(values: Tensor, columns: np.ndarray) -> Tensor:
    """The columns in this order."""
    is_sorted = np.array_equal(columns, np.arange(len(columns)))
    return values if is_sorted else values.take(columns, axis=1)


def scaled_numbers(scaler: TableScaler, values: Tensor) -> Tensor:
    cells = scaler.numbers
    center, unit = scaler.center[cells], scaler.unit[cells]
    if unit.any():
        straight = unit == 0
        curved = arcsinh((values - center) / np.where(straight, 1.0, unit))
        values = values.graph.constant(straight[None]).where(values, curved)
    scaled = standardized(values, scaler.mean[cells], scaler.deviation[cells])
    return (scaled * scaler.weight[cells]).clip(-FARTHEST, FARTHEST)


def arcsinh(values: Tensor) -> Tensor:
    """log(x + root(x^2 + 1)) of the size, with the sign; of values whose squares overflow log(2 x)."""
    size = values.op("Abs")
    usual = (size.square() + 1.0).op("Sqrt") + size
    logs = (size < LARGE).where(usual.op("Log"), size.op("Log") + np.log(2.0))
    return logs * values.op("Sign")


def filled(filling: Filling, scaled: Tensor, known: Tensor) -> Tensor:
    """See :class:`Filling`. Only rows with gaps are touched."""
    graph = scaled.graph
    d, q = filling.loadings.shape
    gaps = (~known).cast(WHOLE).max()  # (n,)
    rows = (gaps > 0).op("NonZero", dtype=WHOLE).squeeze(0)  # (m,) numbers of rows
    some, is_known = scaled.take(rows), known.take(rows)  # (m, d)
    weights = is_known.cast(np.float64) / filling.noise
    pull = (weights * (some - filling.mean)) @ filling.loadings  # (m, q)
    loadings = graph.constant(filling.loadings)
    squares = (loadings.unsqueeze(2) * loadings.unsqueeze(1)).reshape(d, q * q)
    precision = (weights @ squares).reshape(0, q, q) + np.eye(q)
    z = solved(precision, pull.unsqueeze(2), q).squeeze(2)  # (m, q)
    expected = z @ filling.loadings.T + filling.mean
    rounded = (expected * 10.0**DIGITS).op("Round") / 10.0**DIGITS
    return scaled.op("ScatterND", rows.unsqueeze(1), is_known.where(some, rounded))


def solved(matrices: Tensor, right: Tensor, size: int) -> Tensor:
    """Solutions of positive definite systems by Gauss and Jordan: (m, q, q), (m, q, 1) -> (m, q, 1).

    ONNX has no operator for it. Each step makes one column a unit vector.
    """
    graph = matrices.graph
    both = graph.concat([matrices, right], axis=2)  # (m, q, q + 1)
    for step in range(size):
        unit = np.eye(size)[:, step : step + 1]  # (q, 1)
        row = both.take([step], axis=1)  # (m, 1, q + 1)
        row = row / row.take([step], axis=2)
        both = both - (both.take([step], axis=2) - unit) * row
    return both.take([size], axis=2)


def coded_cells(
    graph: Graph, coding: Coding, columns: list[ColumnInput], real: Any
) -> tuple[Cells, Tensor]:
    """The cells of a table with an input for each column, and its rows with infinite values."""
    coder = Coder(graph, real)
    for column, told in zip(coding.columns, columns, strict=True):
        coder.add(column, told.input)
    return coder.cells(), coder.odd()


class Coder:
    """The columns of a table as cells; see :func:`deccs.data.coding.coded_column`."""

    def __init__(self, graph: Graph, real: Any) -> None:
        self.graph, self.real = graph, real
        self.numbers: list[Tensor] = []  # (n, 1) each
        self.known: list[Tensor] = []
        self.codes: list[Tensor] = []
        self.inputs: list[Tensor] = []  # one as long as the rows

    def add(self, column: Column, name: str) -> None:
        add: dict[str, Callable[[Column, str], None]] = {
            "number": self._number,
            "date": self._date,
            "ordered": self._ordered,
            "yes/no": self._levels,
            "category": self._levels,
        }
        add[column.kind](column, name)

    def cells(self) -> Cells:
        if not self.numbers:
            return Cells(None, None, self.codes)
        return Cells(self.graph.concat(self.numbers), self.graph.concat(self.known), self.codes)

    def odd(self) -> Tensor:
        if self.numbers:
            return not_finite(self.graph.concat(self.numbers))
        return self.codes[0] < GAP  # none

    def _put(self, value: Tensor, known: Tensor) -> None:
        self.numbers.append(known.where(value, 0.0))
        self.known.append(known)

    def _number(self, column: Column, name: str) -> None:
        value = self.graph.input(name, self.real, 1).cast(np.float64)
        self._put(value, ~value.op("IsNaN", dtype=np.bool_))

    def _date(self, column: Column, name: str) -> None:
        """Days since 1970, in double precision always: a single has only minutes of them."""
        days = self.graph.input(name, np.float64, 1)
        known = ~days.op("IsNaN", dtype=np.bool_)
        self._put(days, known)
        whole_days = days.op("Floor")
        for part in column.parts:
            if part == "weekday":
                since = whole_days + 3.0  # 1970-01-01 was a Thursday
                weekday = since - (since / float(len(WEEKDAYS))).op("Floor") * float(len(WEEKDAYS))
                codes = known.where(weekday, float(GAP)).cast(WHOLE)
                self.codes.append(codes.squeeze(1))
            else:
                turns = days / YEAR if part == "season" else days - whole_days
                angle = turns * (2 * np.pi)
                self._put(angle.op("Sin"), known)
                self._put(angle.op("Cos"), known)

    def _ordered(self, column: Column, name: str) -> None:
        codes = self._looked_up(column, name)
        self._put(codes.cast(np.float64), codes >= 0)

    def _levels(self, column: Column, name: str) -> None:
        self.codes.append(self._looked_up(column, name).squeeze(1))

    def _looked_up(self, column: Column, name: str) -> Tensor:
        """(n, 1) codes of texts; "" is a gap."""
        codes, others = codes_of(column)
        return self.graph.input(name, TEXT, 1).op(
            "LabelEncoder",
            domain=ML,
            dtype=WHOLE,
            keys_strings=list(codes),
            values_int64s=list(codes.values()),
            default_int64=others,
        )


def codes_of(column: Column) -> tuple[dict[str, int], int]:
    """The code of each text, and that of all others; see :func:`deccs.data.coding.coded_levels`.

    >>> codes_of(Column("size", "ordered", levels=("small", "large")))[0]["Large"]
    1
    """
    if column.is_flag:
        return {"": 0}, 1
    if column.levels == ("no", "yes"):
        codes = dict(YES_NO)
    else:
        codes = {level: code for code, level in enumerate(column.levels)}
    if column.has_others:
        codes.pop(column.levels[-1])
    if column.kind == "ordered" or column.levels == ("no", "yes"):  # however they are written
        forms = (str, str.upper, str.capitalize, str.title, str.lower)
        codes = {form(word): code for word, code in codes.items() for form in forms}
    others = len(column.levels) - 1 if column.has_others else GAP
    return {**codes, "": GAP}, others
