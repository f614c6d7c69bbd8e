"""The comparison as tables: for the terminal, and as Markdown for a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group
from rich.table import Table

from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.records import Record
from deccs_paper.table import markdown
from deccs_paper.yardstick.runs import OK, latest
from deccs_paper.yardstick.summary import (
    REFERENCE,
    Against,
    Comparison,
    Estimate,
    compare,
    nearly_complete,
    shapes_and_tables,
    values_of,
)

PAGE = Block("pool", "deccs yardstick ../shared/pool --page docs/pool.md")
HEADS = {  # quantity -> head and format of its column
    "nmi": ("NMI", ".3f"),
    "ami": ("AMI", ".3f"),
    "ari": ("ARI", ".3f"),
    "rank": ("rank", ".1f"),
    "nmi_surest": ("NMI of the surest 95 %", ".3f"),
    "cpu_seconds": ("CPU seconds", ".1f"),
}


def comparisons(made: Sequence[Record]) -> Iterator[tuple[str, Comparison]]:
    """Titles and comparisons: all data sets, tables and shapes, then every method on what all have."""
    values = values_of(made)
    kinds = shapes_and_tables(made)
    kinds = {"all data sets": kinds["tables"] | kinds["shapes"], **kinds}
    for kind, datasets in kinds.items():
        methods = nearly_complete(values, datasets)
        first = compare(values, methods, datasets)
        if first.rows:
            yield f"{kind}: {len(first.datasets)} of {len(datasets)}", first
        if len(methods) < len(values):
            every = compare(values, list(values), datasets)
            if every.rows:
                words = f"{kind}, every method: the {len(every.datasets)} that all of them have"
                yield words, every


def cells(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a table, as text."""
    heads = ["method", *(head for head, _ in HEADS.values()), f"against {REFERENCE}"]
    rows = [
        [
            row.method,
            *(number(row.quantities[name], digits) for name, (_, digits) in HEADS.items()),
            outcome(row.against),
        ]
        for row in comparison.rows
    ]
    return heads, rows


def number(estimate: Estimate | None, digits: str) -> str:
    """A number and its interval.

    >>> number(Estimate(0.5123, 0.4, 0.6), ".3f")
    '0.512 (0.400 to 0.600)'
    """
    if estimate is None:
        return ""
    low, high = format(estimate.low, digits), format(estimate.high, digits)
    return f"{estimate.value:{digits}} ({low} to {high})"


def outcome(against: Against | None) -> str:
    """Wins, losses and ties, and the interval of wins less losses."""
    if against is None:
        return ""
    net = f"{against.net.value:+.0f} ({against.net.low:+.0f} to {against.net.high:+.0f})"
    return f"{against.wins} / {against.losses} / {against.ties}, net {net}"


def page_text(path: Path) -> str:
    """All comparisons of a file of records as Markdown, and what did not succeed."""
    made = list(records.read(path))
    parts = []
    for title, comparison in comparisons(made):
        parts.append(f"**{title[0].upper()}{title[1:]}**\n\n{markdown(*cells(comparison))}")
    return "\n\n".join([*parts, *gaps(made)])


def terminal_tables(made: Sequence[Record]) -> Group:
    """All comparisons as tables of rich."""
    parts: list[Table | str] = []
    for title, comparison in comparisons(made):
        heads, rows = cells(comparison)
        table = Table(title=title, title_justify="left")
        for place, head in enumerate(heads):
            table.add_column(head, justify="right" if place else "left")
        for row in rows:
            table.add_row(*row)
        parts.append(table)
    return Group(*parts, *gaps(made))


def gaps(made: Sequence[Record]) -> list[str]:
    """One line on the runs of each status but "ok"; none if there are none.

    Data sets that a method was not tried on are not named: the tables say how many they compare.
    """
    by_status: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for record in latest(made).values():
        if record["status"] != OK:
            by_status[record["status"]][record["method"]].append(record["dataset"])
    return [
        f'Runs with status "{status}": '
        + "; ".join(
            f"{method} on {', '.join(sorted(set(datasets)))}"
            for method, datasets in sorted(methods.items())
        )
        + "."
        for status, methods in sorted(by_status.items())
    ]
