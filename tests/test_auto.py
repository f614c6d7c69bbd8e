"""``n_clusters="auto"``: one contract for all estimators."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import DBSCAN, KMeans
from sklearn.exceptions import NotFittedError

from deccs import (
    DECCS,
    AutoencoderConsensus,
    Callback,
    ConsensusClustering,
    Network,
    Pretraining,
    RandomProjectionEM,
    RandomProjectionFCM,
    Rounds,
)
from deccs.counting import count as counting
from deccs.deep import METHODS
from deccs.scores import ari
from deccs.storage import load
from tests.helpers.quick_count import quick_counts

pytestmark = pytest.mark.usefixtures("quick_classifiers")

STAGE = "counting clusters"
ORIGINAL = counting.count_clusters_of
ESTIMATORS = {
    "DECCS": DECCS,
    "ConsensusClustering": ConsensusClustering,
    "AutoencoderConsensus": AutoencoderConsensus,
    "RandomProjectionEM": RandomProjectionEM,
    "RandomProjectionFCM": RandomProjectionFCM,
    **METHODS,
}
# Each estimator takes those of its parameters.
QUICK = {
    "n_clusters": "auto",
    "views": None,
    "network": Network(layers=(8, 2)),
    "pretraining": Pretraining(n_epochs=10, batch_size=32, learning_rate=1e-2),
    "rounds": Rounds(n_rounds=1, n_init=1, n_steps=5, batch_size=32),
    "n_steps": 8,
    "batch_size": 32,
    "n_partitions": 6,
    "n_projections": 6,
    "layers": (8, 4),  # of AGAE
    "random_state": 0,
}
RNG = np.random.default_rng(0)
CENTERS = np.array([[0.0, 0, 0, 0], [9, 0, 9, 0], [0, 9, 0, 9]])
Y = np.arange(90) % 3
X = CENTERS[Y] + RNG.normal(size=(90, 4))
NOISE = RNG.normal(size=(110, 4))


@pytest.fixture(scope="module", autouse=True)
def quick():
    with quick_counts():
        yield


@pytest.fixture(scope="module")
def counts():
    """How often rows were counted; the same rows, bounds and seed are counted once for all estimators."""
    known, asked = {}, []

    def count(source, scaler, bounds, root, listeners):
        asked.append(bounds)
        rows = np.asarray(scaler(source.read(slice(0, source.shape[0]))))
        key = rows.tobytes(), bounds, root
        if key not in known:
            known[key] = ORIGINAL(source, scaler, bounds, root, listeners)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "count_clusters_of", count)
        yield asked


def build(kind, **changes):
    takes = set(ESTIMATORS[kind]().get_params(deep=False))
    given = QUICK | changes
    return ESTIMATORS[kind](**{name: value for name, value in given.items() if name in takes})


@pytest.fixture(scope="module", params=ESTIMATORS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(kind, counts):
    return build(kind).fit(X)


# ---- the contract


def test_the_number_is_found_and_everything_known_of_it(fitted):
    assert fitted.n_clusters_ == fitted.count_.n_clusters == fitted.k_candidates_[0].k == 3
    assert fitted.labels_.max() + 1 <= 3
    curves = fitted.k_curves_
    assert {candidate.k for candidate in fitted.k_candidates_} <= set(curves["k"])
    assert all(len(curve) == len(curves["k"]) for curve in curves.values())
    at = dict(zip(curves["k"], curves["support"], strict=True))
    assert all(at[candidate.k] == candidate.support for candidate in fitted.k_candidates_)


def test_labels_at_every_number_tried(fitted):
    assert fitted.labels_at(fitted.n_clusters_) is fitted.labels_
    assert not fitted.labels_at(1).any()
    for k in fitted.k_curves_["k"]:
        if k != fitted.n_clusters_:
            assert_array_equal(np.unique(fitted.labels_at(k)), np.arange(k))
    with pytest.raises(ValueError, match="no clustering with k = 55. Numbers tried: 2, 3"):
        fitted.labels_at(55)


def test_predict_at_of_the_training_rows_is_labels_at(fitted):
    for k in (1, *fitted.k_curves_["k"]):
        assert_array_equal(fitted.predict_at(X, k), fitted.labels_at(k), err_msg=f"k = {k}")
    assert_array_equal(
        [fitted.predict_at(X[i : i + 1], 5)[0] for i in range(5)], fitted.labels_at(5)[:5]
    )
    near = X + 1e-6
    assert_array_equal(fitted.predict_at(near, 4), fitted.labels_at(4))


def test_noise_is_one_cluster(kind, counts):
    model = build(kind).fit(NOISE)
    assert model.n_clusters_ == model.k_candidates_[0].k == 1
    assert not model.labels_.any() and not model.predict(NOISE).any()
    assert not model.labels_at(1).any() and model.cluster_stability_ == []
    assert_array_equal(np.unique(model.labels_at(2)), [0, 1])  # if it must be


def test_the_result_is_that_of_a_fit_with_the_number(fitted, kind, counts):
    told = build(kind, n_clusters=3).fit(X)
    assert_array_equal(told.labels_, fitted.labels_)
    for name in ("k_candidates_", "k_curves_"):
        with pytest.raises(AttributeError, match="n_clusters=3 was given.*n_clusters='auto'"):
            getattr(told, name)
    with pytest.raises(AttributeError, match="n_clusters=3 was given"):
        told.labels_at(2)


def test_parameters_stay_as_given(fitted, kind):
    assert fitted.get_params()["n_clusters"] == "auto"
    copy = clone(fitted)
    assert copy.get_params()["n_clusters"] == "auto" and not hasattr(copy, "count_")
    with pytest.raises(NotFittedError):
        copy.labels_at(2)


def test_a_loaded_model_knows_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    assert again.n_clusters_ == 3 and again.n_clusters == "auto"
    for k in (2, 3, 5):
        assert_array_equal(again.labels_at(k), fitted.labels_at(k))
        assert_array_equal(again.predict_at(X, k), fitted.predict_at(X, k))
    for one, other in zip(again.k_candidates_, fitted.k_candidates_, strict=True):
        assert vars(one) == vars(other)
    for name, curve in fitted.k_curves_.items():
        assert_array_equal(again.k_curves_[name], curve)
    assert [vars(each) for each in again.cluster_stability_] == [
        vars(each) for each in fitted.cluster_stability_
    ]
    assert len(fitted.cluster_stability_) == len(np.unique(fitted.labels_))


def test_interrupted_after_the_count_it_resumes_without_another(fitted, kind, counts, tmp_path):
    class Interrupt(Callback):
        def on_progress(self, progress):
            if progress.stage != STAGE:
                raise KeyboardInterrupt

    model = build(kind)
    if "checkpoint" not in model.get_params(deep=False):
        pytest.skip("has no checkpoints")
    model.set_params(checkpoint=tmp_path / "states", callbacks=[Interrupt()])
    n_before = len(counts)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert len(counts) == n_before + 1
    again = build(kind, checkpoint=tmp_path / "states").fit(X)
    assert len(counts) == n_before + 1  # remembered
    assert_array_equal(again.labels_, fitted.labels_)
    assert_array_equal(again.labels_at(5), fitted.labels_at(5))
    assert not (tmp_path / "states").exists()


@pytest.mark.parametrize("name", ["DECCS", "ConsensusClustering", "DEC"])
@pytest.mark.parametrize("first", ["auto", 4])
def test_a_refit_forgets_the_count(name, counts, first):
    model = build(name, n_clusters=first).fit(X).set_params(n_clusters=2).fit(X)
    assert not hasattr(model, "count_")
    with pytest.raises(AttributeError, match="n_clusters=2 was given"):
        model.labels_at(3)
    assert model.n_clusters_ == 2


# ---- with the real count


@pytest.fixture
def really(monkeypatch):
    monkeypatch.setattr(counting, "count_clusters_of", ORIGINAL)


@pytest.mark.parametrize("name", ["DECCS", "DEC"])
def test_evidence_is_made_once_and_its_progress_told(name, really, monkeypatch, tmp_path):
    calls, parts = [], []
    original = counting.evidence_for

    def evidence_for(*given, **more):
        calls.append(given)
        return original(*given, **more)

    class Listener(Callback):
        stops = True

        def on_progress(self, progress):
            parts.append(progress)
            if self.stops and progress.stage != STAGE:
                raise KeyboardInterrupt

    monkeypatch.setattr(counting, "evidence_for", evidence_for)
    listener = Listener()
    model = build(name, checkpoint=tmp_path / "states", callbacks=[listener])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    told = [(part.step, part.n_steps) for part in parts if part.stage == STAGE]
    assert told == [(done, told[-1][1]) for done in range(told[-1][1] + 1)]
    parts.clear()
    listener.stops = False
    model.fit(X)
    assert len(calls) == 1 and STAGE not in {part.stage for part in parts}
    straight = build(name).fit(X)
    assert len(calls) == 2
    assert_array_equal(straight.labels_, model.labels_)
    for curve, values in straight.k_curves_.items():
        assert_array_equal(model.k_curves_[curve], values)


def test_a_count_that_was_interrupted_is_made_again(really, tmp_path):
    class Interrupt(Callback):
        def on_progress(self, progress):
            if progress.stage == STAGE and progress.step == 4:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build("DEC", checkpoint=tmp_path / "states", callbacks=[Interrupt()]).fit(X)
    model = build("DEC", checkpoint=tmp_path / "states").fit(X)
    assert model.n_clusters_ == 3 and ari(Y, model.labels_) > 0.5


def test_y_is_never_seen(counts):
    class Untouchable:
        def __getattribute__(self, name):
            raise AssertionError(f"y was asked for {name}")

    model = ConsensusClustering("auto", random_state=0).fit(X, Untouchable())
    assert model.n_clusters_ == 3


# ---- ranges


def test_a_range_is_kept(counts):
    model = ConsensusClustering("4-6", random_state=0).fit(X)
    assert model.n_clusters_ in (4, 5, 6) and set(model.k_curves_["k"]) == {4, 5, 6}
    same = ConsensusClustering(range(4, 7), random_state=0).fit(X)
    assert_array_equal(same.labels_, model.labels_)


@pytest.mark.parametrize("name", ["DECCS", "ConsensusClustering", "DEC"])
@pytest.mark.parametrize(
    ("n_clusters", "message"),
    [
        ("20-3", "got '20-3'. Did you mean '3-20'"),
        ("0-3", "must begin at 1 or more"),
        ("2-91", "ends at 91, above the number of points, n_samples=90"),
        ("x-y", "n_clusters must be .* got 'x-y'"),
        (3.5, "got 3.5"),
    ],
)
def test_bad_ranges_are_named(name, n_clusters, message):
    with pytest.raises(ValueError, match=message):
        build(name, n_clusters=n_clusters).fit(X)


@pytest.mark.parametrize("name", ["DECCS", "ConsensusClustering", "DEC"])
def test_too_few_rows_to_count_are_one_cluster(name):
    rows = np.repeat(np.eye(4), 3, axis=0)
    model = build(name).fit(rows)
    assert model.n_clusters_ == 1 and not model.labels_.any()
    assert "too few to tell" in model.k_candidates_[0].reasons[0]
    assert not model.labels_at(1).any()


# ---- members


@pytest.mark.parametrize("name", ["DECCS", "ConsensusClustering", "AutoencoderConsensus"])
def test_members_by_name_get_the_number_that_was_found(name, counts):
    model = build(name, members=["kmeans", "agglomerative", "hdbscan"]).fit(X)
    assert model.n_clusters_ == 3
    assert list(model.member_names_) == ["kmeans", "agglomerative", "hdbscan"]
    with pytest.raises(ValueError, match="no member named 'kmean'. Choose from kmeans,"):
        build(name, members=["kmean", "agglomerative"]).fit(X)


@pytest.mark.parametrize("name", ["DECCS", "ConsensusClustering"])
def test_members_with_their_own_number_and_noise(name, counts):
    members = [("dbscan", DBSCAN(eps=0.6)), ("five", KMeans(5, n_init=1)), "kmeans"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = build(name, members=members).fit(X)
    assert model.n_clusters_ == 3 and model.labels_.shape == (90,)
    assert_array_equal(model.predict_at(X, 4), model.labels_at(4))
    assert_array_equal(model.predict(X), model.labels_)
