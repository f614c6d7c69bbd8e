"""How much clusters differ from all rows, on numbers worked out by hand."""

import numpy as np
import pytest
from scipy.special import ndtri

from deccs.describing import differences as module
from deccs.describing.columns import Described, nameable
from deccs.describing.differences import Amount, GapShare, LevelShare, Period, differences
from deccs.describing.effects import of_ranks, quantiles
from deccs.describing.words import day_of
from tests.describing.tables import CITIES, SIZES, levels, number, random_table, rows_of


def only(columns, labels, n_clusters=2, cluster=0):
    """The only difference of a cluster."""
    (found,) = differences(columns, np.asarray(labels), n_clusters)[cluster]
    return found


def test_ranks_by_hand_with_ties_and_noise():
    # Ranks 1, 2.5, 2.5, 4: above 0.5, 2, 2 and 3.5 of 4 rows (itself and ties count half).
    effects = of_ranks(np.array([1.0, 5, 5, 9]), np.array([0, 0, 1, -1]), 3)
    expected = np.sqrt(2) * ndtri([(0.5 + 2) / 2 / 4, 2 / 4, 0.5])
    assert effects == pytest.approx(expected)


def test_ranks_of_normal_rows_give_the_usual_d_and_one_wild_value_does_not_move_them():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=20_000), rng.normal(0.8, 1, 200)])
    labels = np.repeat([0, 1], [20_000, 200])
    assert of_ranks(values, labels, 2)[1] == pytest.approx(0.8, abs=0.1)
    wild = np.where(np.arange(len(values)) == 20_007, 1e300, values)
    assert of_ranks(wild, labels, 2)[1] == pytest.approx(of_ranks(values, labels, 2)[1], abs=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, 5, 60)
    values, at = rng.normal(size=60), (0.0, 0.1, 0.25, 0.5, 0.9, 1.0)
    found = quantiles(values, labels, 6, at)
    for cluster in range(5):
        assert found[cluster] == pytest.approx(np.quantile(values[labels == cluster], at))
    assert np.isnan(found[5]).all()


def test_a_higher_number_is_told_by_medians():
    income = number([30_000, 42_000, 50_000, 81_000, 90_000], whole=True)
    found = only([income], [0, 0, 0, 1, 1], cluster=1)
    assert isinstance(found, Amount) and found.direction == 1 and found.n == 2
    assert str(found) == "income 85,500 (all: 50,000)"
    # Above 3 and 4 of 5 rows, and half of itself: 3.5 and 4.5 of 5, on average 0.8.
    assert found.effect == pytest.approx(np.sqrt(2) * ndtri(0.8))


def test_equal_medians_are_told_by_a_share():
    orders = number([0, 0, 0, 0, 3, 0, 0, 0, 5, 6], "orders", whole=True)
    labels = [0] * 5 + [1] * 5
    assert str(only([orders], labels, cluster=1)) == "orders above 0 in 40 % (all: 30 %)"
    assert str(only([orders], labels, cluster=0)) == "orders at most 0 in 80 % (all: 70 %)"


def test_the_middle_of_three_groups_differs_by_lying_in_the_middle():
    found = only([number(np.arange(12), "age", whole=True)], np.repeat([0, 1, 2], 4), 3, 1)
    # Ages 4 to 7; the middle half of all, 2.75 to 8.25, holds 6 of 12 rows and all of these.
    assert found.direction == 0
    assert found.effect == pytest.approx(np.pi - 2 * np.arcsin(np.sqrt(0.5)))
    assert str(found) == "age 5 to 6 (half of them; all: 3 to 8)"


def test_a_level_is_told_by_its_share_of_the_rows_with_a_value():
    city = levels([0, 0, 1, np.nan, 1, 2, 2, 2], CITIES)
    line = differences([city], np.repeat([0, 1], 4), 2)[0]
    berlin = next(each for each in line if isinstance(each, LevelShare))
    assert (berlin.here, berlin.everywhere, berlin.n) == (2 / 3, 2 / 7, 3)
    assert str(berlin) == "city Berlin 67 % (all: 29 %)"
    assert berlin.effect == pytest.approx(
        2 * np.arcsin(np.sqrt(2 / 3)) - 2 * np.arcsin(np.sqrt(2 / 7))
    )


def test_a_level_that_is_absent_is_told_where_no_other_is_frequent():
    city = levels([0, 1, 2, 3, *[0] * 6, 1, 2], CITIES)
    found = only([city], [0, 0, 0, 0, *[1] * 6, -1, -1], cluster=1)
    assert str(found) == "city Berlin 100 % (all: 58 %)"
    absent = only([levels([0] * 9 + [1, 2, 3], CITIES)], [0] * 9 + [1] * 3, cluster=1)
    assert absent.is_rarer and str(absent) == "city Berlin 0 % (all: 75 %)" and absent.effect > 0


def test_ordered_levels_are_told_from_one_on():
    size = levels([0, 0, 1, 1, 2, 3, 2, 3], SIZES, "size", "ordered")
    low, high = differences([size], np.repeat([0, 1], 4), 2)
    assert str(low[0]) == "size M or less 100 % (all: 50 %)"
    assert str(high[0]) == "size L or more 100 % (all: 50 %)"


def test_gaps_are_a_difference_of_their_own():
    phone = number([np.nan] * 8 + [1, 2] + [np.nan] + [1, 2] * 4 + [3], "phone")
    labels = np.repeat([0, 1], 10)
    gaps = [
        [each for each in line if isinstance(each, GapShare)]
        for line in differences([phone], labels, 2)
    ]
    assert [str(each) for line in gaps for each in line] == [
        "no phone in 80 % (all: 45 %)",
        "no phone in 10 % (all: 45 %)",
    ]
    assert [each.is_rarer for line in gaps for each in line] == [False, True]
    assert all(each.effect > 0 for line in gaps for each in line)


def test_dates_are_told_by_the_period_of_half_of_the_rows():
    early = day_of(2024, 3, 1) + np.arange(0, 90, 10)  # 1 March to 20 May 2024
    others = day_of(2018) + np.arange(0, 2_000, 100)
    joined = Described("ordered", "date", np.concatenate([early, others]).astype(float))
    found = only([joined], np.repeat([0, 1], [len(early), len(others)]))
    assert isinstance(found, Period)
    assert str(found).startswith("ordered 21 March to 30 April 2024 (half of them; all: ")
    assert found.most == (early[0] + 8.0, early[-1] - 8.0)  # a tenth of 80 days on either side


def test_nothing_is_said_of_what_does_not_differ():
    columns = [
        number([5.0] * 8, "constant"),
        number([np.nan] * 8, "nothing known"),
        levels([0, 1] * 4, CITIES),
        levels([0] * 8, ("only",)),
        number([1, 2, 3, 4] * 2, "same"),
    ]
    assert differences(columns, np.repeat([0, 1], 4), 3) == [[], [], []]
    assert differences([], np.zeros(4, int), 1) == [[]]


def test_the_most_different_column_comes_first_and_effects_are_of_one_claim():
    columns, labels = random_table(3)
    for cluster, line in enumerate(differences(columns, labels, 4)):
        effects = [each.effect for each in line]
        assert effects == sorted(effects, reverse=True) and min(effects) > 0
        assert all(each.cluster == cluster and each.effects.shape == (4,) for each in line)


def test_few_rows_must_differ_more_to_stand_out():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [1_000, 4])
    columns = [number(rng.normal(size=1_004), f"x {place}") for place in range(50)]
    found = differences(columns, labels, 2)[1]
    assert max(each.effect for each in found) > 0.5  # by chance
    assert not any(each.stands_out for each in found)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_rows_does_not_matter(seed):
    columns, labels = random_table(seed)
    order = np.random.default_rng(seed).permutation(len(labels))
    expected = differences(columns, labels, 4)
    found = differences(rows_of(columns, order), labels[order], 4)
    for line, other in zip(expected, found, strict=True):
        assert [str(each) for each in line] == [str(each) for each in other]


def test_of_many_columns_those_that_differ_are_found(monkeypatch):
    monkeypatch.setattr(module, "MOST_COLUMNS", 3)
    rng, labels = np.random.default_rng(0), np.repeat([0, 1, 2], 50)
    columns = [number(rng.normal(size=150), f"noise {place}") for place in range(40)]
    columns[7] = number(rng.normal(size=150) + 9 * (labels == 2), "told")
    columns[9] = levels(labels == 1, ("no", "yes"), "by level", "yes/no")
    found = differences(columns, labels, 3)
    assert found[2][0].column.name == "told" and found[1][0].column.name == "by level"
    assert len({each.column.name for line in found for each in line}) <= 3


def test_numbered_columns_are_not_nameable_but_a_few_are():
    def named(*names):
        return [number([0.0], name) for name in names]

    anonymous = ["column 17", "pixel 3,4", "V1", "x12", "feature_3", "0", "PC2", "Unnamed: 4"]
    assert nameable(named(*anonymous))  # few
    assert not nameable(named(*anonymous * 10))
    assert not nameable(named(*anonymous * 10, "age", "city"))
    assert nameable(named(*(f"question {place} on taste" for place in range(300))))
    assert nameable(named(*["age", "city", "joined"] * 10))
