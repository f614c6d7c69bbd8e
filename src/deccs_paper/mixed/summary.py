"""What gaps and categories cost each way, from records: differences on the same tables and seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean as mean

import numpy as np

from deccs_paper.mixed.methods import FILLED, METHODS, REFERENCE
from deccs_paper.mixed.runs import EXPERIMENT, case_name
from deccs_paper.mixed.variants import (
    CATEGORIES,
    MAIN_SHARE,
    NUMBERS,
    VARIANTS,
    Variant,
)
from deccs_paper.records import Record
from deccs_paper.yardstick.runs import OK, latest

NMI, WHOLE_ROWS = "nmi", "nmi_whole_rows"
AT_MAIN_SHARE = tuple(variant for variant in VARIANTS if variant.share == MAIN_SHARE)

Values = Mapping[tuple[str, str], Mapping[int, float]]  # (method, data set) -> seed -> score
Place = tuple[str, Variant]  # a method and what it is run on
Pair = tuple[Place, Place]  # the first less the second


def counted(made: Iterable[Record]) -> list[Record]:
    """One record per run of this comparison, whatever its status."""
    return [one for one in latest(made, METHODS).values() if one["experiment"] == EXPERIMENT]


def values_of(made: Iterable[Record], score: str = NMI) -> Values:
    """A score of each run that succeeded and has it."""
    values: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for record in counted(made):
        if record["status"] == OK and score in record["scores"]:
            values[record["method"], record["dataset"]][record["seed"]] = record["scores"][score]
    return values


def means(values: Values, place: Place, tables: Sequence[str]) -> dict[str, float]:
    """The mean over seeds, on each table that has one."""
    method, variant = place
    made = {table: values.get((method, case_name(table, variant)), {}) for table in tables}
    return {table: mean(runs.values()) for table, runs in made.items() if runs}


def differences(values: Values, pairs: Iterable[Pair], tables: Sequence[str]) -> dict[str, float]:
    """The first of each pair less the second, on each table: mean over their common seeds, then over pairs.

    >>> few, none = Variant("numbers", 0.2), Variant("numbers")
    >>> runs = {("mean", case_name("zoo", few)): {0: 0.5}, ("mean", "zoo: numbers"): {0: 0.75, 1: 0.9}}
    >>> differences(runs, [(("mean", few), ("mean", none))], ["zoo", "wine"])
    {'zoo': -0.25}
    """
    found: dict[str, list[float]] = defaultdict(list)
    for (one, one_variant), (other, other_variant) in pairs:
        for table in tables:
            first = values.get((one, case_name(table, one_variant)), {})
            second = values.get((other, case_name(table, other_variant)), {})
            if common := first.keys() & second.keys():
                found[table].append(mean(first[seed] - second[seed] for seed in common))
    return {table: round(mean(each), 9) for table, each in found.items()}


def to_complete(method: str, variants: Iterable[Variant]) -> list[Pair]:
    """A method with gaps and, on the same tables without any, the method it is there."""
    reference = METHODS[method].reference
    return [((method, variant), (reference, variant.complete)) for variant in variants]


def ahead_of(method: str, variants: Iterable[Variant]) -> list[Pair]:
    """DECCS and another method on the same variants."""
    return [((REFERENCE, variant), (method, variant)) for variant in variants]


def categories_for_numbers(method: str, kinds: str = CATEGORIES) -> list[Pair]:
    """A method on complete tables with categories instead of numbers."""
    return [((method, Variant(kinds)), (method, Variant(NUMBERS)))]


@dataclass(frozen=True)
class Spread:
    """Differences over tables."""

    n_tables: int
    mean: float
    deviation: float
    worst: float
    worst_table: str


def spread_of(by_table: Mapping[str, float]) -> Spread | None:
    """Mean, deviation and the lowest one with its table; None without any.

    >>> spread_of({"wine": 0.25, "zoo": -0.25})
    Spread(n_tables=2, mean=0.0, deviation=0.25, worst=-0.25, worst_table='zoo')
    """
    if not by_table:
        return None
    values = np.array(list(by_table.values()))
    worst = min(by_table, key=lambda table: by_table[table])
    return Spread(len(values), float(values.mean()), float(values.std()), by_table[worst], worst)


@dataclass(frozen=True)
class Bar:
    """What was asked of DECCS before the first run: a mean difference above a number."""

    words: str
    pairs: Sequence[Pair]
    above: float
    score: str = NMI

    def measured(self, made: Sequence[Record], tables: Sequence[str]) -> Spread | None:
        """On the tables that have all it needs."""
        return spread_of(differences(values_of(made, self.score), self.pairs, tables))


BARS = (
    Bar("20 % missing, less the complete table", to_complete(REFERENCE, AT_MAIN_SHARE), -0.03),
    Bar("20 % missing, ahead of `mean`", ahead_of(FILLED, AT_MAIN_SHARE), 0.0),
    Bar("20 % missing, ahead of `drop`, all rows", ahead_of("drop", AT_MAIN_SHARE), 0.0),
    Bar(
        "20 % missing, ahead of `drop`, rows without gaps",
        ahead_of("drop", AT_MAIN_SHARE),
        0.0,
        WHOLE_ROWS,
    ),
    Bar("20 % missing, ahead of `k-prototypes`", ahead_of("k-prototypes", AT_MAIN_SHARE), 0.0),
    Bar("categories less numbers", categories_for_numbers(REFERENCE), -0.05),
)
