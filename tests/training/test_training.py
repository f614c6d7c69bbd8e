"""Pretraining: the same bits for the same seed, an error that falls, stages and schedules."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from deccs import Autoencoder, Pretraining
from deccs.data.rows import Rows
from deccs.data.scaling import fit_scaler
from deccs.network.autoencoder import encode, encode_exactly
from deccs.network.device import threads_for
from deccs.rules import default_layers
from deccs.training import pretraining as module
from deccs.training.batches import endless_batches, hold_out, shuffled_batches
from deccs.training.best import Best
from deccs.training.pretraining import growing_parts, pretrain, reconstruction_error
from deccs.training.search import search_pretraining

SHORT = Pretraining(epochs=20, batch_size=16, learning_rate=1e-2, held_out=0.2)


def new_autoencoder(dropout=0.0, layers=(8, 2)):
    torch.manual_seed(0)
    return Autoencoder.feed_forward(4, layers, dropout)


def bits(module):
    return torch.cat([value.flatten() for value in module.state_dict().values()])


def seeded(number=0):
    return torch.Generator().manual_seed(number)


def test_same_seed_same_bits(rows):
    first, again, other = (
        pretrain(new_autoencoder(dropout=0.2), rows, SHORT, root) for root in (0, 0, 1)
    )
    assert torch.equal(bits(first), bits(again))
    assert not torch.equal(bits(first), bits(other))


def test_pretraining_leaves_the_callers_generator_alone(rows):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    pretrain(new_autoencoder_without_seeding(), rows, replace(SHORT, epochs=1), 0)
    assert torch.rand(1) == expected


def new_autoencoder_without_seeding():
    with torch.random.fork_rng(devices=[]):
        return new_autoencoder()


@pytest.mark.parametrize("schedule", ["one-cycle", "plateau"])
def test_the_held_out_error_falls(rows, schedule):
    epochs = []
    network = pretrain(new_autoencoder(), rows, replace(SHORT, schedule=schedule), 0, epochs.append)
    errors = [epoch.error for epoch in epochs]
    assert [epoch.number for epoch in epochs] == list(range(1, 21))
    assert min(errors) < 0.5 * errors[0]
    _, held_out = hold_out(len(rows), SHORT.held_out, module.generator_for(0, "held out"))
    assert reconstruction_error(network, rows, held_out) == pytest.approx(
        min(errors)
    )  # the best stays
    assert network.pretrained
    assert not network.training


def test_layerwise_stages_run_outermost_first(rows):
    epochs = []
    pretrain(
        new_autoencoder(layers=(8, 6, 2)),
        rows,
        replace(SHORT, epochs=2, layerwise_epochs=1),
        0,
        epochs.append,
    )
    assert [(epoch.stage, epoch.number) for epoch in epochs] == [
        ("layer 1", 1),
        ("layer 2", 1),
        ("whole network", 1),
        ("whole network", 2),
    ]


def test_growing_parts_share_their_weights():
    network = new_autoencoder(layers=(8, 6, 2))
    first, second = growing_parts(network)
    for part, n_latent in ((first, 8), (second, 6)):
        z, back = part(torch.zeros(5, 4))
        assert (z.shape, back.shape) == ((5, n_latent), (5, 4))
    assert first.encoder[0] is second.encoder[0] is network.encoder[0]
    assert first.decoder[-1] is second.decoder[-1] is network.decoder[-1]
    before = bits(network)
    with torch.no_grad():
        first.encoder[0].weight += 1
    assert not torch.equal(bits(network), before)


def test_layerwise_needs_layers():
    odd = Autoencoder(nn.Linear(4, 2), nn.Linear(2, 4))
    with pytest.raises(
        ValueError, match=r"torch\.nn\.Sequential, got Linear and Linear.*layerwise_epochs=0"
    ):
        list(growing_parts(odd))


def test_plateau_stops_when_nothing_gets_better(rows):
    epochs = []
    settings = replace(SHORT, epochs=50, schedule="plateau", learning_rate=0.0, patience=3)
    pretrain(new_autoencoder(), rows, settings, 0, epochs.append)
    assert len(epochs) == 4  # the first is the best, then three in vain


def test_a_rate_far_too_large_leaves_finite_weights(rows):
    network = pretrain(new_autoencoder(), rows, replace(SHORT, learning_rate=1e30), 0)
    assert torch.isfinite(bits(network)).all()


def test_search_picks_the_least_held_out_error(rows):
    def build(choice):
        return new_autoencoder(layers=choice["layers"])

    grid = {"learning_rate": [1e-6, 1e-2], "layers": [(8, 1), (8, 3)]}
    choice, errors = search_pretraining(build, rows, grid, SHORT, 0)
    assert len(errors) == 4
    assert choice == {"learning_rate": 1e-2, "layers": (8, 3)}
    assert (
        min(error for _, error in errors) == {tuple(c.values()): e for c, e in errors}[1e-2, (8, 3)]
    )


def test_search_refuses_a_name_it_does_not_know(rows):
    with pytest.raises(ValueError, match="learning_rat"):
        search_pretraining(
            lambda choice: new_autoencoder(), rows, {"learning_rat": [1e-3]}, SHORT, 0
        )


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


def test_an_epoch_sees_every_row_once():
    index = torch.arange(10, 31)  # 21 rows: 10 + 11, no batch of one
    parts = list(shuffled_batches(index, 10, seeded()))
    assert [len(part) for part in parts] == [10, 11]
    assert torch.equal(torch.cat(parts).sort().values, index)


def test_endless_batches_are_full():
    batches = endless_batches(torch.arange(7), 3, seeded())
    parts = [next(batches) for _ in range(10)]
    assert {len(part) for part in parts} == {3}
    assert len(torch.cat(parts[:2]).unique()) == 6  # no row twice before the rows run out
    assert len(next(endless_batches(torch.arange(2), 3, seeded()))) == 2


def test_held_out_rows_take_no_part():
    train, held_out = hold_out(100, 0.1, seeded())
    assert len(held_out) == 10
    assert torch.equal(torch.cat([train, held_out]).sort().values, torch.arange(100))
    train, held_out = hold_out(10, 0.1, seeded())  # too few to spare: used for both
    assert torch.equal(train, held_out)
    assert len(hold_out(1_000_000, 0.1, seeded())[1]) == 2_000


def test_best_keeps_the_state_of_the_least_value():
    layer = nn.Linear(1, 1, bias=False)
    best = Best(layer)
    for value in (3.0, 1.0, 2.0):
        nn.init.constant_(layer.weight, value)
        best.offer(value)
    assert best.age == 1
    best.restore()
    assert layer.weight.item() == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"schedule": "cosine"}, "'one-cycle' or 'plateau', got 'cosine'"),
        ({"input_noise": 1.5}, "got 1.5"),
    ],
)
def test_wrong_settings_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        Pretraining(**settings)


def test_networks_by_size_of_the_data():
    assert default_layers(100, 2) == (20, 20, 2)
    assert default_layers(500, 77) == (256, 128, 64)
    assert default_layers(500, 16) == (256, 128, 16)  # no wider than the data
    assert default_layers(9_298, 256) == (500, 500, 2000, 10)


def test_autoencoder_mirrors_its_encoder():
    network = Autoencoder.feed_forward(5, (4, 3))
    widths = [layer.weight.shape for layer in network.modules() if isinstance(layer, nn.Linear)]
    assert widths == [(4, 5), (3, 4), (4, 3), (5, 4)]
    assert isinstance(network.encoder[-1], nn.Linear)  # a linear embedding and output
    assert isinstance(network.decoder[-1], nn.Linear)


@pytest.mark.parametrize("layers", [(), (3, 0), (2.5,)])
def test_wrong_layers_are_named(layers):
    with pytest.raises(ValueError, match="widths of the encoder, each at least 1, got"):
        Autoencoder.feed_forward(5, layers)


def test_encode_in_blocks_equals_the_network(trained, blobs, rows):
    with torch.no_grad():
        expected = trained.encoder(rows[slice(0, 180)])
    assert torch.allclose(encode(trained, rows, torch.arange(len(rows))), expected, atol=1e-6)
    some = torch.tensor([5, 2, 5])
    assert torch.allclose(encode(trained, rows, some), expected[some], atol=1e-6)
    (exact,) = encode_exactly(trained, blobs.X, fit_scaler(blobs.X))
    assert exact.dtype == "float64"
    assert torch.allclose(torch.tensor(exact).float(), expected, atol=1e-5)


def test_rows_from_a_file_train_the_same(blobs, rows, tmp_path):
    np.save(tmp_path / "X.npy", blobs.X)
    file = np.load(tmp_path / "X.npy", mmap_mode="r")
    from_file = pretrain(new_autoencoder(), Rows(file, fit_scaler(file)), SHORT, 0)
    assert torch.equal(bits(from_file), bits(pretrain(new_autoencoder(), rows, SHORT, 0)))


@pytest.mark.parametrize("layers", [(5, 4, 2), (3,)])
def test_gradients_by_hand_are_autograds(layers):
    torch.manual_seed(0)
    ours = Autoencoder.feed_forward(6, layers)
    plain = Autoencoder(torch.nn.Sequential(*ours.encoder), torch.nn.Sequential(*ours.decoder))
    assert (
        ours.by_hand()
        and not plain.by_hand()
        and not Autoencoder.feed_forward(6, layers, dropout=0.1).by_hand()
    )
    x, noisy = torch.randn(9, 6), torch.randn(9, 6)
    gradients = []
    for network in (ours, plain):  # they share their weights
        module.reconstruction_gradients(network, noisy, x)
        gradients.append([parameter.grad.clone() for parameter in network.parameters()])
    for by_hand, autograds in zip(*gradients, strict=True):
        torch.testing.assert_close(by_hand, autograds)


def test_one_vector_of_parameters_is_optimized_like_many():
    X = np.random.default_rng(0).normal(size=(200, 3))
    rows = Rows(X, fit_scaler(X))
    torch.manual_seed(0)
    ours = Autoencoder.feed_forward(3, (5, 2))
    plain = copy.deepcopy(
        Autoencoder(torch.nn.Sequential(*ours.encoder), torch.nn.Sequential(*ours.decoder))
    )
    for network in (ours, plain):
        pretrain(network, rows, Pretraining(epochs=3, batch_size=32), root=0)
    for one, many in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, many, rtol=1e-4, atol=1e-5)
    assert (
        len({parameter.untyped_storage().data_ptr() for parameter in ours.parameters()}) == 8
    )  # apart again
