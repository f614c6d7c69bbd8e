"""Claims of Section VI that numbers can check: each is a function from results to findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from deccs.datasets.sources import SOURCES
from deccs_paper.experiments import (
    ALL,
    CLASSICAL,
    DECCS_ROW,
    IMAGES,
    LAMBDA_ROWS,
    LAMBDAS,
    STUDIED,
    TABLES,
    Cell,
    Row,
    ablation,
)
from deccs_paper.records import Record
from deccs_paper.results import Results, agreement_over_rounds, nmi_over_rounds
from deccs_paper.settings import PAPER_TABLES

HOLDS, FAILS, PENDING = "holds", "does not hold", "pending"
SAME = 0.01  # the paper has two digits
STABLE = 0.02  # a curve that moves no more than this is stable
CHANCE = 0.05  # NMI of a member that is no better than guessing
ALIKE = f"means within {SAME} or the largest deviation"
ALONE = "the paper shows MNIST alone"
SPECTRALNET = next(row for row in TABLES["table2"].rows if row.label == "SpectralNet")


@dataclass(frozen=True)
class Finding:
    """A claim on one data set, or one part of it; ``holds`` is None while runs are missing."""

    about: str
    holds: bool | None
    figures: str

    def __str__(self) -> str:
        return f"{self.about}: {word_for(self.holds)} ({self.figures})"


@dataclass(frozen=True)
class Verdict:
    """A claim, the rule it is judged by, and the findings."""

    claim: str
    rule: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def status(self) -> str:
        """One finding that does not hold settles it; else it is pending while any finding is."""
        if any(finding.holds is False for finding in self.findings):
            return FAILS
        return PENDING if any(finding.holds is None for finding in self.findings) else HOLDS

    @property
    def how(self) -> str:
        """The rule, and how often the claim holds if it does not hold everywhere.

        >>> Verdict("DECCS is ahead", "by NMI", [Finding("mice", True, ""), Finding("synth", False, "")]).how
        'by NMI; holds in 1 of 2'
        """
        if self.status != FAILS or len(self.findings) == 1:
            return self.rule
        held = sum(finding.holds is True for finding in self.findings)
        return f"{self.rule}; holds in {held} of {len(self.findings)}"


def word_for(holds: bool | None) -> str:
    return PENDING if holds is None else HOLDS if holds else FAILS


def mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def compared(
    about: str, values: Mapping[str, Sequence[float]], holds: Callable[[list[float]], bool]
) -> Finding:
    """The mean of each with its number of runs, and whether the claim holds if all have runs."""
    means = [float(np.mean(runs)) for runs in values.values() if runs]
    words = ", ".join(
        f"{name} {f'{np.mean(runs):.3f} (n {len(runs)})' if runs else PENDING}"
        for name, runs in values.items()
    )
    return Finding(about, holds(means) if len(means) == len(values) else None, words)


def scores_of(
    results: Results, rows: Iterable[Row], dataset: str, score: str = "nmi"
) -> dict[str, list[float]]:
    return {row.label: results.scores(row, dataset, score) for row in rows}


def agreement_rises(results: Results) -> list[Finding]:
    findings = []
    for dataset in STUDIED:
        values = {
            f"{value:g}": [agreement_over_rounds(record)[-1] for record in results.ok(row, dataset)]
            for value, row in zip(LAMBDAS, LAMBDA_ROWS[0], strict=True)
        }
        findings.append(compared(dataset, values, rising))
    return findings


def rising(values: Sequence[float]) -> bool:
    """Whether no value is clearly below the one before, and the last is above the first.

    >>> rising([0.7, 0.8, 0.795, 0.9]), rising([0.7, 0.9, 0.8]), rising([0.7, 0.7])
    (True, False, False)
    """
    steps = all(later >= earlier - SAME for earlier, later in pairwise(values))
    return steps and values[-1] > values[0]


def nmi_falls(results: Results) -> list[Finding]:
    findings = []
    for rec, rows in LAMBDA_ROWS.items():
        for dataset in STUDIED:
            values = {
                f"{value:g}": results.scores(row, dataset)
                for value, row in zip(LAMBDAS, rows, strict=True)
            }
            findings.append(compared(f"{dataset}, lambda_rec = {rec}", values, falls))
    return findings


def falls(values: Sequence[float]) -> bool:
    """Whether the last value is clearly below the best one before it.

    >>> falls([0.8, 0.9, 0.85]), falls([0.8, 0.9, 0.895])
    (True, False)
    """
    return values[-1] < max(values[:-1]) - SAME


def together_beat_alone(results: Results) -> list[Finding]:
    findings = []
    for rec, words in (("", "without rec"), (" + rec", "with rec")):
        for dataset in ALL:
            rows = [ablation(f"{terms}{rec}") for terms in ("cons", "CE", "cons + CE")]
            findings.append(
                compared(f"{dataset}, {words}", scores_of(results, rows, dataset), last_is_best)
            )
    return findings


def both_are_best(results: Results) -> list[Finding]:
    """The last two rows of Table I against the other five."""
    rows = TABLES["table1"].rows
    return [
        compared(dataset, scores_of(results, rows, dataset), last_two_are_best) for dataset in ALL
    ]


def last_two_are_best(values: Sequence[float]) -> bool:
    """Whether the last two values are above all others.

    >>> last_two_are_best([0.5, 0.7, 0.8, 0.9]), last_two_are_best([0.5, 0.8, 0.7, 0.9])
    (True, False)
    """
    return min(values[-2:]) > max(values[:-2])


def last_is_best(values: Sequence[float]) -> bool:
    return values[-1] > max(values[:-1])


def no_effect(table: str) -> Callable[[Results], list[Finding]]:
    def check(results: Results) -> list[Finding]:
        return [
            alike(dataset, scores_of(results, TABLES[table].rows, dataset)) for dataset in STUDIED
        ]

    return check


def alike(about: str, scores: Mapping[str, Sequence[float]]) -> Finding:
    deviation = max((float(np.std(values)) for values in scores.values() if values), default=0.0)
    return compared(about, scores, partial(spread_within, most=max(SAME, deviation)))


def like_spectralnet(results: Results) -> list[Finding]:
    return [alike("pendigits", scores_of(results, [SPECTRALNET, DECCS_ROW], "pendigits"))]


def spread_within(values: Sequence[float], most: float) -> bool:
    """Whether the values differ by no more than ``most``.

    >>> spread_within([0.86, 0.87], 0.01), spread_within([0.5, 0.75, 0.625], 0.2)
    (True, False)
    """
    return round(max(values) - min(values), 9) <= most


def rises(
    ends_of: Callable[[list[Record]], Mapping[str, tuple[float, float]]],
) -> Callable[[Results], list[Finding]]:
    def check(results: Results) -> list[Finding]:
        by_dataset = {dataset: results.ok(DECCS_ROW, dataset) for dataset in ALL}
        return [
            risen(dataset, ends_of(runs), len(runs)) if runs else Finding(dataset, None, PENDING)
            for dataset, runs in by_dataset.items()
        ]

    return check


def risen(about: str, ends: Mapping[str, tuple[float, float]], n_runs: int) -> Finding:
    """Whether every score is higher at the end than at the start.

    >>> str(risen("mice", {"agreement": (0.5, 0.9), "NMI": (0.5, 0.4)}, 3))
    'mice: does not hold (agreement 0.500 to 0.900, NMI 0.500 to 0.400, n 3)'
    """
    words = ", ".join(f"{name} {first:.3f} to {last:.3f}" for name, (first, last) in ends.items())
    return Finding(
        about, all(last > first for first, last in ends.values()), f"{words}, n {n_runs}"
    )


def curve_ends(runs: list[Record]) -> dict[str, tuple[float, float]]:
    """The mean curves of agreement and of the labels' NMI, in round 0 and in the last."""
    curves = {
        name: np.mean([values(record) for record in runs], axis=0)
        for name, values in (("agreement", agreement_over_rounds), ("NMI", nmi_over_rounds))
    }
    return {name: (float(curve[0]), float(curve[-1])) for name, curve in curves.items()}


def member_ends(runs: list[Record]) -> dict[str, tuple[float, float]]:
    """The mean NMI of each member in round 0 and in the last, over runs that have it in both."""
    pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in runs:
        first, last = (record["rounds"][place]["members"] for place in (0, -1))
        for name in first:
            if name in last:
                pairs[name].append((first[name]["nmi"], last[name]["nmi"]))
    return {
        name: (
            float(np.mean([first for first, _ in both])),
            float(np.mean([last for _, last in both])),
        )
        for name, both in pairs.items()
    }


def agreement_stable(results: Results) -> list[Finding]:
    return [
        stable_from(results, dataset, 8, agreement_over_rounds)
        for dataset in ("pendigits", "har", "mnist")
    ]


def nmi_stable(results: Results) -> list[Finding]:
    return [
        stable_from(results, dataset, 5, nmi_over_rounds)
        for dataset in ("mice", "pendigits", "har", "mnist")
    ]


def stable_from(
    results: Results, dataset: str, first: int, values: Callable[[Record], list[float]]
) -> Finding:
    """Whether the mean curve over the runs is stable from this round on."""
    runs = [values(record) for record in results.ok(DECCS_ROW, dataset)]
    if not runs:
        return Finding(dataset, None, PENDING)
    rest = np.mean(runs, axis=0)[first:].tolist()
    return Finding(dataset, stable(rest), f"{moves(first, rest)}, n {len(runs)}")


stable = partial(spread_within, most=STABLE)


def moves(first: int, rest: Sequence[float]) -> str:
    """The value of a round and the range after it, in words.

    >>> moves(8, [0.9, 0.91, 0.89])
    'round 8: 0.900, after that 0.890 to 0.910'
    """
    return f"round {first}: {rest[0]:.3f}, after that {min(rest):.3f} to {max(rest):.3f}"


def autoencoder_helps(results: Results) -> list[Finding]:
    findings = []
    for method in CLASSICAL:
        rows = [Row(name, name) for name in (method, f"AE+{method}")]
        findings.append(compared(method, scores_of(results, rows, "mice"), last_is_best))
    return findings


def ahead_of_all(datasets: Sequence[str]) -> Callable[[Results], list[Finding]]:
    def check(results: Results) -> list[Finding]:
        return [ahead_of(results, TABLES["table2"].rows[1:], dataset) for dataset in datasets]

    return check


def ahead_of(results: Results, rivals: Sequence[Row], dataset: str) -> Finding:
    """DECCS against the best of its rivals; pending ones can still change it."""
    known = {
        label: values for label, values in scores_of(results, rivals, dataset).items() if values
    }
    if not known:
        return Finding(dataset, None, PENDING)
    best = max(known, key=lambda label: np.mean(known[label]))
    pending = [row.label for row in rivals if row.label not in known and applicable(row, dataset)]
    finding = compared(
        dataset,
        {best: known[best], DECCS_ROW.label: results.scores(DECCS_ROW, dataset)},
        last_is_best,
    )
    if not pending:
        return finding
    return replace(
        finding,
        holds=None if finding.holds else finding.holds,
        figures=f"{finding.figures}; pending: {', '.join(pending)}",
    )


def applicable(row: Row, dataset: str) -> bool:
    """Whether a method can be run on a data set."""
    return not Cell(row, dataset, 0).reason.startswith("n.a.")


def ahead_of_concurl(results: Results) -> list[Finding]:
    rows = [Row("ConCURL", "ConCURL"), DECCS_ROW]
    return [
        compared(dataset, scores_of(results, rows, dataset), last_is_best) for dataset in IMAGES
    ]


def only_spectralnet_ahead(results: Results) -> list[Finding]:
    """Among the rows for which the paper has a number on MNIST."""
    printed = PAPER_TABLES["table2"]
    others = [
        row
        for row in TABLES["table2"].rows[1:]
        if row != SPECTRALNET and printed[row.label].get("mnist")
    ]
    finding = ahead_of(results, others, "mnist")
    return [
        compared(
            "SpectralNet ahead", scores_of(results, [DECCS_ROW, SPECTRALNET], "mnist"), last_is_best
        ),
        replace(finding, about="no other ahead"),
    ]


def ahead_of_spectralnet_by_ari(results: Results) -> list[Finding]:
    return [
        compared(
            "pendigits",
            scores_of(results, [SPECTRALNET, DECCS_ROW], "pendigits", "ari"),
            last_is_best,
        )
    ]


def har_improves_most(results: Results) -> list[Finding]:
    """The lead of DECCS over the best other method, by data set."""
    leads = {
        name: lead(results, name)
        for name in (*(name for name in ALL if name not in ("synth", "har")), "har")
    }
    known = [value for value in leads.values() if value is not None]
    words = ", ".join(
        f"{name} {PENDING if value is None else f'{value:+.3f}'}" for name, value in leads.items()
    )
    return [
        Finding("lead of DECCS", last_is_best(known) if len(known) == len(leads) else None, words)
    ]


def lead(results: Results, dataset: str) -> float | None:
    """The mean of DECCS minus that of the best other method; None while rows are pending."""
    rivals = [row for row in TABLES["table2"].rows[1:] if applicable(row, dataset)]
    means = [mean(values) for values in scores_of(results, [DECCS_ROW, *rivals], dataset).values()]
    known = [value for value in means if value is not None]
    return known[0] - max(known[1:]) if len(known) == len(means) else None


def half_at_chance(results: Results) -> list[Finding]:
    """Whether all members are right at the end of those runs that start like the paper's."""
    runs = results.ok(DECCS_ROW, "nonlinear")
    if not runs:
        return [Finding("nonlinear", None, PENDING)]
    alike = [record for record in runs if is_half_at_chance(nmi_of(record["rounds"][0]["members"]))]
    solved = [record for record in alike if all_right(nmi_of(record["members"]))]
    words = (
        f"half of the members at chance in {len(alike)} of {len(runs)} runs, "
        f"all right at the end in {len(solved)} of these"
    )
    return [Finding("nonlinear", bool(alike) and len(solved) == len(alike), words)]


def nmi_of(members: Mapping[str, Any]) -> list[float]:
    return [member["nmi"] for member in members.values()]


def is_half_at_chance(values: Sequence[float]) -> bool:
    """Half of the members guess, the others are right: if all guess, there is nothing to agree on.

    >>> is_half_at_chance([0.01, 1, 1, 0.02]), is_half_at_chance([0.01, 1, 1, 0.4]), is_half_at_chance([0, 0])
    (True, False, False)
    """
    guessing = [value for value in values if value <= CHANCE]
    knowing = [value for value in values if value > CHANCE]
    return len(guessing) == len(knowing) and all_right(knowing)


def all_right(values: Sequence[float]) -> bool:
    return min(values) > 1 - SAME


CLAIMS: list[tuple[str, str, Callable[[Results], list[Finding]]]] = [
    (
        "Agreement rises with lambda_cons (lambda_rec = 0)",
        f"agreement in the last round: no step down by more than {SAME}, the last above the first; {ALONE}",
        agreement_rises,
    ),
    (
        "NMI falls at very high lambda_cons",
        f"at 100 more than {SAME} below the best other weight; {ALONE}",
        nmi_falls,
    ),
    (
        "CE and cons together beat either alone on every data set, with and without reconstruction",
        "by mean NMI",
        together_beat_alone,
    ),
    (
        "CE and cons together, with and without reconstruction, are the two best of the seven combinations",
        "by mean NMI",
        both_are_best,
    ),
    ("The ensemble's size has no effect", f"{ALIKE}; {ALONE}", no_effect("study-ensemble-size")),
    ("The sampling ratio has no effect", f"{ALIKE}; {ALONE}", no_effect("study-sample-size")),
    (
        "Agreement and NMI rise over the rounds",
        "mean curves, in round 0 and in the last",
        rises(curve_ends),
    ),
    (
        "The performance of every member rises",
        "mean NMI on the sample, in round 0 and in the last",
        rises(member_ends),
    ),
    (
        "Agreement is stable from round 8 on, except on MICE",
        f"the mean curve moves by at most {STABLE}; MICE, the paper's exception, is not judged",
        agreement_stable,
    ),
    (
        "NMI is stable from round 5 on",
        f"the mean curve of the labels' NMI moves by at most {STABLE}",
        nmi_stable,
    ),
    ("The autoencoder helps every consensus method on MICE", "by mean NMI", autoencoder_helps),
    (
        "DECCS is clearly ahead of the next best on SYNTH, MICE and HAR",
        "by mean NMI; for how clearly, see the test below Table II",
        ahead_of_all(("synth", "mice", "har")),
    ),
    ("DECCS is ahead of all others on USPS", "by mean NMI", ahead_of_all(("usps",))),
    (
        "The lead over the next best is largest on HAR among the real data sets",
        "by mean NMI",
        har_improves_most,
    ),
    (
        "On MNIST only SpectralNet is ahead of DECCS",
        "by mean NMI, among the rows the paper has for MNIST",
        only_spectralnet_ahead,
    ),
    ("DECCS and SpectralNet are alike on PENDIGITS by NMI", ALIKE, like_spectralnet),
    (
        "DECCS is ahead of SpectralNet on PENDIGITS by ARI",
        "by mean ARI",
        ahead_of_spectralnet_by_ari,
    ),
    ("DECCS is ahead of ConCURL on all image sets", "by mean NMI", ahead_of_concurl),
    (
        "Two clusters that are not linearly separable are found although half of the members are at chance",
        f"NMI of a member at chance: at most {CHANCE}; of the others, and of all at the end, above {1 - SAME}",
        half_at_chance,
    ),
]


def of_a_part(results: Results, finding: Finding) -> Finding:
    """Adds a note where only a part of the data set was available."""
    dataset = finding.about.split(",")[0]
    if not results.part(dataset):
        return finding
    return replace(
        finding,
        figures=f"{finding.figures}; {results.points[dataset]:,} of {SOURCES[dataset].n:,} points",
    )


def check_all(results: Results) -> list[Verdict]:
    return [
        Verdict(claim, rule, [of_a_part(results, finding) for finding in check(results)])
        for claim, rule, check in CLAIMS
    ]


def in_words(verdicts: Sequence[Verdict]) -> str:
    """One line per claim, and below it one per finding."""
    lines = []
    for verdict in verdicts:
        lines.append(f"{verdict.status:13}  {verdict.claim} ({verdict.how})")
        lines += [f"{'':15}{finding}" for finding in verdict.findings]
    return "\n".join(lines)
