"""Figures from records: 7 (weight of the consensus loss) and 8 (agreement and NMI over the rounds)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student

from deccs.plots import INK, PALETTE, SMALL, TEXT, new_figure
from deccs.rules import default_lambda_rec
from deccs_paper.claims import falls, moves, risen, rising, stable
from deccs_paper.experiments import FIGURES, LAMBDAS, STUDIED
from deccs_paper.figures.parts import Need, Task, claim, in_words, pending_note, save
from deccs_paper.record_names import settings_record
from deccs_paper.records import Record, as_stored
from deccs_paper.results import N_ROUNDS, agreement_over_rounds, newest, nmi_over_rounds
from deccs_paper.settings import estimator_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENOUGH_FOR_A_BAND = 5  # runs
NAMES = {"agreement": "agreement", "nmi": "NMI"}

CONS_WEIGHTS, REC_WEIGHTS = LAMBDAS, (0.0, 1.0)
CONS_STUDY = tuple(sorted(STUDIED))  # the paper shows MNIST
OVER_ROUNDS = FIGURES["fig8"].datasets

WEIGHTS = {
    (name, rec, cons): Need(name, {"rounds__lambda_cons": cons, "rounds__lambda_rec": rec})
    for name in CONS_STUDY
    for rec in REC_WEIGHTS
    for cons in CONS_WEIGHTS
}
FIG7_NEEDS = tuple(WEIGHTS.values())
FIG8_NEEDS = tuple(Need(name) for name in OVER_ROUNDS)


@dataclass(frozen=True)
class Curve:
    """Mean over runs, and the 95 % confidence interval where there are enough of them."""

    n_runs: int
    mean: list[float]
    low: list[float] | None = None
    high: list[float] | None = None


def runs_of(records: Iterable[Record], need: Need) -> list[Record]:
    """The successful runs with the settings of a need, whatever experiment they belong to.

    Of a run made twice the later one counts; those of an outdated recipe only where there are no others.
    """
    wanted = settings_record(estimator_for(need.dataset, **need.changes))
    return newest(
        [
            record
            for record in records
            if record.get("dataset") == need.dataset
            and record.get("status") == "ok"
            and record.get("rounds")
            and same_settings(record["settings"], wanted, record["n"])
        ]
    )


def same_settings(given: Mapping[str, Any], wanted: Mapping[str, Any], n_points: int) -> bool:
    """Whether all settings that both have are the same; "auto" for lambda_rec is the number it stands for.

    >>> same_settings({"lambda_rec": "auto", "gone": 1}, {"lambda_rec": 1, "new": 2}, n_points=70_000)
    True
    >>> same_settings({"lambda_rec": "auto"}, {"lambda_rec": 1}, n_points=552)       # 10 there
    False
    """

    def plain(name: str, value: Any) -> Any:
        if name == "lambda_rec" and value == "auto":
            return default_lambda_rec(n_points)
        return as_stored(value)

    return all(
        plain(name, value) == plain(name, wanted[name])
        for name, value in given.items()
        if name in wanted
    )


def confidence(values: Sequence[float], level: float = 0.95) -> float:
    """Half the width of the confidence interval of a mean, by Student's t.

    >>> round(confidence([1, 2, 3, 4, 5]), 4)        # t(0.975, 4) = 2.7764 times sqrt(2.5 / 5)
    1.9632
    """
    n = len(values)
    return float(student.ppf(0.5 + level / 2, n - 1) * np.std(values, ddof=1) / math.sqrt(n))


def curve(runs: Sequence[Sequence[float]]) -> Curve:
    """(n_runs, n_rounds) -> their mean, with a band from five runs on."""
    table = np.asarray(runs, dtype=float)
    mean = table.mean(axis=0)
    if len(table) < ENOUGH_FOR_A_BAND:
        return Curve(len(table), mean.tolist())
    half = np.array([confidence(column) for column in table.T])
    return Curve(len(table), mean.tolist(), (mean - half).tolist(), (mean + half).tolist())


def plot_curve(ax: Axes, x: Sequence[float], line: Curve, color: str, label: str) -> None:
    runs = "run" if line.n_runs == 1 else "runs"
    ax.plot(
        x,
        line.mean,
        color=color,
        lw=2,
        marker="o",
        ms=3.5,
        label=f"{label}  ({line.n_runs} {runs})",
    )
    if line.low is not None and line.high is not None:
        high = np.minimum(line.high, 1.0)  # the most that agreement and NMI can be
        ax.fill_between(x, line.low, high, color=color, alpha=0.18, lw=0)


def tidy(ax: Axes, *, x: str, y: str, title: str, legend: str = "lower right") -> None:
    ax.set_xlabel(x, fontsize=TEXT, color=INK)
    ax.set_ylabel(y, fontsize=TEXT, color=INK)
    ax.set_title(title, fontsize=TEXT, color=INK)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#E5E5E5", lw=0.6)
    ax.set_axisbelow(True)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=SMALL, loc=legend)
        low, high = ax.get_ylim()
        wider = max(0, 0.2 - (high - low))  # do not zoom into a difference of a hundredth
        ax.set_ylim(low - 0.9 * wider, min(high + 0.1 * wider, 1.02))
    else:
        ax.set_yticks([])
        ax.text(
            0.5,
            0.5,
            "pending: no runs yet",
            transform=ax.transAxes,
            ha="center",
            va="center",
            fontsize=TEXT,
            color=INK,
        )


def note(figure: Any, text: str) -> None:
    """A line below the figure."""
    if text:
        figure.supxlabel(text, fontsize=SMALL, color=INK, x=0.01, ha="left", wrap=True)


def draw_fig7(task: Task) -> dict[str, Any]:
    runs = {key: runs_of(task.records, need) for key, need in WEIGHTS.items()}
    figure = new_figure(10, 2.9 * len(CONS_STUDY) + 0.4)
    panels = figure.subplots(len(CONS_STUDY), 2)
    numbers: dict[str, Any] = {}
    for (left, right), name in zip(panels, CONS_STUDY, strict=True):
        agreements = {
            cons: curve([agreement_over_rounds(run) for run in runs[name, 0.0, cons]])
            for cons in CONS_WEIGHTS
            if runs[name, 0.0, cons]
        }
        for (cons, line), color in zip(agreements.items(), colors_of(agreements), strict=True):
            plot_curve(left, range(N_ROUNDS + 1), line, color, rf"$\lambda_{{cons}}$ = {cons:g}")
        left.set_xlim(-0.5, N_ROUNDS + 0.5)
        tidy(
            left,
            x="round",
            y="agreement",
            title=rf"{name.upper()}: agreement, $\lambda_{{rec}}$ = 0",
        )
        scores = {
            rec: {
                cons: [run["scores"]["nmi"] for run in runs[name, rec, cons]]
                for cons in CONS_WEIGHTS
                if runs[name, rec, cons]
            }
            for rec in REC_WEIGHTS
        }
        plot_scores(right, scores)
        tidy(
            right, x=r"$\lambda_{cons}$", y="NMI", title=f"{name.upper()}: NMI", legend="lower left"
        )
        numbers[name] = {
            "agreement": {f"{cons:g}": line.__dict__ for cons, line in agreements.items()},
            "nmi": {
                f"lambda_rec {rec:g}": {
                    f"{cons:g}": {
                        "n_runs": len(values),
                        "mean": float(np.mean(values)),
                        "half_width": confidence(values)
                        if len(values) >= ENOUGH_FOR_A_BAND
                        else None,
                    }
                    for cons, values in by_cons.items()
                }
                for rec, by_cons in scores.items()
            },
        }
    missing = missing_weights(runs)
    note(figure, pending_note(missing))
    save(figure, task.out, "fig7")
    return numbers | {
        "pending": missing,
        "claims": [one for name in CONS_STUDY for one in weight_claims(name, numbers[name])],
    }


def colors_of(agreements: Mapping[float, Curve]) -> list[str]:
    """A weight keeps its color when others are missing."""
    return [PALETTE[CONS_WEIGHTS.index(cons)] for cons in agreements]


def plot_scores(ax: Axes, scores: Mapping[float, Mapping[float, Sequence[float]]]) -> None:
    """NMI over lambda_cons, a line per lambda_rec, bars of the 95 % interval from five runs on."""
    for place, (rec, by_cons) in enumerate(scores.items()):
        if not by_cons:
            continue
        counts = sorted({len(values) for values in by_cons.values()})
        runs = "-".join(map(str, dict.fromkeys([counts[0], counts[-1]])))
        half = [
            confidence(values) if len(values) >= ENOUGH_FOR_A_BAND else 0.0
            for values in by_cons.values()
        ]
        ax.errorbar(
            list(by_cons),
            [np.mean(values) for values in by_cons.values()],
            half,
            color=PALETTE[4 + place],
            lw=2,
            marker="o",
            ms=4,
            capsize=3,
            elinewidth=1,
            label=rf"$\lambda_{{rec}}$ = {rec:g}  ({runs} {'run' if runs == '1' else 'runs'})",
        )
    ax.set_xscale("log")
    ax.set_xlim(CONS_WEIGHTS[0] / 1.5, CONS_WEIGHTS[-1] * 1.5)
    ax.set_xticks(CONS_WEIGHTS, [f"{cons:g}" for cons in CONS_WEIGHTS])
    ax.minorticks_off()


def missing_weights(runs: Mapping[tuple[str, float, float], Sequence[Record]]) -> list[str]:
    """The weights without runs, one line per data set."""
    lines = []
    for name in CONS_STUDY:
        without = {
            rec: [f"{cons:g}" for cons in CONS_WEIGHTS if not runs[name, rec, cons]]
            for rec in REC_WEIGHTS
        }
        parts = [
            f"lambda_rec {rec:g} with lambda_cons {', '.join(weights)}"
            for rec, weights in without.items()
            if weights
        ]
        if parts:
            lines.append(f"{name.upper()}, {' and '.join(parts)}")
    return lines


def weight_claims(name: str, numbers: Mapping[str, Any]) -> list[dict[str, Any]]:
    """On one data set: agreement rises with lambda_cons, and NMI falls at very high values."""
    reached = {cons: line["mean"][-1] for cons, line in numbers["agreement"].items()}
    weights = [f"{cons:g}" for cons in CONS_WEIGHTS]
    claims = [
        claim(
            f"{name.upper()}: a higher lambda_cons leads to a higher agreement.",
            rising([reached[cons] for cons in weights]) if set(weights) <= set(reached) else None,
            f"in the last round {in_words(reached)}" if reached else "no runs yet",
        )
    ]
    for rec, by_cons in numbers["nmi"].items():
        means = {cons: values["mean"] for cons, values in by_cons.items()}
        claims.append(
            claim(
                f"{name.upper()}: with {rec}, NMI falls at very high lambda_cons.",
                falls([means[cons] for cons in weights]) if set(weights) <= set(means) else None,
                in_words(means) or "no runs yet",
            )
        )
    return claims


def draw_fig8(task: Task) -> dict[str, Any]:
    figure = new_figure(10, 3.9)
    left, right = figure.subplots(1, 2)
    numbers: dict[str, Any] = {}
    for need, color in zip(FIG8_NEEDS, PALETTE, strict=False):
        runs = runs_of(task.records, need)
        if not runs:
            continue
        agreement, nmi = (
            curve([values(run) for run in runs])
            for values in (agreement_over_rounds, nmi_over_rounds)
        )
        for ax, line in ((left, agreement), (right, nmi)):
            plot_curve(ax, range(N_ROUNDS + 1), line, color, need.dataset.upper())
        numbers[need.dataset] = {"agreement": agreement.__dict__, "nmi": nmi.__dict__}
    tidy(left, x="round", y="agreement", title="Agreement of the members")
    tidy(right, x="round", y="NMI", title="NMI of the labels")
    missing = [name.upper() for name in OVER_ROUNDS if name not in numbers]
    few = [
        name.upper() for name in numbers if numbers[name]["agreement"]["n_runs"] < ENOUGH_FOR_A_BAND
    ]
    note(
        figure,
        "\n".join(
            line
            for line in (
                pending_note(missing),
                f"No band, fewer than five runs: {', '.join(few)}" if few else "",
            )
            if line
        ),
    )
    save(figure, task.out, "fig8")
    return numbers | {
        "pending": missing,
        "claims": [one for name in OVER_ROUNDS for one in round_claims(name, numbers.get(name))],
    }


def round_claims(name: str, numbers: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """On one data set: both rise, the agreement is stable by round 8 (except on MICE), the NMI by round 5."""
    if numbers is None:
        return [
            claim(f"{name.upper()}: agreement and NMI rise over the rounds.", None, "no runs yet")
        ]
    ends = {NAMES[what]: (numbers[what]["mean"][0], numbers[what]["mean"][-1]) for what in NAMES}
    finding = risen(name, ends, numbers["nmi"]["n_runs"])
    claims = [
        claim(
            f"{name.upper()}: agreement and NMI rise over the rounds.",
            finding.holds,
            finding.figures,
        )
    ]
    for what, number in (("agreement", 8), ("nmi", 5)):
        if (name, what) == ("mice", "agreement"):  # the paper's exception
            continue
        rest = numbers[what]["mean"][number:]
        claims.append(
            claim(
                f"{name.upper()}: the {NAMES[what]} is stable by round {number}.",
                stable(rest),
                moves(number, rest),
            )
        )
    return claims
