"""Frames of any library: the same values give the same polars frame, and what cannot be read is named."""

import datetime as dt
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from deccs.data.frames import as_polars, is_frame, is_plain_frame

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

VALUES = {
    "whole": [1, 2, None],
    "real": [0.5, None, -2.0],
    "truth": [True, None, False],
    "word": ["x", "y", None],
    "day": [dt.date(2024, 1, 31), None, dt.date(1969, 12, 31)],
    "time": [dt.datetime(2024, 1, 31, 12, 30), None, dt.datetime(1, 1, 1)],
}


def read(X):
    return as_polars(X).collect()


def test_polars_and_pyarrow_give_the_same_frame():
    frame = pl.DataFrame(VALUES)
    assert_frame_equal(read(frame), frame)
    assert_frame_equal(read(frame.lazy()), frame)
    assert_frame_equal(read(frame.to_arrow()), frame)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_pandas_gives_the_same_frame(backend):
    columns = {name: pd.Series(values, dtype=object) for name, values in VALUES.items()}
    frame = pd.DataFrame(columns)
    assert_frame_equal(read(frame), pl.DataFrame(VALUES))
    simple = frame[["whole", "real", "truth", "word"]].convert_dtypes(dtype_backend=backend)
    expected = pl.DataFrame(VALUES).select(simple.columns)
    assert_frame_equal(read(simple), expected, check_dtypes=False)


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (pd.Series([1.5, np.nan]), [1.5, None]),
        (pd.Series([1, 2], dtype="uint8"), [1, 2]),
        (pd.Series([1.5, 2], dtype="float32"), [1.5, 2]),
        (pd.Series([1.5, 2], dtype="float16"), [1.5, 2]),
        (pd.Series(np.array([1.5, 2], dtype=np.longdouble)), [1.5, 2]),
        (pd.Series([1, pd.NA], dtype="Int64"), [1, None]),
        (pd.Series([True, pd.NA], dtype="boolean"), [True, None]),
        (pd.Series(["a", pd.NA], dtype="string"), ["a", None]),
        (pd.Series([True, None, np.nan], dtype=object), [True, None, None]),
        (pd.Series([1, "b", 2.5], dtype=object), ["1", "b", "2.5"]),
        (pd.Series([1, 2.5], dtype=object), [1, 2.5]),
        (pd.Series([2**70, 1], dtype=object), [2**70, 1]),
        (pd.Series([Decimal("1.5"), None], dtype=object), [1.5, None]),
        (pd.Series([" a ", " "], dtype=object), ["a", None]),
        (pd.Series(["\ud800", "a"], dtype=object), ["?", "a"]),
        (pd.Series([dt.timedelta(1), None]), [86_400.0, None]),
        (pd.Series([dt.time(0, 1), None], dtype=object), [60.0, None]),
        (pd.Series(pd.arrays.SparseArray([0, 7])), [0, 7]),
        (pd.Series(pd.Categorical(["b", None, "a"])), ["b", None, "a"]),
        (pd.Series(pd.Categorical([3, 1], ordered=True)), ["3", "1"]),
        (pd.Series(pd.Categorical([1, "1"], [1, "1"], ordered=True)), ["1", "1"]),
        (pd.Series(pd.interval_range(0, 2)), ["(0, 1]", "(1, 2]"]),
        (pd.Series(pd.period_range("2020-02", periods=1, freq="M")), [dt.datetime(2020, 2, 1)]),
        (
            pd.Series(pd.to_datetime(["2024-07-01 02:00"])).dt.tz_localize("Europe/Berlin"),
            [dt.datetime(2024, 7, 1)],
        ),
        (
            pd.Series(pd.array([dt.datetime(2024, 7, 1, tzinfo=dt.UTC)])).astype(
                pd.ArrowDtype(pa.timestamp("s", "UTC"))
            ),
            [dt.datetime(2024, 7, 1)],
        ),
        (
            pd.Series(pd.array([dt.date(2024, 7, 1)], pd.ArrowDtype(pa.date32()))),
            [dt.date(2024, 7, 1)],
        ),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_columns_of_pandas(series, expected):
    (column,) = read(pd.DataFrame({"x": series}))
    assert column.to_list() == expected


def test_an_ordered_type_keeps_its_order():
    levels = pd.Categorical(["b", "c"], categories=["c", "a", "b"], ordered=True)
    (column,) = read(pd.DataFrame({"x": levels}))
    assert column.dtype.categories.to_list() == ["c", "a", "b"]


def test_gaps_of_polars_are_one_thing():
    frame = pl.DataFrame({"a": [0.5, float("nan"), None], "b": ["x", "", "  "]})
    assert read(frame).rows() == [(0.5, "x"), (None, None), (None, None)]


def test_reading_twice_changes_nothing():
    once = read(pl.DataFrame({**VALUES, "span": [dt.timedelta(1), None, None]}))
    assert_frame_equal(read(once), once)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), "columns of the same name: 'a'"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "columns of the same name: '1'"),
        (pa.table([[1], [2]], names=["a", "a"]), "columns of the same name: 'a'"),
        (pd.DataFrame({"z": [1j]}), "Column 'z' has complex numbers"),
        (pd.DataFrame([[1]], columns=pd.Index(["\ud800"], dtype=object)), "cannot be written"),
    ],
)
def test_what_cannot_be_read_is_named(frame, words):
    with pytest.raises(ValueError, match=words):
        as_polars(frame)


def test_names_become_text():
    assert read(pd.DataFrame([[1, 2]])).columns == ["0", "1"]
    several = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])
    assert read(pd.DataFrame([[1, 2]], columns=several)).columns == ["('a', 'b')", "('a', 'c')"]


def test_what_a_frame_is():
    class Special(pd.DataFrame):
        pass

    for X in (pd.DataFrame(), Special(), pl.DataFrame(), pl.LazyFrame(), pa.table({"a": [1]})):
        assert is_frame(X)
    for X in (np.ones((2, 2)), [[1, 2]], pd.Series([1]), pl.Series([1]), "a.csv", None):
        assert not is_frame(X)


def test_plain_frames_are_of_complete_numbers():
    for library in (pd, pl):
        assert is_plain_frame(library.DataFrame({"a": [1, 2], "b": [0.5, 1]}))
        assert not is_plain_frame(library.DataFrame({"a": [1, None]}))
        assert not is_plain_frame(library.DataFrame({"a": ["1", "2"]}))
        assert not is_plain_frame(library.DataFrame({"a": [Decimal(1)]}))
        assert not is_plain_frame(library.DataFrame({"a": [dt.timedelta(1)]}))
    assert not is_plain_frame(pl.LazyFrame({"a": [1]}))
