"""Row numbers drawn and shuffled without a vector of all of them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import deccs
from deccs.data import sampling
from deccs.data.sampling import (
    Chosen,
    EveryRow,
    Others,
    Permutation,
    Range,
    draw_rows,
    permutation,
    shuffled,
    split_rows,
)


def seeded(number=0):
    return torch.Generator().manual_seed(number)


@pytest.fixture
def computed(monkeypatch):
    """Orders are computed, as for large data, instead of held in memory."""
    monkeypatch.setattr(sampling, "MOST_IN_MEMORY", 0)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 1023, 1025, 70_001])
def test_a_permutation_has_every_number_once(n):
    for seed in range(3):
        numbers = Permutation(n, seeded(seed))[0:n]
        assert numbers.dtype == torch.int64
        assert_array_equal(numbers.sort().values, np.arange(n))


def test_the_same_seed_gives_the_same_order_and_another_seed_another():
    one, same, other = (Permutation(1000, seeded(seed))[0:1000] for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert (one == other).sum() < 20  # one in common is expected


def test_places_may_be_asked_for_in_any_way():
    order = Permutation(1000, seeded())
    whole = order[0:1000]
    assert_array_equal(order[:10], whole[:10])
    assert_array_equal(order[990:2000], whole[990:])
    assert_array_equal(order[300:300], [])
    assert_array_equal(order[torch.tensor([999, 0, 0, 5])], whole[[999, 0, 0, 5]])


def test_a_permutation_is_about_uniform():
    """Each number at each place about equally often; neighbors do not stay neighbors."""
    n, n_orders = 16, 1000
    orders = torch.stack([Permutation(n, seeded(seed))[0:n] for seed in range(n_orders)])
    counts = torch.stack([torch.bincount(column, minlength=n) for column in orders.T])  # (16, 16)
    expected = n_orders / n
    chi_squared = float(((counts - expected) ** 2 / expected).sum())
    assert 140 < chi_squared < 330  # 225 degrees of freedom: mean 225, deviation 21

    whole = Permutation(100_000, seeded())[0:100_000].double()
    places = torch.arange(100_000).double()
    assert abs(torch.corrcoef(torch.stack([places, whole]))[0, 1]) < 0.01
    assert abs(torch.corrcoef(torch.stack([whole[:-1], whole[1:]]))[0, 1]) < 0.01
    sample = whole[:1000].long()  # the first places are a fair sample of all rows
    assert_array_equal(torch.bincount(sample // 50_000).clamp(430, 570).sum(), 1000)


def test_small_data_is_shuffled_as_it_always_was(monkeypatch):
    assert_array_equal(permutation(50, seeded()), torch.randperm(50, generator=seeded()))
    monkeypatch.setattr(sampling, "MOST_IN_MEMORY", 49)
    assert isinstance(permutation(50, seeded()), Permutation)
    assert isinstance(permutation(49, seeded()), torch.Tensor)


@pytest.mark.parametrize("size", [0, 1, 7, 50])
def test_the_others_are_what_is_not_in_the_sample(size):
    sample = draw_rows(50, size, seeded())
    others = Others(50, sample)
    expected = np.setdiff1d(np.arange(50), sample.numpy())
    assert len(others) == 50 - size
    assert_array_equal(others[0 : 50 - size], expected)
    assert_array_equal(others[3:11], expected[3:11])
    places = torch.randint(max(len(others), 1), (20,), generator=seeded())[: len(others)]
    assert_array_equal(others[places], expected[places.numpy()])


def test_index_classes_are_like_the_tensors_they_stand_for():
    tensor = torch.tensor([4, 9, 2, 7, 5])
    for index, same in (
        (EveryRow(5), torch.arange(5)),
        (Range(3, 8), torch.arange(3, 8)),
        (Chosen(tensor, Range(1, 4)), tensor[1:4]),
        (Chosen(Range(10, 20), torch.tensor([0, 9])), torch.tensor([10, 19])),
    ):
        assert len(index) == len(same)
        assert_array_equal(index[0 : len(same)], same)
        assert_array_equal(index[1:], same[1:])
        assert_array_equal(index[torch.tensor([1, 0, 1])], same[[1, 0, 1]])


def check_draws():
    drawn = draw_rows(100, 30, seeded())
    assert len(drawn) == 30 == len(drawn.unique())
    assert_array_equal(drawn, drawn.sort().values)
    assert drawn.min() >= 0 and drawn.max() < 100
    assert_array_equal(draw_rows(10, 30, seeded()), np.arange(10))

    train_on, held_out = split_rows(100, 10, seeded())
    assert (len(train_on), len(held_out)) == (90, 10)
    everything = torch.cat([train_on[0:90], held_out])
    assert_array_equal(everything.sort().values, np.arange(100))

    again = shuffled(train_on, seeded(1))
    assert_array_equal(again[0:90].sort().values, train_on[0:90].sort().values)
    assert not torch.equal(again[0:90], train_on[0:90])


def test_draws_and_splits_of_small_data():
    check_draws()


def test_draws_and_splits_of_large_data(computed):
    check_draws()


PROGRAM = """
import copy, resource
from pathlib import Path
import numpy as np, torch
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from deccs import Autoencoder, Pretraining, Rounds
from deccs.data.rows import Rows
from deccs.data.sampling import Others, draw_rows
from deccs.data.scaling import Scaler
from deccs.rounds.algorithm import learn_consensus
from deccs.training.batches import Batches, hold_out
from deccs.training.pretraining import pretrain, reconstruction_error

class MadeUp:
    '''Row i is around one of three centers, and the same whenever it is read.'''
    dtype = np.dtype(np.float64)

    def __init__(self, n_rows):
        self.shape = (n_rows, 4)

    def read(self, rows):
        numbers = np.arange(*rows.indices(self.shape[0])) if isinstance(rows, slice) else rows
        assert ((0 <= numbers) & (numbers < self.shape[0])).all()
        return np.sin(numbers[:, None] * [1.0, 2.0, 3.0, 4.0]) / 3 + (numbers % 3)[:, None] * [1, 0, -1, 0]

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

def use(n_rows):
    seeded = lambda: torch.Generator().manual_seed(0)
    sample = draw_rows(n_rows, 10_000, seeded())
    others = Others(n_rows, sample)
    for index in (hold_out(n_rows, 0.1, seeded())[0], others):
        batches = Batches(index, 256, seeded(), rest=True)
        for _ in range(20):
            next(batches)
        batches.number = batches.per_pass           # the next one begins a new pass
        next(batches)
        batches.load_state_dict(batches.state_dict())
    rows = Rows(MadeUp(n_rows), Scaler("none", np.zeros(()), np.ones(())))
    torch.manual_seed(0)
    network = Autoencoder.feed_forward(4, (8, 2))
    _, held_out = hold_out(n_rows, 0.1, seeded())
    before = reconstruction_error(network, rows, held_out)
    pretrain(network, rows, Pretraining(n_steps=100, learning_rate=1e-2), 0)
    assert reconstruction_error(network, rows, held_out) < 0.5 * before
    members = [("km", KMeans(3, n_init=1)), ("gm", GaussianMixture(3))]
    rounds = Rounds(n_rounds=1, n_steps=8, sample_size=1_000, tol=-1.0)
    consensus = learn_consensus(network, rows, members, rounds, 0)
    assert len(consensus.rounds) == 2 and consensus.rounds[0].sample.max() > 0.9 * n_rows

use(100_000)                                        # what the libraries take at their first use
Path("/proc/self/clear_refs").write_text("5")       # forget the peak so far
before = resident()
use(1_000_000_000)
peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024 / 1e6
print(peak - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_a_billion_rows_take_no_memory(tmp_path):
    """Samples, held-out rows, shuffled passes, pretraining and a round: less than 100 MB more."""
    where = {
        **os.environ,
        "PYTHONPATH": str(Path(deccs.__file__).parents[1]),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=where, check=True, capture_output=True, text=True
    )
    assert 0 <= float(done.stdout) < 100
