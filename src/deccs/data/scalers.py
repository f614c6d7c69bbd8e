"""Which scaler rows need: one for complete numbers, one for tables with categories, dates or gaps."""

from __future__ import annotations

import numpy as np

from deccs.data.scaling import Scaler, fit_number_scaler
from deccs.data.source import RowSource, SparseRows, gaps_in
from deccs.data.table_scaling import fit_table_scaler


def fit_scaler(source: RowSource, scale: str | None = "auto") -> Scaler:
    """How to bring the columns to one scale; see :func:`deccs.data.scaling.fit_number_scaler`."""
    coding = getattr(source, "coding", None)
    if isinstance(source, SparseRows):
        if scale == "robust":
            raise ValueError("scale='robust' needs a dense X. Use scale='auto' for a sparse one.")
        return fit_number_scaler(source, scale)
    has_kinds = coding is not None and not coding.is_plain
    if has_kinds or scale == "robust" or np.any(gaps_in(source)):
        return fit_table_scaler(source, coding, scale)
    return fit_number_scaler(source, scale)
