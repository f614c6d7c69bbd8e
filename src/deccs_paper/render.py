"""Tables of results as Markdown, LaTeX and HTML, and the verdicts on the claims as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from deccs_paper.claims import Verdict
from deccs_paper.experiments import Experiment
from deccs_paper.results import BETTER, EQUAL, WORSE, Comparison, Result

Table = Mapping[tuple[str, str], Result]
SIGNS = {BETTER: "▲", EQUAL: "=", WORSE: "▼", "": ""}
OLD = "†"
CELLS = "Each cell: mean ± deviation of our runs, their number (n)"
BESIDE = (
    "and the paper's number, where it has one. ▲ better than the paper's, = equal within one deviation (the larger "
    "of ours and the paper's, at least 0.005), ▼ worse"
)
PLACES = "The best in a column is bold, the runner-up underlined or in italics."
TO_COME = "Pending: runs not made yet, with the expected time of one, its pretraining not included."
OLD_LEGEND = f"{OLD} runs from before the last change of the method; they will be repeated."
CLAIMS = "What Section VI claims"
NEWEST = f"Judged by the newest runs, including those marked {OLD} in the tables."
RUNNER_UP = "DECCS and the runner-up"
TEST = (
    "Welch's t-test, two-sided, between the runs of DECCS and those of the best other row. The same runs decide "
    "which row that is, so p is a little too small; with so few runs it is a hint, not a proof."
)


def legends(experiment: Experiment, table: Table) -> list[str]:
    """What readers need to know to understand this table."""
    printed = any(result.printed for result in table.values())
    pending = any(result.n_pending for result in table.values())
    return [
        " ".join(
            [
                f"{CELLS} {BESIDE}." if printed else f"{CELLS}.",
                PLACES,
                *([TO_COME] if pending else []),
            ]
        ),
        *[
            f"* {words}"
            for words in dict.fromkeys(result.part for result in table.values())
            if words
        ],
        *([OLD_LEGEND] if any(result.outdated for result in table.values()) else []),
        *([experiment.note] if experiment.note else []),
    ]


def heads(experiment: Experiment, table: Table) -> list[str]:
    """The data sets, with a star where only a part is available."""
    parts = {dataset for (_, dataset), result in table.items() if result.part}
    return [dataset.upper() + ("*" if dataset in parts else "") for dataset in experiment.datasets]


def leaders(experiment: Experiment, table: Table, dataset: str) -> dict[str, str]:
    """Row -> "best" or "second" by its rounded mean; equal means share a place."""
    means = {
        row.label: round(table[row.label, dataset].mean, 3)
        for row in experiment.rows
        if table[row.label, dataset].values
    }
    if len(means) < 2:
        return {}
    order = sorted(set(means.values()), reverse=True)[:2]
    return {
        label: ("best", "second")[order.index(mean)]
        for label, mean in means.items()
        if mean in order
    }


def markdown(experiment: Experiment, table: Table, tested: Sequence[Comparison] = ()) -> str:
    places = {dataset: leaders(experiment, table, dataset) for dataset in experiment.datasets}
    lines = [
        f"| {experiment.head} | " + " | ".join(heads(experiment, table)) + " |",
        "|---" * (len(experiment.datasets) + 1) + "|",
    ]
    for row in experiment.rows:
        texts = [
            markdown_cell(table[row.label, dataset], places[dataset].get(row.label, ""))
            for dataset in experiment.datasets
        ]
        lines.append("| " + " | ".join([markdown_escape(row.label), *texts]) + " |")
    notes = "\n\n".join(map(markdown_escape, legends(experiment, table)))
    test = [
        f"### {RUNNER_UP}",
        "",
        *(f"- {markdown_escape(str(line))}" for line in tested),
        "",
        TEST,
        "",
    ]
    return "\n".join(
        [f"## {experiment.title}", "", *lines, "", notes, "", *(test if tested else [])]
    )


def claims_markdown(verdicts: Sequence[Verdict]) -> str:
    lines = [f"## {CLAIMS}", "", NEWEST, ""]
    for verdict in verdicts:
        lines.append(
            f"- **{verdict.status}**: {markdown_escape(f'{verdict.claim} ({verdict.how})')}"
        )
        lines += [f"  - {markdown_escape(str(finding))}" for finding in verdict.findings]
    return "\n".join([*lines, ""])


def markdown_cell(result: Result, place: str) -> str:
    """A cell of a Markdown table.

    >>> markdown_cell(Result((0.8, 0.9), 0, 0, (0.82, 0.01)), "best")
    '**0.850 ± 0.050** (n 2, paper 0.82 ± 0.01 =)'
    """
    around = {"best": "**", "second": "_"}.get(place, "")
    number = f"{around}{markdown_escape(result.number)}{around}{OLD if result.outdated else ''}"
    words = beside(result)
    return f"{number} ({words})" if words else number


def beside(result: Result) -> str:
    """Runs, the paper's number and the mark."""
    paper = f"paper {result.paper} {SIGNS[result.mark]}".rstrip() if result.paper else ""
    return ", ".join(words for words in (result.runs, paper) if words)


def markdown_escape(text: str) -> str:
    """The text with Markdown's special characters escaped.

    >>> markdown_escape("a|b lambda_rec")
    'a\\\\|b lambda\\\\_rec'
    """
    return "".join(f"\\{character}" if character in "\\|*_`<" else character for character in text)


LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$",
    "†": r"$\dagger$",
}


def latex_escape(text: str) -> str:
    """The text with LaTeX's special characters escaped.

    >>> latex_escape("50 % & lambda_rec ± 1")
    '50 \\\\% \\\\& lambda\\\\_rec $\\\\pm$ 1'
    """
    return "".join(LATEX.get(character, character) for character in text)


def latex(experiment: Experiment, table: Table, tested: Sequence[Comparison] = ()) -> str:
    """A table* with booktabs; amssymb has the marks."""
    places = {dataset: leaders(experiment, table, dataset) for dataset in experiment.datasets}
    lines = [
        " & ".join(map(latex_escape, [experiment.head, *heads(experiment, table)])) + r" \\",
        r"\midrule",
    ]
    group = experiment.rows[0].group if experiment.rows else ""
    for row in experiment.rows:
        if row.group != group:
            lines.append(r"\midrule")
            group = row.group
        texts = [
            latex_cell(table[row.label, dataset], places[dataset].get(row.label, ""))
            for dataset in experiment.datasets
        ]
        lines.append(" & ".join([latex_escape(row.label), *texts]) + r" \\")
    below = [*legends(experiment, table), *(map(str, [*tested, TEST]) if tested else [])]
    notes = [rf"{latex_escape(words)}\par" for words in below]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs,amssymb,graphicx}",
            r"\begin{table*}",
            rf"\caption{{{latex_escape(experiment.title.split(': ')[-1])}}}",
            r"\centering",  # LaTeX numbers it
            r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",  # smaller, never larger
            rf"\begin{{tabular}}{{l{'c' * len(experiment.datasets)}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\par\smallskip\raggedright\footnotesize",
            *notes,
            r"\end{table*}",
            "",
        ]
    )


def latex_cell(result: Result, place: str) -> str:
    """The number, and the rest below it: eight columns must fit on a page."""
    command = {"best": r"\textbf", "second": r"\underline"}.get(place, "")
    number = latex_escape(result.number)
    number = (f"{command}{{{number}}}" if command else number) + (
        LATEX[OLD] if result.outdated else ""
    )
    return rf"\begin{{tabular}}{{@{{}}c@{{}}}}{number}\\[-3pt]{{\tiny {latex_escape(beside(result))}}}\end{{tabular}}"


def html(experiment: Experiment, table: Table, tested: Sequence[Comparison] = ()) -> str:
    places = {dataset: leaders(experiment, table, dataset) for dataset in experiment.datasets}
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads(experiment, table))
    body, group = [], experiment.rows[0].group if experiment.rows else ""
    for row in experiment.rows:
        line = ' class="group"' if row.group != group else ""
        group = row.group
        texts = "".join(
            html_cell(table[row.label, dataset], places[dataset].get(row.label, ""))
            for dataset in experiment.datasets
        )
        body.append(f'<tr{line}><th scope="row">{escape(row.label)}</th>{texts}</tr>')
    notes = "".join(f"<p class=note>{escape(words)}</p>" for words in legends(experiment, table))
    compared = "".join(f"<li>{escape(str(line))}</li>" for line in tested)
    test = f"<h3>{RUNNER_UP}</h3><ul>{compared}</ul><p class=note>{TEST}</p>" if tested else ""
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(experiment.title)}"><table>'
        f'<thead><tr><th scope="col">{escape(experiment.head)}</th>{columns}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>{notes}{test}"
    )


def html_cell(result: Result, place: str) -> str:
    """The number, and below it the runs and the paper's number with its mark."""
    tag = {"best": "b", "second": "u"}.get(place, "span")
    old = f'<abbr title="{escape(OLD_LEGEND)}">{OLD}</abbr>' if result.outdated else ""
    runs = f'<small class="runs">{escape(result.runs)}</small>' if result.runs else ""
    mark = (
        f' <i class="{result.mark}" title="{result.mark}">{SIGNS[result.mark]}</i>'
        if result.mark
        else ""
    )
    state = "" if result.values else ' class="none"'
    paper = f"<small>paper {escape(result.paper)}{mark}</small>" if result.paper else ""
    return f"<td{state}><{tag}>{escape(result.number)}</{tag}>{old} {runs}{paper}</td>"


FORMATS: dict[str, Callable[[Experiment, Table, Sequence[Comparison]], str]] = {
    "md": markdown,
    "tex": latex,
}
