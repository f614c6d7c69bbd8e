"""Every reader on good and bad files: the right numbers, or an error that says what is wrong and where."""

import csv
import datetime
import json
import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from deccs.data.source import ParquetRows
from deccs.data.tables import RawTable, TableError, delimited, read_like, read_table, reader
from deccs.data.tables.readers import FOLDER, READERS, readable


@pytest.fixture
def file(tmp_path):
    """``file(text)``: a CSV file that holds it."""

    def write(content, name="table.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


def refused(path, *words, **options):
    with pytest.raises(TableError) as error:
        read_table(path, **options)
    for word in (path.name, *words):
        assert word in str(error.value)


PEOPLE = """\
id,name,born,weight,height,legs
a,Ann,1990-01-31,60.5,1.7,2
b,Bob,1985-12-01,81,1.8,2
c,Cid,2001-05-09,70,1.6,2
"""
RANDOM = np.random.default_rng(0).bytes(3000)
GARBAGE = (
    bytes(range(256)) * 8,
    RANDOM,
    b"\x93NUMPY\x01\x00",
    b"\x93NUMPY" + b"\xff" * 99,
    *(magic + b"x" * 99 for magic in (b"PK\x03\x04", b"PAR1", b"ARROW1")),
)


def test_numbers_are_picked_and_the_rest_is_left_out_with_a_reason(file):
    table = read_table(file(PEOPLE), id_column="id")
    np.testing.assert_array_equal(table.X, [[60.5, 1.7], [81, 1.8], [70, 1.6]])
    assert table.feature_names == ("weight", "height")
    assert list(table.ids) == ["a", "b", "c"]
    assert table.left_out == {
        "name": "text ('Ann' in line 2)",
        "born": "dates",
        "legs": "all values are 2",
    }
    assert list(table.others["name"]) == ["Ann", "Bob", "Cid"]
    assert list(table.others["legs"]) == [2, 2, 2]
    assert "id" not in table.others
    assert table.kept.all() and table.notes == ()


def test_columns_that_only_count_or_name_the_rows_are_left_out(file):
    rows = "".join(f"{row},{1000 - 7 * row},{row % 3},{row + 5}\n" for row in range(12))
    table = read_table(file(f",user_id,x,y\n{rows}"))
    assert table.left_out == {
        "column 1": "counts the rows",
        "user_id": "named like an id, every value once",
    }
    assert table.feature_names == ("x", "y")
    assert list(table.ids) == list(range(12))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),  # no header
        ("a;b\n1,5;2\n3;4,25\n", [[1.5, 2], [3, 4.25]]),  # decimal commas
        ("1,5;2\n3;4,25\n", [[1.5, 2], [3, 4.25]]),
        ("a;b\n1.5;2\n3;4\n", [[1.5, 2], [3, 4]]),
        ("a\tb\n1\t2\n3\t4\n", [[1, 2], [3, 4]]),
        ("a,b\r\n1,2\r\n3,4\r\n", [[1, 2], [3, 4]]),
        ("a,b\r1,2\r3,4\r", [[1, 2], [3, 4]]),
        ("\n\na,b\n\n1,2\n\n3,4\n\n", [[1, 2], [3, 4]]),  # blank lines
        ('"a, left","b"\n"1", "2"\n"3","4"\n', [[1, 2], [3, 4]]),  # quotes
        ("\ufeffa,b\n1,2\n3,4\n", [[1, 2], [3, 4]]),  # byte order mark
        ("a,b\ntrue,2\nFalse,-4e3\n", [[1, 2], [0, -4000]]),
        ("id,1,2\n7,1,2\n3,3,4\n", [[1, 2], [3, 4]]),  # numbers as names below a word
    ],
)
def test_dialects(file, text, values):
    np.testing.assert_array_equal(read_table(file(text)).X, values)


def test_tsv_keeps_commas_as_text(file):
    table = read_table(file("a\tb\tc\n1,2\t3\t5\n3,4\t4\t6.5\n", "table.tsv"))
    assert table.feature_names == ("b", "c")
    assert table.left_out == {"a": "text ('1,2' in line 2)"}


def test_with_decimal_commas_a_point_is_not_a_number(file):
    lines = "".join(f"{row},5;{row % 7}\n" for row in range(300))
    table = read_table(file(f"a;b\n{lines}1.234;5\n"))
    assert table.left_out == {"a": "text ('1.234' in line 302)"}


def test_header_can_be_given(file):
    path = file("1,2\n3,5\n4,4\n")
    assert read_table(path, header=True).feature_names == ("1", "2")
    assert read_table(path).feature_names == ("column 1", "column 2")
    np.testing.assert_array_equal(read_table(path, header=True).X, [[3, 5], [4, 4]])


def test_quoted_text_with_delimiter_line_break_and_quote(file):
    table = read_table(file('a,note\n1,"one, or\n""uno"""\n2,two\n'))
    assert list(table.others["note"]) == ['one, or\n"uno"', "two"]
    np.testing.assert_array_equal(table.X, [[1], [2]])
    assert "Only one column" in table.notes[0]


def test_other_encodings(file):
    path = file("größe,x\n1,2\n3,4\n", encoding="cp1252")
    assert read_table(path, encoding="cp1252").feature_names == ("größe", "x")
    path = file("größe,x\n1,2\n3,4\n", encoding="utf-16")
    refused(path, "--encoding utf-16")
    assert read_table(path, encoding="utf-16").feature_names == ("größe", "x")


def test_a_long_file_is_one_table_whichever_way_its_blocks_are_parsed(file, monkeypatch):
    """Fast blocks (numbers and known text) and careful ones (gaps, quotes) give what one pass over cells gives."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2_345, 3))
    words = [f"w{number}" for number in rng.integers(0, 9, len(values))]
    lines = [f"{a!r},{w},{b!r},{c!r}" for (a, b, c), w in zip(values.tolist(), words, strict=True)]
    lines[700] = lines[700].replace(words[700], f'"{words[700]}"')
    lines[1500] = ",".join(["", *lines[1500].split(",")[1:]])
    path = file("a,word,b,c\n" + "\n".join(lines))
    table = read_table(path, missing="drop")
    np.testing.assert_array_equal(table.X, np.delete(values, 1500, axis=0))
    assert list(table.others["word"]) == words
    monkeypatch.setattr(delimited, "fast_block", lambda *arguments: None)
    np.testing.assert_array_equal(read_table(path, missing="drop").X, table.X)


def test_a_word_far_down_makes_the_column_text_as_it_is_written(file):
    cells = [f"{row:05d}" for row in range(2_500)]
    path = file(
        "code,x\n"
        + "".join(f"{cell},{row % 7}\n" for row, cell in enumerate(cells))
        + "unknown,3\n"
    )
    table = read_table(path)
    assert table.left_out == {"code": "text ('unknown' in line 2502)"}
    assert list(table.others["code"]) == [*cells, "unknown"]
    assert table.X.shape == (2_501, 1)


def test_underscores_and_words_are_not_numbers(file):
    table = read_table(file("month,x,y\n2020_01,1,4\n2020_02,2,3\n"))
    assert table.left_out == {"month": "text ('2020_01' in line 2)"}


def test_columns_are_picked_in_the_order_asked_for(file):
    table = read_table(file(PEOPLE), columns=["height", "legs"])
    np.testing.assert_array_equal(table.X, [[1.7, 2], [1.8, 2], [1.6, 2]])
    assert table.left_out["weight"] == "not asked for"
    np.testing.assert_array_equal(table.others["weight"], [60.5, 81, 70])


GAPS = "id,x,y\na,1,2\nb,,4\nc,5,NA\nd,6,9\n"


def test_missing_values_are_an_error_with_counts(file):
    refused(file(GAPS), "2 of 4 rows", "x 1, y 1", "--missing drop", "--missing mean")


def test_rows_with_missing_values_can_be_dropped_and_keep_their_place(file):
    table = read_table(file(GAPS), missing="drop", id_column="id")
    np.testing.assert_array_equal(table.X, [[1, 2], [6, 9]])
    assert list(table.kept) == [True, False, False, True]
    assert list(table.ids) == ["a", "b", "c", "d"]
    assert "2 of 4 rows" in table.notes[0]


def test_missing_values_can_be_filled_with_the_mean_which_is_remembered(file):
    table = read_table(file(GAPS), missing="mean")
    np.testing.assert_array_equal(
        table.X, [[1, 2], [4, 4], [5, 5], [6, 9]]
    )  # means: 12 / 3 and 15 / 3
    assert table.means == (4, 5)
    new = read_like(
        file("y,x\n,1\n3,?\n", "new.csv"), json.loads(json.dumps(table.preprocessing()))
    )
    np.testing.assert_array_equal(new.X, [[1, 5], [4, 3]])


# Bad files.


def test_no_file(tmp_path):
    refused(tmp_path / "none.csv", "no file")


@pytest.mark.parametrize("content", ["", "\n\n", " "])
def test_empty_file(file, content):
    refused(file(content), "empty")


def test_header_only(file):
    refused(file("a,b\n"), "no rows")


def test_one_row(file):
    refused(file("a,b\n1,2\n"), "one row")


def test_one_column_is_allowed_with_a_note(file):
    table = read_table(file("size\n1\n5\n9.5\n"))
    np.testing.assert_array_equal(table.X, [[1], [5], [9.5]])
    assert "Only one column" in table.notes[0]


def test_text_only(file):
    refused(file("a,b\nx,y\nz,u\n"), "no column of numbers", "a: text ('x' in line 2)")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b\n1,2\n3\n", "line 3 has 1 fields"),
        ("a,b\n1,2\n\n3,4,5\n", "line 4 has 3 fields"),
        ("a,b\n" + "1,2\n" * 3_000 + "1,2,3\n", "line 3002 has 3 fields"),
        ("1,2\n3\n", "line 2"),
    ],
)
def test_ragged_rows(file, text, line):
    refused(file(text), line)


def test_a_quote_that_is_never_closed(file):
    refused(file('a,b\n1,"2\n3,4\n'), "quote")
    refused(file('a,b\n1,"2\n' + "3,4\n" * 100_000), "quote")


def test_wrong_encoding_names_the_byte(file):
    head = "name,x\n" + "a,1\n" * 5
    path = file(head.encode() + "é,2\n".encode("cp1252"))
    refused(path, "0xe9", f"position {len(head)}", "line 7", "--encoding cp1252")
    assert read_table(path, encoding="cp1252").X.shape == (6, 1)
    far = "a,1\n" * 300_000  # beyond the first block of the search
    refused(file(far.encode() + b"\xff\xfe,2\n"), f"position {len(far)}", "line 300001")


def test_unknown_encoding(file):
    with pytest.raises(TableError, match="klingon"):
        read_table(file("a,b\n1,2\n"), encoding="klingon")


@pytest.mark.parametrize("content", [b"1,2,3,", b'"'])
def test_a_line_without_end_is_refused_early(tmp_path, content):
    """2 GB in one line (a file with a hole takes no room): refused after 10 MB, in little memory."""
    path = tmp_path / "line.csv"
    with path.open("wb") as file:
        for _ in range(11):
            file.write(content.ljust(2**10, b"7") * 2**10)
        file.truncate(2 * 2**30)
    tracemalloc.start()
    started = time.process_time()
    refused(path, "line 1", "10 MB")
    seconds, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 150 * 2**20 and seconds < 10


def test_a_hole_of_zeros(tmp_path):
    path = tmp_path / "zeros.csv"
    with path.open("wb") as file:
        file.truncate(2 * 2**30)
    refused(path, "is not text")


def test_infinite_values_are_counted(file):
    refused(file("a,b\n1,inf\n2,-inf\n3,4\n"), "infinite", "b 2")


def test_ids_must_exist_and_differ(file):
    refused(file("id,x\na,1\nb,2\na,3\n"), "'id' occur more than once: a", id_column="id")
    refused(file("id,x\na,1\n,2\nb,3\n"), "no id", "row 1", id_column="id")
    refused(file("id,x\na,1\nb,3\n"), "'key'", "It has id, x", id_column="key")


def test_ids_are_kept_as_they_are_written(file):
    assert list(read_table(file("id,x\n007,1\n7,2\n"), id_column="id").ids) == ["007", "7"]


def test_duplicate_and_unknown_columns(file):
    refused(file("a,b,a\n1,2,3\n4,5,6\n"), "'a' occurs twice", "columns 1 and 3")
    refused(file("width,b\n1,2\n3,4\n"), "Did you mean 'width'?", columns=["with"])
    refused(file("w,b\nx,2\ny,4\n"), "w: text ('x' in line 2)", columns=["w", "b"])


def test_a_wrong_choice_for_missing_values(file):
    with pytest.raises(TableError, match="error, drop, mean"):
        read_table(file("a,b\n1,2\n3,4\n"), missing="zero")


@pytest.mark.parametrize("ending", [*(name for name in READERS if name != FOLDER), ".xlsx", ""])
@pytest.mark.parametrize("content", [b"", *GARBAGE], ids=len)
def test_garbage(file, ending, content):
    refused(file(content, f"x{ending}"))


def test_a_column_without_values(file):
    table = read_table(file("a,b,c\n1,,2\n3,,5\n"))
    assert table.left_out == {"b": "no values"}
    refused(file("a,b\n1,\n3,\n"), "b", columns=["a", "b"], missing="mean")
    refused(file("a,b\n1,\n3,\n"), "0 of 2 rows", columns=["a", "b"], missing="drop")


# Files of other kinds.


def test_arrays(tmp_path):
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "x.npy", X)
    table = read_table(tmp_path / "x.npy")
    np.testing.assert_array_equal(table.X, X)
    assert table.X.dtype == np.float32
    assert table.feature_names == ("column 1", "column 2", "column 3")
    np.savez(tmp_path / "x.npz", X=X, y=[0, 1, 1, 0], key=list("abcd"), odd=[1, 2])
    table = read_table(tmp_path / "x.npz", id_column="key")
    np.testing.assert_array_equal(table.X, X)
    assert list(table.ids) == list("abcd")
    assert list(table.others) == ["y"]
    assert read_table(tmp_path / "x.npy", columns=["column 2"]).X.tolist() == [[1], [4], [7], [10]]


def test_an_array_of_images(tmp_path):
    images = np.arange(24).reshape(2, 3, 4)
    np.save(tmp_path / "x.npy", images)
    table = read_table(tmp_path / "x.npy")
    np.testing.assert_array_equal(table.X, images.reshape(2, 12))
    assert table.image_shape == (3, 4)
    assert table.feature_names[:5] == (
        "pixel 0,0",
        "pixel 0,1",
        "pixel 0,2",
        "pixel 0,3",
        "pixel 1,0",
    )


class Malicious:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def test_pickles_are_not_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    malicious = np.array([Malicious(), Malicious()], dtype=object)
    np.save(tmp_path / "x.npy", malicious)
    np.savez(tmp_path / "x.npz", X=malicious)
    np.savez(tmp_path / "y.npz", X=np.eye(2), y=malicious)
    for name in ("x.npy", "x.npz", "y.npz"):
        refused(tmp_path / name)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("X", "word"),
    [
        (np.arange(3), "reshape(-1, 1)"),
        (np.zeros((0, 3)), "empty"),
        (np.array([["a"]]), "not numbers"),
        (np.array([[1j]]), "not numbers"),
        (np.array([[1, np.nan], [2, 3]]), "column 2 1"),
        (np.array([[1, np.inf], [2, 3]]), "infinite"),
        (np.ones((1, 2)), "one row"),
    ],
)
def test_arrays_that_are_not_tables(tmp_path, X, word):
    np.save(tmp_path / "x.npy", X)
    refused(tmp_path / "x.npy", word)


def test_npz_without_X(tmp_path):
    np.savez(tmp_path / "x.npz", data=np.eye(2))
    refused(tmp_path / "x.npz", "no array X, only data")


def test_a_header_that_promises_more_than_there_is(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.eye(3))
    path.write_bytes(path.read_bytes().replace(b"(3, 3)", b"(9, 9)"))
    refused(path)
    path.write_bytes(path.read_bytes().replace(b"(9, 9)", b"(9" + b"0" * 12 + b", 9)"))
    refused(path)


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_parquet_and_feather(tmp_path, ending):
    pyarrow = pytest.importorskip("pyarrow")
    feather = pytest.importorskip("pyarrow.feather")
    parquet = pytest.importorskip("pyarrow.parquet")
    days = [datetime.date(2020, 1, day) for day in (1, 2, 3)]
    arrow = pyarrow.table(
        {
            "key": ["a", "b", "c"],
            "x": [1, 2, 4],
            "gap": [0.5, None, 1.5],
            "yes": [True, False, True],
            "word": pyarrow.array(["u", None, "u"]).dictionary_encode(),
            "day": days,
            "list": [[1], [2], [3]],
        }
    )
    path = tmp_path / f"x.{ending}"
    (parquet.write_table if ending == "parquet" else feather.write_feather)(arrow, path)
    refused(path, "gap 1")
    table = read_table(path, id_column="key", missing="mean")
    np.testing.assert_array_equal(table.X, [[1, 0.5, 1], [2, 1, 0], [4, 1.5, 1]])
    assert table.left_out == {"word": "text", "day": "dates", "list": "lists or records"}
    assert list(table.ids) == ["a", "b", "c"]
    assert list(table.others["word"]) == ["u", "", "u"]


def test_without_pyarrow_the_error_says_what_to_install(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(file("x", "x.parquet"), 'pip install "deccs[tables]"')


def save_images(folder, shapes, mode="L"):
    Image = pytest.importorskip("PIL.Image")
    folder.mkdir(exist_ok=True)
    for number, (height, width) in enumerate(shapes):
        values = np.arange(height * width).reshape(height, width) + number
        image = Image.fromarray(values.astype(np.uint16 if mode == "I;16" else np.uint8))
        image.save(folder / f"{number}.png")


def test_a_folder_of_images(tmp_path):
    save_images(tmp_path / "a", [(2, 3), (2, 3)])
    save_images(tmp_path / "b", [(2, 3)])
    (tmp_path / "readme.txt").write_text("hello")
    (tmp_path / ".hidden.png").write_text("no image")
    table = read_table(tmp_path)
    np.testing.assert_array_equal(
        table.X, [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5]]
    )
    assert list(table.ids) == ["a/0.png", "a/1.png", "b/0.png"]
    assert table.image_shape == (2, 3)
    assert list(table.others["folder"]) == ["a", "a", "b"]
    assert "readme.txt" in table.notes[0]


def test_images_of_16_bits_keep_their_shades(tmp_path):
    save_images(tmp_path / "a", [(20, 20), (20, 20)], "I;16")
    assert read_table(tmp_path / "a").X.max() == 400


def test_bad_folders_of_images(tmp_path, monkeypatch):
    (tmp_path / "none").mkdir()
    refused(tmp_path / "none", "no images")
    save_images(tmp_path / "sizes", [(2, 3), (3, 2)])
    refused(tmp_path / "sizes", "0.png is 3 x 2", "1.png is 2 x 3")
    save_images(tmp_path / "broken", [(2, 3)])
    (tmp_path / "broken" / "1.png").write_bytes((tmp_path / "broken" / "0.png").read_bytes()[:40])
    refused(tmp_path / "broken", "1.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(TableError, match="Pillow"):
        read_table(tmp_path / "sizes")


# Another file for the same model.


@pytest.fixture
def remembered(file):
    return read_table(file(PEOPLE), id_column="id").preprocessing()


def test_columns_in_another_order_with_others_between(file, remembered):
    table = read_like(file("height,shoe,id,weight\n1.5,40,z,50\n", "new.csv"), remembered)
    np.testing.assert_array_equal(table.X, [[50, 1.5]])  # a single row can be predicted
    assert list(table.ids) == ["z"]
    assert table.left_out == {"shoe": "not in the model"}
    assert "shoe" in table.notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,weight\na,1\n", "lacks columns the model needs: height"),
        ("id,weight,height\na,1,tall\n", "height: text ('tall' in line 2)"),
        ("id,weight,height\na,1,2\na,1,3\n", "more than once"),
        ("id,weight,height\na,1,\n", "height 1"),
        ("1,2,3\n4,5,6\n", "3 columns and no names"),
    ],
)
def test_files_that_do_not_fit_the_model(file, remembered, text, words):
    with pytest.raises(TableError) as error:
        read_like(file(text, "new.csv"), remembered)
    assert words in str(error.value)


def test_missing_values_can_be_treated_differently_at_predict(file, remembered):
    path = file("id,weight,height\na,1,\nb,2,3\n", "new.csv")
    assert list(read_like(path, remembered, missing="drop").kept) == [False, True]
    assert read_like(path, remembered, missing="mean").X[0, 1] == pytest.approx(1.7)


def test_without_ids_and_names(file, tmp_path, remembered):
    table = read_like(file("weight,height\n1,2\n", "new.csv"), remembered)
    assert list(table.ids) == [0] and "'id'" in table.notes[0]
    np.save(tmp_path / "new.npy", [[50, 1.5]])
    table = read_like(tmp_path / "new.npy", remembered)
    np.testing.assert_array_equal(table.X, [[50, 1.5]])
    assert any("no column names" in note for note in table.notes)


def test_images_of_another_size_do_not_fit(tmp_path):
    save_images(tmp_path / "a", [(2, 3), (2, 3)])
    save_images(tmp_path / "b", [(4, 3), (4, 3)])
    with pytest.raises(TableError, match=r"\(4, 3\), the model needs \(2, 3\)"):
        read_like(tmp_path / "b", read_table(tmp_path / "a").preprocessing())


# The registry of readers.


@pytest.fixture
def no_new_readers(monkeypatch):
    """Readers registered by the test are gone after it."""
    before = dict(READERS)
    yield
    READERS.clear()
    READERS.update(before)


def test_a_new_format_is_one_function(file, no_new_readers):
    @reader(".words")
    def read_words(path):
        sizes = [[len(word), word.count("e")] for word in path.read_text().split()]
        return RawTable(("letters", "e"), np.array(sizes, dtype=float))

    path = file("three one eleven", "text.WORDS")
    table = read_table(path)
    np.testing.assert_array_equal(table.X, [[5, 2], [3, 1], [6, 3]])
    assert table.feature_names == ("letters", "e")
    np.testing.assert_array_equal(read_like(path, table.preprocessing()).X, table.X)
    assert ".words" in readable()
    refused(file("x", "x.docx"), ".csv", ".words", FOLDER)


def test_a_reader_gets_the_options_it_takes(file, no_new_readers):
    calls = []

    @reader(".one", ".two")
    def read(path, *, as_text, encoding):
        calls.append((path.suffix, tuple(as_text), encoding))
        return RawTable(("x", "y"), np.eye(2), texts={"id": np.array(["a", "b"])})

    read_table(file("x", "x.one"), encoding="cp1252")
    read_like(file("x", "x.two"), {"feature_names": ["x", "y"], "id_column": "id"})
    assert calls == [(".one", (), "cp1252"), (".two", ("id",), "utf-8")]


@pytest.mark.parametrize("ending", ["csv", ".CSV", ""])
def test_an_ending_has_a_dot_and_lower_case(ending):
    with pytest.raises(ValueError, match="looks like"):
        reader(ending)


def test_an_ending_has_one_reader_and_a_reader_only_known_options(no_new_readers):
    with pytest.raises(ValueError, match="already has a reader, read_delimited"):
        reader(".new", ".csv")
    with pytest.raises(ValueError, match="takes sheet.*encoding, header, as_text"):
        reader(".xlsx")(lambda path, sheet: None)
    assert not {".new", ".xlsx"} & set(READERS)


def test_the_rows_that_are_kept_are_copied_once(file):
    table = read_table(file(GAPS), missing="drop")
    assert table.X is table.X
    whole = read_table(file(PEOPLE))
    assert whole.X is whole.values


def test_lines_of_20_000_columns_are_read(file):
    X = np.random.default_rng(0).normal(size=(4, 20_000)) + 1e6
    lines = [",".join(f"g{number}" for number in range(20_000))]
    lines += [",".join(map(repr, row)) for row in X.tolist()]
    assert min(map(len, lines[1:])) > 131_072
    table = read_table(file("\n".join(lines)))
    np.testing.assert_array_equal(table.X, X)
    again = read_like(file("\n".join(lines), "next.csv"), table.preprocessing())
    np.testing.assert_array_equal(again.X, X)


def test_cells_longer_than_the_csv_module_allows_are_read(file):
    long = "ACGT" * 50_000
    table = read_table(file(f'name,x,y\n"{long}",1,2\nb,3,4\nc,4,7\n'), id_column="name")
    assert table.ids[0] == long
    assert csv.field_size_limit() == 131_072  # of the process, which is not ours


@pytest.mark.parametrize("mark", ["", '"', '1,2\n3,"'], ids=["one line", "a quote", "a late quote"])
def test_a_line_or_a_quote_without_end_is_refused_in_bounded_memory(file, mark):
    path = file(mark + "1 2 3\n" if mark else "")
    with path.open("a") as out:
        for _ in range(60):
            out.write(("7" * 99 + ("\n" if mark else "")) * 10_000)
    tracemalloc.start()
    refused(path, "unclosed quote" if mark else "longer than 10 MB")
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()


def test_what_is_read_ahead_is_bounded_by_characters_not_only_by_lines(file, monkeypatch):
    rows = "\n".join(",".join(str(7 * row + place) for place in range(50)) for row in range(300))
    whole = read_table(file(rows))
    monkeypatch.setattr(delimited, "SAMPLE_CHARACTERS", 400)
    monkeypatch.setattr(delimited, "BLOCK_CHARACTERS", 2_000)
    np.testing.assert_array_equal(read_table(file(rows)).X, whole.X)


# Files that would hold or fill the machine.


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_pipes_and_devices_are_refused_before_they_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "pipe.csv")
    (tmp_path / "zeros.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "link.csv", "zeros.csv"):
        refused(tmp_path / name, "pipe", "Save the data to a file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_a_pipe_among_images_is_not_read(tmp_path):
    save_images(tmp_path / "a", [(2, 3), (2, 3)])
    os.mkfifo(tmp_path / "a" / "2.png")
    table = read_table(tmp_path / "a")
    assert list(table.ids) == ["0.png", "1.png"] and "2.png" in table.notes[0]


def test_large_images_are_refused_before_they_are_decoded(tmp_path):
    from PIL import Image

    Image.new("1", (9_000, 9_000)).save(tmp_path / "0.png")
    tracemalloc.start()
    refused(tmp_path, "9000 x 9000", "131,072 pixels", "smaller")
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


def test_images_beyond_the_limit_of_pillow_are_refused_without_its_warning(tmp_path, recwarn):
    from PIL import Image

    Image.new("1", (10_000, 10_000)).save(tmp_path / "0.png")
    refused(tmp_path, "10000 x 10000", "131,072 pixels")
    Image.new("1", (20_000, 10_000)).save(tmp_path / "0.png")
    refused(tmp_path, "131,072 pixels")
    assert not recwarn.list


def test_damaged_images_are_named(tmp_path):
    save_images(tmp_path, [(8, 8)])
    whole = (tmp_path / "0.png").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] = rng.integers(256)
        (tmp_path / "0.png").write_bytes(bytes(damaged[: rng.integers(1, len(whole) + 1)]))
        with pytest.raises(TableError, match="0.png|one row"):
            read_table(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have only UTF-8 names")
def test_names_of_images_that_are_not_utf_8_are_spelled_out(tmp_path):
    save_images(tmp_path / "a", [(2, 3), (2, 3)])
    os.rename(tmp_path / "a" / "0.png", os.fsencode(tmp_path / "a") + b"/\xff.png")
    table = read_table(tmp_path / "a")
    assert sorted(table.ids) == ["1.png", "\\udcff.png"]
    assert "".join(table.ids).encode("utf-8")


# Whole numbers that doubles cannot hold.


def write_keys(path, key="account"):
    """Ten rows with a 64-bit key, one of which is above 2^63, and two columns of numbers."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    keys = pyarrow.array([2**60 + row for row in range(9)] + [2**64 - 1], "uint64")
    rows = np.random.default_rng(0).normal(size=(10, 2))
    parquet.write_table(pyarrow.table({key: keys, "x": rows[:, 0], "y": rows[:, 1]}), path)
    return path


def test_a_key_above_2_53_does_not_refuse_the_file(tmp_path):
    path = write_keys(tmp_path / "t.parquet")
    assert read_table(path, columns=["x", "y"]).notes == ()
    assert read_table(path, id_column="account").ids[1] == str(2**60 + 1)
    named = read_table(write_keys(tmp_path / "u.parquet", "account_id"))
    assert named.left_out == {"account_id": "named like an id, whole numbers above 2^53"}
    used = read_table(path)
    assert used.feature_names == ("account", "x", "y")
    assert "rounded" in used.notes[0] and "account" in used.notes[0] and "--id" in used.notes[0]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited as on Linux")
@pytest.mark.parametrize("read", ["read_table(path)", "ParquetRows(path).read(slice(0, 2))"])
def test_without_memory_for_its_threads_reading_parquet_does_not_hang(tmp_path, read):
    path = write_keys(tmp_path / "t.parquet")
    code = f"""
import resource
from pathlib import Path
import pyarrow.dataset
from pyarrow import feather, parquet
from deccs.data.source import ParquetRows
from deccs.data.tables import TableError, read_table

path = {str(path)!r}
in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**23, in_use + 2**23))
try:
    {read}
except (TableError, OSError, MemoryError):
    pass
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_rows_of_a_parquet_file_may_have_keys_above_2_53(tmp_path):
    rows = ParquetRows(write_keys(tmp_path / "t.parquet"))
    assert rows.read(slice(0, 2))[0, 0] == 2.0**60


def test_long_keys_of_a_csv_file_are_left_out_or_noted(file):
    text = "".join(f"{2**60 + 1000 * row},{row % 4},{row % 3}\n" for row in range(12))
    assert "user_id" in read_table(file(f"user_id,x,y\n{text}")).left_out
    assert "rounded" in read_table(file(f"account,x,y\n{text}")).notes[0]
