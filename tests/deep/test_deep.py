"""The deep methods: one contract for all of them, and formulas on numbers worked out by hand.

A new method in ``METHODS`` is tested here with no further line.
"""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

from deccs import Answer, Callback, Network, Pretraining, scores
from deccs.deep import METHODS, SpectralNet, paper_training
from deccs.deep.dcn import count_weighted
from deccs.deep.dec import (
    DEC,
    IDEC,
    SoftAssignments,
    divergence,
    soft_assignment,
    target_distribution,
)
from deccs.network.autoencoder import Autoencoder, TrainingError
from deccs.network.reconstruction import SQUARED
from deccs.training import engine

# Each method takes those of its parameters.
QUICK = {
    "n_clusters": 3,
    "network": Network(layers=(8, 2)),
    "n_steps": 30,
    "batch_size": 32,
    "n_partitions": 10,
    "random_state": 0,
    "pretraining": Pretraining(n_epochs=20, batch_size=32, learning_rate=1e-2),
}
TINY = {
    "n_clusters": 4,  # of predict_proba in scikit-learn's checks
    "network": Network(layers=(2,)),
    "n_steps": 2,
    "n_partitions": 2,
    "pretraining": Pretraining(n_steps=1, batch_size=32),
}
LONG = {"n_steps": 10_000, "n_partitions": 1_000, "pretraining": Pretraining(n_steps=10_000)}
OWN = {"ConCURL": {"n_steps": 60}, "AGAE": {"layers": (8, 4), "n_steps": 40}}
REAL = {"ConCURL": ("usps", 1_500, 0.46)}  # data set, points, NMI at least
REAL_OWN = {"ConCURL": {"n_steps": 200, "batch_size": 64}, "AGAE": {"n_steps": 75}}


class Listener(Callback):
    def __init__(self, stops=False):
        self.parts, self.answers, self.started, self.ended = [], [], [], []
        self.stops = stops

    def on_fit_start(self, estimator):
        self.started.append(estimator)

    def on_progress(self, progress):
        self.parts.append(progress)

    def on_answer(self, answer):
        self.answers.append(answer)

    def on_fit_end(self, estimator):
        self.ended.append(estimator)

    def stop(self):
        return self.stops

    def stages(self):
        return {part.stage for part in self.parts}


class ReadOnly:
    """A user's source: three attributes, and nothing of an array."""

    def __init__(self, X):
        self.shape, self.dtype, self.read = X.shape, X.dtype, lambda rows: X[rows]


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


@pytest.fixture(scope="module")
def again(method, bars):
    """A second fit, with labels and another default dtype of torch, and what it has told."""
    listener = Listener()
    with doubles():
        return method(callbacks=[listener]).fit(bars.X, bars.y), listener


@contextmanager
def doubles():
    """float64 as the user's default dtype, which no fit may change."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.fixture
def one_start(monkeypatch):
    """k-means starts once instead of 20 times, which would take most of the time of many small fits."""
    fit = KMeans.fit

    def fit_once(self, X, y=None, sample_weight=None):
        self.n_init = 1
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(KMeans, "fit", fit_once)


@pytest.mark.filterwarnings("ignore:Rows of .* are no square images")
def test_scikit_learn_finds_no_fault(method, one_start):
    check_estimator(method(**TINY))


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


def test_the_same_seed_gives_the_same_bits_and_y_is_ignored(again, fitted, bars):
    model, _ = again
    assert_array_equal(model.labels_, fitted.labels_)
    assert_array_equal(model.transform(bars.X), fitted.transform(bars.X))
    assert_array_equal(model.cluster_centers_, fitted.cluster_centers_)


def test_the_users_default_dtype_changes_no_bits(again, fitted, bars):
    model, _ = again  # fitted with another one
    with doubles():
        assert_array_equal(model.predict_proba(bars.X), fitted.predict_proba(bars.X))
        assert_array_equal(fitted.transform(bars.X), model.transform(bars.X))
        assert len(model.get_feature_names_out()) == model.transform(bars.X[:2]).shape[1]


def test_a_users_source_gives_the_same_bits_as_an_array(method, fitted, bars):
    from_source = method().fit(ReadOnly(bars.X))
    assert_array_equal(from_source.labels_, fitted.labels_)
    assert_array_equal(from_source.transform(ReadOnly(bars.X)), fitted.transform(bars.X))


def test_a_pretrained_network_is_copied_and_not_pretrained_again(method, takes, trained, blobs):
    if "network" not in takes:
        pytest.skip("starts from no network")
    before = {name: weight.clone() for name, weight in trained.state_dict().items()}
    listener = Listener()
    model = method(network=trained, callbacks=[listener]).fit(blobs.X)
    assert "pretraining" not in listener.stages()
    assert all(torch.equal(before[name], weight) for name, weight in trained.state_dict().items())
    assert model.autoencoder_ is not trained


def test_callbacks_are_told_the_progress_and_every_answer(takes, again, bars):
    model, listener = again
    assert ("pretraining" in listener.stages()) == ("network" in takes)
    assert listener.started == listener.ended == [model]
    for stage in listener.stages():
        parts = [part for part in listener.parts if part.stage == stage]
        steps = [part.step for part in parts]
        assert steps == sorted(set(steps))
        assert steps[-1] <= parts[-1].n_steps
        # DEC ends when its labels stand still; all others take every step.
        assert steps[-1] == parts[-1].n_steps or parts[-1].changed < 0.001
    assert np.isfinite(listener.parts[-1].loss)
    assert_same_answer(Answer.joined(listener.answers), model.answer(bars.X))


def assert_same_answer(told, asked):
    """All that was told during the fit is what the fitted model says when it is asked."""
    for name in ("Z", "labels", "probabilities", "confidence"):
        assert_array_equal(getattr(told, name), getattr(asked, name))


def test_a_callback_can_stop_every_training(method, bars):
    listener = Listener(stops=True)
    model = method(**LONG, callbacks=[listener]).fit(bars.X)
    trainings = [part for part in listener.parts if part.n_steps > 1]
    assert trainings
    assert len({part.stage for part in trainings}) == len(trainings)  # one check each
    assert all(part.step < part.n_steps for part in trainings)
    assert getattr(model, "n_iter_", 0) < LONG["n_steps"]
    assert_array_equal(model.predict(bars.X), model.labels_)


def test_more_clusters_than_the_data_has_do_no_harm(method):
    X = np.repeat(np.eye(4), 10, axis=0)  # four distinct points
    model = method(n_clusters=6, n_steps=10).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    far = X + 100  # far from all it has seen
    assert np.isfinite(model.predict_proba(far)).all() and np.isfinite(model.transform(far)).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"n_clusters": 0},
            "n_clusters must be a whole number of at least 1, 'auto' or a range such as '3-20', got 0",
        ),
        (
            {"n_clusters": True},
            "n_clusters must be a whole number of at least 1, 'auto' or a range such as '3-20', got True",
        ),
        ({"n_clusters": 1_000}, "n_clusters=1000 is more than the number of points"),
        ({"n_steps": -1}, "n_steps must be .*a whole number of at least [01], got -1"),
        ({"batch_size": 1}, "batch_size must be a whole number of at least 2, got 1"),
        ({"learning_rate": "fast"}, "learning_rate must be .*a number above 0, got 'fast'"),
        ({"n_partitions": 0}, "n_partitions must be a whole number of at least 1, got 0"),
        ({"device": "abacus"}, "device must be 'auto' or one that torch has here, got 'abacus'"),
    ],
)
def test_errors_say_what_was_given(method, takes, bars, changes, message):
    if not takes.issuperset(changes):
        pytest.skip("has no such parameter")
    with pytest.raises(ValueError, match=message):
        method(**changes).fit(bars.X)


@pytest.mark.slow
def test_real_data(kind, method, load_real):
    name, n_points, least = REAL.get(kind, ("pendigits", 1_500, 0.68))
    data = load_real(name)
    changes = {
        "n_clusters": 10,
        "network": Network(layers=(100, 10)),
        "layers": (64, 16),
        "n_steps": 150,
        "batch_size": 128,
        "n_partitions": 20,
        "pretraining": Pretraining(n_epochs=30),
    }
    model = method(**(changes | REAL_OWN.get(kind, {}))).fit(data.X[:n_points])
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


class PlusOne(nn.Module):
    def forward(self, z):
        return z + 1


def test_lambda_cluster_weighs_the_clustering_and_not_the_reconstruction():
    """Centers at the same distance, q = [0.5, 0.5], and a decoder that is off by 1 in each column."""

    def loss(method):
        learner = object.__new__(SoftAssignments)
        learner.autoencoder = Autoencoder(nn.Identity(), PlusOne())
        learner.rows, learner.method = torch.tensor([[1.0, 2.0]]), method
        learner.error = SQUARED
        learner.centers = torch.tensor([[1.0, 3.0], [1.0, 1.0]])
        learner.batches, learner.target = iter([torch.tensor([0])]), torch.tensor([[1.0, 0.0]])
        return float(learner.loss(1))

    assert loss(IDEC(2, lambda_cluster=3.0)) == pytest.approx(1 + 3 * np.log(2))
    assert loss(DEC(2)) == pytest.approx(np.log(2))


def test_dec_stops_when_labels_stand_still(trained, blobs):
    given = {
        "n_clusters": 3,
        "network": trained,
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
    with pytest.raises(ValueError, match="no training for 'IEC', only for DEC, IDEC"):
        paper_training("IEC")


def test_the_benchmark_uses_the_preset():
    from deccs_paper.settings import METHODS as METHODS_OF_THE_BENCHMARK

    model = METHODS_OF_THE_BENCHMARK["VaDE paper"].build("usps")
    assert (model.n_steps, model.batch_size) == (100_000, 256)
    assert tuple(model.network.layers) == (500, 500, 2000, 10)


class NanInTraining(nn.Linear):
    """A layer of the user's own that works until it is trained."""

    def forward(self, x):
        return super().forward(x) * (float("nan") if self.training else 1.0)


class NanAlways(nn.Linear):
    def forward(self, x):
        return super().forward(x) * float("nan")


@pytest.mark.parametrize("layer", [NanInTraining, NanAlways])
def test_a_network_of_the_users_own_that_gives_nan_is_an_error(layer, method, takes, blobs):
    if "network" not in takes:
        pytest.skip("it takes no network")
    with pytest.raises(TrainingError, match="NaN or inf"):
        method(network=(layer(4, 2), nn.Linear(2, 4))).fit(blobs.X)


def test_a_loss_that_is_always_nan_is_an_error(method, kind, monkeypatch, blobs):
    if kind in ("IEC", "AE+k-means"):
        pytest.skip("it trains nothing in steps, or only the autoencoder")

    def one_step(self, real=engine.Run.one_step):
        real(self)
        if not self.learner.stage.startswith("pretraining"):
            self.sums = torch.full((1,), float("nan"))

    monkeypatch.setattr(engine.Run, "one_step", one_step)
    with pytest.raises(TrainingError, match="the loss was NaN or infinite at every check"):
        method().fit(blobs.X)


def test_one_cluster_is_found_without_training(method, kind, blobs):
    listener = Listener()
    long = {} if kind in ("IEC", "AGAE") else LONG  # which have no autoencoder to train
    model = method(**long, n_clusters=1, callbacks=[listener]).fit(blobs.X)
    assert set(model.labels_) == set(model.predict(blobs.X)) == {0}
    assert len(model.transform(blobs.X)) == 180
    assert all(part.n_steps < 1_000 for part in listener.parts)
