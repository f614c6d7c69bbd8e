"""AnnData files (.h5ad): principal components or X, with the columns of obs to color by.

Read with h5py: anndata up to 0.12.6 cannot write strings beside pandas 3, and newer ones refuse it. The format is
public and stable (https://anndata.readthedocs.io/en/stable/fileformat-prose.html).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from deccs.data.tables.raw import RawTable, TableError, check_names, listed, position_names
from deccs.data.tables.readers import reader

MAX_BYTES = 4 * 2**30  # of the matrix in memory
DAMAGED = (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError, IndexError)
COMPONENTS = "X_pca"


@reader(".h5ad")
def read_h5ad(path: Path) -> RawTable:
    try:
        import h5py
    except ImportError as error:
        raise TableError(f'{path} needs h5py: pip install "deccs[anndata]".') from error
    try:
        with h5py.File(path, "r") as file:
            return table_of(path, file)
    except TableError:
        raise
    except (*DAMAGED, MemoryError, OverflowError) as error:
        raise TableError(
            f"{path} cannot be read as .h5ad: {error}. Save it again with adata.write_h5ad(path)."
        ) from error


def table_of(path: Path, file: Any) -> RawTable:
    if "obs" not in file or not ("X" in file or COMPONENTS in file.get("obsm", ())):
        raise TableError(
            f"{path} has no X and obs, only {listed(file) or 'nothing'}. Save an AnnData object as .h5ad."
        )
    if COMPONENTS in file.get("obsm", ()):
        X = matrix(path, file["obsm"][COMPONENTS])  # (n_rows, n_components)
        names = tuple(f"PC{place + 1}" for place in range(X.shape[1]))
        note = f"The {X.shape[1]} principal components in obsm[{COMPONENTS!r}] are used, not X."
    else:
        X = matrix(path, file["X"])  # (n_rows, n_genes)
        names = names_of(file, X.shape[1])
        note = f"X is used as it is; there are no principal components in obsm[{COMPONENTS!r}]."
    n_rows = len(X)
    if X.size == 0:
        raise TableError(f"{path} is empty, its shape is {X.shape}. Give at least two rows.")
    check_names(path, names)
    ids, extras = index_of(file["obs"], n_rows), columns_of(file["obs"], n_rows)
    return RawTable(array=X, names=names, extras=extras, ids=ids, notes=(note,), n_rows=n_rows)


def matrix(path: Path, item: Any) -> np.ndarray:
    """(n_rows, n_columns) numbers; a sparse matrix is made dense if that fits."""
    is_sparse = hasattr(item, "keys")
    shape = tuple(int(size) for size in (item.attrs["shape"] if is_sparse else item.shape))
    dtype = (item["data"] if is_sparse else item).dtype
    if len(shape) != 2 or dtype.kind not in "buif":
        raise TableError(f"{path}: {item.name} has the shape {shape} and the type {dtype}, it must be numbers in rows and columns.")
    if shape[0] * shape[1] * dtype.itemsize > MAX_BYTES:
        raise TableError(
            f"{path}: {item.name} has {shape[0]:,} x {shape[1]:,} values, more than {MAX_BYTES // 2**30} GB as an "
            "array. Compute principal components first: scanpy.pp.pca(adata)."
        )
    if not is_sparse:
        return np.asarray(item[()])
    kind = item.attrs["encoding-type"]
    if kind not in ("csr_matrix", "csc_matrix"):
        raise TableError(f"{path}: {item.name} is of the unknown kind {kind!r}. Save it as a csr_matrix.")
    parts = tuple(item[name][()] for name in ("data", "indices", "indptr"))
    sparse = (sp.csr_matrix if kind == "csr_matrix" else sp.csc_matrix)(parts, shape=shape)
    sparse.check_format(full_check=True)  # an index beyond the end would write into other memory
    return sparse.toarray()


def names_of(file: Any, n_columns: int) -> tuple[str, ...]:
    found = index_of(file["var"], n_columns) if "var" in file else None
    return position_names(n_columns) if found is None else tuple(map(str, found))


def index_of(frame: Any, n_rows: int) -> np.ndarray | None:
    """(n_rows,) names of the rows."""
    name = frame.attrs.get("_index", "_index") if hasattr(frame, "keys") else None
    return None if name is None or name not in frame else values(frame[name], n_rows)


def columns_of(frame: Any, n_rows: int) -> dict[str, np.ndarray]:
    """(n_rows,) each: the columns that are text, numbers or categories."""
    if not hasattr(frame, "keys"):
        return {}
    names = [name for name in frame.attrs.get("column-order", ()) if name in frame]
    found = {str(name): values(frame[name], n_rows) for name in names}
    return {name: column for name, column in found.items() if column is not None}


def values(item: Any, n_rows: int) -> np.ndarray | None:
    """(n_rows,) of a column; None if it is of an unknown kind. Gaps are NaN in numbers and empty in text."""
    if not hasattr(item, "keys"):
        column = text(item[()]) if item.shape == (n_rows,) else None
    elif "categories" in item and "codes" in item:
        codes, categories = item["codes"][()], text(item["categories"][()])
        if categories.dtype.kind in "fiub":
            categories, gap = categories.astype(float), np.nan
        else:
            gap = ""
        column = np.append(categories, gap)[codes]  # -1, a gap, is the last
    elif "values" in item and "mask" in item:
        column = text(item["values"][()])
        is_gap = item["mask"][()].astype(bool)
        if is_gap.any():
            column = column.astype(object if column.dtype.kind == "O" else float)
            column[is_gap] = "" if column.dtype.kind == "O" else np.nan
    else:
        column = None
    return column if column is not None and column.shape == (n_rows,) else None


def text(column: Any) -> np.ndarray:
    """The array with bytes as text."""
    array = np.asarray(column)
    if array.dtype.kind not in "OS":
        return array
    cells = (cell.decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else str(cell) for cell in array)
    return np.array(list(cells), dtype=object)
