"""The parts of the page that are plain HTML. Every string that came from outside passes ``escape``."""

from __future__ import annotations

import base64
import inspect
import platform
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import version
from typing import Any

import numpy as np

from deccs._version import __version__
from deccs.report.clusters import Differences, as_png, nearest_to_center
from deccs.report.points import Result
from deccs.rounds.records import Round

# Beyond eight clusters the colors begin anew in the next shape. Drawn in a box from -1.2 to 1.2.
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


def mark(cluster: int) -> str:
    """The sign of a cluster: its color and shape."""
    shape = SHAPES[cluster // N_COLORS % len(SHAPES)]
    return (
        f'<svg class="mark c{cluster % N_COLORS}" viewBox="-1.3 -1.3 2.6 2.6" aria-hidden="true">'
        f'<path d="{shape}"/></svg>'
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Cells are HTML; the first of a row names it."""
    top = "".join(f'<th scope="col">{head}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f'<caption class="unseen">{escape(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(result: Result, n_clusters: int) -> str:
    best = result.rounds[result.best_round]
    values = {
        "points": f"{len(result.labels):,}",
        "clusters": str(n_clusters),
        "members": str(len(best.member_names)),
        "agreement": f"{best.agreement:.3f}",
        "mean confidence": f"{result.confidence.mean():.3f}",
    }
    return "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in values.items())


def agreement_over_rounds(rounds: Sequence[Round], best_round: int) -> str:
    """A line as SVG, and the same numbers as a table."""
    left, right, top, bottom = 34, 352, 12, 168
    last = max(len(rounds) - 1, 1)
    x = [left + (right - left - 12) * place / last + 6 for place in range(len(rounds))]
    y = [bottom - (bottom - top) * this.agreement for this in rounds]
    lines = "".join(
        f'<path class="grid" d="M{left} {height}H{right}"/><text x="{left - 5}" y="{height + 3.5}" class="end">{value}'
        "</text>"
        for value in (0, 0.5, 1)
        for height in [bottom - (bottom - top) * value]
    )
    every = -(-len(rounds) // 12)
    numbers = "".join(
        f'<text x="{x[place]:.1f}" y="{bottom + 15}" class="mid">{this.number}</text>'
        for place, this in enumerate(rounds)
        if place % every == 0
    )
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3"><title>round {this.number}: {this.agreement:.3f}</title>'
        "</circle>"
        for a, b, this in zip(x, y, rounds, strict=True)
    )
    best = rounds[best_round]
    said = (
        f"Agreement from {rounds[0].agreement:.2f} in round 0 to {best.agreement:.2f} "
        f"in round {best_round}, the best of {len(rounds)}."
    )
    rows = [
        [
            str(this.number),
            f"{this.agreement:.3f}",
            escape(", ".join(this.member_names)),
            f"{sum(this.seconds.values()):.1f}" if this.seconds else "-",
        ]
        for this in rounds
    ]
    return (
        f'<svg class="chart" viewBox="0 0 360 200" role="img" aria-label="{said}">{lines}{numbers}'
        f'<text x="{(left + right) / 2}" y="197" class="mid">round</text><path class="line" d="{path}"/>{dots}'
        f'<circle class="ring" cx="{x[best_round]:.1f}" cy="{y[best_round]:.1f}" r="6.5"/></svg>'
        f"<p>{said}</p><details><summary>The rounds as a table</summary>"
        + table(
            ["Round", "Agreement", "Members in place", "Seconds"], rows, "Agreement over the rounds"
        )
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


def cluster_sizes(result: Result, n_clusters: int) -> str:
    sizes = np.bincount(result.labels, minlength=n_clusters)
    certain = np.bincount(result.labels, result.confidence, n_clusters) / np.maximum(sizes, 1)
    rows = [
        [
            f"{mark(cluster)} {cluster}",
            f'<span class="bar"><i class="c{cluster % N_COLORS}" style="width:{size / sizes.max():.1%}"></i></span>',
            f"{size:,}",
            f"{size / len(result.labels):.1%}",
            f"{sure:.3f}" if size else "-",
        ]
        for cluster, (size, sure) in enumerate(zip(sizes, certain, strict=True))
    ]
    return table(
        ["Cluster", '<span class="unseen">Bar</span>', "Points", "Share", "Confidence"],
        rows,
        "Sizes of the clusters and mean confidence of their points",
    )


def plain(value: float) -> str:
    """Four digits, no more.

    >>> plain(1234.567), plain(0.000123456)
    ('1,235', '0.0001235')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def cluster_card(cluster: int, size: int, content: str) -> str:
    points = "1 point" if size == 1 else f"{size:,} points"
    return (
        f'<article class="card"><h3>{mark(cluster)} Cluster {cluster} <small>{points}</small></h3>'
        f"{content if size else '<p>No point has this label.</p>'}</article>"
    )


def by_features(found: Differences, names: Sequence[str]) -> str:
    """For each cluster the columns in which it is furthest from all points."""
    cards = []
    widest = max(1.0, float(np.abs(found.standardized).max()))
    for cluster, line in enumerate(found.standardized):
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
                plain(found.cluster_means[cluster, column]),
                plain(found.means[column]),
            ]
            for column in top
        ]
        heads = ["Column", '<span class="unseen">Bar</span>', "Difference", "Here", "All"]
        text = (
            table(heads, rows, f"Columns in which cluster {cluster} differs most")
            if rows
            else "<p>In no column does its mean differ from that of all points.</p>"
        )
        cards.append(cluster_card(cluster, int(found.sizes[cluster]), text))
    return "".join(cards)


def picture(image: np.ndarray, found: Differences, text: str) -> str:
    data = base64.b64encode(as_png(image, found.lowest, found.highest)).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(text)}" title="{escape(text)}">'


def by_images(
    found: Differences, X: Any, result: Result, shape: tuple[int, int], names: Sequence[str]
) -> str:
    """For each cluster its mean image and the points nearest to its center."""
    cards = []
    for cluster, size in enumerate(found.sizes):
        if not size:
            cards.append(cluster_card(cluster, 0, ""))
            continue
        near = nearest_to_center(result.Z, np.flatnonzero(result.labels == cluster))
        block = X[near]
        images = np.asarray(block.toarray() if hasattr(block, "toarray") else block, float).reshape(
            -1, *shape
        )
        mean = picture(
            found.cluster_means[cluster].reshape(shape), found, f"Mean image of cluster {cluster}"
        )
        others = "".join(
            picture(image, found, f"{names[row]}, near the center of cluster {cluster}")
            for row, image in zip(near, images, strict=True)
        )
        cards.append(
            cluster_card(
                cluster,
                int(size),
                f'<div class="images"><span class="mean">{mean}</span>{others}</div>',
            )
        )
    return "".join(cards)


def least_certain(result: Result, names: Sequence[str], drawn: np.ndarray) -> str:
    """``drawn``: (n,), the place of each point in the scatter, -1 where it has none."""
    rows = []
    for row in np.argsort(result.confidence, kind="stable")[:LEAST_CERTAIN]:
        name = escape(names[row])
        go = f'<button type="button" class="go" data-point="{drawn[row]}" title="Show in the picture">{name}</button>'
        label = int(result.labels[row])
        rows.append(
            [
                go if drawn[row] >= 0 else name,
                f"{mark(label)} {label}",
                f"{result.confidence[row]:.3f}",
                *(
                    f"<strong>{said}</strong>" if said != label else str(said)
                    for said in result.members[:, row]
                ),
            ]
        )
    heads = ["Point", "Cluster", "Confidence", *(escape(name) for name in result.member_names)]
    return table(heads, rows, "The least certain points and what each member says of them")


def settings(model: Any) -> str:
    """The model's parameters, those set by the user first, and the versions of what made the report."""
    defaults = inspect.signature(type(model).__init__).parameters
    given = {name: short(value) for name, value in model.get_params(deep=False).items()}
    own = {
        name
        for name, value in given.items()
        if name in defaults and value != short(defaults[name].default)
    }
    rows = [
        [escape(name), f"<code>{escape(given[name])}</code>", "set" if name in own else "default"]
        for name in sorted(given, key=lambda name: name not in own)
    ]
    versions = {
        "deccs": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "scikit-learn", "numpy", "scipy")},
    }
    return (
        f"<p>Labels from: {escape(str(model.label_source_))}.</p>"
        "<details><summary>All settings</summary>"
        + table(["Setting", "Value", "Given"], rows, "Settings of the model")
        + '</details><p class="versions">'
        + ", ".join(f"{name} {escape(text)}" for name, text in versions.items())
        + "</p>"
    )


def short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else text[:199] + "…"
