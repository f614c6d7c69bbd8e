"""Names of clusters."""

import numpy as np
import pytest

from deccs.describing.columns import Described
from deccs.describing.names import cluster_names
from deccs.describing.words import day_of
from tests.describing.tables import CITIES, HOSTILE, SIZES, levels, number, random_table, rows_of

EACH = 50  # rows of a cluster: enough to stand out


def named(*columns, n_clusters):
    """Names of clusters of 50 rows each, one after the other."""
    return cluster_names(columns, np.repeat(np.arange(n_clusters), EACH), n_clusters)


def each(*values):
    """A value for each cluster."""
    return np.repeat(np.array(values, dtype=float), EACH)


def some(share, n=EACH):
    """Ones in this share of the rows of a cluster, then zeros."""
    return (np.arange(n) < share * n).astype(float)


def spread(*middles):
    """Around a middle for each cluster."""
    return np.concatenate([middle + np.linspace(-1, 1, EACH) for middle in middles])


def test_numbers_are_high_low_or_in_the_middle():
    assert named(number(spread(0, 10, 20), "age_in_years"), n_clusters=3) == (
        "low age in years",
        "medium age in years",
        "high age in years",
    )


def test_very_is_said_where_nine_of_ten_pairs_say_so():
    # One cluster of eleven lies above all others: 10.5 of 11 rows are below, d = 2.4.
    names = named(number(spread(*[0] * 10, 9)), n_clusters=11)
    assert names[10] == "very high income" and names[0] == "cluster 0"


def test_counts_are_many_few_or_none():
    orders = each(0, 7, 90) + np.tile([0, 1], 75) * each(0, 1, 1)
    assert named(number(orders, "orders", whole=True), n_clusters=3) == (
        "no orders",
        "medium orders",
        "many orders",
    )
    assert named(number(spread(0, 9), "status", whole=True), n_clusters=2)[0] == "low status"


def test_levels_name_a_cluster_by_themselves_or_with_their_column():
    city, size = levels(each(0, 1, 2), CITIES), levels(each(0, 1, 3), SIZES, "size")
    assert named(city, n_clusters=3) == ("Berlin", "Hamburg", "Rome")
    assert named(size, n_clusters=3) == ("size: S", "size: M", "size: XL")  # too short
    birth = levels(each(2, 2, 2), CITIES, "birth_place")
    assert named(city, birth, n_clusters=3)[0] == "city: Berlin"  # in two columns
    assert named(levels(each(0, 1), ("2019", "2020"), "model"), n_clusters=2)[0] == "model: 2019"


def test_a_level_of_fewer_than_two_thirds_is_often():
    city = levels(np.concatenate([1 - some(0.6), 1 + some(0.6)]), CITIES)
    # Berlin is 60 % of cluster 0, Rome 60 % of cluster 1, and the rest of both Hamburg.
    assert named(city, n_clusters=2) == ("often Berlin", "often Rome")


def test_yes_no_columns_and_gaps():
    news = levels(np.concatenate([some(0.9), some(0.02)]), ("no", "yes"), "newsletter", "yes/no")
    assert named(news, n_clusters=2) == ("newsletter: yes", "no newsletter")
    turned = levels(1 - news.values, ("Yes", "No"), "newsletter", "yes/no")
    assert named(turned, n_clusters=2) == ("newsletter: yes", "no newsletter")
    less = levels(np.concatenate([some(0.6), some(0)]), ("0", "1"), "newsletter", "yes/no")
    assert named(less, n_clusters=2)[0] == "newsletter: often yes"
    sex = levels(each(0, 1), ("female", "male"), "sex", "yes/no")
    assert named(sex, n_clusters=2) == ("female", "male")
    phone = number(np.where(np.concatenate([some(0.9), some(0)]), np.nan, 7.0), "phone_number")
    assert named(phone, n_clusters=2) == ("no phone number given", "phone number given")


def test_dates_are_told_by_year_month_or_early_and_late():
    starts = [day_of(2015), day_of(2019), day_of(2023, 3)]
    dates = np.concatenate([starts[0] + np.arange(50) * 7, starts[1] + np.arange(50) * 7,
                            starts[2] + np.arange(50) / 2])  # fmt: skip
    joined = Described("Joined", "date", dates)
    assert named(joined, n_clusters=3) == (
        "joined February to November 2015",
        "joined February to November 2019",
        "joined 3 to 23 March 2023",
    )
    wide = Described(
        "joined", "date", np.concatenate([np.arange(50) * 100, 2_400 + np.arange(50) * 100.0])
    )
    assert named(wide, n_clusters=2) == ("joined early", "joined late")


def test_two_parts_and_a_third_only_where_names_would_be_equal():
    income, orders = (
        number(each(0, 0, 9, 9) + np.tile(np.arange(50), 4) / 99),
        number(each(0, 0, 5, 5) + np.tile(np.arange(50), 4) / 99, "age"),
    )
    city = levels(each(0, 1, 0, 1), CITIES)
    first = named(income, orders, n_clusters=4)
    assert first[0] == "low income, low age (cluster 0)"  # the same as cluster 1
    names = named(income, orders, city, n_clusters=4)
    assert len(set(names)) == 4
    assert names[0] == "Berlin, low income" and names[3] == "Hamburg, high income"


def test_parts_that_tell_clusters_apart_come_first():
    # High income in three of four clusters; Rome in one of them only.
    income = number(spread(0, 9, 9, 9))
    city = levels(np.concatenate([some(0.4), some(0.4), some(0.4), 2 * some(1)]), CITIES)
    assert named(income, city, n_clusters=4)[3].startswith("Rome")


def test_where_nothing_stands_out_a_cluster_has_its_number():
    income = number(np.tile(np.arange(50), 3))
    assert named(income, n_clusters=3) == ("cluster 0", "cluster 1", "cluster 2")
    assert cluster_names([], np.zeros(5, int), 2) == ("cluster 0", "cluster 1")
    pixels = [number(spread(0, 9), f"pixel {place}") for place in range(64)]
    assert named(*pixels, n_clusters=2) == ("cluster 0", "cluster 1")


def test_empty_clusters_and_noise():
    labels = np.repeat([0, -1, 2], EACH)
    income = number(spread(0, 10, 20))
    assert cluster_names([income], labels, 4) == (
        "low income",
        "cluster 1",
        "high income",
        "cluster 3",
    )


@pytest.mark.parametrize("seed", range(12))
def test_names_differ_are_short_and_do_not_depend_on_the_order_of_rows(seed):
    columns, labels = random_table(seed, n=60 + 40 * seed, n_clusters=seed + 1, effect=seed % 3)
    names = cluster_names(columns, labels, seed + 2)
    assert len({name.lower() for name in names}) == seed + 2
    assert all(0 < len(name) <= 40 + len(" (cluster 10)") for name in names)
    order = np.random.default_rng(seed).permutation(len(labels))
    assert cluster_names(rows_of(columns, order), labels[order], seed + 2) == names


@pytest.mark.parametrize("seed", range(6))
def test_other_numbers_of_the_clusters_permute_the_names(seed):
    columns, labels = random_table(seed, n=400, n_clusters=5, effect=2)
    new = np.random.default_rng(seed).permutation(5)
    names = cluster_names(columns, labels, 5)
    others = cluster_names(columns, np.where(labels < 0, -1, new[labels]), 5)
    told = [cluster for cluster in range(5) if "cluster" not in names[cluster]]
    assert len(told) >= 3
    assert [others[new[cluster]] for cluster in told] == [names[cluster] for cluster in told]


@pytest.mark.parametrize("shift", range(len(HOSTILE)))
def test_hostile_names_stay_harmless(shift):
    turned = [*HOSTILE[shift:], *HOSTILE[:shift]]
    columns, labels = random_table(1, names=turned[:6])
    columns = [
        Described(c.name, c.kind, c.values, tuple(turned[: len(c.levels)]), c.whole)
        for c in columns
    ]
    names = cluster_names(columns, labels, 5)
    assert len(set(names)) == 5
    for name in names:
        assert name.isprintable() or "\u200d" in name
        assert len(name) <= 54 and "\n" not in name
        name.encode("utf-8")


def test_a_level_called_like_a_cluster_takes_no_name_away():
    city = levels(each(0, 1, 2), ("cluster 3", "Berlin", "berlin"))
    names = cluster_names([city], np.repeat(np.arange(3), EACH), 4)
    assert len({name.lower() for name in names}) == 4
