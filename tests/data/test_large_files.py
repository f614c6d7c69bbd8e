"""Files that stay on the disk: one or many, read in order and at random, changed or gone while they are read."""

import os

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from deccs.data import learning_rows as learning
from deccs.data.learning_rows import most_rows, read_in_parts, rows_to_learn_from, survey
from deccs.data.scanned import ScannedRows, reblocked, survey_frame
from deccs.data.source import ArrayRows, in_order, source_of
from deccs.data.tables import TableError, read_like, read_table
from deccs.data.tables.raw import GoneError
from deccs.data.tables.readers import read_raw
from tests.helpers.large import N_LEARNED, blobs_of, frame_of, lower_limits

N_ROWS = 2_000
X, _ = blobs_of(N_ROWS)
X[::7, 1] = np.nan
FRAME = frame_of(X, city=np.array(["Ulm", "Kiel", "Bonn"])[np.arange(N_ROWS) % 3])


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    lower_limits(monkeypatch)


def split(folder, frame=FRAME, n_files=5, **options):
    """The frame in several files of a folder."""
    folder.mkdir(exist_ok=True)
    size = -(-frame.height // n_files)
    for number, part in enumerate(frame.iter_slices(size)):
        part.write_parquet(folder / f"part-{number}.parquet", **options)
    return folder


def cells(table):
    return np.concatenate(list(in_order(table.rows, 64)))


def expected(table):
    levels = dict(zip(table.coding.columns[4].levels, range(3), strict=True))
    return np.column_stack([X, [levels[city] for city in FRAME["city"]]])


# The sample.


@pytest.mark.parametrize("n_rows", [301, 1_000, 10**9])
def test_the_sample_is_always_the_same_in_order_and_without_repeats(n_rows):
    index = rows_to_learn_from(n_rows, 300)
    assert len(index) == 300 and index[0] >= 0 and index[-1] < n_rows
    assert (np.diff(index) > 0).all()
    assert_array_equal(index, rows_to_learn_from(n_rows, 300))


def test_the_sample_is_spread_evenly():
    index = rows_to_learn_from(1_000_000, 10_000)
    in_each_tenth = np.bincount(index // 100_000, minlength=10)
    assert (np.abs(in_each_tenth - 1_000) < 150).all()  # five deviations


def test_few_rows_are_all_learned_from():
    assert_array_equal(rows_to_learn_from(7, 300), np.arange(7))
    assert learning.learning_rows(ArrayRows(X[:N_LEARNED])) is None


def test_wide_rows_are_fewer(monkeypatch):
    monkeypatch.undo()
    assert (most_rows(4), most_rows(2**10), most_rows(2**17)) == (2**18, 2**16, 2**14)


def test_rows_in_single_precision_are_learned_from_in_single_precision():
    single = source_of(X.astype(np.float32))
    rows = read_in_parts(single, np.array([3, 5]))
    assert rows.dtype == np.float32
    assert_array_equal(rows, X[[3, 5]].astype(np.float32))


class Sequential(ArrayRows):
    is_sequential = True


def test_the_survey_by_hand(monkeypatch):
    monkeypatch.setattr(learning, "MOST_ROWS", 3)
    monkeypatch.setattr(learning, "LEAST_ROWS", 1)
    rows = np.array([[1, np.nan], [np.nan, np.nan], [3, 4], [np.nan, np.nan], [5, 6]])
    seen = survey(Sequential(rows))
    assert seen.n_missing.tolist() == [2, 3] and seen.bare == (2, 1)
    index = seen.learning_rows.index
    assert len(index) == 3
    assert_array_equal(seen.learning_rows.source.read(slice(0, 3)), rows[index])


# Rows that are scanned.


@pytest.mark.parametrize("sizes", [[5], [1, 1, 1, 1, 1], [2, 3], [4, 0, 1], []])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_blocks_of_another_size_have_the_same_rows(sizes, size):
    rows = np.arange(sum(sizes))
    blocks = list(reblocked(np.split(rows, np.cumsum(sizes))[: len(sizes)], size))
    assert [len(block) for block in blocks[:-1]] == [size] * (len(blocks) - 1)
    assert [row for block in blocks for row in block] == rows.tolist()


def test_scanned_rows_are_read_from_any_place_in_any_order(tmp_path):
    FRAME.write_parquet(tmp_path / "x.parquet", row_group_size=100)
    table = read_table(tmp_path / "x.parquet")
    assert isinstance(table.rows, ScannedRows) and table.rows.shape == (N_ROWS, 5)
    whole = expected(table)
    for rows in (slice(0, 7), slice(150, 1_300), slice(1_990, None), slice(5, 5), slice(3, 99, 10)):
        assert_array_equal(table.rows.read(rows), whole[rows])
    rng = np.random.default_rng(0)
    for rows in (rng.integers(0, N_ROWS, 50), np.array([1_999, 0, 0]), np.array([], dtype=int)):
        assert_array_equal(table.rows.read(rows), whole[rows])
    assert_array_equal(np.concatenate(list(table.rows.stream(64, 130, 700))), whole[130:700])


def test_the_survey_of_a_frame_counts_all_gaps_and_draws_the_sample(tmp_path):
    seen = survey_frame(FRAME.lazy().fill_nan(None), N_ROWS)
    assert seen.n_missing == {"a": 0, "b": -(-N_ROWS // 7), "c": 0, "d": 0, "city": 0}
    assert_array_equal(seen.index, rows_to_learn_from(N_ROWS, N_LEARNED))
    assert_array_equal(seen.sample["a"], X[seen.index, 0])
    assert seen.n_rows == N_ROWS


# One file, many, and how they are named.


@pytest.fixture(params=["1,000 groups", "folder", "nested", "pattern", "csv", "jsonl"])
def place(request, tmp_path):
    """The same frame in files of several kinds."""
    if request.param == "1,000 groups":
        FRAME.write_parquet(tmp_path / "x.parquet", row_group_size=2)
        return tmp_path / "x.parquet"
    if request.param == "csv":
        FRAME.fill_nan(None).write_csv(tmp_path / "x.csv")
        return tmp_path / "x.csv"
    if request.param == "jsonl":
        FRAME.fill_nan(None).write_ndjson(tmp_path / "x.jsonl")
        return tmp_path / "x.jsonl"
    folder = split(tmp_path / "all")
    if request.param == "nested":
        for number in range(5):
            month = folder / f"month={number}"
            month.mkdir()
            (folder / f"part-{number}.parquet").rename(month / "0.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-0.parquet.crc").write_bytes(b"x")
    (folder / "README.md").write_text("Sales of 2024.")
    return folder / "part-*.parquet" if request.param == "pattern" else folder


def test_all_kinds_of_files_have_the_same_rows(place):
    table = read_table(place)
    assert table.is_large and table.feature_names == ("a", "b", "c", "d", "city")
    assert_array_equal(cells(table), expected(table))
    assert_array_equal(table.sample.index, rows_to_learn_from(N_ROWS, N_LEARNED))
    missing = {kind.name: kind.n_missing for kind in table.kinds}
    assert missing == {"a": 0, "b": -(-N_ROWS // 7), "c": 0, "d": 0, "city": 0}
    like = read_like(place, table.preprocessing(), table.coding)
    assert like.is_large
    assert_array_equal(cells(like), expected(table))


def test_files_are_in_the_order_of_their_names_and_columns_are_found_by_name(tmp_path):
    folder = split(tmp_path / "all")
    last = pl.read_parquet(folder / "part-4.parquet")
    last.select("city", "d", "c", "b", "a", more=pl.lit(1)).write_parquet(folder / "part-4.parquet")
    table = read_table(folder)
    assert_array_equal(cells(table), expected(table))
    assert any("not all files have them: more" in note for note in table.notes)


def test_numbers_of_several_types_and_files_without_any_value_are_one_column(tmp_path):
    rng = np.random.default_rng(0)
    parts = [
        pl.DataFrame({"x": rng.integers(0, 99, 200), "y": rng.normal(size=200)}),
        pl.DataFrame({"x": rng.normal(size=200), "y": [None] * 200}),
        pl.DataFrame({"x": rng.normal(size=200).astype(np.float32), "y": rng.normal(size=200)}),
    ]
    for number, part in enumerate(parts):
        part.write_parquet(tmp_path / f"{number}.parquet")
    rows = cells(read_table(tmp_path))
    for column, name in enumerate("xy"):
        whole = np.concatenate([part[name].cast(pl.Float64).to_numpy() for part in parts])
        assert_array_equal(rows[:, column], whole)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda frame: frame.drop("c"), "has no column 'c'"),
        (lambda frame: frame.with_columns(c=pl.lit("1.5")), "column 'c' holds String"),
        (lambda frame: frame.with_columns(city=pl.lit(3)), "column 'city' holds Int32"),
    ],
)
def test_a_file_with_other_columns_or_types_is_named(tmp_path, change, told):
    folder = split(tmp_path / "all")
    path = folder / "part-3.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    with pytest.raises(TableError, match=rf"part-3\.parquet.*{told}"):
        read_table(folder)


@pytest.mark.parametrize("is_large", [True, False])
@pytest.mark.parametrize("damage", ["truncated", "no end", "flipped", "empty", "text"])
def test_a_damaged_file_among_good_ones_is_named(tmp_path, monkeypatch, damage, is_large):
    if not is_large:  # then another process reads it, as users have it
        monkeypatch.undo()
    folder = split(tmp_path / "all", compression="uncompressed")
    path = folder / "part-2.parquet"
    content = path.read_bytes()
    path.write_bytes(
        {
            "truncated": content[: len(content) // 2],
            "no end": content[:-4],
            "flipped": content[:30] + bytes(range(256)) + content[286:],
            "empty": b"",
            "text": b"a,b\n1,2\n",
        }[damage]
    )
    with pytest.raises(TableError) as raised:
        read_table(folder)
    assert "part-2.parquet" in str(raised.value) and "part-1" not in str(raised.value)


@pytest.mark.parametrize(
    ("make", "given", "told"),
    [
        (lambda folder: None, "none*.parquet", "no file is there"),
        (lambda folder: None, "all/*.csv", "no file is there"),
        (lambda folder: (folder / "x.csv").write_text("a"), "all", "x.csv is not Parquet"),
        (lambda folder: (folder / "x.csv").write_text("a"), "all/*", "x.csv is not Parquet"),
        (lambda folder: (folder / "_delta_log").mkdir(), "all", "Delta table"),
    ],
)
def test_what_is_no_set_of_parquet_files_is_told(tmp_path, make, given, told):
    make(split(tmp_path / "all"))
    with pytest.raises(TableError, match=told):
        read_raw(tmp_path / given)


def test_images_with_a_table_beside_them_are_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for number in range(3):
        image.new("L", (4, 4), number).save(tmp_path / f"{number}.png")
    FRAME.write_parquet(tmp_path / "about.parquet")
    table = read_table(tmp_path)
    assert len(table.kept) == 3
    assert any("not images: about.parquet" in note for note in table.notes)


# Files that change.


def test_a_file_that_changes_is_named_before_and_after_its_rows_are_read(tmp_path):
    table = read_table(split(tmp_path / "all"))
    blocks = table.rows.stream(64)
    next(blocks)
    os.utime(tmp_path / "all" / "part-3.parquet", (1, 1))
    with pytest.raises(TableError, match=r"part-3\.parquet has changed since it was opened"):
        list(blocks)
    with pytest.raises(TableError, match=r"part-3\.parquet has changed since it was opened"):
        next(table.rows.stream(64))


def test_a_file_that_goes_is_named(tmp_path):
    table = read_table(split(tmp_path / "all"))
    (tmp_path / "all" / "part-4.parquet").unlink()
    with pytest.raises(GoneError, match=r"part-4\.parquet was there when the fit began"):
        next(table.rows.stream(64))


def test_text_is_copied_and_may_change(tmp_path):
    FRAME.fill_nan(None).write_csv(tmp_path / "x.csv")
    table = read_table(tmp_path / "x.csv")
    (tmp_path / "x.csv").unlink()
    assert_array_equal(cells(table), expected(table))


# Missing values.


@pytest.mark.parametrize("missing", ["drop", "mean", "error"])
def test_gaps_of_large_files_are_dealt_with_as_those_of_small_ones(tmp_path, monkeypatch, missing):
    FRAME.write_parquet(tmp_path / "x.parquet")
    if missing == "error":
        with pytest.raises(TableError, match=r"missing values in 286 of 2000 rows: b 286"):
            read_table(tmp_path / "x.parquet", missing="error")
        return
    large = read_table(tmp_path / "x.parquet", missing=missing)
    monkeypatch.undo()
    small = read_table(tmp_path / "x.parquet", missing=missing)
    assert large.is_large and not small.is_large
    assert_array_equal(large.kept, small.kept)
    gaps = np.isnan(X[:, 1])
    if missing == "drop":
        assert_array_equal(large.kept, ~gaps)
        assert_array_equal(cells(large)[:, :4], cells(small)[:, :4])  # cities have other codes
        rows = large.of_rows(np.array([0, 5]))
        assert rows.ids.tolist() == np.flatnonzero(~gaps)[[0, 5]].tolist()
    else:
        usual = np.nanmean(X[large.sample.index, 1])  # of the sample
        np.testing.assert_allclose(cells(large)[gaps, 1], usual)
        assert_array_equal(cells(large)[~gaps, :4], cells(small)[~gaps, :4])
