"""The cards of clusters of a table with columns of any kind: rules, and differences as bars."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from deccs.describing.description import Description, precision_sentence, worth_telling
from deccs.describing.differences import Amount, Difference, GapShare, LevelShare, Period
from deccs.describing.rules import Rule
from deccs.report.markup import table
from deccs.report.points import Result
from deccs.report.sections import N_COLORS, cluster_card

BY_KINDS = (
    "How well a rule finds a cluster is counted over all rows. Columns are in order of their effect size "
    "(Cohen's d by ranks, h for shares). A number is a median, a span holds the middle half of the rows. "
    "Of two bars the upper one is the cluster, the gray one all rows; a single bar says how much higher "
    "or lower the cluster is."
)
MARGIN = 0.15  # of what the bars of two spans cover, to either side


def by_kinds(description: Description, result: Result) -> str:
    """For each cluster its rules and the columns in which it differs most."""
    told = [worth_telling(line) for line in description.differences]
    widest = max([1.0, *(each.effect for line in told for each in line)])
    return "".join(
        cluster_card(result, cluster, int(size), rule_list(rules) + differences(line, widest))
        for cluster, (size, rules, line) in enumerate(
            zip(description.sizes, description.rules, told, strict=True)
        )
    )


def rule_list(rules: Sequence[Rule]) -> str:
    """Rules with their precision and coverage, or that there is none."""
    if not rules:
        return '<p class="note">No simple rule finds this cluster.</p>'
    items = "".join(
        f"<li>{escape(str(rule))} <small>{escape(precision_sentence(rule))}</small></li>"
        for rule in rules
    )
    return f'<ul class="rules">{items}</ul>'


def differences(line: Sequence[Difference], widest: float) -> str:
    """Differences as a table with bars; ``widest`` is the effect that fills half of a bar."""
    if not line:
        return "<p>In no column does it differ much from all rows.</p>"
    cluster = line[0].cluster
    rows = [
        [
            escape(each.said.what),
            bars(each, widest),
            value(each.said.here, each.said.form),
            value(each.said.everywhere, each.said.form),
        ]
        for each in line
    ]
    heads = ["Column", '<span class="unseen">Bar</span>', "Here", "All"]
    return table(heads, rows, f"Columns in which cluster {cluster} differs most")


def value(text: str, form: str) -> str:
    """A median or a share stays on one line, a span need not."""
    return f'<span class="span">{escape(text)}</span>' if form == "span" else escape(text)


def bars(difference: Difference, widest: float) -> str:
    """A bar from the middle for a median, else one for the cluster above one for all rows."""
    match difference:
        case LevelShare() | GapShare():
            return pair(difference, (0.0, difference.here), (0.0, difference.everywhere))
        case Amount() if difference.said.form == "share in":
            return pair(difference, (0.0, difference.beyond), (0.0, difference.beyond_everywhere))
        case Amount() if difference.said.form == "median":
            return swing(difference.direction * difference.effect / widest)
        case Amount() | Period():
            here, everywhere = difference.here, difference.everywhere
            first, second = on_one_scale((here.low, here.high), (everywhere.low, everywhere.high))
            return pair(difference, first, second)
    return ""


def swing(part: float) -> str:
    """A bar from the middle to the right or the left.

    >>> swing(-0.5)
    '<span class="swing"><i class="down" style="--v:25.0%"></i></span>'
    """
    side = "up" if part > 0 else "down"
    return f'<span class="swing"><i class="{side}" style="--v:{abs(part) * 50:.1f}%"></i></span>'


def pair(difference: Difference, here: tuple[float, float], all_: tuple[float, float]) -> str:
    """Two bars, each from one part of the width to another."""
    drawn = "".join(
        f'<i class="{name}" style="margin-left:{low:.1%};width:{high - low:.1%}"></i>'
        for name, (low, high) in ((f"c{difference.cluster % N_COLORS}", here), ("all", all_))
    )
    return f'<span class="bars">{drawn}</span>'


def on_one_scale(
    first: tuple[float, float], second: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Two spans as parts of a width that holds both, with a margin.

    >>> [[round(end, 3) for end in each] for each in on_one_scale((0.0, 5.0), (2.5, 7.5))]
    [[0.115, 0.628], [0.372, 0.885]]
    >>> on_one_scale((1.0, 1.0), (1.0, 1.0))
    ((0.5, 0.5), (0.5, 0.5))
    """
    low, high = min(first[0], second[0]), max(first[1], second[1])
    width = high / 2 - low / 2  # half, as the whole may be too large for a number
    if not 0 < width < float("inf"):
        return (0.5, 0.5), (0.5, 0.5)
    scale = 1 / (1 + 2 * MARGIN)

    def at(value: float) -> float:
        return scale * ((value / 2 - low / 2) / width + MARGIN)

    return (at(first[0]), at(first[1])), (at(second[0]), at(second[1]))
