"""What the report shows of the number of clusters: the evidence over k, and the points for each k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from deccs.counting.records import Count
from deccs.counting.words import (
    MEANINGS,
    continued,
    difference,
    hierarchy,
    in_words,
    ks_spread,
    ks_with_answer,
    runners_up,
    sentence,
    with_references,
)
from deccs.labels import NOISE
from deccs.plots import MOST_LINEAR, k_ticks
from deccs.report.markup import section, table
from deccs.report.points import Result, packed, packed_labels

MOST_STEPS = 30  # of the slider over k
MOST_CANDIDATES = 8
LEFT, RIGHT, TOP, BOTTOM = 34, 352, 16, 118  # of a chart, in its own units


# ---- the points, colored for any k


def slider_data(
    count: Count, labels_at: Callable[[int], np.ndarray], final: np.ndarray, rows: np.ndarray
) -> dict[str, Any]:
    """For each k of the slider the labels of the points drawn, the sizes, and what changes, in words.

    Clusterings for neighboring k have most clusters in common, so few combinations of labels occur.
    A point has the number of its combination, and each k a short table from that to labels.
    """
    ks = ks_spread(count, MOST_STEPS)
    answer = count.n_clusters
    drawn, steps = {}, {}
    for k, labels in continued(ks, answer, lambda k: final if k == answer else labels_at(k)):
        drawn[k] = labels[rows]  # (n_drawn,)
        steps[k] = step(k, labels, final)
    combinations, codes = np.unique(
        np.stack([drawn[k] for k in ks]), axis=1, return_inverse=True
    )  # (n_steps, n_combinations), (n_drawn,)
    small = np.uint16 if combinations.shape[1] < 2**16 else np.uint32
    return {
        "answer": ks.index(answer),
        "codes": packed(codes.reshape(-1).astype(small)),
        "steps": [
            {**steps[k], "labels": packed_labels(line)}
            for k, line in zip(ks, combinations, strict=True)
        ],
    }


def step(k: int, labels: np.ndarray, final: np.ndarray) -> dict[str, Any]:
    """What is said of one k.

    >>> step(2, np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2]))
    {'k': 2, 'sizes': [[0, 2], [1, 2]], 'change': 'joins 1 and 2'}
    """
    clusters, sizes = np.unique(labels[labels != NOISE], return_counts=True)
    return {
        "k": k,
        "sizes": [[int(number), int(size)] for number, size in zip(clusters, sizes, strict=True)],
        "change": in_words(difference(final, labels), parts=True),
    }


def ticks(data: dict[str, Any] | None, count: Count | None) -> str:
    """Marks on the slider at the candidates, as the options of a datalist."""
    if data is None or count is None:
        return ""
    marked = {count.n_clusters, *(one.k for one in runners_up(count))}
    return "".join(
        f'<option value="{place}"></option>'
        for place, each in enumerate(data["steps"])
        if each["k"] in marked
    )


# ---- the evidence


def how_many(result: Result) -> str:
    """The section on the number of clusters; empty for a model that was told it."""
    count = result.count
    if count is None:
        return ""
    final = result.answer.labels[count.sample]  # (n_sample,)
    charts = "".join(
        chart(count, name, values, reference)
        for name, values, reference in with_references(count.curves)
    )
    has_references = any(reference is not None for *_, reference in with_references(count.curves))
    dashed = "Dashed: the same for data without clusters. " if has_references else ""
    note = (
        f"Each curve over the number of clusters. {dashed}"
        "The line marks the answer, dotted lines the next candidates."
    )
    return section(
        "count",
        "How many clusters",
        f"<p><strong>{escape(sentence(count, final))}</strong></p>"
        f'{candidates(count, final)}<p class="note">{note}</p><div class="charts">{charts}</div>'
        f"{numbers(count)}{splits(count, final)}",
    )


def candidates(count: Count, final: np.ndarray) -> str:
    """The ranked numbers, with what speaks for each and what it changes."""
    rows = []
    for one in count.candidates[:MOST_CANDIDATES]:
        is_answer = one.k == count.n_clusters
        change = "" if is_answer else in_words(difference(final, count.sample_labels(one.k)))
        compared = f"Compared with the answer, it {change}." if change else ""
        rows.append(
            [
                f"{one.k}" + (' <span class="chip">answer</span>' if is_answer else ""),
                f"{one.support:.2f}",
                words("; ".join(one.reasons), compared),
            ]
        )
    heads = ["Clusters", "Support", words("Reasons")]
    return table(heads, rows, "Candidates for the number of clusters")


def words(text: str, below: str = "") -> str:
    small = f"<br><small>{escape(below)}</small>" if below else ""
    return f'<span class="words">{escape(text) or "-"}{small}</span>'


def numbers(count: Count) -> str:
    rows = [
        [str(k), *(written(values[place]) for values in count.curves.values())]
        for place, k in enumerate(count.ks)
    ]
    heads = ["Clusters", *(escape(name.capitalize()) for name in count.curves)]
    return (
        "<details><summary>The curves as a table</summary>"
        + table(heads, rows, "Evidence over the number of clusters")
        + "</details>"
    )


def splits(count: Count, final: np.ndarray) -> str:
    rows = [
        [f"{each.before} to {each.after}", words(in_words(each.change, parts=True))]
        for each in hierarchy(count, final, ks_spread(count, MOST_STEPS))
    ]
    if not rows:
        return ""
    return (
        "<details><summary>Which cluster splits into which</summary>"
        + table(["Clusters", words("Change")], rows, "Which cluster splits into which over k")
        + "</details>"
    )


def written(value: float) -> str:
    """Three digits, or a dash where there is no number.

    >>> written(0.1234), written(float("nan"))
    ('0.123', '-')
    """
    return f"{value:.3f}" if np.isfinite(value) else "-"


# ---- a curve as SVG


def chart(count: Count, name: str, values: np.ndarray, reference: np.ndarray | None) -> str:
    """A curve with its reference, the answer and the runners-up marked."""
    ks = ks_with_answer(count)
    x_of = k_scale(ks)
    known = values if reference is None else np.concatenate([values, reference])
    low, high = value_range(known)

    def y_of(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low)

    grid = "".join(
        f'<path class="grid" d="M{LEFT} {y_of(value):.1f}H{RIGHT}"/>'
        f'<text x="{LEFT - 5}" y="{y_of(value) + 3.5:.1f}" class="end">{value:.4g}</text>'
        for value in (low, (low + high) / 2, high)
    )
    marked = {count.n_clusters, *(one.k for one in runners_up(count))}
    below = "".join(
        f'<text x="{x_of(tick):.1f}" y="{BOTTOM + 15}" class="mid">{tick}</text>'
        for tick in k_ticks(ks)
    )
    lines = "".join(marked_line(k, x_of(k), x_of(count.n_clusters)) for k in sorted(marked))
    places = [(x_of(k), y_of(value)) for k, value in zip(count.ks, values, strict=True)]
    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5"><title>{k} clusters: {value:.3f}</title>'
        "</circle>"
        for k, value, (a, b) in zip(count.ks, values, places, strict=True)
        if np.isfinite(value)
    )
    dashed = ""
    if reference is not None:
        flat = [(x_of(k), y_of(value)) for k, value in zip(count.ks, reference, strict=True)]
        dashed = f'<path class="reference" d="{path(flat)}"/>'
    meaning = MEANINGS.get(name, "")
    return (
        f"<figure><figcaption><strong>{escape(name.capitalize())}</strong>"
        f"{': ' if meaning else ''}{escape(meaning)}</figcaption>"
        f'<svg class="chart" viewBox="0 0 360 138" role="img" '
        f'aria-label="{escape(curve_text(count, name, values))}">{grid}{below}{lines}{dashed}'
        f'<path class="line" d="{path(places)}"/>{dots}</svg></figure>'
    )


def marked_line(k: int, x: float, answer: float) -> str:
    """A line at the answer or a runner-up, with its number where there is room for it."""
    is_answer = x == answer
    html = f'<path class="{"answer" if is_answer else "other"}" d="M{x:.1f} {TOP - 3}V{BOTTOM}"/>'
    if is_answer or abs(x - answer) > 15:
        strong = " strong" if is_answer else ""
        html += f'<text x="{x:.1f}" y="{TOP - 6}" class="mid{strong}">{k}</text>'
    return html


def k_scale(ks: Sequence[int]) -> Callable[[float], float]:
    """Where a number of clusters lies from left to right; by its logarithm if some are large."""
    by = np.log if max(ks) > MOST_LINEAR else float
    low, high = float(by(min(ks))), float(by(max(ks)))
    left, right = LEFT + 10, RIGHT - 10
    return lambda k: left + (right - left) * (float(by(k)) - low) / ((high - low) or 1.0)


def value_range(values: np.ndarray) -> tuple[float, float]:
    """Round numbers around all values, and 0.

    >>> value_range(np.array([0.2, 0.93])), value_range(np.array([-0.02, 0.13]))
    ((0.0, 1.0), (-0.05, 0.15))
    >>> value_range(np.array([np.nan]))
    (0.0, 1.0)
    """
    values = values[np.isfinite(values)]
    low, high = min(0.0, values.min(initial=0.0)), max(0.0, values.max(initial=0.0))
    if low == high:
        return 0.0, 1.0
    size = 10 ** np.floor(np.log10(high - low))
    unit = size * next(part for part in (0.2, 0.5, 1, 2) if (high - low) / (part * size) <= 5)
    bottom, top = np.floor(low / unit + 1e-9) * unit, np.ceil(high / unit - 1e-9) * unit
    return float(np.round(bottom, 12)), float(np.round(top, 12))


def path(places: Sequence[tuple[float, float]]) -> str:
    """A line through places; it is broken where one is not known.

    >>> path([(0, 1), (1, 2), (2, float("nan")), (3, 4)])
    'M0.0 1.0L1.0 2.0M3.0 4.0'
    """
    text, pen = "", "M"
    for x, y in places:
        if np.isfinite(y):
            text += f"{pen}{x:.1f} {y:.1f}"
        pen = "L" if np.isfinite(y) else "M"
    return text


def curve_text(count: Count, name: str, values: np.ndarray) -> str:
    """A curve for those who cannot see it."""
    if not np.isfinite(values).any():
        return f"{name}: not known"
    lowest, highest = int(np.nanargmin(values)), int(np.nanargmax(values))
    text = (
        f"{name}: from {values[lowest]:.2f} at {count.ks[lowest]} clusters "
        f"to {values[highest]:.2f} at {count.ks[highest]}"
    )
    if count.n_clusters in count.ks:
        text += f"; {written(values[count.place_of(count.n_clusters)])} at the answer"
    return text
