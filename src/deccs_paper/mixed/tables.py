"""The comparison as tables: for the terminal, and as Markdown for a page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Group

from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.how_many.tables import Section
from deccs_paper.mixed.methods import METHODS, REFERENCE
from deccs_paper.mixed.runs import table_of
from deccs_paper.mixed.sets import GROUPS
from deccs_paper.mixed.summary import (
    AT_MAIN_SHARE,
    BARS,
    Bar,
    Spread,
    Values,
    ahead_of,
    categories_for_numbers,
    counted,
    differences,
    means,
    spread_of,
    to_complete,
    values_of,
)
from deccs_paper.mixed.variants import (
    AT_RANDOM,
    BY_VALUE,
    CATEGORIES,
    MIXED,
    NUMBERS,
    SHARES,
    Variant,
    gap_name,
)
from deccs_paper.records import Record
from deccs_paper.yardstick.runs import OK
from deccs_paper.yardstick.tables import rich_table

PAGE = Block("mixed tables", "deccs mixed ../shared/pool --page docs/tables.md")


def difference(spread: Spread | None) -> str:
    """A mean difference and its deviation over tables.

    >>> difference(Spread(7, -0.0123, 0.02, -0.05, "zoo")), difference(None)
    ('-0.012 ± 0.020', '')
    """
    return f"{spread.mean:+.3f} ± {spread.deviation:.3f}" if spread else ""


def worst(spread: Spread | None) -> str:
    """The table with the lowest difference.

    >>> worst(Spread(7, -0.0123, 0.02, -0.05, "zoo"))
    '-0.050 zoo'
    """
    return f"{spread.worst:+.3f} {spread.worst_table}" if spread else ""


def mean_of(by_table: Mapping[str, float]) -> str:
    """The mean over tables.

    >>> mean_of({"zoo": 0.5, "wine": 0.75}), mean_of({})
    ('0.625', '')
    """
    return f"{np.mean(list(by_table.values())):.3f}" if by_table else ""


# The bars


def bars(made: Sequence[Record]) -> list[Section]:
    """What was asked for, and whether it is so; none without a result of DECCS."""
    rows = [[bar.words, f"above {bar.above:+.2f}", *bar_cells(bar, made)] for bar in BARS]
    heads = ["mean difference in NMI", "asked for", *GROUPS]
    title = "What was asked of `deccs`: mean ± deviation over tables, worst table, whether met"
    return [Section(title, heads, rows)] if any(any(row[2:]) for row in rows) else []


def bar_cells(bar: Bar, made: Sequence[Record]) -> list[str]:
    """What was measured on each group of tables."""
    return [verdict(bar.above, bar.measured(made, tables)) for tables in GROUPS.values()]


def verdict(above: float, spread: Spread | None) -> str:
    """A difference against its bar.

    >>> verdict(-0.03, Spread(7, -0.0123, 0.02, -0.05, "zoo"))
    '**-0.012** ± 0.020 over 7, worst -0.050 zoo: met'
    """
    if spread is None:
        return ""
    said = "met" if spread.mean > above else "not met"
    return (
        f"**{spread.mean:+.3f}** ± {spread.deviation:.3f} "
        f"over {spread.n_tables}, worst {worst(spread)}: {said}"
    )


# Gaps


def gaps(values: Values, group: str) -> list[Section]:
    """Each way at each share and mechanism; none without records."""
    tables = GROUPS[group]
    rows = [
        [gap_name(share, mechanism), method, *cells]
        for share in SHARES
        for mechanism in (AT_RANDOM, BY_VALUE)
        for method in METHODS
        if any(cells := gap_cells(values, method, share, mechanism, tables))
    ]
    heads = ["cells", "method"]
    for kinds in (NUMBERS, MIXED):
        heads += [f"{kinds}: NMI", "tables", "less complete", "worst table"]
    heads.append(f"`{REFERENCE}` is ahead by")
    return [Section(f"Gaps, {group} tables", heads, rows)] if rows else []


def gap_cells(
    values: Values, method: str, share: float, mechanism: str, tables: Sequence[str]
) -> list[str]:
    """Mean NMI, difference to the complete tables, and what DECCS has more on the same tables."""
    cells = []
    variants = [Variant(kinds, share, mechanism) for kinds in (NUMBERS, MIXED)]
    for variant in variants:
        nmi = means(values, (method, variant), tables)
        cost = spread_of(differences(values, to_complete(method, [variant]), tables))
        cells += [mean_of(nmi), str(len(nmi) or ""), difference(cost), worst(cost)]
    lead = spread_of(differences(values, ahead_of(method, variants), tables))
    return [*cells, "" if method == REFERENCE else difference(lead)]


# Categories


def categories(values: Values) -> list[Section]:
    """What it costs that a table has categories instead of numbers; none without records."""
    rows = [
        [group, method, *cells]
        for group, tables in GROUPS.items()
        for method in METHODS
        if not METHODS[method].complete_as and any(cells := category_cells(values, method, tables))
    ]
    heads = ["tables", "method", *(f"{kinds}: NMI" for kinds in (NUMBERS, MIXED, CATEGORIES))]
    heads += ["mixed less numbers", "categories less numbers", "worst table"]
    return [Section("Categories and dates in complete tables", heads, rows)] if rows else []


def category_cells(values: Values, method: str, tables: Sequence[str]) -> list[str]:
    """Mean NMI with each kind of columns, and the differences on the same tables."""
    nmi = [
        mean_of(means(values, (method, Variant(kinds)), tables))
        for kinds in (NUMBERS, MIXED, CATEGORIES)
    ]
    costs = [
        spread_of(differences(values, categories_for_numbers(method, kinds), tables))
        for kinds in (MIXED, CATEGORIES)
    ]
    return [*nmi, *(difference(cost) for cost in costs), worst(costs[1])]


# One row per table


def by_table(values: Values) -> list[Section]:
    """Mean NMI over the four variants with 20 % missing, where a method has all of them."""
    rows = []
    for group, tables in GROUPS.items():
        for table in tables:
            complete = {variant.complete for variant in AT_MAIN_SHARE}
            cells = [over_variants(values, REFERENCE, complete, table)]
            cells += [over_variants(values, each, AT_MAIN_SHARE, table) for each in METHODS]
            if any(cells):
                rows.append([table, group, *cells])
    heads = ["table", "group", f"`{REFERENCE}`, complete", *METHODS]
    title = "20 % missing, by table: NMI, mean over numbers and mixed, at random and not"
    return [Section(title, heads, rows)] if rows else []


def over_variants(
    values: Values, method: str, variants: Sequence[Variant] | set[Variant], table: str
) -> str:
    """The mean over variants; nothing if one is missing."""
    nmi = [means(values, (method, variant), [table]) for variant in variants]
    return mean_of({str(i): each[table] for i, each in enumerate(nmi)}) if all(nmi) else ""


# What did not succeed


def failures(made: Sequence[Record]) -> list[str]:
    """A line on the runs that have no result, by method; none if there are none.

    >>> one = {"method": "drop", "dataset": "zoo: mixed", "status": "failed", "error": "ValueError: 3 of 9"}
    >>> failures([one, one | {"dataset": "zoo: numbers"}])
    ['Runs without a result: drop 2 (ValueError on zoo).']
    """
    counts: Counter[tuple[str, str]] = Counter()
    tables: dict[tuple[str, str], set[str]] = defaultdict(set)
    for record in made:
        if record["status"] != OK:
            error = str(record.get("error", record["status"]))
            reason = record["method"], error.split(":")[0]
            counts[reason] += 1
            tables[reason].add(table_of(record["dataset"]))
    parts = [
        f"{method} {n} ({error} on {', '.join(sorted(tables[method, error]))})"
        for (method, error), n in sorted(counts.items())
    ]
    return [f"Runs without a result: {'; '.join(parts)}."] if parts else []


def empties(made: Sequence[Record]) -> list[str]:
    """A line on tables with rows or columns of which chance has left nothing; none if there are none.

    >>> one = {"dataset": "wine: numbers", "status": "ok", "empty_rows": 4, "empty_columns": 0, "n": 178}
    >>> empties([one, one | {"empty_rows": 2}])
    ['Rows of which chance has left no cell, at most: 4 of 178 in wine.']
    """
    most: dict[str, tuple[int, int]] = {}
    columns = False
    for record in made:
        if record["status"] == OK:
            table = table_of(record["dataset"])
            most[table] = max(most.get(table, (0, 0)), (record["empty_rows"], record["n"]))
            columns |= record["empty_columns"] > 0
    words = ", ".join(f"{rows} of {n} in {table}" for table, (rows, n) in most.items() if rows)
    lines = [f"Rows of which chance has left no cell, at most: {words}."] if words else []
    return [*lines, *(["Some column has no cell left."] if columns else [])]


# All of them


def sections(made: Sequence[Record]) -> list[Section]:
    values = values_of(made)
    parts = [*bars(made)]
    for group in GROUPS:
        parts += gaps(values, group)
    return [*parts, *categories(values), *by_table(values)]


def remarks(made: Sequence[Record]) -> list[str]:
    """What is said below the tables."""
    known = counted(made)
    return [*failures(known), *empties(known)] if known else ["No records yet."]


def page_text(path: Path) -> str:
    """All tables as Markdown, and what did not succeed."""
    made = list(records.read(path))
    return "\n\n".join([*(section.text for section in sections(made)), *remarks(made)])


def terminal_tables(path: Path) -> Group:
    """The same for a terminal."""
    made = list(records.read(path))
    tables = [rich_table(one.title, one.heads, one.rows) for one in sections(made)]
    return Group(*tables, *remarks(made))
