"""The benchmark of the consensus functions."""

import numpy as np
import pytest

from deccs import consensus, scores
from deccs_paper.consensus_speed import Measured, main, markdown, measure, noisy_ensemble
from deccs_paper.textbook import TEXTBOOK


def test_members_are_the_truth_with_a_tenth_of_the_labels_drawn():
    truth, members = noisy_ensemble(20_000)
    assert members.shape == (4, 20_000)
    assert (members != truth).mean(axis=1) == pytest.approx(
        np.full(4, 0.09), abs=0.01
    )  # some are drawn right


@pytest.mark.parametrize("function", TEXTBOOK)
def test_the_textbook_finds_what_we_find(function):
    truth, members = noisy_ensemble(600, seed=1)
    textbook = scores.nmi(truth, TEXTBOOK[function](members, 10))
    ours = scores.nmi(truth, consensus.FUNCTIONS[function](members, 10, random_state=0))
    assert ours > textbook - (0.15 if function in ("hgpa", "nmf") else 0.03)


def test_textbook_lwea_is_ours_exactly():
    _, members = noisy_ensemble(300, seed=2)
    assert scores.ari(TEXTBOOK["lwea"](members, 10), consensus.lwea(members, 10)) == 1


def test_the_table_has_the_textbook_as_a_multiple():
    rows = [
        Measured("eac", "deccs", 1_000, 0.5, 400, 0.9, 10),
        Measured("eac", "textbook", 1_000, 5, 400, 0.9, 10),
        Measured("eac", "deccs", 70_000, 0.7, 450, 0.95, 10),
    ]
    assert "| eac | 0.500 s (textbook 10 x) | 0.700 s | 400 | 450 | 0.950 |" in markdown(rows)


def test_one_measurement():
    found = measure("mcla", "deccs", 500)
    assert (
        found.n_clusters == 10
        and found.nmi > 0.9
        and found.seconds > 0
        and found.peak_memory_mb > 50
    )


@pytest.mark.slow
def test_the_command_prints_a_table(capsys, tmp_path):
    assert (
        main(
            ["--sizes", "300", "400", "--functions", "eac", "--out", str(tmp_path / "speed.jsonl")]
        )
        == 0
    )
    assert "| eac |" in capsys.readouterr().out
    assert len((tmp_path / "speed.jsonl").read_text().splitlines()) == 4
