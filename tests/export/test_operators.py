"""The parts of graphs beside what they stand for: torch's layers, NumPy's functions, exact neighbors."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

pytest.importorskip("onnx", reason="pip install 'deccs[onnx]'")
pytest.importorskip("onnxruntime", reason="pip install 'deccs[onnx]'")

from deccs.data.filling import Filling
from deccs.export.checking import run, session_of
from deccs.export.graph import ExportError, Graph
from deccs.export.nearest import nearest
from deccs.export.networks import network
from deccs.export.rows import arcsinh, filled, solved


def computed(X, make, dtype=np.float64, flat=()):
    """What a graph makes of X: ``make(graph, tensor)`` gives the outputs by name."""
    graph = Graph()
    x = graph.input("X", dtype, X.shape[1])
    outputs = make(graph, x)
    content = graph.model(outputs, {}, flat=flat).SerializeToString()
    return run(session_of(content, n_threads=1), {"X": X.astype(dtype)})


LAYERS = {
    "linear": nn.Linear(12, 5),
    "without bias": nn.Linear(12, 5, bias=False),
    "leaky": nn.Sequential(nn.Linear(12, 6), nn.LeakyReLU(0.01), nn.Linear(6, 2)),
    "steep": nn.LeakyReLU(1.5),
    "relu": nn.ReLU(),
    "elu": nn.ELU(0.7),
    "gelu": nn.GELU(approximate="tanh"),
    "tanh": nn.Sequential(nn.Tanh(), nn.Sigmoid(), nn.Dropout(0.5), nn.Identity()),
    "normalized": nn.BatchNorm1d(12),
    "conv": nn.Sequential(nn.Unflatten(1, (2, 3, 2)), nn.Conv2d(2, 3, 2), nn.Flatten()),
    "strides": nn.Sequential(
        nn.Unflatten(1, (1, 4, 3)),
        nn.Conv2d(1, 3, 3, stride=2, padding=1, bias=False),
        nn.Flatten(),
    ),
    "reflect": nn.Sequential(
        nn.Unflatten(1, (1, 4, 3)),
        nn.Conv2d(1, 2, (3, 2), padding=(1, 2), padding_mode="reflect"),
        nn.Flatten(),
    ),
    "circular": nn.Sequential(
        nn.Unflatten(1, (1, 4, 3)),
        nn.Conv2d(1, 2, 2, padding="same", padding_mode="circular"),
        nn.Flatten(),
    ),
    "groups": nn.Sequential(
        nn.Unflatten(1, (2, 3, 2)), nn.Conv2d(2, 4, 2, dilation=(2, 1), groups=2), nn.Flatten()
    ),
    "images": nn.Sequential(
        nn.Unflatten(1, (1, 4, 3)), nn.BatchNorm2d(1), nn.AdaptiveAvgPool2d((3, None)), nn.Flatten()
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_those_of_torch(name):
    layer = LAYERS[name].double().eval()
    generator = torch.Generator().manual_seed(0)
    for part in layer.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.running_mean.normal_(generator=generator)
            part.running_var.uniform_(0.5, 2, generator=generator)
            part.weight.data.normal_(generator=generator)
    X = np.random.default_rng(0).normal(size=(7, 12))
    found = computed(X, lambda graph, x: {"y": network(layer, x, 12) * 1.0})["y"]
    with torch.no_grad():
        assert_allclose(found, layer(torch.from_numpy(X)).numpy(), rtol=1e-12, atol=1e-12)


def test_exact_gelu_needs_single_precision():
    X = np.random.default_rng(0).normal(size=(7, 12))
    make = lambda graph, x: {"y": network(nn.GELU(), x, 12) * 1.0}  # noqa: E731
    with pytest.raises(ExportError, match="GELU.*precision='single'"):
        computed(X, make)
    expected = nn.GELU()(torch.from_numpy(X)).numpy()
    assert_allclose(computed(X, make, np.float32)["y"], expected, atol=1e-6)


def test_a_layer_of_the_users_own_is_refused_by_name():
    class Mine(nn.Module):
        def forward(self, x):
            return x

    with pytest.raises(ExportError, match=r"has a layer Mine .* Build it from .*Linear"):
        computed(np.zeros((1, 2)), lambda graph, x: {"y": network(Mine(), x, 2) * 1.0})
    hooked = nn.Linear(2, 2)
    hooked.register_forward_hook(lambda *parts: None)
    with pytest.raises(ExportError, match="since hooks change it"):
        computed(np.zeros((1, 2)), lambda graph, x: {"y": network(hooked, x, 2) * 1.0})


def test_arcsinh_of_numbers_of_any_size():
    X = np.array([[0.0, 1e-9, -3.0, 1e99, -1e200, 1.7e308]])
    assert_allclose(
        computed(X, lambda graph, x: {"y": arcsinh(x)})["y"], np.arcsinh(X), rtol=1e-12, atol=1e-15
    )


def test_systems_are_solved():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 4, 4))
    matrices, right = root @ root.transpose(0, 2, 1) + np.eye(4), rng.normal(size=(5, 4, 1))
    both = np.concatenate([matrices.reshape(5, -1), right[:, :, 0]], axis=1)

    def make(graph, x):
        of = x.take(np.arange(16), axis=1).reshape(0, 4, 4)
        return {"z": solved(of, x.take(np.arange(16, 20), axis=1).unsqueeze(2), 4).squeeze(2)}

    assert_allclose(computed(both, make)["z"], np.linalg.solve(matrices, right)[:, :, 0])


def test_gaps_are_filled_as_in_python():
    rng = np.random.default_rng(0)
    filling = Filling(rng.normal(size=3), rng.normal(size=(3, 2)), np.array([0.5, 0.25, 1.0]))
    X = rng.normal(size=(6, 3))
    X[[0, 2, 2, 4, 4, 4], [1, 0, 2, 0, 1, 2]] = np.nan

    def make(graph, x):
        known = ~x.op("IsNaN", dtype=np.bool_)
        return {"y": filled(filling, known.where(x, 0.0), known)}

    assert_allclose(computed(X, make)["y"], filling(X), atol=2e-9)
    assert_array_equal(computed(X[1:2], make)["y"], X[1:2])


def test_of_equally_near_rows_the_first_is_nearest():
    sample = np.array([[1.0, 0], [0, 1.0], [0, 1.0], [5.0, 5], [0, -1.0]])
    X = np.array([[0.0, 0.0], [0.0, 0.9], [9.0, 9.0]])

    def make(graph, x):
        distances, places = nearest(x, sample, 3)
        return {"distances": distances, "places": places}

    found = computed(X, make)
    assert_array_equal(found["places"][0], [0, 1, 2])
    assert_array_equal(found["places"][1][:2], [1, 2])
    assert found["places"][2][0] == 3
    assert_allclose(found["distances"][0], [1, 1, 1])


def test_equal_constants_are_held_once_and_unused_ones_not_at_all():
    graph = Graph()
    x = graph.input("X", np.float64, 2)
    y = (x + np.array([1.0, 2.0])) * np.array([1.0, 2.0])
    (x * 7.0).sum()
    model = graph.model({"y": y}, {})
    assert [node.op_type for node in model.graph.node] == ["Add", "Mul"]
    assert len(model.graph.initializer) == 1
