"""Data frames of any library as polars frames, so that the rest of the way is one.

polars and not narwhals, because the readers of files give polars frames and large ones are only scanned:
what works on them works on everything. pandas is read column by column, since polars' own way needs pyarrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl


def is_frame(X: Any) -> bool:
    """Whether X is a data frame that can be read: of pandas, polars, pyarrow or another library."""
    module = type(X).__module__.partition(".")[0]
    if module in ("numpy", "scipy", "torch", "builtins"):  # decided without any import
        return False
    if is_pandas(X):
        return True
    if module == "polars":
        return type(X).__name__ in ("DataFrame", "LazyFrame")
    return hasattr(X, "__arrow_c_stream__") and hasattr(X, "column_names")


def is_pandas(X: Any) -> bool:
    """Whether X is a frame of pandas, or of a library that builds on them (GeoPandas)."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"
        for kind in type(X).__mro__
    )


def is_plain_frame(X: Any) -> bool:
    """Whether every column is of numbers without gaps, so that scikit-learn's way is enough."""
    if type(X).__name__ == "LazyFrame":
        return False
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None:
        return False
    if type(X).__module__.startswith("polars"):
        return all(kind.is_integer() or kind.is_float() for kind in dtypes) and not any(
            column.has_nulls() for column in X
        )
    numeric = all(getattr(kind, "kind", "O") in "iuf" for kind in dtypes)
    return numeric and not bool(X.isna().to_numpy().any())


def as_polars(X: Any) -> pl.LazyFrame:
    """A frame of any library as a lazy polars frame of few types; see :func:`settled`."""
    import polars as pl

    if isinstance(X, pl.LazyFrame):
        return settled(X)
    if isinstance(X, pl.DataFrame):
        return settled(X.lazy())
    names = [str(name) for name in (X.columns if is_pandas(X) else X.column_names)]
    check_names(names)
    if is_pandas(X):
        columns = [from_pandas(name, X.iloc[:, place]) for place, name in enumerate(names)]
        return settled(pl.DataFrame(columns).lazy())
    try:
        return settled(pl.DataFrame(X).lazy())  # by the Arrow interface
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"X has columns of a type that cannot be read: {error}") from error


def settled(frame: pl.LazyFrame) -> pl.LazyFrame:
    """A frame in which a gap is null (NaN and blank text, too) and all that counts is a number.

    Durations and times of the day are seconds, times with a zone those of Greenwich, texts have no spaces around.

    >>> import polars as pl
    >>> settled(pl.LazyFrame({"a": [0.5, float("nan")], "b": [" x ", " "]})).collect().rows()
    [(0.5, 'x'), (None, None)]
    """
    import polars as pl

    changed = []
    for name, dtype in frame.collect_schema().items():
        values = column(name)
        if dtype.is_float():
            changed.append(values.fill_nan(None))
        elif dtype == pl.String:
            words = values.str.strip_chars()
            changed.append(pl.when(words != "").then(words).alias(name))
        elif dtype.is_decimal():
            changed.append(values.cast(pl.Float64))
        elif dtype == pl.Duration:
            changed.append(values.dt.total_microseconds().cast(pl.Float64) / 1e6)
        elif dtype == pl.Time:
            changed.append(values.to_physical().cast(pl.Float64) / 1e9)
        elif dtype == pl.Datetime:
            changed.append(values.cast(pl.Datetime("us")))
    return frame.with_columns(changed) if changed else frame


def column(name: str) -> pl.Expr:
    """The column of this very name: ``pl.col`` takes "*" and "^a$" for patterns."""
    import polars.selectors as cs

    return cs.by_name(name).as_expr()


def holds(dtype: Any) -> str:
    """What the values of a column are, in words, where they are no single values; else "".

    >>> import polars as pl
    >>> holds(pl.List(pl.Int64)), holds(pl.Binary()), holds(pl.String())
    ('lists', 'bytes', '')
    """
    import polars as pl

    if dtype in (pl.List, pl.Array):
        return "lists"
    return {pl.Struct: "records", pl.Binary: "bytes", pl.Object: "objects"}.get(
        dtype.base_type(), ""
    )


def check_names(names: Sequence[str]) -> None:
    """Raise a ValueError for a name that occurs twice, or is no text that can be written."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)[:5]
    if repeated:
        raise ValueError(
            f"X has columns of the same name: {', '.join(map(repr, repeated))}. Rename them."
        )
    for name in names:
        if as_text(name) != name:
            raise ValueError(f"The name of column {name!r} has letters that cannot be written.")


def as_text(value: Any) -> str:
    """A value as text that can be written: half of a pair of surrogates is replaced.

    >>> as_text(1.5), as_text("\\ud800")
    ('1.5', '?')
    """
    return str(value).encode("utf-8", "replace").decode()


def from_pandas(name: str, column: Any) -> pl.Series:
    """A column of pandas; NaN, NaT, NA and None are gaps."""
    import polars as pl

    if type(column.dtype).__name__ == "SparseDtype":
        column = column.sparse.to_dense()
    if type(column.dtype).__name__ == "PeriodDtype":
        column = column.dt.to_timestamp()
    dtype = column.dtype
    kind = getattr(dtype, "kind", "O")
    if kind == "c":
        raise ValueError(f"Column {name!r:.60} has complex numbers. Split them into two columns.")
    if hasattr(column, "cat"):
        words = [as_text(level) for level in column.cat.categories]
        codes = column.cat.codes.to_numpy()
        levels = [None if code < 0 else words[code] for code in codes.tolist()]
        ordered = pl.Enum(list(dict.fromkeys(words)))
        return pl.Series(name, levels, dtype=ordered if dtype.ordered else pl.Categorical)
    missing = column.isna().to_numpy()
    if kind in "Mm" and not hasattr(dtype, "pyarrow_dtype"):
        utc = column.dt.tz_convert(None) if getattr(dtype, "tz", None) is not None else column
        unit = "datetime64[us]" if kind == "M" else "timedelta64[us]"
        return pl.Series(name, utc.to_numpy().astype(unit)).set(pl.Series(missing), None)
    if kind in "iufb":
        size = dtype.itemsize if kind != "f" or dtype.itemsize == 4 else 8
        numpy_type = np.dtype(bool if kind == "b" else f"{kind}{size}")
        values = column.to_numpy(dtype=numpy_type, na_value=numpy_type.type(0))
        return pl.Series(name, values).set(pl.Series(missing), None)
    objects = [
        None if gap else value for value, gap in zip(column.tolist(), missing.tolist(), strict=True)
    ]
    types = {type(value) for value in objects if value is not None}
    if types <= {bool}:
        return pl.Series(name, objects, dtype=pl.Boolean)
    if float in types and types <= {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in objects])
    try:
        series = pl.Series(name, objects, strict=True)
        if series.dtype != pl.Object:
            return series
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        pass
    # Of several types, or of one that polars does not know: as they are written.
    texts = [None if value is None else as_text(value) for value in objects]
    return pl.Series(name, texts, dtype=pl.String)
