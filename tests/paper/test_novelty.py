"""What novelty is worth: cases by hand, one run, and its table."""

from dataclasses import dataclass

import numpy as np
import pytest

from deccs_paper.novelty import runs
from deccs_paper.novelty.cases import BETWEEN, LeftOut, cases, set_of
from deccs_paper.novelty.tables import mean_of_sets, page_text, value
from deccs_paper.records import append
from deccs_paper.yardstick.runs import carry_out


@dataclass(frozen=True)
class Blobs:
    """Three far blobs, and some rows without a class."""

    name: str = "blobs"
    sha256: str = "none"
    n: int = 190
    d: int = 3
    k: int = 3

    def arrays(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1, 2, -1], [60, 60, 60, 10])
        return rng.normal(size=(190, 3)) + 9 * y[:, None], y


def test_a_case_leaves_one_class_out():
    case = LeftOut(Blobs(), 1, 0)
    split = case.split
    assert (
        case.name == f"blobs{BETWEEN}1" and set_of(case.name) == "blobs" and case.k == split.k == 2
    )
    assert (len(split.train), len(split.fresh), len(split.novel)) == (96, 24, 60)
    assert (np.abs(split.novel.mean(axis=0) - 9) < 1).all()
    known = np.concatenate([split.train, split.fresh])
    assert len(np.unique(known, axis=0)) == 120 and not (np.abs(known.mean(axis=1) - 9) < 3).any()


def test_the_first_class_of_all_sets_comes_first():
    found = cases([Blobs("a"), Blobs("b")], 2)
    assert [(case.file.name, case.draw) for case in found] == [
        ("a", 0),
        ("b", 0),
        ("a", 1),
        ("b", 1),
    ]
    assert len({case.left for case in found if case.file.name == "a"}) == 2


def test_scores_are_measured_by_hand():
    judged = runs.Judged(np.array([0.5, 0.995]), np.array([0.995, 1.0]))
    assert runs.auroc(judged.fresh, judged.novel) == 0.875
    assert judged.threshold(0.01) == 0.99
    assert runs.Judged(judged.fresh, judged.novel, np.arange(101.0)).threshold(0.05) == 95
    made = [
        {"dataset": f"{name}{BETWEEN}0", "method": "DECCS", "false": {"0.01": rate}}
        for name, rate in (("a", 0.1), ("a", 0.3), ("b", 0.4))
    ]
    assert mean_of_sets(made, "DECCS", "false 0.01") == pytest.approx(0.3)
    assert value(made[0], "false 0.01") == 0.1


def test_a_run_finds_a_far_class(tmp_path):
    out = tmp_path / "out.jsonl"
    for name in ("isolation forest", "nearest neighbors"):
        for record in carry_out(runs.NoveltyRun(LeftOut(Blobs(), 2, 0), 0, (name,))):
            assert record["status"] == "ok", record
            append(out, record)
    assert (
        record["auroc"] == 1.0 and record["found"]["0.01"] == 1.0 and record["false"]["0.05"] < 0.3
    )


@pytest.mark.slow
def test_all_scores_are_in_the_table(tmp_path):
    out = tmp_path / "out.jsonl"
    for record in carry_out(runs.NoveltyRun(LeftOut(Blobs(), 2, 0), 0, tuple(runs.METHODS))):
        append(out, record)
    text = page_text(out)
    assert "| BLOBS | 2 |" in text and all(name in text for name in runs.METHODS)
