"""What the records say about a cell of a table: numbers, how many runs, how they compare with the paper's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import ttest_ind_from_stats

from deccs.datasets.sources import SOURCES
from deccs_paper.experiments import DECCS_ROW, Cell, Experiment, Row, cells
from deccs_paper.grid import Expected, counts, duration
from deccs_paper.records import Record
from deccs_paper.settings import PAPER_TABLES

BETTER, EQUAL, WORSE = "better", "equal", "worse"
N_ROUNDS = 10  # T


@dataclass(frozen=True)
class Result:
    """A cell: our runs beside the paper's figure."""

    values: tuple[float, ...]  # of the runs that ended well; no other is averaged
    n_failed: int
    n_pending: int
    printed: tuple[float, ...] = ()  # mean and deviation, the mean alone, or nothing
    part: str = ""  # what is to be said where the data is only a part of the paper's
    outdated: bool = False  # made before the last change of the method
    reason: str = ""  # why there are no runs at all
    seconds: float | None = None  # that a run is expected to take

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        return float(np.std(self.values))

    @property
    def mark(self) -> str:
        """Better or worse than the paper's, or equal within one deviation (the larger of both; two digits anyway).

        >>> Result((0.8, 0.9), 0, 0, (0.82, 0.01)).mark, Result((0.84,), 0, 0, (0.82, 0.01)).mark
        ('equal', 'better')
        """
        if self.part or not (self.values and self.printed):
            return ""
        difference = round(self.mean - self.printed[0], 9)
        if abs(difference) <= max(self.deviation, *self.printed[1:], 0.005):
            return EQUAL
        return BETTER if difference > 0 else WORSE

    @property
    def number(self) -> str:
        """Mean and deviation; without a run the reason."""
        if self.values:
            return f"{self.mean:.3f}" + (f" ± {self.deviation:.3f}" if len(self.values) > 1 else "")
        return self.reason or ("failed" if self.n_failed else "pending")

    @property
    def runs(self) -> str:
        """How many, how many of them ended well, how many are to come and how long each takes.

        >>> Result((0.5, 0.6), 1, 2, seconds=90.0).runs
        '2 ok of 3, 2 pending (1.5 min each)'
        """
        if self.reason:
            return ""
        words = []
        if self.n_failed:
            words.append(f"{len(self.values)} ok of {len(self.values) + self.n_failed}")
        elif self.values:
            words.append(f"n {len(self.values)}")
        if self.n_pending:
            time = "time not known" if self.seconds is None else f"{duration(self.seconds)} each"
            plural = "" if self.n_pending == 1 else "s"
            words.append(
                f"{self.n_pending} pending ({time})"
                if words
                else f"{self.n_pending} run{plural}, {time}"
            )
        return ", ".join(words)

    @property
    def paper(self) -> str:
        return " ± ".join(f"{value:.2f}" for value in self.printed)


class Results:
    """Records by place. All of a data set have as many points as its newest: a part is another data set."""

    def __init__(self, there: Iterable[Record]) -> None:
        ended = [record for record in there if record["status"] in ("ok", "failed")]
        ended.sort(
            key=lambda record: record.get("started", "")
        )  # files come in the order of their names
        self.points = {record["dataset"]: record["n"] for record in ended if "n" in record}
        self.records = [
            record
            for record in ended
            if record.get("n") in (None, self.points.get(record["dataset"]))
        ]
        self.expected = Expected(self.records)
        grouped: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
        for record in self.records:
            grouped[record["experiment"], record["method"], record["dataset"]].append(record)
        self.places = {place: newest(found) for place, found in grouped.items()}

    @property
    def failed(self) -> list[Record]:
        """Runs that failed and have not been made good since."""
        return [
            record
            for found in self.places.values()
            for record in found
            if record["status"] == "failed"
        ]

    def part(self, dataset: str) -> str:
        """What must be said of a data set that is only a part of the paper's."""
        n = self.points.get(dataset)
        if dataset not in SOURCES or n is None or n >= SOURCES[dataset].n:
            return ""
        return (
            f"{dataset.upper()} here is {n:,} of its {SOURCES[dataset].n:,} points: not comparable with the "
            "paper's figure."
        )

    def at(self, cell: Cell) -> list[Record]:
        """The runs of a cell that have ended."""
        return self.places.get((cell.experiment, cell.row.method, cell.dataset), [])

    def ok(self, row: Row, dataset: str) -> list[Record]:
        return [record for record in self.at(Cell(row, dataset, 0)) if record["status"] == "ok"]

    def scores(self, row: Row, dataset: str, score: str = "nmi") -> list[float]:
        return [record["scores"][score] for record in self.ok(row, dataset)]

    def result(self, cell: Cell, score: str, printed: Iterable[float]) -> Result:
        found = self.at(cell)
        values = tuple(record["scores"][score] for record in found if record["status"] == "ok")
        current = {record["repetition"] for record in found if counts(record)}
        n_pending = 0 if cell.reason else sum(run.repetition not in current for run in cell.runs())
        next_run = next(cell.runs(), None)
        return Result(
            values,
            len(found) - len(values),
            n_pending,
            tuple(printed),
            self.part(cell.dataset),
            any(not counts(record) for record in found),
            "" if found else cell.reason,
            None if next_run is None else self.expected.of(next_run.method, cell.dataset),
        )

    def table(
        self, name: str, experiment: Experiment, n_seeds: int | None = None
    ) -> dict[tuple[str, str], Result]:
        """(row, data set) -> result, with the paper's figures of that table."""
        paper: Mapping[str, Mapping[str, list[float]]] = PAPER_TABLES.get(name, {})
        return {
            (cell.row.label, cell.dataset): self.result(
                cell, experiment.score, paper.get(cell.row.label, {}).get(cell.dataset, ())
            )
            for cell in cells(experiment, n_seeds)
        }


def newest(found: list[Record]) -> list[Record]:
    """One record of each repetition, the last that ended well: of runs that count, else of the newest recipe."""
    recipe = max((record.get("recipe", 0) for record in found), default=0)
    current = [record for record in found if counts(record)]
    pool = current or [record for record in found if record.get("recipe", 0) == recipe]
    best_last = sorted(
        pool, key=lambda record: (record["status"] == "ok", record.get("started", ""))
    )
    last = {record["repetition"]: record for record in best_last}
    return [last[repetition] for repetition in sorted(last)]


def held(values: Sequence[float]) -> list[float]:
    """A run that ended early stays where it was: its members agreed fully, and nothing would have changed.

    >>> held([0.5, 1.0])[:4]
    [0.5, 1.0, 1.0, 1.0]
    """
    return [*values, *[values[-1]] * (N_ROUNDS + 1 - len(values))][: N_ROUNDS + 1]


def agreement_over_rounds(record: Record) -> list[float]:
    return held([float(this["agreement"]) for this in record["rounds"]])


def nmi_over_rounds(record: Record) -> list[float]:
    """NMI of the member whose classifier gives the labels (k-means, as a rule) on each round's sample."""

    def of(members: Mapping[str, Mapping[str, float]]) -> float:
        source = record.get("label_source")
        return float(members.get(source or "", next(iter(members.values())))["nmi"])

    return held([of(this["members"]) for this in record["rounds"]])


def chosen_by_truth(there: Iterable[Record]) -> list[str]:
    """The best of the settings tried in ``rp-oracle`` by mean NMI, which no user could know: as the paper chose."""
    tried: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in there:
        if record["experiment"] == "rp-oracle" and record["status"] == "ok":
            settings = record["settings"]
            given = ", ".join(
                f"{name}={settings[name]}"
                for name in ("n_components", "n_projections", "version")
                if name in settings
            )
            tried[record["method"], record["dataset"]][given].append(record["scores"]["nmi"])
    best = {
        place: max(found.items(), key=lambda item: np.mean(item[1]))
        for place, found in tried.items()
    }
    return [
        f"{method} on {dataset.upper()} {np.mean(values):.2f} ({given}, n {len(values)})"
        for (method, dataset), (given, values) in best.items()
    ]


@dataclass(frozen=True)
class Comparison:
    """DECCS and the best of the others on a data set; ``p`` of Welch's t-test, two-sided."""

    dataset: str
    ours: tuple[float, ...]
    rival: str
    theirs: tuple[float, ...]
    p: float | None

    def __str__(self) -> str:
        gap = float(np.mean(self.ours) - np.mean(self.theirs))
        test = (
            f"p = {self.p:.2g}"
            if self.p is not None
            else "no test: it needs two runs of both that differ"
        )
        return (
            f"{self.dataset.upper()}: DECCS {np.mean(self.ours):.3f} (n {len(self.ours)}), {self.rival} "
            f"{np.mean(self.theirs):.3f} (n {len(self.theirs)}), difference {gap:+.3f}, {test}"
        )


def welch(ours: tuple[float, ...], theirs: tuple[float, ...]) -> float | None:
    """
    >>> round(welch((0.8, 0.9), (0.5, 0.6)), 3), welch((0.8,), (0.5, 0.6))
    (0.051, None)
    """
    if min(len(ours), len(theirs)) < 2 or np.std(ours) + np.std(theirs) < 1e-9:
        return None
    return float(
        ttest_ind_from_stats(
            np.mean(ours),
            np.std(ours, ddof=1),
            len(ours),
            np.mean(theirs),
            np.std(theirs, ddof=1),
            len(theirs),
            equal_var=False,
        ).pvalue
    )


def comparisons(
    experiment: Experiment, table: Mapping[tuple[str, str], Result]
) -> list[Comparison]:
    """DECCS against the runner-up, or against the best where it is not the best itself."""
    found = []
    for dataset in experiment.datasets:
        ours = table.get((DECCS_ROW.label, dataset))
        others = {
            row.label: table[row.label, dataset]
            for row in experiment.rows
            if row.method != DECCS_ROW.method and table[row.label, dataset].values
        }
        if ours is None or not ours.values or not others:
            continue
        rival = max(others, key=lambda label: others[label].mean)
        theirs = others[rival].values
        found.append(Comparison(dataset, ours.values, rival, theirs, welch(ours.values, theirs)))
    return found
