"""Batches: the same as plain generators over vectors of row numbers, and resumable at every place."""

import pytest
import torch
from numpy.testing import assert_array_equal

from deccs.data import sampling
from deccs.data.sampling import EveryRow, Others
from deccs.training.batches import MOST_HELD_OUT, Batches, hold_out


def seeded(number=0):
    return torch.Generator().manual_seed(number)


def shuffled_batches(index, size, generator):
    """Slow reference: one pass; a rest of one row joins the batch before."""
    order = index[torch.randperm(len(index), generator=generator)]
    parts = list(order.split(size))
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    yield from parts


def endless_batches(index, size, generator):
    """Slow reference: full batches for ever, reshuffled each time the rows run out."""
    size = min(size, len(index))
    while size:
        order = index[torch.randperm(len(index), generator=generator)]
        yield from (part for part in order.split(size) if len(part) == size)


SIZES = [(1, 1), (1, 5), (2, 3), (3, 2), (7, 3), (9, 3), (10, 3), (21, 10), (22, 10), (30, 64)]


@pytest.mark.parametrize(("n", "size"), SIZES)
def test_full_batches_equal_the_reference(n, size):
    index = torch.arange(100, 100 + n)
    batches, reference = Batches(index, size, seeded()), endless_batches(index, size, seeded())
    for _ in range(3 * n):
        assert_array_equal(next(batches), next(reference))


@pytest.mark.parametrize(("n", "size"), SIZES)
def test_passes_with_their_rest_equal_the_reference(n, size):
    index = torch.arange(100, 100 + n)
    generator = seeded()
    batches = Batches(index, size, seeded(), rest=True)
    for _ in range(4):
        expected = list(shuffled_batches(index, size, generator))
        assert batches.per_pass == len(expected)
        for part in expected:
            assert_array_equal(next(batches), part)


def test_a_pass_sees_every_row_once_and_no_batch_has_one_row():
    index = torch.arange(10, 31)  # 21 rows: 10 + 11
    batches = Batches(index, 10, seeded(), rest=True)
    parts = [next(batches) for _ in range(batches.per_pass)]
    assert [len(part) for part in parts] == [10, 11]
    assert_array_equal(torch.cat(parts).sort().values, index)


def test_every_pass_has_another_order():
    batches = Batches(EveryRow(50), 50, seeded())
    first, second = next(batches), next(batches)
    assert not torch.equal(first, second)
    assert_array_equal(first.sort().values, second.sort().values)


def test_no_rows_give_no_batches():
    assert list(Batches(torch.arange(0), 5, seeded())) == []


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("rest", [False, True])
def test_saved_and_restored_at_every_place(rest, computed, monkeypatch):
    """Whoever draws from the same generator meanwhile (input noise) gets the same numbers, too."""
    if computed:
        monkeypatch.setattr(sampling, "MOST_IN_MEMORY", 0)

    def new():
        return Batches(Others(13, torch.tensor([2, 5])), 4, seeded(), rest=rest)

    def draw(batches, n):
        return [
            (next(batches).tolist(), torch.rand(2, generator=batches.generator).tolist())
            for _ in range(n)
        ]

    straight = draw(new(), 12)
    for place in range(12):
        batches = new()
        draw(batches, place)
        state = batches.state_dict()
        draw(batches, 3)  # the state is a copy: what is drawn later does not change it
        resumed = new()
        next(resumed)  # wherever it is
        resumed.load_state_dict(state)
        assert draw(resumed, 12 - place) == straight[place:]


def test_held_out_rows_take_no_part():
    train, held_out = hold_out(100, 0.1, seeded())
    assert len(held_out) == 10
    assert_array_equal(torch.cat([train, held_out]).sort().values, torch.arange(100))
    assert len(hold_out(1_000_000, 0.1, seeded())[1]) == MOST_HELD_OUT == 2_000


def test_data_too_small_to_spare_rows_is_used_for_both():
    train, held_out = hold_out(10, 0.1, seeded())
    assert_array_equal(train, held_out)
    assert_array_equal(train.sort().values, torch.arange(10))


def test_held_out_rows_of_large_data_are_no_others_than_those_left_out(monkeypatch):
    monkeypatch.setattr(sampling, "MOST_IN_MEMORY", 0)
    train, held_out = hold_out(1_000, 0.1, seeded())
    assert (len(train), len(held_out)) == (900, 100)
    assert_array_equal(torch.cat([train[0:900], held_out]).sort().values, torch.arange(1_000))
