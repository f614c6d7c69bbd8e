"""Cells of the tables, worked out by hand."""

import pytest

from deccs_paper import render
from deccs_paper.experiments import DECCS_ROW, TABLES, Cell, Experiment, Row
from deccs_paper.results import Comparison, Result, Results, chosen_by_truth, comparisons, welch
from deccs_paper.settings import METHODS
from tests.paper.made_up import failed, made


def test_records_of_an_older_recipe_are_shown_and_repeated():
    old = made(DECCS_ROW, "usps", [0.9, 0.8], recipe=METHODS["DECCS"].recipe - 1)
    cell = Cell(DECCS_ROW, "usps", 1)
    result = Results(old).result(cell, "nmi", ())
    assert (result.values, result.outdated, result.n_pending) == ((0.9, 0.8), True, 1)
    new = made(DECCS_ROW, "usps", [0.7])
    result = Results(old + new).result(cell, "nmi", ())
    assert (result.values, result.outdated, result.n_pending) == ((0.7,), False, 0)


@pytest.mark.parametrize(
    ("values", "printed", "mark"),
    [
        ((0.80, 0.90), (0.82, 0.01), "equal"),  # 0.85, deviation 0.05: 0.03 apart
        ((0.84, 0.86), (0.82, 0.02), "better"),  # 0.03 apart, deviations 0.01 and 0.02
        ((0.80,), (0.82, 0.02), "equal"),  # just one deviation
        ((0.79,), (0.82, 0.02), "worse"),
        ((0.754,), (0.75, 0.0), "equal"),  # the paper has two digits
        ((0.756,), (0.75, 0.0), "better"),
        ((0.73,), (0.74,), "worse"),  # the paper has no deviation
        ((), (0.74,), ""),
        ((0.5,), (), ""),
    ],
)
def test_marks_by_hand(values, printed, mark):
    assert Result(values, 0, 0, printed).mark == mark


def test_a_part_of_kmnist_is_not_compared():
    row = Row("DEC", "DEC")
    result = Results(made(row, "kmnist", [0.9], n=16_284)).result(
        Cell(row, "kmnist", 1), "nmi", (0.5, 0.01)
    )
    assert (result.number, result.mark) == ("0.900", "")
    table = {("DEC", "kmnist"): result}
    assert "16,284 of its 70,000" in render.markdown(Experiment("T", (row,), ("kmnist",)), table)


def test_failed_runs_are_shown_and_not_averaged():
    row = Row("DEC", "DEC")
    ok = made(row, "usps", [0.6, 0.8])
    found = [
        *ok,
        failed(ok[0]) | {"repetition": 2},
        failed(ok[0]) | {"repetition": 3, "status": "stopped"},
    ]
    result = Results(found).result(Cell(row, "usps", 4), "nmi", ())
    assert result.mean == pytest.approx(0.7)
    assert (result.number, result.runs) == ("0.700 ± 0.100", "2 ok of 3, 1 pending (1.5 min each)")
    none = Results([failed(ok[0])]).result(Cell(row, "usps", 1), "nmi", ())
    assert (none.number, none.runs) == ("failed", "0 ok of 1")


def test_runs_on_a_part_of_the_data_are_not_mixed_with_those_on_all():
    row, other = Row("DEC", "DEC"), Row("DCN", "DCN")
    part, whole = (
        made(row, "kmnist", [0.9, 0.9], n=16_284) + made(other, "kmnist", [0.8], n=16_284),
        70_000,
    )
    assert "16,284 of its 70,000" in Results(part).part("kmnist")
    found = Results(part + made(row, "kmnist", [0.5], n=whole))
    assert (found.scores(row, "kmnist"), found.scores(other, "kmnist"), found.part("kmnist")) == (
        [0.5],
        [],
        "",
    )


def test_the_newest_run_tells_the_number_of_points_whatever_file_it_is_in():
    row = Row("DEC", "DEC")
    whole = made(row, "kmnist", [0.5], n=70_000, started="2026-02-01")
    part = made(row, "kmnist", [0.9], n=16_284, started="2026-01-01")
    assert Results(whole + part).scores(row, "kmnist") == [0.5]


def test_a_success_is_not_hidden_by_a_later_failure():
    row = Row("DEC", "DEC")
    ok = made(row, "usps", [0.6, 0.8], started="2026-01-01")
    later = failed(ok[0]) | {"started": "2026-01-02"}
    assert Results([*ok, later]).scores(row, "usps") == [0.6, 0.8]
    assert Results([*ok, later]).failed == []
    newer = made(row, "usps", [0.7], started="2026-01-03")
    assert Results([*newer, *ok]).scores(row, "usps") == [
        0.7,
        0.8,
    ]  # by time, not by the order of files


def test_no_cell_is_empty_without_a_reason():
    results = Results(made(Row("DEC", "DEC"), "usps", [0.8]))
    for name, experiment in TABLES.items():
        for (label, dataset), result in results.table(name, experiment).items():
            assert result.number and (result.runs or result.reason), (name, label, dataset)
    table = results.table("table2", TABLES["table2"])
    assert table["ConCURL", "mice"].number == "n.a. (needs images)"
    assert (table["DECCS", "usps"].number, table["DECCS", "usps"].runs) == (
        "pending",
        "5 runs, time not known",
    )
    assert table["DEC", "usps"].runs == "n 1, 2 pending (1.5 min each)"
    assert (table["IEC", "mice"].paper, table["IEC", "mnist"].paper) == ("", "0.54")


def test_what_the_truth_would_have_chosen():
    def tried(q, values):
        return [
            record
            | {"experiment": "rp-oracle", "settings": {"n_components": q, "n_projections": 4}}
            for record in made(Row("RP+EM", "RP+EM"), "mice", values)
        ]

    assert chosen_by_truth(tried(5, [0.3, 0.4]) + tried(10, [0.5, 0.4])) == [
        "RP+EM on MICE 0.45 (n_components=10, n_projections=4, n 2)"
    ]
    assert chosen_by_truth(made(Row("RP+EM", "RP+EM"), "mice", [0.5])) == []


def test_welch_by_hand():
    # means 2 and 5, variances 1 and 1, n 3 each: t = -3 / sqrt(2 / 3), 4 degrees of freedom
    assert welch((1, 2, 3), (4, 5, 6)) == pytest.approx(0.02131, abs=1e-5)
    assert welch((1.0, 1.0), (2.0, 2.0)) is None


def test_deccs_is_compared_with_the_best_other():
    rows = (
        DECCS_ROW,
        Row("DEC", "DEC"),
        Row("DCN", "DCN"),
        Row("DECCS without reconstruction", "DECCS", {"rounds__lambda_rec": 0.0}),
    )
    there = (
        made(rows[0], "usps", [0.9, 0.8])
        + made(rows[1], "usps", [0.5, 0.6])
        + made(rows[2], "usps", [0.7])
        + made(rows[3], "usps", [0.95, 0.96])
    )  # is DECCS, too
    experiment = Experiment("T", rows, ("usps", "mice"))
    (found,) = comparisons(experiment, Results(there).table("", experiment))
    assert found == Comparison("usps", (0.9, 0.8), "DCN", (0.7,), None)
    assert "difference +0.150, no test: it needs two different runs of both" in str(found)
