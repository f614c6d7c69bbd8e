"""The "auto" rules: each has a setting whose value may be "auto", and each such setting has a rule."""

import math

import pytest
import torch
from torch import nn

from deccs import Network, Pretraining, Rounds
from deccs.checks import rules_of
from deccs.rules import (
    RULES,
    default_deep_steps,
    default_fuzzifier,
    default_lambda_cons,
    default_lambda_rec,
    default_layers,
    default_noise,
    default_pretraining_steps,
    default_rate,
    default_restarts,
    default_sample_size,
    default_update_steps,
    smallest_cluster,
)
from deccs.storage.models import estimators

CLASSES = {**estimators(), "Network": Network, "Pretraining": Pretraining, "Rounds": Rounds}
BUDGET = {"DECCS.network", "DECCS.pretraining", "DECCS.rounds"}  # parts with settings of their own
ELSEWHERE = {"scale", "device", "n_clusters"}  # decided by values of the data, by the machine


def test_every_setting_that_may_be_auto_has_a_rule_and_no_other():
    may_be_auto = {
        f"{cls.__name__}.{name}"
        for cls in CLASSES.values()
        for name, rule in rules_of(cls).items()
        if "'auto'" in rule.words and name not in ELSEWHERE
    }
    assert set(RULES) - BUDGET == may_be_auto


def test_every_rule_says_what_it_does():
    for rule in RULES.values():
        assert rule.__doc__ and len(rule.__doc__.splitlines()[0]) < 130


def test_networks_by_size_of_the_data():
    assert default_layers(100, 2) == (20, 20, 2)
    assert default_layers(500, 77) == (256, 128, 64)
    assert default_layers(500, 16) == (256, 128, 16)  # no wider than the data
    assert default_layers(9_298, 256) == (500, 500, 2000, 10)
    assert default_layers(2_000, 64)[-1] == 64 and default_layers(2_001, 64)[-1] == 10


def test_more_points_never_have_a_smaller_sample():
    sizes = [default_sample_size(n) for n in range(1, 200_000, 50)]
    assert sizes == sorted(sizes)
    assert default_sample_size(11_001) == default_sample_size(11_000) == 5_500  # 8 % would be 880
    assert max(default_sample_size(10**n) for n in range(10)) == 10_000


def test_the_budget_of_pretraining_does_not_grow_with_the_data():
    def steps(n):
        return default_pretraining_steps(n, 128, math.ceil(0.9 * n / 128))

    assert steps(10**6) == steps(10**9) == 1_024_000 // 128
    assert steps(552) == 4 * 1_000  # at most 1,000 passes
    assert max(steps(n) for n in range(1, 100_000, 997)) <= 8_000
    assert default_pretraining_steps(70_000, 128, 532) == 15 * 532  # the published runs on MNIST
    assert default_pretraining_steps(10**6, 10**7, 1) == 1  # a step at least


def test_steps_of_deep_methods_by_hand():
    assert default_deep_steps(10, 256) == 1_000
    assert default_deep_steps(256 * 50, 256) == 30 * 50
    assert default_deep_steps(10**9, 256) == 4_000


def test_small_data_gets_more_steps_starts_and_reconstruction():
    assert (default_update_steps(2_000), default_update_steps(2_001)) == (400, 120)
    assert (default_restarts(2_000), default_restarts(2_001)) == (4, 1)
    assert (default_lambda_rec(2_000), default_lambda_rec(2_001)) == (10.0, 1.0)
    assert (default_noise(9), default_noise(10)) == (0.0, 0.2)


def test_lambda_cons_makes_the_loss_independent_of_the_scale():
    Z = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    for scale in (0.5, 1.0, 7.0):
        weighted = default_lambda_cons(scale * Z) * (scale * Z).square().mean()
        assert float(weighted) == pytest.approx(default_lambda_cons(Z) * float(Z.square().mean()))
    assert default_lambda_cons(torch.zeros(5, 2)) == 100  # a collapsed embedding has a limit


def test_tiny_networks_learn_faster():
    assert default_rate(nn.Linear(99, 200)) == 1e-3  # 99 * 200 + 200 = 20,000 parameters
    assert default_rate(nn.Linear(100, 200)) == 1e-4


def test_the_smallest_cluster_shrinks_with_the_sample():
    assert smallest_cluster(5_000, 10) == 6
    assert smallest_cluster(30, 3) == 2
    assert smallest_cluster(8, 4) == 1
    assert smallest_cluster(5_000, 10, wanted=3) == 3


def test_the_fuzzifier_is_at_most_the_usual_one_and_above_one():
    values = [default_fuzzifier(n, d) for n in (10, 1_000, 10**6) for d in (1, 2, 10, 100, 5_000)]
    assert all(1 < value <= 2 for value in values)
