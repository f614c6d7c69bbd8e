"""Benchmark runs on a cluster."""

import os
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from deccs_paper import commands, records
from deccs_paper.experiments import Row
from deccs_paper.processes import ClusterWorkers, work_through
from deccs_paper.runner import Run
from deccs_paper.yardstick import runs
from deccs_paper.yardstick.pool import read_pool
from tests.paper.made_up import made
from tests.paper.test_yardstick import write_pool


def invoke(*words):
    app = typer.Typer()
    commands.add_commands(app)
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "300"})


@pytest.mark.slow
def test_the_yardstick_on_dask_has_the_records_it_has_here(dask_client, tmp_path, monkeypatch):
    folder, out = write_pool(tmp_path / "pool", "one", "two"), tmp_path / "out.jsonl"
    monkeypatch.chdir(tmp_path)
    words = ("yardstick", "pool", "--methods", "kmeans", "--seeds", 2, "--out", out)
    result = invoke(*words, "--backend", "dask", "--address", dask_client.scheduler.address)
    assert result.exit_code == 0, result.output
    done = list(records.read(out))
    assert len(done) == 4 and {record["backend"] for record in done} == {"DaskDistributedBackend"}
    for record in done:
        (file,) = (file for file in read_pool(folder) if file.name == record["dataset"])
        (here,) = runs.carry_out(runs.PoolRun(file, record["seed"], ("kmeans",)))
        assert here["scores"] == record["scores"]
    invoke(*words, "--backend", "dask", "--address", dask_client.scheduler.address)
    assert len(list(records.read(out))) == 4  # nothing is repeated


def dies_on_one_data_set(run, cache):
    assert cache.is_absolute()  # a worker is in another folder
    if run.dataset == "mice":
        os._exit(3)
    return made(Row(run.method, run.method), run.dataset, [0.5])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_run_whose_worker_dies_fails_and_the_others_do_not(elsewhere, tmp_path):
    if elsewhere == "loky":
        pytest.skip("runs have processes of their own on this machine")
    names = ("synth", "mice", "usps")
    todo = [Run("default", "DEC", name, 0, {}) for name in names]
    workers = ClusterWorkers(Path("cache"), dies_on_one_data_set)
    assert workers.jobs == 2
    done = []
    with workers:
        work_through(todo, workers, tmp_path / "out.jsonl", lambda running: None, done.extend)
    assert {record["dataset"]: record["status"] for record in done} == {
        "synth": "ok",
        "mice": "failed",
        "usps": "ok",
    }
    (error,) = (record["error"] for record in done if "error" in record)
    assert re.match(r"(Dask|Ray)\w+ could not run it: \w+", error)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--backend", "spark"), "--backend must be dask or ray, got 'spark'"),
        (("--backend", "dask"), "--backend dask needs the --address of its scheduler"),
        (("--address", "tcp://a:1"), "give --backend"),
        (("--backend", "ray", "--jobs", "2"), "no --jobs"),
    ],
)
def test_errors_say_what_a_cluster_needs(words, message):
    result = invoke("benchmark", *words)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
