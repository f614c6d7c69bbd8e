"""The comparison as tables: for the terminal, and as Markdown for a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Group
from rich.table import Table

from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.records import Record
from deccs_paper.table import markdown
from deccs_paper.yardstick.methods import METHODS, Method
from deccs_paper.yardstick.runs import EXPERIMENT, OK, latest
from deccs_paper.yardstick.summary import (
    FEWEST,
    REFERENCE,
    Against,
    Comparison,
    Estimate,
    Row,
    choice_of,
    compare,
    nearly_complete,
    shapes_and_tables,
    values_of,
    with_enough,
)

PAGE = Block("pool", "deccs yardstick ../shared/pool --page docs/pool.md")
SHORT = Block("pool in short", "deccs yardstick ../shared/pool --page docs/choice.md")
IN_SHORT = ("nmi", "rank", "cpu_seconds")
HEADS = {  # quantity -> head and format of its column
    "nmi": ("NMI", ".3f"),
    "ami": ("AMI", ".3f"),
    "ari": ("ARI", ".3f"),
    "rank": ("rank", ".1f"),
    "nmi_surest": ("NMI of the surest 95 %", ".3f"),
    "cpu_seconds": ("CPU seconds", ".1f"),
}


def comparisons(made: Sequence[Record]) -> Iterator[tuple[str, Comparison]]:
    """Titles and comparisons: all data sets, tables and shapes, each also with every method.

    Every method is one with results on at least five data sets, compared on those that all have.
    """
    values = values_of(made)
    kinds = shapes_and_tables(made)
    kinds = {"all data sets": kinds["tables"] | kinds["shapes"], **kinds}
    for kind, datasets in kinds.items():
        methods = nearly_complete(values, datasets)
        first = compare(values, methods, datasets)
        if first.rows:
            yield f"{kind}: {len(first.datasets)} of {len(datasets)}", first
        enough = with_enough(values, datasets)
        if len(methods) < len(enough):
            every = compare(values, enough, datasets)
            if len(every.datasets) >= FEWEST:
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


def choice_text(made: Sequence[Record]) -> list[str]:
    """How well the reference chose among its candidates, in one paragraph; none without records."""
    choice = choice_of(values_of(made).get(REFERENCE, {}))
    parts = []
    if choice.regret is not None:
        regret = number(choice.regret, ".3f")
        parts.append(f"mean regret {regret} over {choice.n_datasets} data sets")
    if choice.below is not None and choice.largest_loss is not None:
        loss, dataset = choice.largest_loss
        share = number(choice.below, ".2f")
        parts.append(
            f"share of data sets below the consensus of the views {share} of {choice.n_compared}"
        )
        parts.append(f"largest loss against it {loss:.3f}, on {dataset}")
    return [f"What {REFERENCE} chose: {'; '.join(parts)}."] if parts else []


def begun(made: Sequence[Record]) -> list[str]:
    """One line on the methods with results on too few data sets for a table; none without any."""
    values = values_of(made)
    datasets = {name for results in values.values() for name in results}
    few = {
        name: len(values[name])
        for name in sorted(values.keys() - set(with_enough(values, datasets)))
    }
    words = ", ".join(f"{method} ({n_datasets})" for method, n_datasets in few.items())
    return [f"On too few data sets for a table: {words}."] if few else []


def pool_records(path: Path) -> list[Record]:
    """The records of this comparison; those of other experiments in the file are left out."""
    return [record for record in records.read(path) if record["experiment"] == EXPERIMENT]


def page_text(path: Path) -> str:
    """All comparisons of a file of records as Markdown, and what did not succeed."""
    made = pool_records(path)
    parts = []
    for title, comparison in comparisons(made):
        parts.append(f"**{title[0].upper()}{title[1:]}**\n\n{markdown(*cells(comparison))}")
    return "\n\n".join([*parts, *remarks(made)])


def short_text(path: Path) -> str:
    """The comparison on all data sets without intervals, and how DECCS chose."""
    made = pool_records(path)
    for title, comparison in comparisons(made):
        heads = [
            "method",
            *(HEADS[name][0] for name in IN_SHORT),
            f"wins / losses / ties of {REFERENCE}",
        ]
        rows = [[row.method, *short_cells(row)] for row in comparison.rows]
        return "\n\n".join([f"On {title}", markdown(heads, rows), *choice_text(made)])
    return "No records yet."


def short_cells(row: Row) -> list[str]:
    """Mean NMI, rank and seconds, and how the reference did against this method."""
    estimates = [(row.quantities[name], HEADS[name][1]) for name in IN_SHORT]
    numbers = ["" if one is None else format(one.value, digits) for one, digits in estimates]
    against = row.against
    return [*numbers, f"{against.losses} / {against.wins} / {against.ties}" if against else ""]


def terminal_tables(made: Sequence[Record]) -> Group:
    """All comparisons as tables of rich."""
    parts: list[Table | str] = []
    for title, comparison in comparisons(made):
        parts.append(rich_table(title, *cells(comparison)))
    return Group(*parts, *remarks(made))


def rich_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of rich; the first column has names, the others numbers."""
    table = Table(title=title, title_justify="left")
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    return table


def remarks(made: Sequence[Record]) -> list[str]:
    """What is said below the tables."""
    if not latest(made):
        return ["No records yet."]
    return [*choice_text(made), *begun(made), *gaps(made)]


def gaps(made: Sequence[Record], registry: Mapping[str, Method] = METHODS) -> list[str]:
    """One line on the runs of each status but "ok"; none if there are none.

    Data sets that a method was not tried on are not named: the tables say how many they compare.
    """
    by_status: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for record in latest(made, registry).values():
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
