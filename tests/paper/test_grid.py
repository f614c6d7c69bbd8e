"""Many runs: those that are missing, processes, kills and all."""

import json
import os
import random
import time
from io import StringIO
from multiprocessing import get_context

import numpy as np
import pytest
from rich.console import Console

from deccs_paper import grid, records, reproduce, runner
from deccs_paper.experiments import ALL, Experiment, Row, runs_of
from deccs_paper.processes import Workers
from deccs_paper.runner import Run
from deccs_paper.settings import METHODS
from tests.paper.made_up import made

QUIET = Console(quiet=True)


def test_published_runs_are_not_repeated(tmp_path, monkeypatch):
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))  # no data is needed to see what is missing
    monkeypatch.setenv("DECCS_CACHE", str(tmp_path))
    there = records.read_all(records.published())
    whole = [name for name in ALL if name != "kmnist"]
    for datasets, methods in (
        (whole, ["RP+FCM", "AE+RP+EM"]),
        (["synth", "mice", "har", "usps"], ["DECCS"]),
    ):
        selection = reproduce.select(["table2"], datasets, methods)
        assert selection.runs() and grid.missing(selection.runs(), grid.Known(there)) == []


class Fake:
    """In place of a run: slow and long enough to be killed while it works and while it writes."""

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


def run_all(out, wanted, work, jobs=2, tell=lambda record: None, again=False):
    grid.run_missing(
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
    run_all(out, runs(2), Fake(tmp_path / "begun"))
    run_all(out, runs(4), Fake(tmp_path / "begun"))
    run_all(out, runs(4), Fake(tmp_path / "begun"))
    assert sorted(path.name.split("-")[0] for path in (tmp_path / "begun").iterdir()) == [
        "0",
        "1",
        "2",
        "3",
    ]
    assert sorted(record["repetition"] for record in records.read(out)) == [0, 1, 2, 3]


@pytest.mark.slow
def test_kill_9_loses_nothing_repeats_nothing_and_breaks_no_line(tmp_path):
    out, wanted = tmp_path / "records.jsonl", runs(12, "consensus")
    rng, context, kills = random.Random(0), get_context("fork"), 0
    n_records = len(METHODS["consensus"].functions) * len(wanted)
    while len(records.read_all([out])) < n_records:
        process = context.Process(
            target=run_all, args=(out, wanted, Fake(seconds=0.05, padding=30_000))
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
    run_all(out, wanted, Fake())  # removes the line that the last kill has cut off
    found = [json.loads(line) for line in out.read_text().splitlines()]  # every line is whole
    places = [grid.place(record) for record in found]
    assert len(places) == len(set(places)) == n_records


def test_workers_end_with_their_parent(tmp_path):
    process = get_context("fork").Process(
        target=run_all, args=(tmp_path / "r.jsonl", runs(1), Fake(tmp_path, 1.0))
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
        records.locked(out),
        pytest.raises(ValueError, match="Another process is making runs for .*records.jsonl"),
    ):
        run_all(out, runs(1), Fake())


def test_a_process_that_dies_is_a_failed_run_and_stops_no_other(tmp_path):
    out = tmp_path / "records.jsonl"

    def work(run, cache):
        if run.repetition == 1:
            os._exit(9)
        return Fake()(run, cache)

    run_all(out, runs(3), work)
    found = {record["repetition"]: record for record in records.read(out)}
    assert [found[n]["status"] for n in range(3)] == ["ok", "failed", "ok"]
    assert "exit code 9" in found[1]["error"]
    run_all(out, runs(3), Fake())  # a failed run has its record
    assert len(list(records.read(out))) == 3
    run_all(out, runs(3), Fake(), again=True)
    assert [record["repetition"] for record in records.read(out)][3:] == [1]


def test_ctrl_c_leaves_a_line_for_runs_in_progress(tmp_path):
    out = tmp_path / "records.jsonl"

    def interrupt(record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(
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
    workers.in_progress = {None: type("Busy", (), {"run": waiting[0]})}
    assert workers.best_next(waiting[1:]) == 1  # repetition 1, not DCN of repetition 0
    assert workers.best_next(waiting[1:2]) == 0  # better than to wait


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
    ) == ("about 1.5 min, 2 of unknown length")


def test_a_part_at_hand_counts_its_own_runs_only(tmp_path, monkeypatch):
    """On a machine with all of KMNIST the published runs on a part do not count."""
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))
    monkeypatch.setenv("DECCS_CACHE", str(tmp_path))
    run = Run("default", "DEC", "kmnist", 0, {})
    there = [header | {"status": "ok", "n": 3} for header in runner.headers(run)]
    assert grid.missing([run], grid.Known(there)) == [run]
    np.savez(tmp_path / "kmnist.npz", X=np.zeros((3, 784), np.uint8), y=np.zeros(3))
    assert grid.missing([run], grid.Known(there)) == []


def test_runs_on_another_number_of_points_are_reported_and_take_longer(tmp_path, monkeypatch):
    monkeypatch.setenv("DECCS_DATA", str(tmp_path))
    monkeypatch.setenv("DECCS_CACHE", str(tmp_path))
    np.savez(tmp_path / "kmnist.npz", X=np.zeros((40, 784), np.uint8), y=np.zeros(40))
    there = made(Row("DEC", "DEC"), "kmnist", [0.5], n=20)  # 90 s
    assert grid.Expected(there, {"kmnist": 40}).of("DEC", "kmnist") == 180
    console, run = Console(file=StringIO(), width=160), Run("default", "DEC", "kmnist", 0, {})
    died = Workers(1, None, dies, "fork")
    grid.run_missing(
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
