"""Any clusterer on the embedding: new points, noise, samples, seeds."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from deccs import Autoencoder, scores
from deccs.deep.plain import AutoencoderClustering


@pytest.fixture(scope="module")
def fit(blobs):
    """``fit(DBSCAN(), sample_size=50)``: on the blobs, or on ``X``, which are their own embedding."""
    same = Autoencoder(nn.Identity(), nn.Identity(), pretrained=True)

    def fit(clusterer=None, X=blobs.X, **changes):
        given = {"network": same, "scale": None, "random_state": 0} | changes
        return AutoencoderClustering(3, clusterer=clusterer, **given).fit(X)

    return fit


CLUSTERERS = {
    "default": None,
    "k-means": KMeans(3, n_init=1),
    "mixture": GaussianMixture(3),
    "pipeline": make_pipeline(StandardScaler(), KMeans(3, n_init=1)),
    "agglomerative": AgglomerativeClustering(3),
    "spectral": SpectralClustering(3),
    "noise": DBSCAN(eps=1.2, min_samples=5),
}


@pytest.mark.parametrize("sample_size", [11_000, 100])
@pytest.mark.parametrize("clusterer", CLUSTERERS.values(), ids=CLUSTERERS)
def test_predict_gives_the_labels_and_the_seed_fixes_them(fit, blobs, clusterer, sample_size):
    model = fit(clusterer, sample_size=sample_size)
    assert scores.ari(blobs.y, np.where(model.labels_ < 0, 3, model.labels_)) > 0.8
    assert_array_equal(model.predict(blobs.X), model.labels_)
    assert_array_equal(
        np.concatenate([model.predict(blobs.X[[i]]) for i in range(10)]), model.labels_[:10]
    )
    assert_array_equal(fit(clusterer, sample_size=sample_size).labels_, model.labels_)
    known = model.labels_ >= 0
    assert_allclose(model.predict_proba(blobs.X).sum(axis=1), known)
    assert_array_equal(model.predict_proba(blobs.X).argmax(axis=1)[known], model.labels_[known])
    assert len(model.sample_) == min(sample_size, len(blobs.X))


def test_the_default_is_k_means_of_the_embedding(fit, blobs):
    model = fit()
    Z = model.transform(blobs.X)
    assert_array_equal(Z, blobs.X)
    kmeans = KMeans(3, n_init=20, random_state=1).fit(Z)
    assert scores.ari(kmeans.labels_, model.labels_) == 1
    assert_allclose(
        np.sort(model.cluster_centers_, axis=0), np.sort(kmeans.cluster_centers_, axis=0), rtol=1e-6
    )
    assert model.clusterer_.n_init == 20


def test_the_autoencoder_stays_as_it_is(fit, trained):
    after = fit(network=trained).autoencoder_.state_dict()
    assert all(torch.equal(after[name], weight) for name, weight in trained.state_dict().items())


def test_those_outside_the_sample_are_labeled_like_their_nearest_neighbor_in_it(fit, blobs):
    model = fit(AgglomerativeClustering(7), sample_size=60)  # clusters that touch
    Z = model.transform(blobs.X)
    labels = AgglomerativeClustering(7).fit_predict(Z[model.sample_])
    nearest = np.square(Z[:, None] - Z[model.sample_]).sum(axis=2).argmin(axis=1)  # slow, and sure
    assert_array_equal(model.labels_, labels[nearest])
    assert_array_equal(model.labels_[model.sample_], labels)


def test_noise_stays_noise_and_belongs_nowhere(fit, blobs):
    far = blobs.X.mean(axis=0) + np.array([100, -100, 0, 0])
    X = np.vstack([blobs.X, far])
    model = fit(DBSCAN(eps=3, min_samples=5), X=X)
    assert model.labels_[-1] == -1 and set(model.labels_) == {-1, 0, 1, 2}
    assert_array_equal(model.predict(far[None] + 0.01), [-1])  # new, next to noise
    assert_array_equal(model.predict_proba(far[None]), [[0, 0, 0]])
    assert model.n_clusters_ == 3 and np.isfinite(model.cluster_centers_).all()


def test_nothing_but_noise_is_an_answer(fit, blobs):
    model = fit(DBSCAN(eps=1e-9, min_samples=5))
    assert set(model.labels_) == {-1} and not model.predict_proba(blobs.X).any()


def test_a_mixture_gives_its_own_probabilities(fit, blobs):
    model = fit(GaussianMixture(3, random_state=0))
    assert_array_equal(
        model.predict_proba(blobs.X), model.clusterer_.predict_proba(model.transform(blobs.X))
    )


def test_the_clusterer_given_is_left_alone_and_gets_a_seed_in_its_copy(fit):
    given = make_pipeline(StandardScaler(), KMeans(3))
    seeds = [fit(given).clusterer_[-1].random_state for _ in range(2)]
    assert seeds[0] == seeds[1] is not None
    assert given[-1].random_state is None and not hasattr(given[-1], "labels_")
    assert fit(KMeans(3, random_state=7)).clusterer_.random_state == 7


def test_progress_says_how_far_points_are_from_their_centers(fit, blobs):
    class Listener:
        def __init__(self):
            self.parts = []

        def on_progress(self, part):
            self.parts.append(part)

    listener = Listener()
    model = fit(callbacks=[listener])
    Z, (before, after) = model.transform(blobs.X), listener.parts
    assert before.loss == pytest.approx(Z.var(axis=0).sum())
    assert after.loss == pytest.approx(model.clusterer_.inertia_ / len(Z))


class Odd:
    def __init__(self, answer):
        self.answer = answer

    def fit_predict(self, Z):
        return np.full(len(Z), self.answer)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clusterer": KMeans}, "clusterer must be an object with fit_predict"),
        ({"clusterer": StandardScaler()}, r"like KMeans\(8\), or None, got StandardScaler\(\)"),
        ({"sample_size": 2}, "sample_size must be at least n_clusters=3, got 2"),
        ({"sample_size": 10.5}, "sample_size must be a whole number of at least 2, got 10.5"),
        (
            {"clusterer": Odd(-2)},
            r"whole numbers from 0, or -1 for noise; it gave shape \(180,\): array\(\[-2",
        ),
        ({"clusterer": Odd("a")}, "must give 180 points whole numbers"),
    ],
)
def test_errors_say_what_was_given(fit, changes, message):
    with pytest.raises(ValueError, match=message):
        fit(**changes)


class Overwrites(DBSCAN):
    def fit(self, X, y=None, sample_weight=None):
        super().fit(X)
        torch.set_default_dtype(torch.float64)
        X[:] = 0
        return self


def test_a_clusterer_that_changes_its_input_or_the_process_changes_nothing(fit, blobs):
    expected, model = fit(DBSCAN(eps=1.2)), fit(Overwrites(eps=1.2))
    assert torch.get_default_dtype() == torch.float32
    assert_array_equal(model.labels_, expected.labels_)
    assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert_array_equal(model.predict(blobs.X), expected.predict(blobs.X))
