"""The tables of docs/large_data.md, from the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from deccs.app.pace import Pace
from deccs.app.plan import Job, advice, headline, table_of
from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.records import Record
from deccs_paper.scale.costs import pace_of
from deccs_paper.table import markdown

PAGE = Block("scale", "python -m deccs_paper.scale.command --page docs/large_data.md")
PLAN = Block("plan", PAGE.command)
PLANNED, GIGABITS = Job(10**9, 64, processes=64), 1.0
FIRST_PACE = Pace(products=2.29e11, bytes_read=3e8, threads=2)  # until there are records
NOTHING = "There are no records yet: `make bench-scale` makes them."


def page_text(path: Path) -> str:
    """All tables that there are records for."""
    made = good(records.read(path))
    parts_of_page = (fits, seeds, labels, pretraining, parts, quality, kills)
    tables = [part(made) for part in parts_of_page]
    return "\n\n".join(table for table in tables if table) or NOTHING


def plan_text(path: Path) -> str:
    """What ``deccs plan`` says of a billion rows, had it measured the machine of the longest fit."""
    whole = of_task(good(records.read(path)), "fit", "rows")
    pace = pace_of(whole[-1]) if whole else FIRST_PACE
    rows = table_of(PLANNED, pace, GIGABITS)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"{a:{widths[0]}}  {b:>{widths[1]}}  {c}".rstrip() for a, b, c in rows]
    words = [headline(PLANNED, pace), "", *lines, "", advice(PLANNED, pace, GIGABITS)]
    return "\n".join(["```", "$ deccs plan --rows 1e9 --columns 64 --processes 64", *words, "```"])


def good(made: Iterable[Record]) -> list[Record]:
    """The records of what has succeeded; of one made twice the later."""
    last: dict[tuple[Any, ...], Record] = {}
    for record in made:
        if record["experiment"] == "scale" and record["status"] == "ok":
            names = ("task", "rows", "columns", "batch", "processes", "dataset", "seed")
            last[tuple(record.get(name) for name in names)] = record
    return list(last.values())


def section(
    title: str, heads: Sequence[str], made: Sequence[Record], cells: Callable[[Record], list[str]]
) -> str:
    """A table under its title; nothing without records."""
    return f"{title}\n\n{markdown(heads, [cells(record) for record in made])}" if made else ""


def of_task(made: Sequence[Record], task: str, *by: str) -> list[Record]:
    """The records of a task, in the order of some of their facts."""
    chosen = [record for record in made if record["task"] == task]
    return sorted(chosen, key=lambda record: tuple(record[name] for name in by))


def fits(made: Sequence[Record]) -> str:
    some = of_task(made, "fit", "columns", "rows")
    limits = {record["limit_mb"] for record in some}
    limit = f", stopped at {min(limits):,.0f} MB" if limits and None not in limits else ""
    threads = f", threads: {some[0]['threads']}" if some else ""
    return section(
        f"Whole fits by one process, from the file to the report{threads}{limit}:",
        ["rows", "columns", "file", "read", "learn", "label", "whole fit", "memory", "NMI"],
        some,
        lambda r: [
            f"{r['rows']:,}",
            f"{r['columns']}",
            f"{r['file_mb']:,.0f} MB",
            f"{r['seconds_read']:.0f} s",
            f"{r['seconds_learn']:.0f} s",
            f"{r['seconds_label']:.0f} s",
            f"{r['seconds'] / 60:.1f} min",
            f"{r['peak_mb']:,.0f} MB",
            f"{r['nmi']:.3f}",
        ],
    )


def seeds(made: Sequence[Record]) -> str:
    """NMI of the smallest and the largest table by seed; the whole fits above have seed 0."""
    seeded = of_task(made, "seeds", "rows", "seed")
    sizes = list(dict.fromkeys(record["rows"] for record in seeded))
    first = [
        record for record in of_task(made, "fit", "columns", "rows") if record["rows"] in sizes
    ]
    scores = {
        rows: [record["nmi"] for record in (*first, *seeded) if record["rows"] == rows]
        for rows in sizes
    }
    return section(
        "NMI of such fits with the seeds 0, 1 and 2:",
        ["rows", "NMI by seed", "mean"],
        [{"rows": rows, "nmi": found} for rows, found in scores.items()],
        lambda r: [
            f"{r['rows']:,}",
            " ".join(f"{nmi:.3f}" for nmi in r["nmi"]),
            f"{sum(r['nmi']) / len(r['nmi']):.3f}",
        ],
    )


def labels(made: Sequence[Record]) -> str:
    return "\n".join(
        f"`predict` alone labels {r['rows_per_second']:,} rows a second with {r['threads']} threads, at "
        f"{100 * r['share_of_products']:.0f} % of the rate of matrix products."
        for r in of_task(made, "label")
    )


def faster(made: Sequence[Record], record: Record, *alike: str) -> str:
    """How many times the rows a second of one process, where that was measured."""
    for other in made:
        if other["processes"] == 1 and all(other[name] == record[name] for name in alike):
            return f"{record['rows_per_second'] / other['rows_per_second']:.2f}"
    return ""


def pretraining(made: Sequence[Record]) -> str:
    some = of_task(made, "pretraining", "columns", "batch", "processes")
    return section(
        "Pretraining with one thread for each process:",
        ["columns", "network", "batch", "processes", "rows a second", "times one process"],
        some,
        lambda r: [
            f"{r['columns']}",
            "-".join(map(str, r["layers"])),
            f"{r['batch']}",
            f"{r['processes']}",
            f"{r['rows_per_second']:,}",
            faster(some, r, "columns", "batch"),
        ],
    )


def parts(made: Sequence[Record]) -> str:
    some = of_task(made, "parts", "rows", "processes")
    return section(
        "Labeling a Parquet table, with one thread for each process, after few steps of training:",
        ["rows", "processes", "label", "rows a second", "times one process", "NMI"],
        some,
        lambda r: [
            f"{r['rows']:,}",
            f"{r['processes']}",
            f"{r['seconds_label']:.0f} s",
            f"{r['rows_per_second']:,}",
            faster(some, r, "rows"),
            f"{r['nmi']:.3f}",
        ],
    )


def quality(made: Sequence[Record]) -> str:
    some = of_task(made, "quality", "dataset", "seed", "processes")
    places = list(dict.fromkeys((r["dataset"], r["seed"]) for r in some))

    def cell(place: tuple[str, int], n_processes: int) -> str:
        return ", ".join(
            f"{r['nmi']:.3f} in {r['seconds']:.0f} s"
            for r in some
            if (r["dataset"], r["seed"]) == place and r["processes"] == n_processes
        )

    rows = [
        [name, str(seed), cell((name, seed), 1), cell((name, seed), 2)] for name, seed in places
    ]
    if not rows:
        return ""
    table = markdown(["data set", "seed", "one process", "two processes"], rows)
    return f"Quality (NMI) with one thread for each process:\n\n{table}"


def kills(made: Sequence[Record]) -> str:
    """What became of a fit of which a process was killed, in words."""
    return "\n".join(map(of_kill, of_task(made, "killed")))


def of_kill(record: Record) -> str:
    """One sentence for each of the three questions: when, with which message, and with which bits.

    >>> record = {"seconds_to_end": 5.2, "messages": ["rank 0: Process 1 of 3 has ended."]}
    >>> print(of_kill(record | {"same_bits_by_three": True, "same_bits_by_two": False}).replace(". ", ".\\n"))
    One of three processes was killed (SIGKILL): 5 seconds later all others had ended.
    They said: "Process 1 of 3 has ended." Resumed by three processes, the fit gave the same bits as an undisturbed one.
    Resumed by two, it gave other bits, after a warning.
    """
    words = record["messages"][0].partition(": ")[2] if record["messages"] else ""
    three = "the same" if record["same_bits_by_three"] else "other"
    two = "the same bits" if record["same_bits_by_two"] else "other bits, after a warning"
    return (
        f"One of three processes was killed (SIGKILL): {record['seconds_to_end']:.0f} seconds later all others had "
        f'ended. They said: "{words}" Resumed by three processes, the fit gave {three} bits as an undisturbed one. '
        f"Resumed by two, it gave {two}."
    )
