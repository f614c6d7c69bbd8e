"""Every "auto" rule: one function each, all in this file."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn


def default_layers(n_points: int, n_features: int) -> tuple[int, ...]:
    """The paper's encoders, chosen by the size of the data.

    A plane or space needs no more than 20-20 units (SYNTH); up to 2,000 points the network is
    256-128-64 (MICE), above it is 500-500-2000-10, with an embedding no wider than the data.

    >>> default_layers(2_000, 2), default_layers(552, 77), default_layers(70_000, 784)
    ((20, 20, 2), (256, 128, 64), (500, 500, 2000, 10))
    """
    if n_features <= 3:
        return 20, 20, n_features
    hidden = (256, 128, 64) if n_points <= 2_000 else (500, 500, 2000, 10)
    return *hidden[:-1], min(hidden[-1], n_features)


def default_fuzzifier(n_points: int, n_features: int) -> float:
    """The rule of Schwaemmle and Jensen (2010), at most Bezdek's usual 2.

    Distances become alike in high dimension, and m = 2 then draws all centres to the mean of the data;
    the rule is the smallest m that finds nothing in pure noise of this size, and falls towards 1.

    >>> [round(default_fuzzifier(5_000, d), 2) for d in (2, 17, 784)]
    [2.0, 1.14, 1.01]
    """
    n, d = float(n_points), float(n_features)
    rule = 1 + (1418 / n + 22.05) / d**2 + (12.33 / n + 0.243) * d ** (-0.0406 * np.log(n) - 0.1134)
    return float(min(rule, 2.0))


def default_deep_steps(n_points: int, batch_size: int) -> int:
    """30 passes over the data, at least 1,000 and at most 4,000 steps.

    >>> default_deep_steps(552, 256), default_deep_steps(9_298, 256), default_deep_steps(70_000, 256)
    (1000, 1110, 4000)
    """
    return min(4_000, max(1_000, 30 * math.ceil(n_points / batch_size)))


def default_rate(network: nn.Module) -> float:
    """Adam's: 0.001 for a tiny network, 0.0001 above.

    An output moves by about rate times width in a step, and the embedding of the large network is thrown about at
    0.001.
    """
    n_parameters = sum(parameter.numel() for parameter in network.parameters())
    return 1e-3 if n_parameters <= TINY_NETWORK else 1e-4


def smallest_cluster(n_sample: int, n_clusters: int, wanted: int = 6) -> int:
    """Clusters of five or fewer do not count; on small samples the limit shrinks with them.

    >>> smallest_cluster(5_000, 10), smallest_cluster(30, 3), smallest_cluster(8, 4)
    (6, 2, 1)
    """
    return max(1, min(wanted, n_sample // (5 * n_clusters)))


def default_restarts(n_points: int) -> int:
    """How often the rounds may start anew: where they cost seconds, a bad start need not be kept.

    >>> default_restarts(552), default_restarts(70_000)
    (4, 1)
    """
    return 4 if n_points <= 2_000 else 1


def default_sample_size(n_points: int) -> int:
    """The paper's: half of the points up to 11,000, else 8 %; at least 256 if there are as many.

    Above 11,000 never fewer than at 11,000: 8 % of them would be 880, and samples that small cost up to 0.15 of NMI
    (``deccs reproduce study-sample-size``). At most 10,000, because single linkage holds all pairs of the sample:
    0.4 GB there.

    >>> default_sample_size(9_298), default_sample_size(70_000), default_sample_size(150)
    (4649, 5600, 150)
    >>> default_sample_size(16_284), default_sample_size(1_000_000)
    (5500, 10000)
    """
    size = n_points // 2 if n_points <= 11_000 else max(5_500, int(0.08 * n_points))
    return min(n_points, max(size, 256), 10_000)


def default_steps(n_points: int) -> int:
    """Steps of an update: few for the large network, more for the small ones, whose steps cost next to nothing.

    >>> default_steps(70_000), default_steps(552)
    (120, 400)
    """
    return 120 if n_points > 2_000 else 400


def consensus_strength(lambda_cons: float | str, Z: torch.Tensor) -> float:
    """lambda_cons in the units of this embedding."""
    if not isinstance(lambda_cons, str):
        return float(lambda_cons)
    return 1.0 / max(float(Z.var(0).mean()), 0.01)


def default_lambda_rec(n_points: int) -> float:
    """The paper's 1; 10 up to 2,000 points, which a network can move at will and soon agree on wrongly.

    >>> default_lambda_rec(70_000), default_lambda_rec(552)
    (1.0, 10.0)
    """
    return 1.0 if n_points > 2_000 else 10.0


TINY_NETWORK = 20_000  # parameters: up to here the overhead of a step is larger than its products


def default_epochs(n_points: int, batch_size: int) -> int:
    """Epochs enough for some 4,000 steps, at least 15 and at most 1,000.

    The rounds can only be as good as the embedding they start from; fewer steps show in the result.

    >>> default_epochs(9_298, 128), default_epochs(70_000, 128), default_epochs(552, 128)
    (56, 15, 1000)
    """
    steps_per_epoch = max(1, n_points // batch_size)
    return int(min(1_000, max(15, math.ceil(4_000 / steps_per_epoch))))


def default_noise(n_features: int) -> float:
    """A fifth of the inputs, where the others can tell what they were; none for fewer than ten columns."""
    return 0.2 if n_features >= 10 else 0.0
