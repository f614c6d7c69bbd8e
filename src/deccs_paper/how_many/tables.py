"""The comparison of rules as tables: for the terminal, and as Markdown for a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Group

from deccs_paper import records
from deccs_paper.blocks import Block
from deccs_paper.how_many import no_clusters
from deccs_paper.how_many.learning import left_out
from deccs_paper.how_many.measures import among_first
from deccs_paper.how_many.rules import DECCS, FIT, RULES
from deccs_paper.how_many.runs import EXPERIMENT
from deccs_paper.records import Record
from deccs_paper.settings import PAPER
from deccs_paper.table import markdown
from deccs_paper.yardstick.runs import OK, latest
from deccs_paper.yardstick.summary import (
    REFERENCE,
    column,
    mean_of,
    mean_over_seeds,
    nearly_complete,
    resamples,
)
from deccs_paper.yardstick.tables import gaps, number, rich_table

PAGE = Block("how many", "deccs how-many ../shared/pool --page docs/how-many.md")
AT_TRUTH = ("pool.jsonl", "paper-sets.jsonl")  # beside the records: fits that were told the truth
MEASURES: dict[str, tuple[str, Callable[[Record], float]]] = {  # head, and value of a record
    "truth": ("the truth", lambda record: record["is_truth"]),
    "within 1": ("within 1", lambda record: record["is_within_1"]),
    "right": ("right", lambda record: record["is_right"]),
    "near": ("within 2 or 20 %", lambda record: record["is_near"]),
    "truth in 3": ("truth among first 3", lambda record: among_first(record["rank_truth"])),
    "right in 3": ("right one among first 3", lambda record: among_first(record["rank_right"])),
    "octaves": ("mean abs(log2(k / truth))", lambda record: record["octaves"]),
    "cpu_seconds": ("CPU seconds", lambda record: record["cpu_seconds"]),
}
ON_POOL = "wrongly, on the pool"
FORMATS = {"octaves": ".2f", "cpu_seconds": ".1f"}


@dataclass(frozen=True)
class Section:
    """A table under its title."""

    title: str
    heads: list[str]
    rows: list[list[str]]

    @property
    def text(self) -> str:
        return f"**{self.title}**\n\n{markdown(self.heads, self.rows)}"


def succeeded(made: Iterable[Record], experiment: str) -> list[Record]:
    """The records that count, one per run."""
    return [
        record
        for record in latest(made, RULES).values()
        if record["experiment"] == experiment and record["status"] == OK
    ]


# One row per rule


def by_rule(title: str, made: Sequence[Record]) -> list[Section]:
    """Shares of the data sets, means over seeds first; none without records.

    Rules with results on nine in ten data sets are compared on those that all of them have.
    """
    runs: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for record in made:
        if record["method"] != FIT:
            values = {name: float(value(record)) for name, (_, value) in MEASURES.items()}
            runs[record["method"], record["dataset"]].append(values)
    means = mean_over_seeds(runs)
    datasets = {dataset for _, dataset in runs}
    rules = nearly_complete(means, datasets)
    common = sorted(name for name in datasets if all(name in means[rule] for rule in rules))
    if not common or not rules:
        return []
    columns = {
        rule: {name: column(means[rule], common, name) for name in MEASURES} for rule in rules
    }
    best = sorted(rules, key=lambda rule: -columns[rule]["right"].mean())
    rows = [[rule, *rule_cells(columns[rule])] for rule in best]
    heads = ["rule", *(head for head, _ in MEASURES.values())]
    words = f"{len(common)} of {len(datasets)} data sets, {seeds_of(made)}"
    return [Section(f"{title}: {words}", heads, rows)]


def seeds_of(made: Iterable[Record]) -> str:
    """How many seeds there are; not every rule need have all of them.

    >>> seeds_of([{"seed": 0}, {"seed": 1}, {"seed": 0}]), seeds_of([{"seed": 0}])
    ('2 seeds', '1 seed')
    """
    n_seeds = len({record["seed"] for record in made})
    return f"{n_seeds} seed{'s' if n_seeds > 1 else ''}"


def rule_cells(values: Mapping[str, np.ndarray]) -> list[str]:
    """Means over data sets; the main measure with its interval."""
    cells = []
    for name, by_dataset in values.items():
        if name == "right":
            cells.append(number(mean_of(by_dataset, resamples(len(by_dataset))), ".2f"))
        else:
            cells.append(format(by_dataset.mean(), FORMATS.get(name, ".2f")))
    return cells


# One row per data set


def by_dataset(made: Sequence[Record]) -> list[Section]:
    """What each rule answered with each seed; ours with its next two candidates."""
    runs: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in sorted(made, key=lambda record: record["seed"]):
        runs[record["dataset"], record["method"]].append(record)
    truths = {record["dataset"]: record["k"] for record in made}
    present = {record["method"] for record in made}
    others = [rule for rule in RULES if rule in present - {DECCS, FIT}]
    rows = [
        [
            name,
            str(truths[name]),
            answers(runs[name, DECCS]),
            next_two(runs[name, DECCS]),
            *(answers(runs[name, rule]) for rule in others),
        ]
        for name in sorted(truths)
    ]
    heads = ["data set", "truth", DECCS, f"next of {DECCS}, seed 0", *others]
    return [Section("By data set", heads, rows)] if rows else []


def answers(made: Sequence[Record]) -> str:
    """The numbers chosen, in the order of seeds, equal ones once; bold if all are right.

    >>> right = {"chosen": 3, "is_right": True}
    >>> answers([right, right]), answers([right, {"chosen": 9, "is_right": False}]), answers([])
    ('**3**', '3/9', '')
    """
    text = "/".join(str(k) for k in dict.fromkeys(record["chosen"] for record in made))
    return f"**{text}**" if made and all(record["is_right"] for record in made) else text


def next_two(made: Sequence[Record]) -> str:
    """The second and third candidate of the first run.

    >>> next_two([{"candidates": [4, 2, 7, 9]}]), next_two([])
    ('2, 7', '')
    """
    return ", ".join(str(k) for record in made[:1] for k in record["candidates"][1:3])


# Fits that choose k, beside those that are told


def fits(made: Iterable[Record], told: Iterable[Record]) -> list[Section]:
    """NMI and seconds at the chosen and at the true k, on the seeds that both have."""
    known: dict[tuple[str, str], dict[int, Record]] = defaultdict(dict)
    for record in latest(told).values():
        if record["method"] == REFERENCE and record["status"] == OK:
            known[record["dataset"], record["sha256"]][record["seed"]] = record
    pairs: dict[str, list[tuple[Record, Record]]] = defaultdict(list)
    for record in made:
        at_truth = known[record["dataset"], record["sha256"]]
        if record["method"] == FIT and record["seed"] in at_truth:
            pairs[record["dataset"]].append((record, at_truth[record["seed"]]))
    if not pairs:
        return []
    names = sorted(pairs)
    means = np.array(
        [np.mean([of_pair(*pair) for pair in pairs[name]], axis=0) for name in names]
    )  # (n_datasets, 4)
    draws = resamples(len(names))
    chosen, true, cost, cost_true = (number(mean_of(part, draws), ".3f") for part in means.T)
    less = number(mean_of(means[:, 0] - means[:, 1], draws), "+.3f")
    ratio = f"{means[:, 2].sum() / means[:, 3].sum():.2f}"
    mean_row = ["**mean**", "", "", chosen, true, less, cost, cost_true, ratio]
    rows = [
        [
            name,
            str(pairs[name][0][0]["k"]),
            answers([ours for ours, _ in pairs[name]]),
            f"{one[0]:.3f}",
            f"{one[1]:.3f}",
            f"{one[0] - one[1]:+.3f}",
            f"{one[2]:.1f}",
            f"{one[3]:.1f}",
            f"{one[2] / one[3]:.2f}",
        ]
        for name, one in zip(names, means, strict=True)
    ]
    heads = ["data set", "truth", "k", "NMI at k", "NMI at the truth", "difference"]
    heads += ["CPU seconds", "at the truth", "ratio"]
    title = f"NMI at the chosen and at the true k: {len(names)} data sets"
    return [Section(title, heads, [mean_row, *rows])]


def of_pair(ours: Record, told: Record) -> tuple[float, float, float, float]:
    """NMI and seconds of a fit that chose k, and of one that was told."""
    return (
        ours["scores"]["nmi"],
        told["scores"]["nmi"],
        ours["cpu_seconds"],
        told["cpu_seconds"],
    )


# Data without clusters


def without_clusters(made: Iterable[Record], with_clusters: Iterable[Record]) -> list[Section]:
    """The share of draws on which a rule answers 1, by kind, columns and rows.

    The last column is the share of runs on data ``with_clusters`` that end with the same answer,
    which is wrong there: a rule that always says 1 would be perfect in all others.
    """
    runs: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in made:
        for group in groups_of(record):
            runs[record["method"], group].append(record)
    for record in with_clusters:
        runs[record["method"], ON_POOL].append(record)
    groups = [
        "all",
        *no_clusters.KINDS,
        *(f"{d} columns" for d in no_clusters.COLUMNS),
        *(f"{n:,} rows" for n in no_clusters.ROWS),
        ON_POOL,
    ]
    rows = [
        [rule, *(share_of_ones(runs[rule, group]) for group in groups)]
        for rule in RULES
        if (rule, "all") in runs
    ]
    title = "Data without clusters: share of draws on which the answer is 1"
    return [Section(title, ["rule", *groups], rows)] if rows else []


def groups_of(record: Record) -> tuple[str, ...]:
    """What a draw is counted under.

    >>> groups_of({"dataset": "one Gaussian, 1000 x 2, draw 0", "n": 1_000, "d": 2})
    ('all', 'one Gaussian', '2 columns', '1,000 rows')
    """
    kind = no_clusters.kind_of(record["dataset"])
    return "all", kind, f"{record['d']} columns", f"{record['n']:,} rows"


def share_of_ones(made: Iterable[Record]) -> str:
    """How many of the draws have one cluster.

    >>> share_of_ones([{"chosen": 1}, {"chosen": 2}]), share_of_ones([])
    ('0.50', '')
    """
    ones = [record["chosen"] == 1 for record in made]
    return f"{np.mean(ones):.2f}" if ones else ""


# All of them


def sections(path: Path, *, wide: bool) -> list[Section]:
    """All tables of a file of records; ``wide`` with that of every data set."""
    known = list(records.read(path))
    made = succeeded(known, EXPERIMENT)
    told = [record for name in AT_TRUTH for record in records.read(path.with_name(name))]
    of_paper = [record for record in made if record["dataset"] in PAPER]
    of_pool = [record for record in made if record["dataset"] not in PAPER]
    return [
        *by_rule("The pool", [*of_pool, *left_out(of_pool)]),
        *by_rule("The paper's data sets", of_paper),
        *without_clusters(succeeded(known, no_clusters.EXPERIMENT), of_pool),
        *fits(made, told),
        *(by_dataset(made) if wide else []),
    ]


def page_text(path: Path) -> str:
    """All tables as Markdown, and what did not succeed."""
    parts = [section.text for section in sections(path, wide=True)]
    return "\n\n".join([*parts, *gaps(list(records.read(path)), RULES)]) or "No records yet."


def terminal_tables(path: Path) -> Group:
    """The tables but that of every data set, for a terminal."""
    tables = [rich_table(one.title, one.heads, one.rows) for one in sections(path, wide=False)]
    return Group(*tables, *gaps(list(records.read(path)), RULES))
