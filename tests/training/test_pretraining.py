"""Pretraining: the same bits for the same seed, an error that falls, stages and schedules."""

import copy
import math

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from deccs import Autoencoder, Callback, Network, Pretraining
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.events import Listeners
from deccs.network.autoencoder import TrainingError
from deccs.network.by_hand import FeedForward
from deccs.seeds import generator_for
from deccs.training import pretraining as module
from deccs.training.batches import hold_out
from deccs.training.pretraining import (
    growing_parts,
    pretrain,
    reconstruction_error,
    reconstruction_gradients,
)
from deccs.training.search import search_pretraining, with_choice
from deccs.training.start import starting_autoencoder
from tests.helpers.images import blots

SHORT = Pretraining(n_epochs=20, batch_size=16, learning_rate=1e-2, held_out=0.2)


def short(**changes):
    return clone(SHORT).set_params(**changes)


class Watches(Callback):
    """Every progress event of a pretraining."""

    def __init__(self):
        self.seen = []

    def on_progress(self, progress):
        self.seen.append(progress)


def watched(network, rows, settings, root=0):
    watcher = Watches()
    pretrain(network, rows, settings, root, Listeners([watcher]))
    return watcher.seen


def rows_of(X):
    source = source_of(X)
    return Rows(source, fit_scaler(source))


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
    pretrain(new_autoencoder_without_seeding(), rows, short(n_epochs=1), 0)
    assert torch.rand(1) == expected


def new_autoencoder_without_seeding():
    with torch.random.fork_rng(devices=[]):
        return new_autoencoder()


@pytest.mark.parametrize("schedule", ["one-cycle", "plateau"])
def test_the_held_out_error_falls(rows, schedule):
    network = new_autoencoder()
    seen = watched(network, rows, short(schedule=schedule))
    errors = [progress.held_out for progress in seen]
    assert [progress.step for progress in seen] == list(range(9, 181, 9))  # 144 rows: 9 batches
    assert {progress.n_steps for progress in seen} == {180}
    assert {progress.stage for progress in seen} == {"pretraining"}
    assert min(errors) < 0.5 * errors[0]
    _, held_out = hold_out(len(rows), SHORT.held_out, generator_for(0, "held out"))
    kept = reconstruction_error(network, rows, held_out)
    assert kept == pytest.approx(min(errors))  # the best stays
    assert network.pretrained
    assert not network.training


def test_layerwise_stages_run_outermost_first(rows):
    settings = short(n_epochs=2, layerwise_epochs=1)
    seen = watched(new_autoencoder(layers=(8, 6, 2)), rows, settings)
    assert [(progress.stage, progress.step, progress.n_steps) for progress in seen] == [
        ("pretraining, layer 1", 9, 9),
        ("pretraining, layer 2", 9, 9),
        ("pretraining", 9, 18),
        ("pretraining", 18, 18),
    ]


@pytest.mark.parametrize(
    ("budget", "n_steps"),
    [
        ({"n_epochs": 3}, 27),
        ({"n_epochs": None, "n_steps": 20}, 20),
        ({"n_epochs": 2, "n_steps": 20}, 18),  # epochs take the place of steps
        ({"n_epochs": 0}, 0),
    ],
)
def test_the_budget_is_steps_or_epochs(rows, budget, n_steps):
    seen = watched(new_autoencoder(), rows, short(**budget))
    assert [progress.step for progress in seen][-1:] == ([n_steps] if n_steps else [])


def test_long_passes_are_checked_in_between(rows, monkeypatch):
    monkeypatch.setattr(module, "MOST_BETWEEN_CHECKS", 4)
    seen = watched(new_autoencoder(), rows, short(n_epochs=1))
    assert [progress.step for progress in seen] == [4, 8, 9]


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
    settings = short(n_epochs=50, schedule="plateau", learning_rate=0.0, patience=3)
    seen = watched(new_autoencoder(), rows, settings)
    assert len(seen) == 4  # the first is the best, then three in vain


def test_one_cycle_is_not_cut_short(rows):
    settings = short(n_epochs=8, learning_rate=0.0, patience=3)
    assert len(watched(new_autoencoder(), rows, settings)) == 8


@pytest.mark.parametrize("dropout", [0.0, 0.2])  # by hand and with autograd
def test_a_rate_that_never_works_is_an_error(rows, dropout):
    settings = short(n_epochs=40, learning_rate=1e38)
    with pytest.raises(TrainingError, match="pretraining: the loss was NaN.*than 1e\\+38"):
        pretrain(new_autoencoder(dropout), rows, settings, 0)


def test_a_search_passes_over_rates_that_never_work(rows):
    settings = short(grid={"learning_rate": [1e38, 1e-2]})
    choice, errors = search_pretraining(rows, Network(layers=(8, 3)), settings, 0)
    assert choice == {"learning_rate": 1e-2}
    assert [math.isfinite(error) for _, error in errors] == [False, True]
    with pytest.raises(TrainingError, match="pretraining"):
        search_pretraining(rows, Network(), short(grid={"learning_rate": [1e38]}), 0)


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"learning_rate": 1}, "must have a list for learning_rate, got 1"),
        ({"learning_rate": []}, "must have a list for learning_rate"),
        ({"batch_size": [32, None]}, "batch_size must be a whole number of at least 1, got None"),
        ({"layers": [["a"]]}, "layers must be"),
    ],
)
def test_values_of_a_grid_are_checked(rows, grid, words):
    with pytest.raises(ValueError, match=f"pretraining.grid.*{words}"):
        search_pretraining(rows, Network(), short(grid=grid), 0)


def test_search_picks_the_least_held_out_error(rows):
    grid = {"learning_rate": [1e-6, 1e-2], "layers": [(8, 1), (8, 3)]}
    choice, errors = search_pretraining(rows, Network(), short(grid=grid), 0)
    assert len(errors) == 4
    assert choice == {"learning_rate": 1e-2, "layers": (8, 3)}
    by_choice = {tuple(choice.values()): error for choice, error in errors}
    assert min(by_choice.values()) == by_choice[1e-2, (8, 3)]


def test_a_search_ends_with_the_network_it_chose(rows):
    grid = {"learning_rate": [1e-6, 1e-2], "layers": [(8, 3)], "dropout": [0.0]}
    searched = starting_autoencoder(rows, Network(), short(grid=grid), 0)
    directly = starting_autoencoder(rows, Network(layers=(8, 3)), SHORT, 0)
    assert torch.equal(bits(searched.autoencoder), bits(directly.autoencoder))
    assert len(searched.search) == 2 and directly.search is None


def test_a_choice_belongs_to_the_network_or_to_the_training():
    network, settings = Network(dropout=0.1), short(grid={})
    chosen = with_choice(network, settings, {"layers": (5, 2), "batch_size": 7})
    assert chosen == (Network(layers=(5, 2), dropout=0.1), short(grid={}, batch_size=7))
    assert network == Network(dropout=0.1) and settings == short(grid={})  # copies


def test_search_refuses_a_name_it_does_not_know(rows):
    for name in ("learning_rat", "grid"):
        with pytest.raises(
            ValueError, match=f"names that are no settings: {name}. It may have batch"
        ):
            search_pretraining(rows, Network(), short(grid={name: [1]}), 0)


def test_rows_from_a_file_train_the_same(blobs, rows, tmp_path):
    np.save(tmp_path / "X.npy", blobs.X)
    file = np.load(tmp_path / "X.npy", mmap_mode="r")
    from_file = pretrain(new_autoencoder(), rows_of(file), SHORT, 0)
    assert torch.equal(bits(from_file), bits(pretrain(new_autoencoder(), rows, SHORT, 0)))


@pytest.mark.parametrize("layers", [(5, 4, 2), (3,)])
def test_gradients_by_hand_are_autograds(layers):
    torch.manual_seed(0)
    network = Autoencoder.feed_forward(6, layers)
    assert network.by_hand() == (network.encoder, network.decoder)
    x, noisy = torch.randn(9, 6), torch.randn(9, 6)
    reconstruction_gradients(*network.by_hand(), noisy, x)
    by_hand = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    (network(noisy)[1] - x).square().mean().backward()
    for ours, parameter in zip(by_hand, network.parameters(), strict=True):
        torch.testing.assert_close(ours, parameter.grad)


def test_only_plain_networks_have_gradients_by_hand():
    assert Autoencoder.feed_forward(6, (4, 2), dropout=0.1).by_hand() is None
    plain = Autoencoder.feed_forward(6, (4, 2))
    assert isinstance(plain.encoder, FeedForward)
    assert Autoencoder(nn.Sequential(*plain.encoder), plain.decoder).by_hand() is None


def test_one_vector_of_parameters_is_optimized_like_many():
    rows = rows_of(np.random.default_rng(0).normal(size=(200, 3)))
    torch.manual_seed(0)
    ours = Autoencoder.feed_forward(3, (5, 2))
    plain = copy.deepcopy(Autoencoder(nn.Sequential(*ours.encoder), nn.Sequential(*ours.decoder)))
    for network in (ours, plain):
        pretrain(network, rows, Pretraining(n_epochs=3, batch_size=32), root=0)
    for one, many in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, many, rtol=1e-4, atol=1e-5)
    places = {parameter.untyped_storage().data_ptr() for parameter in ours.parameters()}
    assert len(places) == 8  # apart again


def test_images_are_learned_moved(monkeypatch):
    """The network is to reconstruct the moved image itself, from its noisy copy."""
    source = source_of(blots(40).reshape(40, 64))
    rows = Rows(source, fit_scaler(source), image_shape=(8, 8))
    seen = []

    def watch(encoder, decoder, noisy, x, error):
        seen.append((noisy, x))
        return reconstruction_gradients(encoder, decoder, noisy, x, error)

    monkeypatch.setattr(module, "reconstruction_gradients", watch)
    pretrain(Autoencoder.feed_forward(64, (8, 2)), rows, short(n_epochs=2, input_noise=0.2), 0)
    table = rows[slice(0, 40)]
    for noisy, x in seen:
        kept = noisy != 0
        assert torch.equal(noisy[kept], x[kept]) and 0.7 < kept.float().mean() < 0.9
        assert (x[:, None] != table[None]).any(2).all()
