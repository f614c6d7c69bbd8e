"""From frames to cells: worked values, and laws: order of columns, types and neighbors change no cell."""

import datetime as dt

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs.data import scanned
from deccs.data.coding import (
    DAY,
    LONGEST_LEVEL,
    MOST_LEVELS,
    TEXT_CELLS,
    Coding,
    Column,
    levels_of,
)
from deccs.data.kinds import KindError
from deccs.data.scanned import ScannedRows
from deccs.data.tabulate import coded_rows, tabulated
from tests.helpers.frames import mixed

NAN = np.nan


def table(values, kinds=None):
    return tabulated(pl.DataFrame(values, strict=False), kinds)


def cells(values, kinds=None):
    return table(values, kinds).rows().X


def test_a_column_of_each_kind_by_hand():
    frame = {
        "n": [1.5, None, 3.0],
        "flag": ["no", "Yes", None],
        "city": ["b", "a", "b"],
        "shirt": ["L", None, "S"],
        "day": [dt.date(1970, 1, 2), None, dt.date(1970, 1, 1)],
    }
    assert_array_equal(
        cells(frame, {"city": "category"}),  # b is more frequent: level 0
        [[1.5, 0, 0, 1, 1], [NAN, 1, 1, NAN, NAN], [3, NAN, 0, 0, 0]],
    )


def test_a_date_has_weekday_season_and_hour():
    """2000-01-01 was a Saturday, 10,957 days after 1970-01-01, which was a Thursday."""
    low, high = dt.datetime(2000, 1, 1, 6), dt.datetime(2002, 1, 1)
    coding = table({"at": [low, high, None]}).coding
    assert coding.columns[0].parts == ("weekday", "season", "hour")
    day, weekday, _, _, sine, cosine = coding(pl.DataFrame({"at": [low]}))[0]
    assert (day, weekday) == (10_957.25, 5)
    assert_allclose([sine, cosine], [1, 0], atol=1e-12)  # a quarter of the day
    season = coding(pl.DataFrame({"at": [dt.datetime(1970, 1, 1)]}))[0, 2:4]
    assert_allclose(season, [0, 1])
    assert np.isnan(coding(pl.DataFrame({"at": [None]}))).all()


def test_the_weights_of_the_cells_of_a_column_have_length_one():
    coding = table({**mixed().to_dict(), "note": ["a b c"] * 60}, {"note": "text"}).coding
    for place in range(len(coding.columns)):
        weights = [cell.weight for cell in coding.cells if cell.column == place]
        assert_allclose(np.square(weights).sum(), 1)
    assert_array_equal(
        coding.first_cells,
        [
            next(i for i, cell in enumerate(coding.cells) if cell.column == place)
            for place in range(7)
        ],
    )


def test_rare_levels_are_pooled_and_unseen_ones_are_among_them():
    values = ["a"] * 8 + ["b"] * 6 + ["c", "d"]  # fewer than 5 rows are too few
    coding = table({"x": values, "y": np.arange(16) / 7}).coding
    assert coding.columns[0].levels == ("a", "b", "other")
    new = pl.DataFrame({"x": ["b", "c", "unseen", "other", None], "y": [0.5] * 5})
    assert_array_equal(coding(new)[:, 0], [1, 2, 2, 2, NAN])


def test_a_level_named_other_is_not_mixed_up_with_the_pool():
    values = ["other"] * 8 + ["b"] * 6 + ["c", "d"]
    coding = table({"x": values, "y": np.arange(16) / 7}).coding
    assert coding.columns[0].levels == ("other", "b", "(other)")
    new = pl.DataFrame({"x": ["other", "c", "(other)"], "y": [0.5] * 3})
    assert_array_equal(coding(new)[:, 0], [0, 2, 2])


def test_without_a_pool_an_unseen_level_is_a_gap():
    coding = table({"x": ["a", "b"] * 8, "y": np.arange(16) / 7}).coding
    assert_array_equal(coding(pl.DataFrame({"x": ["c", "b"], "y": [0.5] * 2}))[:, 0], [NAN, 1])


def test_a_hundred_thousand_levels_become_a_thousand_and_others():
    counts = {f"level {place}": 1 + place % 2 for place in range(100_000)}
    levels, has_others = levels_of(counts)
    assert len(levels) == MOST_LEVELS + 1 and has_others
    assert levels[:2] == ("level 1", "level 10001") and levels[-1] == "other"  # twice, then by name


@pytest.mark.parametrize("kind", ["category", "ordered"])
def test_the_coding_of_many_levels_can_be_stored(kind):
    coding = table({"x": [f"{place}" for place in range(3_000)]}, {"x": kind}).coding
    for column in coding.columns:
        column.check_stored()
    coding.check_stored()


def test_a_value_or_nothing():
    coding = table({"x": ["title", None, "title"], "y": [1.5, 2, 2.5]}).coding
    assert coding.columns[0].is_flag
    assert_array_equal(coding(pl.DataFrame({"x": ["Dr", None], "y": [1, 2]}))[:, 0], [1, 0])


def test_no_or_nothing_is_not_taken_for_a_yes():
    for no in ("no", 0, False, 0.0):
        assert_array_equal(cells({"x": [no, None, no], "y": [1.5, 2, 2.5]})[:, 0], [0, NAN, 0])


def test_levels_in_order():
    frame = {"x": pl.Series(["b", "c", None], dtype=pl.Enum(["c", "a", "b"])), "y": [1, 2, 2.5]}
    assert_array_equal(cells(frame)[:, 0], [2, 0, NAN])
    assert table({"x": ["M", "XL", "s"] * 9, "y": np.arange(27) / 7}).coding.columns[0].levels == (
        "s",
        "m",
        "xl",
    )
    numbers = {"x": [10, 9, 2, 10], "y": [1, 2, 3, 2.5]}
    assert_array_equal(cells(numbers, {"x": "ordered"})[:, 0], [2, 1, 0, 2])
    assert_array_equal(
        cells({**numbers, "x": ["10", "9", "2", "10"]}, {"x": "ordered"})[:, 0], [2, 1, 0, 2]
    )


def test_ordered_levels_of_any_text_are_found():
    long = "a" * (LONGEST_LEVEL + 50)
    levels = [long, " b  c ", "tab\tinside", "\u200b", "d"]
    frame = {"x": pl.Series(levels, dtype=pl.Enum(levels)), "y": [1, 2, 3, 4, 2.5]}
    assert_array_equal(cells(frame)[:, 0], [0, 1, 2, 3, 4])


def test_text_cells_are_rows_of_length_one():
    texts = ["the red house", "the red house", "", None, "a blue car"]
    coded = cells({"x": texts, "y": [1, 2, 3, 4, 2.5]}, {"x": "text"})[:, :TEXT_CELLS]
    assert_allclose(np.linalg.norm(coded[[0, 1, 4]], axis=1), 1)
    assert_array_equal(coded[0], coded[1])
    assert np.isnan(coded[2:4]).all()
    assert coded[0] @ coded[4] < 0.5  # nothing in common but chance


# Laws


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_columns_and_further_columns_change_no_cell(seed):
    frame = mixed(seed=seed)
    coding = tabulated(frame).coding
    shuffled = frame.select(["born", "city", "visits", "shirt", "size", "smoker"])
    shuffled = shuffled.with_columns(pl.lit("more").alias("further"))
    assert_array_equal(coded_rows(shuffled, coding).X, coded_rows(frame, coding).X)


@pytest.mark.parametrize("seed", range(5))
def test_a_row_alone_is_coded_as_among_others(seed):
    frame = mixed(seed=seed)
    coding = tabulated(frame).coding
    together = coded_rows(frame, coding).X
    alone = [coded_rows(frame[place], coding).X[0] for place in range(frame.height)]
    assert_array_equal(alone, together)
    assert coded_rows(frame[:0], coding).X.shape == (0, len(coding.cells))


@pytest.mark.parametrize("seed", range(5))
def test_gaps_are_nan_in_exactly_the_cells_of_their_column(seed):
    frame = mixed(seed=seed)
    whole = tabulated(frame)
    column_of = [cell.column for cell in whole.coding.cells]
    missing = np.column_stack([column.is_null() for column in frame])
    assert_array_equal(np.isnan(whole.rows().X), missing[:, column_of])


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("visits", [pl.Float64, pl.Int8, pl.UInt32, pl.String, pl.Decimal(10, 2)]),
        ("smoker", [pl.Categorical, pl.Enum(["yes", "no"])]),
        ("city", [pl.Categorical, pl.Enum(["Hamar", "Oslo", "Bergen", "Rome"])]),
        ("shirt", [pl.Categorical]),
        ("born", [pl.Datetime("ms"), pl.Datetime("ns"), pl.Datetime("us", "UTC"), pl.String]),
    ],
)
def test_other_types_give_the_same_cells(name, types):
    frame = mixed()
    coding = tabulated(frame).coding
    for dtype in types:
        other = frame.with_columns(pl.col(name).cast(dtype))
        assert_array_equal(coded_rows(other, coding).X, coded_rows(frame, coding).X, str(dtype))


def test_other_types_give_the_same_coding():
    """Numbers as doubles, levels as categories, days as times: as pandas reads a file."""
    frame = mixed()
    other = frame.with_columns(
        pl.col("visits").cast(pl.Float64),
        pl.col("city", "smoker").cast(pl.Categorical),
        pl.col("born").cast(pl.Datetime("ns")),
    )
    assert tabulated(other).coding == tabulated(frame).coding


@pytest.mark.parametrize("backend", ["object", "numpy_nullable", "pyarrow", "table"])
def test_pandas_and_pyarrow_give_the_same_cells(backend):
    pd = pytest.importorskip("pandas")
    frame = mixed()
    other = frame.to_arrow()
    if backend != "table":
        other = pd.DataFrame(
            {column.name: pd.Series(column.to_list(), dtype=object) for column in frame}
        )
    if backend in ("numpy_nullable", "pyarrow"):
        other = other.convert_dtypes(dtype_backend=backend)
    expected = tabulated(frame)
    assert tabulated(other).coding == expected.coding
    assert_array_equal(coded_rows(other, expected.coding).X, expected.rows().X)


def test_times_of_a_zone_and_iso_texts_are_the_same_moments():
    moments = [dt.datetime(2024, 7, day, hour, 30) for day in (1, 9, 28) for hour in (0, 11, 23)]
    coding = table({"at": moments}).coding
    expected = coding(pl.DataFrame({"at": moments}))
    as_times = pl.Series("at", moments)
    zoned = as_times.dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin")
    for values in (zoned, [f"{at:%Y-%m-%dT%H:%M}Z" for at in moments], [str(at) for at in moments]):
        assert_array_equal(coded_rows(pl.DataFrame({"at": values}), coding).X, expected)


def test_truth_is_coded_alike_however_it_is_written():
    coding = table({"x": [True, False] * 8, "y": np.arange(16) / 7}).coding
    for yes, no in ((True, False), (1, 0), (1.0, 0.0), ("True", "False"), ("ja", "nein")):
        coded = coding(pl.DataFrame({"x": [yes, no], "y": [0.5, 1]}))
        assert_array_equal(coded[:, 0], [1, 0])


def test_3_and_3_0_are_one_level():
    coding = table({"x": [3, 4] * 8, "y": np.arange(16) / 7}, {"x": "category"}).coding
    for values in ([3.0, 4.0], ["3", "4"], [3, 4]):
        assert_array_equal(coding(pl.DataFrame({"x": values, "y": [0.5, 1]}))[:, 0], [0, 1])


def test_rows_coded_in_batches_equal_those_coded_at_once(monkeypatch):
    frame = mixed(n=5_000)
    whole = tabulated(frame)
    monkeypatch.setattr(scanned, "AT_ONCE", 1_000)
    batches = list(ScannedRows(frame.lazy(), whole.coding, 5_000).stream(size=64))
    assert {len(batch) for batch in batches} == {64, 5_000 % 64}
    assert_array_equal(np.concatenate(batches), whole.rows().X)


def test_whole_numbers_are_known_beside_gaps():
    columns = table({"x": [1.0, None, 3], "y": [1.5, 2, 2]}).coding.columns
    assert [column.is_whole for column in columns] == [True, False]


# What cannot be coded


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1", "two"], "Column 'x' must be numbers, got the text 'two'"),
        ([1.0, float("inf")], "Column 'x' has infinite values"),
        ([dt.date(2024, 1, 1)], "Column 'x' must be numbers, got Date"),
        ([[1], [2]], "Column 'x' must be numbers, got List"),
        ([b"a"], "Column 'x' must be numbers, got Binary"),
    ],
)
def test_what_is_no_number_is_named(values, words):
    coding = Coding((Column("x", "number"),))
    with pytest.raises(ValueError, match=words):
        coded_rows(pl.DataFrame({"x": values}), coding)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["2024-01-31", "yesterday"], "Column 'x' must be dates.*got 'yesterday'"),
        (["2024-02-31"], "Column 'x' must be dates.*got '2024-02-31'"),
        ([1.5], "Column 'x' must be dates, got Float64"),
        ([{"a": 1}], "Column 'x' must be dates, got Struct"),
    ],
)
def test_what_is_no_date_is_named(values, words):
    with pytest.raises(ValueError, match=words):
        coded_rows(pl.DataFrame({"x": values}), Coding((Column("x", "date"),)))


@pytest.mark.parametrize("values", [[[1], [2]], [b"\xff"], [{"a": 1}]])
@pytest.mark.parametrize("kind", ["category", "yes/no", "ordered"])
def test_what_has_no_levels_is_named(values, kind):
    coding = Coding((Column("x", kind, levels=("a", "b")),))
    with pytest.raises(ValueError, match="Column 'x' must have single values, got"):
        coded_rows(pl.DataFrame({"x": values}), coding)


def test_absent_columns_are_named():
    coding = tabulated(mixed()).coding
    with pytest.raises(ValueError, match="lacks columns the model needs: 'size', 'born'. It has"):
        coded_rows(mixed().drop("size", "born"), coding)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pl.DataFrame(), "X has no columns"),
        (mixed()[:0], "X has 0 row"),
        (mixed()[:1], "X has 1 row"),
        (pl.DataFrame({"x": [None, None]}), r"X has no column to cluster \(x: no values\)"),
    ],
)
def test_frames_with_nothing_to_cluster(frame, words):
    with pytest.raises(KindError, match=words):
        tabulated(frame).coding


@pytest.mark.parametrize(
    "column",
    [
        Column("x", "category"),
        Column("x", "number", levels=("a",)),
        Column("x", "category", levels=("a", "a")),
        Column("x", "date", parts=("minute",)),
        Column("x", "category", levels=tuple(map(str, range(MOST_LEVELS + 2)))),
    ],
)
def test_columns_of_files_that_cannot_code_are_refused(column):
    with pytest.raises(ValueError, match="the column 'x' has"):
        column.check_stored()


def test_a_day_has_86400_seconds():
    assert DAY == 24 * 60 * 60
