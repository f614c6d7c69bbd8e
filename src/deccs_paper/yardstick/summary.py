"""Methods compared over data sets: means, ranks, wins and losses, each with its uncertainty."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from deccs_paper.records import Record
from deccs_paper.yardstick.runs import OK, latest

REFERENCE = "DECCS"
TIE = 0.005  # of NMI: closer results are a tie
N_RESAMPLES, SEED, INTERVAL = 2_000, 0, (2.5, 97.5)
SHAPE_COLUMNS = 3  # data sets with at most as many columns are drawn shapes
SHOWN_SHARE = 0.9  # of the data sets a method must have to be compared on all
FEWEST = 5  # data sets of a comparison of every method; intervals over fewer mean nothing
MEANS = ("nmi", "ami", "ari", "nmi_surest")  # scores
CHOICE = ("regret", "best_candidate", "consensus_nmi")  # scores of a method with candidates

Values = dict[str, dict[str, dict[str, float]]]  # method -> data set -> quantity -> value


@dataclass(frozen=True)
class Estimate:
    """A number with its bootstrap interval over data sets."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Against:
    """Data sets on which a method is better than the reference, worse, or as good."""

    wins: int
    losses: int
    ties: int
    net: Estimate  # wins less losses


@dataclass(frozen=True)
class Row:
    """A method of a comparison. What it does not have on all data sets is None."""

    method: str
    quantities: dict[str, Estimate | None]  # nmi, ami, ari, rank, cpu_seconds, nmi_surest
    against: Against | None  # the reference; None for itself or if it is not compared


@dataclass(frozen=True)
class Comparison:
    """Methods on the data sets all of them have, best mean NMI first."""

    datasets: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Choice:
    """How well the reference chose among its candidates. What no data set has is None."""

    n_datasets: int  # with a regret
    regret: Estimate | None  # mean
    n_compared: int  # with the NMI of the consensus of the views
    below: Estimate | None  # share of data sets worse than that consensus by more than a tie
    largest_loss: tuple[float, str] | None  # against that consensus, and its data set


def values_of(records: Iterable[Record]) -> Values:
    """The mean over seeds of each quantity; failed runs do not count."""
    runs: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for record in latest(records).values():
        if record["status"] == OK:
            scores = record["scores"]
            run = {name: scores[name] for name in (*MEANS, *CHOICE) if name in scores}
            run["cpu_seconds"] = record["cpu_seconds"]
            runs[record["method"], record["dataset"]].append(run)
    return mean_over_seeds(runs)


def mean_over_seeds(runs: Mapping[tuple[str, str], Sequence[Mapping[str, float]]]) -> Values:
    """The mean of each quantity that all runs of a method on a data set have.

    >>> mean_over_seeds({("ward", "zoo"): [{"nmi": 0.5}, {"nmi": 1.0, "ari": 0.5}]})
    {'ward': {'zoo': {'nmi': 0.75}}}
    """
    values: Values = defaultdict(dict)
    for (method, dataset), made in runs.items():
        names = set.intersection(*(set(run) for run in made))
        values[method][dataset] = {
            name: float(np.mean([run[name] for run in made])) for name in sorted(names)
        }
    return dict(values)


def shapes_and_tables(records: Iterable[Record]) -> dict[str, set[str]]:
    """The data sets of each kind, by their number of columns."""
    kinds: dict[str, set[str]] = {"tables": set(), "shapes": set()}
    for record in records:
        kinds["shapes" if record["d"] <= SHAPE_COLUMNS else "tables"].add(record["dataset"])
    return kinds


def nearly_complete(values: Values, datasets: set[str]) -> list[str]:
    """The methods with results on nearly all of the data sets."""
    least = SHOWN_SHARE * len(datasets)
    return [method for method, results in values.items() if len(datasets & results.keys()) >= least]


def with_enough(values: Values, datasets: set[str]) -> list[str]:
    """The methods with results on enough of the data sets for a comparison of every method."""
    least = min(FEWEST, len(datasets))
    return [method for method, results in values.items() if len(datasets & results.keys()) >= least]


def compare(values: Values, methods: Sequence[str], datasets: Iterable[str]) -> Comparison:
    """Methods on those of the data sets that all of them have."""
    common = sorted(
        name for name in datasets if all(name in values.get(method, {}) for method in methods)
    )
    if not common or not methods:
        return Comparison((), ())
    draws = resamples(len(common))
    nmi = {method: column(values[method], common, "nmi") for method in methods}
    rank = ranks(nmi)
    rows = []
    for method in methods:
        quantities = {
            name: mean_of(column(values[method], common, name), draws)
            for name in (*MEANS, "cpu_seconds")
        }
        quantities["rank"] = mean_of(rank[method], draws)
        compared = REFERENCE in nmi and method != REFERENCE
        against = wins_and_losses(nmi[method], nmi[REFERENCE], draws) if compared else None
        rows.append(Row(method, quantities, against))
    best = sorted(rows, key=lambda row: -nmi[row.method].mean())
    return Comparison(tuple(common), tuple(best))


def column(
    results: Mapping[str, Mapping[str, float]], datasets: Sequence[str], name: str
) -> np.ndarray:
    """A quantity on each data set, NaN where the method does not have it: (n_datasets,)."""
    return np.array([results[dataset].get(name, np.nan) for dataset in datasets])


def ranks(nmi: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The place of each method on each data set, 1 for the best; ties share the mean of their places.

    >>> ranks({"a": np.array([0.9]), "b": np.array([0.5]), "c": np.array([0.9])})
    {'a': array([1.5]), 'b': array([3.]), 'c': array([1.5])}
    """
    table = np.stack(list(nmi.values()))  # (n_methods, n_datasets)
    places = rankdata(-np.round(table, 6), method="average", axis=0)
    return dict(zip(nmi, places, strict=True))


def resamples(n_datasets: int) -> np.ndarray:
    """Data sets drawn with replacement: (n_resamples, n_datasets) places."""
    rng = np.random.default_rng(SEED)
    return rng.integers(n_datasets, size=(N_RESAMPLES, n_datasets))


def mean_of(values: np.ndarray, draws: np.ndarray) -> Estimate | None:
    """The mean over data sets and its bootstrap interval; None if it is not known on all of them."""
    if np.isnan(values).any():
        return None
    low, high = np.percentile(values[draws].mean(axis=1), INTERVAL)
    return Estimate(float(values.mean()), float(low), float(high))


def wins_and_losses(nmi: np.ndarray, reference: np.ndarray, draws: np.ndarray) -> Against:
    """How often a method is better than the reference by more than a tie.

    >>> wins_and_losses(np.array([0.9, 0.5, 0.503]), np.array([0.8, 0.6, 0.5]), np.array([[0, 0, 1]]))
    Against(wins=1, losses=1, ties=1, net=Estimate(value=0.0, low=1.0, high=1.0))
    """
    ahead = np.round(nmi - reference, 9)
    outcome = np.where(ahead > TIE, 1, np.where(ahead < -TIE, -1, 0))  # (n_datasets,)
    low, high = np.percentile(outcome[draws].sum(axis=1), INTERVAL)
    net = Estimate(float(outcome.sum()), float(low), float(high))
    wins, losses, ties = (int((outcome == sign).sum()) for sign in (1, -1, 0))
    return Against(wins, losses, ties, net)


def choice_of(results: Mapping[str, Mapping[str, float]]) -> Choice:
    """How well a method chose, from its quantities on each data set.

    >>> palm = {"nmi": 0.5, "regret": 0.25, "consensus_nmi": 0.75}
    >>> choice = choice_of({"palm": palm, "zoo": {"nmi": 0.5, "regret": 0.0, "consensus_nmi": 0.4}})
    >>> choice.regret.value, choice.below.value, choice.largest_loss
    (0.125, 0.5, (0.25, 'palm'))
    """
    chose = sorted(name for name, values in results.items() if "regret" in values)
    compared = sorted(name for name, values in results.items() if "consensus_nmi" in values)
    regret = column(results, chose, "regret")
    loss = column(results, compared, "consensus_nmi") - column(results, compared, "nmi")
    worst = int(loss.argmax()) if compared else 0
    return Choice(
        len(chose),
        mean_of(regret, resamples(len(chose))) if chose else None,
        len(compared),
        mean_of((np.round(loss, 9) > TIE).astype(float), resamples(len(compared)))
        if compared
        else None,
        (float(loss[worst]), compared[worst]) if compared else None,
    )
