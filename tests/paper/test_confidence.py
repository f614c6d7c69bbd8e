"""What confidence is worth: its measures by hand, noise, and how weights are learned."""

import numpy as np
import pytest

from deccs.counting.trust import WEIGHTS, sigmoid
from deccs_paper.confidence import command, learning, noise
from deccs_paper.confidence.runs import ConfidenceRun, are_correct, auroc, calibration_error
from deccs_paper.confidence.tables import page_text
from deccs_paper.records import append
from deccs_paper.yardstick.runs import carry_out


def test_measures_by_hand():
    assert are_correct(np.array([0, 0, 1, 2]), np.array([3, 3, 3, 1])).tolist() == [1, 1, 0, 1]
    assert auroc(np.array([True, True]), np.array([0.1, 0.2])) is None
    assert auroc(np.array([True, False, True]), np.array([0.9, 0.5, 0.4])) == 0.5
    # Two bins: 0.25 against one of two right, 0.8 against all right
    values = np.array([0.25, 0.25, 0.8, 0.8])
    assert calibration_error(np.array([1, 0, 1, 1]), values) == pytest.approx((0.25 + 0.2) / 2)


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


def made_up(name, seed):
    """A record whose labels are right as often as its terms say."""
    rng = np.random.default_rng(seed)
    terms = {name: rng.normal(size=300) for name in learning.NAMES}
    logs = 0.5 * terms["neighbors"] + 2 * terms["stability"] + 1 * terms["density"]
    logs += WEIGHTS["support"] * terms["support"] + 0.3
    correct = rng.uniform(size=300) < sigmoid(logs)
    return {
        "experiment": "confidence",
        "dataset": name,
        "sha256": name,
        "method": "DECCS",
        "recipe": 1,
        "seed": 0,
        "status": "ok",
        "terms": {key: np.round(values, 3).tolist() for key, values in terms.items()},
        "correct": correct.astype(int).tolist(),
    }


def test_weights_that_made_the_labels_are_learned(tmp_path):
    made = [made_up(f"set {number}", number) for number in range(12)]
    weights = learning.learned(made)
    expected = {"neighbors": 0.5, "stability": 2, "density": 1, "always": 0.3}
    for name, value in expected.items():
        assert weights[name] == pytest.approx(value, abs=0.25)
    for record in made:
        append(tmp_path / "made.jsonl", record)
    text = learning.learned_text(tmp_path / "made.jsonl")
    assert "12 records" in text and "AUROC" in text


def test_without_records_nothing_is_learned(tmp_path):
    with pytest.raises(ValueError, match="no records of labeled data sets"):
        learning.learned_text(tmp_path / "none.jsonl")


def test_noise_is_measured_and_shown(tmp_path):
    draw = noise.Noise("uniform noise", 120, 2, 0, k=2)
    out = tmp_path / "out.jsonl"
    for record in carry_out(ConfidenceRun(draw, 0, ("DECCS",), noise.EXPERIMENT)):
        append(out, record)
        assert "warned" in command.result(record)
    text = page_text(out)
    assert "| uniform noise | 1 |" in text and "100%" in text
