"""The nearest neighbor in a sample, against all distances by differences."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deccs.inference.nearest import NearestInSample
from deccs.storage.values import Reader, Writer

COLUMNS = [2, 40]  # a tree, and products of matrices


def slow_places(Z, sample):
    return np.array([np.square(point - sample).sum(axis=1).argmin() for point in Z])


@pytest.mark.parametrize("n_columns", COLUMNS)
def test_the_nearest_are_those_of_all_distances(n_columns):
    rng = np.random.default_rng(0)
    sample, Z = rng.normal(size=(300, n_columns)), rng.normal(size=(200, n_columns))
    labels = rng.integers(5, size=300)
    nearest = NearestInSample(sample, labels)
    assert_array_equal(nearest.places(Z), slow_places(Z, sample))
    assert_array_equal(nearest(Z), labels[slow_places(Z, sample)])
    alone = [nearest.places(point[None])[0] for point in Z[:50]]
    assert_array_equal(alone, nearest.places(Z)[:50])


@pytest.mark.parametrize("n_columns", COLUMNS)
def test_a_point_finds_itself_where_products_have_no_digits_left(n_columns):
    """Points 1e-3 apart at a distance of 1e6: squares are rounded to 1e-4 and differ by 1e-6."""
    rng = np.random.default_rng(0)
    sample = 1e6 + 1e-3 * rng.normal(size=(100, n_columns))
    assert_array_equal(NearestInSample(sample, np.arange(100))(sample), np.arange(100))


def test_the_first_of_equals_is_taken():
    sample = np.repeat(np.random.default_rng(0).normal(size=(10, 40)), 3, axis=0)
    assert_array_equal(NearestInSample(sample, np.arange(30))(sample), np.arange(30) // 3 * 3)


@pytest.mark.parametrize("n_columns", COLUMNS)
def test_it_can_be_stored(n_columns):
    rng = np.random.default_rng(0)
    nearest = NearestInSample(rng.normal(size=(20, n_columns)), np.arange(20))
    Z = rng.normal(size=(30, n_columns))
    before, writer = nearest(Z), Writer()  # the tree is built before it is stored
    tree = writer.tree(nearest, "nearest")
    assert_array_equal(Reader(writer.arrays).value(tree)(Z), before)
