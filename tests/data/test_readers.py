"""Every reader on good and bad files: the right values and types, or an error that says what is wrong and where."""

import datetime
import gzip
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deccs.data.tables import RawTable, TableError, delimited, json_lines, reader, text_files
from deccs.data.tables.readers import DATABASE, FOLDER, NO_ENDINGS, READERS, read_raw, readable
from deccs.data.tables.scratch import KEPT


@pytest.fixture
def file(tmp_path):
    """``file(text)``: a CSV file that holds it."""

    def write(content, name="table.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """Temporary files of readers are gone after the test, those of large tables with the process."""
    place = tmp_path.with_name(f"{tmp_path.name}-temporary")
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    for folder in KEPT:
        folder.cleanup()
    KEPT.clear()
    assert list(place.iterdir()) == []


def refused(path, *words, **options):
    with pytest.raises(TableError) as error:
        read_raw(path, **options)
    name = path.name if isinstance(path, Path) else ""
    for word in (name, *words):
        assert word in str(error.value)
    return str(error.value)


def rows(path, **options):
    return read_raw(path, **options).frame.collect().rows()


def types(path, **options):
    return list(read_raw(path, **options).frame.collect_schema().dtypes())


PEOPLE = """\
id,name,born,weight,legs,member,visits
a,Ann,1990-01-31,60.5,2,true,3
b,Bob,1985-12-01,81,2,False,NA
c,,2001-05-09,,2,TRUE,4
"""
RANDOM = np.random.default_rng(0).bytes(3000)
GARBAGE = (
    bytes(range(256)) * 8,
    RANDOM,
    b"\x93NUMPY\x01\x00",
    b"\x93NUMPY" + b"\xff" * 99,
    *(
        magic + b"x" * 99
        for magic in (b"PK\x03\x04", b"PAR1", b"ARROW1", b"\x89HDF\r\n", b"\xd0\xcf\x11\xe0")
    ),
)


# Text.


def test_every_column_gets_the_type_of_its_cells(file):
    table = read_raw(file(PEOPLE))
    frame = table.frame.collect()
    assert frame.schema == {
        "id": pl.String,
        "name": pl.String,
        "born": pl.Date,
        "weight": pl.Float64,
        "legs": pl.Int64,
        "member": pl.Boolean,
        "visits": pl.Int64,
    }
    assert frame.rows() == [
        ("a", "Ann", datetime.date(1990, 1, 31), 60.5, 2, True, 3),
        ("b", "Bob", datetime.date(1985, 12, 1), 81.0, 2, False, None),
        ("c", None, datetime.date(2001, 5, 9), None, 2, True, 4),
    ]
    assert table.names == ("id", "name", "born", "weight", "legs", "member", "visits")
    assert (table.n_rows, table.has_names, table.notes, table.is_large) == (3, True, (), False)
    assert table.array is None and table.extras == {}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a,b\n1,2\n3,4\n", [(1, 2), (3, 4)]),
        ("1,2\n3,4\n", [(1, 2), (3, 4)]),  # no header
        ("a;b\n1,5;2\n3;4,25\n", [(1.5, 2), (3, 4.25)]),  # decimal commas
        ("1,5;2\n3;4,25\n", [(1.5, 2), (3, 4.25)]),
        ("a;b\n1,5;NA\n3;4,25\n", [(1.5, None), (3, 4.25)]),
        ("a;b\n1.5;2\n3;4\n", [(1.5, 2), (3, 4)]),
        ("a\tb\n1\t2\n3\t4\n", [(1, 2), (3, 4)]),
        ("a,b\r\n1,2\r\n3,4\r\n", [(1, 2), (3, 4)]),
        ("a,b\r\n1,2\r\n\r\n3,4\r\n\r\n", [(1, 2), (3, 4)]),
        ("a,b\r1,2\r3,4\r", [(1, 2), (3, 4)]),
        ("a,b\n1,2\n3,4", [(1, 2), (3, 4)]),  # no end of the last line
        ("a,b\n1,2\n3,4\n\n\n", [(1, 2), (3, 4)]),
        ("\n\na,b\n\n1,2\n\n3,4\n\n", [(1, 2), (3, 4)]),  # blank lines
        ('"a, left","b"\n"1", "2"\n"3","4"\n', [(1, 2), (3, 4)]),  # quotes
        ("\ufeffa,b\n1,2\n3,4\n", [(1, 2), (3, 4)]),  # byte order mark
        ("\ufeff1,2\n3,4\n", [(1, 2), (3, 4)]),
        ('\ufeff"a","b"\n1,2\n3,4\n', [(1, 2), (3, 4)]),
        ("a,b\n 1 , 2\n3 ,4 \n", [(1, 2), (3, 4)]),
        ("a,b\ntrue,2\nFalse,-4e3\n", [(True, 2), (False, -4000)]),
        ("a,b\n1,\n2,\n", [(1, None), (2, None)]),
        ("a\n1\n\n3\n", [(1,), (3,)]),
        ("a,b\n,\n3,4\n", [(None, None), (3, 4)]),  # a row of gaps is a row
        ("a,b\n1,inf\n2,-Infinity\n", [(1, np.inf), (2, -np.inf)]),
    ],
)
def test_dialects(file, text, values):
    assert rows(file(text)) == values


@pytest.mark.parametrize("word", ["", "NA", "n/a", "#N/A", "NaN", "null", "None", "?", " na "])
def test_words_for_a_missing_value_are_gaps_among_numbers_and_dates(file, word):
    lines = "".join(f"{row},{row}.5,2020-01-{row + 10},true\n" for row in range(9))
    table = read_raw(file(f"a,b,c,d\n{lines}{word},{word},{word},{word}\n"))
    frame = table.frame.collect()
    whole = pl.Float64 if word == "NaN" else pl.Int64  # polars takes NaN for a fraction
    assert frame.dtypes == [whole, pl.Float64, pl.Date, pl.Boolean]
    assert frame.row(9) == (None, None, None, None) and frame.null_count().row(0) == (1, 1, 1, 1)
    assert table.notes == ()


def test_a_word_for_a_missing_value_among_words_is_a_word(file):
    assert rows(file("pool,x\nNone,1\nlarge,2\n,3\n")) == [("None", 1), ("large", 2), (None, 3)]


def test_a_header_can_be_given_or_guessed(file):
    path = file("1,2\n3,5\n4,4\n")
    assert read_raw(path, header=True).names == ("1", "2")
    guessed = read_raw(path)
    assert guessed.names == ("column 1", "column 2") and not guessed.has_names
    assert rows(path, header=True) == [(3, 5), (4, 4)]
    assert read_raw(file("id,1,2\n7,1,2\n3,3,4\n")).names == ("id", "1", "2")
    assert read_raw(file("a, ,c\n7,1,2\n3,3,4\n")).names == ("a", "column 2", "c")


def test_tsv_keeps_commas_in_text(file):
    path = file("a\tb\n1,2\t3\n3,4\t4.5\n", "table.tsv")
    assert rows(path) == [("1,2", 3.0), ("3,4", 4.5)]


def test_quoted_text_with_delimiter_line_break_and_quote(file):
    path = file('a,note\n1,"one, or\n""uno"""\n2,two\n')
    assert rows(path) == [(1, 'one, or\n"uno"'), (2, "two")]


def test_quotes_within_a_field_are_no_quotes(file):
    path = file('size,note\n5" wide,6" high\n1,2\n')
    assert rows(path) == [('5" wide', '6" high'), ("1", "2")]


def test_what_is_rewritten_is_read_like_the_plain_file(file):
    """A quote out of its place in one line must not change the others."""
    rng = np.random.default_rng(0)
    lines = [
        f"{a!r},w{b},{c}"
        for a, b, c in zip(rng.normal(size=999).tolist(), range(999), range(999), strict=True)
    ]
    plain = read_raw(file("x,word,n\n" + "\n".join(lines), "plain.csv")).frame.collect()
    odd = file("x,word,n\n" + "\n".join([*lines, '1.5, "odd", 7']), "odd.csv")
    assert read_raw(odd).frame.collect()[:-1].equals(plain)
    assert rows(odd)[-1] == (1.5, "odd", 7)


def test_ids_can_be_kept_as_they_are_written(file):
    path = file("id,x\n007,1\n7,2\n")
    assert rows(path, as_text=["id"]) == [("007", 1), ("7", 2)]
    assert rows(path) == [("007", 1), ("7", 2)]  # a number does not begin with a 0
    assert rows(file("id,x\n17,1\n7,2\n")) == [(17, 1), (7, 2)]
    assert rows(file("id,x\n17,1\n7,2\n"), as_text=["id"]) == [("17", 1), ("7", 2)]
    assert rows(file("id,x\nNA,1\n7,2\n"), as_text=["id"]) == [("NA", 1), ("7", 2)]


def test_other_encodings(file):
    path = file("größe,x\nklein,2\ngroß,4\n", encoding="cp1252")
    assert rows(path, encoding="cp1252") == [("klein", 2), ("groß", 4)]
    path = file("größe,x\n1,2\n3,4\n", encoding="utf-16")
    refused(path, "--encoding utf-16")
    assert read_raw(path, encoding="utf-16").names == ("größe", "x")


def test_underscores_are_not_numbers(file):
    assert types(file("month,x\n2020_01,1\n2020_02,2\n")) == [pl.String, pl.Int64]


@pytest.mark.parametrize("n_before", [3, 2_500])
def test_a_word_among_numbers_is_kept_and_noted_with_its_line(file, n_before):
    lines = "".join(f"{row:.3f},{row % 7}\n" for row in range(n_before))
    table = read_raw(file(f"amount,x\n{lines}" + "1.000,1\n" * 40 + "abc,3\n"))
    frame = table.frame.collect()
    assert frame.dtypes == [pl.String, pl.Int64]
    assert frame["amount"][0] == "0.000" and frame["amount"][-1] == "abc"
    (note,) = table.notes
    assert f"amount: text ('abc' in line {n_before + 42:,}), {n_before + 40:,} other" in note


def test_lines_are_counted_through_blank_lines_and_quoted_line_breaks(file):
    numbers = "1,1\n" * 20
    (note,) = read_raw(file(f'a,b\n{numbers}\n2,"x\ny"\nword,3\n'), as_text=["b"]).notes
    assert "'word' in line 25" in note  # 1 + 20 + a blank one + 2 for the record with a break


def test_with_decimal_commas_a_point_is_not_a_number(file):
    lines = "".join(f"{row},5;{row % 7}\n" for row in range(300))
    table = read_raw(file(f"a;b\n{lines}1.234;5\n"))
    assert "a: text ('1.234' in line 302)" in table.notes[0]


def test_many_words_are_a_column_of_text_without_a_note(file):
    assert read_raw(file("a,b\n1,1\nx,2\n2,3\n")).notes == ()


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["31/01/2020", "01/02/2020"], datetime.date(2020, 1, 31)),  # the day comes first
        (["01/31/2020", "02/01/2020"], datetime.date(2020, 1, 31)),  # the month comes first
        (["31.01.2020", "1.2.2020"], datetime.date(2020, 1, 31)),
        (["2020/01/31", "2020/02/01"], datetime.date(2020, 1, 31)),
        (["2020-01-31", "?"], datetime.date(2020, 1, 31)),
        (["2020-01-31 10:30", "2020-02-01 00:00"], datetime.datetime(2020, 1, 31, 10, 30)),
        (
            ["2020-01-31T10:30:15.5", "2020-02-01T00:00:00"],
            datetime.datetime(2020, 1, 31, 10, 30, 15, 500_000),
        ),
        (["31/01/2020 10:30", "01/02/2020 11:00"], datetime.datetime(2020, 1, 31, 10, 30)),
        (
            ["2020-01-31T10:30:00Z", "2020-02-01T00:00:00+01:00"],
            datetime.datetime(2020, 1, 31, 10, 30, tzinfo=datetime.UTC),
        ),
    ],
)
def test_dates(file, cells, expected):
    table = read_raw(file("day,x\n" + "".join(f"{cell},1\n" for cell in cells)))
    assert table.frame.collect()["day"][0] == expected and table.notes == ()


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["01/02/2020", "03/04/2020"], "the day or the month first"),
        (["31/01/2020", "01/31/2020"], "no form in common"),
        (["2020-01-31", "2020-02-30"], "no form in common"),  # no such day
    ],
)
def test_dates_that_are_not_clear_are_text_with_a_note(file, cells, why):
    table = read_raw(file("day,x\n" + "".join(f"{cell},1\n" for cell in cells)))
    assert table.frame.collect()["day"].to_list() == cells
    assert len(table.notes) == 1 and why in table.notes[0] and "day" in table.notes[0]


def test_a_day_beyond_the_first_rows_decides_which_form_dates_have(file):
    path = file("day,x\n" + "01/02/2020,1\n" * 5_000 + "31/01/2020,1\n")
    assert read_raw(path).frame.collect()["day"][0] == datetime.date(2020, 2, 1)


def test_whole_numbers_keep_every_digit(file):
    assert rows(file(f"k,x\n{2**63},1\n{2**64 - 1},2\n")) == [(2**63, 1), (2**64 - 1, 2)]
    table = read_raw(file(f"k,x\n{2**64},1\n{'9' * 50},2\n"))
    assert table.frame.collect()["k"].to_list() == [str(2**64), "9" * 50]
    assert "k: whole numbers beyond 64 bits" in table.notes[0]
    late = "".join(f"{row},1\n" for row in range(3_000))
    assert types(file(f"k,x\n{late}{2**64},1\n"))[0] == pl.String
    assert types(file(f"k,x\n{2**64},1\n1.5,2\n"))[0] == pl.Float64


def test_the_type_of_a_column_is_that_of_all_its_rows(file):
    """Guessed from the first rows and read again where that fails: a fraction, a gap and a word after 3,000 rows."""
    head = "".join(f"{row},{row},{row},{row},w\n" for row in range(3_000))
    frame = read_raw(file(f"a,b,c,d,e\n{head}0.5,NA,word,7,\n")).frame.collect()
    assert frame.dtypes == [pl.Float64, pl.Int64, pl.String, pl.Int64, pl.String]
    assert frame.row(3_000) == (0.5, None, "word", 7, None) and frame.row(7)[0] == 7.0


def test_lines_of_20_000_columns_are_read(file):
    X = np.random.default_rng(0).normal(size=(4, 20_000)) + 1e6
    lines = [",".join(f"g{number}" for number in range(20_000))]
    lines += [",".join(map(repr, row)) for row in X.tolist()]
    np.testing.assert_array_equal(read_raw(file("\n".join(lines))).frame.collect().to_numpy(), X)


def test_cells_longer_than_the_csv_module_allows_are_read(file):
    long = "ACGT" * 50_000
    assert rows(file(f'name,x,y\n{long}, "1",2\nb,3,4\n'))[0] == (long, 1, 2)


def test_names_with_a_star_are_one_file(file):
    file("a,b\n9,9\n", "x1.csv")
    assert rows(file("a,b\n1,2\n", "x*.csv")) == [(1, 2)]
    file('{"a": 9}\n', "x1.jsonl")
    assert rows(file('{"a": 1}\n', "x[1*]{a}.jsonl")) == [(1,)]


# Large text: scanned.


def same(scanned, whole):
    assert scanned.is_large and not whole.is_large
    assert (scanned.names, scanned.n_rows, scanned.notes) == (
        whole.names,
        whole.n_rows,
        whole.notes,
    )
    batches = scanned.frame.collect_batches(chunk_size=100, maintain_order=True)
    assert pl.concat(batches).equals(whole.frame.collect())


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "jsonl.gz"])
def test_a_large_file_is_scanned_and_has_the_same_rows(tmp_path, monkeypatch, ending):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "x": rng.normal(size=3_000),
            "n": range(3_000),
            "day": [datetime.date(2020, 1, 31)] * 3_000,
        }
    ).with_columns(word=pl.lit("w"), late=pl.when(pl.col("n") > 2_900).then("n"))
    path = tmp_path / f"t.{ending}"
    text = (frame.write_csv if "csv" in ending else frame.write_ndjson)().encode()
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    whole = read_raw(path)
    assert whole.frame.collect().equals(frame)
    for module in (delimited, json_lines):
        monkeypatch.setattr(module, "LARGE", 1_000)
    same(read_raw(path), whole)


def test_large_files_that_have_to_be_rewritten_are_scanned_from_a_copy(file, monkeypatch):
    path = file("größe, note\n" + '1, "a"\n' * 500, encoding="cp1252")
    whole = read_raw(path, encoding="cp1252")
    assert whole.frame.collect().row(3) == (1, "a")
    monkeypatch.setattr(delimited, "LARGE", 1_000)
    same(read_raw(path, encoding="cp1252"), whole)


def test_the_copy_is_gone_after_the_process_even_if_it_is_interrupted(file, tmp_path):
    path = file("größe, note\n" + '1, "a"\n' * 500, encoding="cp1252")
    place = tmp_path / "temporary"
    place.mkdir()
    code = f"""
import tempfile
from deccs.data.tables import delimited
from deccs.data.tables.readers import read_raw
tempfile.tempdir = {str(place)!r}
delimited.LARGE = 1_000
table = read_raw({str(path)!r}, encoding="cp1252")
assert table.frame.collect().height == 500
raise KeyboardInterrupt
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, text=True
    )
    assert "KeyboardInterrupt" in result.stderr and list(place.iterdir()) == []


# Bad text.


def test_no_file(tmp_path):
    refused(tmp_path / "none.csv", "no file")


@pytest.mark.parametrize("content", ["", "\n\n", " "])
def test_empty_file(file, content):
    refused(file(content), "empty")


@pytest.mark.parametrize("content", ["a,b\n", "a,b", '"a","b"\n\n'])
def test_header_only(file, content):
    refused(file(content), "no rows")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b\n1,2\n3\n", "line 3 has 1 fields"),
        ("a,b\n1,2\n\n3,4,5\n", "line 4 has 3 fields"),
        ("a,b\n" + "1,2\n" * 3_000 + "1,2,3\n", "line 3002 has 3 fields"),
        ("a,b\n" + "1,2\n" * 3_000 + "1\n", "line 3002 has 1 fields"),
        ("a,b\n" + "1,\n" * 3_000 + "1\n", "line 3002 has 1 fields"),
        ("a,b\n" + '1,"x,y"\n' * 30 + "1\n", "line 32 has 1 fields"),
        ("1,2\n3\n", "line 2"),
    ],
)
def test_ragged_rows(file, text, line):
    refused(file(text), line)


def test_a_quote_that_is_never_closed(file):
    refused(file('a,b\n1,"2\n3,4\n'), "quote", "line 3")
    refused(file('a,b\n1,"2\n' + "3,4\n" * 100_000), "quote")


def test_wrong_encoding_names_the_byte(file):
    head = "name,x\n" + "a,1\n" * 5
    path = file(head.encode() + "é,2\n".encode("cp1252"))
    refused(path, "0xe9", f"position {len(head)}", "line 7", "--encoding cp1252")
    assert read_raw(path, encoding="cp1252").n_rows == 6
    far = "a,1\n" * 300_000  # beyond the first block of the search
    refused(file(far.encode() + b"\xff\xfe,2\n"), f"position {len(far)}", "line 300001")
    refused(file(b"a,b\n1,\x81\n"), "position 6", encoding="cp1252")


def test_unknown_encoding(file):
    with pytest.raises(TableError, match="klingon"):
        read_raw(file("a,b\n1,2\n"), encoding="klingon")


def test_zero_bytes_are_refused_wherever_they_are(file):
    far = b"a,1\n" * 3_000_000
    refused(file(b"a,b\n1,\0\n"), "zero byte", "position 6")
    refused(file(far + b"\0,1\n"), "zero byte", f"position {len(far)}")


def test_names_must_differ(file):
    refused(file("a,b,a\n1,2,3\n4,5,6\n"), "'a' occurs twice", "columns 1 and 3")


def test_another_format_is_named(file):
    refused(file(gzip.compress(b"a,b\n1,2\n")), "gzip")
    refused(file(b"PAR1" + RANDOM), "Parquet")
    refused(file("a,b\n1,2\n", "x.csv.gz"), "unpack")


def peak_of_refusal(path):
    """The message, and the most memory in MB that a new process needed to refuse the file."""
    code = f"""
import json, time
from deccs.data.tables.readers import read_raw
from deccs.environment import peak_memory_mb
import polars
before = peak_memory_mb()
try:
    read_raw({str(path)!r})
    message = "it was read"
except ValueError as error:
    message = str(error)
print(json.dumps([message, peak_memory_mb() - before]))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=120
    )
    return json.loads(result.stdout)


@pytest.mark.parametrize("content", [b"1,2,3,", b'"'])
def test_a_line_without_end_is_refused_early(tmp_path, content):
    """2 GB in one line (a file with a hole takes no room): refused after 10 MB, in little memory."""
    path = tmp_path / "line.csv"
    with path.open("wb") as out:
        for _ in range(11):
            out.write(content.ljust(2**10, b"7") * 2**10)
        out.truncate(2 * 2**30)
    message, peak = peak_of_refusal(path)
    assert "line 1" in message and "10 MB" in message and peak < 150


@pytest.mark.parametrize("name", ["zeros.csv", "zeros.jsonl"])
def test_a_hole_of_zeros(tmp_path, name):
    path = tmp_path / name
    with path.open("wb") as out:
        out.truncate(2 * 2**30)
    refused(path, "is not text")


@pytest.mark.parametrize("mark", ["", '"', '1,2\n3,"'], ids=["one line", "a quote", "a late quote"])
def test_a_line_or_a_quote_without_end_is_refused_in_bounded_memory(file, mark):
    path = file(mark + "1 2 3\n" if mark else "")
    with path.open("a") as out:
        for _ in range(60):
            out.write(("7" * 99 + ("\n" if mark else "")) * 10_000)
    message, peak = peak_of_refusal(path)
    assert ("quote" if mark else "longer than 10 MB") in message and peak < 200


def zipped(path, ending, blocks):
    """Write compressed text, block by block."""
    if ending == "gz":
        with gzip.open(path, "wb") as out:
            for block in blocks:
                out.write(block)
    else:
        pyarrow = pytest.importorskip("pyarrow")
        with pyarrow.CompressedOutputStream(str(path), "zstd") as out:
            for block in blocks:
                out.write(block)
    return path


@pytest.mark.parametrize("ending", ["gz", "zst"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.ndjson"])
def test_compressed_text(tmp_path, name, ending):
    text = {"t.csv": b"a,b\n1,x\n2,y\n", "t.tsv": b"a\tb\n1\tx\n2\ty\n"}.get(
        name, b'{"a":1,"b":"x"}\n{"a":2,"b":"y"}\n'
    )
    path = zipped(tmp_path / f"{name}.{ending}", ending, [text])
    assert rows(path) == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_compressed_text_that_is_cut_off(tmp_path, ending):
    path = zipped(tmp_path / f"t.csv.{ending}", ending, [b"a,b\n", RANDOM.hex().encode() + b",1\n"])
    path.write_bytes(path.read_bytes()[:-20])
    refused(path, "cannot be unpacked")


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_bombs_are_refused_in_bounded_memory(tmp_path, monkeypatch, ending):
    lines = [b"1,2\n" * 2**18] * 300  # 300 MB
    path = zipped(tmp_path / f"lines.csv.{ending}", ending, [b"a,b\n", *lines])
    monkeypatch.setattr(text_files, "MAX_RATIO", 100)
    refused(path, "unpacks to more than", "If you trust it")
    path = zipped(tmp_path / f"line.csv.{ending}", ending, [b"1" * 2**20] * 300)
    message, peak = peak_of_refusal(path)
    assert "longer than 10 MB" in message and peak < 200


@pytest.mark.slow
def test_100_000_columns(file):
    names = ",".join(f"g{number}" for number in range(100_000))
    line = ",".join(["1.5", "NA"] * 50_000)
    frame = read_raw(file(f"{names}\n{line}\n{line}\n")).frame.collect()
    assert frame.shape == (2, 100_000) and frame.row(1)[:2] == (1.5, None)


# JSON lines.


def test_json_lines(file):
    text = (
        '{"n": 1, "x": 0.5, "yes": true, "word": "a", "day": "2020-01-31", "id": "007", "gap": null}\n\n'
        '{"n": 2, "x": 3, "yes": null, "word": null, "day": null, "id": "8", "gap": null, "new": 4}\n'
    )
    table = read_raw(file(text, "t.jsonl"))
    assert table.frame.collect().rows() == [
        (1, 0.5, True, "a", datetime.date(2020, 1, 31), "007", None, None),
        (2, 3.0, None, None, None, "8", None, 4),
    ]
    assert table.names == ("n", "x", "yes", "word", "day", "id", "gap", "new")
    assert table.frame.collect_schema()["gap"] == pl.String


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('{"a": 1', "not JSON"),
        ('{"a": 1} x', "not JSON"),
        ("[1, 2]", "not an object"),
        ('{"a": NaN}', "write null"),
        ('{"a": ' + "[" * 99_999, "not JSON"),
    ],
)
def test_a_broken_line_of_json_is_named(file, line, word):
    refused(file('{"a": 1}\n\n{"a": 2}\n' + line + "\n" + '{"a": 3}\n', "t.jsonl"), "line 4", word)


@pytest.mark.parametrize("large", [False, True])
def test_json_values_of_several_types_and_nested_ones(file, monkeypatch, large):
    lines = [{"a": 1, "b": 2, "c": {"x": 1}, "d": 7}, {"a": "word", "b": True, "c": None, "d": 8.5}]
    path = file("".join(json.dumps(line) + "\n" for line in lines), "t.jsonl")
    if large:
        monkeypatch.setattr(json_lines, "LARGE", 10)
    table = read_raw(path)
    assert table.is_large == large
    assert table.frame.collect().rows() == [("1", "2", 7.0), ("word", "true", 8.5)]
    assert table.names == ("a", "b", "d") and "c" in table.notes[0] and "records" in table.notes[0]


def test_json_lines_without_columns(file):
    refused(file("{}\n{}\n", "t.jsonl"), "no column")
    refused(file('{"a": [1]}\n{"a": [2]}\n', "t.jsonl"), "no column")


# Parquet, Feather, Arrow.


FRAME = pl.DataFrame(
    {
        "key": [1, 2, 3],
        "x": [0.5, np.nan, None],
        "word": pl.Series(["u", None, "v"], dtype=pl.Categorical),
        "day": [datetime.date(2020, 1, day) for day in (1, 2, 3)],
        "price": pl.Series(["1.50", "2.25", None]).cast(pl.Decimal(10, 2)),
        "wide": pl.Series([2**100, 1, None], dtype=pl.Int128),
        "none": [None, None, None],
        "list": [[1], [2], [3]],
        "record": [{"a": 1}, {"a": 2}, {"a": 3}],
        "bytes": [b"a", b"b", b"c"],
    }
)
WRITERS = {
    "parquet": pl.DataFrame.write_parquet,
    "feather": pl.DataFrame.write_ipc,
    "arrow": pl.DataFrame.write_ipc_stream,
}


@pytest.mark.parametrize("ending", WRITERS)
def test_parquet_and_arrow(tmp_path, ending):
    path = tmp_path / f"t*=1.{ending}"
    frame = FRAME if ending == "parquet" else FRAME.drop("wide")
    WRITERS[ending](frame, path)
    table = read_raw(path, as_text=["key"])
    rows = table.frame.collect()
    assert rows["key"].to_list() == ["1", "2", "3"]
    assert rows["x"].to_list() == [0.5, None, None]  # NaN is a missing value
    assert rows["word"].to_list() == ["u", None, "v"] and rows["word"].dtype == pl.Categorical
    assert rows["price"].to_list() == [1.5, 2.25, None] and rows["price"].dtype == pl.Float64
    assert rows["none"].dtype == pl.String
    if ending == "parquet":
        assert rows["wide"].to_list() == [str(2**100), "1", None]
    (note,) = table.notes
    assert "list (List(Int64)), record (Struct({'a': Int64})), bytes (Binary)" in note
    assert set(table.names) == set(rows.columns) == set(frame.columns) - {"list", "record", "bytes"}


@pytest.mark.parametrize("ending", WRITERS)
def test_parquet_and_arrow_that_are_damaged(tmp_path, ending):
    path = tmp_path / f"t.{ending}"
    WRITERS[ending](pl.DataFrame({"a": np.random.default_rng(0).normal(size=9_000)}), path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused(path, "complete")
    path.write_bytes(content[-500:])
    refused(path)


def test_a_damaged_parquet_file_ends_no_process(tmp_path):
    """Bytes of the footer changed at random: some make polars ask for exabytes, which ends a process."""
    path = tmp_path / "t.parquet"
    FRAME.write_parquet(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(8):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole) - 600, len(whole), 4):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        with suppress(TableError):
            read_raw(path)


def test_parquet_with_another_ending(tmp_path):
    FRAME.write_parquet(tmp_path / "t.feather")
    refused(tmp_path / "t.feather", "Parquet", "Rename")
    FRAME.drop("wide").write_ipc(tmp_path / "t.parquet")
    refused(tmp_path / "t.parquet", "not Parquet")


def test_few_bytes_with_many_rows_are_not_brought_into_memory(tmp_path):
    path = tmp_path / "t.parquet"
    pl.select(x=pl.repeat(1.5, 40_000_000)).write_parquet(path)
    assert path.stat().st_size < 2**20
    table = read_raw(path)
    assert table.is_large and table.n_rows == 40_000_000


def test_without_rows(tmp_path):
    pl.DataFrame({"a": []}, schema={"a": pl.Int64}).write_parquet(tmp_path / "t.parquet")
    refused(tmp_path / "t.parquet", "no rows")


# Spreadsheets.


@pytest.fixture
def book(tmp_path):
    """``book(fill)``: an Excel file whose sheets ``fill`` has made."""
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("fastexcel")

    def write(fill):
        path = tmp_path / "book.xlsx"
        with xlsxwriter.Workbook(path) as made:
            fill(made)
        return path

    return write


def test_a_spreadsheet(book):
    def fill(made):
        day = made.add_format({"num_format": "yyyy-mm-dd"})
        sheet = made.add_worksheet("First")
        made.add_worksheet("Second")
        for place, name in enumerate(("id", "x", "day", "sum", "zip", "late", "yes", "merged")):
            sheet.write(0, place, name)
        for row in range(1, 1_501):
            sheet.write(row, 0, row)
            sheet.write(row, 1, row / 2 if row > 1 else "NA")
            sheet.write_datetime(row, 2, datetime.datetime(2020, 1, 31), day)
            sheet.write_formula(row, 3, f"=B{row}*2", None, row)
            sheet.write_string(row, 4, f"{row:05d}")
            sheet.write(row, 5, row if row < 1_400 else "word")
            sheet.write_boolean(row, 6, row % 2)
        sheet.merge_range(1, 7, 3, 7, "m")

    table = read_raw(book(fill), as_text=["id"])
    frame = table.frame.collect()
    assert frame.schema == {
        "id": pl.String,
        "x": pl.Float64,
        "day": pl.Date,
        "sum": pl.Float64,
        "zip": pl.String,
        "late": pl.String,
        "yes": pl.Boolean,
        "merged": pl.String,
    }
    assert frame.row(0) == ("1", None, datetime.date(2020, 1, 31), 1.0, "00001", "1", True, "m")
    assert frame.row(1)[-1] is None and table.n_rows == 1_500
    first, second = table.notes
    assert "'First'" in first and "Second" in first
    assert "late: text ('word' in row 1,401), 1,399 other" in second


def test_a_sheet_that_begins_further_down_and_has_blank_rows(book):
    def fill(made):
        sheet = made.add_worksheet()
        for row, cells in {3: ("a", "b"), 4: (1, 2), 6: (3, None), 7: (5, 6)}.items():
            sheet.write_row(row, 2, cells)

    assert rows(book(fill)) == [(1.0, 2.0), (3.0, None), (5.0, 6.0)]


def test_a_sheet_without_names(book):
    path = book(
        lambda made: [
            made.add_worksheet().write_row(0, 0, (1, 2)),
            made.worksheets()[0].write_row(1, 0, (3, 4)),
        ]
    )
    table = read_raw(path)
    assert table.names == ("column 1", "column 2") and not table.has_names and table.n_rows == 2
    assert read_raw(path, header=True).names == ("1", "2")


def test_bad_spreadsheets(book, file):
    refused(book(lambda made: made.add_worksheet("Nothing")), "'Nothing'", "no rows")
    refused(book(lambda made: made.add_worksheet().write_row(0, 0, ("a", "b"))), "no rows")
    refused(
        book(
            lambda made: (
                [made.add_worksheet().write_row(row, 0, ("a", "a")) for row in (0,)]
                + [made.worksheets()[0].write_row(1, 0, (1, 2))]
            )
        ),
        "'a' occurs twice",
    )
    refused(file("<html><table><tr><td>1</td></tr></table></html>", "x.xls"), "web page")
    archive = file("", "x.xlsx")
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("a.txt", "hello")
    refused(archive, "cannot be read as a spreadsheet")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as on Linux")
def test_two_cells_at_the_corners_of_a_sheet_end_no_process(book):
    """calamine makes a table of all 17 billion cells between them."""

    def fill(made):
        sheet = made.add_worksheet()
        sheet.write(0, 0, "a")
        sheet.write(1_048_575, 16_383, 1)

    refused(book(fill), "not enough memory")


# Databases.


@pytest.fixture
def shop(tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "create table orders (id integer, price real, day text, note, data blob)"
        )
        connection.executemany(
            "insert into orders values (?, ?, ?, ?, ?)",
            [
                (row, row / 2, f"2020-01-{row + 1:02d}", row if row < 200 else "x", b"b")
                for row in range(20)
            ],
        )
    connection.close()
    return path


def address(path):
    return f"sqlite:///{path}"


def test_a_query(shop, monkeypatch):
    table = read_raw(
        address(shop), query="select id, price, day, data from orders where id < 2", as_text=["id"]
    )
    assert table.frame.collect().rows() == [
        ("0", 0.0, datetime.date(2020, 1, 1)),
        ("1", 0.5, datetime.date(2020, 1, 2)),
    ]
    assert "data" in table.notes[0]
    monkeypatch.chdir(shop.parent)
    assert read_raw("sqlite:///shop.db", query="select id from orders").n_rows == 20


@pytest.mark.parametrize(
    "query",
    [
        "delete from orders",
        "delete from orders returning id",
        "update orders set price = 0",
        "drop table orders",
        "attach 'other.db' as other",
        "vacuum into 'other.db'",
        "create temp table other (x)",
        "pragma journal_mode = wal",
        "pragma writable_schema = 1",
        "select load_extension('other')",
        "select writefile('other.db', 'x')",
        "select 1; delete from orders",
    ],
)
def test_a_query_can_only_read(shop, monkeypatch, query):
    monkeypatch.chdir(shop.parent)
    before = shop.read_bytes()
    with pytest.raises(TableError):
        read_raw(address(shop), query=query)
    assert shop.read_bytes() == before and os.listdir() == ["shop.db"]


def test_queries_that_fail(shop, tmp_path):
    refused(address(shop), "orders", "needs a query")
    refused(address(shop), "no such table: order", query="select * from order_lines")
    refused(address(shop), "syntax error", query="selec 1")
    refused(address(shop), "no rows", query="select * from orders where id < 0")
    refused(address(shop), "'id'", query="select id, id from orders")
    refused(address(tmp_path / "none.db"), "no file", query="select 1")
    refused("sqlite://shop.db", "names no file", query="select 1")
    refused("oracle://ann:secret@host/x", "no known database", query="select 1")
    (tmp_path / "text.db").write_text("hello " * 99)
    refused(address(tmp_path / "text.db"), "not a database", query="select 1 from sqlite_master")
    with pytest.raises(TableError, match="as text"):
        read_raw(Path("sqlite:///shop.db"), query="select 1")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    refused(tmp_path / "t.csv", "not a database", query="select 1")


def test_a_locked_database(shop, monkeypatch):
    monkeypatch.setattr("deccs.data.tables.databases.SECONDS", 0.1)
    writer = sqlite3.connect(shop, isolation_level=None)
    writer.execute("begin exclusive")
    refused(address(shop), "locked", query="select * from orders")
    writer.execute("rollback")
    writer.close()


SECRET = "s3cret/&%"


@pytest.mark.parametrize(
    "server",
    [
        "postgresql://ann:s3cret%2F%26%25@localhost:{port}/shop",
        "postgresql://ann@localhost:{port}/shop?password=s3cret%2F%26%25",
        "postgresql://ann:s3cret%2F%26%25@localhost:notaport/shop",
        "postgresql://ann:s3cret%2F%26%25@[localhost/shop",
        "mysql://ann:s3cret%2F%26%25@localhost:{port}/shop",
    ],
)
def test_no_message_has_the_password(server):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    message = refused(server.format(port=port), query="select 1")
    assert "s3cret" not in message and "localhost" in message


@pytest.fixture(scope="module")
def postgres():
    """The address of a real server on this machine, with a password."""
    pytest.importorskip("connectorx")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="deccs-postgres-", dir="/tmp"))
    who = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    if who:  # the server refuses to run as root
        shutil.chown(folder, **who)
    (folder / "password").write_text(SECRET)
    (folder / "password").chmod(0o644)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]

    def run(program, *arguments):
        command = [programs[-1].with_name(program), "-D", folder / "data", *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, **who)

    run(
        "initdb", "-U", "ann", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}", "--no-sync"
    )
    options = f"-p {port} -c listen_addresses=localhost -c unix_socket_directories= -c fsync=off"
    run("pg_ctl", "-o", options, "-l", folder / "log", "-w", "start")
    try:
        yield f"postgresql://ann:s3cret%2F%26%25@localhost:{port}/postgres"
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder)


ROWS = """select i as id, i * 0.5 as price, date '2020-01-01' + i as day, i % 2 = 0 as even, array[1, 2] as list,
'w' || i as word, case when i > 1 then 'NaN'::float8 else i end as gap from generate_series(1, 100) i"""


def test_a_query_of_postgresql(postgres):
    table = read_raw(postgres, query=ROWS)
    assert table.n_rows == 100 and "list" in table.notes[0]
    row = table.frame.collect().row(1)
    assert row == (2, 1.0, datetime.date(2020, 1, 3), True, "w2", None)


@pytest.mark.parametrize(
    "query",
    [
        "create table other (x int)",
        "select set_config('transaction_read_only', 'off', false)",
        "copy (select 1) to '/tmp/deccs-must-not-exist'",
        "with x as (select 1) select * into other from x",
        "select * from nothing",
        "select 1; select 2",
        "selec",
        "select 1 as a, 2 as a",
        "select 1 where false",
    ],
)
def test_queries_that_postgresql_refuses(postgres, query):
    message = refused(postgres, "localhost", query=query)
    assert "s3cret" not in message and not Path("/tmp/deccs-must-not-exist").exists()


@pytest.mark.slow
def test_a_wrong_password(postgres):
    """connectorx tries for half a minute."""
    message = refused(postgres.replace("s3cret", "wr0ng"), "password authentication", query=ROWS)
    assert "wr0ng" not in message


# Arrays.


def test_arrays(tmp_path):
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "x.npy", X)
    table = read_raw(tmp_path / "x.npy")
    np.testing.assert_array_equal(table.array, X)
    assert table.array.dtype == np.float32 and isinstance(table.array, np.memmap)
    assert (table.frame, table.has_names, table.n_rows) == (None, False, 4)
    assert table.names == ("column 1", "column 2", "column 3")
    np.savez(tmp_path / "x.npz", X=X, y=[0, 1, 1, 0], key=list("abcd"), odd=[1, 2])
    table = read_raw(tmp_path / "x.npz")
    np.testing.assert_array_equal(table.array, X)
    assert {name: list(column) for name, column in table.extras.items()} == {
        "y": [0, 1, 1, 0],
        "key": list("abcd"),
    }


def test_an_array_of_images(tmp_path):
    images = np.arange(24).reshape(2, 3, 4)
    np.save(tmp_path / "x.npy", images)
    table = read_raw(tmp_path / "x.npy")
    np.testing.assert_array_equal(table.array, images.reshape(2, 12))
    assert table.image_shape == (3, 4)
    assert table.names[:5] == ("pixel 0,0", "pixel 0,1", "pixel 0,2", "pixel 0,3", "pixel 1,0")


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


# AnnData, written as its documentation says.


def element(parent, name, value, kind, version="0.2.0"):
    import h5py

    if isinstance(value, dict):
        group = parent.create_group(name)
        for key, part in value.items():
            group[key] = part
        item = group
    else:
        dtype = h5py.string_dtype() if isinstance(value[0], str) else None
        item = parent.create_dataset(name, data=value, dtype=dtype)
    item.attrs["encoding-type"], item.attrs["encoding-version"] = kind, version
    return item


@pytest.fixture
def cells(tmp_path):
    """``cells(X, pca)``: an .h5ad file of four cells and three genes."""
    h5py = pytest.importorskip("h5py")

    def write(X, pca=None):
        path = tmp_path / "cells.h5ad"
        with h5py.File(path, "w") as file:
            if hasattr(X, "indptr"):
                parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
                element(file, "X", parts, f"{X.format}_matrix").attrs["shape"] = X.shape
            else:
                element(file, "X", X, "array")
            obs = file.create_group("obs")
            obs.attrs["_index"] = "_index"
            obs.attrs["column-order"] = ["type", "depth", "sick", "long"]
            element(obs, "_index", ["c1", "c2", "c3", "c4"], "string-array")
            codes = np.array([0, 1, -1, 0], dtype=np.int8)
            categories = np.array([b"T", b"B"])
            element(obs, "type", {"codes": codes, "categories": categories}, "categorical")
            element(obs, "depth", [1, 2, 3, 4], "array")
            masked = {"values": [True, False, True, True], "mask": [False, False, False, True]}
            element(obs, "sick", masked, "nullable-boolean")
            element(obs, "long", [1, 2, 3, 4, 5], "array")  # of another length: left out
            var = file.create_group("var")
            var.attrs["_index"] = "gene"
            element(var, "gene", ["g1", "g2", "g3"], "string-array")
            if pca is not None:
                element(file.create_group("obsm"), "X_pca", pca, "array")
        return path

    return write


X = np.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 0], [0, 6, 0]])


@pytest.mark.parametrize("form", ["array", "csr", "csc"])
def test_annotated_data(cells, form):
    import scipy.sparse as sp

    stored = {"array": X, "csr": sp.csr_matrix(X), "csc": sp.csc_matrix(X)}[form]
    table = read_raw(cells(stored))
    np.testing.assert_array_equal(table.array, X)
    assert table.names == ("g1", "g2", "g3") and list(table.ids) == ["c1", "c2", "c3", "c4"]
    assert list(table.extras["type"]) == ["T", "B", "", "T"]
    assert list(table.extras["depth"]) == [1, 2, 3, 4]
    np.testing.assert_array_equal(table.extras["sick"], [1, 0, 1, np.nan])
    assert "long" not in table.extras and "X is used" in table.notes[0]


def test_principal_components_are_taken_where_they_are(cells):
    table = read_raw(cells(X, pca=X[:, :2] * 10))
    np.testing.assert_array_equal(table.array, X[:, :2] * 10)
    assert table.names == ("PC1", "PC2") and "2 principal components" in table.notes[0]


def test_bad_annotated_data(cells, monkeypatch, tmp_path):
    import h5py
    import scipy.sparse as sp

    whole = cells(X).read_bytes()
    refused(cells(np.array([1.0, 2])), "shape")
    sparse = sp.csr_matrix(X)
    sparse.indices[0] = 10**6  # outside of the matrix
    refused(cells(sparse), "indices")
    wide = sp.csr_matrix(X)
    wide.resize(4, 3)
    path = cells(wide)
    with h5py.File(path, "a") as file:
        file["X"].attrs["shape"] = (10**6, 10**6)
    refused(path, "principal components")
    with h5py.File(path, "w") as file:
        file["data"] = [1]
    refused(path, "no X and obs")
    path.write_bytes(whole[: len(whole) // 2])
    refused(path)
    rng = np.random.default_rng(0)
    for _ in range(8):  # HDF5 reads beyond its memory in some of these
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 9):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        with suppress(TableError):
            read_raw(path)


# Images.


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
    table = read_raw(tmp_path)
    np.testing.assert_array_equal(
        table.array, [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5]]
    )
    assert list(table.ids) == ["a/0.png", "a/1.png", "b/0.png"]
    assert table.image_shape == (2, 3)
    assert list(table.extras["folder"]) == ["a", "a", "b"]
    assert len(table.notes) == 1 and "readme.txt" in table.notes[0]


def test_images_of_16_bits_keep_their_shades(tmp_path):
    save_images(tmp_path / "a", [(20, 20), (20, 20)], "I;16")
    assert read_raw(tmp_path / "a").array.max() == 400


def test_images_of_several_sizes_get_the_median_size(tmp_path):
    save_images(tmp_path, [(2, 3), (4, 6), (2, 3)])
    table = read_raw(tmp_path)
    assert table.image_shape == (2, 3)
    np.testing.assert_array_equal(table.array[0], [0, 1, 2, 3, 4, 5])
    # Averages of 2 x 2 pixels: (1 + 2 + 7 + 8) / 4 = 4.5 is rounded to 5, and so on.
    np.testing.assert_array_equal(table.array[1], [5, 7, 9, 17, 19, 21])
    assert "1 of 3 images" in table.notes[0] and "3 x 2 pixels" in table.notes[0]


def test_large_images_of_several_sizes_become_small(tmp_path):
    save_images(tmp_path, [(200, 300), (220, 300)], "I;16")
    table = read_raw(tmp_path)
    assert table.image_shape == (53, 76) and "4,096 pixels" in table.notes[0]  # 210 : 300
    assert table.array.shape == (2, 53 * 76) and table.array.max() > 50_000


def test_bad_folders_of_images(tmp_path, monkeypatch):
    (tmp_path / "none").mkdir()
    refused(tmp_path / "none", "no images")
    save_images(tmp_path / "broken", [(2, 3)])
    (tmp_path / "broken" / "1.png").write_bytes((tmp_path / "broken" / "0.png").read_bytes()[:40])
    refused(tmp_path / "broken", "1.png")
    save_images(tmp_path / "good", [(2, 3)])
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(TableError, match="Pillow"):
        read_raw(tmp_path / "good")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_a_pipe_among_images_is_not_read(tmp_path):
    save_images(tmp_path / "a", [(2, 3), (2, 3)])
    os.mkfifo(tmp_path / "a" / "2.png")
    table = read_raw(tmp_path / "a")
    assert list(table.ids) == ["0.png", "1.png"] and "2.png" in table.notes[0]


def test_large_images_are_refused_before_they_are_decoded(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    Image.new("1", (9_000, 9_000)).save(tmp_path / "0.png")
    refused(tmp_path, "9000 x 9000", "131,072 pixels", "smaller")


def test_images_beyond_the_limit_of_pillow_are_refused_without_its_warning(tmp_path, recwarn):
    Image = pytest.importorskip("PIL.Image")
    Image.new("1", (10_000, 10_000)).save(tmp_path / "0.png")
    refused(tmp_path, "10000 x 10000", "131,072 pixels")
    Image.new("1", (20_000, 10_000)).save(tmp_path / "0.png")
    refused(tmp_path, "131,072 pixels")
    assert not recwarn.list


def test_damaged_images_are_named(tmp_path):
    save_images(tmp_path, [(8, 8)])
    whole = (tmp_path / "0.png").read_bytes()
    rng = np.random.default_rng(0)
    messages = []
    for _ in range(200):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] = rng.integers(256)
        (tmp_path / "0.png").write_bytes(bytes(damaged[: rng.integers(1, len(whole) + 1)]))
        try:
            read_raw(tmp_path)
        except TableError as error:
            messages.append(str(error))
    assert len(messages) > 100 and all("0.png" in message for message in messages)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have only UTF-8 names")
def test_names_of_images_that_are_not_utf_8_are_spelled_out(tmp_path):
    save_images(tmp_path / "a", [(2, 3), (2, 3)])
    os.rename(tmp_path / "a" / "0.png", os.fsencode(tmp_path / "a") + b"/\xff.png")
    table = read_raw(tmp_path / "a")
    assert sorted(table.ids) == ["1.png", "\\udcff.png"]
    assert "".join(table.ids).encode("utf-8")


# All endings.


@pytest.mark.parametrize(
    "ending", [*(name for name in READERS if name not in NO_ENDINGS), ".doc", ""]
)
def test_garbage(file, ending):
    for content in (b"", *GARBAGE):
        refused(file(content, f"x{ending}"))


@pytest.mark.parametrize(
    ("module", "name", "extra"),
    [
        ("fastexcel", "x.xlsx", "tables"),
        ("h5py", "x.h5ad", "anndata"),
        ("pyarrow", "x.csv.zst", "tables"),
    ],
)
def test_without_a_library_the_error_says_what_to_install(file, monkeypatch, module, name, extra):
    monkeypatch.setitem(sys.modules, module, None)
    refused(file("PK x", name), f'pip install "deccs[{extra}]"')


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_pipes_and_devices_are_refused_before_they_are_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "pipe.csv")
    (tmp_path / "zeros.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "link.csv", "zeros.csv"):
        refused(tmp_path / name, "pipe", "Save the data to a file")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited as on Linux")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_without_memory_for_threads_reading_does_not_hang(tmp_path, name):
    frame = pl.DataFrame(np.eye(9))
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    code = f"""
import resource
from pathlib import Path
import polars
from deccs.data.tables import TableError
from deccs.data.tables.readers import read_raw

in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**23, in_use + 2**23))
read_raw({str(tmp_path / name)!r})
"""
    # polars may end the process there, which no caller can prevent.
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    subprocess.run(command, capture_output=True, check=False, timeout=60, env=environment)


# The registry of readers.


@pytest.fixture
def no_new_readers():
    """Readers registered by the test are gone after it."""
    before = dict(READERS)
    yield
    READERS.clear()
    READERS.update(before)


def test_a_new_format_is_one_function(file, no_new_readers):
    @reader(".words")
    def read_words(path):
        sizes = [[len(word), word.count("e")] for word in path.read_text().split()]
        return RawTable(
            array=np.array(sizes, dtype=float), names=("letters", "e"), n_rows=len(sizes)
        )

    table = read_raw(file("three one eleven", "text.WORDS"))
    np.testing.assert_array_equal(table.array, [[5, 2], [3, 1], [6, 3]])
    assert ".words" in readable()
    refused(file("x", "x.docx"), ".csv", ".words", FOLDER, DATABASE)


def test_a_reader_gets_the_options_it_takes(file, no_new_readers):
    calls = []

    @reader(".one", ".two.gz")
    def read(path, *, as_text, encoding, query):
        calls.append((path.name, tuple(as_text), encoding, query))
        return RawTable(array=np.eye(2), names=("x", "y"), n_rows=2)

    read_raw(file("x", "x.one"), encoding="cp1252", header=True)
    read_raw(file("x", "x.two.GZ"), as_text=["id"], query="select 1")
    assert calls == [("x.one", (), "cp1252", None), ("x.two.GZ", ("id",), "utf-8", "select 1")]


@pytest.mark.parametrize("ending", ["csv", ".CSV", ""])
def test_an_ending_has_a_dot_and_lower_case(ending):
    with pytest.raises(ValueError, match="looks like"):
        reader(ending)


def test_an_ending_has_one_reader_and_a_reader_only_known_options(no_new_readers):
    with pytest.raises(ValueError, match="already has a reader, read_delimited"):
        reader(".new", ".csv")
    with pytest.raises(ValueError, match="takes sheet.*encoding, header, as_text, query"):
        reader(".wk1")(lambda path, sheet: None)
    assert not {".new", ".wk1"} & set(READERS)
