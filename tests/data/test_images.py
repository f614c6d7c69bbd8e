"""Whether rows are images: made-up ones, tables, and the real data sets."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits

from deccs.data import rows as rows_module
from deccs.data.augment import Motion
from deccs.data.images import image_shape_of
from deccs.data.inputs import as_source
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from tests.helpers.images import blots


def shape_of(X, given="auto"):
    return image_shape_of(as_source(BaseEstimator(), X, reset=True), given)


def seeded(number=0):
    return torch.Generator().manual_seed(number)


def rows_of(X, image_shape, scale="auto"):
    source = source_of(X)
    return Rows(source, fit_scaler(source, scale), image_shape=image_shape)


RNG = np.random.default_rng(0)
FLAT = blots(200, 12, 12).reshape(200, 144)
TABLES = {
    "noise": RNG.random((200, 64)),
    "three columns": RNG.random((200, 3)),
    "too small": blots(200, 7, 7).reshape(200, 49),
    "no square": blots(200, 8, 9).reshape(200, 72),
    "pixels in another order": FLAT[:, RNG.permutation(144)],
    "random walks": RNG.normal(size=(200, 256)).cumsum(axis=1),
    "one factor": RNG.normal(size=(200, 1)) + 0.3 * RNG.normal(size=(200, 64)),
    "units": FLAT * 10.0 ** RNG.integers(0, 4, 144),
    "constant": np.ones((200, 64)),
}


def test_flat_images_are_found():
    assert shape_of(FLAT) == (12, 12)
    assert shape_of(255 - (255 * FLAT).astype(np.uint8)) == (12, 12)
    assert shape_of(FLAT[:20].astype(np.float32) * 2 - 1) == (12, 12)
    assert shape_of(load_digits().data) == (8, 8)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_no_images(name):
    assert shape_of(TABLES[name]) is None


def test_a_three_dimensional_array_says_its_shape():
    images = blots(20, 8, 10)
    assert shape_of(images) == (8, 10)
    assert shape_of(torch.from_numpy(images)) == (8, 10)
    assert shape_of(as_source(BaseEstimator(), images, reset=True)) == (8, 10)
    assert shape_of(blots(20, 4, 20)) is None  # less than 8 pixels high
    assert shape_of(images[:, :, :, None]) is None  # (n, height, width, channels)


def test_the_user_may_say_otherwise():
    assert shape_of(FLAT, None) is None
    assert shape_of(TABLES["no square"], (8, 9)) == (8, 9)
    assert shape_of(TABLES["no square"], np.array([9, 8])) == (9, 8)
    with pytest.raises(ValueError, match=r"height x width = 72 columns, got \(8, 8\)"):
        shape_of(TABLES["no square"], (8, 8))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("mnist", (28, 28)),
        ("fmnist", (28, 28)),
        ("kmnist", (28, 28)),
        ("usps", (16, 16)),
        ("pendigits", None),
        ("har", None),
        ("mice", None),
        ("synth", None),
    ],
)
def test_the_papers_data_sets(name, shape, load_real):
    assert shape_of(load_real(name).X) == shape


def test_images_move_and_tables_stay():
    index = torch.arange(5)
    tables, images = rows_of(FLAT, None), rows_of(FLAT, (12, 12))
    generator, before = seeded(), seeded().get_state()
    assert torch.equal(tables.moved(index, generator), tables[index])
    assert torch.equal(generator.get_state(), before)  # nothing is drawn
    moved = images.moved(index, generator)
    assert moved.shape == (5, 144) and not torch.equal(moved, images[index])
    assert torch.equal(moved, images.moved(index, seeded()))
    assert not torch.equal(moved, images.moved(index, generator))


@pytest.mark.parametrize("scale", ["global", "columns", None])
def test_a_shift_by_one_pixel_by_hand(scale, monkeypatch):
    """Pixels change places before the columns are scaled."""

    def to_the_right(n, generator):
        zeros = torch.zeros(n)
        return Motion(zeros, zeros, zeros + 1 / 4, zeros, zeros + 1)

    monkeypatch.setattr(rows_module, "draw_small_motion", to_the_right)
    X = np.array([[1.0, 2, 3, 4, 5, 6, 7, 8], [3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]])
    rows = rows_of(X, (2, 4), scale)
    shifted = np.array([[1.0, 1, 2, 3, 5, 5, 6, 7]])
    expected = rows.scaler(shifted).astype(np.float32)
    assert_allclose(rows.moved(torch.tensor([0]), seeded()), expected, atol=1e-5)
