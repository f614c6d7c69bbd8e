"""What users hand in -- arrays, frames, tensors, images, sparse matrices, sources -- as one source of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from deccs.data.coding import Coding
from deccs.data.frames import is_frame, is_plain_frame
from deccs.data.learning_rows import Survey, needs_survey, survey
from deccs.data.scanned import ScannedRows
from deccs.data.source import (
    ArrayRows,
    FilledRows,
    RowSource,
    blocks,
    each_block,
    gaps_in,
    in_order,
    is_sequential,
    source_of,
)
from deccs.data.tabulate import TableWarning, coded_rows, tabulated, warn_of_what_is_left_out
from deccs.group.group import ALONE, Group
from deccs.loaded import is_sparse, is_tensor
from deccs.storage.values import LONGEST_MESSAGE, printable

PLAIN_NUMBERS = ("f8", "f4", "i8", "i4")
ARRAY_LIKE = ("__array__", "__array_interface__", "__array_struct__", "__dlpack__")
MOST_COLUMNS = 2**17  # 131,072: a network of them has 67 million weights
WHAT_X_IS = (
    "an array, a data frame, a sparse matrix, a tensor, a list of rows, the path of a file, or an object that "
    "reads rows (shape, dtype, read)"
)


def as_source(estimator: Any, X: Any, *, reset: bool, group: Group = ALONE) -> RowSource:
    """Check X and make it a source of rows. Images (n, h, w) are flattened; nothing is copied in vain.

    The columns of a data frame are coded as numbers, each by its kind; ``estimator.coding_`` tells how. For a fit
    every process of a group looks at its own rows of a large table.
    """
    if reset:
        estimator.coding_ = None
    source = as_rows(estimator, rows_of_file(X, estimator, reset=reset, group=group), reset=reset)
    coding = getattr(source, "coding", None)
    if reset:
        estimator.coding_ = coding
        if needs_survey(source):
            source.survey = survey(source, group)  # type: ignore[attr-defined]
        warn_of_nothing(source, coding)
        return source
    return source if hasattr(estimator.scaler_, "n_scaled") else without_gaps(estimator, source)


def rows_of_file(X: Any, estimator: Any, *, reset: bool, group: Group) -> Any:
    """The rows of a file, a folder, a glob or a database where X names one; else X itself."""
    if not isinstance(X, str | PathLike):
        return X
    # Imported here: a fit of an array needs no reader.
    from deccs.data.tables import read_like, read_table

    place = X if isinstance(X, str) else Path(X)
    if reset:
        table = read_table(place, kinds=getattr(estimator, "kinds", None), group=group)
        warn_of_what_is_left_out(table.kinds, stacklevel=5)
        for note in table.notes:
            warnings.warn(note, TableWarning, stacklevel=4)
        return table.rows
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    return read_like(place, {"feature_names": names}, estimator.coding_, missing="auto").rows


def as_rows(estimator: Any, X: Any, *, reset: bool) -> RowSource:
    """Rows of numbers, with NaN where a value is missing."""
    coding: Coding | None = getattr(estimator, "coding_", None)
    if isinstance(X, ArrayRows | ScannedRows) and X.coding is not None:
        return coded_source(estimator, X, reset=reset)
    if is_frame(X):
        if reset:
            table = tabulated(X, getattr(estimator, "kinds", None))
            if not (table.is_plain and is_plain_frame(X)):
                table.warn_of_what_is_left_out()
                return coded_source(estimator, table.rows(), reset=True)
        elif coding is not None:
            return coded_rows(X, coding)
    elif not reset and coding is not None and not coding.is_plain:
        raise ValueError(
            f"{type(estimator).__name__} was fitted on a data frame with columns of several kinds. "
            f"X must be a frame with the columns {', '.join(map(repr, coding.names[:20]))}; got "
            f"{type(X).__name__}."
        )
    elif reset and getattr(estimator, "kinds", None):
        raise ValueError(
            "kinds says what the columns of a data frame are, and X has no column names. Give a data frame."
        )
    return plain_source(estimator, X, reset=reset)


def coded_source(
    estimator: Any, source: ArrayRows | ScannedRows, *, reset: bool
) -> ArrayRows | ScannedRows:
    """Rows that were coded already: their number and their columns are checked."""
    assert source.coding is not None
    n_rows, least = source.shape[0], 2 if reset else 1
    if n_rows < least:
        raise ValueError(f"Found {n_rows} row(s), but at least {least} are needed.")
    if reset:
        check_width(source.shape[1])
        estimator.n_features_in_ = len(source.coding.names)
        estimator.feature_names_in_ = np.array(source.coding.names, dtype=object)
    elif estimator.coding_ is None or source.coding.cells != estimator.coding_.cells:
        raise ValueError("X was coded for another model. Give the data frame itself.")
    return source


def warn_of_nothing(source: RowSource, coding: Coding | None) -> None:
    """Warn of columns and rows without any value: they are named, and take part as an average."""
    n_missing = gaps_in(source)
    n_rows = source.shape[0]
    if not n_missing.any():
        return
    empty = np.flatnonzero(n_missing == n_rows)
    if len(empty) and coding is None:
        warnings.warn(
            f"Columns without any value have no effect: {', '.join(map(str, empty[:8]))}"
            f"{' ...' if len(empty) > 8 else ''} (counted from 0).",
            TableWarning,
            stacklevel=5,
        )
    n_bare, first_bare = bare_rows(source)
    if n_bare:
        warnings.warn(
            f"{n_bare:,} rows have no value in any column, the first is row {first_bare} (counted from 0). "
            "They are treated as average rows: leave them out, or do not rely on their labels.",
            TableWarning,
            stacklevel=5,
        )


def bare_rows(source: RowSource) -> tuple[int, int]:
    """How many rows have no value at all, and which is the first."""
    surveyed: Survey | None = getattr(source, "survey", None)
    if surveyed is not None:
        return surveyed.bare
    bare = [
        place.start + int(row)
        for place, block in each_block(source)
        for row in np.flatnonzero(np.isnan(block).all(axis=1))
    ]
    return len(bare), bare[0] if bare else -1


def without_gaps(estimator: Any, source: RowSource) -> RowSource:
    """Rows for a model that has seen no gaps: they count as the mean, with a warning that names them."""
    n_missing = gaps_in(source)
    if not n_missing.any():
        return source
    names = getattr(estimator, "feature_names_in_", np.arange(len(n_missing)))
    listed = ", ".join(str(name) for name in names[n_missing > 0][:8])
    warnings.warn(
        f"X has {n_missing.sum():,} missing values (columns {listed}), and the data of the fit had none. "
        "Each counts as the mean of its column.",
        TableWarning,
        stacklevel=5,
    )
    mean = np.broadcast_to(estimator.scaler_.mean, n_missing.shape)
    return FilledRows(source, mean.astype(float))


def plain_source(estimator: Any, X: Any, *, reset: bool) -> RowSource:
    """Arrays and the like, checked by scikit-learn."""
    image_shape: tuple[int, int] | None = None
    if isinstance(X, ArrayRows):
        X, image_shape = X.X, X.image_shape
    if not isinstance(X, np.ndarray) and isinstance(X, RowSource):  # an array is told at once
        return checked_source(estimator, X, reset=reset)
    check_is_table(X)
    if is_tensor(X):
        X = X.detach().cpu().numpy()  # type: ignore[union-attr]
    if hasattr(X, "ndim") and not is_sparse(X) and X.ndim > 2:
        image_shape = (int(X.shape[1]), int(X.shape[2])) if X.ndim == 3 else None
        X = X.reshape(len(X), -1)
    if not reset and is_plain_array(X, estimator.n_features_in_):
        if hasattr(estimator, "feature_names_in_"):  # in the words of scikit-learn
            warnings.warn(
                f"X does not have valid feature names, but {type(estimator).__name__} was fitted with feature names",
                UserWarning,
                stacklevel=5,
            )
        return source_of(X, image_shape)
    from sklearn.utils.validation import (
        validate_data,  # knows all that an array can be; takes a second to load
    )

    least = 2 if reset else 1
    try:
        # It adds up all values, and those of 1e308 are too large.
        with np.errstate(invalid="ignore"):
            table = validate_data(
                estimator,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype="numeric",
                ensure_all_finite=True if is_sparse(X) else "allow-nan",
                ensure_min_samples=least,
            )
    except ValueError as error:  # its message may have names of columns, from any file
        error.args = (printable(error, LONGEST_MESSAGE),)
        raise
    if reset:
        check_width(table.shape[1], is_sparse(table))
    return source_of(table, image_shape)


def is_plain_array(X: Any, n_features: int) -> bool:
    """Whether X is an array that nothing is wrong with: doubles, singles or whole numbers, of the right width.

    >>> is_plain_array(np.zeros((3, 2)), 2), is_plain_array(np.array([[np.inf, 0.0]]), 2), is_plain_array([[0.0]], 1)
    (True, False, False)
    """
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.str[1:] not in PLAIN_NUMBERS:
        return False
    is_finite = X.dtype.kind == "i" or not np.isinf(X).any()
    return bool(len(X) and X.shape[1] == n_features and is_finite)


def check_width(n_features: int, is_sparse: bool = False) -> None:
    """Raise a ValueError for more columns than a fit can take in memory and minutes."""
    if n_features > MOST_COLUMNS:
        how = "TruncatedSVD(100)" if is_sparse else "PCA(100)"
        raise ValueError(
            f"X has {n_features:,} columns, and at most {MOST_COLUMNS:,} can be clustered as they are. "
            f"Reduce them first: make_pipeline({how}, model) of scikit-learn, or keep the columns that "
            "vary most."
        )


def check_is_table(X: Any) -> None:
    """Raise a ValueError at once for what NumPy would turn into an array item by item, or never."""
    kind = type(X).__name__
    if all(hasattr(X, name) for name in ("X", "obs", "var")):
        raise ValueError(
            f"X is an {kind} object. Give its matrix: adata.X, a layer such as adata.layers['counts'], "
            "or an embedding such as adata.obsm['X_pca']."
        )
    is_list = isinstance(X, Sequence) and not isinstance(X, str | bytes | bytearray)
    if not (is_list or is_sparse(X) or any(hasattr(X, name) for name in ARRAY_LIKE)):
        is_open_file = isinstance(X, bytes) or hasattr(X, "readline")
        hint = " Give the path of the file." if is_open_file else ""
        raise ValueError(f"X must be {WHAT_X_IS}, got a {kind}.{hint}")


def checked_source(estimator: Any, source: RowSource, *, reset: bool) -> RowSource:
    """The checks scikit-learn would make of an array; values are checked when they are read."""
    n_rows, n_features = source.shape
    least = 2 if reset else 1
    if n_rows < least or n_features < 1:
        raise ValueError(
            f"Found a source of rows with shape ({n_rows}, {n_features}), "
            f"but at least {least} row(s) and 1 column are needed."
        )
    if reset:
        check_width(n_features)
        estimator.n_features_in_ = n_features
        if hasattr(estimator, "feature_names_in_"):  # of an earlier fit
            del estimator.feature_names_in_
    elif n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return source if isinstance(source, CheckedRows) else CheckedRows(source)


class CheckedRows:
    """A source of the user's own. What it reads is checked, and becomes an array of doubles."""

    def __init__(self, source: RowSource) -> None:
        self.source = source
        self.n_missing: np.ndarray | None = None  # see gaps_in
        self.survey: Survey | None = None  # of a source that is read in order

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_features = self.source.shape
        return int(n_rows), int(n_features)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.source.dtype)

    def read(self, rows: slice | np.ndarray, /) -> np.ndarray:
        n_rows, _ = self.shape
        n_asked = len(range(*rows.indices(n_rows))) if isinstance(rows, slice) else len(rows)
        return self._checked(self.source.read(rows), n_asked, f"read({rows!r})")

    @property
    def is_sequential(self) -> bool:
        return is_sequential(self.source)

    def stream(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[np.ndarray]:
        """The rows in order, as the source reads them."""
        stop = self.shape[0] if stop is None else stop
        if not hasattr(self.source, "stream"):
            places = blocks(stop - start, size)
            yield from (self.read(slice(start + at.start, start + at.stop)) for at in places)
            return
        n_read = start
        for block in in_order(self.source, size, start, stop):
            yield self._checked(
                block, min(len(block), size, stop - n_read), f"rows {n_read} and on"
            )
            n_read += len(block)
        if n_read != stop:
            raise ValueError(
                f"{type(self.source).__name__} has given {n_read - start:,} rows where {stop - start:,} were "
                "expected: its data have changed, or its shape is wrong."
            )

    def _checked(self, rows: np.ndarray, n_asked: int, asked: str) -> np.ndarray:
        block = np.asarray(rows, dtype=np.float64)
        name, n_features = type(self.source).__name__, self.shape[1]
        if block.shape != (n_asked, n_features):
            raise ValueError(
                f"{name}.read was asked for {n_asked} rows of {n_features} "
                f"columns, and returned an array of shape {block.shape}."
            )
        if np.isinf(block).any():
            raise ValueError(
                f"Input X contains infinity: {name}.{asked} returned some. Replace or remove them first."
            )
        return block


def output_dtype(source: RowSource) -> type:
    """float32 in, float32 out; double otherwise."""
    return np.float32 if source.dtype == np.float32 else np.float64
