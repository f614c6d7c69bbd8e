"""Rules, their conditions, and their precision and coverage."""

import re

import numpy as np
import pytest

from deccs.describing import rules as module
from deccs.describing.columns import Described
from deccs.describing.conditions import Between, OneOf, anything
from deccs.describing.rules import Rule, counted, rules
from deccs.describing.words import MONTHS, day_of
from tests.describing.tables import CITIES, HOSTILE, SIZES, levels, number, random_table, rows_of


def texts(found):
    return [[str(rule) for rule in line] for line in found]


# ---- conditions


def test_a_gap_meets_only_conditions_that_say_so():
    age = number([1, 2, 3, np.nan], "age")
    for condition in (Between(age, low=1.5), Between(age, high=1.5), Between(age)):
        assert not condition.holds[3] and "missing" not in str(condition)
    assert Between(age, low=1.5, or_missing=True).holds.tolist() == [False, True, True, True]
    city = levels([0, 1, 2, np.nan], CITIES)
    assert not OneOf(city, frozenset({1, 2, 3})).holds[3]
    assert OneOf(city, frozenset({1}), or_missing=True).holds.tolist() == [False, True, False, True]


def test_missing_given_and_anything():
    age, city = number([1, np.nan], "age"), levels([np.nan, 0], CITIES)
    assert str(Between(age, 5, 5, or_missing=True)) == "age is missing"
    assert Between(age, 5, 5, or_missing=True).holds.tolist() == [False, True]
    assert str(Between(age)) == "age is given" and Between(age).holds.tolist() == [True, False]
    assert str(OneOf(city, frozenset(), or_missing=True)) == "city is missing"
    assert str(OneOf(city, frozenset(range(4)))) == "city is given"
    for column in (age, city):
        assert anything(column).is_free and anything(column).holds.all()


def test_conditions_of_one_column_become_one():
    x = number([1.0, 4.0, 6.0, 9.0], "x")
    inner = anything(x).beyond(3, False).beyond(5, False).up_to(8, False)
    assert str(inner) == "5 < x <= 8" and inner.holds.tolist() == [False, False, True, False]
    city = levels([0, 1, 2], CITIES)
    assert (
        str(anything(city).among({0, 1, 2}, False).among({1, 2}, False))
        == "city is Hamburg or Rome"
    )


def test_levels_in_words():
    city = levels([0, 1, 2, 3], CITIES)
    assert str(OneOf(city, frozenset({0, 1}))) == "city is Berlin or Hamburg"
    assert str(OneOf(city, frozenset({0, 1, 3}))) == "city is not Rome"
    size = levels([0, 1, 2, 3], SIZES, "size", "ordered")
    assert str(OneOf(size, frozenset({2, 3}))) == "size is L or more"
    assert str(OneOf(size, frozenset({0, 1}))) == "size is M or less"
    assert str(OneOf(size, frozenset({1, 2}))) == "size is M or L"
    news = levels([0, 1], ("no", "yes"), "newsletter", "yes/no")
    assert str(OneOf(news, frozenset({1}))) == "newsletter is yes"
    zips = levels([3, 3, 3, 7, 7, 1, *range(20)], [f"z{code}" for code in range(20)], "zip")
    assert str(OneOf(zips, frozenset(range(9)))) == "zip is z3, z7, z1 or 6 others"


def test_dates_in_words_and_both_ends():
    joined = Described(
        "joined", "date", np.array([day_of(2019) - 1, day_of(2019), day_of(2020)], float)
    )
    in_2019 = Between(joined, day_of(2019), day_of(2020))
    assert str(in_2019) == "joined in 2019" and in_2019.holds.tolist() == [False, True, False]
    assert str(Between(joined, high=day_of(2019))) == "joined before 2019-01-01"
    assert Between(joined, high=day_of(2019)).holds.tolist() == [True, False, False]
    assert str(Between(joined, low=day_of(2019))) == "joined from 2019-01-01 on"
    assert str(Between(joined, day_of(2019, 3), day_of(2019, 4))) == "joined in March 2019"
    assert str(Between(joined, day_of(2019, 3, 7), day_of(2019, 3, 8))) == "joined on 2019-03-07"


def test_counted_by_hand():
    x, labels = number([1, 2, 3, 4, 5, np.nan], "x"), np.array([0, 0, 1, 1, 1, 1])
    rule = counted([Between(x, low=1.0)], labels == 1)
    assert (rule.precision, rule.coverage, rule.n) == (3 / 4, 3 / 4, 4)
    both = counted([Between(x, low=1.0), Between(x, high=3.0)], labels == 1)
    assert (both.precision, both.coverage, both.n) == (1 / 2, 1 / 4, 2)


def test_or_missing_is_put_in_brackets_among_others():
    x, y = number([1.0], "x"), number([1.0], "y")
    rule = Rule((Between(x, low=5.0, or_missing=True), Between(y, high=2.0)), 1.0, 1.0, 1)
    assert str(rule) == "(x > 5 or missing) and y <= 2"


# ---- rules


def test_a_threshold_is_round_and_keeps_the_rows():
    income = number([*np.linspace(20_000, 51_873, 40), *np.linspace(52_110, 90_000, 30)])
    labels = np.repeat([0, 1], [40, 30])
    low, high = rules([income], labels, 2)
    assert texts([low, high]) == [["income <= 52,000"], ["income > 52,000"]]
    assert (high[0].precision, high[0].coverage, high[0].n) == (1.0, 1.0, 30)


def test_two_columns_and_two_rules_where_a_cluster_has_two_parts():
    rng = np.random.default_rng(0)
    x, city = rng.uniform(0, 100, 900), rng.integers(0, 4, 900)
    labels = ((x > 60) & np.isin(city, [0, 1])).astype(int)
    (rule,) = rules([number(x, "x"), levels(city, CITIES)], labels, 2)[1]
    assert re.fullmatch(r"x > 60\.?\d* and city is Berlin or Hamburg", str(rule))
    assert (rule.precision, rule.coverage, rule.n) == (1.0, 1.0, int(labels.sum()))
    outer = ((x < 20) | (x > 85)).astype(int)
    assert sorted(texts(rules([number(x, "x")], outer, 2))[1]) == ["x <= 20", "x > 85"]


def test_gaps_go_where_the_tree_puts_them():
    labels = np.repeat([0, 1], 60)
    phone = number(np.where(labels == 1, np.nan, np.arange(120)), "phone")
    given, missing = rules([phone], labels, 2)
    assert texts([given, missing]) == [["phone is given"], ["phone is missing"]]
    # Cluster 1 is "above 80" and half of the gaps.
    values = np.concatenate([np.arange(60), np.arange(80, 110), np.full(30, np.nan)])
    (rule,) = rules([number(values, "x")], labels, 2)[1]
    assert str(rule) == "x > 70 or missing" and rule.precision == rule.coverage == 1


def test_no_rule_is_better_than_a_bad_one():
    rng = np.random.default_rng(0)
    noise = [number(rng.normal(size=600), f"noise {place}") for place in range(5)]
    assert rules(noise, rng.integers(0, 6, 600), 6) == [[]] * 6
    most = np.repeat([0, 1], [540, 60])  # nine in ten without any condition
    assert rules(noise, rng.permutation(most), 2)[0] == []
    assert rules(noise, np.zeros(600, int), 2) == [[], []]
    assert rules([], np.zeros(600, int), 1) == [[]]


@pytest.mark.parametrize("kind", ["category", "ordered"])
def test_a_level_not_in_the_rows_drawn_is_on_no_side_of_its_own(kind, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 100)
    names = [f"level {code}" for code in range(60)]
    codes = np.concatenate([np.tile(np.arange(5), 60), np.arange(60)])
    found = rules([levels(codes, names, kind=kind)], (codes == 3).astype(int), 2)
    assert any(rule.holds[:300].sum() == 60 for rule in found[1])


def test_a_small_cluster_is_found_among_many_rows():
    rng = np.random.default_rng(0)
    n = 60_000
    labels = (np.arange(n) < 40).astype(int)
    x = np.where(labels == 1, 5.0, 0.0) + rng.normal(size=n) / 2
    ((rule,),) = [rules([number(x, "x")], labels, 2)[1]]
    assert rule.precision > 0.8 and rule.coverage > 0.8


def numbers_of(text):
    return float(text.replace(",", ""))


def rows_by_text(text, columns):
    """The rows that meet a rule, read from its words alone."""
    met = np.ones(len(columns[0].values), bool)
    for part in text.split(" and "):
        part = part.strip("()")
        column = next(c for c in columns if re.search(rf"\b{re.escape(c.words)}\b", part))
        here, missing = part.removesuffix(" or missing"), np.isnan(column.values)
        if column.kind == "date":
            within = dates_by_text(here, column)
        elif column.levels:
            within = levels_by_text(here.split(" is ")[1], column)
        else:
            within = numbers_by_text(here, column)
        met &= within & ~missing | (missing & part.endswith("missing"))
    return met


def before(text, column):
    return column.values < day(text.removeprefix("before "))


def day(text):
    return (
        np.datetime64(text.replace(" ", "T"), "s") - np.datetime64("1970-01-01")
    ) / np.timedelta64(1, "D")


def dates_by_text(text, column):
    values, what = column.values, text.removeprefix(f"{column.words} ")
    if what.startswith("before"):
        return before(what, column)
    if what.startswith("from"):
        low, high = re.fullmatch(r"from (.*?)(?: on| to (.*))", what).groups()
        if high is None:
            return values >= day(low)
        until = before(high, column) if "before" in high else values < day(high) + 1
        return (values >= day(low)) & until
    if what.startswith("in "):
        *month, year = what.removeprefix("in ").split()
        first = (int(year), MONTHS.index(month[0]) + 1) if month else (int(year), 1)
        last = (first[0], first[1] + 1) if month else (first[0] + 1, 1)
        return (values >= day_of(*first)) & (values < day_of(*last))
    return what == "is given" and values == values


def levels_by_text(text, column):
    names = [*column.levels, "nan"]
    values = np.array(
        [names[int(code)] for code in np.nan_to_num(column.values, nan=len(names) - 1)]
    )
    if text == "given":
        return np.ones(len(values), bool)
    if text == "missing":
        return np.zeros(len(values), bool)
    if text.endswith(" or more"):
        return column.values >= names.index(text.removesuffix(" or more"))
    if text.endswith(" or less"):
        return column.values <= names.index(text.removesuffix(" or less"))
    named = np.isin(values, re.split(", | or ", text.removeprefix("not ")))
    return ~named if text.startswith("not ") else named


def numbers_by_text(text, column):
    values, number = column.values, r"(-?[\d,.e+-]+)"
    if both := re.fullmatch(rf"{number} < .* <= {number}", text):
        return (values > numbers_of(both[1])) & (values <= numbers_of(both[2]))
    what = text.removeprefix(f"{column.words} ")
    if what in ("is given", "is missing"):
        return np.full(len(values), what == "is given")
    sign, limit = what.split()
    return {
        ">": values > numbers_of(limit),
        "<=": values <= numbers_of(limit),
        "is": values == numbers_of(limit),
    }[sign]


@pytest.mark.parametrize("seed", range(25))
def test_precision_and_coverage_are_those_of_the_words(seed):
    columns, labels = random_table(
        seed, n=150 + 20 * seed, n_clusters=2 + seed % 5, effect=seed % 4
    )
    found = rules(columns, labels, 7)
    for cluster, line in enumerate(found):
        inside = labels == cluster
        assert len(line) <= 3
        for rule in line:
            met = rows_by_text(str(rule), columns)
            assert rule.n == met.sum()
            assert rule.precision == (met & inside).sum() / met.sum() >= 0.5
            assert rule.coverage == (met & inside).sum() / inside.sum()
            assert 1 <= len(rule.conditions) <= 3
            assert len({condition.column.name for condition in rule.conditions}) == len(
                rule.conditions
            )
    assert seed % 4 < 2 or any(found)


@pytest.mark.parametrize("seed", range(5))
def test_rules_depend_neither_on_the_order_of_rows_nor_on_the_numbers_of_clusters(seed):
    columns, labels = random_table(seed, effect=2)
    columns.append(Described("copy", "number", columns[0].values))  # as good as the original
    expected = texts(rules(columns, labels, 4))
    assert expected == texts(rules(columns, labels, 4)) and any(expected)
    order = np.random.default_rng(seed).permutation(len(labels))
    assert texts(rules(rows_of(columns, order), labels[order], 4)) == expected
    new = np.random.default_rng(seed).permutation(4)
    renamed = texts(rules(columns, np.where(labels < 0, -1, new[labels]), 4))
    assert [renamed[new[cluster]] for cluster in range(4)] == expected


def test_levels_are_split_as_well_as_any_set_of_them():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 12, 2_000)
    ours = rng.permutation(12)[:5]
    labels = np.isin(codes, ours).astype(int)
    (rule,) = rules([levels(codes, [f"city {code}" for code in range(12)])], labels, 2)[1]
    assert rule.conditions[0].codes == set(ours.tolist()) and rule.precision == rule.coverage == 1


def test_numbers_beyond_single_precision_are_told_apart():
    labels = np.repeat([0, 1], 50)
    x = 1e15 + np.arange(100)  # as float32 all the same
    assert texts(rules([number(x, "x", whole=True)], labels, 2))[1] == ["x > 1000000000000049"]
    wild = np.concatenate([np.full(50, -1e300), np.full(49, 1e300), [np.inf]])
    assert rules([number(wild, "x")], labels, 2)[1][0].coverage == 1


def test_hostile_names_make_plain_rules():
    columns, labels = random_table(5, names=HOSTILE[:6], effect=3)
    for line in rules(columns, labels, 4):
        for rule in line:
            assert "\n" not in str(rule) and "\x1b" not in str(rule) and len(str(rule)) < 500
            str(rule).encode("utf-8")
