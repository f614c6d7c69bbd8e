"""Which scaler rows need: one for complete numbers, one for tables with categories, dates or gaps."""

from __future__ import annotations

import numpy as np

from deccs.data.scaling import Scaler, fit_number_scaler
from deccs.data.source import RowSource, SparseRows, gaps_in
from deccs.data.table_scaling import bends, fit_table_scaler


def fit_scaler(source: RowSource, scale: str | None = "auto") -> Scaler:
    """How to bring the columns to one scale; see :func:`deccs.data.scaling.fit_number_scaler`."""
    coding = getattr(source, "coding", None)
    if isinstance(source, SparseRows):
        return fit_number_scaler(source, scale)
    if (coding is not None and not coding.is_plain) or np.any(gaps_in(source)):
        return fit_table_scaler(source, coding, scale)
    scaler = fit_number_scaler(source, scale)
    if scale == "auto" and scaler.kind == "columns" and bends(source):
        return fit_table_scaler(source, coding, "columns")
    return scaler
