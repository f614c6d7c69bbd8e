"""The soak test (``make soak``): a few of its acts, and that its checks can fail."""

import json
import random
import shutil
import signal
from dataclasses import replace

import pytest

pytest.importorskip("resource", reason="limits and signals as on Linux")

from tools.soak import __main__ as soak
from tools.soak import acts, checks, stage
from tools.soak.fits import Fit, Reference, rows, write_table
from tools.soak.running import Ended, Kill, Wrong

QUICKEST = Fit("consensus", table=0, format="csv", seed=0)


def ended(code=0, stderr="", sent=None, begun=True):
    return Ended(code, "", stderr, megabytes=1.0, sent=sent, begun=begun)


TRACEBACK = "Traceback (most recent call last):\nKeyError: 3"


@pytest.mark.parametrize(
    "fine",
    [
        ended(),
        ended(2, "Note: x\ndeccs: The file is empty."),
        ended(130, "deccs: Stopped.", signal.SIGINT),
        ended(-9, sent=signal.SIGKILL),
        ended(-15, TRACEBACK, sent=signal.SIGTERM),
        ended(-2, TRACEBACK, sent=signal.SIGINT, begun=False),
    ],
)
def test_documented_ends_are_accepted(fine):
    checks.check_documented(fine)


@pytest.mark.parametrize(
    "wrong",
    [
        ended(1, TRACEBACK),
        ended(1, f"deccs: x\n{TRACEBACK}"),
        ended(-2, TRACEBACK, sent=signal.SIGINT),
        ended(1, ""),
        ended(3, "deccs: what is 3?"),
        ended(-11),
        ended(-9, sent=signal.SIGINT),
        ended(130, "deccs: Stopped."),
    ],
)
def test_other_ends_are_wrong(wrong):
    with pytest.raises(Wrong):
        checks.check_documented(wrong)


def test_a_library_may_end_the_process_only_where_memory_is_short():
    panic = Ended(-6, "", "thread panicked at alloc", 1.0, memory_limited=True)
    assert panic.by_library and not replace(panic, memory_limited=False).by_library
    assert not replace(panic, code=1, stderr=TRACEBACK).by_library


def write_run(run, label="1"):
    (run / "model").mkdir(parents=True)
    (run / "labels.csv").write_text(f"id,label\na,{label}\n")
    (run / "model" / "model.json").write_text(json.dumps({"label": label, "seconds": 1}))
    (run / "summary.json").write_text(json.dumps({"label": label, "seconds": 2}))
    return Reference(run, checks.bits_of(run), frozenset(["labels.csv"]), 9, 1.0, "")


def test_a_mixture_of_two_runs_is_wrong_and_their_times_do_not_count(tmp_path):
    known = {name: write_run(tmp_path / name, name) for name in ("old", "new")}
    run = tmp_path / "run"
    shutil.copytree(tmp_path / "old", run)
    (run / "summary.json").write_text(json.dumps({"label": "old", "seconds": 77}))
    assert checks.which_run(run, known) == "old"
    shutil.copy(tmp_path / "new" / "labels.csv", run)
    with pytest.raises(Wrong, match="labels.csv"):
        checks.which_run(run, known)
    (run / "summary.json").unlink()
    assert checks.which_run(run, known) is None


def test_leftovers_are_wrong(tmp_path):
    (tmp_path / "labels.csv").touch()
    checks.check_no_drafts(tmp_path)
    checks.check_names(tmp_path, {"labels.csv"})
    (tmp_path / ".part-x").mkdir()
    with pytest.raises(Wrong, match=r"\.part-x"):
        checks.check_no_drafts(tmp_path)
    with pytest.raises(Wrong, match=r"missing \['model'\], left over \['\.part-x'\]"):
        checks.check_names(tmp_path, {"labels.csv", "model"})


def test_memory_that_grows_is_not_flat():
    assert soak.memory_over_time([90, 100, 100, 100, 100, 100, 100, 104])["flat"]
    assert not soak.memory_over_time([90, 100, 110, 120, 130, 140, 150, 160])["flat"]


def test_the_seed_fixes_the_acts_and_tables(tmp_path):
    kinds = [acts.draw_kind(random.Random(f"20 {number}")) for number in range(400)]
    assert set(kinds) == set(acts.ACTS)
    assert kinds[7] == acts.draw_kind(random.Random("20 7"))
    one, two = (write_table(tmp_path / f"{name}.csv", rows(0)) for name in "ab")
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.slow
def test_a_fit_is_killed_and_goes_on_and_a_tampered_run_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "draw_fit", lambda rng: QUICKEST)
    kill = Kill(signal.SIGKILL, call=8)
    monkeypatch.setattr(acts, "draw_kill", lambda rng, reference: kill)
    monkeypatch.setattr(stage.Scene, "old_run", lambda scene, fit, run: None)
    shared = stage.Stage(tmp_path / "soak")
    record = soak.run_act(shared, 0, "killed_fit", random.Random(2))  # one kill
    assert record["outcome"] == "went on, same bits", record
    assert record["codes"][0] == -signal.SIGKILL and record["codes"][-1] == 0

    reference = shared.reference(QUICKEST)
    labels = reference.run / "labels.csv"
    labels.write_text(labels.read_text().replace("k0,", "k0,1"))
    summary = soak.summarize(shared, [record], soak.read_options(["--seed", "3"]))
    assert summary["lost"] == [str(QUICKEST)] and not summary["good"]


@pytest.mark.slow
def test_a_dozen_acts(tmp_path):
    out = tmp_path / "soak.jsonl"
    code = soak.main(["--acts", "12", "--seed", "5", "--out", str(out)])
    *records, summary = [json.loads(line) for line in out.read_text().splitlines()]
    assert code == 0 and summary["good"], [r for r in records if "failure" in r]
    assert len(records) == summary["acts"] == 12
