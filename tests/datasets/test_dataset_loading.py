"""``load``, normalization and the generators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import normalized_mutual_info_score
from sklearn.mixture import GaussianMixture

from deccs import datasets
from deccs.datasets.loading import normalize_
from deccs.datasets.sources import SOURCES


def test_names_in_the_order_of_the_paper():
    assert datasets.names() == (
        "synth",
        "mice",
        "pendigits",
        "har",
        "mnist",
        "fmnist",
        "kmnist",
        "usps",
    )


@pytest.mark.parametrize(
    ("name", "meant"), [("minst", "mnist"), ("USPS", "usps"), ("pen_digits", "pendigits")]
)
def test_unknown_name_suggests_the_nearest(name, meant):
    words = f"Unknown data set '{name}'. Did you mean '{meant}'.*synth, mice, pendigits"
    with pytest.raises(ValueError, match=words):
        datasets.load(name)


def test_unknown_name_like_no_other():
    with pytest.raises(ValueError, match="Unknown data set 'iris'. Choose one of: synth"):
        datasets.load("iris")


def test_every_source_is_either_made_or_fetched():
    for source in SOURCES.values():
        assert (source.generate is None) == (source.parse is not None) == bool(source.files)
        # What comes over the network is checked: by its file, by its content, or both.
        assert source.content or all(file.checksum for file in source.files)
        assert all(file.url.startswith("https://") for file in source.files)


def test_synth_is_generated_without_network(cache):
    synth = datasets.load("synth")
    assert (synth.name, synth.n, synth.d, synth.k, synth.image_shape) == ("synth", 2000, 2, 4, None)
    assert "make_synth" in synth.source and not cache.exists()
    assert_array_equal(np.bincount(synth.y), [500] * 4)
    assert_array_equal(synth.X, datasets.make_synth()[0].astype(np.float32))  # not scaled
    assert synth.sha256 == datasets.load("synth").sha256
    assert "array" not in repr(synth)


def test_return_X_y_gives_the_same_arrays(cache):
    X, y = datasets.load("synth", return_X_y=True)
    assert_array_equal(X, datasets.load("synth").X)
    assert_array_equal(y, datasets.load("synth").y)
    assert (X.dtype, y.dtype) == ("float32", "int64")


def test_per_feature_scaling_by_hand():
    X = np.array([[0, 5, 1], [2, 5, 1], [4, 5, 4]], dtype=np.float32)
    normalize_(X, "feature")
    root = np.sqrt(1.5)
    assert_allclose(
        X, [[-root, 0, -np.sqrt(0.5)], [0, 0, -np.sqrt(0.5)], [root, 0, np.sqrt(2)]], rtol=1e-6
    )


def test_global_scaling_by_hand():
    X = np.array([[0, 0], [4, 4]], dtype=np.float32)
    normalize_(X, "global")
    assert_array_equal(X, [[-1, -1], [1, 1]])


@pytest.mark.parametrize(("scaling", "axis"), [("feature", 0), ("global", None)])
def test_scaled_data_has_mean_zero_and_deviation_one_whatever_its_units(scaling, axis):
    X = np.random.default_rng(0).gamma(2, size=(500, 7)).astype(np.float32)
    other_units = 100 * X - 3
    for data in (X, other_units):
        normalize_(data, scaling)
        assert_allclose(data.mean(axis=axis, dtype=np.float64), 0, atol=1e-6)
        assert_allclose(data.std(axis=axis, dtype=np.float64), 1, atol=1e-6)
    assert_allclose(X, other_units, atol=1e-4)


@pytest.mark.parametrize("scaling", ["feature", "global"])
def test_constant_data_becomes_zero(scaling):
    X = np.full((7, 3), 0.1, dtype=np.float32)  # the mean of seven 0.1 is not quite 0.1
    normalize_(X, scaling)
    assert_array_equal(X, np.zeros((7, 3)))


GENERATORS = [datasets.make_synth, datasets.make_rings, datasets.make_nonlinear]


@pytest.mark.parametrize("make", GENERATORS)
def test_generators_follow_their_seed(make):
    X, y = make(50, random_state=3)
    again, _ = make(50, random_state=3)
    other, _ = make(50, random_state=4)
    shared, _ = make(50, random_state=np.random.RandomState(3))
    assert_array_equal(X, again)
    assert_array_equal(X, shared)
    assert not np.array_equal(X, other)
    assert X.shape == (len(y), 2) and set(np.bincount(y)) == {50}


def test_synth_is_where_the_authors_put_it():
    X, y = datasets.make_synth()
    upper, lower, small, large = (X[y == label] for label in range(4))
    for moon, center in ((upper, (0, 0)), (lower, (1, 0.5))):
        radius = np.linalg.norm(moon - center, axis=1)
        assert_allclose([radius.mean(), radius.std()], [1, 0.04], atol=0.01)
    assert_allclose(small.mean(axis=0), (2, 0.75), atol=0.01)
    assert_allclose(large.mean(axis=0), (2, 1), atol=0.01)
    assert_allclose(small.std(axis=0), 0.02, atol=0.005)
    assert_allclose(large.std(axis=0), 0.045, atol=0.005)


def test_rings_have_one_center():
    X, y = datasets.make_rings()
    assert_allclose([X[y == 0].mean(axis=0), X[y == 1].mean(axis=0)], np.zeros((2, 2)), atol=0.01)
    assert np.linalg.norm(X[y == 0], axis=1).min() > np.linalg.norm(X[y == 1], axis=1).max()


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
@pytest.mark.parametrize("make", [datasets.make_rings, datasets.make_nonlinear])
@pytest.mark.parametrize("seed", [0, 1])
def test_half_of_the_members_find_the_clusters_and_half_guess(make, seed):
    X, y = make(random_state=seed)

    def nmi(member):
        return normalized_mutual_info_score(y, member.fit_predict(X))

    assert nmi(
        SpectralClustering(2, affinity="nearest_neighbors", random_state=seed)
    ) == pytest.approx(1)
    assert nmi(AgglomerativeClustering(2, linkage="single")) == pytest.approx(1)
    assert nmi(KMeans(2, n_init=3, random_state=seed)) < 0.01
    assert nmi(GaussianMixture(2, random_state=seed)) < 0.01
