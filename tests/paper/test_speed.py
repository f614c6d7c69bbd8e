"""The benchmark of the loops measures the real loops."""

import json

import numpy as np
import pytest
import torch

from deccs.network.autoencoder import Autoencoder
from deccs_paper import plain_loops, speed


def test_operations_of_a_step_are_those_torch_counts():
    from torch.utils.flop_counter import FlopCounterMode

    network = Autoencoder.feed_forward(30, (20, 10))
    with FlopCounterMode(display=False) as counted:
        _, back = network(torch.randn(16, 30))
        back.sum().backward()
    assert counted.get_total_flops() / 1e9 == pytest.approx(speed.step_gflop(30, (20, 10), 16))


def test_both_kinds_of_loop_run():
    X = torch.randn(300, 6)
    labels = torch.randint(3, (150, 4))
    assert plain_loops.pretraining_seconds(Autoencoder.feed_forward(6, (4, 2)), X, 32, 3) > 0
    assert plain_loops.update_seconds(Autoencoder.feed_forward(6, (4, 2)), X, labels, 32, 3) > 0
    assert speed.pretraining_step(6, (4, 2), 300, 32) > 0
    assert speed.update_step(6, (4, 2), 300, 150, 3, 5) > 0


def test_the_watch_notes_when_the_papers_number_is_reached():
    class Finished:
        sample = np.arange(4)
        base_partitions = np.array([[0, 0, 1, 1]])

    watch = speed.Watch(np.array([0, 0, 1, 1]), goal=0.9)
    watch.on_round(Finished)
    assert watch.reached is not None
    never = speed.Watch(np.array([0, 1, 0, 1]), goal=0.9)
    never.on_round(Finished)
    assert never.reached is None


@pytest.mark.slow
def test_the_command_writes_a_line_per_measurement(tmp_path, capsys):
    assert (
        speed.main(["--datasets", "--sizes", "10000", "--out", str(tmp_path / "speed.jsonl")]) == 0
    )
    figures = [json.loads(line) for line in (tmp_path / "speed.jsonl").read_text().splitlines()]
    assert len(figures) == 12 and all(figure["machine"]["cores"] for figure in figures)
    assert "of the limit" in capsys.readouterr().out
