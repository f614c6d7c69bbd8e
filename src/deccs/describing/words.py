"""Numbers, shares, dates and strangers' names as short plain text."""

from __future__ import annotations

import math
import re
import unicodedata

import numpy as np

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
MANY_YEARS = 2 * 365  # days; longer spans are told by years alone
MANY_WEEKS = 45  # days; longer spans are told by months
FURTHEST_DAY = 3_000_000  # about 8,000 years: what is beyond is not a date
JOINERS = "\u200d\ufe0f"  # they make one picture of several, as in emoji


def plain(text: object, most: int) -> str:
    r"""One line of at most ``most`` characters that moves no cursor and turns no direction.

    >>> plain("a\n\tb\u202ec", 9), plain("annual income", 8), plain("\x00", 9)
    ('a bc', 'annual …', 'unnamed')
    """
    # A name of a million characters is cut before it is looked at.
    line = " ".join(str(text)[: 50 * most].split())
    kept = "".join(sign for sign in line if sign in JOINERS or is_visible(sign))
    cut = kept if len(kept) <= most else kept[: most - 1] + "…"
    return cut if cut.strip(JOINERS + " ") else "unnamed"


def is_visible(sign: str) -> bool:
    """Whether a sign is a letter, a mark, a number, punctuation, a symbol or a space.

    Not controls, marks of direction, half of a pair, signs for private use or of no meaning.
    """
    return unicodedata.category(sign)[0] != "C"


def as_words(name: object, most: int) -> str:
    """The name of a column as words.

    >>> as_words("annual_income", 40)
    'annual income'
    """
    return plain(str(name)[: 50 * most].replace("_", " "), most)


def lowered(words: str) -> str:
    """Words without the capitals of a heading; abbreviations keep theirs.

    >>> lowered("Annual Income"), lowered("GDP per Capita"), lowered("iPhone")
    ('annual income', 'GDP per capita', 'iPhone')
    """
    return re.sub(r"\b[A-Z][a-z]+\b", lambda match: match[0].lower(), words)


def number(value: float, grouped: bool = True) -> str:
    """A number short enough to read: four digits from 1,000 on, three from 1 on, two below.

    Whole numbers up to 10,000 have all their digits.

    >>> number(81234.5), number(1234.567), number(12.345), number(0.1234), number(17.0)
    ('81,230', '1,235', '12.3', '0.12', '17')
    >>> number(1987, grouped=False), number(-2e-7), number(3e20)
    ('1987', '-2e-07', '3e+20')
    """
    size = abs(value)
    if value == 0 or not math.isfinite(value):
        return f"{abs(value):.0f}" if value == 0 else f"{value}"
    if not 1e-4 <= size < 1e15:
        return f"{value:.2g}"
    if value == round(value) and size < 10_000:
        return digits_of(value, 0, grouped)
    digits = 4 if size >= 1000 else 3 if size >= 1 else 2
    rounded = float(f"{value:.{digits}g}")
    return digits_of(rounded, max(0, digits - 1 - exponent(rounded)), grouped)


def digits_of(value: float, decimals: int, grouped: bool = True) -> str:
    """A number with at most so many decimals, and no zeros at the end of them.

    >>> digits_of(1200.5, 3), digits_of(1200, 0, grouped=False)
    ('1,200.5', '1200')
    """
    text = f"{value:{',' if grouped else ''}.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def exponent(value: float) -> int:
    """The power of ten of the first digit.

    >>> exponent(999.0), exponent(1000.0), exponent(0.02)
    (2, 3, -2)
    """
    return int(f"{value:e}".split("e")[1])


def share(value: float) -> str:
    """A share in percent; only none is 0 and only all is 100.

    >>> share(0.617), share(0.0), share(0.0001), share(0.9999)
    ('62 %', '0 %', '1 %', '99 %')
    """
    percent = round(100 * value)
    return f"{percent if value in (0, 1) else min(99, max(1, percent))} %"


def listed(words: list[str], joint: str = "or") -> str:
    """Words in a row.

    >>> listed(["Berlin"]), listed(["Berlin", "Bonn"]), listed(["Berlin", "Bonn", "Köln"])
    ('Berlin', 'Berlin or Bonn', 'Berlin, Bonn or Köln')
    """
    *others, last = words
    return f"{', '.join(others)} {joint} {last}" if others else last


# ---- dates: days since 1970-01-01


def is_day(value: float) -> bool:
    return math.isfinite(value) and abs(value) <= FURTHEST_DAY


def calendar(value: float) -> tuple[int, int, int]:
    """Year, month and day of the month.

    >>> calendar(0.75), calendar(-1)
    ((1970, 1, 1), (1969, 12, 31))
    """
    day = np.datetime64(math.floor(value), "D")
    month = day.astype("datetime64[M]")
    year = int(month.astype("datetime64[Y]").astype(int)) + 1970
    return (
        year,
        int(month.astype(int)) % 12 + 1,
        int((day - month.astype("datetime64[D]")).astype(int)) + 1,
    )


def day_of(year: int, month: int = 1, day: int = 1) -> int:
    """The days from 1970-01-01 to a day.

    >>> day_of(1970), day_of(1971), day_of(1970, 3, 2), day_of(1970, 13)
    (0, 365, 60, 365)
    """
    months = (year - 1970) * 12 + month - 1
    first = np.datetime64(months, "M").astype("datetime64[D]")
    return int(first.astype(int)) + day - 1


def moment(value: float) -> str:
    """A day, with the time of day if it is not midnight.

    >>> moment(day_of(2024, 3, 1)), moment(day_of(2024, 3, 1) + 0.75)
    ('2024-03-01', '2024-03-01 18:00')
    """
    if not is_day(value):
        return f"day {number(value)}"
    # To the microsecond: a fraction of a day in binary is not exactly a time.
    micros = round((value - math.floor(value)) * 86_400_000_000)
    full = np.datetime64(math.floor(value), "D").astype("datetime64[us]") + np.timedelta64(
        micros, "us"
    )
    date, time = str(full).split("T")
    if time == "00:00:00.000000":
        return date
    return f"{date} {time.removesuffix('.000000').removesuffix(':00')}"


def span(first: float, last: float) -> str:
    """From one day to another, as exact as the length of the span asks for.

    >>> span(day_of(2019, 1, 9), day_of(2021, 5, 1)), span(day_of(2024, 3, 2), day_of(2024, 5, 9))
    ('2019 to 2021', 'March to May 2024')
    >>> span(day_of(2023, 11, 2), day_of(2024, 2, 9)), span(day_of(2019, 1, 9), day_of(2019, 12, 2))
    ('November 2023 to February 2024', '2019')
    >>> span(day_of(2024, 3, 2), day_of(2024, 3, 30)), span(day_of(2024, 3, 2), day_of(2024, 3, 9))
    ('March 2024', '2 to 9 March 2024')
    >>> span(day_of(2024, 3, 30), day_of(2024, 4, 2)), span(day_of(2024, 3, 2), day_of(2024, 3, 2))
    ('30 March to 2 April 2024', '2 March 2024')
    """
    if not (is_day(first) and is_day(last)):
        return f"day {number(first)} to {number(last)}"
    (year, month, day), (last_year, last_month, last_day) = calendar(first), calendar(last)
    length = last - first
    if length > MANY_YEARS:
        return f"{year} to {last_year}"
    one_year, one_month = year == last_year, (year, month) == (last_year, last_month)
    if one_year and (month, last_month) == (1, 12):
        return f"{year}"
    begin, end = MONTHS[month - 1], f"{MONTHS[last_month - 1]} {last_year}"
    if length > MANY_WEEKS:
        return f"{begin} to {end}" if one_year else f"{begin} {year} to {end}"
    if one_month and length > 25:
        return end
    if one_month:
        return f"{day} {end}" if day == last_day else f"{day} to {last_day} {end}"
    return f"{day} {begin}{'' if one_year else f' {year}'} to {last_day} {end}"
