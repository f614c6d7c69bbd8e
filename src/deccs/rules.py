"""Every "auto" rule: one function each, all in this file.

``RULES`` maps a setting to its rule; the table in ``docs/method.md`` is made from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    import torch
    from torch import nn

LEAST_SIDE = 8  # pixels: in anything smaller a shift moves half of what is seen
SMALL_DATA = 2_000  # points: up to here networks are small and steps cost next to nothing
TINY_NETWORK = 20_000  # parameters: up to here the overhead of a step is larger than its products

Function = TypeVar("Function", bound=Callable[..., Any])
RULES: dict[str, Callable[..., Any]] = {}


def auto(*settings: str) -> Callable[[Function], Function]:
    """Say which settings a rule is for."""

    def add(rule: Function) -> Function:
        RULES.update(dict.fromkeys(settings, rule))
        return rule

    return add


@auto("Network.layers")
def default_layers(n_points: int, n_features: int) -> tuple[int, ...]:
    """20-20-d for d up to 3 columns; 256-128-64 up to 2,000 points; else 500-500-2000-10.

    The paper's encoders for SYNTH, MICE and the other data sets; the embedding is no wider than the
    data.

    >>> default_layers(2_000, 2), default_layers(552, 77), default_layers(70_000, 784)
    ((20, 20, 2), (256, 128, 64), (500, 500, 2000, 10))
    """
    if n_features <= 3:
        return 20, 20, n_features
    hidden = (256, 128, 64) if n_points <= SMALL_DATA else (500, 500, 2000, 10)
    return *hidden[:-1], min(hidden[-1], n_features)


@auto("Network.image_shape")
def image_shape_of_rows(rows: np.ndarray) -> tuple[int, int] | None:
    """Square, at least 8 x 8, if neighboring columns, to the right and below, are alike and others are not.

    "Alike" is a mean correlation at least 0.2 above that of random pairs and of pixels half an image apart: a
    series cut into lines is smooth along a line, but there half a line is nearer than the next line. And half of
    the columns or more must span half of the range of all values, as pixels do. No label takes part.

    >>> centers, pixels = np.random.default_rng(0).random((50, 2, 1)) * 8, np.arange(8)
    >>> x, y = np.exp(-((pixels - centers) ** 2) / 8).transpose(1, 0, 2)         # (50, 8) each
    >>> blots = (y[:, :, None] * x[:, None, :]).reshape(50, 64)
    >>> image_shape_of_rows(blots), image_shape_of_rows(np.sort(blots, axis=1)), image_shape_of_rows(x)
    ((8, 8), None, None)
    """
    n_features = rows.shape[1]
    side = math.isqrt(n_features)
    if side * side != n_features or side < LEAST_SIDE:
        return None
    spans = np.ptp(rows, axis=0)  # (n_features,)
    varies = spans > 0
    if not varies.any() or np.median(spans[varies]) < 0.5 * np.ptp(rows):
        return None
    deviation = rows.std(axis=0)
    z = (rows - rows.mean(axis=0)) / np.where(varies & (deviation > 0), deviation, 1.0)

    def alike(first: np.ndarray, second: np.ndarray) -> float:
        """The mean correlation of pairs of columns that vary."""
        both = varies[first] & varies[second]
        products = z[:, first[both]] * z[:, second[both]]
        return float(products.mean()) if both.any() else 0.0

    columns = np.arange(n_features).reshape(side, side)
    half = side // 2
    near = min(alike(columns[:, :-1], columns[:, 1:]), alike(columns[:-1], columns[1:]))
    shuffled = np.random.default_rng(0).permutation(n_features).reshape(side, side)
    far = max(
        alike(columns, shuffled),
        alike(columns[:, :-half], columns[:, half:]),
        alike(columns[:-half], columns[half:]),
    )
    return (side, side) if near >= far + 0.2 else None


@auto("RandomProjectionEM.n_components", "RandomProjectionFCM.n_components")
def dimensions_to_try(n_features: int) -> list[int]:
    """Of 5, 10, 20, 50 and 100, the dimension for which five random projections agree best.

    Never more than the data has columns.

    >>> dimensions_to_try(784), dimensions_to_try(16), dimensions_to_try(3)
    ([5, 10, 20, 50, 100], [5, 10, 16], [3])
    """
    return sorted({min(dimension, n_features) for dimension in (5, 10, 20, 50, 100)})


@auto("RandomProjectionEM.sample_size", "RandomProjectionFCM.sample_size")
def default_projection_sample(n_points: int, n_clusters: int) -> int:
    """All points, but at most 5,000: the linkage holds all pairs of them, 0.2 GB.

    >>> default_projection_sample(150, 3), default_projection_sample(70_000, 10)
    (150, 5000)
    """
    return min(n_points, max(5_000, n_clusters))


@auto("RandomProjectionFCM.fuzzifier")
def default_fuzzifier(n_points: int, n_features: int) -> float:
    """The rule of Schwaemmle and Jensen (2010), at most Bezdek's usual 2.

    In high dimension all distances become similar, and m = 2 then draws all centers to the mean of
    the data. The rule is the smallest m that finds no clusters in pure noise of this size; it falls
    towards 1 as the dimension grows.

    >>> [round(default_fuzzifier(5_000, d), 2) for d in (2, 17, 784)]
    [2.0, 1.14, 1.01]
    """
    n, d = float(n_points), float(n_features)
    rule = 1 + (1418 / n + 22.05) / d**2 + (12.33 / n + 0.243) * d ** (-0.0406 * np.log(n) - 0.1134)
    return float(min(rule, 2.0))


@auto(
    "DEC.n_steps",
    "IDEC.n_steps",
    "DCN.n_steps",
    "VaDE.n_steps",
    "DeepECT.n_steps",
    "ConCURL.n_steps",
)
def default_deep_steps(n_points: int, batch_size: int) -> int:
    """30 passes over the data, at least 1,000 and at most 4,000 steps.

    >>> default_deep_steps(552, 256), default_deep_steps(9_298, 256), default_deep_steps(70_000, 256)
    (1000, 1110, 4000)
    """
    return min(4_000, max(1_000, 30 * math.ceil(n_points / batch_size)))


@auto("SpectralNet.n_steps", "SpectralNet.siamese_steps")
def default_spectral_steps() -> int:
    """1,500 steps; the graph has at most ``sample_size`` points, so large data needs no more."""
    return 1_500


@auto("DEC.learning_rate", "IDEC.learning_rate", "DCN.learning_rate", "DeepECT.learning_rate")
def default_rate(network: nn.Module) -> float:
    """Adam's rate: 0.001 for a tiny network, 0.0001 for larger ones.

    An output moves by about rate times width in a step, and 0.001 is too much for the embedding of
    the large network.
    """
    n_parameters = sum(parameter.numel() for parameter in network.parameters())
    return 1e-3 if n_parameters <= TINY_NETWORK else 1e-4


@auto("DEC.update_interval", "IDEC.update_interval")
def default_update_interval(n_points: int, batch_size: int) -> int:
    """About one pass over the data, at least 50 and at most 140 steps.

    >>> default_update_interval(552, 256), default_update_interval(9_298 * 3, 256)
    (50, 109)
    """
    return max(50, min(140, math.ceil(n_points / batch_size)))


@auto("DeepECT.max_leaves")
def default_leaves(n_clusters: int) -> int:
    """Twice the number of clusters, as the authors use."""
    return 2 * n_clusters


@auto("DeepECT.split_interval")
def default_split_interval(n_steps: int, max_leaves: int) -> int:
    """The tree is full after half of the steps.

    >>> default_split_interval(n_steps=1_000, max_leaves=20)
    25
    """
    return max(1, n_steps // (2 * max_leaves))


@auto("VaDE.output_variance")
def default_output_variance(variance: float, n_features: int, n_latent: int) -> float:
    """That of a column, or less if there are few columns per dimension of the embedding.

    A point's reconstruction is worth at most n_features / 2 * variance / noise, and the price of its embedding
    grows with n_latent. At the full variance a dimension must say much about 25 columns to be worth its price;
    data with fewer columns would lose its embedding.

    >>> default_output_variance(1.0, 784, 10), default_output_variance(1.0, 16, 10)
    (1.0, 0.064)
    """
    return variance * min(1.0, n_features / n_latent / 25)


@auto("ConCURL.image_shape")
def default_image_shape(n_features: int) -> tuple[int, int, int]:
    """One channel, square; rows that are no square are images of height 1.

    >>> default_image_shape(784), default_image_shape(6)
    ((1, 28, 28), (1, 1, 6))
    """
    side = math.isqrt(n_features)
    return (1, side, side) if side * side == n_features else (1, 1, n_features)


def smallest_cluster(n_sample: int, n_clusters: int, wanted: int = 6) -> int:
    """Clusters of five or fewer do not count; on small samples the limit shrinks with them.

    >>> smallest_cluster(5_000, 10), smallest_cluster(30, 3), smallest_cluster(8, 4)
    (6, 2, 1)
    """
    return max(1, min(wanted, n_sample // (5 * n_clusters)))


@auto("Rounds.n_init")
def default_restarts(n_points: int) -> int:
    """4 up to 2,000 points, where the rounds take seconds and a bad start need not be kept; else 1.

    >>> default_restarts(552), default_restarts(70_000)
    (4, 1)
    """
    return 4 if n_points <= SMALL_DATA else 1


@auto("Rounds.sample_size")
def default_sample_size(n_points: int) -> int:
    """Half of the points (256 at least) up to 11,000, as in the paper; above 8 %, but 5,500 to 10,000.

    Above 11,000 never fewer than at 11,000: 8 % of them would be 880, and samples that small cost up to 0.15 of NMI
    (``deccs reproduce study-sample-size``). At most 10,000: the time of Ward's linkage grows with the square.

    >>> default_sample_size(9_298), default_sample_size(70_000), default_sample_size(150)
    (4649, 5600, 150)
    >>> default_sample_size(16_284), default_sample_size(1_000_000)
    (5500, 10000)
    """
    size = n_points // 2 if n_points <= 11_000 else max(5_500, int(0.08 * n_points))
    return min(n_points, max(size, 256), 10_000)


@auto("Rounds.n_steps")
def default_update_steps(n_points: int) -> int:
    """120; 400 up to 2,000 points, where a step costs next to nothing.

    >>> default_update_steps(70_000), default_update_steps(552)
    (120, 400)
    """
    return 120 if n_points > SMALL_DATA else 400


@auto("Rounds.lambda_cons")
def default_lambda_cons(Z: torch.Tensor) -> float:
    """The inverse variance of the first embedding, which makes the loss independent of its scale.

    >>> import torch
    >>> default_lambda_cons(torch.tensor([[0.0, 0.0], [4.0, 4.0]]))  # variance 8
    0.125
    """
    return 1.0 / max(float(Z.var(0).mean()), 0.01)


@auto("Rounds.lambda_rec")
def default_lambda_rec(n_points: int) -> float:
    """1, as in the paper; 10 up to 2,000 points, where members would soon agree on wrong clusters.

    >>> default_lambda_rec(70_000), default_lambda_rec(552)
    (1.0, 10.0)
    """
    return 1.0 if n_points > SMALL_DATA else 10.0


@auto("Pretraining.n_steps")
def default_pretraining_steps(n_points: int, batch_size: int, batches_per_pass: int) -> int:
    """About 4,000, but 15 to 1,000 passes over the data; never more than 1,024,000 rows in all.

    The rounds can only be as good as the embedding they start from; fewer steps show in the result.
    The last limit makes the cost independent of the number of points; the 70,000 of MNIST, with
    which the published runs were made, are just below it.

    >>> default_pretraining_steps(9_298, 128, 66), default_pretraining_steps(552, 128, 4)
    (3696, 4000)
    >>> default_pretraining_steps(70_000, 128, 532), default_pretraining_steps(10**9, 128, 7_812_485)
    (7980, 8000)
    """
    passes = min(1_000, max(15, math.ceil(4_000 / max(1, n_points // batch_size))))
    return min(passes * batches_per_pass, max(1, 1_024_000 // batch_size))


@auto("DECCS.views")
def uses_views(n_points: int, n_features: int) -> bool:
    """Members see the raw data and its manifold, up to 2,000 points or 50 columns.

    With more of both, a network sees more than neighbors in the raw data do: its rounds decide.

    >>> uses_views(150, 4), uses_views(60, 9_712), uses_views(10_992, 16), uses_views(70_000, 784)
    (True, True, True, False)
    """
    return n_points <= SMALL_DATA or n_features <= 50


@auto("DECCS.network", "DECCS.pretraining", "DECCS.rounds")
def default_budget(n_points: int, n_features: int, is_image: bool) -> dict[str, Any]:
    """Of the three parts: 1,000 steps, and 100 a round, up to 2,000 points; above a small network.

    One start is enough. From 2,000 points on 256-256-512-10 is as good as the paper's encoder, at a
    quarter of its cost. Images that are moved at random take more steps; more than 20,000 of them the
    paper's encoder again, with a larger sample (MNIST 0.945 instead of 0.935, one seed). Tables of
    more than 1,000 columns take 300 steps, and 30 a round, since each costs as much as many others.

    >>> default_budget(150, 4, False)
    {'rounds__n_init': 1, 'pretraining__n_steps': 1000, 'rounds__n_steps': 100}
    >>> default_budget(9_298, 256, True)["pretraining__n_steps"]
    12000
    """
    budget: dict[str, Any] = {"rounds__n_init": 1}
    if n_points <= SMALL_DATA:
        n_steps, in_round = (1_000, 100) if n_features <= 1_000 else (300, 30)
        return budget | {"pretraining__n_steps": n_steps, "rounds__n_steps": in_round}
    if n_features > 3:
        budget["network__layers"] = (256, 256, 512, min(10, n_features))
    if is_image:
        budget |= {"pretraining__n_steps": 12_000, "rounds__n_steps": 200}
    if is_image and n_points > 20_000:
        budget |= {"network__layers": "auto", "rounds__n_steps": 400, "rounds__sample_size": 10_000}
    return budget


@auto("Pretraining.input_noise")
def default_noise(n_features: int) -> float:
    """0.2 from ten columns on, where the other columns tell what a removed value was; else 0."""
    return 0.2 if n_features >= 10 else 0.0
