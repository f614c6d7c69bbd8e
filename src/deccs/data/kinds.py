"""What kind of column each is, by its data: numbers, categories, dates, ids, text.

Every rule is a function below, and says in words why it holds; the words are shown before a fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from deccs.data.frames import as_polars, holds

if TYPE_CHECKING:
    import polars as pl

# What can be clustered, what only if asked for, and what says nothing about clusters.
USED = ("number", "yes/no", "category", "ordered", "date")
ONLY_IF_ASKED = ("text", "code")
LEFT_OUT = ("id", "constant")
KINDS = (*USED, *ONLY_IF_ASKED, *LEFT_OUT)

MOST_SAMPLED = 20_000  # rows whose text is looked at
MOST_LEVELS = 1_000
ENOUGH_ROWS = 10  # in three rows, 1, 2, 3 may be chance, and so may three different words
EXPECTED_REPEATS = 5.0  # numbers drawn at random would repeat so often: if none does, they are ids
ISO_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z?)?$"
LEAST_CODE = 1_000  # "phone_calls" are few, phone numbers and zip codes have four digits and more
MOST_GROUPS = 30
LEADING_ZERO = r"^-?0\d"
DATE_FORMS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y.%m.%d")
NUMBERED = re.compile(r"(.*?)\d+(?:[ ,_x]\d+)?", re.DOTALL)  # "pixel 3", "p3", "3", "pixel 3,4"
LEAST_BLOCK = 20  # columns that are only numbered are an array
EXACT = 2.0**53  # whole numbers above are rounded in a double

# A name is cut into words: "zip_code", "ZipCode" and "zip code" are alike.
KEY_WORDS = frozenset(("id", "ids", "uuid", "guid", "key"))
ID_WORDS = KEY_WORDS | {"index", "idx", "row"}
CODE_WORDS = frozenset(
    (
        "zip",
        "zipcode",
        "postal",
        "postcode",
        "plz",
        "phone",
        "telephone",
        "tel",
        "fax",
        "iban",
        "ssn",
        "ean",
        "isbn",
    )
)
GROUP_WORDS = frozenset(
    (
        "code",
        "type",
        "class",
        "category",
        "group",
        "region",
        "segment",
        "status",
        "gender",
        "sex",
        "state",
        "country",
    )
)
YES_NO = {
    **dict.fromkeys(
        (
            *("yes", "y", "true", "t", "on", "1", "1.0", "x", "✓"),
            *("ja", "wahr", "oui", "vrai", "si", "sí", "sim", "tak", "да"),
        ),
        1,
    ),
    **dict.fromkeys(
        (
            *("no", "n", "false", "f", "off", "0", "0.0", "-"),
            *("nein", "falsch", "non", "faux", "não", "nee", "nej", "nie", "нет"),
        ),
        0,
    ),
}
SCALES = (  # words with an order, from low to high
    ("very low", "low", "medium", "high", "very high"),
    ("low", "mid", "high"),
    ("low", "moderate", "high"),
    ("xs", "s", "m", "l", "xl", "xxl"),
    ("small", "medium", "large"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("none", "mild", "moderate", "severe"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    ("bronze", "silver", "gold", "platinum"),
)


class KindError(ValueError):
    """A column cannot be what it was said to be, or a table has none that can be clustered."""


@dataclass(frozen=True)
class ColumnKind:
    """What a column is, and why."""

    name: str
    kind: str
    why: str = ""
    n_missing: int = 0
    values: str = ""  # a few of them, or their range, in words
    given: bool = False  # the user said so

    @property
    def is_used(self) -> bool:
        """Whether the column is clustered: text and codes are, if somebody asks for them."""
        return self.kind in USED or (self.given and self.kind == "text")


@dataclass(frozen=True)
class Facts:
    """What the rules ask of a column."""

    name: str
    dtype: Any  # of polars
    n_rows: int
    n_missing: int
    n_distinct: int  # without gaps
    low: float  # of numbers and dates
    high: float
    sample: pl.Series  # at most MOST_SAMPLED values, without gaps

    @property
    def n_known(self) -> int:
        return self.n_rows - self.n_missing

    @property
    def words(self) -> list[str]:
        """The name in words: "customerID" and "customer_id" are "customer" and "id"."""
        return words_of(self.name)


def words_of(name: str) -> list[str]:
    """A name cut into words, in lower case.

    >>> words_of("customerID"), words_of("zip_code"), words_of("Unnamed: 0")
    (['customer', 'id'], ['zip', 'code'], ['unnamed', '0'])
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[\W_]+", spaced.lower()) if word]


def kinds_of(frame: Any, given: Mapping[str, str] | None = None) -> tuple[ColumnKind, ...]:
    """What kind of column each is, as a fit will take it, and why.

    Parameters
    ----------
    frame : a data frame of pandas, polars or pyarrow
    given : kinds that you know better: {"zip": "category"}

    Returns
    -------
    tuple of ColumnKind : ``name``, ``kind``, ``why``, ``n_missing``, ``values``, ``is_used``
    """
    given = dict(given or {})
    facts = facts_of(as_polars(frame))
    check_given(given, [one.name for one in facts])
    in_block = of_one_block(facts)
    return tuple(
        given_kind(one, given[one.name])
        if one.name in given
        else told(one, "number", f"one of {in_block[one.name]} numbered columns")
        if one.name in in_block
        else kind_of(one)
        for one in facts
    )


def of_one_block(facts: Sequence[Facts]) -> dict[str, int]:
    """Numeric columns that are only numbered (pixel0, pixel1, ...), with the number of columns of their block.

    They are an array: none of them is a code or says yes and no by itself, and none may be left out, since
    images need all of their pixels.
    """
    blocks: dict[str, list[str]] = {}
    for one in facts:
        numbered = NUMBERED.fullmatch(one.name)
        if numbered and one.dtype.is_numeric():
            blocks.setdefault(numbered[1], []).append(one.name)
    return {
        name: len(names) for names in blocks.values() if len(names) >= LEAST_BLOCK for name in names
    }


def check_given(given: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise a KindError for a column that is not there, or a kind that does not exist."""
    names = list(names)
    for name, kind in given.items():
        if name not in names:
            close = get_close_matches(str(name), names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise KindError(f"A kind is given for the column {name!r}, which is not there.{hint}")
        if kind not in KINDS:
            close = get_close_matches(str(kind), KINDS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise KindError(
                f"The kind of column {name!r} must be one of {', '.join(KINDS)}, got {kind!r}.{hint}"
            )


def facts_of(frame: pl.LazyFrame) -> list[Facts]:
    """What the rules ask of all columns: one pass over the frame, and a sample of it."""
    import polars as pl
    import polars.selectors as cs

    schema = frame.collect_schema()
    ordered = cs.numeric() | cs.temporal()
    whole = frame.select(
        pl.len().alias("|rows"),
        pl.all().null_count().name.prefix("|missing "),
        ordered.min().to_physical().cast(pl.Float64).name.prefix("|low "),
        ordered.max().to_physical().cast(pl.Float64).name.prefix("|high "),
    )
    row = whole.collect().row(0, named=True)
    n_rows = row["|rows"]
    step = max(1, -(-n_rows // MOST_SAMPLED))
    sample = frame.gather_every(step).collect()
    distinct = distinct_in(frame, sample) if n_rows else {}
    return [
        Facts(
            name,
            dtype,
            n_rows,
            row[f"|missing {name}"],
            distinct.get(name, 0),
            row.get(f"|low {name}", np.nan),
            row.get(f"|high {name}", np.nan),
            sample[name].drop_nulls(),
        )
        for name, dtype in schema.items()
    ]


def distinct_in(frame: pl.LazyFrame, sample: pl.DataFrame) -> dict[str, int]:
    """How many different values each column has, without gaps.

    Of numbers that repeat in a sample and are more than two there, those of the sample are enough: no rule
    asks for more.
    """
    import polars as pl

    found, open_questions = {}, []
    for values in sample:
        if holds(values.dtype):  # lists and records cannot be counted
            found[values.name] = sample.height
            continue
        known = values.drop_nulls()
        count = found[values.name] = known.n_unique()
        if known.dtype == pl.String or count <= 2 or count > 0.5 * len(known):
            open_questions.append(values.name)
    if sample.height == frame.select(pl.len()).collect().item() or not open_questions:
        return found
    count_of = pl.col(open_questions).drop_nulls()
    return found | frame.select(count_of.n_unique()).collect().row(0, named=True)


def kind_of(facts: Facts) -> ColumnKind:
    """The kind that the data say."""
    import polars as pl

    if facts.n_known == 0 or facts.dtype == pl.Null:
        return told(facts, "constant", "no values")
    if holds(facts.dtype):
        return told(facts, "text", f"holds {holds(facts.dtype)}, not single values")
    if facts.n_distinct <= 1 and facts.n_missing == 0:
        return told(facts, "constant", f"all values are {short(facts.sample[0])}")
    if facts.dtype == pl.Boolean:
        return told(facts, "yes/no")
    if facts.dtype.is_temporal():
        return told(facts, "date")
    if facts.n_distinct == 1:
        return told(facts, "yes/no", f"{short(facts.sample[0])} or nothing")
    if isinstance(facts.dtype, pl.Enum):
        return told(facts, "ordered", "its type has an order")
    if facts.dtype.is_numeric():
        return kind_of_numbers(facts)
    return kind_of_words(facts)


def kind_of_numbers(facts: Facts) -> ColumnKind:
    """Numbers, unless they only look like numbers: keys, codes, groups, yes and no."""
    values = numbers_in(facts.sample)
    if not (values == np.floor(values)).all():
        return told(facts, "number")
    if facts.n_distinct == 2 and set(np.unique(values)) == {0.0, 1.0}:
        return told(facts, "yes/no", "0 and 1")
    named = set(facts.words)
    if max(abs(facts.low), abs(facts.high)) > EXACT and facts.dtype.is_integer():
        return told(facts, "id", "whole numbers above 2^53: keys")
    if counts_rows(facts, values):
        return told(facts, "id", "counts the rows")
    if named & ID_WORDS and facts.n_distinct == facts.n_known:
        return told(facts, "id", "named like an id, every value once")
    if never_repeats(facts):
        return told(facts, "id", "whole numbers of which none repeats: ids in disguise")
    if named & CODE_WORDS and facts.high >= LEAST_CODE:
        return told(facts, "code", "named like a code: its size means nothing")
    is_few = facts.n_distinct <= MOST_GROUPS and facts.n_distinct <= facts.n_known / 5
    if named & (GROUP_WORDS | KEY_WORDS) and is_few:
        return told(facts, "category", "few numbers, named like a group")
    if facts.words and facts.words[-1] in KEY_WORDS:
        return told(facts, "code", "named like the id of something else: its size means nothing")
    return told(facts, "number")


def counts_rows(facts: Facts, values: np.ndarray) -> bool:
    """Whether the values are 0, 1, 2, ... or 1, 2, 3, ... (or every so manieth of them, in a sample)."""
    if facts.n_missing or facts.n_rows < ENOUGH_ROWS or facts.n_distinct < 0.9 * facts.n_rows:
        return False
    steps = np.diff(values)
    return bool(
        values[0] in (0, 1)
        and (steps == steps[0]).all()
        and steps[0] == max(1, -(-facts.n_rows // MOST_SAMPLED))
    )


def never_repeats(facts: Facts) -> bool:
    """Whether no whole number repeats although numbers drawn at random from their range would.

    n draws from a range of r numbers repeat about n^2 / 2r times (the birthday paradox).
    """
    if facts.n_distinct < facts.n_known or facts.n_known < ENOUGH_ROWS:
        return False
    return expected_repeats(facts.n_known, facts.high - facts.low + 1) >= EXPECTED_REPEATS


def expected_repeats(n: int, size: float) -> float:
    """How often n numbers drawn from ``size`` ones repeat.

    >>> expected_repeats(1_000, 50_000), expected_repeats(150, 100_000)
    (9.99, 0.11175)
    """
    return n * (n - 1) / (2 * size)


def kind_of_words(facts: Facts) -> ColumnKind:
    """Categories where values repeat; else ids or free text."""
    import polars as pl

    sample = facts.sample.cast(str, strict=False)
    texts = sample.str.strip_chars().str.to_lowercase()
    distinct = set(texts.unique().to_list())
    if (
        len(distinct) <= 2
        and distinct <= set(YES_NO)
        and len({YES_NO[one] for one in distinct}) == 2
    ):
        return told(facts, "yes/no")
    if scale_of(distinct) is not None:
        return told(facts, "ordered", "known words with an order")
    if facts.dtype == pl.Categorical:
        if 2 * facts.n_distinct <= facts.n_known:
            return told(facts, "category")
        return kind_of_distinct_words(facts, sample)
    numbers = as_numbers(sample)
    if not numbers.has_nulls():
        return kind_of_written_numbers(facts, sample, numbers)
    if numbers.null_count() <= 0.5 * len(numbers):
        example = sample.filter(numbers.is_null())[0]
        return told(facts, "text", f"numbers, but also text such as {short(example)}")
    if form_of_dates(sample) is not None:
        return told(facts, "date", "text that holds dates")
    return kind_of_distinct_words(facts, sample)


def kind_of_distinct_words(facts: Facts, sample: pl.Series) -> ColumnKind:
    """Categories, ids or free text, by how often words repeat and how long they are."""
    n_known, n_distinct = facts.n_known, facts.n_distinct
    if n_known < ENOUGH_ROWS:
        return told(facts, "category" if n_distinct < n_known else "text", "too few rows to tell")
    n_words = mean_of(sample.head(1_000).str.count_matches(r"\S+"))
    if n_distinct > 0.9 * n_known:
        named = "named like an id, " if set(facts.words) & ID_WORDS else ""
        if n_words > 2 or int(sample.str.len_chars().to_numpy().max()) > 60:
            return told(facts, "text", "almost every value once, several words")
        return told(facts, "id", f"{named}almost every value once")
    if set(facts.words) & CODE_WORDS and n_distinct > 30:
        return told(facts, "code", "named like a code, many values")
    if n_words > 4 and n_distinct > 0.2 * n_known:
        return told(facts, "text", "several words, few of them repeat")
    counts = sample.alias("value").value_counts()["count"].to_numpy()
    common = counts[counts >= least_count(len(sample))].sum() / len(sample)
    if common < 0.5 or n_distinct > MOST_LEVELS * 10:
        return told(facts, "text", f"{n_distinct:,} different values, most of them rare")
    return told(facts, "category")


def kind_of_written_numbers(facts: Facts, sample: pl.Series, numbers: pl.Series) -> ColumnKind:
    """Numbers written as text are numbers, unless they begin with a 0, as codes do: 01307."""
    import polars as pl

    if sample.str.contains(LEADING_ZERO).any():
        if facts.n_distinct <= MOST_GROUPS and facts.n_distinct <= facts.n_known / 5:
            return told(facts, "category", "numbers that begin with a 0")
        return told(facts, "code", "numbers that begin with a 0: a code")
    is_whole = bool((numbers == numbers.floor()).all())
    return kind_of_numbers(
        replace(
            facts,
            dtype=pl.Int64() if is_whole else pl.Float64(),
            low=float(np.nan_to_num(numbers_in(numbers)).min()),
            high=float(np.nan_to_num(numbers_in(numbers)).max()),
            sample=numbers,
        )
    )


def least_count(n_rows: int) -> int:
    """How many rows a level needs to count by itself: 5, or one in 200.

    >>> least_count(150), least_count(20_000)
    (5, 100)
    """
    return max(5, n_rows // 200)


def scale_of(words: set[str]) -> tuple[str, ...] | None:
    """The known scale that these words are from, None if there is none.

    >>> scale_of({"high", "low"}), scale_of({"S", "M", "L"}), scale_of({"red", "low"})
    (('very low', 'low', 'medium', 'high', 'very high'), ('xs', 's', 'm', 'l', 'xl', 'xxl'), None)
    """
    lowered = {word.strip().lower() for word in words}
    return next((scale for scale in SCALES if len(lowered) > 1 and lowered <= set(scale)), None)


def as_numbers(texts: pl.Series) -> pl.Series:
    """Texts as doubles, null where they are words."""
    import polars as pl

    return texts.str.strip_chars().cast(pl.Float64, strict=False)


def mean_of(values: pl.Series) -> float:
    """The mean as a plain number; 0 where there are none."""
    mean: Any = values.mean()
    return float(mean or 0)


def form_of_dates(sample: pl.Series) -> str | None:
    """How texts write dates: "" as ISO 8601 does (2024-01-31, with a time or without), else one of DATE_FORMS.

    None if they are no dates, or if day and month could be either.

    >>> import polars as pl
    >>> [form_of_dates(pl.Series([text])) for text in ("2024-01-31", "31.12.2023", "31/12/2023", "1/2/2023", "x")]
    ['', '%d.%m.%Y', '%d/%m/%Y', None, None]
    """
    known = sample.drop_nulls()
    if not len(known):
        return None
    if known.head(100).str.contains(ISO_DATE).all() and known.str.contains(ISO_DATE).all():
        return ""
    if not known.head(100).str.contains(r"^\d{1,4}[./]\d{1,2}[./]\d{2,4}$").all():
        return None
    fitting = [
        form for form in DATE_FORMS if known.str.to_date(form, strict=False).null_count() == 0
    ]
    return fitting[0] if len(fitting) == 1 else None


def numbers_in(values: pl.Series) -> np.ndarray:
    """Numbers as doubles."""
    import polars as pl

    return values.cast(pl.Float64).to_numpy()


def given_kind(facts: Facts, kind: str) -> ColumnKind:
    """The kind that the user says, if the values can be read so."""
    import polars as pl

    if holds(facts.dtype) and kind in USED:
        raise KindError(
            f"Column {facts.name!r} holds {holds(facts.dtype)}, not single values, and cannot be a {kind} column. "
            "Make columns of single values of it."
        )
    if kind == "number" and not could_be_numbers(facts):
        raise KindError(f"Column {facts.name!r} cannot be numbers: {example_of(facts)}.")
    if kind == "yes/no" and not could_be_yes_or_no(facts):
        raise KindError(
            f"Column {facts.name!r} cannot be yes or no: it has {facts.n_distinct:,} values. "
            "Say category."
        )
    if (
        kind == "date"
        and not facts.dtype.is_temporal()
        and form_of_dates(facts.sample.cast(pl.String)) is None
    ):
        raise KindError(
            f"Column {facts.name!r} cannot be dates: {example_of(facts)}. Write dates as 2024-01-31."
        )
    return told(facts, kind, "as you said", given=True)


def could_be_numbers(facts: Facts) -> bool:
    """Whether values are numbers, or some texts are."""
    import polars as pl

    if facts.dtype in (pl.String, pl.Categorical, pl.Enum):
        return bool(as_numbers(facts.sample.cast(pl.String)).is_not_null().any())
    return facts.dtype.is_numeric() or facts.dtype in (pl.Boolean, pl.Null)


def could_be_yes_or_no(facts: Facts) -> bool:
    """Whether there are two values at most, or several ways to write yes and no."""
    import polars as pl

    words = set(facts.sample.cast(pl.String).str.to_lowercase().to_list())
    return facts.n_distinct <= 2 or words <= set(YES_NO)


def example_of(facts: Facts) -> str:
    return "it has no values" if not len(facts.sample) else f"it holds {short(facts.sample[0])}"


def told(facts: Facts, kind: str, why: str = "", given: bool = False) -> ColumnKind:
    return ColumnKind(facts.name, kind, why, facts.n_missing, values_in_words(facts, kind), given)


def values_in_words(facts: Facts, kind: str) -> str:
    """A few values of a column, or its range."""
    import polars as pl

    if not len(facts.sample) or holds(facts.dtype):
        return ""
    if kind == "date" and facts.dtype.is_temporal():
        low, high = facts.sample.min(), facts.sample.max()
        return f"{str(low)[:10]} to {str(high)[:10]}"
    if kind == "number" and facts.dtype.is_numeric():
        return f"{facts.low:,.6g} to {facts.high:,.6g}"
    texts = facts.sample.cast(pl.String, strict=False)
    counts = texts.alias("value").to_frame().group_by("value", maintain_order=True).len()
    common = counts.sort("len", descending=True, maintain_order=True)["value"].head(3).to_list()
    more = facts.n_distinct - len(common)
    return ", ".join(short(text) for text in common) + (f" and {more:,} more" if more > 0 else "")


def short(value: Any, most: int = 24) -> str:
    """A value in a table or a message: one line, not too long.

    >>> short("a\\nb"), short("x" * 30)
    ('a b', 'xxxxxxxxxxxxxxxxxxxxxxx…')
    """
    text = " ".join(str(value).split())
    text = "".join(letter for letter in text if letter.isprintable())
    return text if len(text) <= most else text[: most - 1] + "…"
