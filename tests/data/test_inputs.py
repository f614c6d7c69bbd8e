"""What users hand in, as one source of rows."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator

from deccs.data.inputs import CheckedRows, as_source, output_dtype
from deccs.data.scalers import fit_scaler
from deccs.data.source import ArrayRows, MemmapRows, SparseRows, source_of
from deccs.data.tabulate import TableWarning

X = np.arange(12.0).reshape(4, 3)


class Own:
    """A source of four rows that returns what it is told to."""

    shape, dtype = (4, 3), np.dtype(np.float64)

    def __init__(self, values=X):
        self.values = values

    def read(self, rows):
        return self.values[rows]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (X, ArrayRows),
        (X.tolist(), ArrayRows),
        (torch.tensor(X, requires_grad=True), ArrayRows),
        (X.reshape(4, 3, 1), ArrayRows),
        (sp.csc_matrix(X), SparseRows),
        (ArrayRows(X), ArrayRows),
        (SparseRows(sp.coo_array(X)), SparseRows),
        (Own(), CheckedRows),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_input_becomes_a_source(given, kind):
    estimator = BaseEstimator()
    source = as_source(estimator, given, reset=True)
    assert type(source) is kind
    assert source.shape == (4, 3) and estimator.n_features_in_ == 3
    assert_array_equal(source.read(slice(1, 3)), X[1:3])


def test_an_array_is_not_copied(tmp_path):
    assert as_source(BaseEstimator(), X, reset=True).X is X
    np.save(tmp_path / "X.npy", X)
    file = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert type(as_source(BaseEstimator(), file, reset=True)) is MemmapRows


def test_a_checked_source_is_not_checked_twice():
    first = as_source(BaseEstimator(), Own(), reset=True)
    assert as_source(BaseEstimator(), first, reset=True) is first


def test_a_source_has_the_width_of_the_fit():
    estimator = BaseEstimator()
    estimator.n_features_in_ = 2
    with pytest.raises(ValueError, match="X has 3 features, but BaseEstimator is expecting 2"):
        as_source(estimator, Own(), reset=False)


def test_a_source_has_no_feature_names_of_an_earlier_fit():
    pandas = pytest.importorskip("pandas")
    estimator = BaseEstimator()
    as_source(estimator, pandas.DataFrame(X, columns=["a", "b", "c"]), reset=True)
    assert list(estimator.feature_names_in_) == ["a", "b", "c"]
    as_source(estimator, Own(), reset=True)
    assert not hasattr(estimator, "feature_names_in_")


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (4, 0)])
def test_a_source_without_rows_or_columns_is_refused(shape):
    own = Own()
    own.shape = shape
    with pytest.raises(ValueError, match=f"shape \\({shape[0]}, {shape[1]}\\), but at least 2"):
        as_source(BaseEstimator(), own, reset=True)


def test_infinite_values_of_a_source_are_refused_and_missing_ones_are_read():
    values = X.copy()
    values[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"contains infinity: Own\.read\(slice\(0, 4"):
        as_source(BaseEstimator(), Own(values), reset=True)
    values[2, 1] = np.nan
    source = as_source(BaseEstimator(), Own(values), reset=True)
    assert_array_equal(source.read(slice(1, 4)), values[1:4])
    values[2, 1] = np.inf  # it has changed since
    with pytest.raises(ValueError, match=r"contains infinity: Own\.read\(slice\(2, 4"):
        source.read(slice(2, 4))


def test_a_source_that_returns_the_wrong_shape_is_named():
    for values in (X[:, :2], X[:, :, None], X[:3]):
        with pytest.raises(ValueError, match=r"Own\.read was asked for 4 rows of 3 columns, and"):
            as_source(BaseEstimator(), Own(values), reset=True)


@pytest.mark.parametrize("given", [Own, np.array, torch.tensor], ids=["source", "array", "tensor"])
def test_columns_and_rows_without_any_value_are_told(given):
    values = X.copy()
    values[:, 1] = np.nan
    with pytest.warns(TableWarning, match=r"Columns without any value have no effect: 1 \(counted"):
        as_source(BaseEstimator(), given(values), reset=True)
    values = X.copy()
    values[2] = np.nan
    with pytest.warns(
        TableWarning, match=r"1 rows have no value in any column, the first is row 2"
    ):
        as_source(BaseEstimator(), given(values), reset=True)


def test_gaps_of_a_sparse_matrix_are_refused():
    gaps = sp.csr_matrix(np.where(X == 5, np.nan, X))
    with pytest.raises(ValueError, match="contains NaN"):
        as_source(BaseEstimator(), gaps, reset=True)


def test_gaps_that_the_fit_had_not_count_as_the_mean_with_a_warning():
    estimator = BaseEstimator()
    as_source(estimator, X, reset=True)
    estimator.scaler_ = fit_scaler(source_of(X), "columns")
    values = X[:2].copy()
    values[0, 2] = np.nan
    with pytest.warns(TableWarning, match=r"1 missing values \(columns 2\)"):
        source = as_source(estimator, values, reset=False)
    assert source.read(slice(0, 1))[0].tolist() == [0, 1, 6.5]  # (2 + 5 + 8 + 11) / 4


def test_kinds_are_those_of_a_frame():
    estimator = BaseEstimator()
    estimator.kinds = {"a": "category"}
    with pytest.raises(ValueError, match=r"X has no column names. Give a data frame"):
        as_source(estimator, X, reset=True)


def test_a_source_may_read_other_numbers_than_doubles():
    source = as_source(BaseEstimator(), Own(X.astype(np.int16)), reset=True)
    block = source.read(np.array([3, 0]))
    assert block.dtype == np.float64
    assert_array_equal(block, X[[3, 0]])


def test_output_has_the_precision_of_the_input():
    assert output_dtype(source_of(X.astype(np.float32))) is np.float32
    assert output_dtype(source_of(X)) is output_dtype(source_of(X.astype(int))) is np.float64


@pytest.mark.filterwarnings("error")
def test_values_near_the_largest_double_are_taken_without_a_warning():
    huge = np.array([[1.7e308, -1.7e308], [-1.7e308, 1.7e308], [1.7e308, 1.7e308]])
    assert_array_equal(as_source(BaseEstimator(), huge, reset=True).read(slice(0, 3)), huge)


class Annotated:
    """What AnnData looks like: rows without end to anyone who asks for them by number."""

    X, obs, var, shape = X, {}, {}, X.shape

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        return Annotated()


def test_annotated_data_is_answered_at_once_with_what_to_give():
    with pytest.raises(ValueError, match=r"X is an Annotated object\. Give its matrix: adata\.X"):
        as_source(BaseEstimator(), Annotated(), reset=True)


class Endless:
    def __len__(self):
        return 4

    def __getitem__(self, rows):
        return Endless()


@pytest.mark.parametrize(
    "given",
    [
        b"data.csv",
        {"x": [1, 2], "y": [3, 4]},
        {1, 2, 3},
        (row for row in X),
        iter(X),
        Endless(),
        None,
        7,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_table_is_named_at_once(given):
    with pytest.raises(ValueError, match=f"X must be an array, .*got a {type(given).__name__}"):
        as_source(BaseEstimator(), given, reset=True)


@pytest.mark.parametrize("kind", [str, Path])
def test_text_and_paths_name_files(kind, tmp_path):
    with pytest.raises(
        ValueError, match=r"There is no file .*data\.csv\. Give a file that ends in"
    ):
        as_source(BaseEstimator(), kind(tmp_path / "data.csv"), reset=True)
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3,5\n4,1\n")
    source = as_source(BaseEstimator(), kind(tmp_path / "data.csv"), reset=True)
    assert source.read(slice(0, 3)).tolist() == [[1, 2], [3, 5], [4, 1]]


def test_open_files_and_cursors_are_not_read(tmp_path):
    with (
        (tmp_path / "x.csv").open("w") as file,
        pytest.raises(ValueError, match="got a TextIOWrapper. Give the path of the file"),
    ):
        as_source(BaseEstimator(), file, reset=True)
    with (
        sqlite3.connect(":memory:") as database,
        pytest.raises(ValueError, match="got a Cursor"),
    ):
        as_source(BaseEstimator(), database.execute("select 1"), reset=True)


def test_a_million_columns_are_refused_with_advice():
    wide = sp.random(5, 1_000_000, 1e-4, "csr", random_state=0)
    with pytest.raises(ValueError, match=r"1,000,000 columns.*TruncatedSVD\(100\)"):
        as_source(BaseEstimator(), wide, reset=True)
    with pytest.raises(ValueError, match=r"200,000 columns.*PCA\(100\)"):
        as_source(BaseEstimator(), np.zeros((2, 200_000), np.float32), reset=True)
