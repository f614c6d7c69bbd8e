"""The cost model counts what fits do: its numbers are those of the code that does the work."""

import json
import math

import pytest
import torch

from deccs.app import commands
from deccs.app.pace import Pace, measured_pace
from deccs.app.plan import COSTS, Job, advice, memory_of_process, seconds_of
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.group.group import Group
from deccs.labeling import own_parts
from deccs.network.autoencoder import Autoencoder
from deccs.settings import Pretraining
from deccs.training.batches import hold_out
from deccs.training.engine import Run
from deccs.training.pretraining import Reconstruction
from tests.helpers.command_line import deccs

PACE = Pace(products=1e11, bytes_read=5e8, threads=2)


class OneOf(Group):
    """One of several processes, as far as it counts its own work."""

    def __init__(self, size, rank=0):
        self.size, self.rank = size, rank


@pytest.mark.parametrize("size", [1, 2, 3, 64, 1000])
def test_steps_batches_and_averages_are_those_of_pretraining(size):
    n_rows = 70_000
    job = Job(n_rows, 8, size)
    source = source_of(torch.randn(n_rows, 8).numpy())
    rows = Rows(source, fit_scaler(source, None))
    group = OneOf(job.processes_in_training)
    train_on, held_out = hold_out(n_rows, Pretraining().held_out, torch.Generator().manual_seed(0))
    network = Autoencoder.feed_forward(8, job.layers)
    learner = Reconstruction(
        network, [], rows, train_on, held_out, Pretraining(), 0, "whole network", group
    )
    assert job.training_steps == learner.n_steps
    assert job.batch == learner.batches.size
    if size == 1:
        assert job.times_sent == 0
    elif group.size > 1:
        every = min(learner.per_pass, 500)
        checks = [step for step in range(1, learner.n_steps + 1) if step % every == 0]
        n_checks = len(checks) + (learner.n_steps % every > 0)
        assert job.times_sent == learner.n_steps // learner.average_every + 3 * n_checks


def test_a_check_averages_the_weights_and_two_moments_of_adam():
    """Three times as many numbers as weights, but for the counts of steps."""
    sent = []

    class Counting(OneOf):
        def average(self, tensors):
            sent.append(sum(tensor.numel() for tensor in tensors))

    network = Autoencoder.feed_forward(4, (3,))
    rows = Rows(
        source_of(torch.randn(500, 4).numpy()),
        fit_scaler(source_of(torch.randn(9, 4).numpy()), None),
    )
    learner = Reconstruction(
        network,
        list(network.parameters()),
        rows,
        torch.arange(400),
        torch.arange(400, 500),
        Pretraining(n_steps=2),
        0,
        "whole network",
        Counting(2),
    )
    run = Run(learner, 2, 1e-3)
    run.one_step()
    run._agree()
    n_weights = sum(parameter.numel() for parameter in network.parameters())
    assert sent == [3 * n_weights + len(list(network.parameters()))]


@pytest.mark.parametrize("size", [1, 2, 7, 64])
@pytest.mark.parametrize("n_rows", [300_000, 10_000_000])
def test_the_busiest_process_labels_so_many_rows(n_rows, size):
    most = max(sum(map(len, own_parts(n_rows, OneOf(size, rank)))) for rank in range(size))
    assert Job(n_rows, 64, size).n_labeled == pytest.approx(most, abs=2**18)
    assert Job(n_rows, 64, size).n_labeled >= most


def test_weights_are_those_of_the_network():
    job = Job(1_000_000, 20)
    weights = [p for p in Autoencoder.feed_forward(20, job.layers).parameters() if p.ndim == 2]
    assert job.n_weights == sum(weight.numel() for weight in weights)


@pytest.mark.parametrize("n_columns", [4, 64, 784])
def test_time_falls_with_processes_and_grows_with_rows(n_columns):
    def total(n_rows, size):
        return sum(seconds_of(Job(n_rows, n_columns, size), PACE, 10).values())

    assert total(10**9, 1) > total(10**9, 8) > total(10**9, 64) > 0
    assert total(10**10, 8) > 5 * total(10**9, 8)
    learning = [
        seconds_of(Job(n_rows, n_columns), PACE, 10)["pretraining"] for n_rows in (10**7, 10**9)
    ]
    assert learning[0] == learning[1]  # from a sample


def test_processes_do_not_share_what_every_one_holds():
    one, many = (memory_of_process(Job(10**9, 64, size), COSTS) for size in (1, 64))
    assert one == many


def test_what_dominates_and_what_helps():
    assert "Labeling dominates" in advice(Job(10**9, 64), PACE, 1)
    slow = advice(Job(10**9, 64, 4096), PACE, 0.1)
    assert "Network dominates" in slow and "With a network of 1 Gbit/s" in slow
    assert "save less than a tenth" in advice(Job(1_000, 64), PACE, 1)


def test_the_pace_of_this_machine_is_measured():
    before = torch.get_num_threads()
    pace = measured_pace(threads=1)
    assert pace.threads == 1 and torch.get_num_threads() == before
    assert pace.products > 1e8 and pace.bytes_read > 1e5
    assert math.isfinite(pace.products + pace.bytes_read)


def test_the_command_prints_a_table_and_json(monkeypatch):
    monkeypatch.setattr(commands, "measured_pace", lambda threads: PACE)
    job = ("plan", "--rows", "1e9", "--columns", 64, "--processes", 64)
    code, out, _ = deccs(*job)
    assert code == 0
    assert "1,000,000,000 rows, 64 columns, 64 processes" in out
    for word in ("reading", "pretraining", "labeling", "network", "total", "memory", "disk"):
        assert f"\n{word}" in out
    assert "dominates" in out.splitlines()[-1]
    plan = json.loads(deccs(*job, "--json")[1])["plan"]
    assert plan["rows"] == 10**9 and plan["learned_from"] == 262_144
    assert plan["seconds_total"] == pytest.approx(sum(plan["seconds"].values()), abs=0.1)
    faster = json.loads(deccs(*job, "--network", 100, "--json")[1])["plan"]
    assert faster["seconds"]["network"] == pytest.approx(plan["seconds"]["network"] / 100, rel=0.01)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--rows", "1e9"), "needs --rows and --columns"),
        (("--rows", "1", "--columns", 2), "--rows must be from 2 to 1e+15, got 1"),
        (("--rows", "2.5", "--columns", 2), "--rows must be a whole number, got 2.5"),
        (("--rows", "nan", "--columns", 2), "--rows must be from 2"),
        (("--rows", "9", "--columns", 0), "--columns must be from 1 to 131072, got 0"),
        (("--rows", "9", "--columns", 2, "--processes", 0), "--processes must be from 1"),
        (("--rows", "9", "--columns", 2, "--threads", 0), "--threads must be from 1 to 1024"),
        (("--rows", "9", "--columns", 2, "--network", 0), "--network must be from 0.001"),
    ],
)
def test_what_cannot_be_planned_is_refused(options, words):
    code, _, err = deccs("plan", *options)
    assert code == 2 and words in " ".join(err.split())
