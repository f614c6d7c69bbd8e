"""What confidence is worth: its measures by hand, noise, and how weights are learned."""

import numpy as np
import pytest

from deccs.calibration import bins_of, calibration_error
from deccs.counting.trust import WEIGHTS, sigmoid
from deccs_paper.confidence import command, learning, noise
from deccs_paper.confidence.runs import (
    ConfidenceRun,
    are_correct,
    are_of_majority,
    auroc,
    bins_as_json,
)
from deccs_paper.confidence.tables import page_text, pooled, write_picture
from deccs_paper.records import append
from deccs_paper.yardstick.runs import carry_out


def test_measures_by_hand():
    assert are_correct(np.array([0, 0, 1, 2]), np.array([3, 3, 3, 1])).tolist() == [1, 1, 0, 1]
    assert are_of_majority(np.array([0, 0, 1, 2]), np.array([3, 3, 3, 1])).all()
    assert auroc(np.array([True, True]), np.array([0.1, 0.2])) is None
    assert auroc(np.array([True, False, True]), np.array([0.9, 0.5, 0.4])) == 0.5
    # Two bins: 0.25 against one of two right, 0.8 against all right
    values = np.array([0.25, 0.25, 0.8, 0.8])
    assert calibration_error(values, [1, 0, 1, 1]) == pytest.approx((0.25 + 0.2) / 2)


def test_there_are_twenty_draws_of_five_kinds():
    sets = noise.noise_sets()
    kinds = [each.kind for each in sets]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(kinds, 20)
    assert len(set(kinds)) == 5 and {each.d for each in sets} >= {2, 100}


def test_permuted_columns_keep_their_values():
    draw = noise.Noise("permuted breast cancer", 400, 3, 0)
    X, y = draw.arrays()
    assert X.shape == (400, 3) and not y.any()
    whole = np.round(noise.table(draw.kind), 4)
    assert all(any(np.isin(column, other).all() for other in whole.T) for column in X.T)
    assert (draw.arrays()[0] == X).all()


def keep_made_up(folder, name, seed):
    """What a run keeps, with labels that are right as often as their terms say."""
    rng = np.random.default_rng(seed)
    terms = {name: rng.normal(size=600) for name in learning.NAMES}
    logs = 0.5 * terms["together"] + 1 * terms["valley"] + 1 * terms["density"]
    logs += WEIGHTS["support"] * terms["support"] - 0.4 * terms["shallowest"] + 0.3
    correct = rng.uniform(size=600) < sigmoid(logs)
    np.savez(folder / f"{name}.npz", dataset=np.array(name), correct=correct, warned=False, **terms)


def test_weights_that_made_the_labels_are_learned(tmp_path):
    for number in range(8):
        keep_made_up(tmp_path, f"set {number}", number)
    keep_made_up(tmp_path, "mice", 99)  # only judged
    made = learning.read_kept(tmp_path)
    assert len(made) == 8
    weights = learning.learned(made)
    expected = {"together": 0.5, "valley": 1, "density": 1, "always": 0.3}
    for name, value in expected.items():
        assert weights[name] == pytest.approx(value, abs=0.3)
    assert weights["shallowest"] == 0  # more evidence never makes a label less sure
    assert weights["support"] == WEIGHTS["support"]
    text = learning.learned_text(tmp_path)
    assert "8 data sets" in text and "AUROC" in text


def test_without_terms_nothing_is_learned(tmp_path):
    with pytest.raises(ValueError, match="nothing of labeled data sets"):
        learning.learned_text(tmp_path)


def test_bins_of_data_sets_are_added(tmp_path):
    first = bins_of([0.25, 0.85], [True, True]), bins_of([0.25, 0.25], [False, True])
    made = [{"bins": bins_as_json(each)} for each in first]
    whole = pooled(made)
    assert whole.counts.tolist() == bins_of([0.25] * 3 + [0.85], [1, 1, 0, 1]).counts.tolist()
    assert whole.error == pytest.approx(calibration_error([0.25] * 3 + [0.85], [1, 1, 0, 1]))


def test_a_run_with_classes_keeps_its_terms_and_is_drawn(tmp_path):
    out, terms = tmp_path / "out.jsonl", tmp_path / "terms"
    for record in carry_out(ConfidenceRun(TwoBlobs(), 0, ("DECCS",), terms=terms)):
        append(out, record)
    assert record["status"] == "ok" and record["accuracy"] == 1
    assert sum(record["bins"]["rows"]) == 60
    with np.load(terms / "two blobs-DECCS-0.npz") as kept:
        assert set(learning.NAMES) < set(kept.files) and kept["correct"].all()
    write_picture(out, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5_000


class TwoBlobs:
    name, sha256, n, d, k = "two blobs", "-", 60, 2, 2

    def arrays(self):
        rng = np.random.default_rng(0)
        y = np.arange(60) % 2
        return rng.normal(size=(60, 2)) + 20 * y[:, None], y


def test_noise_is_measured_and_shown(tmp_path):
    draw = noise.Noise("uniform noise", 120, 2, 0, k=2)
    out = tmp_path / "out.jsonl"
    for record in carry_out(ConfidenceRun(draw, 0, ("DECCS",), noise.EXPERIMENT)):
        append(out, record)
        assert "warned" in command.result(record)
    text = page_text(out)
    assert "| uniform noise | 1 |" in text and "100%" in text
