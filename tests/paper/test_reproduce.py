"""``deccs reproduce``: experiments as data, runs that survive a kill, marks, tables and claims worked out by hand."""

import json
import os
import random
import re
import shutil
import subprocess
import time
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import version
from io import StringIO
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from deccs.app.cli import app
from deccs.datasets.store import DatasetError
from deccs_paper import claims, grid, records, render, reproduce, runner
from deccs_paper.experiments import (
    ALL,
    DECCS_ROW,
    EXPERIMENTS,
    LAMBDA_ROWS,
    TABLES,
    Cell,
    Experiment,
    Row,
    ablation,
    cells,
    narrowed,
    runs_of,
    seeds_for,
)
from deccs_paper.figures import FIGURES as DRAWINGS
from deccs_paper.processes import Workers
from deccs_paper.results import Comparison, Result, Results, chosen_by_truth, comparisons, welch
from deccs_paper.runner import Run
from deccs_paper.settings import METHODS, PAPER_TABLES, RECIPE

QUIET = Console(quiet=True)


def made(row, dataset, values, *, recipe=RECIPE, **more):
    """Records of runs that ended well, with these scores."""
    cell = Cell(row, dataset, len(values))
    return [
        {
            "experiment": cell.experiment,
            "method": row.method,
            "dataset": dataset,
            "repetition": repetition,
            "recipe": recipe,
            "status": "ok",
            "scores": dict.fromkeys(("nmi", "ari", "accuracy"), value),
            "wall_seconds": 90.0,
            **more,
        }
        for repetition, value in enumerate(values)
    ]


def failed(record):
    return {name: value for name, value in record.items() if name != "scores"} | {
        "status": "failed",
        "error": "ValueError: <b>no</b>",
    }


# The paper's numbers and experiments


@pytest.mark.parametrize(
    ("table", "row", "dataset", "printed"),
    [  # read off deccs.tex
        ("table1", "cons", "synth", [0.17, 0.21]),
        ("table1", "CE", "mnist", [0.81, 0.04]),
        ("table1", "cons + rec", "pendigits", [0.74, 0.02]),
        ("table1", "cons + CE", "kmnist", [0.60, 0.01]),
        ("table1", "cons + CE + rec", "usps", [0.85, 0.01]),
        ("table1", "rec", "har", [0.55, 0.05]),
        ("table1", "CE + rec", "mice", [0.43, 0.04]),
        ("table2", "AE+RP+EM", "mice", [0.51, 0.04]),
        ("table2", "ConCURL", "usps", [0.49, 0.02]),
        ("table2", "IEC", "mnist", [0.54]),
        ("table3", "DECCS without reconstruction", "synth", [1.00, 0.01]),
        ("table3", "SpectralNet", "mnist", [0.93, 0.00]),
        ("study-sample-size", "0.02", "mnist", [0.87]),
    ],
)
def test_the_papers_printed_numbers(table, row, dataset, printed):
    assert PAPER_TABLES[table][row][dataset] == printed


def test_tables_have_the_papers_rows():
    assert [len(TABLES[name].rows) for name in ("table1", "table2", "table3")] == [7, 26, 25]
    for name, rows in PAPER_TABLES.items():
        assert list(rows) == [row.label for row in TABLES[name].rows]
    # All of the full method is the same runs, and Table I is the method itself where nothing is off.
    assert PAPER_TABLES["table1"]["cons + CE + rec"] == PAPER_TABLES["table2"]["DECCS"]
    assert ablation("cons + CE + rec").changes == {}
    assert ablation("CE").changes == {"lambda_cons": 0.0, "lambda_rec": 0.0}


def test_the_same_run_has_one_place_in_all_experiments():
    """lambda_cons = 0.1 is what images have anyway; 10 is what the UCI sets have."""
    low, high = LAMBDA_ROWS[0][0], LAMBDA_ROWS[0][2]
    assert (
        Cell(low, "usps", 1).experiment
        == Cell(ablation("cons + CE"), "usps", 1).experiment
        == "lambda_rec=0"
    )
    assert Cell(high, "pendigits", 1).experiment == "lambda_rec=0"
    assert Cell(low, "pendigits", 1).experiment == "lambda_cons=0.1, lambda_rec=0"
    assert Cell(LAMBDA_ROWS[1][0], "mnist", 1).experiment == "default"
    table2, table3 = (
        {
            (run.experiment, run.method, run.dataset, run.repetition)
            for run in runs_of({"": TABLES[name]})
        }
        for name in ("table2", "table3")
    )
    assert table3 - table2 == {
        ("lambda_rec=0", "DECCS", name, repetition)
        for name in ALL
        for repetition in range(5)
        if repetition == 0 or name not in ("mnist", "fmnist", "kmnist")
    }


def test_every_experiment_can_be_built():
    for run in grid.missing(runs_of(EXPERIMENTS, n_seeds=1), grid.Known([])):
        assert run.estimator()
    assert set(DRAWINGS) <= set(EXPERIMENTS)


def test_the_tripled_ensemble_has_twelve_members():
    (cell,) = cells(narrowed(TABLES["study-ensemble-size"], ["usps"], ["12 members"]), 1)
    (run,) = cell.runs()
    assert len(run.estimator().members) == 12
    assert len({name for name, _ in run.estimator().members}) == 12


def test_seeds_are_more_where_runs_are_short():
    assert [seeds_for(DECCS_ROW, name) for name in ("usps", "mnist")] == [5, 3]
    assert [seeds_for(Row("DEC", "DEC"), name) for name in ("usps", "mnist")] == [3, 1]


def test_raw_images_are_clustered_on_fewer_points():
    assert Run("default", "consensus", "mnist", 0, {}).estimator().max_points == 5600
    assert Run("default", "AE+consensus", "mnist", 0, {}).estimator().max_points == 11000


# Published records count


def test_published_runs_are_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))  # no data is needed to see what is missing
    monkeypatch.setenv("DECCS_CACHE", str(tmp_path))
    there = records.read_all(records.published())
    whole = [name for name in ALL if name != "kmnist"]
    for datasets, methods in (
        (whole, ["RP+FCM", "AE+RP+EM"]),
        (["synth", "mice", "har", "usps"], ["DECCS"]),
    ):
        asked = reproduce.wanted(["table2"], datasets, methods)
        assert asked.runs() and grid.missing(asked.runs(), grid.Known(there)) == []


def test_records_of_an_older_recipe_are_shown_and_made_anew():
    old = made(DECCS_ROW, "usps", [0.9, 0.8], recipe=METHODS["DECCS"].recipe - 1)
    cell = Cell(DECCS_ROW, "usps", 1)
    result = Results(old).result(cell, "nmi", ())
    assert (result.values, result.outdated, result.n_pending) == ((0.9, 0.8), True, 1)
    new = made(DECCS_ROW, "usps", [0.7])
    result = Results(old + new).result(cell, "nmi", ())
    assert (result.values, result.outdated, result.n_pending) == ((0.7,), False, 0)


# Runs in processes, kills and all


class Fake:
    """In place of a run: slow and long enough to be killed while working and while writing."""

    def __init__(self, folder=None, seconds=0.0, padding=0):
        self.folder, self.seconds, self.padding = folder, seconds, padding

    def __call__(self, run, cache):
        time.sleep(self.seconds)
        if self.folder:
            (self.folder / f"{run.repetition}-{os.getpid()}").touch()
        return [
            header | {"status": "ok", "scores": {"nmi": 0.5}, "padding": "x" * self.padding}
            for header in runner.headers(run)
        ]


def runs(n, method="RP+EM"):
    return [Run("default", method, "synth", repetition, {}) for repetition in range(n)]


def carry_out(out, wanted, work, jobs=2, tell=lambda record: None, again=False):
    grid.carry_out_missing(
        wanted,
        lambda: records.read_all([out]),
        out,
        Workers(jobs, None, work, "fork"),
        tell,
        QUIET,
        again=again,
    )


def test_resuming_repeats_nothing(tmp_path):
    out = tmp_path / "records.jsonl"
    (tmp_path / "begun").mkdir()
    carry_out(out, runs(2), Fake(tmp_path / "begun"))
    carry_out(out, runs(4), Fake(tmp_path / "begun"))
    carry_out(out, runs(4), Fake(tmp_path / "begun"))
    assert sorted(path.name.split("-")[0] for path in (tmp_path / "begun").iterdir()) == [
        "0",
        "1",
        "2",
        "3",
    ]
    assert sorted(record["repetition"] for record in records.read(out)) == [0, 1, 2, 3]


def test_kill_9_loses_nothing_repeats_nothing_and_breaks_no_line(tmp_path):
    out, wanted = tmp_path / "records.jsonl", runs(20, "consensus")
    rng, context, kills = random.Random(0), get_context("fork"), 0
    n_records = len(METHODS["consensus"].functions) * len(wanted)
    while len(records.read_all([out])) < n_records:
        process = context.Process(
            target=carry_out, args=(out, wanted, Fake(seconds=0.1, padding=30_000))
        )
        process.start()
        process.join(
            rng.uniform(0.1, 0.25) if kills < 6 else 60
        )  # two at once: some four runs are done then
        if process.is_alive():
            process.kill()
            kills += 1
        process.join()
    assert kills >= 3
    carry_out(out, wanted, Fake())  # takes away what the last kill broke
    found = [json.loads(line) for line in out.read_text().splitlines()]  # every line is whole
    places = [grid.place(record) for record in found]
    assert len(places) == len(set(places)) == n_records


def test_workers_end_with_their_parent(tmp_path):
    process = get_context("fork").Process(
        target=carry_out, args=(tmp_path / "r.jsonl", runs(1), Fake(tmp_path, 1.0))
    )
    process.start()
    time.sleep(0.5)
    process.kill()
    process.join()
    time.sleep(1.5)
    assert not list(tmp_path.glob("0-*"))


def test_two_processes_do_not_make_the_same_runs(tmp_path):
    out = tmp_path / "records.jsonl"
    with (
        records.alone_with(out),
        pytest.raises(ValueError, match="Another process makes runs for .*records.jsonl"),
    ):
        carry_out(out, runs(1), Fake())


def test_a_process_that_dies_is_a_failed_run_and_takes_no_other_along(tmp_path):
    out = tmp_path / "records.jsonl"

    def work(run, cache):
        if run.repetition == 1:
            os._exit(9)
        return Fake()(run, cache)

    carry_out(out, runs(3), work)
    found = {record["repetition"]: record for record in records.read(out)}
    assert [found[n]["status"] for n in range(3)] == ["ok", "failed", "ok"]
    assert "exit code 9" in found[1]["error"]
    carry_out(out, runs(3), Fake())  # a failed run has its record
    assert len(list(records.read(out))) == 3
    carry_out(out, runs(3), Fake(), again=True)
    assert [record["repetition"] for record in records.read(out)][3:] == [1]


def test_ctrl_c_leaves_a_line_for_what_was_under_way(tmp_path):
    out = tmp_path / "records.jsonl"

    def interrupt(record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(
            out,
            runs(3),
            lambda run, cache: Fake(seconds=5.0 * run.repetition)(run, cache),
            tell=interrupt,
        )
    assert [(record["repetition"], record["status"]) for record in records.read(out)] == [
        (0, "ok"),
        (1, "stopped"),
    ]
    assert [run.repetition for run in grid.missing(runs(3), grid.Known(records.read(out)))] == [
        1,
        2,
    ]


def test_runs_at_the_same_time_share_no_autoencoder():
    workers = Workers(2, None)
    waiting = [
        Run("default", method, "synth", repetition, {})
        for repetition in (0, 1)
        for method in ("DEC", "DCN")
    ]
    assert workers.best_next(waiting) == 0
    workers.under_way = {None: type("Busy", (), {"run": waiting[0]})}
    assert workers.best_next(waiting[1:]) == 1  # repetition 1, not DCN of repetition 0
    assert workers.best_next(waiting[1:2]) == 0  # better than to wait


@pytest.mark.parametrize(
    ("torn", "left"),
    [
        ('{"a": 1}\n{"a": 2', '{"a": 1}\n'),
        ('{"a": 1}\n{"a": 2}', '{"a": 1}\n{"a": 2}\n'),
        ('{"a', ""),
        ("", ""),
        ('{"a": 1}\n', '{"a": 1}\n'),
    ],
)
def test_a_torn_last_line_is_taken_away(tmp_path, torn, left):
    path = tmp_path / "r.jsonl"
    path.write_text(torn)
    records.mend(path)
    assert path.read_text() == left


# Time


def test_expected_time_is_that_of_earlier_runs():
    row = Row("DEC", "DEC")
    expected = grid.Expected(
        made(row, "mice", [0.5, 0.5, 0.5]) + made(row, "usps", [0.5], wall_seconds=600.0)
    )
    assert expected.of("DEC", "mice") == 90
    assert expected.of("DEC", "synth") == 600  # the next larger set that is known
    assert expected.of("DEC", "mnist") == pytest.approx(600 * 70000 / 9298)
    assert expected.of("DCN", "mice") is None
    part = grid.Expected(made(row, "kmnist", [0.5], n=7000))  # of 70,000
    assert part.of("DEC", "mnist") == pytest.approx(900)
    assert expected.words(
        runs_of({"": Experiment("", (row, Row("DCN", "DCN")), ("mice",))}, 2), jobs=2
    ) == ("some 1.5 min, 2 of unknown length")


# Cells by hand


@pytest.mark.parametrize(
    ("values", "printed", "mark"),
    [
        ((0.80, 0.90), (0.82, 0.01), "equal"),  # 0.85, deviation 0.05: 0.03 apart
        ((0.84, 0.86), (0.82, 0.02), "better"),  # 0.03 apart, deviations 0.01 and 0.02
        ((0.80,), (0.82, 0.02), "equal"),  # just one deviation
        ((0.79,), (0.82, 0.02), "worse"),
        ((0.754,), (0.75, 0.0), "equal"),  # the paper prints two digits
        ((0.756,), (0.75, 0.0), "better"),
        ((0.73,), (0.74,), "worse"),  # no deviation printed
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


def test_a_part_at_hand_counts_its_own_runs_only(tmp_path, monkeypatch):
    """On a machine with all of KMNIST the published runs on a part do not count."""
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))
    monkeypatch.setenv("DECCS_CACHE", str(tmp_path))
    run = Run("default", "DEC", "kmnist", 0, {})
    there = [header | {"status": "ok", "n": 3} for header in runner.headers(run)]
    assert grid.missing([run], grid.Known(there)) == [run]
    np.savez(tmp_path / "kmnist.npz", X=np.zeros((3, 784), np.uint8), y=np.zeros(3))
    assert grid.missing([run], grid.Known(there)) == []


def test_the_newest_run_says_how_many_points_there_are_whatever_file_it_is_in():
    row = Row("DEC", "DEC")
    whole = made(row, "kmnist", [0.5], n=70_000, started="2026-02-01")
    part = made(row, "kmnist", [0.9], n=16_284, started="2026-01-01")
    assert Results(whole + part).scores(row, "kmnist") == [0.5]


def test_runs_of_another_size_are_told_and_take_longer(tmp_path, monkeypatch):
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))
    monkeypatch.setenv("DECCS_CACHE", str(tmp_path))
    np.savez(tmp_path / "kmnist.npz", X=np.zeros((40, 784), np.uint8), y=np.zeros(40))
    there = made(Row("DEC", "DEC"), "kmnist", [0.5], n=20)  # 90 s
    assert grid.Expected(there, {"kmnist": 40}).of("DEC", "kmnist") == 180
    console, run = Console(file=StringIO(), width=160), Run("default", "DEC", "kmnist", 0, {})
    died = Workers(1, None, dies, "fork")
    grid.carry_out_missing(
        [run], lambda: there, tmp_path / "out.jsonl", died, lambda record: None, console
    )
    assert "Runs on 20 points of kmnist do not count: here it has 40." in console.file.getvalue()
    (record,) = records.read(tmp_path / "out.jsonl")
    assert (record["status"], record["n"]) == (
        "failed",
        40,
    )  # so it is not hidden by the one on 20 points


def dies(run, cache):
    os._exit(3)


def test_a_run_that_ended_well_is_not_hidden_by_one_that_failed():
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
        and "the paper's figure, where it prints one" in printed
    )
    assert "Pending: " in text(Result((), 0, 1))


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


# Significance


def test_welch_by_hand():
    # means 2 and 5, variances 1 and 1, n 3 each: t = -3 / sqrt(2 / 3), 4 degrees of freedom
    assert welch((1, 2, 3), (4, 5, 6)) == pytest.approx(0.02131, abs=1e-5)
    assert welch((1.0, 1.0), (2.0, 2.0)) is None


def test_deccs_is_compared_with_the_best_other():
    rows = (
        DECCS_ROW,
        Row("DEC", "DEC"),
        Row("DCN", "DCN"),
        Row("DECCS without reconstruction", "DECCS", {"lambda_rec": 0.0}),
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
    assert "difference +0.150, no test: it needs two runs of both" in str(found)


# Files

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


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_figure_that_cannot_be_drawn_is_told(tmp_path, monkeypatch):
    def fails(*words, **more):
        raise ImportError("no matplotlib")

    monkeypatch.setitem(reproduce.DRAWINGS, "fig7", replace(DRAWINGS["fig7"], draw=fails))
    answer = CliRunner().invoke(app, ["reproduce", "fig7", "--page-only", "--out", str(tmp_path)])
    assert "fig7 not drawn: ImportError: no matplotlib" in answer.output
    assert answer.exit_code == 1


def test_consensus_runs_without_a_partitioner_are_told_before_they_start(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "published", list)
    monkeypatch.setattr("deccs.consensus.partitioners.module", lambda name: None)
    answer = CliRunner().invoke(
        app, ["reproduce", "table2", "--data", "synth", "--methods", "LWEA", "--out", str(tmp_path)]
    )
    assert answer.exit_code == 1 and "deccs[partition]" in answer.output
    assert not (tmp_path / "records.jsonl").exists()


def test_the_page_is_whole_and_needs_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "published", list)
    row = Row("DEC", "DEC")
    ok = made(row, "usps", [0.6])
    for record in [*ok, failed(ok[0]) | {"repetition": 1}]:
        records.append(tmp_path / reproduce.RECORDS, record)
    asked = reproduce.wanted(["table2", "claims", "fig1"], ["usps"])
    written, undrawn = reproduce.write_all(asked, tmp_path, None, draw=False, console=QUIET)
    assert [path.name for path in written] == ["table2.md", "table2.tex", "claims.md", "index.html"]
    assert undrawn == []  # not asked for is no failure
    page = (tmp_path / "index.html").read_text()
    tags = Tags()
    tags.feed(page)
    assert tags.open == [] and all(link.startswith("#") for link in tags.links)
    assert "1 ok of 2" in page and "&lt;b&gt;no&lt;/b&gt;" in page and "<b>no</b>" not in page
    assert "not yet drawn: deccs reproduce fig1" in page
    assert "SYNTH" not in (tmp_path / "table2.md").read_text()


def test_the_published_page_is_that_of_the_records(tmp_path, monkeypatch):
    """Tables, claims and words; pictures are left out, for another matplotlib may draw other bytes."""
    monkeypatch.setenv("DECCS_DATA", "/nowhere")
    published = Path(__file__).parents[2] / "results" / "page"
    for path in published.glob("fig*"):
        shutil.copy(path, tmp_path)
    answer = CliRunner().invoke(app, ["reproduce", "--page-only", "--out", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    assert "The autoencoder helps every consensus method on MICE" in answer.output
    assert not (tmp_path / "records.jsonl").exists()
    for name in [*(f"{table}.md" for table in TABLES), "claims.md", "index.html"]:
        ours, theirs = (
            PICTURE.sub("", (folder / name).read_text()) for folder in (tmp_path, published)
        )
        assert ours == theirs, f"{name} has drifted: deccs reproduce --page-only --out results/page"


PICTURE = re.compile(r'src="data:[^"]*"')


def test_a_figure_with_fits_of_its_own_is_drawn_once(tmp_path, monkeypatch):
    calls = []

    def draw(there, out, *, cache):
        calls.append(1)
        (out / "fig4.png").write_bytes(b"png")
        return {"claims": []}

    monkeypatch.setitem(reproduce.DRAWINGS, "fig4", replace(DRAWINGS["fig4"], draw=draw))
    for _ in range(2):
        found = reproduce.drawn("fig4", [], tmp_path, None, draw=True, console=QUIET)
        assert found.png == b"png"
    assert len(calls) == 1
    monkeypatch.setattr(reproduce, "RECIPE", RECIPE + 1)  # the method has changed since
    reproduce.drawn("fig4", [], tmp_path, None, draw=True, console=QUIET)
    assert len(calls) == 2


# The command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tabel2"], "reproduce: 'tabel2' is not known. Did you mean 'table2'?"),
        ([], "Say what to reproduce: table1"),
        (["table2", "--data", "mnits"], "--data: 'mnits' is not known. Did you mean 'mnist'?"),
        (["table2", "--methods", "DEC,SVM"], "--methods of table2: 'SVM' is not known."),
        (["table1", "--methods", "DEC"], "--methods of table1: 'DEC' is not known."),
        (["table2", "--data", "nonlinear"], "Nothing of table2 is left with --data nonlinear"),
        (["table2", "--seeds", "0"], "--seeds must be at least 1, got 0."),
    ],
)
def test_wrong_names_are_told(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["reproduce", *words])
    assert answer.exit_code == 2
    assert message in " ".join(answer.output.split())
    assert not list(tmp_path.iterdir())


def test_a_run_from_the_command_line_and_nothing_the_second_time(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "published", list)
    monkeypatch.setattr(
        "deccs.app.commands.Workers", lambda jobs, cache: Workers(jobs, cache, scored, "fork")
    )
    words = [
        "reproduce",
        "table2",
        "--data",
        "synth",
        "--seeds",
        "2",
        "--methods",
        "RP+EM,LWEA",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    first, second = CliRunner().invoke(app, words), CliRunner().invoke(app, words)
    assert first.exit_code == second.exit_code == 0, first.output
    assert "4 runs to do" in first.output and "0 runs to do" in second.output
    assert (
        "| RP+EM | **0.250 ± 0.250** (n 2, paper 0.61 ± 0.00 ▼) |"
        in (tmp_path / "out" / "table2.md").read_text()
    )
    methods = [record["method"] for record in records.read(tmp_path / "out" / "records.jsonl")]
    assert methods.count("RP+EM") == methods.count("LWEA") == methods.count("CSPA") == 2


def test_fresh_runs_are_made_anew_and_told_beside_the_published(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "deccs.app.commands.Workers", lambda jobs, cache: Workers(jobs, cache, scored, "fork")
    )
    words = [
        "reproduce",
        "table2",
        "--data",
        "synth",
        "--seeds",
        "2",
        "--methods",
        "RP+EM",
        "--out",
        str(tmp_path),
    ]
    assert "0 runs to do" in CliRunner().invoke(app, words).output
    assert "RP+EM | 0.250" not in (tmp_path / "table2.md").read_text()
    first, second = (CliRunner().invoke(app, [*words, "--fresh"]) for _ in range(2))
    assert (
        "2 runs to do: some " in first.output and "0 runs to do" in second.output
    )  # published runs tell the time
    assert re.search(
        r"synth RP\+EM 1 \(default\): NMI 0\.500 .* \(published: NMI 0\.60", first.output
    )
    assert "| RP+EM | 0.250 ± 0.250 (n 2, " in (tmp_path / "table2.md").read_text()


def scored(run, cache):
    value = run.repetition / 2
    return [
        header
        | {
            "status": "ok",
            "scores": {"nmi": value, "ari": value, "accuracy": value},
            "peak_memory_mb": 1.0,
            "seconds": {"total": 1.0},
        }
        for header in runner.headers(run)
    ]


def test_data_that_cannot_be_had_is_told_and_no_run_fails(tmp_path, monkeypatch):
    def fails(name, source):
        raise DatasetError(f"Could not download {name}.")

    monkeypatch.setattr(records, "published", list)
    monkeypatch.setattr("deccs.datasets.store.download", fails)
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))
    monkeypatch.setenv("DECCS_CACHE", str(tmp_path))
    answer = CliRunner().invoke(
        app,
        [
            "reproduce",
            "table2",
            "--data",
            "usps",
            "--methods",
            "DEC",
            "--out",
            str(tmp_path / "out"),
        ],
    )
    assert answer.exit_code == 1 and "Could not download usps." in answer.output
    assert not (tmp_path / "out" / "records.jsonl").exists()


def test_failed_runs_end_the_command_with_a_word(tmp_path, monkeypatch):
    def fails(run, cache):
        return [header | {"status": "failed", "error": "too bad"} for header in runner.headers(run)]

    monkeypatch.setattr(records, "published", list)
    monkeypatch.setattr(
        "deccs.app.commands.Workers", lambda jobs, cache: Workers(jobs, cache, fails, "fork")
    )
    answer = CliRunner().invoke(
        app,
        [
            "reproduce",
            "table2",
            "--data",
            "synth",
            "--seeds",
            "1",
            "--methods",
            "RP+EM",
            "--out",
            str(tmp_path),
        ],
    )
    assert answer.exit_code == 1
    assert "1 of the runs asked for have failed" in answer.output
    assert "0 ok of 1" in (tmp_path / "index.html").read_text()
    answer = CliRunner().invoke(
        app,
        [
            "reproduce",
            "table2",
            "--data",
            "SYNTH",
            "--seeds",
            "1",
            "--methods",
            "rp+em",
            "--out",
            str(tmp_path),
        ],
    )
    assert (
        "0 runs to do" in answer.output and "--again repeats them" in answer.output
    )  # not passed over in silence
    assert answer.exit_code == 1


# Claims by hand


def verdict(start, there):
    ((claim, rule, check),) = [one for one in claims.CLAIMS if one[0].startswith(start)]
    return claims.Verdict(claim, rule, check(Results(there)))


def test_without_records_all_claims_are_pending():
    found = claims.check_all(Results([]))
    assert [one.status for one in found] == ["pending"] * len(claims.CLAIMS)


def study(rows, dataset, values):
    return [
        record
        for row, value in zip(rows, values, strict=True)
        for record in made(row, dataset, [value], rounds=[{"agreement": 0.1}, {"agreement": value}])
    ]


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ([0.7, 0.8, 0.795, 0.9], "holds"),
        ([0.7, 0.8, 0.75, 0.9], "does not"),
        ([0.9, 0.9, 0.9, 0.9], "does not"),
    ],
)
def test_agreement_rises_with_the_weight(values, status):
    there = [
        record
        for name in ("pendigits", "usps", "mnist")
        for record in study(LAMBDA_ROWS[0], name, values)
    ]
    assert verdict("Agreement rises", there).status == status


def test_one_data_set_against_a_claim_is_enough_and_one_missing_leaves_it_open():
    good, bad = [0.7, 0.8, 0.85, 0.9], [0.9, 0.8, 0.7, 0.6]
    some = study(LAMBDA_ROWS[0], "usps", good)
    assert verdict("Agreement rises", some).status == "pending"
    assert (
        verdict("Agreement rises", some + study(LAMBDA_ROWS[0], "mnist", bad)).status == "does not"
    )


def test_nmi_falls_at_the_highest_weight():
    there = [
        record
        for rows in LAMBDA_ROWS.values()
        for name in ("pendigits", "usps", "mnist")
        for record in study(rows, name, [0.8, 0.9, 0.85, 0.7])
    ]
    assert verdict("NMI falls", there).status == "holds"


def test_both_losses_beat_either_alone():
    def there(full):
        terms = {
            "cons": 0.4,
            "CE": 0.7,
            "cons + CE": 0.8,
            "cons + rec": 0.5,
            "CE + rec": 0.75,
            "cons + CE + rec": full,
        }
        return [
            record
            for name in ALL
            for label, value in terms.items()
            for record in made(ablation(label), name, [value])
        ]

    assert verdict("CE and cons together beat", there(0.9)).status == "holds"
    assert verdict("CE and cons together beat", there(0.75)).status == "does not"


def test_the_last_two_rows_of_table_one_are_the_best():
    def there(both):
        values = dict.fromkeys((row.label for row in TABLES["table1"].rows), 0.7) | {
            "cons + CE": both,
            "cons + CE + rec": 0.9,
        }
        return [
            record
            for name in ALL
            for label, value in values.items()
            for record in made(ablation(label), name, [value])
        ]

    assert verdict("CE and cons together, with", there(0.8)).status == "holds"
    assert verdict("CE and cons together, with", there(0.7)).status == "does not"


def test_members_rise_over_the_rounds():
    def there(spectral):
        rounds = [
            {
                "agreement": agreement,
                "members": {"kmeans": {"nmi": kmeans}, "spectral": {"nmi": other}},
            }
            for agreement, kmeans, other in ((0.5, 0.4, 0.6), (0.9, 0.7, spectral))
        ]
        return [
            record for name in ALL for record in made(DECCS_ROW, name, [0.7, 0.7], rounds=rounds)
        ]

    assert (
        verdict("Agreement and NMI rise", there(0.5)).status == "holds"
    )  # the labels are those of k-means
    assert verdict("The performance of every member", there(0.7)).status == "holds"
    found = verdict("The performance of every member", there(0.5))
    assert found.status == "does not"
    assert found.findings[0].figures == "kmeans 0.400 to 0.700, spectral 0.600 to 0.500, n 2"


def test_a_claim_on_a_part_of_the_data_says_so():
    rounds = [{"agreement": 0.5, "members": {"kmeans": {"nmi": 0.5}}}]
    there = made(DECCS_ROW, "kmnist", [0.6], n=16_284, rounds=rounds) + made(
        Row("ConCURL", "ConCURL"), "kmnist", [0.4], n=16_284
    )
    (found,) = [one for one in claims.check_all(Results(there)) if "ConCURL" in one.claim]
    assert (
        "DECCS 0.600 (n 1); 16,284 of 70,000 points"
        in {one.about: one.figures for one in found.findings}["kmnist"]
    )


def test_no_effect_is_within_a_hundredth_or_a_deviation():
    def there(values):
        return [
            record
            for name in ("pendigits", "usps", "mnist")
            for row, value in zip(TABLES["study-ensemble-size"].rows, values, strict=True)
            for record in made(row, name, value)
        ]

    assert verdict("The ensemble's size", there([[0.87], [0.88], [0.875]])).status == "holds"
    assert verdict("The ensemble's size", there([[0.87], [0.89], [0.87]])).status == "does not"
    assert verdict("The ensemble's size", there([[0.87], [0.86, 0.92], [0.87]])).status == "holds"


def test_stable_curves():
    def there(curve):
        rounds = [
            {"agreement": value, "members": {"kmeans": {"nmi": value}, "mixture": {"nmi": value}}}
            for value in curve
        ]
        return [
            record
            for name in ("mice", "pendigits", "har", "mnist")
            for record in made(DECCS_ROW, name, [0.9], rounds=rounds)
        ]

    rising = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.9, 0.93, 0.95, 0.95, 0.96]
    assert verdict("Agreement is stable", there(rising)).status == "holds"
    assert (
        verdict("NMI is stable", there(rising)).status == "does not"
    )  # 0.90 in round 5, 0.96 in the end
    assert (
        verdict("NMI is stable", there([0.5, 0.9])).status == "holds"
    )  # ended early: stays where it was


def test_the_autoencoder_helps():
    def there(plain):
        return [
            record
            for name in claims.CLASSICAL
            for method, value in ((name, plain), (f"AE+{name}", 0.5))
            for record in made(Row(method, method), "mice", [value])
        ]

    assert verdict("The autoencoder helps", there(0.4)).status == "holds"
    assert verdict("The autoencoder helps", there(0.5)).status == "does not"


def all_rows(dataset, **values):
    """A run of every row of Table II, at 0.5 but for these."""
    rows = [row for row in TABLES["table2"].rows if not claims.applies_not(row, dataset)]
    return [record for row in rows for record in made(row, dataset, [values.get(row.label, 0.5)])]


@pytest.mark.parametrize(("har", "status"), [(0.8, "holds"), (0.6, "does not")])
def test_the_lead_on_har_is_the_largest(har, status):
    others = [
        record
        for name in ALL
        if name not in ("synth", "har")
        for record in all_rows(name, DECCS=0.7, DEC=0.55)
    ]
    assert (
        verdict("The lead over the next best", [*others, *all_rows("har", DECCS=har)]).status
        == status
    )
    assert verdict("The lead over the next best", others).status == "pending"


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"DECCS": 0.88, "SpectralNet": 0.92}, "holds"),
        ({"DECCS": 0.93, "SpectralNet": 0.92}, "does not"),
        ({"DECCS": 0.88, "SpectralNet": 0.92, "DEC": 0.9}, "does not"),
        (
            {"DECCS": 0.88, "SpectralNet": 0.92, "AGAE": 0.9},
            "holds",
        ),  # the paper prints none for MNIST
    ],
)
def test_only_spectralnet_is_ahead_on_mnist(values, status):
    assert verdict("On MNIST only SpectralNet", all_rows("mnist", **values)).status == status


def test_ahead_of_all_is_open_while_rivals_are_to_come():
    there = made(DECCS_ROW, "usps", [0.9]) + made(Row("DEC", "DEC"), "usps", [0.8])
    found = verdict("DECCS is ahead of all others on USPS", there)
    assert found.status == "pending"
    assert "DEC 0.800 (n 1), DECCS 0.900 (n 1); to come: CSPA, " in found.findings[0].figures
    there += made(Row("DCN", "DCN"), "usps", [0.95])
    assert verdict("DECCS is ahead of all others on USPS", there).status == "does not"


def test_half_of_the_members_at_chance():
    def there(first, last):
        return made(
            DECCS_ROW,
            "nonlinear",
            [1.0],
            members={name: {"nmi": value} for name, value in last.items()},
            rounds=[{"members": {name: {"nmi": value} for name, value in first.items()}}],
        )

    start = {"kmeans": 0.01, "mixture": 0.02, "spectral": 1.0, "agglomerative": 1.0}
    solved, easier = dict.fromkeys(start, 1.0), start | {"mixture": 0.5}
    assert verdict("Two not linearly", there(start, solved)).status == "holds"
    assert verdict("Two not linearly", there(start, start)).status == "does not"
    assert (
        verdict("Two not linearly", there(easier, solved)).status == "does not"
    )  # nothing of the kind was seen
    both = there(start, solved) + [record | {"repetition": 1} for record in there(easier, solved)]
    found = verdict("Two not linearly", both)
    assert (found.status, found.findings[0].figures) == (
        "holds",
        "half at chance in 1 of 2 runs, all right in the end in 1 of these",
    )


def test_code_inside_another_repository_is_not_named_by_its_commit(tmp_path, monkeypatch):
    there = tmp_path / "venv" / "deccs" / "benchmark"
    there.mkdir(parents=True)
    (there / "records.py").touch()
    who = ["-c", "user.name=x", "-c", "user.email=x@x"]
    for words in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(records, "__file__", str(there / "records.py"))
    assert records.code_version() == version("deccs")


def test_published_records_are_those_of_the_checkout():
    assert {path.parent for path in records.published()} == {Path(__file__).parents[2] / "results"}
