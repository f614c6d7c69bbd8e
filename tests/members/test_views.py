"""What members see beside the embedding, and how rows outside the sample are seen."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA

from deccs.inference.seen import Seen
from deccs.members.views import (
    MANIFOLD,
    MOST_COMPONENTS,
    NEAR,
    RAW,
    WIDE,
    Components,
    carried,
    fit_components,
    views_of,
)
from deccs.storage.values import Reader, Writer
from tests.helpers.small import rows_of

pytestmark = pytest.mark.usefixtures("quick_manifold")
COLUMNS = [4, MOST_COMPONENTS, MOST_COMPONENTS + 10]


def normal(n, d):
    return np.random.default_rng(d).normal(size=(n, d))


def seen_of(points, components=None, labels=None):
    places = np.arange(len(points))
    as_is = Components(np.zeros(points.shape[1]), None)
    return Seen(components or as_is, points, ("a", "b"), np.stack([places, -places]), labels)


@pytest.mark.parametrize("n_features", COLUMNS[:2])
def test_few_columns_are_seen_as_they_are(n_features):
    block = normal(30, n_features)
    components = fit_components(block, seed=0)
    assert components.axes is None
    assert components(block) is block


def test_many_columns_are_seen_as_principal_components():
    block = normal(100, MOST_COMPONENTS + 10) * np.linspace(3, 1, MOST_COMPONENTS + 10)
    expected = PCA(MOST_COMPONENTS, svd_solver="full").fit_transform(block)
    made = fit_components(block, seed=0)(block)
    assert made.shape == (100, MOST_COMPONENTS)
    assert_allclose(np.abs(made), np.abs(expected), atol=1e-9)  # components have no sign
    assert fit_components(block[:7], seed=0)(block).shape == (100, 7)  # no more than rows


@pytest.mark.parametrize("n_features", COLUMNS)
def test_a_row_is_seen_alone_as_in_a_block(n_features):
    block = normal(80, n_features)
    components = fit_components(block, seed=0)
    alone = np.concatenate([components(row[None]) for row in block])
    assert_allclose(alone, components(block), rtol=1e-12, atol=1e-12)
    seen = seen_of(components(block), components)
    assert_array_equal([seen.places(row[None])[0] for row in block], seen.places(block))


@pytest.mark.parametrize("n_features", COLUMNS)
def test_the_place_of_a_row_of_the_sample_is_its_own(n_features):
    block = normal(80, n_features)
    components = fit_components(block, seed=0)
    assert_array_equal(seen_of(components(block), components).places(block), np.arange(80))


def test_what_was_said_of_rows_by_hand():
    seen = seen_of(np.array([[0.0], [1], [5]]), labels=np.array([7, 8, 9]))
    there = seen.at(seen.places(np.array([[4.0], [0.4], [0.6]])))
    assert_array_equal(there.labels, [9, 7, 8])
    assert_array_equal(there.partitions, [[2, 0, 1], [-2, 0, -1]])
    assert seen_of(np.zeros((3, 1))).at(np.array([2])).labels is None


@pytest.mark.parametrize("n_features", [4, MOST_COMPONENTS + 10])
def test_it_can_be_stored(n_features):
    block = normal(60, n_features)
    components = fit_components(block, seed=0)
    seen, writer = seen_of(components(block), components, np.arange(60)), Writer()
    seen = replace(seen, partitions=np.maximum(seen.partitions, -1))
    before = seen.places(block + 0.1)  # the tree is built before it is stored
    tree = writer.tree(seen, "seen")
    again = Reader(writer.arrays).value(tree)
    assert_array_equal(again.places(block + 0.1), before)
    assert again.names == seen.names
    assert_array_equal(again.labels, seen.labels)


def test_labels_are_carried_by_the_nearest_row_of_the_sample(blobs):
    rows = rows_of(blobs.X)
    components = Components(np.zeros(4), None)
    sample = np.arange(0, 180, 9)
    points, labels = rows.scaled(sample), blobs.y[sample]
    assert_array_equal(carried(labels, points, sample, rows, components), blobs.y)  # far blobs
    everything = np.arange(180)
    given = carried(blobs.y, rows.scaled(everything), everything, rows, components)
    assert given is blobs.y  # nothing to carry


def test_views_of_a_sample():
    points = normal(40, 6)
    views = views_of(points, Components(np.zeros(6), None), np.arange(40), n_clusters=3, seed=0)
    assert views.view(RAW) is points
    assert views.view(MANIFOLD).shape == (40, 3)
    for graph, n_neighbors in ((views.near, NEAR), (views.wide, WIDE)):
        assert graph.sum() == pytest.approx(40 * n_neighbors)  # each point chooses so many
    again = views_of(points, Components(np.zeros(6), None), np.arange(40), n_clusters=3, seed=0)
    assert_array_equal(again.manifold, views.manifold)


@pytest.mark.parametrize(("n_clusters", "n_dimensions"), [(1, 2), (2, 2), (7, 7), (30, 10)])
def test_a_manifold_has_as_many_dimensions_as_clusters_from_2_to_10(n_clusters, n_dimensions):
    as_is = Components(np.zeros(6), None)
    views = views_of(normal(40, 6), as_is, np.arange(40), n_clusters, seed=0)
    assert views.manifold.shape == (40, n_dimensions)
