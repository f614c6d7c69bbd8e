"""Measurements of large tables: what is measured, the constants fitted on it, and the page made from it."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from deccs.app.pace import Pace
from deccs.app.plan import (
    COSTS,
    Job,
    memory_of_process,
    seconds_of,
    seconds_of_members,
    seconds_of_steps,
)
from deccs_paper import records
from deccs_paper.scale import command, costs, launching, page, several

RECORDS = Path(__file__).parents[2] / "results" / "scale.jsonl"
WITHIN = 2.0  # the factor that `deccs plan` may be wrong by, in seconds and in memory, as docs/large_data.md says
TRUE = replace(
    COSTS,
    training=0.5,
    weight=2e-9,
    start=3.0,
    members=30.0,
    rest=20.0,
    views=70.0,
    label=4e-5,
    label_exactly=2e-4,
    report=7.0,
    keep=2e-7,
    memory=4e8,
)
PACE = Pace(products=1e11, bytes_read=4e8, threads=2)


def known_fits():
    made = page.good(records.read(RECORDS))
    return [record for record in made if record["task"] == "fit"]


@pytest.mark.skipif(
    not RECORDS.exists(), reason="results/scale.jsonl does not exist yet: make bench-scale makes it"
)
def test_the_model_predicts_the_records():
    assert known_fits()
    for record in known_fits():
        seconds, memory = costs.predicted(record)
        assert 1 / WITHIN < seconds / record["seconds"] < WITHIN, record
        assert 1 / WITHIN < memory / 1e6 / record["peak_mb"] < WITHIN, record


def fit_record(rows, columns=64, true=TRUE):
    """What a fit would take if the model were right."""
    job = Job(rows, columns)
    phases = seconds_of(job, PACE, 1, true)
    members = seconds_of_members(job, true)
    learn = phases["pretraining"] + phases["rounds"] + phases["rest of learning"]
    return {
        "experiment": "scale",
        "task": "fit",
        "status": "ok",
        "rows": rows,
        "columns": columns,
        "processes": 1,
        "threads": PACE.threads,
        "gigaflops_of_products": PACE.products / 1e9,
        "read_mb_per_second": PACE.bytes_read / 1e6,
        "file_mb": 1.0,
        "limit_mb": 2500.0,
        "seconds": sum(phases.values()),
        "seconds_read": phases["reading"],
        "seconds_learn": learn,
        "seconds_members": members,
        "seconds_label": phases["labeling"],
        "peak_mb": memory_of_process(job, true) / 1e6,
        "nmi": 0.9,
    }


def training_record(columns, layers, batch, processes=1, steps=100):
    job = Job(10**6, columns)
    seconds = seconds_of_steps(job, steps, batch, PACE, TRUE) / processes
    return {
        "experiment": "scale",
        "task": "pretraining",
        "status": "ok",
        "rows": 10**6,
        "columns": columns,
        "layers": list(layers),
        "batch": batch,
        "steps": steps,
        "processes": processes,
        "gigaflops_of_products": PACE.products / 1e9,
        "seconds": seconds,
        "rows_per_second": round(steps * batch / seconds),
    }


def all_records():
    layers = Job(10**6, 64).layers
    fits = [fit_record(rows) for rows in (100_000, 1_000_000, 10_000_000)]
    trainings = [training_record(64, layers, batch) for batch in (128, 32)]
    return [*fits, fit_record(1_000_000, 20), *trainings]


def test_costs_that_made_the_records_are_found_again():
    found = asdict(costs.fitted(all_records(), COSTS))
    assert found == pytest.approx(asdict(TRUE), rel=1e-6)


def test_costs_that_no_record_tells_of_stay():
    assert costs.fitted([], TRUE) == TRUE
    failed = {**fit_record(1_000_000), "status": "exit code 1"}
    assert costs.fitted([failed], TRUE) == TRUE
    found = costs.fitted([fit_record(1_000_000)], replace(TRUE, members=1.0))
    assert found.members == pytest.approx(TRUE.members) and found.views == TRUE.views


def test_the_command_prints_costs_to_paste(tmp_path, capsys):
    out = tmp_path / "scale.jsonl"
    for record in all_records():
        records.append(out, record)
    assert command.main(["--costs", "--out", str(out)]) == 0
    assert "    members=30," in capsys.readouterr().out.splitlines()


def test_what_has_a_record_is_not_measured_again(tmp_path, monkeypatch, capsys):
    asked = []

    def measured(task, folder, n_processes, **options):
        asked.append((task, n_processes, options))
        if len(asked) == 3:
            raise RuntimeError("exit code 1: no memory")
        return {"seconds": 1.0, "rows_per_second": 5}

    monkeypatch.setattr(several, "measured", measured)
    monkeypatch.setattr(command, "measured_pace", lambda threads: PACE)
    out = tmp_path / "scale.jsonl"
    words = ["--only", "pretraining", "--data", str(tmp_path / "data"), "--out", str(out)]
    assert command.main(words) == 0
    assert [n_processes for _, n_processes, _ in asked] == [1, 2, 1, 1, 2, 1]
    assert [r["status"] for r in records.read(out)].count("ok") == 5
    assert command.main(words) == 0
    assert asked[6:] == [asked[2]]  # the one that had failed
    assert command.main(words) == 0 and len(asked) == 7


def test_every_task_is_measured():
    tasks = {one.facts["task"] for one in command.measurements(command.SIZES, Path("nowhere"))}
    assert tasks == set(command.TASKS) - {"label"}  # of which there is none before a fit


def test_the_page_has_a_row_for_each_record(tmp_path):
    out = tmp_path / "scale.jsonl"
    assert page.page_text(out) == page.NOTHING
    layers = Job(10**6, 64).layers
    more = [
        training_record(64, layers, 128),
        training_record(64, layers, 128, processes=2),
        {"task": "quality", "dataset": "usps", "seed": 0, "processes": 1, "nmi": 0.9471, "seconds": 80.0},
        {"task": "quality", "dataset": "usps", "seed": 0, "processes": 2, "nmi": 0.9482, "seconds": 50.0},
        {"task": "parts", "rows": 2_000_000, "processes": 1, "nmi": 0.8, "seconds_label": 100.0,
         "rows_per_second": 20_000},
        {"task": "parts", "rows": 2_000_000, "processes": 2, "nmi": 0.8, "seconds_label": 50.0,
         "rows_per_second": 40_000},
    ]  # fmt: skip
    for record in [fit_record(1_000_000), *more]:
        records.append(out, {"experiment": "scale", "status": "ok", **record})
    text = page.page_text(out)
    assert "| 1,000,000 | 64 | 1 MB |" in text and "stopped at 2,500 MB" in text
    assert "| usps | 0 | 0.947 in 80 s | 0.948 in 50 s |" in text
    assert "| 2,000,000 | 2 | 50 s | 40,000 | 2.00 | 0.800 |" in text
    assert "| 64 | 256-256-512-10 | 128 | 2 |" in text and text.count("| 2.00 |") == 2


def test_processes_are_started_by_torchrun(monkeypatch):
    asked = []

    class Done:
        returncode, stderr = 3, "[rank0]: x.GroupError: Process 1 of 2 has ended.\nTraceback"

    monkeypatch.setattr(
        launching.subprocess, "run", lambda command, **how: asked.append((command, how)) or Done()
    )
    ended = launching.run_together(["deccs", "fit", 7], 2)
    command_line, how = asked[0]
    assert command_line[1:] == [
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        *("-m", "deccs", "fit", "7"),
    ]
    assert how["env"]["OMP_NUM_THREADS"] == "1"
    assert ended.messages == ["rank 0: Process 1 of 2 has ended."]
    with pytest.raises(RuntimeError, match="exit code 3"):
        ended.check()


@pytest.mark.slow
def test_each_part_runs_at_small_size(tmp_path):
    """Real processes: two of them pretrain, and one of three is killed."""
    for n_processes in (1, 2):
        result = several.measured(
            "pretraining", tmp_path, n_processes, rows=4_000, columns=64, batch=128, steps=20
        )
        assert result["rows_per_second"] > 0 and result["threads"] == 1
    killed = several.killed(tmp_path, 6_000, 600)
    assert killed["exit_code"] != 0 and killed["seconds_to_end"] < 60
    assert any("Process 1 of 3" in words for words in killed["messages"]), json.dumps(killed)
    assert killed["same_bits_by_three"]
    assert any("by 3 process(es), and 2" in words for words in killed["warnings_of_two"])
