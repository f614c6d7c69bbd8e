"""Numbers, dates and names as text."""

import re
import unicodedata
from decimal import ROUND_CEILING, Context, Decimal

import numpy as np
import pytest

from deccs.describing import words
from deccs.describing.conditions import Between, date_between, limit_between
from tests.describing.tables import HOSTILE, number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (81_234.5, "81,230"),
        (1_234.5, "1,234"),
        (9_999, "9,999"),
        (0.1234, "0.12"),
        (0.999, "1"),
        (99.96, "100"),
        (-12.345, "-12.3"),
        (0.0, "0"),
        (-0.0, "0"),
        (np.inf, "inf"),
        (2.5e-9, "2.5e-09"),
    ],
)
def test_numbers_by_hand(value, text):
    assert words.number(value) == text


def test_only_no_row_is_0_percent_and_only_every_row_is_100():
    assert [words.share(value) for value in (0, 1e-9, 0.004, 0.996, 1 - 1e-9, 1)] == [
        *("0 %", "1 %", "1 %", "99 %", "99 %", "100 %")
    ]


def test_calendar_is_that_of_numpy():
    for day in range(-200_000, 200_000, 317):
        year, month, date = words.calendar(day)
        assert np.datetime64(day, "D") == np.datetime64(f"{year:04}-{month:02}-{date:02}")
        assert words.day_of(year, month, date) == day


def test_a_span_over_new_year_and_within_a_day():
    begin = words.day_of(2023, 12, 30)
    assert words.span(begin, begin + 4) == "30 December 2023 to 3 January 2024"
    assert words.span(begin + 0.1, begin + 0.9) == "30 December 2023"
    assert words.span(begin, 1e300) == "day 19,720 to 1e+300"


@pytest.mark.parametrize("seed", range(5))
def test_a_limit_keeps_the_rows_and_no_number_with_fewer_digits_does(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        low, high = np.sort(rng.normal(size=2) * 10.0 ** rng.integers(-5, 9))
        limit = limit_between(low, high)
        assert low <= limit < high
        digits = len(Decimal(repr(limit)).normalize().as_tuple().digits)
        for fewer in range(1, digits):
            # The first number from low on that has so few digits is beyond the interval.
            up = Context(prec=fewer, rounding=ROUND_CEILING)
            assert up.create_decimal(Decimal(low)) >= Decimal(high)


def test_a_written_limit_is_the_limit():
    rng = np.random.default_rng(0)
    for limit in [*rng.normal(size=200) * 10.0 ** rng.integers(-9, 18, 200), 0.1 + 0.2, 1987.0]:
        text = str(Between(number([1.0, 2.0], "x"), high=limit))
        assert float(text.removeprefix("x <= ").replace(",", "")) == limit


def test_limits_of_dates_by_hand():
    day = words.day_of
    for low, high, limit in [
        (day(2018, 5, 3), day(2021, 2, 1), "2020-01-01"),  # the year nearest to the middle
        (day(2019, 5, 3), day(2019, 8, 9), "2019-07-01"),
        (day(2019, 5, 3), day(2019, 5, 4), "2019-05-04"),
        (day(2019, 5, 3) + 0.25, day(2019, 5, 3) + 0.75, "2019-05-03 12:00"),
        (day(2018, 12, 31), day(2019), "2019-01-01"),
    ]:
        found = date_between(low, high)
        assert low < found <= high and words.moment(found) == limit


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_strangers_become_one_short_line(name):
    text = words.plain(name, 40)
    assert 0 < len(text) <= 40
    assert not re.search(r"[\x00-\x1f\x7f\u202a-\u202e\u200b]", text)
    assert all(unicodedata.category(sign) != "Cc" for sign in text)
    text.encode("utf-8")  # no half of a pair
    assert words.plain(text, 40) == text
