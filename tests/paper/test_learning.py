"""The weights of the rule for k, learned from records."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deccs.counting.rule import WEIGHTS, WIDEST
from deccs_paper import records
from deccs_paper.how_many import runs
from deccs_paper.how_many.learning import (
    LEFT_OUT,
    answer_with,
    goodness,
    learned,
    learned_text,
    left_out,
    terms,
    usable,
)
from deccs_paper.how_many.rules import DECCS, Ranking
from deccs_paper.settings import PAPER
from deccs_paper.yardstick.runs import FAILED

KS = np.arange(2, 13)
CURVES = ("stability", "agreement", "valley", "split", "gap")


def made_up(decides, n=30, seed=0):
    """Records of data sets where one curve is high at the truth, and the others are noise."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(n):
        truth = int(rng.integers(3, 12))
        near = np.abs(KS - truth)
        curves = {name: rng.uniform(0, 0.2, len(KS)) for name in CURVES}
        curves[decides] = curves[decides] + np.where(near == 0, 0.7, 0.0)
        curves["gap"] = WIDEST * curves["gap"]  # as small as gaps are
        evidence = {name: curve.tolist() for name, curve in curves.items()}
        evidence |= {"k": KS.tolist(), "nmi": (0.8 - 0.05 * near).tolist()}
        made.append(
            {
                "experiment": runs.EXPERIMENT,
                "dataset": f"set {number}",
                "method": DECCS,
                "status": "ok",
                "seed": 0,
                "k": truth,
                "evidence": evidence,
                **runs.measures_of(Ranking((2,)), truth),
            }
        )
    return made


@pytest.mark.parametrize("decides", ["stability", "agreement", "valley", "gap"])
def test_the_term_that_decides_is_found(decides):
    made = made_up(decides)
    weights = learned(made)
    assert list(weights) == list(WEIGHTS)
    strength = {
        name: weight * np.concatenate([terms(record) for record in made]).std(axis=0)[place]
        for place, (name, weight) in enumerate(weights.items())
    }
    assert max(strength, key=strength.get) == decides and strength[decides] > 0
    others = [abs(value) for name, value in strength.items() if name != decides]
    assert strength[decides] > 2 * max(others)
    # on data it has not seen
    new = made_up(decides, seed=1)
    right = [answer_with(weights, record)["is_right"] for record in new]
    assert np.mean(right) > 0.9 and all(not record["is_truth"] for record in new)


def test_a_split_counts_against_a_number():
    made = made_up("split")
    assert learned(made)["valley"] < 0  # the term is the valley less the split, high at the truth


def test_records_twice_give_the_same_weights():
    made = made_up("gap", n=10)
    once, twice = learned(made), learned(made + made)
    assert_allclose(list(twice.values()), list(once.values()), rtol=1e-3, atol=1e-4)


def test_terms_by_hand():
    evidence = {"stability": [0.5, 0.6], "agreement": [0.1, 0.2], "gap": [0.0, 0.3]}
    evidence |= {"k": [2, 4], "valley": [1.0, 2.0], "split": [0.5, -1.0], "nmi": [0.1, 0.2]}
    by_name = dict(zip(WEIGHTS, terms({"evidence": evidence}).T, strict=True))
    assert_allclose(by_name["few"], [-np.log(2), -np.log(4)])
    assert_allclose(by_name["valley"], [0.5, 3.0])
    assert_allclose(by_name["gap"], [0.0, WIDEST])  # wider ones are alike


def test_goodness_by_hand():
    record = {"k": 4, "evidence": {"k": [2, 3, 4, 5, 8], "nmi": [0.7, 0.5, 0.6, 0.525, 0.57]}}
    # right: 3, 4, 5. NMI lacks 0, 0.1, 0, 0.075, 0.03 of 0.15
    assert_allclose(goodness(record), [0.5, 0.5 + 0.5 / 3, 1, 0.75, 0.4])


def test_one_cluster_stays_one_cluster():
    (record,) = made_up("gap", n=1)
    one = record | {"chosen": 1}
    weights = {name: float(name == "gap") for name in WEIGHTS}
    assert answer_with(weights, one)["chosen"] == 1
    assert answer_with(weights, one)["candidates"][1] == record["k"]
    assert answer_with(weights, record)["chosen"] == record["k"]


def test_only_records_of_our_rule_on_the_pool_are_used():
    (good,) = made_up("gap", n=1)
    others = [
        good | {"method": "silhouette"},
        good | {"experiment": "no clusters"},
        good | {"status": FAILED},
        good | {"dataset": next(iter(PAPER))},
        good | {"evidence": {}},
        {name: value for name, value in good.items() if name != "evidence"},
    ]
    assert usable([good, *others]) == [good]


def test_left_out_never_sees_its_own_data_set(monkeypatch):
    made = made_up("stability", n=8)
    spoiled = copy.deepcopy(made)
    for curve in CURVES:  # of the third data set: another truth and other evidence
        spoiled[2]["evidence"][curve] = spoiled[2]["evidence"][curve][::-1]
    spoiled[2]["k"] = 12

    def weights_by_set(given):
        used = {}
        monkeypatch.setattr(
            "deccs_paper.how_many.learning.answer_with",
            lambda weights, record: used.setdefault(record["dataset"], weights) and {},
        )
        left_out(given)
        return used

    before, after = weights_by_set(made), weights_by_set(spoiled)
    assert before["set 2"] == after["set 2"]
    assert all(before[name] != after[name] for name in before if name != "set 2")


def test_left_out_is_a_further_rule_with_a_row_for_each_record():
    made = made_up("agreement", n=10)
    made += [record | {"seed": 1} for record in made]
    rows = left_out([*made, made[0] | {"method": "silhouette"}])
    assert {row["method"] for row in rows} == {LEFT_OUT}
    assert sorted((row["dataset"], row["seed"]) for row in rows) == sorted(
        (record["dataset"], record["seed"]) for record in made
    )
    assert np.mean([row["is_right"] for row in rows]) > 0.8
    assert not any(record["method"] == LEFT_OUT for record in made)


def test_the_weights_are_printed_beside_those_in_the_code(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text("")
    assert "has no records of 'deccs'" in learned_text(path)
    for record in made_up("gap", n=5):
        records.append(path, record)
    text = learned_text(path)
    assert "Weights from 5 records" in text
    assert all(f"in the code {weight:g}" in text for weight in WEIGHTS.values())
