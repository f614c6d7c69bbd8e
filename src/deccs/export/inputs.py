"""What an ONNX file is given: one array, or an array for each column of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from deccs.data.coding import Column, as_words, coded_dates, coded_numbers
from deccs.data.frames import as_polars, column
from deccs.data.inputs import as_rows
from deccs.export.rows import column_inputs, has_one_input

PRECISIONS: dict[str, np.dtype[Any]] = {
    "double": np.dtype(np.float64),
    "single": np.dtype(np.float32),
}


def onnx_inputs(model: Any, X: Any, *, precision: str = "double") -> dict[str, np.ndarray]:
    """What the ONNX file of a model is given for rows: a dict for ``InferenceSession.run``.

    Of numbers alone that is one array "X" (n, n_features). Of a table it is an array (n, 1) for each column:
    numbers as they are, NaN where one is missing; categories as text, "" where one is missing; dates as days since
    1970. Other languages do the same.
    """
    real = PRECISIONS[precision]
    if has_one_input(model):
        rows = as_rows(model, X, reset=False)
        return {"X": np.ascontiguousarray(rows.read(slice(0, rows.shape[0])), dtype=real)}
    coding = model.coding_
    frame = as_polars(X)
    coding.check_columns(frame.collect_schema().names())
    chosen = frame.select(column(name) for name in coding.names).collect()
    told = column_inputs(coding)
    return {
        each.input: values_of(how, chosen[how.name], real)[:, None]
        for how, each in zip(coding.columns, told, strict=True)
    }


def values_of(how: Column, values: Any, real: Any) -> np.ndarray:
    """(n,) the values of a column as its input takes them."""
    if how.kind == "number":
        return coded_numbers(how, values).astype(real)
    if how.kind == "date":
        return coded_dates(how, values)[:, 0]
    import polars as pl

    words = pl.select(as_words(pl.lit(values), values.dtype)).to_series()
    return np.array(words.fill_null("").to_list(), dtype=object)
