"""Rows read from an array, a file, a sparse matrix, a Parquet file or a source of the user's own."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_array_equal

from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import (
    ArrayRows,
    MemmapRows,
    ParquetRows,
    RowSource,
    SelectedRows,
    SparseRows,
    blocks,
    each_block,
    fingerprint_of,
    is_memory_map,
    rows_at_once,
    source_of,
)

NAMES = ["age", "income", "share"]


def table(n=50, seed=0):
    """Three columns on three scales, half of the values zero."""
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, 3)) * [80, 1e5, 1] * (rng.uniform(size=(n, 3)) > 0.5)


class Own:
    """The smallest source that a user can write."""

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def read(self, rows):
        return self.X[rows]


def memory_map(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def parquet(X, folder, rows_per_group=7, names=NAMES):
    """A file of many small row groups."""
    arrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = arrow.table(dict(zip(names, X.T, strict=True)))
    writer.write_table(columns, folder / "X.parquet", row_group_size=rows_per_group)
    return folder / "X.parquet"


def all_sources(X, folder):
    file = memory_map(X, folder)
    return {
        "array": source_of(X),
        "file": source_of(file),
        "view of a file": source_of(np.asarray(file)[:]),
        "sparse matrix": source_of(sp.csr_matrix(X)),
        "sparse array": source_of(sp.csr_array(X)),
        "parquet": ParquetRows(parquet(X, folder)),
        "own": Own(X),
    }


def test_each_kind_has_its_source(tmp_path):
    kinds = {name: type(source) for name, source in all_sources(table(), tmp_path).items()}
    assert kinds == {
        "array": ArrayRows,
        "file": MemmapRows,
        "view of a file": MemmapRows,
        "sparse matrix": SparseRows,
        "sparse array": SparseRows,
        "parquet": ParquetRows,
        "own": Own,
    }
    own = Own(table())
    assert source_of(own) is own and isinstance(own, RowSource)
    assert not isinstance(table(), RowSource)


@pytest.mark.parametrize(
    "rows",
    [
        slice(0, 50),
        slice(10, 20),
        slice(45, 100),  # beyond the end, as for arrays
        slice(0, 0),
        np.array([3, 3, 49, 0]),
        np.array([], dtype=np.int64),
        np.arange(50)[::-1],
    ],
    ids=str,
)
def test_all_sources_read_the_same_doubles(rows, tmp_path):
    X = table()
    for name, source in all_sources(X, tmp_path).items():
        block = source.read(rows)
        assert source.shape == (50, 3) and source.dtype == np.float64, name
        assert isinstance(block, np.ndarray) and block.dtype == np.float64, name
        assert_array_equal(block, X[rows], err_msg=name)


def test_single_precision_and_whole_numbers_are_read_as_doubles(tmp_path):
    for dtype in (np.float32, np.uint8):
        X = table().astype(dtype)
        for name, source in all_sources(X, tmp_path).items():
            if name != "own":
                block = source.read(slice(0, 9))
                assert block.dtype == np.float64, name
                assert_array_equal(block, X[:9].astype(np.float64), err_msg=name)
        assert source_of(X).dtype == dtype


def test_parquet_columns_in_the_order_asked_for(tmp_path):
    X = table()
    source = ParquetRows(parquet(X, tmp_path), columns=["share", "age"])
    assert source.shape == (50, 2)
    assert_array_equal(source.read(slice(5, 40)), X[5:40, [2, 0]])


def test_parquet_reads_a_group_once_for_rows_in_order(tmp_path, monkeypatch):
    source, groups = ParquetRows(parquet(table(), tmp_path)), []
    real = source.file.read_row_group

    class Watched:
        def read_row_group(self, group, columns, **options):
            groups.append(group)
            return real(group, columns=columns, **options)

    monkeypatch.setattr(source, "file", Watched())
    for place in blocks(50, 3):
        source.read(place)
    assert groups == list(range(8))  # 50 rows in groups of 7


def test_parquet_missing_values_are_nan(tmp_path):
    X = table()
    X[4, 1] = np.nan
    assert_array_equal(ParquetRows(parquet(X, tmp_path)).read(slice(0, 9)), X[:9])


def test_blocks_cover_every_row_once():
    assert list(blocks(5, 2)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(blocks(0, 2)) == []


def test_each_block_gives_all_rows_in_order_and_keeps_blocks_small(tmp_path):
    X = np.random.default_rng(0).normal(size=(9_000, 3))
    places, parts = zip(*each_block(source_of(X)), strict=True)
    assert [len(part) for part in parts] == [4096, 4096, 808]
    assert_array_equal(np.concatenate(parts), X)
    assert_array_equal(np.concatenate([X[place] for place in places]), X)
    wide = [len(part) for _, part in each_block(source_of(X), width=2**14)]  # a caller's own array
    assert set(wide[:-1]) == {rows_at_once(2**14)} == {256}


def test_rows_of_all_sources_are_equal(tmp_path):
    X = table()
    expected = Rows(source_of(X), fit_scaler(source_of(X)))
    some = torch.tensor([3, 3, 49, 0])
    for name, source in all_sources(X, tmp_path).items():
        rows = Rows(source, fit_scaler(source))
        assert len(rows) == 50
        assert rows[some].dtype == torch.float32
        assert_array_equal(rows[some], expected[some], err_msg=name)
        assert_array_equal(rows[slice(10, 20)], expected[slice(10, 20)], err_msg=name)


def test_selected_rows_are_rows_of_the_source(tmp_path):
    X, index = table(), np.array([7, 3, 3, 40, 12])
    for name, source in all_sources(X, tmp_path).items():
        selected = SelectedRows(source, index)
        assert isinstance(selected, RowSource) and selected.shape == (5, 3)
        assert selected.dtype == source.dtype
        assert_array_equal(selected.read(slice(1, 4)), X[[3, 3, 40]], err_msg=name)
        again = SelectedRows(selected, np.array([4, 0]))  # of selected rows, too
        assert_array_equal(again.read(slice(0, 2)), X[[12, 7]], err_msg=name)


def test_a_file_is_not_read_into_memory(tmp_path):
    file = memory_map(table(), tmp_path)
    assert is_memory_map(file)
    assert is_memory_map(np.asarray(file)[:10])
    assert not is_memory_map(table())
    for name, source in all_sources(table(), tmp_path).items():
        assert (Rows(source, fit_scaler(source))._table is not None) == (name == "array"), name


def test_rows_are_scaled_by_hand():
    source = source_of(np.array([[0.0, 10], [2, 30]]))
    rows = Rows(source, fit_scaler(source, "columns"))
    assert_array_equal(rows[torch.tensor([0, 1])], [[-1, -1], [1, 1]])


def test_fingerprints_tell_sources_apart(tmp_path):
    X, other = table(), table()
    other[49, 2] += 1e-9
    sources = all_sources(X, tmp_path)
    prints = {name: fingerprint_of(source) for name, source in sources.items()}
    assert prints["array"] == prints["file"] == prints["view of a file"]  # as it was before sources
    for kind in (source_of, Own, lambda Y: source_of(sp.csr_array(Y))):
        same, different = fingerprint_of(kind(X.copy())), fingerprint_of(kind(other))
        assert same == fingerprint_of(kind(X)) != different
    assert fingerprint_of(ParquetRows(parquet(other, tmp_path))) != prints["parquet"]
