"""One self-contained HTML page: tables, claims, figures and where the numbers come from."""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from deccs_paper import claims, render
from deccs_paper.claims import FAILS, HOLDS, PENDING, Verdict
from deccs_paper.experiments import TRAINING, Experiment
from deccs_paper.figures import FIGURES
from deccs_paper.grid import duration
from deccs_paper.results import Comparison, Results
from deccs_paper.settings import PAPER_TABLES


@dataclass(frozen=True)
class Drawn:
    """A figure on the page: the picture as PNG, or why there is none, and the claims it checks."""

    name: str
    png: bytes | None
    reason: str = ""
    failed: bool = False
    claims: Sequence[Mapping[str, Any]] = ()


@dataclass
class Page:
    """What the page shows."""

    results: Results
    tables: dict[str, tuple[Experiment, render.Table, list[Comparison]]] = field(
        default_factory=dict
    )
    verdicts: list[Verdict] = field(default_factory=list)
    figures: list[Drawn] = field(default_factory=list)

    def html(self) -> str:
        parts = [*self.table_parts(), *self.claim_part(), *self.figure_parts(), self.records_part()]
        links = "".join(
            f'<li><a href="#{key}">{escape(short(title))}</a></li>' for key, title, _ in parts
        )
        body = "".join(
            f'<section id="{key}"><h2>{escape(title)}</h2>{inner}</section>'
            for key, title, inner in parts
        )
        style = files("deccs_paper").joinpath("page.css").read_text()
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>DECCS: the paper rerun</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>'
            f"<body><h1>Deep Clustering With Consensus Representations, rerun</h1>"
            f"<p>Our numbers next to those of the paper, from records of single runs. {TRAINING}</p>"
            f"{self.facts()}"
            f'<nav aria-label="Parts"><ul>{links}</ul></nav><main>{body}</main></body></html>\n'
        )

    def facts(self) -> str:
        shown = [
            result
            for _, table, _ in self.tables.values()
            for result in table.values()
            if not result.reason
        ]
        marks = Counter(
            result.mark
            for name, (_, table, _) in self.tables.items()
            if name in PAPER_TABLES
            for result in table.values()
            if not result.outdated
        )
        verdicts = Counter(verdict.status for verdict in self.verdicts)
        facts = (
            {"cells with runs": f"{sum(bool(result.values) for result in shown)} of {len(shown)}"}
            if shown
            else {}
        )
        if shown:
            facts |= {
                "better, equal, worse than the paper": f"{marks['better']}, {marks['equal']}, {marks['worse']}",
                "runs failed": str(len(self.results.failed)),
            }
        if self.verdicts:
            facts["claims that hold, do not, pending"] = ", ".join(
                str(verdicts[status]) for status in (HOLDS, FAILS, PENDING)
            )
        cells = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in facts.items()
        )
        return f'<dl class="facts">{cells}</dl>'

    def table_parts(self) -> list[tuple[str, str, str]]:
        return [
            (key, experiment.title, render.html(experiment, table, tested))
            for key, (experiment, table, tested) in self.tables.items()
        ]

    def claim_part(self) -> list[tuple[str, str, str]]:
        if not self.verdicts:
            return []
        lines = "".join(
            f'<li><strong class="{verdict.status.replace(" ", "-")}">{escape(verdict.status)}</strong> '
            f"{escape(verdict.claim)} <span class=note>({escape(verdict.how)})</span><ul>"
            + "".join(f"<li>{escape(str(finding))}</li>" for finding in verdict.findings)
            + "</ul></li>"
            for verdict in self.verdicts
        )
        return [
            (
                "claims",
                render.CLAIMS,
                f'<p class=note>{render.NEWEST}</p><ol class="claims">{lines}</ol>',
            )
        ]

    def figure_parts(self) -> list[tuple[str, str, str]]:
        parts = []
        for drawn in self.figures:
            about = FIGURES[drawn.name]
            picture = f"<p class=note>{escape(drawn.reason)}</p>"
            if drawn.png is not None:
                source = base64.b64encode(drawn.png).decode()
                picture = f'<img alt="{escape(about.title)}" src="data:image/png;base64,{source}">'
            lines = "".join(
                f"<li>{escape(claims.word_for(claim['holds']))}: {escape(claim['claim'])} ({escape(claim['figures'])})"
                "</li>"
                for claim in drawn.claims
            )
            parts.append(
                (
                    drawn.name,
                    f"Figure {drawn.name.removeprefix('fig')}: {about.title}",
                    f"<figure>{picture}<figcaption>{escape(about.caption)}</figcaption></figure><ul>{lines}</ul>",
                )
            )
        return parts

    def records_part(self) -> tuple[str, str, str]:
        """Where the numbers come from, and which runs failed."""
        known = self.results.records
        seconds = sum(
            {
                (
                    record["experiment"],
                    record.get("started"),
                    record["dataset"],
                    record["repetition"],
                ): record.get("wall_seconds", 0.0)
                for record in known
            }.values()
        )
        machines = Counter(
            record["machine"]["processor"] for record in known if "machine" in record
        )
        codes = Counter(record["code"] for record in known if "code" in record)
        data: dict[str, set[str]] = defaultdict(set)
        for record in known:
            if "dataset_sha256" in record:
                data[record["dataset"]].add(record["dataset_sha256"][:12])
        lines = [
            f"{len(known)} records, {duration(seconds)} in all",
            "Processors: " + ", ".join(machines),
            "Code versions: " + ", ".join(codes),
            "Checksums of the data: "
            + ", ".join(f"{name} {' '.join(sorted(sums))}" for name, sums in data.items()),
        ]
        failed = [
            f"{record['experiment']}, {record['method']}, {record['dataset']}, repetition "
            f"{record['repetition']}: {record['error']}"
            for record in self.results.failed
        ]
        wrong = (
            "<h3>Failed runs</h3><ul>"
            + "".join(f"<li>{escape(line)}</li>" for line in failed)
            + "</ul>"
        )
        return (
            "records",
            "Records",
            "<ul>"
            + "".join(f"<li>{escape(line)}</li>" for line in lines)
            + "</ul>"
            + (wrong if failed else "<p>No run failed.</p>"),
        )


def short(title: str) -> str:
    return title.split(":")[0].split(",")[0]


def picture_of(out: Path, name: str) -> bytes | None:
    path = out / f"{name}.png"
    return path.read_bytes() if path.exists() else None
