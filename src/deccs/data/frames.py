"""Data frames of any library as polars frames, so that the rest of the way is one.

polars and not narwhals, because the readers of files give polars frames and large ones are only scanned:
what works on them works on everything. pandas is read column by column, since polars' own way needs pyarrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl


def is_frame(X: Any) -> bool:
    """Whether X is a data frame that can be read: of pandas, polars, pyarrow or another library."""
    module = type(X).__module__.partition(".")[0]
    if module in ("numpy", "scipy", "torch", "builtins"):  # decided without any import
        return False
    if module in ("pandas", "polars"):
        return type(X).__name__ in ("DataFrame", "LazyFrame")
    return hasattr(X, "__arrow_c_stream__") and hasattr(X, "column_names")


def is_plain_frame(X: Any) -> bool:
    """Whether every column is of numbers without gaps, so that scikit-learn's way is enough."""
    if type(X).__name__ == "LazyFrame":
        return False
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None:
        return False
    if type(X).__module__.startswith("polars"):
        return all(kind.is_numeric() for kind in dtypes) and not any(
            column.has_nulls() for column in X
        )
    numeric = all(getattr(kind, "kind", "O") in "iuf" for kind in dtypes)
    return numeric and not bool(X.isna().to_numpy().any())


def as_polars(X: Any) -> pl.LazyFrame:
    """A frame of any library as a lazy polars frame. Names of columns become text, NaN a gap."""
    import polars as pl
    import polars.selectors as cs

    if isinstance(X, pl.LazyFrame):
        return X
    if isinstance(X, pl.DataFrame):
        return X.lazy().with_columns(cs.float().fill_nan(None))
    if type(X).__module__.startswith("pandas"):
        check_unique([str(name) for name in X.columns])
        columns = [from_pandas(str(name), X.iloc[:, place]) for place, name in enumerate(X.columns)]
        return pl.DataFrame(columns).lazy()
    return pl.DataFrame(X).lazy()  # by the Arrow interface


def check_unique(names: Sequence[str]) -> None:
    """Raise a ValueError for a name that occurs twice."""
    repeated = sorted({name for name in names if names.count(name) > 1})[:5]
    if repeated:
        raise ValueError(
            f"X has columns of the same name: {', '.join(map(repr, repeated))}. Rename them."
        )


def from_pandas(name: str, column: Any) -> pl.Series:
    """A column of pandas; NaN, NaT, NA and None are gaps."""
    import polars as pl

    dtype = column.dtype
    kind = getattr(dtype, "kind", "O")
    if hasattr(column, "cat"):
        words = [str(level) for level in column.cat.categories]
        codes = column.cat.codes.to_numpy()
        values = [None if code < 0 else words[code] for code in codes.tolist()]
        return pl.Series(name, values, dtype=pl.Enum(words) if dtype.ordered else pl.Categorical)
    missing = column.isna().to_numpy()
    if kind == "M":
        utc = column.dt.tz_convert(None) if getattr(dtype, "tz", None) is not None else column
        stamps = utc.to_numpy().astype("datetime64[us]")
        return pl.Series(name, stamps).set(pl.Series(missing), None)
    if kind in "iufb":
        numpy_type = np.dtype(f"{kind}{max(dtype.itemsize, 1)}") if kind != "b" else np.dtype(bool)
        values = column.to_numpy(dtype=numpy_type, na_value=numpy_type.type(0))
        return pl.Series(name, values).set(pl.Series(missing), None)
    values = [
        None if gap else value for value, gap in zip(column.tolist(), missing.tolist(), strict=True)
    ]
    if {type(value) for value in values} <= {bool, type(None)}:
        return pl.Series(name, values, dtype=pl.Boolean)
    try:
        return pl.Series(name, values, strict=True)
    except (TypeError, pl.exceptions.PolarsError):  # of several types: as they are written
        texts = [None if value is None else str(value) for value in values]
        return pl.Series(name, texts, dtype=pl.String)


def in_pandas_or_polars(X: Any) -> str:
    """The library of a frame, in words for messages."""
    return f"{type(X).__module__.partition('.')[0]} frame"


def of_columns(columns: Mapping[str, Any]) -> pl.LazyFrame:
    """A frame made of arrays, by name."""
    import polars as pl

    return pl.DataFrame({name: np.asarray(values) for name, values in columns.items()}).lazy()
