"""The parts of the page that are plain HTML. Every string that came from outside passes ``escape``."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from deccs.counting.records import ClusterStability
from deccs.counting.words import n_stable, sentence, stability_sentence, warning_of_one_group
from deccs.data.source import RowSource
from deccs.environment import versions
from deccs.report.clusters import Differences, as_png, nearest_to_center
from deccs.report.markup import section, table
from deccs.report.points import Result
from deccs.rounds.records import Round

# After eight clusters the colors repeat with the next shape. Shapes fill a box from -1.2 to 1.2.
N_COLORS = 8
SHAPES = (
    "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
    "M0 -1.15L1.05 .75H-1.05Z",
    "M-.85 -.85H.85V.85H-.85Z",
    "M0 -1.2L1.2 0L0 1.2L-1.2 0Z",
    "M-.42 -1.1H.42V-.42H1.1V.42H.42V1.1H-.42V.42H-1.1V-.42H-.42Z",
    "M0 1.15L1.05 -.75H-1.05Z",
)
MOST_FEATURES = 6
LEAST_CERTAIN = 20
SIGNS = {"very stable": "\u2714", "stable": "\u2714", "doubtful": "?", "dissolves": "\u2715"}


def mark(cluster: int) -> str:
    """The sign of a cluster: its color and shape; nothing for noise."""
    if cluster < 0:
        return ""
    shape = SHAPES[cluster // N_COLORS % len(SHAPES)]
    return (
        f'<svg class="mark c{cluster % N_COLORS}" viewBox="-1.3 -1.3 2.6 2.6" aria-hidden="true">'
        f'<path d="{shape}"/></svg>'
    )


def cell(result: Result, cluster: int) -> str:
    """A cluster in a table: its sign, number and name."""
    text = f"{mark(cluster)} {cluster_text(cluster)}"
    name = result.name_of(cluster)
    return f'<span class="named">{text} · {escape(name)}</span>' if name else text


def facts(result: Result) -> str:
    answer = result.answer
    values = {
        "points": f"{len(answer):,}",
        "clusters": str(result.n_clusters - len(result.retired)),
    }
    noise = int((answer.labels < 0).sum())
    if noise:
        values["points without a cluster"] = f"{noise:,}"
    if result.member_names:
        values["members"] = str(len(result.member_names))
    if result.stability:
        values["stable clusters"] = f"{n_stable(result.stability)} of {len(result.stability)}"
    if result.rounds and result.agreement is not None:
        before = f"{result.rounds[0].agreement:.2f}"
        values["agreement before and after training"] = f"{before} \u2192 {result.agreement:.2f}"
    elif result.agreement is not None:
        values["agreement"] = f"{result.agreement:.3f}"
    if answer.confidence is not None:
        values["mean confidence"] = f"{answer.confidence.mean():.3f}"
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in values.items())


def lead(result: Result) -> str:
    """A warning where nothing speaks for clusters, the answer in words, clusters that do not last.

    Empty if nothing is known of them.
    """
    html = ""
    if result.signs is not None and result.signs.of_one_group:
        html += f'<p class="lead warn">{escape(warning_of_one_group(result.signs))}</p>'
    if result.count is not None:
        text = sentence(result.count, result.answer.labels[result.count.sample])
        html += f'<p class="lead">{escape(text)} <a href="#count-head">The evidence</a></p>'
    if result.n_clusters > 1 and n_stable(result.stability) < len(result.stability):
        html += f'<p class="lead warn">{escape(stability_sentence(result.stability))}</p>'
    return html


def badge(verdict: str) -> str:
    """A verdict as a sign and a word.

    >>> badge("doubtful")
    '<span class="chip doubtful"><span aria-hidden="true">?</span> doubtful</span>'
    """
    known = verdict in SIGNS
    sign = f'<span aria-hidden="true">{SIGNS[verdict]}</span> ' if known else ""
    name = verdict.replace(" ", "-") if known else ""
    return f'<span class="{f"chip {name}".strip()}">{sign}{escape(verdict)}</span>'


def agreement(result: Result) -> str:
    """How well the members agree, over the rounds and in the best one; empty without rounds."""
    if result.best is None:
        return ""
    rounds = section(
        "rounds",
        "Agreement over the rounds",
        agreement_over_rounds(result.rounds, result.best_round),
    )
    members = section(
        "members",
        "Agreement of the members",
        agreement_of_members(result.best)
        + '<p class="note">NMI of every two members in the best round: 1 for the same clusters, '
        "0 for nothing in common.</p>",
    )
    return f'<div class="pair">{rounds}{members}</div>'


def agreement_over_rounds(rounds: Sequence[Round], best_round: int) -> str:
    """A line as SVG, and the same numbers as a table."""
    left, right, top, bottom = 34, 352, 12, 168
    last = max(len(rounds) - 1, 1)
    x = [left + (right - left - 12) * place / last + 6 for place in range(len(rounds))]
    y = [bottom - (bottom - top) * round_.agreement for round_ in rounds]
    lines = "".join(
        f'<path class="grid" d="M{left} {height}H{right}"/>'
        f'<text x="{left - 5}" y="{height + 3.5}" class="end">{value}</text>'
        for value in (0, 0.5, 1)
        for height in [bottom - (bottom - top) * value]
    )
    every = -(-len(rounds) // 12)
    numbers = "".join(
        f'<text x="{x[place]:.1f}" y="{bottom + 15}" class="mid">{round_.number}</text>'
        for place, round_ in enumerate(rounds)
        if place % every == 0
    )
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3"><title>round {round_.number}: {round_.agreement:.3f}</title>'
        "</circle>"
        for a, b, round_ in zip(x, y, rounds, strict=True)
    )
    best = rounds[best_round]
    text = (
        f"Agreement from {rounds[0].agreement:.2f} in round 0, before any training for it, to "
        f"{best.agreement:.2f} in round {best_round}, the best of {len(rounds)}. Members that were "
        "trained to agree do so on anything: it says nothing about how real clusters are."
    )
    rows = [
        [
            str(round_.number),
            f"{round_.agreement:.3f}",
            escape(", ".join(round_.member_names)),
            f"{sum(round_.seconds.values()):.1f}" if round_.seconds else "-",
        ]
        for round_ in rounds
    ]
    return (
        f'<svg class="chart" viewBox="0 0 360 200" role="img" aria-label="{text}">{lines}{numbers}'
        f'<text x="{(left + right) / 2}" y="197" class="mid">round</text><path class="line" d="{path}"/>{dots}'
        f'<circle class="ring" cx="{x[best_round]:.1f}" cy="{y[best_round]:.1f}" r="6.5"/></svg>'
        f"<p>{text}</p><details><summary>The rounds as a table</summary>"
        + table(["Round", "Agreement", "Members", "Seconds"], rows, "Agreement over the rounds")
        + "</details>"
    )


def agreement_of_members(best: Round) -> str:
    names = [escape(name) for name in best.member_names]
    rows = [
        [
            name,
            *(
                f'<span class="heat" style="--v:{value**2:.0%}">{value:.2f}</span>'
                for value in line
            ),
        ]
        for name, line in zip(names, best.agreement_matrix, strict=True)
    ]
    return table(["Member", *names], rows, f"NMI of every two members in round {best.number}")


def cluster_sizes(result: Result) -> str:
    labels, confidence = result.answer.labels, result.answer.confidence
    in_cluster = labels >= 0
    sizes = np.bincount(labels[in_cluster], minlength=result.n_clusters)
    heads = ["Cluster", '<span class="unseen">Bar</span>', "Points", "Share"]
    rows = [
        [
            cell(result, cluster),
            f'<span class="bar"><i class="c{cluster % N_COLORS}" '
            f'style="width:{size / max(sizes.max(), 1):.1%}"></i></span>',
            f"{size:,}",
            f"{size / len(labels):.1%}",
        ]
        for cluster, size in enumerate(sizes)
    ]
    live = [cluster for cluster in range(len(sizes)) if cluster not in result.retired]
    caption = "Sizes of the clusters"
    if confidence is not None:
        caption += " and mean confidence of their points"
        heads.append("Confidence")
        sums = np.bincount(labels[in_cluster], confidence[in_cluster], result.n_clusters)
        for row, total, size in zip(rows, sums, sizes, strict=True):
            row.append(f"{total / size:.3f}" if size else "-")
    stability = {each.cluster: each for each in result.stability}
    if not stability:
        return table(heads, [rows[cluster] for cluster in live], caption)
    heads.insert(
        1, '<span class="first">Stability</span>'
    )  # beside the name, so that a phone shows it
    for cluster, row in enumerate(rows):
        known = stability.get(cluster)
        text = "-" if known is None else f"{known.jaccard:.2f} {badge(known.verdict)}"
        row.insert(1, f'<span class="first">{text}</span>')
    note = (
        '<p class="note">Stability is the Jaccard similarity of a cluster with its most similar one '
        "when the data are drawn again: 1 for the same cluster.</p>"
    )
    return (
        table(heads, [rows[cluster] for cluster in live], f"{caption}, and how stable they are")
        + note
        + evidence(result, stability)
    )


def evidence(result: Result, stability: Mapping[int, ClusterStability]) -> str:
    """All that is known of whether each cluster is real."""
    rows = [
        [
            cell(result, cluster),
            f"{each.jaccard:.3f}",
            f"{each.reference:.3f}",
            f"{each.agreement:.3f}",
            f"{each.separation:.3f}",
        ]
        for cluster, each in sorted(stability.items())
    ]
    heads = ["Cluster", "Stability", "Without clusters", "Members agree", "Separation"]
    return (
        "<details><summary>Is each cluster real? The evidence</summary>"
        + table(heads, rows, "Evidence that each cluster is real")
        + "</details>"
    )


def plain(value: float) -> str:
    """Four digits, no more.

    >>> plain(1234.567), plain(0.000123456)
    ('1,235', '0.0001235')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def cluster_card(result: Result, cluster: int, size: int, content: str) -> str:
    """What is said of one cluster, under its name, with a verdict if it is not stable; "" if it is no more."""
    if cluster in result.retired:
        return ""
    points = "1 point" if size == 1 else f"{size:,} points"
    unstable = [
        each for each in result.stability if each.cluster == cluster and not n_stable([each])
    ]
    warning = "".join(f" {badge(each.verdict)}" for each in unstable if size)
    name = result.name_of(cluster)
    title = f"{cluster} · {escape(name)}" if name else f"Cluster {cluster}"
    return (
        f'<article class="card"><h3>{mark(cluster)} {title} <small>{points}</small>'
        f"{warning}</h3>"
        f"{content if size else '<p>No point has this label.</p>'}</article>"
    )


def by_features(profiles: Differences, names: Sequence[str], result: Result) -> str:
    """For each cluster the columns in which it is furthest from all points."""
    cards = []
    widest = max(1.0, float(np.abs(profiles.standardized).max()))
    for cluster, line in enumerate(profiles.standardized):
        top = [
            column
            for column in np.argsort(-np.abs(line), kind="stable")[:MOST_FEATURES]
            if line[column] != 0
        ]
        rows = [
            [
                escape(names[column]),
                f'<span class="swing"><i class="{"up" if line[column] > 0 else "down"}" '
                f'style="--v:{abs(line[column]) / widest * 50:.1f}%"></i></span>',
                f"{line[column]:+.2f}",
                plain(profiles.cluster_means[cluster, column]),
                plain(profiles.means[column]),
            ]
            for column in top
        ]
        heads = ["Column", '<span class="unseen">Bar</span>', "Difference", "Here", "All"]
        text = (
            table(heads, rows, f"Columns in which cluster {cluster} differs most")
            if rows
            else "<p>In no column does its mean differ from that of all points.</p>"
        )
        size = int(profiles.sizes[cluster])
        cards.append(cluster_card(result, cluster, size, text))
    return "".join(cards)


def picture(image: np.ndarray, profiles: Differences, text: str) -> str:
    data = base64.b64encode(as_png(image, profiles.lowest, profiles.highest)).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(text)}" title="{escape(text)}">'


def by_images(
    profiles: Differences,
    source: RowSource,
    result: Result,
    shape: tuple[int, int],
    name_of: Callable[[int], str],
) -> str:
    """For each cluster its mean image and the points nearest to its center."""
    cards = []
    answer = result.answer
    for cluster, size in enumerate(profiles.sizes):
        if not size:
            cards.append(cluster_card(result, cluster, 0, ""))
            continue
        near = nearest_to_center(answer.Z, np.flatnonzero(answer.labels == cluster))
        images = source.read(near).reshape(-1, *shape)
        mean = picture(
            profiles.cluster_means[cluster].reshape(shape),
            profiles,
            f"Mean image of cluster {cluster}",
        )
        others = "".join(
            picture(image, profiles, f"{name_of(row)}, near the center of cluster {cluster}")
            for row, image in zip(near, images, strict=True)
        )
        content = f'<div class="images"><span class="mean">{mean}</span>{others}</div>'
        cards.append(cluster_card(result, cluster, int(size), content))
    return "".join(cards)


def least_certain(
    result: Result, name_of: Callable[[int], str], place_of: Callable[[int], int]
) -> str:
    """The points of lowest confidence, with what each member says; empty without confidence.

    ``place_of`` gives the place of a row in the scatter plot, -1 where it has none.
    """
    answer = result.answer
    if answer.confidence is None:
        return ""
    rows = []
    for row in np.argsort(answer.confidence, kind="stable")[:LEAST_CERTAIN]:
        name, place, label = escape(name_of(row)), place_of(row), int(answer.labels[row])
        button = (
            f'<button type="button" class="go" data-point="{place}" title="Show in the plot">'
            f"{name}</button>"
        )
        by_member = [] if answer.members is None else answer.members[:, row].tolist()
        rows.append(
            [
                button if place >= 0 else name,
                cell(result, label),
                f"{answer.confidence[row]:.3f}",
                *(
                    cluster_text(other)
                    if other == label
                    else f"<strong>{cluster_text(other)}</strong>"
                    for other in by_member
                ),
            ]
        )
    named = '<span class="first">Cluster</span>' if any(result.names) else "Cluster"
    heads = ["Point", named, "Confidence", *(escape(name) for name in result.member_names)]
    if result.member_names:
        note = (
            "Confidence is how well the members agree with the label of a point; it is 1 where all "
            "are sure. The cluster that each member puts the point in is bold where it differs."
        )
        caption = "The least certain points, and their cluster by each member"
    else:
        note = "Confidence is the probability that the model gives to the cluster of a point."
        caption = "The least certain points"
    content = f'<p class="note">{note}</p>{table(heads, rows, caption)}'
    return section("uncertain", "The least certain points", content)


def cluster_text(label: int) -> str:
    return "none" if label < 0 else str(label)


SESSION = ("callbacks", "checkpoint", "verbose")  # parameters that say nothing about the result


def settings(model: Any) -> str:
    """The parameters of the model, those set by the user first, and the versions of the libraries."""
    values = {
        name: short(value)
        for name, value in model.get_params(deep=True).items()
        if name not in SESSION
    }
    defaults = {name: short(value) for name, value in defaults_of(model).items()}
    changed = {name for name, text in values.items() if text != defaults.get(name, text)}
    rows = [
        [
            escape(name.replace("__", ".")),
            f"<code>{escape(values[name])}</code>",
            "set" if name in changed else "default",
        ]
        for name in sorted(values, key=lambda name: name not in changed)
        if not hasattr(getattr(model, name, None), "get_params")  # their settings have rows
    ]
    label_source = getattr(model, "label_source_", None)
    source = "" if label_source is None else f"<p>Labels from: {escape(str(label_source))}.</p>"
    return (
        source
        + candidates(model)
        + "<details><summary>All settings</summary>"
        + table(["Setting", "Value", "Given"], rows, "Settings of the model")
        + '</details><p class="versions">'
        + ", ".join(f"{name} {escape(text)}" for name, text in versions().items())
        + "</p>"
    )


def candidates(model: Any) -> str:
    """What the result was chosen from, the most evidence first; nothing for a method that does not choose."""
    made = sorted(getattr(model, "candidates_", None) or [], key=lambda one: -one.evidence)
    if not made:
        return ""
    rows = [[escape(one.name), f"{one.evidence:.3f}"] for one in made]
    return (
        f"<details><summary>Chosen among {len(rows)} candidates</summary>"
        + table(["Candidate", "Evidence"], rows, "Candidates for the result")
        + "</details>"
    )


def defaults_of(model: Any) -> dict[str, Any]:
    """The defaults of the parameters, those of its settings by their nested names."""
    signature = inspect.signature(type(model).__init__).parameters
    defaults = {name: parameter.default for name, parameter in signature.items()}
    for name, value in model.get_params(deep=False).items():
        if hasattr(value, "get_params") and not isinstance(value, type):
            inner = defaults_of(value)
            defaults |= {f"{name}__{key}": default for key, default in inner.items()}
    return defaults


def short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else text[:199] + "…"
