"""The cells of the tables: numbers, how many runs, and how they compare with the paper's."""

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
    """A cell: our runs and the paper's number."""

    values: tuple[float, ...]  # of the runs that succeeded; no other is averaged
    n_failed: int
    n_pending: int
    printed: tuple[float, ...] = ()  # the paper's mean and deviation, its mean alone, or nothing
    part: str = ""  # a note where the data is only a part of the paper's
    outdated: bool = False  # run before the last change of the method
    reason: str = ""  # why there are no runs at all
    seconds: float | None = None  # expected for one run

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float:
        return float(np.std(self.values))

    @property
    def mark(self) -> str:
        """Better or worse than the paper's, or equal within one deviation (the larger one, at least 0.005).

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
        """How many, how many of them succeeded, how many are pending and how long each takes.

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
            if words:
                words.append(f"{self.n_pending} pending ({time})")
            else:
                words.append(f"{self.n_pending} run{'' if self.n_pending == 1 else 's'}, {time}")
        return ", ".join(words)

    @property
    def paper(self) -> str:
        return " ± ".join(f"{value:.2f}" for value in self.printed)


class Results:
    """Records by place. Only those count that have as many points as the newest run on their data set."""

    def __init__(self, known: Iterable[Record]) -> None:
        ended = [record for record in known if record["status"] in ("ok", "failed")]
        # By time: files are read in the order of their names.
        ended.sort(key=lambda record: record.get("started", ""))
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
        self.places = {place: newest(made) for place, made in grouped.items()}

    @property
    def failed(self) -> list[Record]:
        """Runs that failed and have not succeeded since."""
        return [
            record
            for made in self.places.values()
            for record in made
            if record["status"] == "failed"
        ]

    def part(self, dataset: str) -> str:
        """A note on a data set that is only a part of the paper's."""
        n = self.points.get(dataset)
        if dataset not in SOURCES or n is None or n >= SOURCES[dataset].n:
            return ""
        return (
            f"{dataset.upper()} here is {n:,} of its {SOURCES[dataset].n:,} points: not comparable with the "
            "paper's number."
        )

    def at(self, cell: Cell) -> list[Record]:
        """The runs of a cell that have ended."""
        return self.places.get((cell.experiment, cell.row.method, cell.dataset), [])

    def ok(self, row: Row, dataset: str) -> list[Record]:
        return [record for record in self.at(Cell(row, dataset, 0)) if record["status"] == "ok"]

    def scores(self, row: Row, dataset: str, score: str = "nmi") -> list[float]:
        return [record["scores"][score] for record in self.ok(row, dataset)]

    def result(self, cell: Cell, score: str, printed: Iterable[float]) -> Result:
        made = self.at(cell)
        values = tuple(record["scores"][score] for record in made if record["status"] == "ok")
        current = {record["repetition"] for record in made if counts(record)}
        n_pending = 0 if cell.reason else sum(run.repetition not in current for run in cell.runs())
        next_run = next(cell.runs(), None)
        return Result(
            values,
            len(made) - len(values),
            n_pending,
            tuple(printed),
            self.part(cell.dataset),
            any(not counts(record) for record in made),
            "" if made else cell.reason,
            None if next_run is None else self.expected.of(next_run.method, cell.dataset),
        )

    def table(
        self, name: str, experiment: Experiment, n_seeds: int | None = None
    ) -> dict[tuple[str, str], Result]:
        """(row, data set) -> result, with the paper's numbers of that table."""
        paper: Mapping[str, Mapping[str, list[float]]] = PAPER_TABLES.get(name, {})
        return {
            (cell.row.label, cell.dataset): self.result(
                cell, experiment.score, paper.get(cell.row.label, {}).get(cell.dataset, ())
            )
            for cell in cells(experiment, n_seeds)
        }


def newest(made: list[Record]) -> list[Record]:
    """One record of each repetition, the last that succeeded: of runs that count, else of the newest recipe."""
    recipe = max((record.get("recipe", 0) for record in made), default=0)
    current = [record for record in made if counts(record)]
    pool = current or [record for record in made if record.get("recipe", 0) == recipe]
    best_last = sorted(
        pool, key=lambda record: (record["status"] == "ok", record.get("started", ""))
    )
    last = {record["repetition"]: record for record in best_last}
    return [last[repetition] for repetition in sorted(last)]


def held(values: Sequence[float]) -> list[float]:
    """A curve of all rounds; a run that ended early keeps its last value, as its members agreed fully.

    >>> held([0.5, 1.0])[:4]
    [0.5, 1.0, 1.0, 1.0]
    """
    return [*values, *[values[-1]] * (N_ROUNDS + 1 - len(values))][: N_ROUNDS + 1]


def agreement_over_rounds(record: Record) -> list[float]:
    return held([float(round_["agreement"]) for round_ in record["rounds"]])


def nmi_over_rounds(record: Record) -> list[float]:
    """NMI of the member whose classifier gives the labels (usually k-means) on each round's sample."""

    def of(members: Mapping[str, Mapping[str, float]]) -> float:
        source = record.get("label_source")
        return float(members.get(source or "", next(iter(members.values())))["nmi"])

    return held([of(round_["members"]) for round_ in record["rounds"]])


def chosen_by_truth(known: Iterable[Record]) -> list[str]:
    """The best settings tried in ``rp-oracle`` by mean NMI, which no user could know: as the paper chose."""
    tried: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in known:
        if record["experiment"] == "rp-oracle" and record["status"] == "ok":
            settings = record["settings"]
            given = ", ".join(
                f"{name}={settings[name]}"
                for name in ("n_components", "n_projections", "version")
                if name in settings
            )
            tried[record["method"], record["dataset"]][given].append(record["scores"]["nmi"])
    best = {
        place: max(by_settings.items(), key=lambda item: np.mean(item[1]))
        for place, by_settings in tried.items()
    }
    return [
        f"{method} on {dataset.upper()} {np.mean(values):.2f} ({given}, n {len(values)})"
        for (method, dataset), (given, values) in best.items()
    ]


@dataclass(frozen=True)
class Comparison:
    """DECCS and the best other method on a data set; ``p`` of Welch's t-test, two-sided."""

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
            else "no test: it needs two different runs of both"
        )
        return (
            f"{self.dataset.upper()}: DECCS {np.mean(self.ours):.3f} (n {len(self.ours)}), {self.rival} "
            f"{np.mean(self.theirs):.3f} (n {len(self.theirs)}), difference {gap:+.3f}, {test}"
        )


def welch(ours: tuple[float, ...], theirs: tuple[float, ...]) -> float | None:
    """The p-value of Welch's t-test; None if it cannot be had.

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
    """DECCS against the runner-up, or against the best where DECCS is not the best."""
    made = []
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
        made.append(Comparison(dataset, ours.values, rival, theirs, welch(ours.values, theirs)))
    return made
