"""AnnData files (.h5ad): principal components or X, with the columns of obs to color by.

Read with h5py: anndata up to 0.12.6 cannot write strings beside pandas 3, and newer ones refuse it. The format is
public and stable (https://anndata.readthedocs.io/en/stable/fileformat-prose.html).
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from deccs.data.tables.isolated import IsolatedError, isolated
from deccs.data.tables.raw import RawTable, TableError, check_names, listed, position_names
from deccs.data.tables.readers import reader
from deccs.data.tables.scratch import scratch

MAX_BYTES = 4 * 2**30  # of the matrix in memory
COMPONENTS = "X_pca"
MAGIC = b"\x89HDF\r\n"


@reader(".h5ad")
def read_h5ad(path: Path) -> RawTable:
    if find_spec("h5py") is None:
        raise TableError(f'{path} needs h5py: pip install "deccs[anndata]".')
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise TableError(f"{path} is not HDF5. Save it with adata.write_h5ad(path).")
    with scratch() as files:
        target = files.file("cells.npz")
        try:
            facts = isolated(f"{__name__}:extract", str(path.absolute()), str(target))
            with np.load(target, allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays}
        except (IsolatedError, OSError, ValueError, MemoryError) as error:
            raise TableError(
                f"{path} cannot be read as .h5ad: {error}. Save it again with adata.write_h5ad(path)."
            ) from error
    X, ids = found.pop("X"), found.pop("ids", None)
    names = tuple(facts["names"]) or position_names(X.shape[1])
    if X.size == 0:
        raise TableError(f"{path} is empty, its shape is {X.shape}. Give at least two rows.")
    check_names(path, names)
    return RawTable(
        array=X,
        names=names,
        extras={facts["columns"][int(place)]: column for place, column in found.items()},
        ids=ids,
        notes=(facts["note"],),
        n_rows=len(X),
    )


def extract(path: str, target: str) -> dict[str, Any]:
    """Write the matrix, the names and the columns of obs to an .npz file, in the other process."""
    import h5py

    with h5py.File(path, "r") as file:
        has_components = COMPONENTS in file.get("obsm", ())
        if "obs" not in file or not ("X" in file or has_components):
            raise ValueError(f"it has no X and obs, only {listed(file) or 'nothing'}")
        X = matrix(file["obsm"][COMPONENTS] if has_components else file["X"])  # (n_rows, n_columns)
        if has_components:
            names = [f"PC{place + 1}" for place in range(X.shape[1])]
            note = f"The {X.shape[1]} principal components in obsm[{COMPONENTS!r}] are used, not X."
        else:
            genes = index_of(file["var"], X.shape[1]) if "var" in file else None
            names = [] if genes is None else list(map(str, genes))
            note = f"X is used as it is; there are no principal components in obsm[{COMPONENTS!r}]."
        ids, columns = index_of(file["obs"], len(X)), columns_of(file["obs"], len(X))
    arrays = {str(place): column for place, column in enumerate(columns.values())}
    if ids is not None:
        arrays["ids"] = ids
    np.savez(target, X=X, **arrays)  # type: ignore[arg-type]
    return {"names": names, "columns": list(columns), "note": note}


def matrix(item: Any) -> np.ndarray:
    """(n_rows, n_columns) numbers; a sparse matrix is made dense if that fits."""
    is_sparse = hasattr(item, "keys")
    shape = tuple(int(size) for size in (item.attrs["shape"] if is_sparse else item.shape))
    dtype = (item["data"] if is_sparse else item).dtype
    if len(shape) != 2 or dtype.kind not in "buif":
        raise ValueError(
            f"{item.name} has the shape {shape} and values of type {dtype}, not rows of numbers"
        )
    if shape[0] * shape[1] * dtype.itemsize > MAX_BYTES:
        raise ValueError(
            f"{item.name} has {shape[0]:,} x {shape[1]:,} values, more than {MAX_BYTES // 2**30} GB as an array. "
            "Compute principal components first, with scanpy.pp.pca(adata)"
        )
    if not is_sparse:
        return np.asarray(item[()])
    kind = item.attrs["encoding-type"]
    if kind not in ("csr_matrix", "csc_matrix"):
        raise ValueError(f"{item.name} is of the unknown kind {kind!r}")
    parts = tuple(item[name][()] for name in ("data", "indices", "indptr"))
    import scipy.sparse as sp  # takes half a second to load

    sparse = (sp.csr_matrix if kind == "csr_matrix" else sp.csc_matrix)(parts, shape=shape)
    sparse.check_format(full_check=True)  # an index beyond the end would write into other memory
    return sparse.toarray()


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
        is_text = categories.dtype.kind == "U"
        gap: Any = "" if is_text else np.nan
        column = np.append(categories, gap)[codes]  # -1, a gap, is the last one
    elif "values" in item and "mask" in item:
        column, is_gap = text(item["values"][()]), item["mask"][()].astype(bool)
        if is_gap.any():
            is_text = column.dtype.kind == "U"
            column = np.where(is_gap, "", column) if is_text else np.where(is_gap, np.nan, column)
    else:
        column = None
    return column if column is not None and column.shape == (n_rows,) else None


def text(column: Any) -> np.ndarray:
    """The array with bytes as text."""
    array = np.asarray(column)
    if array.dtype.kind not in "OS":
        return array
    cells = (
        cell.decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else str(cell)
        for cell in array
    )
    return np.array(list(cells), dtype=str)
