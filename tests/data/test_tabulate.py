"""From a frame to coded rows: what is left out is told, and any name is a name."""

import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from deccs.data.tabulate import TableWarning, coded_rows, tabulated

FRAME = pl.DataFrame(
    {
        "id": [f"row {place}" for place in range(20)],
        "size": np.linspace(0, 1, 20),
        "city": ["a", "b"] * 10,
        "same": [1] * 20,
    }
)


def test_what_is_left_out_is_told_once_with_its_reason():
    table = tabulated(FRAME)
    assert table.left_out == {
        "id": "named like an id, almost every value once",
        "same": "all values are 1",
    }
    with pytest.warns(
        TableWarning,
        match=r"Left out: 'id' \(id: named like an id, almost every value once\), 'same'",
    ):
        table.warn_of_what_is_left_out()


def test_what_the_user_leaves_out_is_not_told():
    table = tabulated(FRAME, {"id": "id", "same": "constant"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.warn_of_what_is_left_out()
    assert table.coding.names == ("size", "city")


def test_excluded_columns_take_no_part():
    table = tabulated(FRAME, exclude=["city", "id"])
    assert [told.name for told in table.kinds] == ["size", "same"]


@pytest.mark.parametrize("name", ["*", "^.*$", "level", "len", "", "at", "|rows"])
@pytest.mark.parametrize("kind", ["number", "category", "date", "ordered", "yes/no", "text"])
def test_any_name_is_a_name(name, kind):
    values = ["2024-01-31", "2024-02-28"] * 10 if kind == "date" else ["1", "0"] * 10
    frame = pl.DataFrame({name: values, "size": np.linspace(0, 1, 20)})
    plain = pl.DataFrame({"x": values, "size": np.linspace(0, 1, 20)})
    rows = tabulated(frame, {name: kind}).rows()
    assert_array_equal(rows.X, tabulated(plain, {"x": kind}).rows().X)


def test_a_lazy_frame_has_the_same_rows_and_may_have_none():
    table, lazy = tabulated(FRAME), tabulated(FRAME.lazy())
    assert_array_equal(lazy.rows().X, table.rows().X)
    assert coded_rows(FRAME[:0].lazy(), table.coding).shape == (0, 2)


def test_complete_numbers_are_plain():
    assert tabulated(FRAME.select("size")).is_plain
    assert not tabulated(FRAME.select("size", "city")).is_plain
    assert not tabulated(pl.DataFrame({"x": [0.5, None, 2]})).is_plain
