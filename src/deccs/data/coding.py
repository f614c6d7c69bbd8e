"""From a data frame to numbers: each column becomes one or more cells of a row.

A number is a cell. A category is a cell that holds the code of its level. A date is several: its day,
and weekday, season and hour where the dates span enough to tell. A missing value is NaN in all cells of
its column. What was learned (levels, parts) is kept, so that new rows are coded as those of the fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from deccs.checks import one_of
from deccs.data import frames
from deccs.data.kinds import (
    DATE_FORMS,
    MOST_LEVELS,
    MOST_SAMPLED,
    USED,
    YES_NO,
    ColumnKind,
    KindError,
    form_of_dates,
    least_count,
    scale_of,
    short,
)
from deccs.data.source import blocks, rows_at_once
from deccs.storage import stored

if TYPE_CHECKING:
    import polars as pl

DAY = 86_400.0  # seconds
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
OTHERS = "other"  # the level of rare and unseen ones
PARTS: Mapping[str, int] = {"weekday": 1, "season": 2, "hour": 2}  # of a date, in how many cells
TEXT_CELLS = 64  # that free text is hashed to
LONGEST_LEVEL = 200  # characters


@dataclass(frozen=True)
class Cell:
    """One number of a coded row."""

    column: int  # the place of its column
    n_levels: int = 0  # 0 for a number
    weight: float = 1.0  # of the cell; the squares of those of a column add up to 1


@stored
@dataclass(frozen=True)
class Column:
    """How a column is coded."""

    KEEPS_TEXT: ClassVar[bool] = True  # a level with a no-break space must be found again

    name: str
    kind: Annotated[str, one_of(*USED, "text")]
    levels: tuple[str, ...] = ()  # in the order of their codes
    has_others: bool = False  # the last level is for rare and unseen ones
    parts: tuple[str, ...] = ()  # of a date: "weekday", "season", "hour"
    is_flag: bool = False  # a value or nothing: a gap is a "no"
    is_whole: bool = False  # all numbers are whole
    skips_words: bool = False  # the user has said that words between the numbers are gaps
    form: str = ""  # of dates that are text: the one of DATE_FORMS, "" for ISO

    def check_stored(self) -> None:
        """Raise a ValueError for a column that cannot code anything."""
        needs_levels = self.kind in ("yes/no", "category", "ordered")
        if needs_levels != bool(self.levels) or len(self.levels) > MOST_LEVELS + 1:
            raise ValueError(f"the column {self.name!r:.60} has {len(self.levels)} levels")
        texts = (self.name, *self.levels)
        if any(frames.as_text(text) != text for text in texts):
            raise ValueError("a column has a name or a level that cannot be written")
        if max(len(level) for level in ("", *self.levels)) > LONGEST_LEVEL:
            raise ValueError(f"the column {self.name!r:.60} has a level of too many letters")
        if self.form not in ("", *DATE_FORMS):
            raise ValueError(
                f"the column {self.name!r:.60} has dates of the form {self.form!r:.30}"
            )
        if len(set(self.levels)) < len(self.levels) or not set(self.parts) <= set(PARTS):
            raise ValueError(f"the column {self.name!r:.60} has levels or parts twice")

    def cells(self, place: int) -> list[Cell]:
        """The cells of the column, which is at this place."""
        if self.kind in ("yes/no", "category"):
            return [Cell(place, len(self.levels))]
        if self.kind == "text":
            return [Cell(place, weight=TEXT_CELLS**-0.5)] * TEXT_CELLS
        weight = (1 + len(self.parts)) ** -0.5
        cells = [Cell(place, weight=weight)]
        for part in self.parts:
            n = PARTS[part]
            levels = len(WEEKDAYS) if part == "weekday" else 0
            cells += [Cell(place, levels, weight * n**-0.5)] * n
        return cells


@stored
@dataclass(frozen=True)
class Coding:
    """How the columns of a frame become cells, in this order."""

    columns: tuple[Column, ...]

    def check_stored(self) -> None:
        """Raise a ValueError for names that occur twice."""
        if len(set(self.names)) < len(self.names) or not self.columns:
            raise ValueError("Coding must have columns, each name once")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(
            cell for place, column in enumerate(self.columns) for cell in column.cells(place)
        )

    @cached_property
    def first_cells(self) -> tuple[int, ...]:
        """The place of each column's first cell."""
        sizes = [len(column.cells(place)) for place, column in enumerate(self.columns)]
        return tuple(np.cumsum([0, *sizes[:-1]]).tolist())

    @property
    def is_plain(self) -> bool:
        """Whether every cell is a number that stands for a column."""
        return all(column.kind == "number" for column in self.columns)

    def __call__(self, frame: pl.DataFrame) -> np.ndarray:
        """(n_rows, n_cells) doubles, NaN where a value is missing."""
        out = np.empty((frame.height, len(self.cells)), order="C")
        if self.is_plain and all(dtype.is_numeric() for dtype in frame.schema.values()):
            return self._numbers(frame, out)
        for column, start in zip(self.columns, self.first_cells, strict=True):
            coded = coded_column(column, frame[column.name])
            out[:, start : start + coded.shape[1]] = coded
        return out

    def _numbers(self, frame: pl.DataFrame, out: np.ndarray) -> np.ndarray:
        """The same where all columns are numbers: rows in blocks, since columns of a wide table are far apart."""
        import polars as pl

        for place in blocks(frame.height, rows_at_once(len(self.cells))):
            some = frame[place].select(pl.col(self.names).cast(pl.Float64).fill_null(np.nan))
            out[place] = some.to_numpy(order="c")
            infinite = np.isinf(out[place])
            if infinite.any():
                raise infinite_error(self.names[int(infinite.any(axis=0).argmax())])
        return out

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise a ValueError that names the columns a frame lacks."""
        have = set(names)
        if absent := [name for name in self.names if name not in have]:
            listed = ", ".join(map(repr, absent[:8])) + (" ..." if len(absent) > 8 else "")
            raise ValueError(
                f"X lacks columns the model needs: {listed}. It has "
                f"{', '.join(map(repr, list(names)[:20]))}."
            )


def fit_coding(frame: pl.LazyFrame, kinds: Sequence[ColumnKind]) -> Coding:
    """How the used columns of a frame are coded: levels by how frequent they are, parts of dates."""
    import polars as pl

    used = [kind for kind in kinds if kind.is_used]
    if not used:
        if not kinds:
            raise KindError("X has no columns.")
        n_rows = frame.select(pl.len()).collect().item()
        if n_rows < 2:
            raise KindError(f"X has {n_rows} row(s), and clustering needs at least two.")
        why = "; ".join(f"{kind.name}: {kind.why or kind.kind}" for kind in kinds[:8])
        raise KindError(
            f"X has no column to cluster ({why}). Say what a column is with kinds={{name: kind}}, "
            "or --kind NAME=KIND."
        )
    schema = frame.collect_schema()
    return Coding(tuple(fit_column(frame, kind, schema[kind.name]) for kind in used))


def fit_column(frame: pl.LazyFrame, kind: ColumnKind, dtype: Any) -> Column:
    """How one column is coded."""
    import polars as pl

    values = frames.column(kind.name)
    column = Column(kind.name, kind.kind)
    if kind.kind == "number":
        skips_words = kind.given and dtype == pl.String
        is_whole = not skips_words and are_whole(frame, values, dtype)
        return replace(column, is_whole=is_whole, skips_words=skips_words)
    if kind.kind == "date":
        texts = frame.select(values).head(MOST_SAMPLED).collect().to_series()
        column = replace(column, form=form_of_dates(texts) or "" if dtype == pl.String else "")
        stamps = frame.select(as_stamp(values, dtype, column.form).alias("at")).select(
            pl.col("at").min().alias("low"),
            pl.col("at").max().alias("high"),
            (pl.col("at") % DAY != 0).any().alias("has_time"),
        )
        low, high, has_time = stamps.collect().row(0)
        return replace(column, parts=parts_of_dates(low or 0.0, high or 0.0, bool(has_time)))
    if kind.kind == "text":
        return column
    words = frame.select(as_words(values, dtype).alias("level")).drop_nulls()
    counts = words.group_by("level").len().collect()
    found = dict(zip(counts["level"].to_list(), counts["len"].to_list(), strict=True))
    if kind.kind == "yes/no":
        lowered = {word.lower() for word in found}
        says_no = all(YES_NO.get(word) == 0 for word in lowered)
        # A value or nothing; where the value is "no", a gap is not another one.
        if len(found) == 1 and kind.n_missing and not says_no:
            return replace(column, levels=("no", "yes"), is_flag=True)
        if lowered <= set(YES_NO):
            return replace(column, levels=("no", "yes"))
        return replace(column, levels=tuple(sorted(found)))
    if kind.kind == "ordered":
        return replace(column, levels=levels_in_order(found, dtype))
    levels, has_others = levels_of(found)
    return replace(column, levels=levels, has_others=has_others)


def are_whole(frame: pl.LazyFrame, values: pl.Expr, dtype: Any) -> bool:
    """Whether all numbers are whole, be they stored as integers or, beside gaps, as doubles."""
    if not dtype.is_float():
        return bool(dtype.is_integer())
    return bool(frame.select((values == values.floor()).all()).collect().item())


def parts_of_dates(low: float, high: float, has_time: bool) -> tuple[str, ...]:
    """What dates between two times (seconds) tell beside the day.

    The weekday if they span two weeks, the season if they span 18 months, the hour if they have one.

    >>> parts_of_dates(0, 10 * DAY, True), parts_of_dates(0, 800 * DAY, False)
    (('hour',), ('weekday', 'season'))
    """
    span = (high - low) / DAY
    wanted = {"weekday": span >= 14, "season": span >= 548, "hour": has_time}
    return tuple(part for part, is_wanted in wanted.items() if is_wanted)


def levels_of(counts: Mapping[str, int]) -> tuple[tuple[str, ...], bool]:
    """The levels, most frequent first, and whether rare ones are pooled as the last one.

    >>> levels_of({"a": 50, "b": 40, "c": 1})
    (('a', 'b', 'other'), True)
    >>> levels_of({"a": 50, "b": 40})
    (('a', 'b'), False)
    """
    least = least_count(sum(counts.values()))
    in_order = sorted(counts, key=lambda level: (-counts[level], level))
    kept = [level for level in in_order if counts[level] >= least][:MOST_LEVELS]
    kept = kept or in_order[:MOST_LEVELS]  # few rows: all are rare
    if len(kept) == len(in_order):
        return tuple(kept), False
    taken = set(kept)
    others = OTHERS
    while others in taken:
        others = f"({others})"
    return (*kept, others), True


def levels_in_order(found: Mapping[str, int], dtype: Any) -> tuple[str, ...]:
    """The levels of an ordered category: those of its type, of a known scale, or sorted."""
    import polars as pl

    if isinstance(dtype, pl.Enum):
        written = pl.select(as_words(pl.lit(dtype.categories), pl.String())).to_series()
        return tuple(written.drop_nulls().unique(maintain_order=True).head(MOST_LEVELS).to_list())
    scale = scale_of(set(found))
    if scale is not None:
        return tuple(word for word in scale if word in {level.lower() for level in found})
    try:
        in_order = sorted(found, key=float)
    except ValueError:  # they are words
        in_order = sorted(found)
    return tuple(in_order[:MOST_LEVELS])


def as_words(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Values as levels: text without spaces around it; 3.0 and 3 are one level, True is "true"."""
    import polars as pl

    if dtype.is_float():
        whole_number = values.cast(pl.Int64, strict=False)
        is_whole_number = values == whole_number.cast(pl.Float64)
        known = values.fill_nan(None)
        return (
            pl.when(is_whole_number)
            .then(whole_number.cast(pl.String))
            .otherwise(known.cast(pl.String))
        )
    words = values.cast(pl.String).str.strip_chars().str.slice(0, LONGEST_LEVEL)
    return pl.when(words != "").then(words)


def as_stamp(values: pl.Expr, dtype: Any, form: str = "") -> pl.Expr:
    """Dates as seconds since 1970; text must be as ISO 8601 has it, or in the form of the fit."""
    import polars as pl

    if dtype == pl.String:
        texts = values.str.strip_chars().str.replace("T", " ").str.strip_suffix("Z")
        forms = ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", *([form] if form else [])]
        values = pl.coalesce(texts.str.to_datetime(form, strict=False) for form in forms)
    return values.cast(pl.Datetime("us")).to_physical().cast(pl.Float64) / 1e6


def coded_column(column: Column, values: pl.Series) -> np.ndarray:
    """(n, n_cells of the column) doubles."""
    if column.kind == "number":
        return coded_numbers(column, values)[:, None]
    if column.kind == "date":
        return coded_dates(column, values)
    if column.kind == "text":
        return coded_text(values)
    return coded_levels(column, values)[:, None]


def coded_numbers(column: Column, values: pl.Series) -> np.ndarray:
    """(n,) doubles; a word in between is an error, an infinite value too."""
    import polars as pl

    if values.dtype == pl.String:
        texts = values.str.strip_chars()
        texts = texts.set(texts == "", None)
        numbers = texts.cast(pl.Float64, strict=False)
        if numbers.null_count() > texts.null_count() and not column.skips_words:
            word = texts.filter(numbers.is_null() & texts.is_not_null())[0]
            raise ValueError(
                f"Column {column.name!r} must be numbers, got the text {short(word)!r}."
            )
    elif values.dtype in (pl.Categorical, pl.Enum):
        return coded_numbers(column, values.cast(pl.String))
    elif values.dtype.is_numeric() or values.dtype in (pl.Boolean, pl.Null):
        numbers = values.cast(pl.Float64, strict=False)
    else:
        raise ValueError(f"Column {column.name!r} must be numbers, got {values.dtype}.")
    out = numbers.fill_null(np.nan).to_numpy()
    if np.isinf(out).any():
        raise infinite_error(column.name)
    return out


def infinite_error(name: str) -> ValueError:
    return ValueError(f"Column {name!r} has infinite values. Replace them.")


def coded_levels(column: Column, values: pl.Series) -> np.ndarray:
    """(n,) codes of levels. An unseen level is one of the rare ones, or missing where there are none."""
    import polars as pl

    if what := frames.holds(values.dtype):
        raise ValueError(f"Column {column.name!r} must have single values, got {what}.")
    if column.is_flag:
        return values.is_not_null().cast(pl.Float64).to_numpy()
    words = pl.select(as_words(pl.lit(values), values.dtype)).to_series()
    codes: dict[str, float] = {level: float(code) for code, level in enumerate(column.levels)}
    if column.levels == ("no", "yes"):
        codes = {word: float(code) for word, code in YES_NO.items()}
    if column.kind == "ordered" or column.levels == ("no", "yes"):
        words, codes = (
            words.str.to_lowercase(),
            {word.lower(): code for word, code in codes.items()},
        )
    unseen = float(len(column.levels) - 1) if column.has_others else None
    if column.has_others:
        codes.pop(column.levels[-1])
    coded = words.replace_strict(codes, default=unseen, return_dtype=pl.Float64)
    coded = coded.set(words.is_null(), None)
    return coded.fill_null(np.nan).to_numpy()


def coded_dates(column: Column, values: pl.Series) -> np.ndarray:
    """(n, n_cells): days since 1970, then the parts of the date."""
    import polars as pl

    if values.dtype in (pl.Categorical, pl.Enum):
        values = values.cast(pl.String)
    if not (values.dtype.is_temporal() or values.dtype in (pl.String, pl.Null)):
        raise ValueError(f"Column {column.name!r} must be dates, got {values.dtype}.")
    form = column.form
    if values.dtype == pl.String and not form:  # the fit has seen dates, and these are text
        form = form_of_dates(values.drop_nulls()) or ""
    stamps = pl.select(as_stamp(pl.lit(values), values.dtype, form)).to_series()
    if values.dtype == pl.String and stamps.null_count() > values.null_count():
        word = values.filter(stamps.is_null() & values.is_not_null())[0]
        raise ValueError(
            f"Column {column.name!r} must be dates such as 2024-01-31, got {short(word)!r}."
        )
    days = stamps.fill_null(np.nan).to_numpy() / DAY
    cells = [days]
    for part in column.parts:
        if part == "weekday":
            cells.append((np.floor(days) + 3) % 7)  # 1970-01-01 was a Thursday
        else:
            turn = 2 * np.pi * (days / 365.2425 if part == "season" else days % 1)
            cells += [np.sin(turn), np.cos(turn)]
    return np.column_stack(cells)


def coded_text(values: pl.Series) -> np.ndarray:
    """(n, TEXT_CELLS): how often groups of three letters occur, hashed, each row of length 1."""
    from sklearn.feature_extraction.text import HashingVectorizer

    texts = ["" if text is None else str(text) for text in values.to_list()]
    vectorizer = HashingVectorizer(
        analyzer="char_wb", ngram_range=(3, 3), n_features=TEXT_CELLS, alternate_sign=False
    )
    counts = vectorizer.transform(texts).toarray()
    counts[[not text.strip() for text in texts]] = np.nan
    return counts


def each_batch(frame: pl.LazyFrame, size: int) -> Iterator[pl.DataFrame]:
    """The rows of a frame that is scanned from disk, some at a time, in order."""
    yield from frame.collect_batches(chunk_size=size, maintain_order=True)
