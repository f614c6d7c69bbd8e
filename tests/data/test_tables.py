"""From a file to the rows that are clustered: which columns take part, what is missing, ids, another file."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deccs.data.scanned import ScannedRows
from deccs.data.source import ParquetRows
from deccs.data.tables import RawTable, TableError, delimited, read_like, read_table, reader
from deccs.data.tables.readers import READERS


@pytest.fixture
def file(tmp_path):
    """``file(text)``: a CSV file that holds it."""

    def write(text, name="table.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def refused(path, *words, **options):
    with pytest.raises(TableError) as error:
        read_table(path, **options)
    for word in (path.name, *words):
        assert word in str(error.value)


def cells(table):
    """(n_kept, n_cells) numbers of all rows."""
    return table.rows.read(slice(0, table.rows.shape[0]))


def remembered(table):
    """What a model keeps of a table, after it was written and read."""
    return json.loads(json.dumps(table.preprocessing()))


def like(path, table, **options):
    return read_like(path, remembered(table), table.coding, **options)


CITIES, SIZES = ("Ulm", "Kiel", "Bonn"), ("S", "M", "L")
PEOPLE = "key,city,size,joined,newsletter,note,income,legs\n" + "".join(
    f"k{row},{CITIES[row % 3]},{SIZES[row // 2 % 3]},2024-01-{row + 1:02d},{('yes', 'no')[row % 2]},"
    f"this is the note of row {row},{1000.5 + 37 * row % 11},2\n"
    for row in range(20)
)
COLUMNS = ("city", "size", "joined", "newsletter", "income")
GAPS = "id,x,y\na,1,2\nb,,4\nc,5,NA\nd,6,9\n"
MIXED_GAPS = "key,x,city\n" + "".join(f"k{row},{row}.5,{CITIES[row % 3]}\n" for row in range(20))
MIXED_GAPS += "k20,,Ulm\nk21,2.5,\n"


# What takes part.


def test_columns_of_all_kinds_take_part_and_the_rest_is_left_out_with_a_reason(file):
    table = read_table(file(PEOPLE), id_column="key")
    assert table.feature_names == COLUMNS
    kinds = {kind.name: kind.kind for kind in table.kinds}
    assert [kinds[name] for name in COLUMNS] == ["category", "ordered", "date", "yes/no", "number"]
    assert table.left_out == {
        "note": "almost every value once, several words",
        "legs": "all values are 2",
    }
    assert list(table.ids[:3]) == ["k0", "k1", "k2"]
    # Levels stand in the order of their numbers, 7, 7 and 6: Kiel, Ulm, Bonn. S is the lowest of the sizes.
    # 2024-01-02 is day 19,724 since 1970, and a Tuesday; 1000.5 + 37 % 11 = 1004.5.
    np.testing.assert_array_equal(cells(table)[1], [0, 0, 19_724, 1, 0, 1004.5])
    assert table.kept.all() and table.notes == ()


def test_columns_to_color_by_are_all_but_the_ids(file):
    others = read_table(file(PEOPLE), id_column="key").others()
    assert set(others) == {*COLUMNS, "note", "legs"}
    assert list(others["city"][:3]) == ["Ulm", "Kiel", "Bonn"] and set(others["legs"]) == {2}
    gaps = read_table(file(GAPS)).others()
    np.testing.assert_array_equal(gaps["x"], [1, np.nan, 5, 6])


def test_columns_that_only_count_or_name_the_rows_are_left_out(file):
    rows = "".join(f"{row},{1000 - 7 * row},{row % 3},{row % 5}\n" for row in range(12))
    table = read_table(file(f",user_id,x,y\n{rows}"))
    assert table.left_out == {
        "column 1": "counts the rows",
        "user_id": "named like an id, every value once",
    }
    assert table.feature_names == ("x", "y")
    assert list(table.ids) == list(range(12))


def test_columns_are_picked_in_the_order_asked_for(file):
    table = read_table(file(PEOPLE), columns=["income", "city"])
    assert table.feature_names == ("income", "city")
    np.testing.assert_array_equal(cells(table)[:2], [[1000.5, 1], [1004.5, 0]])
    assert table.left_out["size"] == table.left_out["key"] == "not asked for"
    assert list(table.others()["size"][:3]) == ["S", "S", "M"]


def test_what_is_asked_for_is_clustered_although_its_data_speak_against_it(file):
    path = file(PEOPLE)
    assert "note" in read_table(path).left_out
    assert "note" in read_table(path, columns=["note", "income"]).feature_names
    assert "key" in read_table(path, columns=["key", "income"]).feature_names
    constant = read_table(path, columns=["legs", "income"])  # nothing can be made of it
    assert constant.feature_names == ("income",)
    assert constant.left_out["legs"] == "all values are 2"


def test_columns_can_take_no_part(file):
    table = read_table(file(PEOPLE), exclude=["city", "joined"])
    assert table.feature_names == ("size", "newsletter", "income")
    assert table.left_out["city"] == table.left_out["joined"] == "not asked for"
    refused(file(PEOPLE), "Did you mean 'city'?", exclude=["citi"])


def test_kinds_can_be_given(file):
    path = file("zip,x\n" + "".join(f"{10_000 + row % 4},{row}.5\n" for row in range(20)))
    assert read_table(path).left_out == {"zip": "named like a code: its size means nothing"}
    table = read_table(path, kinds={"zip": "category"})
    assert table.coding.columns[0].levels == ("10000", "10001", "10002", "10003")
    assert read_table(path, kinds={"x": "id", "zip": "number"}).feature_names == ("zip",)
    refused(path, "Did you mean 'zip'?", kinds={"zib": "category"})
    refused(path, "must be one of number", "'sort'", kinds={"zip": "sort"})
    refused(file(PEOPLE), "'city' cannot be numbers", "Ulm", kinds={"city": "number"})


def test_a_word_among_numbers_is_told_with_what_to_do(file):
    path = file("amount,x\n" + "".join(f"{row}.5,{row % 7}\n" for row in range(300)) + "abc,3\n")
    table = read_table(path)
    assert table.left_out == {"amount": "numbers, but also text such as abc"}
    assert any("--kind amount=number" in note for note in table.notes)
    assert any("'abc' in line 302" in note for note in table.notes)


def test_one_column_is_allowed_with_a_note(file):
    table = read_table(file("size\n1\n5\n9.5\n"))
    np.testing.assert_array_equal(cells(table), [[1], [5], [9.5]])
    assert "Only one column" in table.notes[0]


def test_a_file_without_a_column_to_cluster(file):
    refused(file("a,b\nx,y\nz,u\n"), "no column to cluster", "a: too few rows to tell", "--kind")
    refused(file("a,b\n,\n,\n,\n"), "a: no values; b: no values")


def test_one_row(file):
    refused(file("a,b\n1,2\n"), "one row")


def test_infinite_values_are_named(file):
    refused(file("a,b\n1,inf\n2,-inf\n3,4\n"), "infinite", "'b'")


def test_duplicate_and_unknown_columns(file):
    refused(file("width,b\n1,2\n3,4\n"), "Did you mean 'width'?", columns=["with"])
    refused(file("width,b\n1,2\n3,4\n"), "each column once", columns=["b", "b"])
    refused(file("width,b\n1,2\n3,4\n"), "each column once", columns=[])


# Missing values.


def test_missing_values_are_left_to_the_method_and_counted(file):
    table = read_table(file(GAPS), id_column="id")
    np.testing.assert_array_equal(cells(table), [[1, 2], [np.nan, 4], [5, np.nan], [6, 9]])
    assert table.kept.all() and table.notes == ("Missing: 25.0% of the values (x 1, y 1).",)


def test_missing_values_are_an_error_with_counts_if_that_is_wanted(file):
    words = ("2 of 4 rows", "x 1, y 1", "--missing auto", "--missing drop", "--missing mean")
    refused(file(GAPS), *words, missing="error")
    refused(file(MIXED_GAPS), "2 of 22 rows", "x 1, city 1", missing="error")


def test_gaps_of_columns_that_take_no_part_do_not_count(file):
    path = file(MIXED_GAPS.replace("key,x,city", "key,x,place"))
    table = read_table(path, missing="error", columns=["key"])
    assert table.kept.all() and len(cells(table)) == 22
    refused(path, "1 of 22 rows: x 1", missing="error", exclude=["place"])


def test_rows_with_missing_values_can_be_dropped_and_keep_their_place(file):
    table = read_table(file(GAPS), missing="drop", id_column="id")
    np.testing.assert_array_equal(cells(table), [[1, 2], [6, 9]])
    assert list(table.kept) == [True, False, False, True]
    assert list(table.ids) == ["a", "b", "c", "d"]
    assert "2 of 4 rows" in table.notes[0]
    mixed = read_table(file(MIXED_GAPS), missing="drop")
    assert list(np.flatnonzero(~mixed.kept)) == [20, 21]
    assert not np.isnan(cells(mixed)).any() and len(cells(mixed)) == 20
    refused(file("x,y\n1,\n,2\n3,\n"), "0 of 3 rows", "--missing auto", missing="drop")


def test_missing_values_can_be_filled_with_what_is_usual_which_is_remembered(file):
    table = read_table(file(GAPS), missing="mean")
    filled = [[1, 2], [4, 4], [5, 5], [6, 9]]  # means: 12 / 3 and 15 / 3
    np.testing.assert_array_equal(cells(table), filled)
    assert table.means == (4, 5)
    new = like(file("y,x\n,1\n3,?\n", "new.csv"), table)
    np.testing.assert_array_equal(cells(new), [[1, 5], [4, 3]])
    mixed = read_table(file(MIXED_GAPS), missing="mean")
    # The mean of 0.5, ..., 19.5 and 2.5; Ulm is in 8 of 21 rows, and the first level.
    np.testing.assert_allclose(cells(mixed)[20:], [[202.5 / 21, 0], [2.5, 0]])


def test_a_wrong_choice_for_missing_values(file):
    with pytest.raises(TableError, match="auto, error, drop, mean"):
        read_table(file("a,b\n1,2\n3,4\n"), missing="zero")


def test_a_column_without_values(file):
    table = read_table(file("a,b,c\n1,,2\n3,,5\n"))
    assert table.left_out == {"b": "no values"} and table.feature_names == ("a", "c")
    table = read_table(file("a,b\n1,\n3,\n"), columns=["a", "b"], missing="drop")
    assert table.kept.all() and table.left_out == {"b": "no values"}


# Ids.


def test_ids_must_exist_and_differ(file):
    refused(file("id,x\na,1\nb,2\na,3\n"), "'id' occur more than once: a", id_column="id")
    refused(file("id,x\na,1\n,2\nb,3\n"), "no id", "row 1", id_column="id")
    refused(file("id,x\na,1\nb,3\n"), "'key'", "It has id, x", id_column="key")


def test_ids_are_kept_as_they_are_written(file):
    assert list(read_table(file("id,x\n007,1\n7,2\n"), id_column="id").ids) == ["007", "7"]


def test_ids_of_an_array(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.eye(4), y=[0, 1, 1, 0], key=list("abcd"))
    table = read_table(tmp_path / "x.npz", id_column="key")
    assert list(table.ids) == list("abcd") and list(table.others()) == ["y"]


# Arrays.


def test_arrays_stay_as_they_are(tmp_path):
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "x.npy", X)
    table = read_table(tmp_path / "x.npy")
    np.testing.assert_array_equal(cells(table), X)
    assert table.rows.dtype == np.float32 and table.coding is None
    assert table.feature_names == ("column 1", "column 2", "column 3")
    assert cells(read_table(tmp_path / "x.npy", columns=["column 2"])).tolist() == [
        [1],
        [4],
        [7],
        [10],
    ]
    some = read_table(tmp_path / "x.npy", exclude=["column 2"])
    assert cells(some).tolist()[0] == [0, 2] and some.left_out == {"column 2": "not asked for"}


@pytest.mark.parametrize(
    ("X", "word", "options"),
    [
        (np.array([[1, np.nan], [2, 3]]), "column 2 1", {"missing": "error"}),
        (np.array([[1, np.inf], [2, 3]]), "infinite values: column 2 1", {}),
        (np.ones((1, 2)), "one row", {}),
        (np.array([[1, np.nan], [2, np.nan]]), "no mean: column 2", {"missing": "mean"}),
    ],
)
def test_arrays_that_are_refused(tmp_path, X, word, options):
    np.save(tmp_path / "x.npy", X)
    refused(tmp_path / "x.npy", word, **options)


def test_gaps_of_an_array(tmp_path):
    X = np.array([[1.0, 2], [np.nan, 4], [5, 6]])
    np.save(tmp_path / "x.npy", X)
    auto = read_table(tmp_path / "x.npy")
    np.testing.assert_array_equal(cells(auto), X)
    assert auto.notes == ("Missing: 16.7% of the values (column 1 1).",)
    drop = read_table(tmp_path / "x.npy", missing="drop")
    assert cells(drop).tolist() == [[1, 2], [5, 6]] and drop.kept.tolist() == [True, False, True]
    mean = read_table(tmp_path / "x.npy", missing="mean")
    assert cells(mean).tolist() == [[1, 2], [3, 4], [5, 6]] and mean.means == (3, 4)
    np.save(tmp_path / "new.npy", [[np.nan, 7]])
    assert cells(like(tmp_path / "new.npy", mean)).tolist() == [[3, 7]]


def test_the_rows_that_are_kept_are_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    table = read_table(tmp_path / "x.npy")
    assert table.rows.X is table.rows.X
    assert np.shares_memory(cells(table), table.rows.X)


# Another file for the same model.


def test_columns_in_another_order_with_others_between(file):
    table = read_table(file(PEOPLE), id_column="key")
    header, *lines = PEOPLE.splitlines()
    order = [6, 0, 3, 1, 7, 4, 2, 5]
    mixed = "\n".join(
        ",".join([line.split(",")[place] for place in order] + ["40"])
        for line in (header.replace("legs", "feet"), *lines)
    ).replace("note,40", "note,shoe", 1)
    new = like(file(mixed, "new.csv"), table)
    np.testing.assert_array_equal(cells(new), cells(table))
    assert list(new.ids) == list(table.ids)
    assert new.left_out == dict.fromkeys(("feet", "note", "shoe"), "not in the model")
    assert any("ignored: feet, note, shoe" in note for note in new.notes)


def test_a_single_row_of_another_file(file):
    table = read_table(file(PEOPLE), id_column="key")
    row = "\n".join(PEOPLE.splitlines()[i] for i in (0, 8))
    np.testing.assert_array_equal(cells(like(file(row, "new.csv"), table)), cells(table)[7:8])


def test_other_types_of_the_same_values_are_the_same_rows(file, tmp_path):
    table = read_table(file(PEOPLE), id_column="key")
    frame = pl.read_csv(tmp_path / "table.csv", try_parse_dates=True)
    frame = frame.with_columns(
        pl.col("city").cast(pl.Categorical),
        pl.col("size").cast(pl.Enum(SIZES)),
        pl.col("joined").cast(pl.Datetime("ms")),
        pl.col("newsletter") == "yes",
        pl.col("income").cast(pl.Float32),
    )
    frame.write_parquet(tmp_path / "new.parquet")
    new = like(tmp_path / "new.parquet", table)
    np.testing.assert_array_equal(cells(new), cells(table))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("key,city,size,joined,newsletter\na,Ulm,S,2024-01-01,yes\n", "needs: income"),
        ("key,city,size,joined,newsletter,income\na,Ulm,S,2024-01-01,yes,much\n", "'much'"),
        ("key,city,size,joined,newsletter,income\na,Ulm,S,soon,yes,1\n", "'soon'"),
        ("key,city,size,joined,newsletter,income\na,Ulm,S,17,yes,1\n", "'joined' must be dates"),
        (
            "key,city,size,joined,newsletter,income\na,Ulm,S,2024-01-01,yes,inf\n",
            "'income' has infinite",
        ),
        (
            "key,city,size,joined,newsletter,income\n"
            "a,Ulm,S,2024-01-01,yes,1\na,Ulm,S,2024-01-01,yes,1\n",
            "more than once",
        ),
        ("1,2,3\n4,5,6\n", "3 columns and no names"),
    ],
)
def test_files_that_do_not_fit_the_model(file, text, words):
    table = read_table(file(PEOPLE), id_column="key")
    with pytest.raises(TableError) as error:
        like(file(text, "new.csv"), table)
    assert "new.csv" in str(error.value) and words in str(error.value)


def test_missing_values_can_be_treated_differently_at_predict(file):
    table = read_table(file(MIXED_GAPS.rsplit("k20", 1)[0]), id_column="key")
    path = file("key,x,city\na,1,\nb,2,Kiel\n", "new.csv")
    np.testing.assert_array_equal(cells(like(path, table)), [[1, np.nan], [2, 0]])
    dropped = like(path, table, missing="drop")
    assert list(dropped.kept) == [False, True] and cells(dropped).tolist() == [[2, 0]]
    with pytest.raises(TableError, match="1 of 2 rows: city 1"):
        like(path, table, missing="error")
    # The model has no means: those of the file are taken.
    assert cells(like(path, table, missing="mean")).tolist() == [[1, 0], [2, 0]]


def test_levels_the_model_has_not_seen_are_told(file):
    table = read_table(file(PEOPLE), id_column="key")
    text = "key,city,size,joined,newsletter,income\na,Rome,XL,2024-01-01,perhaps,1\nb,,S,2024-01-01,no,1\n"
    new = like(file(text, "new.csv"), table)
    assert np.isnan(cells(new)[:, 0]).all()
    told = "Values the model has not seen count as missing: city 1, size 1, newsletter 1."
    assert told in new.notes
    assert not [note for note in like(file(PEOPLE), table).notes if "not seen" in note]


def test_without_ids_and_names(file, tmp_path):
    table = read_table(file("id,weight,height\na,60,1.7\nb,81,1.8\n"), id_column="id")
    new = like(file("weight,height\n1,2\n", "new.csv"), table)
    assert list(new.ids) == [0] and "'id'" in new.notes[0]
    np.save(tmp_path / "new.npy", [[50, 1.5]])
    new = like(tmp_path / "new.npy", table)
    np.testing.assert_array_equal(cells(new), [[50, 1.5]])
    assert any("no column names" in note for note in new.notes)
    new = like(file("50,1.5\n40,1.3\n", "bare.csv"), table)
    np.testing.assert_array_equal(cells(new), [[50, 1.5], [40, 1.3]])


def test_an_array_for_a_model_of_several_kinds_is_refused(file, tmp_path):
    table = read_table(file(PEOPLE), id_column="key")
    np.save(tmp_path / "new.npy", np.ones((2, 5)))
    with pytest.raises(TableError, match="numbers only, and .* columns of several kinds"):
        like(tmp_path / "new.npy", table)


def test_images_of_another_size_do_not_fit(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2, 3)))
    np.save(tmp_path / "b.npy", np.zeros((2, 4, 3)))
    with pytest.raises(TableError, match=r"\(4, 3\), the model needs \(2, 3\)"):
        like(tmp_path / "b.npy", read_table(tmp_path / "a.npy"))


# Files that stay on the disk.


def test_a_file_that_stays_on_the_disk_has_the_same_rows(file, tmp_path, monkeypatch):
    rows = [PEOPLE.splitlines()[1 + row % 20].split(",") for row in range(3_000)]
    lines = [",".join([f"k{place}", *row[1:]]) for place, row in enumerate(rows)]
    path = file("\n".join([PEOPLE.splitlines()[0], *lines]) + "\n")
    small = read_table(path, id_column="key")
    monkeypatch.setattr(delimited, "LARGE", 1_000)
    large = read_table(path, id_column="key")
    assert large.is_large and isinstance(large.rows, ScannedRows) and not small.is_large
    np.testing.assert_array_equal(cells(large), cells(small))
    assert large.coding == small.coding and list(large.ids) == list(small.ids)
    np.testing.assert_array_equal(cells(like(path, large)), cells(small))


# The registry of readers.


@pytest.fixture
def no_new_readers(monkeypatch):
    """Readers registered by the test are gone after it."""
    before = dict(READERS)
    yield
    READERS.clear()
    READERS.update(before)


def test_a_new_format_is_read_for_a_fit_and_for_a_model(file, no_new_readers):
    @reader(".words")
    def read_words(path):
        sizes = [[len(word), word.count("e")] for word in path.read_text().split()]
        array = np.array(sizes, dtype=float)
        return RawTable(array=array, names=("letters", "e"), n_rows=len(array))

    path = file("three one eleven", "text.WORDS")
    table = read_table(path)
    np.testing.assert_array_equal(cells(table), [[5, 2], [3, 1], [6, 3]])
    assert table.feature_names == ("letters", "e")
    np.testing.assert_array_equal(cells(like(path, table)), cells(table))


def test_the_options_of_a_fit_reach_the_reader(file, no_new_readers):
    calls = []

    @reader(".one", ".two")
    def read(path, *, as_text, encoding):
        calls.append((path.suffix, tuple(as_text), encoding))
        frame = pl.LazyFrame({"id": ["a", "b"], "x": [1.0, 2], "y": [0.5, 3]})
        return RawTable(frame=frame, names=("id", "x", "y"), n_rows=2)

    read_table(file("x", "x.one"), encoding="cp1252")
    read_like(file("x", "x.two"), {"feature_names": ["x", "y"], "id_column": "id"})
    assert calls == [(".one", (), "cp1252"), (".two", ("id",), "utf-8")]


# Whole numbers that doubles cannot hold.


def write_keys(path, key="account"):
    """Ten rows with a 64-bit key, one of which is above 2^63, and two columns of numbers."""
    keys = [2**60 + row for row in range(9)] + [2**64 - 1]
    rows = np.random.default_rng(0).normal(size=(10, 2))
    columns = {key: pl.Series(keys, dtype=pl.UInt64), "x": rows[:, 0], "y": rows[:, 1]}
    pl.DataFrame(columns).write_parquet(path)
    return path


def test_a_key_above_2_53_is_left_out_as_an_id(tmp_path):
    path = write_keys(tmp_path / "t.parquet")
    table = read_table(path)
    assert table.left_out == {"account": "whole numbers above 2^53: keys"}
    assert table.feature_names == ("x", "y") and table.notes == ()
    assert read_table(path, id_column="account").ids[1] == str(2**60 + 1)
    assert read_table(path, columns=["x", "y"]).notes == ()


def test_long_keys_of_a_csv_file_are_left_out_or_kept_as_ids(file):
    lines = "".join(f"{2**60 + 1000 * row},{row % 4},{row % 3}\n" for row in range(12))
    path = file(f"user_id,x,y\n{lines}")
    assert list(read_table(path).left_out) == ["user_id"]
    assert read_table(path, id_column="user_id").ids[1] == str(2**60 + 1000)


def test_rows_of_a_parquet_file_may_have_keys_above_2_53(tmp_path):
    pytest.importorskip("pyarrow")
    rows = ParquetRows(write_keys(tmp_path / "t.parquet"))
    assert rows.read(slice(0, 2))[0, 0] == 2.0**60


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited as on Linux")
def test_without_memory_for_its_threads_reading_rows_of_parquet_does_not_hang(tmp_path):
    path = write_keys(tmp_path / "t.parquet")
    code = f"""
import resource
from contextlib import suppress
from pathlib import Path
import pyarrow.dataset
from pyarrow import parquet
from deccs.data.source import ParquetRows

in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**23, in_use + 2**23))
with suppress(OSError, MemoryError):
    ParquetRows({str(path)!r}).read(slice(0, 2))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
