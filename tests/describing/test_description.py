"""All that is said of clusters, and the same as text."""

import time

import numpy as np

from deccs.describing.columns import Described
from deccs.describing.description import as_text, describe
from deccs.describing.differences import differences
from deccs.describing.names import cluster_names
from deccs.describing.rules import rules
from tests.describing.tables import CITIES, HOSTILE, levels, number, random_table


def test_a_paragraph_by_hand():
    income = number(np.repeat([20.0, 80.0], [60, 40]), "net_income")
    city = levels(np.repeat([0, 1, 0], [60, 30, 10]), CITIES)
    labels = np.repeat([0, 1], [60, 40])
    assert str(describe([income, city], labels, 3)).splitlines() == [
        "0 · Berlin, low net income: 60 rows",
        "  Rule: net income <= 50: right for 100 % of its 60 rows, finds 100 % of the cluster",
        "  Differs in: city Berlin 100 % (all: 70 %); net income at most 20 in 100 % (all: 60 %)",
        "",
        "1 · high net income, Hamburg: 40 rows",
        "  Rule: net income > 50: right for 100 % of its 40 rows, finds 100 % of the cluster",
        "  Differs in: net income 80 (all: 20); city Hamburg 75 % (all: 30 %)",
        "",
        "cluster 2: 0 rows",
    ]


def test_no_rule_is_said():
    text = as_text(["cluster 0"], [[]], [[]], [1])
    assert (
        text
        == "cluster 0: 1 row\n  Rule: no simple rule finds this cluster\n  Differs in: nothing\n"
    )


def test_one_look_says_what_each_function_says():
    columns, labels = random_table(2)
    all_ = describe(columns, labels, 5)
    assert all_.names == cluster_names(columns, labels, 5)
    assert [[str(rule) for rule in line] for line in all_.rules] == [
        [str(rule) for rule in line] for line in rules(columns, labels, 5)
    ]
    assert [[str(each) for each in line] for line in all_.differences] == [
        [str(each) for each in line] for line in differences(columns, labels, 5)
    ]
    assert all_.sizes.tolist() == [*np.bincount(labels[labels >= 0], minlength=4), 0]


def test_hostile_text_stays_plain_and_short():
    columns, labels = random_table(1, names=HOSTILE[:6])
    text = str(describe(columns, labels, 4))
    assert all(sign.isprintable() or sign in "\n\u200d" for sign in text)
    assert len(text) < 6_000 and max(map(len, text.splitlines())) <= 140
    text.encode("utf-8")


def test_no_column_and_no_row():
    assert describe([], np.empty(0, int), 0).names == ()
    empty = describe([number([])], np.empty(0, int), 2)
    assert empty.names == ("cluster 0", "cluster 1") and empty.rules == [[], []]


def test_many_columns_do_not_hang():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 2_000)
    columns = [Described(f"part {place} of it", "number", rng.normal(labels * (place % 7) / 7))
               for place in range(784)]  # fmt: skip
    before = time.process_time()
    found = describe(columns, labels, 5)
    assert time.process_time() - before < 20  # under 3 seconds on one core
    assert sum(bool(line) for line in found.rules) >= 2
