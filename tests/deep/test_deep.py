"""The deep methods: one contract for all, and each one's formulas on numbers worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import check_estimator

from deccs import Pretraining, scores
from deccs.deep import METHODS, SpectralNet, paper_training
from deccs.deep.dcn import count_weighted
from deccs.deep.dec import DEC, IDEC, divergence, soft_assignment, target_distribution
from deccs.network.autoencoder import Autoencoder
from deccs_paper.settings import METHODS as METHODS_OF_THE_BENCHMARK

# What each takes of this; those that have no such parameter do without.
QUICK = {
    "n_clusters": 3,
    "layers": (8, 2),
    "n_steps": 30,
    "batch_size": 32,
    "n_partitions": 10,
    "random_state": 0,
    "pretraining": Pretraining(epochs=30, batch_size=32, learning_rate=1e-2),
}
OWN = {"ConCURL": {"n_steps": 60}, "AGAE": {"layers": (8, 4), "n_steps": 100}}
REAL = {"ConCURL": ("usps", 1_500, 0.46)}  # data set, points, NMI at least


class Listener:
    def __init__(self):
        self.epochs, self.parts = [], []

    def on_epoch(self, epoch):
        self.epochs.append(epoch)

    def on_progress(self, part):
        self.parts.append(part)


@pytest.fixture(scope="module")
def bars():
    """Three kinds of 8 x 8 images with noise: a bar across, a bar down, a cross; 60 each."""
    rng = np.random.default_rng(0)
    X, y = np.zeros((180, 8, 8)), np.arange(180) % 3
    X[y != 1, 3:5], X[y != 0, :, 3:5] = 1, 1
    return SimpleNamespace(X=(X + 0.1 * rng.normal(size=X.shape)).reshape(180, 64), y=y)


@pytest.fixture(scope="module", params=METHODS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def takes(kind):
    """The names of its parameters."""
    return set(METHODS[kind]().get_params(deep=False))


@pytest.fixture(scope="module")
def method(kind, takes):
    """``method(n_steps=5)``: a quick estimator of each kind."""

    def build(**changes):
        given = QUICK | OWN.get(kind, {}) | changes
        return METHODS[kind](**{name: value for name, value in given.items() if name in takes})

    return build


@pytest.fixture(scope="module")
def fitted(method, bars):
    return method().fit(bars.X)


@pytest.mark.filterwarnings("ignore:Rows of .* are no square images")
def test_scikit_learn_finds_no_fault(method):
    check_estimator(
        method(n_clusters=4, n_steps=3, n_partitions=3, pretraining=Pretraining(epochs=1))
    )


def test_clear_clusters_are_found(fitted, bars):
    assert scores.ari(bars.y, fitted.labels_) == 1


def test_predict_gives_the_labels_of_the_training_data(fitted, bars):
    assert_array_equal(fitted.predict(bars.X), fitted.labels_)
    assert_array_equal(
        [fitted.predict(bars.X[i : i + 1])[0] for i in range(10)], fitted.labels_[:10]
    )
    assert_allclose(fitted.predict_proba(bars.X).sum(axis=1), 1)
    assert_array_equal(fitted.predict_proba(bars.X).argmax(axis=1), fitted.labels_)
    Z = fitted.transform(bars.X)
    assert len(Z) == len(bars.X) and len(fitted.get_feature_names_out()) == Z.shape[1]


def test_the_same_seed_gives_the_same_bits_and_the_truth_changes_nothing(method, fitted, bars):
    again = method().fit(bars.X, bars.y)
    assert_array_equal(again.labels_, fitted.labels_)
    assert_array_equal(again.transform(bars.X), fitted.transform(bars.X))
    assert_array_equal(again.cluster_centers_, fitted.cluster_centers_)


def test_a_pretrained_autoencoder_is_copied_and_not_trained_anew(method, takes, trained, blobs):
    if "autoencoder" not in takes:
        pytest.skip("starts from none")
    before = {name: weight.clone() for name, weight in trained.state_dict().items()}
    listener = Listener()
    method(autoencoder=trained, callbacks=[listener]).fit(blobs.X)
    assert not listener.epochs
    assert all(torch.equal(before[name], weight) for name, weight in trained.state_dict().items())


def test_callbacks_get_the_progress(method, takes, bars):
    listener = Listener()
    method(callbacks=[listener]).fit(bars.X)
    assert bool(listener.epochs) == ("autoencoder" in takes)
    for part in listener.parts:
        assert part.step <= part.n_steps
    assert np.isfinite(listener.parts[-1].loss)


def test_more_clusters_than_the_data_has_do_no_harm(method):
    X = np.repeat(np.eye(4), 10, axis=0)  # four distinct points
    model = method(n_clusters=6, n_steps=10).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    far = X + 100  # far from all it has seen
    assert np.isfinite(model.predict_proba(far)).all() and np.isfinite(model.transform(far)).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1, got 0"),
        ({"n_clusters": 1_000}, "n_clusters=1000 is more than the number of points"),
        ({"batch_size": 1}, "batch_size must be a whole number of at least 2, got 1"),
        ({"n_partitions": 0}, "n_partitions must be a whole number of at least 1, got 0"),
    ],
)
def test_errors_say_what_was_given(method, takes, bars, changes, message):
    if not takes.issuperset(changes):
        pytest.skip("has no such parameter")
    with pytest.raises(ValueError, match=message):
        method(**changes).fit(bars.X)


def test_real_data(kind, method, load_real):
    name, n_points, least = REAL.get(kind, ("pendigits", 3_000, 0.65))
    data = load_real(name)
    layers = {"layers": (100, 10)} if kind != "AGAE" else {"layers": (64, 16)}
    model = method(
        n_clusters=10,
        **layers,
        n_steps=200 if kind in OWN else 400,
        batch_size=64 if kind in OWN else 128,
        n_partitions=20,
        pretraining=Pretraining(epochs=15),
    ).fit(data.X[:n_points])
    assert_array_equal(model.predict(data.X[:n_points:10]), model.labels_[::10])
    assert scores.nmi(data.y[:n_points], model.labels_) > least


def test_the_target_sharpens_and_leaves_a_hard_assignment_alone():
    q = torch.tensor([[0.6, 0.4], [0.4, 0.6]])  # sizes alike: squares, 0.36 to 0.16
    assert_allclose(target_distribution(q)[0], [0.36 / 0.52, 0.16 / 0.52], rtol=1e-6)
    hard = torch.eye(2)
    assert torch.equal(target_distribution(hard), hard)


def test_soft_assignment_by_hand():
    z, centers = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    q = np.array([1 / 26, 1 / 2])  # 1 / (1 + 25), 1 / (1 + 1)
    assert_allclose(soft_assignment(z, centers)[0], q / q.sum(), rtol=1e-6)


def test_divergence_by_hand_and_zero_for_equals():
    p, q = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]])
    assert float(divergence(p, q)) == pytest.approx(np.log(2))
    assert float(divergence(q, q)) == 0


def test_gamma_weighs_the_clustering_and_not_the_reconstruction():
    network = Autoencoder(torch.nn.Identity(), torch.nn.Identity())
    x = torch.tensor([[1.0, 2.0]])
    p, q = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]])
    loss = IDEC(2, gamma=3.0)._loss(network, x, x + 1, p, q)
    assert float(loss) == pytest.approx(1 + 3 * np.log(2))  # mean squared error of 1
    assert float(DEC(2)._loss(network, x, x + 1, p, q)) == pytest.approx(np.log(2))


def test_dec_stops_when_labels_stand_still(trained, blobs):
    given = {
        "n_clusters": 3,
        "autoencoder": trained,
        "batch_size": 32,
        "update_interval": 5,
        "random_state": 0,
    }
    assert DEC(**given, n_steps=500).fit(blobs.X).n_iter_ < 500
    assert DEC(**given, n_steps=50, tol=0.0).fit(blobs.X).n_iter_ == 50


def test_a_batch_moves_the_centers_as_its_points_one_by_one():
    rng = torch.Generator().manual_seed(0)
    centers, counts = torch.randn(3, 2, generator=rng), torch.tensor([1.0, 5.0, 2.0])
    z, labels = (
        torch.randn(20, 2, generator=rng),
        torch.randint(2, (20,), generator=rng),
    )  # none in the third
    slow, seen = centers.clone(), counts.clone()
    for point, label in zip(z, labels, strict=True):
        seen[label] += 1
        slow[label] += (point - slow[label]) / seen[label]
    fast, after = count_weighted(centers, counts, z, labels)
    assert_allclose(fast, slow, atol=1e-6)
    assert torch.equal(after, seen) and torch.equal(fast[2], centers[2])


def test_the_papers_training_is_a_preset():
    assert DEC(10, **paper_training("DEC")).get_params()["learning_rate"] == 1e-4
    for small, width in ((False, 1024), (True, 50)):
        assert SpectralNet(10, **paper_training("SpectralNet", small=small)).hidden[0] == width
    with pytest.raises(ValueError, match="no training of its own for 'IEC'; it has for DEC, IDEC"):
        paper_training("IEC")
    model = METHODS_OF_THE_BENCHMARK["VaDE paper"].build("usps")
    assert (model.n_steps, model.batch_size, model.layers) == (100_000, 256, (500, 500, 2000, 10))
