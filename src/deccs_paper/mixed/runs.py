"""Runs: one method on one variant of a table with one seed, and its record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from deccs import scores
from deccs_paper.mixed.methods import METHODS, TableTask, Way
from deccs_paper.mixed.sets import KnownTable
from deccs_paper.mixed.variants import VARIANTS, Variant
from deccs_paper.records import Record
from deccs_paper.yardstick.runs import PoolRun, missing

EXPERIMENT = "mixed tables"
BETWEEN = ": "  # the name of a table and that of its variant


@dataclass(frozen=True)
class Case:
    """A variant of a table, as a data set of the yardstick."""

    table: KnownTable
    variant: Variant

    @property
    def name(self) -> str:
        return case_name(self.table.name, self.variant)

    @property
    def sha256(self) -> str:
        return self.table.sha256

    @property
    def n(self) -> int:
        return len(self.table.X)

    @property
    def d(self) -> int:
        return self.table.X.shape[1]

    @property
    def k(self) -> int:
        return self.table.k

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers that the variant is made from, and the classes."""
        return self.table.X, self.table.y


def case_name(table: str, variant: Variant) -> str:
    """The data set of a record.

    >>> case_name("zoo", Variant("mixed", 0.4, "at random"))
    'zoo: mixed, 40 % missing at random'
    """
    return f"{table}{BETWEEN}{variant.name}"


def table_of(case: str) -> str:
    """The table of a data set of a record.

    >>> table_of("zoo: mixed, 40 % missing at random")
    'zoo'
    """
    return case.split(BETWEEN)[0]


@dataclass(frozen=True)
class MixedRun(PoolRun):
    """A method on a variant of a table with one seed."""

    registry: ClassVar[Mapping[str, Way]] = METHODS
    experiment: str = EXPERIMENT

    def task(self, X: np.ndarray) -> TableTask:
        assert isinstance(self.file, Case)
        return TableTask(self.file.variant.frame(X, self.seed), self.file.k, self.seed)

    def outcome(self, result: Any, y: np.ndarray, order: np.ndarray) -> Record:
        """Scores, also on the rows without a gap alone, and how much is missing."""
        gaps = self.task(self.file.arrays()[0][order]).frame.isna().to_numpy()  # (n, d)
        record = super().outcome(result, y, order)
        whole = ~gaps.any(axis=1)
        if whole.any():
            nmi = scores.nmi(y[order][whole], result.labels[whole])
            record["scores"]["nmi_whole_rows"] = round(nmi, 6)
        return record | {
            "missing_share": round(float(gaps.mean()), 4),
            "empty_rows": int(gaps.all(axis=1).sum()),
            "empty_columns": int(gaps.all(axis=0).sum()),
        }


def waiting(
    tables: Sequence[KnownTable],
    methods: Sequence[str],
    n_seeds: int,
    known: Iterable[Record],
    *,
    again: bool = False,
) -> list[PoolRun]:
    """The runs without a record, those of the first seed first."""
    known = list(known)
    found: list[PoolRun] = []
    for variant in VARIANTS:
        cases = [Case(table, variant) for table in tables]
        for name in methods:
            found += missing(
                cases,
                [name],
                METHODS[name].n_seeds(variant, n_seeds),
                known,
                again=again,
                experiment=EXPERIMENT,
                kind=MixedRun,
            )
    return sorted(found, key=lambda run: run.seed)
