"""The deep methods: one contract for all, and each one's formulas on numbers worked out by hand."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import check_estimator

from deccs import Pretraining, datasets, scores
from deccs.autoencoder import Autoencoder
from deccs.deep import METHODS
from deccs.deep.dcn import count_weighted
from deccs.deep.dec import DEC, IDEC, divergence, soft_assignment, target_distribution

QUICK = {"n_clusters": 3, "layers": (8, 2), "n_steps": 30, "batch_size": 32, "random_state": 0,
         "pretraining": Pretraining(epochs=30, batch_size=32, learning_rate=1e-2)}


class Listener:
    def __init__(self):
        self.epochs, self.parts = [], []

    def on_epoch(self, epoch):
        self.epochs.append(epoch)

    def on_progress(self, part):
        self.parts.append(part)


@pytest.fixture(scope="module", params=METHODS)
def method(request):
    """``method(n_steps=5)``: a quick estimator of each kind."""
    return lambda **changes: METHODS[request.param](**(QUICK | changes))


@pytest.fixture(scope="module")
def fitted(method, blobs):
    return method().fit(blobs.X)


def test_scikit_learn_finds_no_fault(method):
    check_estimator(method(n_clusters=4, n_steps=3, pretraining=Pretraining(epochs=1)))


def test_clear_blobs_are_found(fitted, blobs):
    assert scores.ari(blobs.y, fitted.labels_) == 1


def test_predict_gives_the_labels_of_the_training_data(fitted, blobs):
    assert_array_equal(fitted.predict(blobs.X), fitted.labels_)
    assert_array_equal(fitted.predict(blobs.X[:1]), fitted.labels_[:1])
    assert_allclose(fitted.predict_proba(blobs.X).sum(axis=1), 1)
    assert fitted.transform(blobs.X).shape == (len(blobs.X), fitted.cluster_centers_.shape[1])
    assert len(fitted.get_feature_names_out()) == fitted.cluster_centers_.shape[1]


def test_the_same_seed_gives_the_same_bits_and_the_truth_changes_nothing(method, fitted, blobs):
    again = method().fit(blobs.X, blobs.y)
    assert_array_equal(again.labels_, fitted.labels_)
    assert_array_equal(again.transform(blobs.X), fitted.transform(blobs.X))
    assert_array_equal(again.cluster_centers_, fitted.cluster_centers_)


def test_a_pretrained_autoencoder_is_copied_and_not_trained_anew(method, trained, blobs):
    before = {name: weight.clone() for name, weight in trained.state_dict().items()}
    listener = Listener()
    method(autoencoder=trained, callbacks=[listener]).fit(blobs.X)
    assert not listener.epochs
    assert all(torch.equal(before[name], weight) for name, weight in trained.state_dict().items())


def test_callbacks_get_the_progress(method, blobs):
    listener = Listener()
    method(callbacks=[listener]).fit(blobs.X)
    parts = listener.parts
    assert listener.epochs and parts[-1].step <= parts[-1].n_steps == 30 and np.isfinite(parts[-1].loss)


def test_more_clusters_than_the_data_has_do_no_harm(method):
    X = np.repeat(np.eye(4), 10, axis=0)                                   # four distinct points
    model = method(n_clusters=6, n_steps=10).fit(X)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(("changes", "message"), [
    ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1, got 0"),
    ({"n_clusters": 1_000}, "n_clusters=1000 is more than the number of points"),
    ({"batch_size": 1}, "batch_size must be a whole number of at least 2, got 1"),
])
def test_errors_say_what_was_given(method, blobs, changes, message):
    with pytest.raises(ValueError, match=message):
        method(**changes).fit(blobs.X)


def test_the_target_sharpens_and_leaves_a_hard_assignment_alone():
    q = torch.tensor([[0.6, 0.4], [0.4, 0.6]])                             # sizes alike: squares, 0.36 to 0.16
    assert_allclose(target_distribution(q)[0], [0.36 / 0.52, 0.16 / 0.52], rtol=1e-6)
    hard = torch.eye(2)
    assert torch.equal(target_distribution(hard), hard)


def test_soft_assignment_by_hand():
    z, centres = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    q = np.array([1 / 26, 1 / 2])                                          # 1 / (1 + 25), 1 / (1 + 1)
    assert_allclose(soft_assignment(z, centres)[0], q / q.sum(), rtol=1e-6)


def test_divergence_by_hand_and_zero_for_equals():
    p, q = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]])
    assert float(divergence(p, q)) == pytest.approx(np.log(2))
    assert float(divergence(q, q)) == 0


def test_gamma_weighs_the_clustering_and_not_the_reconstruction():
    network = Autoencoder(torch.nn.Identity(), torch.nn.Identity())
    x = torch.tensor([[1.0, 2.0]])
    p, q = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]])
    loss = IDEC(2, gamma=3.0)._loss(network, x, x + 1, p, q)
    assert float(loss) == pytest.approx(1 + 3 * np.log(2))                 # mean squared error of 1
    assert float(DEC(2)._loss(network, x, x + 1, p, q)) == pytest.approx(np.log(2))


def test_dec_stops_when_labels_stand_still(blobs):
    model = DEC(**(QUICK | {"n_steps": 500, "update_interval": 5})).fit(blobs.X)
    assert model.n_iter_ < 500
    assert DEC(**(QUICK | {"n_steps": 50, "update_interval": 5, "tol": 0.0})).fit(blobs.X).n_iter_ == 50


def test_a_batch_moves_the_centres_as_its_points_one_by_one():
    rng = torch.Generator().manual_seed(0)
    centres, counts = torch.randn(3, 2, generator=rng), torch.tensor([1.0, 5.0, 2.0])
    z, labels = torch.randn(20, 2, generator=rng), torch.randint(2, (20,), generator=rng)      # none in the third
    slow, seen = centres.clone(), counts.clone()
    for point, label in zip(z, labels, strict=True):
        seen[label] += 1
        slow[label] += (point - slow[label]) / seen[label]
    fast, after = count_weighted(centres, counts, z, labels)
    assert_allclose(fast, slow, atol=1e-6)
    assert torch.equal(after, seen) and torch.equal(fast[2], centres[2])


def test_pendigits(method):
    data = datasets.load("pendigits")
    X, y = data.X[:3_000], data.y[:3_000]
    model = method(n_clusters=10, layers=(100, 10), n_steps=400, batch_size=128, pretraining=Pretraining(epochs=15))
    assert scores.nmi(y, model.fit(X).labels_) > 0.65
