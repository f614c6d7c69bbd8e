"""Tables as Markdown, LaTeX and HTML."""

import pytest

from deccs_paper import claims, render
from deccs_paper.experiments import Experiment, Row
from deccs_paper.results import Comparison, Result, Results
from tests.paper.made_up import made


def test_the_best_is_bold_and_the_runner_up_underlined():
    rows = tuple(Row(name, name) for name in ("DEC", "IDEC", "DCN", "VaDE"))
    there = [
        record
        for row, value in zip(rows, (0.5, 0.8, 0.7, 0.8), strict=True)
        for record in made(row, "usps", [value])
    ]
    experiment = Experiment("T", rows, ("usps",))
    table = Results(there).table("", experiment)
    assert render.leaders(experiment, table, "usps") == {
        "IDEC": "best",
        "VaDE": "best",
        "DCN": "second",
    }
    text = render.markdown(experiment, table)
    assert "| IDEC | **0.800** (n 1, " in text and "| DCN | _0.700_ (" in text


def test_a_table_explains_only_what_it_shows():
    experiment = Experiment("T", (Row("DEC", "DEC"),), ("usps",))

    def text(result):
        return render.markdown(experiment, {("DEC", "usps"): result})

    plain, printed = text(Result((0.5,), 0, 0)), text(Result((0.5,), 0, 0, (0.6, 0.1)))
    assert "paper" not in plain and "Pending" not in plain
    assert (
        "(n 1, paper 0.60 ± 0.10 =)" in printed
        and "the paper's number, where it has one" in printed
    )
    assert "Pending: " in text(Result((), 0, 1))


NASTY = "a|b & 50 % <script>alert(1)</script> _x_ {y} \\z"


def nasty_table():
    row = Row(NASTY, "DEC")
    experiment = Experiment("T", (row,), ("usps",), note=NASTY)
    tested = [Comparison("usps", (0.9, 0.8), NASTY, (0.5,), None)]
    return experiment, Results(made(row, "usps", [0.5])).table("", experiment), tested


def test_nothing_gets_out_of_its_cell():
    text = render.markdown(*nasty_table()).splitlines()
    row = next(line for line in text if "alert" in line)
    assert row.replace("\\|", "").count("|") == 3
    assert "<script>" not in row.replace("\\<", "")
    line = next(
        line for line in render.latex(*nasty_table()).splitlines() if line.startswith("a|b")
    )
    tag, end = r"\textless{}script\textgreater{}", r"\textless{}/script\textgreater{}"
    assert line.startswith(rf"a|b \& 50 \% {tag}alert(1){end} \_x\_ \{{y\}} \textbackslash{{}}z & ")
    assert "<script>" not in render.html(*nasty_table())
    verdicts = [claims.Verdict("Less is more", "by mean NMI", [claims.Finding(NASTY, True, "0.5")])]
    assert (
        "- **holds**: Less is more (by mean NMI)\n  - a\\|b & 50 % \\<script"
        in render.claims_markdown(verdicts)
    )


@pytest.mark.parametrize("form", [render.markdown, render.latex, render.html])
def test_every_form_of_a_table_has_the_test(form):
    experiment, table, tested = nasty_table()
    gap, method = "difference +0.350, no test", "t-test, two-sided"
    assert gap in form(experiment, table, tested) and method in form(experiment, table, tested)
    assert gap not in form(experiment, table) and method not in form(experiment, table)
