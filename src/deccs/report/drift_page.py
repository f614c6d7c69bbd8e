"""Drift as one HTML file that needs nothing else: of one file, or of all files over time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from deccs.describing import words
from deccs.report.markup import section, table
from deccs.report.page import fill, part
from deccs.storage.atomic import write_text
from deccs.watching.drift import ClusterDrift, ColumnDrift, Drift
from deccs.watching.history import Entry

MOST_PICTURES = 12
MOST_ROWS = 200  # of a table
MOST_LINES = 8  # clusters with a line of their own: more cannot be told apart
MOST_LETTERS = 40
WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 640, 220, 46, 630, 12, 190  # of a chart, in its own units

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{title}}</title>
<link rel="icon" href="data:,">
<style>{{style}}
.then { fill: var(--none); } .now { fill: var(--accent); }
.axis { stroke: var(--edge); } .expected { stroke: var(--bad); stroke-dasharray: 5 4; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
svg.chart { display: block; width: 100%; max-width: 44rem; height: auto; }
polyline { fill: none; stroke-width: 2.5; }
.l0 { stroke: var(--c0); } .l1 { stroke: var(--c1); } .l2 { stroke: var(--c2); } .l3 { stroke: var(--c3); }
.l4 { stroke: var(--c4); } .l5 { stroke: var(--c5); } .l6 { stroke: var(--c6); } .l7 { stroke: var(--c7); }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .35em 0 .9em; border-radius: 2px; }
.key.then { background: var(--none); } .key.now { background: var(--accent); }
</style>
</head>
<body>
<header><h1>{{title}}</h1></header>
<main>
{{content}}
</main>
</body>
</html>
"""


def write_drift_page(drift: Drift, path: str | os.PathLike[str], title: str) -> None:
    """Write what has changed in one file."""
    facts = [
        ("Rows", f"{drift.n_rows:,}"),
        ("Columns that moved", str(len(drift.moved))),
        ("Rows in other clusters", f"{drift.cluster_effect:.0%}"),
    ]
    if drift.rejected is not None:
        expected = f" <small>{drift.rejected.expected:.1%} expected</small>"
        facts.insert(1, ("Unlike the fit", f"{drift.rejected.share:.1%}{expected}"))
    write_page(
        path,
        title,
        [
            lead(drift.is_drift, drift.line()),
            facts_list(facts),
            clusters_of(drift),
            columns_of(drift),
        ],
    )


def write_history_page(entries: Sequence[Entry], path: str | os.PathLike[str], title: str) -> None:
    """Write what has changed from file to file."""
    n_drifts = sum(entry.is_drift for entry in entries)
    facts = [("Files", str(len(entries))), ("With drift", str(n_drifts))]
    latest = entries[-1].summary if entries else "No file was compared yet."
    parts = [lead(bool(entries) and entries[-1].is_drift, latest), facts_list(facts)]
    rejected = [entry.rejected for entry in entries]
    known = [share for share in rejected if share is not None]
    if known:
        expected = next(e.expected for e in entries if e.expected is not None)
        chart = lines_chart({"unlike the fit": rejected}, entries, "Rows unlike the fit", expected)
        parts.append(section("rejected", "Rows unlike any of the fit", chart))
    if entries:
        parts.append(section("sizes", "Shares of the clusters", cluster_lines(entries)))
        parts.append(section("files", "Files", files_table(entries)))
    write_page(path, title, parts)


def write_page(path: str | os.PathLike[str], title: str, parts: Iterable[str]) -> None:
    filled = {"title": escape(title), "style": part("page.css"), "content": "\n".join(parts)}
    write_text(path, fill(PAGE, filled))


def plain(name: str) -> str:
    """A name out of a file, as HTML.

    >>> plain("<b>")
    '&lt;b&gt;'
    """
    return escape(words.plain(name, MOST_LETTERS))


def lead(is_drift: bool, line: str) -> str:
    return f'<p class="lead{" warn" if is_drift else ""}">{escape(words.plain(line, 1_000))}</p>'


def facts_list(facts: Iterable[tuple[str, str]]) -> str:
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{items}</dl>'


def clusters_of(drift: Drift) -> str:
    """The clusters as a picture and a table."""
    bins = [(each.name, each.then, each.now) for each in drift.clusters[:MOST_ROWS]]
    note = (
        f'<p class="note">{drift.cluster_effect:.0%} of the rows would have to be in another cluster; '
        f"p = {drift.cluster_p:.2g}.</p>"
    )
    rows = [cluster_row(each) for each in drift.clusters[:MOST_ROWS]]
    heads = ["cluster", "in the fit", "now", "difference"]
    content = legend() + bars(bins[:16], "Shares of the clusters") + note
    return section("clusters", "Clusters", content + table(heads, rows, "Shares of the clusters"))


def cluster_row(each: ClusterDrift) -> list[str]:
    shares = f"{each.then:.1%}", f"{each.now:.1%}", f"{100 * (each.now - each.then):+.1f} points"
    return [plain(each.name), *shares]


def columns_of(drift: Drift) -> str:
    """Pictures of the columns that moved most, and all columns as a table."""
    if not drift.columns:
        return section(
            "columns", "Columns", "<p>The model does not know what the columns were like.</p>"
        )
    pictures = "".join(
        f'<div class="card"><h3>{plain(column.name)}</h3>{bars(column.bins, column.name)}</div>'
        for column in drift.moved[:MOST_PICTURES]
        if column.bins
    )
    rows = [column_row(column) for column in drift.columns[:MOST_ROWS]]
    heads = ["column", "what", "moved", "effect", "p", "in the fit", "now"]
    note = (
        '<p class="note">Effect: the largest difference of cumulative shares, or the share of rows with another '
        "value. It does not grow with the number of rows. p is corrected for the number of columns.</p>"
    )
    shown = f'{legend()}<div class="cards">{pictures}</div>' if pictures else ""
    return section("columns", "Columns", shown + note + table(heads, rows, "All columns"))


def column_row(column: ColumnDrift) -> list[str]:
    return [
        plain(column.name),
        "gaps" if column.what == "missing" else "values",
        "yes" if column.has_moved else "no",
        f"{column.effect:.2f}",
        f"{column.p:.2g}",
        plain(column.then),
        plain(column.now),
    ]


def legend() -> str:
    return '<p><span class="key then"></span>in the fit<span class="key now"></span>now</p>'


def bars(bins: Sequence[tuple[str, float, float]], name: str) -> str:
    """Two bars for each bin, one above the other."""
    most = max((max(then, now) for _, then, now in bins), default=0) or 1
    lines = []
    for place, (label, then, now) in enumerate(bins):
        top = 34 * place
        lines.append(f'<text x="0" y="{top + 19}">{plain(label)}</text>')
        for row, (kind, share) in enumerate((("then", then), ("now", now))):
            size = 250 * share / most
            y = top + 5 + 12 * row
            lines.append(
                f'<rect class="{kind}" x="160" y="{y}" width="{size:.1f}" height="10"/>'
                f'<text x="{164 + size:.1f}" y="{y + 9}">{share:.0%}</text>'
            )
    return (
        f'<svg class="chart" viewBox="0 0 460 {34 * len(bins)}" role="img" aria-label="{plain(name)}">'
        f"{''.join(lines)}</svg>"
    )


def cluster_lines(entries: Sequence[Entry]) -> str:
    """A line for each of the largest clusters; the first point is the fit."""
    sizes: dict[int, float] = {}
    names: dict[int, str] = {}
    for entry in entries:
        for cluster, name, then, now in entry.clusters:
            names[cluster] = name
            sizes[cluster] = max(sizes.get(cluster, 0), then, now)
    largest = sorted(sizes, key=lambda cluster: (-sizes[cluster], cluster))[:MOST_LINES]
    lines = {
        names[cluster]: [
            next((now for number, _, _, now in entry.clusters if number == cluster), 0.0)
            for entry in entries
        ]
        for cluster in sorted(largest)
    }
    return lines_chart(lines, entries, "Shares of the clusters")


def lines_chart(
    lines: Mapping[str, Sequence[float | None]],
    entries: Sequence[Entry],
    label: str,
    expected: float | None = None,
) -> str:
    """Shares over files, from 0 up; files are evenly spaced, in the order they came."""
    shares = [share for line in lines.values() for share in line if share is not None]
    most = max([*shares, expected or 0.0, 0.01]) * 1.08
    last = max(len(entries) - 1, 1)

    def point(place: int, share: float) -> str:
        x = LEFT + (RIGHT - LEFT) * place / last
        return f"{x:.1f},{BOTTOM - (BOTTOM - TOP) * share / most:.1f}"

    drawn = [
        f'<line class="axis" x1="{LEFT}" y1="{BOTTOM}" x2="{RIGHT}" y2="{BOTTOM}"/>',
        f'<text x="0" y="{TOP + 10}">{most:.1%}</text><text x="0" y="{BOTTOM}">0 %</text>',
        f'<text x="{LEFT}" y="{HIGH - 8}">{plain(entries[0].file)}</text>',
    ]
    if len(entries) > 1:
        drawn.append(
            f'<text x="{RIGHT}" y="{HIGH - 8}" text-anchor="end">{plain(entries[-1].file)}</text>'
        )
    if expected is not None:
        ends = [point(place, expected).split(",") for place in (0, last)]
        drawn.append(
            f'<line class="expected" x1="{ends[0][0]}" y1="{ends[0][1]}" x2="{ends[1][0]}" y2="{ends[1][1]}"/>'
        )
    for number, line in enumerate(lines.values()):
        points = [point(place, share) for place, share in enumerate(line) if share is not None]
        drawn.append(f'<polyline class="l{number}" points="{" ".join(points)}"/>')
        for each in points:
            x, y = each.split(",")
            drawn.append(f'<circle class="c{number}" cx="{x}" cy="{y}" r="3.5"/>')
    keys = "".join(
        f'<span class="key c{number}"></span>{plain(name)}' for number, name in enumerate(lines)
    )
    note = " Dashed: the share expected." if expected is not None else ""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{plain(label)}">'
        f'{"".join(drawn)}</svg><p class="note">{keys}{note}</p>'
    )


def files_table(entries: Sequence[Entry]) -> str:
    rows = [
        [
            plain(entry.file),
            plain(entry.time),
            f"{entry.n_rows:,}",
            "" if entry.rejected is None else f"{entry.rejected:.1%}",
            plain(", ".join(name for name, *_ in entry.moved) or "none"),
            "drift" if entry.is_drift else "no drift",
        ]
        for entry in entries[-MOST_ROWS:]
    ]
    heads = ["file", "compared", "rows", "unlike the fit", "columns that moved", "verdict"]
    return table(heads, rows, "Files")
