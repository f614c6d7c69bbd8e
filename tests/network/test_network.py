"""Autoencoders: their shape, their embedding in blocks, their threads and device."""

import numpy as np
import pytest
import torch
from torch import nn

from deccs import Autoencoder
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.network.autoencoder import encode, encode_exactly
from deccs.network.device import pick_device, single_precision, threads_for


def test_one_thread_for_tiny_networks_and_back():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with threads_for(nn.Linear(20, 20), batch_size=256):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with threads_for(nn.Linear(500, 500), batch_size=256):
            assert torch.get_num_threads() == 2
        with pytest.raises(RuntimeError), threads_for(nn.Linear(2, 2), batch_size=2):
            raise RuntimeError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_autoencoder_mirrors_its_encoder():
    network = Autoencoder.feed_forward(5, (4, 3))
    widths = [layer.weight.shape for layer in network.modules() if isinstance(layer, nn.Linear)]
    assert widths == [(4, 5), (3, 4), (4, 3), (5, 4)]
    assert isinstance(network.encoder[-1], nn.Linear)  # a linear embedding and output
    assert isinstance(network.decoder[-1], nn.Linear)


@pytest.mark.parametrize("layers", [(), (3, 0), (2.5,), (True,), "wide", 8])
def test_wrong_layers_are_named(layers):
    with pytest.raises(
        ValueError,
        match="layers must be a tuple of layer widths, each a whole",
    ):
        Autoencoder.feed_forward(5, layers)


def test_encode_in_blocks_equals_the_network(trained, blobs, rows):
    with torch.no_grad():
        expected = trained.encoder(rows[slice(0, 180)])
    assert torch.allclose(encode(trained, rows), expected, atol=1e-6)
    some = torch.tensor([5, 2, 5])
    assert torch.allclose(encode(trained, rows, some), expected[some], atol=1e-6)
    source = source_of(blobs.X)
    (exact,) = encode_exactly(trained, source, fit_scaler(source))
    assert exact.dtype == "float64"
    assert torch.allclose(torch.tensor(exact).float(), expected, atol=1e-5)


def test_a_row_alone_has_the_exact_embedding_it_has_among_many():
    torch.manual_seed(0)
    network = Autoencoder.feed_forward(20, (30, 5))
    source = source_of(torch.randn(3_000, 20).double().numpy())
    scaler = fit_scaler(source)
    many = np.concatenate(list(encode_exactly(network, source, scaler)))
    for row in (0, 1_023, 1_024, 2_999):
        (alone,) = encode_exactly(network, source_of(source.read(slice(row, row + 1))), scaler)
        np.testing.assert_allclose(alone[0], many[row], rtol=1e-12)


@pytest.mark.parametrize("device", ["abacus", "cuda:99", "", "meta"])
def test_a_device_that_is_not_there_is_named(device):
    with pytest.raises(ValueError, match=f"one that torch has here, got '{device}'"):
        pick_device(device)


def test_the_usual_device():
    assert pick_device("cpu") == "cpu"
    assert pick_device("auto") in ("cuda", "mps", "cpu")


def test_fits_in_several_threads_share_single_precision():
    """The last one to end restores what the user had."""
    torch.set_default_dtype(torch.float64)
    try:
        first, second = single_precision(), single_precision()
        first.__enter__(), second.__enter__()
        first.__exit__(None, None, None)
        assert torch.get_default_dtype() == torch.float32
        second.__exit__(None, None, None)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
