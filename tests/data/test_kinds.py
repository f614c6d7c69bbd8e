"""Kinds of columns: realistic columns with the kind that each must have, and errors that say what to do."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from deccs.data.kinds import KindError, kinds_of
from deccs.data.scanned import survey_frame

N = 400


def drawn(seed=0):
    return np.random.default_rng(seed)


def kind(values, name="x", given=None):
    """What a frame with this one column is said to hold."""
    (told,) = kinds_of(pl.DataFrame({name: values}), {name: given} if given else None)
    return told


def texts(n_words, n=N):
    words = ["the", "parcel", "came", "late", "and", "wet", "again", "nobody", "rang"]
    return [" ".join(drawn(row).choice(words, n_words)) for row in range(n)]


def dates(n=N):
    days = drawn().integers(0, 9_999, n)
    return [dt.date(1990, 1, 1) + dt.timedelta(days=int(day)) for day in days]


COLUMNS = {  # name: (values, kind)
    "age": (drawn().integers(18, 90, N), "number"),
    "year": (drawn().integers(1990, 2024, N), "number"),
    "rating": (drawn().integers(1, 6, N), "number"),
    "visits": (drawn().poisson(2, N), "number"),
    "price": (drawn().gamma(2, 10, N).round(2), "number"),
    "price in cents": ((drawn().gamma(2, 1_000, N)).astype(int), "number"),
    "income": (drawn().choice(np.arange(20_000, 200_000), N, replace=False), "number"),
    "phone_calls": (drawn().integers(0, 40, N), "number"),
    "seconds": (drawn().normal(0, 1e9, N).round(), "number"),
    "written": ([str(value) for value in drawn().integers(0, 90, N)], "number"),
    "written with decimals": ([f" {value:.3f}" for value in drawn().normal(size=N)], "number"),
    "0/1": (drawn().integers(0, 2, N), "yes/no"),
    "0.0/1.0 with gaps": (drawn().choice([0.0, 1.0, np.nan], N), "yes/no"),
    "English": (drawn().choice(["Yes", "no"], N), "yes/no"),
    "German": (drawn().choice(["ja", "Nein"], N), "yes/no"),
    "French": (drawn().choice(["oui", "non"], N), "yes/no"),
    "Spanish": (drawn().choice(["sí", "no"], N), "yes/no"),
    "Portuguese": (drawn().choice(["sim", "não"], N), "yes/no"),
    "Russian": (drawn().choice(["да", "нет"], N), "yes/no"),
    "truth": (drawn().integers(0, 2, N).astype(bool), "yes/no"),
    "a mark or nothing": (drawn().choice(["x", ""], N), "yes/no"),
    "store_id": (drawn().integers(1, 8, N), "category"),
    "state": (drawn().integers(1, 10, N), "category"),
    "city": (drawn().choice(["Oslo", "Bergen", "Hamar"], N), "category"),
    "part number": ([f"A{place:03d}" for place in drawn().integers(0, 60, N)], "category"),
    "stratum": ([f"{value:03d}" for value in drawn().integers(0, 9, N)], "category"),
    "shirt": (drawn().choice(["S", "M", "L"], N), "ordered"),
    "pain": (drawn().choice(["none", "mild", "severe"], N), "ordered"),
    "born": (dates(), "date"),
    "born, as text": ([str(date) for date in dates()], "date"),
    "seen": ([f"{date}T08:30:00Z" for date in dates()], "date"),
    "note": (texts(9), "text"),
    "few words in between": ([*map(str, range(N - 2)), "n/a", "?"], "text"),
    "zip": (drawn().integers(10_000, 99_999, N), "code"),
    "PostalCode": ([f"{value:05d}" for value in drawn().integers(0, 99_999, N)], "code"),
    "phone": (drawn().integers(10**9, 10**10, N), "code"),
    "product_id": (drawn().integers(1, 60, N), "code"),
    "customerID": (drawn().permutation(N) + 1_000, "id"),
    "permuted": (drawn().permutation(N) + 1, "id"),
    "counts rows": (np.arange(N), "id"),
    "uuid": ([f"{value:032x}" for value in drawn().integers(0, 2**62, N)], "id"),
    "mail": ([f"u{place}@x.org" for place in range(N)], "id"),
    "64-bit key": (drawn().integers(2**60, 2**62, N), "id"),
    "64-bit key, as text": ([str(value) for value in drawn().integers(2**60, 2**62, N)], "id"),
    "one value": (np.full(N, 3.5), "constant"),
    "nothing": (np.full(N, np.nan), "constant"),
    "blank": ([" ", ""] * (N // 2), "constant"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_each_column_has_its_kind(name):
    values, expected = COLUMNS[name]
    told = kind(values, name)
    assert (told.name, told.kind) == (name, expected), told.why


@pytest.mark.parametrize("name", COLUMNS)
def test_a_few_gaps_change_no_kind(name):
    values, expected = COLUMNS[name]
    if expected == "constant" or name == "counts rows":  # a value or nothing says something
        return
    series = pl.Series(values).set(pl.Series(drawn(1).random(N) < 0.05), None)
    assert kind(series, name).kind == expected
    n_blank = sum(value in ("", None) or value != value for value in series.to_list())
    assert kind(series, name).n_missing == n_blank > 0


@pytest.mark.parametrize("name", COLUMNS)
def test_the_order_of_rows_decides_only_what_counts_them(name):
    values, expected = COLUMNS[name]
    order = drawn(2).permutation(N)
    assert kind([list(values)[place] for place in order], name).kind == expected


def test_one_value_is_constant_and_one_value_beside_gaps_is_yes_or_no():
    assert kind(["a", "a"]).kind == "constant"
    assert kind(["a", None, "a"]).kind == "yes/no"
    assert kind([2.5, None, 2.5]).kind == "yes/no"


def test_types_with_levels_say_what_they_are():
    sizes = pl.Enum(["tiny", "huge"])
    assert kind(pl.Series(["huge", "tiny"] * 20, dtype=sizes)).kind == "ordered"
    assert kind(pl.Series(["a", "b", "c"] * 20, dtype=pl.Categorical)).kind == "category"
    assert kind(pl.Series(["1", "2", "3"] * 20, dtype=pl.Categorical)).kind == "category"
    assert kind(pl.Series(["yes", "no"] * 20, dtype=pl.Categorical)).kind == "yes/no"
    each_once = [f"level {place}" for place in range(N)]
    assert kind(pl.Series(each_once, dtype=pl.Categorical)).kind == "id"  # from a file, perhaps


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1, 2], [3]], "lists"),
        (pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2)), "lists"),
        ([{"a": 1}, {"a": 2}], "records"),
        ([b"\xff", b"a"], "bytes"),
        (pl.Series([1 + 2j, 3j], dtype=pl.Object), "objects"),
    ],
)
def test_what_holds_no_single_values_is_left_out(values, words):
    told = kind(values)
    assert told.kind == "text" and not told.is_used and words in told.why
    with pytest.raises(KindError, match=f"Column 'x' holds {words}.*Make columns of single values"):
        kind(values, given="category")


def test_durations_and_times_of_the_day_are_numbers():
    assert kind([dt.timedelta(days=day) for day in (1, 2, 2, 5)] * 5).kind == "number"
    assert kind([dt.time(hour) for hour in (1, 2, 2, 5)] * 5).kind == "number"


def test_the_user_knows_better():
    told = kind(drawn().integers(10_000, 99_999, N), "zip", given="category")
    assert (told.kind, told.given, told.is_used) == ("category", True, True)
    assert not kind(COLUMNS["note"][0]).is_used
    assert kind(COLUMNS["note"][0], given="text").is_used


def test_what_a_column_cannot_be_is_refused():
    with pytest.raises(KindError, match="Column 'x' cannot be numbers: it holds Oslo"):
        kind(["Oslo", "Hamar"], given="number")
    with pytest.raises(KindError, match="Column 'x' cannot be numbers"):
        kind(dates(), given="number")
    with pytest.raises(KindError, match="Column 'x' cannot be dates: it holds 7.*2024-01-31"):
        kind([7, 8], given="date")
    with pytest.raises(KindError, match="Column 'x' cannot be yes or no: it has 3 values"):
        kind(["a", "b", "c"], given="yes/no")
    assert kind(["yes", "y", "no"], given="yes/no").kind == "yes/no"


def test_kinds_of_columns_that_are_not_there_are_refused_with_a_hint():
    with pytest.raises(KindError, match="'hight', which is not there. Did you mean 'height'?"):
        kinds_of(pl.DataFrame({"height": [1.5]}), {"hight": "number"})
    with pytest.raises(KindError, match="must be one of number, yes/no, category"):
        kinds_of(pl.DataFrame({"height": [1.5]}), {"height": "size"})


@pytest.mark.parametrize("name", ["*", "^.*$", "|rows", "count", "len", "value", "", "a b", "🐈"])
def test_any_name_is_a_name(name):
    frame = pl.DataFrame({name: ["a", "b"] * 10, "other": [0.5, 1.5] * 10})
    assert [(told.name, told.kind) for told in kinds_of(frame)] == [
        (name, "category"),
        ("other", "number"),
    ]


def test_a_frame_that_is_scanned_has_the_same_kinds_as_one_in_memory():
    frame = pl.DataFrame({name: list(values) for name, (values, _) in COLUMNS.items()})
    kinds = [told.kind for told in kinds_of(frame)]
    sample = survey_frame(frame.lazy(), frame.height).sample
    assert [told.kind for told in kinds_of(sample)] == kinds


def test_values_in_words():
    assert kind([1.5, 2_500.0, 7.25]).values == "1.5 to 2,500"
    assert kind(["b", "a", "b", "c", "d"] * 4).values == "b, a, c and 1 more"
    assert kind(pl.Series(dates()).sort()).values.startswith("1990-")
