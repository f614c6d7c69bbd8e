"""Whether an ONNX file says what the model says."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from deccs.data.coding import DAY, Coding
from deccs.data.scaling import LARGEST, Scaler
from deccs.data.table_scaling import TableScaler
from deccs.export.graph import ExportError
from deccs.export.inputs import onnx_inputs
from deccs.export.rows import has_one_input
from deccs.inference.encoder import TrainingError

N_DRAWN = 200  # rows, beside those the model keeps
TOLERANCE = {"double": 1e-5, "single": 1e-2}  # of probabilities
MAY_DIFFER = {"double": 0.0, "single": 0.01}  # share of labels: of rows on a border
GIANT = 1e300
SIZES = (1e3, 1e10, 1e100, GIANT)  # of extreme values, in deviations


def session_of(content: bytes, n_threads: int = 0) -> Any:
    """An onnxruntime session; 0 threads are as many as there are cores."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run(session: Any, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a session says, by the names of its outputs."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def check_same(model: Any, content: bytes, precision: str, rows: Any = None) -> None:
    """Raise an ExportError where a file says something else than the model of rows, or of probes."""
    session = session_of(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of gaps, which are wanted here
        probes = list(probe_rows(model, precision))
    for X in [*probes, *([] if rows is None else [rows])]:
        compare(model, session, X, precision)


def compare(model: Any, session: Any, X: Any, precision: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            answer = model.answer(X)
        except TrainingError:  # of rows so extreme that the network overflows
            return
    found = run(session, onnx_inputs(model, X, precision=precision))
    if "labels" in found:
        differ = np.flatnonzero(found["labels"] != answer.labels)
        if len(differ) > MAY_DIFFER[precision] * len(answer):
            row = int(differ[0])
            raise ExportError(
                f"onnxruntime gives {len(differ)} of {len(answer)} rows another label than the model; the first is "
                f"{found['labels'][row]} instead of {answer.labels[row]}. Nothing was written. Please report it."
            )
    if "probabilities" in found and answer.probabilities is not None:
        same = found["labels"] == answer.labels if "labels" in found else slice(None)
        apart = np.abs(found["probabilities"] - answer.probabilities)[same].max(initial=0.0)
        if not apart <= TOLERANCE[precision]:
            raise ExportError(
                f"onnxruntime gives probabilities that are up to {apart:.2g} away from those of the model. Nothing was "
                "written. Please report it."
            )


def probe_rows(model: Any, precision: str) -> Iterator[Any]:
    """Rows to compare on: near those the model keeps, drawn at random, and extreme; one row, too.

    Single precision has no room for values that are far away from all others.
    """
    if has_one_input(model):
        usual = usual_rows(model)
        yield usual
        yield usual[:1]
        yield extreme_rows(model, usual, SIZES if precision == "double" else ())
    else:
        frame = probe_frame(model, GIANT if precision == "double" else 0.0)
        yield frame
        yield frame[:1]


def usual_rows(model: Any) -> np.ndarray:
    """(n, n_features) raw rows near those of the fit."""
    scaler: Scaler = model.scaler_
    scaled = np.concatenate([kept_rows(model), drawn_rows(model)])
    if isinstance(scaler, TableScaler):
        values = scaled / scaler.weight * scaler.deviation + scaler.mean
        return unbent(values, scaler.center, scaler.unit)
    return scaled * scaler.deviation + scaler.mean


def kept_rows(model: Any) -> np.ndarray:
    """(n, n_scaled) scaled rows of the sample the model keeps; none where it has kept components alone."""
    trust = getattr(model, "trust_", None)
    n_scaled = model._widths[0]
    if trust is not None:
        points, axes = trust.drawn.points, trust.components.axes
        return points if axes is None else points @ axes.T + trust.components.mean
    drawn = getattr(model, "_drawn", None)
    fits = drawn is not None and drawn.points.shape[1] == n_scaled
    return drawn.points if fits else np.zeros((0, n_scaled))  # type: ignore[union-attr]


def drawn_rows(model: Any) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(N_DRAWN, model._widths[0])) * rng.choice([0.1, 1, 3], (N_DRAWN, 1))


def unbent(values: np.ndarray, center: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """The inverse of :func:`deccs.data.table_scaling.bent`."""
    with np.errstate(over="ignore", invalid="ignore"):
        curved = np.sinh(np.clip(values, -700, 700)) * np.where(unit == 0, 1.0, unit) + center
    return np.where(unit == 0, values, curved)


def extreme_rows(model: Any, usual: np.ndarray, sizes: Sequence[float]) -> np.ndarray:
    """Rows with gaps, and with values far away from all others."""
    rng = np.random.default_rng(1)
    rows = usual[rng.integers(len(usual), size=N_DRAWN)]
    rows[rng.random(rows.shape) < 0.3] = np.nan
    if not sizes or model.scaler_.kind == "none":  # networks overflow
        return rows
    n_features = rows.shape[1]
    giants = [
        np.where(rng.random(n_features) < share, sign * size, usual[0])
        for size in sizes
        for sign in (-1.0, 1.0)
        for share in (1 / n_features, 1.0)
    ]
    limits = [np.full(n_features, value) for value in (0.0, np.nan, LARGEST, -LARGEST)]
    return np.concatenate([rows, giants, limits])


def probe_frame(model: Any, giant: float) -> Any:
    """A frame with the columns of the fit: usual and rare levels, gaps, dates, numbers of any size."""
    import polars as pl

    coding: Coding = model.coding_
    scaler: TableScaler = model.scaler_
    rng, n = np.random.default_rng(2), 2 * N_DRAWN
    columns = []
    for column, cell in zip(coding.columns, coding.first_cells, strict=True):
        gaps = rng.random(n) < 0.15
        if column.kind in ("number", "date"):
            values = scaler.deviation[cell] * rng.normal(size=n) * rng.choice([1, 3], n)
            values = unbent(values + scaler.mean[cell], scaler.center[cell], scaler.unit[cell])
            if column.kind == "number":
                values[:4] = [0.0, giant, -giant, giant**0.1]
                columns.append(pl.Series(column.name, values).set(pl.Series(gaps), None))
            else:
                stamps = pl.Series(column.name, (values * DAY * 1e6).astype(np.int64))
                columns.append(stamps.cast(pl.Datetime("us")).set(pl.Series(gaps), None))
        else:
            levels = [*column.levels, *map(str.upper, column.levels), "never seen"]
            words = [None if gap else levels[rng.integers(len(levels))] for gap in gaps]
            columns.append(pl.Series(column.name, words, dtype=pl.String))
    return pl.DataFrame(columns)
