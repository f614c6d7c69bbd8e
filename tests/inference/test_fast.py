"""Single precision: what its errors can be at most, and that no label shows them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deccs.inference.encoder import DenseEncoder, TrainingError
from deccs.inference.fast import UNIT, FastEncoder, gamma, norm_bound, rounding_of
from deccs.inference.heads import LinearHeads


def random_network(rng, widths, size=1.0):
    """Weights and biases as singles."""
    shapes = list(zip(widths[1:], widths[:-1], strict=True))
    weights = [size * rng.normal(size=shape) / np.sqrt(shape[1]) for shape in shapes]
    biases = [size * rng.normal(size=shape[0]) for shape in shapes]
    single = [tuple(part.astype(np.float32) for part in parts) for parts in (weights, biases)]
    return DenseEncoder(*single)


def random_heads(rng, n_heads, n_classes, n_latent):
    weight = rng.normal(size=(n_heads, n_classes, n_latent)).astype(np.float32)
    bias = rng.normal(size=(n_heads, n_classes)).astype(np.float32)
    weight[0, -1], bias[0, -1] = 0, -1e9  # a cluster that a member lacks
    return LinearHeads(weight, bias)


def exact_labels(dense, heads, inputs):
    return heads.logits(dense(inputs))[:, 0].argmax(axis=1)


def test_the_errors_of_one_layer_by_hand():
    """|W| = 2 and |b| = 1: what came in wrong grows twofold, and a sum of two terms is off by two units."""
    dense = DenseEncoder((np.array([[2.0]], np.float32),), (np.array([1.0], np.float32),))
    error, size = rounding_of(dense)
    assert error == pytest.approx([2 * UNIT + gamma(2) * 2, gamma(2)], rel=1e-6)
    assert size == pytest.approx([2.0, 1.0], rel=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (3, 40), (40, 3), (64, 64)])
def test_the_bound_of_a_norm_is_above_it_and_near(shape):
    W = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    norm = np.linalg.norm(W.astype(float), 2)
    assert norm <= norm_bound(W) <= 1.1 * norm
    assert norm_bound(1e30 * W) == pytest.approx(1e30 * norm_bound(W), rel=1e-6)
    assert norm_bound(0 * W) == 0


@pytest.mark.parametrize("seed", range(10))
def test_no_row_is_further_off_than_its_bound(seed):
    rng = np.random.default_rng(seed)
    widths = [rng.integers(1, 20), *rng.integers(1, 200, rng.integers(0, 4)), rng.integers(1, 12)]
    dense = random_network(rng, widths, size=10.0 ** rng.uniform(-2, 2))
    inputs = rng.normal(size=(500, widths[0])) * 10.0 ** rng.uniform(-5, 5, size=(500, 1))
    off = np.linalg.norm(dense.in_single_precision(inputs) - dense(inputs), axis=1)
    error, _ = rounding_of(dense)
    bound = error[0] * np.linalg.norm(inputs, axis=1) + error[1]
    assert (off <= bound).all()


@pytest.mark.parametrize("seed", range(10))
def test_labels_on_the_very_border_are_those_of_double_precision(seed):
    """Rows are moved along a line until two classes are a billionth apart."""
    rng = np.random.default_rng(seed)
    dense, heads = random_network(rng, [6, 50, 30, 4]), random_heads(rng, 1, 7, 4)
    low, high = rng.normal(size=(2, 400, 6)) * 3
    before = exact_labels(dense, heads, low)
    crossing = before != exact_labels(dense, heads, high)
    low, high, before = low[crossing], high[crossing], before[crossing]
    for _ in range(30):
        middle = (low + high) / 2
        same = (exact_labels(dense, heads, middle) == before)[:, None]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    inputs = np.concatenate([low, high, rng.normal(size=(400, 6))])
    fast = FastEncoder(dense, [heads])
    assert_array_equal(fast.labels(inputs), exact_labels(dense, heads, inputs))
    assert_array_equal(heads.logits(fast(inputs))[:, 0].argmax(1), fast.labels(inputs))
    _, close = fast._embedded(inputs)
    assert close[: 2 * len(low)].all() and close[2 * len(low) :].mean() < 0.05
    in_single = (dense.in_single_precision(inputs) @ heads.weight[0].T + heads.bias[0]).argmax(1)
    assert (in_single != fast.labels(inputs)).any()  # the check was needed


def test_every_head_must_be_sure():
    rng = np.random.default_rng(0)
    dense, heads = random_network(rng, [3, 20, 2]), random_heads(rng, 3, 4, 2)
    inputs = rng.normal(size=(300, 3))
    said = heads.logits(FastEncoder(dense, [heads])(inputs)).argmax(axis=2)
    assert_array_equal(said, heads.logits(dense(inputs)).argmax(axis=2))


def test_rows_too_large_for_singles_are_asked_in_double_precision():
    rng = np.random.default_rng(0)
    dense, heads = random_network(rng, [3, 20, 2]), random_heads(rng, 1, 4, 2)
    inputs = rng.normal(size=(5, 3)) * np.array([[1.0], [1e20], [1e39], [1e100], [1e150]])
    assert_array_equal(
        FastEncoder(dense, [heads]).labels(inputs), exact_labels(dense, heads, inputs)
    )
    with pytest.raises(TrainingError, match="embeds 1 of 1 rows as NaN"):
        FastEncoder(dense, [heads]).labels(np.full((1, 3), 1e308))
