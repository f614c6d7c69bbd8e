"""DECCS as a scikit-learn estimator: every kind of input, every output, every error."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.metrics import silhouette_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from deccs import DECCS, Callback, Network, Pretraining, Rounds
from deccs.data import rows as rows_module
from deccs.data.source import ParquetRows
from deccs.members.asking import MemberWarning
from deccs.rounds.algorithm import FULL
from deccs.scores import ari, nmi
from tests.helpers.images import blots
from tests.helpers.meddling import Meddles, change_everything, global_state

pytestmark = pytest.mark.usefixtures("quick_classifiers")


def quick_members(k=3):
    return [("kmeans", KMeans(k, n_init=1)), ("ward", AgglomerativeClustering(k))]


def assert_same_fit(one, two, X, X_two=None):
    """The same bits, labels and representation."""
    X_two = X if X_two is None else X_two
    assert_array_equal(one.labels_, two.labels_)
    assert_array_equal(one.transform(X), two.transform(X_two))
    assert one.agreement_ == two.agreement_


@parametrize_with_checks(
    [
        # Four clusters: the checks of sparse input expect four columns of whatever has predict_proba.
        DECCS(
            n_clusters=4,
            members=members,
            network=Network(layers=(8, 2)),
            pretraining=Pretraining(n_epochs=1),
            rounds=Rounds(n_rounds=0),
            random_state=0,
        )
        for members in (quick_members(4), [*quick_members(4), ("raw", KMeans(4, n_init=1), "raw")])
    ]
)
@pytest.mark.usefixtures("quick_manifold")
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MemberWarning)
        check(estimator)


# What a fit gives


def test_labels(fitted, blobs):
    assert_array_equal(fitted.predict(blobs.X), fitted.labels_)
    assert fitted.labels_.dtype.kind == "i"
    assert nmi(blobs.y, fitted.labels_) == pytest.approx(1)
    assert fitted.n_clusters_ == 3
    assert fitted.label_source_ == "kmeans"


def test_attributes_agree_with_the_rounds(fitted):
    best = fitted.rounds_[fitted.best_round_]
    assert (
        fitted.agreement_
        == best.agreement
        == max(finished.agreement for finished in fitted.rounds_)
    )
    assert (
        fitted.member_names_
        == best.member_names
        == ("kmeans", "spectral", "agglomerative", "mixture")
    )
    agreed = [finished.agreement >= FULL for finished in fitted.rounds_]
    expected = 2 if all(agreed[:2]) else 3  # full agreement twice, or two updates
    assert fitted.n_iter_ == len(fitted.rounds_) == expected
    assert fitted.n_features_in_ == 4


def test_fit_predict_and_fit_transform(small, blobs):
    model = small(members=quick_members())
    labels = model.fit_predict(blobs.X)
    assert_array_equal(labels, model.labels_)
    assert_array_equal(clone(model).fit_transform(blobs.X), model.transform(blobs.X))


def test_same_seed_same_bits(small, blobs):
    first, again = (small(members=quick_members()).fit(blobs.X) for _ in range(2))
    assert_same_fit(first, again, blobs.X)
    other = small(members=quick_members(), random_state=1).fit(blobs.X)
    assert not np.array_equal(first.transform(blobs.X), other.transform(blobs.X))


def test_the_users_default_dtype_changes_no_bits_and_stays(small, blobs):
    plain = small(members=quick_members()).fit(blobs.X)
    torch.set_default_dtype(torch.float64)
    try:
        model = small(members=quick_members()).fit(blobs.X)
        assert_same_fit(plain, model, blobs.X)
        assert torch.get_default_dtype() == torch.float64
        with pytest.raises(ValueError, match="Only 1 of 2 members"):
            small(members=[("a", blobs.y), ("b", DBSCAN(eps=1e-9))]).fit(blobs.X)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_random_state_object_is_a_seed(small, blobs):
    first, again = (
        small(members=quick_members(), random_state=np.random.RandomState(3)).fit(blobs.X)
        for _ in range(2)
    )
    assert_same_fit(first, again, blobs.X)


def test_fit_never_looks_at_the_truth(small, blobs):
    first, second = (small(members=quick_members()).fit(blobs.X, y) for y in (None, blobs.y))
    assert_same_fit(first, second, blobs.X)


def test_fit_leaves_the_callers_generators_alone(small, blobs):
    torch.manual_seed(1), np.random.seed(1)
    expected = torch.rand(1), np.random.rand()
    torch.manual_seed(1), np.random.seed(1)
    small(members=quick_members()).fit(blobs.X)
    assert (torch.rand(1), np.random.rand()) == expected


def test_fit_and_its_members_leave_the_callers_process_as_it_was(
    small, blobs, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    plain, meddles = (
        small(n_rounds=1, members=[*quick_members(), ("mine", Meddles(change))])
        for change in (id, change_everything)
    )
    before = global_state()
    assert_same_fit(plain.fit(blobs.X), meddles.fit(blobs.X), blobs.X)
    assert global_state() == before


def test_a_single_row_is_what_it_is_among_many(fitted, blobs):
    for i in (0, 17, 179):
        row = blobs.X[i : i + 1]
        assert_array_equal(fitted.predict(row), fitted.labels_[i : i + 1])
        assert_allclose(fitted.transform(row), fitted.transform(blobs.X)[i : i + 1], rtol=1e-12)
        assert_allclose(
            fitted.predict_proba(row),
            fitted.predict_proba(blobs.X)[i : i + 1],
            rtol=1e-9,
            atol=1e-15,
        )


def test_the_order_of_the_rows_does_not_matter_to_predict(fitted, blobs):
    order = np.random.default_rng(0).permutation(180)
    assert_array_equal(fitted.predict(blobs.X[order]), fitted.labels_[order])


def test_predict_proba(fitted, blobs):
    proba = fitted.predict_proba(blobs.X)
    assert proba.shape == (180, 3)
    assert_allclose(proba.sum(axis=1), 1)
    assert (proba >= 0).all()
    assert_array_equal(proba.argmax(axis=1), fitted.labels_)


def test_members_predict_is_numbered_alike(fitted, blobs):
    said = fitted.members_predict(blobs.X)
    assert said.shape == (4, 180)
    assert_array_equal(said[0], fitted.labels_)  # far blobs: all say the same
    for member in said[1:]:
        assert_array_equal(member, said[0])


def test_members_predict_of_different_k_is_numbered_alike(small, blobs):
    joined = np.array([0, 0, 1])[blobs.y]
    model = small(members=[("three", blobs.y), ("two", joined)]).fit(blobs.X)
    three, two = model.members_predict(blobs.X)
    assert (three == two).mean() > 0.6  # 2/3: one of the joined blobs, and the third


def test_consensus_confidence(fitted, blobs):
    confidence = fitted.consensus_confidence(blobs.X)
    assert confidence.shape == (180,)
    assert (confidence >= 0).all()
    assert (confidence <= 1).all()
    assert confidence.mean() > 0.8
    assert fitted.answer(blobs.X).support.mean() > 0.95


def test_confidence_is_low_where_members_contradict_each_other(small, blobs):
    """The second member splits blob 0 at random: half its points have no side."""
    split = np.where((blobs.y == 0) & (np.arange(180) % 2 == 0), 1, blobs.y)
    model = small(members=[("sure", blobs.y), ("unsure", split)]).fit(blobs.X)
    answer = model.answer(blobs.X)
    for values, least in ((answer.support, 0.1), (answer.confidence, 0.05)):
        assert values[blobs.y == 0].mean() < values[blobs.y == 2].mean() - least


# Members


class Renamed(ClusterMixin, BaseEstimator):
    """Ward's clusters under other names."""

    def __init__(self, names=(0, 1, 2)):
        self.names = names

    def fit(self, X, y=None):
        self.labels_ = np.array(self.names)[AgglomerativeClustering(3).fit_predict(X)]
        return self


def test_names_of_clusters_change_nothing(small, blobs):
    def fit(names):
        labeling = np.array(names)[blobs.y]
        return small(members=[("mine", labeling), ("ward", Renamed(names))]).fit(blobs.X)

    plain = fit((0, 1, 2))
    assert_same_fit(plain, fit((2, 0, 1)), blobs.X)
    assert_same_fit(plain, fit((40, 7, 13)), blobs.X)


def test_members_with_other_k_leave_the_labels_to_kmeans(small, blobs):
    model = small(members=quick_members(2)).fit(blobs.X)
    assert model.label_source_.startswith("kmeans on the consensus representation")
    assert set(model.labels_) == {0, 1, 2}
    assert nmi(blobs.y, model.labels_) > 0.9
    assert model.members_predict(blobs.X).max() == 1


def test_without_n_clusters_the_members_decide(small, blobs):
    members = [*quick_members(3), ("two", KMeans(2, n_init=1))]
    assert small(n_clusters=None, members=members).fit(blobs.X).n_clusters_ == 3
    with pytest.raises(ValueError, match="it needs members. Give members or n_clusters"):
        small(n_clusters=None).fit(blobs.X)


def test_noise_of_dbscan(small, blobs):
    model = small(members=[*quick_members(), ("dbscan", DBSCAN(eps=0.4))]).fit(blobs.X)
    assert set(model.labels_) == {0, 1, 2}


def test_a_member_that_fails_is_left_out(small, blobs):
    with pytest.warns(MemberWarning, match="'too many'.*ValueError"):
        model = small(members=[*quick_members(), ("too many", KMeans(500))]).fit(blobs.X)
    assert model.member_names_ == ("kmeans", "ward")


# Inputs


@pytest.fixture(scope="module")
def plain(small, blobs):
    return small(members=quick_members()).fit(blobs.X)


def refit(plain, X):
    return clone(plain).fit(X)


def test_lists(plain, blobs):
    assert_same_fit(plain, refit(plain, blobs.X.tolist()), blobs.X)


def test_torch_tensors(plain, blobs):
    X = torch.tensor(blobs.X, requires_grad=True)
    assert_same_fit(plain, refit(plain, X), blobs.X, X)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.coo_array])
def test_sparse_equals_dense(plain, blobs, kind):
    X = kind(blobs.X)
    assert_same_fit(plain, refit(plain, X), blobs.X, X)


def test_memory_map_equals_array(plain, blobs, tmp_path):
    np.save(tmp_path / "X.npy", blobs.X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_same_fit(plain, refit(plain, X), blobs.X, X)


def test_a_file_that_must_not_be_written_is_no_reason_to_warn(small, blobs, tmp_path):
    np.save(tmp_path / "X.npy", blobs.X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            small(members=quick_members(), scale=None).fit(X)
    finally:
        torch.set_warn_always(False)


class OwnRows:
    """A source of a user's own: rows made up when they are asked for."""

    def __init__(self, X):
        self.rows, self.shape, self.dtype = dict(enumerate(X)), X.shape, X.dtype

    def read(self, rows):
        numbers = range(*rows.indices(len(self.rows))) if isinstance(rows, slice) else rows.tolist()
        return np.array([self.rows[number] for number in numbers]).reshape(-1, self.shape[1])


def test_a_source_of_rows_equals_an_array(plain, blobs):
    X = OwnRows(blobs.X)
    assert_same_fit(plain, refit(plain, X), blobs.X, X)


def test_a_parquet_file_equals_an_array(plain, blobs, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = arrow.table(dict(zip("abcd", blobs.X.T, strict=True)))
    parquet.write_table(columns, tmp_path / "X.parquet", row_group_size=50)
    X = ParquetRows(tmp_path / "X.parquet")
    assert_same_fit(plain, refit(plain, X), blobs.X, X)


@pytest.mark.parametrize("scale", ["auto", None])
def test_infinite_values_in_a_source_are_named_whatever_the_scale(small, blobs, scale):
    values = blobs.X.copy()
    values[100, 2] = np.inf
    with pytest.raises(ValueError, match="contains infinity: OwnRows.read"):
        small(members=quick_members(), scale=scale).fit(OwnRows(values))


@pytest.mark.parametrize("scale", ["auto", None])
def test_missing_values_in_a_source_are_those_of_an_array(small, blobs, scale):
    values = blobs.X.copy()
    values[100, 2] = np.nan
    one, other = (
        small(members=quick_members(), scale=scale).fit(X) for X in (values, OwnRows(values))
    )
    assert_array_equal(one.labels_, other.labels_)
    assert_array_equal(one.transform(values), other.transform(OwnRows(values)))
    assert_array_equal(one.predict(values), one.labels_)
    assert one.score(values) > 0.9 and ari(blobs.y, one.labels_) > 0.95


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(plain, blobs, library):
    frames = pytest.importorskip(library)
    names = ["a", "b", "c", "d"]
    X = frames.DataFrame(dict(zip(names, blobs.X.T, strict=True)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as "X does not have valid feature names"
        model = refit(plain, X)
        assert_array_equal(model.predict(X), plain.labels_)
        assert_allclose(
            model.transform(X), plain.transform(blobs.X), atol=1e-6
        )  # columns lie otherwise in memory
    assert_array_equal(model.feature_names_in_, names)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[["b", "a", "c", "d"]])


def test_images_are_flattened(small):
    rng = np.random.default_rng(0)
    flat = rng.integers(0, 256, (60, 16)).astype(np.uint8)
    flat[:30] //= 4
    model = small(n_clusters=2, members=quick_members(2))
    images = clone(model).fit(flat.reshape(60, 4, 4))
    assert_same_fit(model.fit(flat), images, flat, flat.reshape(60, 4, 4))
    assert images.n_features_in_ == 16


def test_flat_images_train_like_images(small):
    flat = blots(60).reshape(60, 64)
    model = small(n_clusters=2, members=quick_members(2))
    images = clone(model).fit(flat.reshape(60, 8, 8))
    assert_same_fit(model.fit(flat), images, flat, flat.reshape(60, 8, 8))
    said = clone(model).set_params(network__image_shape=(8, 8)).fit(flat)
    assert_array_equal(said.transform(flat), images.transform(flat))
    tables = clone(model).set_params(network__image_shape=None).fit(flat)
    assert not np.array_equal(tables.transform(flat), images.transform(flat))


def test_own_modules_are_trained_with_rows_as_they_are(small, monkeypatch):
    monkeypatch.setattr(rows_module, "move", None)  # nobody calls it
    own = nn.Linear(64, 2), nn.Linear(2, 64)
    small(n_clusters=2, members=quick_members(2)).set_params(network=own).fit(blots())


@pytest.mark.parametrize(
    ("given", "returned"), [("float32", "float32"), ("float64", "float64"), ("int64", "float64")]
)
def test_transform_keeps_the_precision(plain, blobs, given, returned):
    assert plain.transform(blobs.X.astype(given)).dtype == returned


def test_fit_does_not_change_its_input(small, blobs):
    X = blobs.X.astype(np.float32)
    before = X.copy()
    small(members=quick_members()).fit(X)
    assert_array_equal(X, before)


# Among other tools


def test_pipeline(small, blobs):
    pipeline = make_pipeline(StandardScaler(), small(members=quick_members())).fit(blobs.X)
    assert_array_equal(pipeline.predict(blobs.X), pipeline[-1].labels_)
    assert pipeline.transform(blobs.X).shape == (180, 2)
    assert list(pipeline.get_feature_names_out()) == ["deccs0", "deccs1"]


def test_set_output(plain, blobs):
    pd = pytest.importorskip("pandas")
    Z = copy.deepcopy(plain).set_output(transform="pandas").transform(blobs.X)
    assert isinstance(Z, pd.DataFrame)
    assert list(Z.columns) == list(plain.get_feature_names_out()) == ["deccs0", "deccs1"]
    assert_array_equal(Z.to_numpy(), plain.transform(blobs.X))


def silhouette_of(model, X, y=None):
    return silhouette_score(model.transform(X), model.predict(X))


def test_grid_search(small, blobs):
    search = GridSearchCV(
        small(n_rounds=0),
        {"n_clusters": [2, 3]},
        scoring={
            "silhouette": silhouette_of,
            "agreement": lambda model, X, y=None: model.agreement_,
        },
        refit="silhouette",
        cv=2,
        error_score="raise",
    )
    search.fit(blobs.X)
    assert search.best_params_["n_clusters"] == 3
    for name in ("silhouette", "agreement"):
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"]).all()


def test_clone_is_unfitted_and_equal(fitted):
    twin = clone(fitted)
    assert twin.get_params().keys() == fitted.get_params().keys()
    with pytest.raises(NotFittedError):
        twin.predict([[0, 0, 0, 0]])


def test_a_saved_model_predicts_the_same(fitted, blobs):
    again = pickle.loads(pickle.dumps(fitted))
    assert_same_fit(fitted, again, blobs.X)
    assert_array_equal(again.consensus_confidence(blobs.X), fitted.consensus_confidence(blobs.X))


# Networks


def bits(module):
    return torch.cat([value.flatten() for value in module.state_dict().values()])


def test_own_modules(small, blobs):
    torch.manual_seed(0)
    encoder, decoder = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)), nn.Linear(3, 4)
    before = bits(encoder).clone()
    model = small(network=(encoder, decoder), members=quick_members()).fit(blobs.X)
    assert model.transform(blobs.X).shape == (180, 3)
    assert isinstance(model.autoencoder_.encoder[1], nn.Tanh)
    assert torch.equal(bits(encoder), before)  # a copy was trained
    assert not torch.equal(bits(model.autoencoder_.encoder), before)


class Watches(Callback):
    """The stages of training that were told."""

    def __init__(self):
        self.stages = []

    def on_progress(self, progress):
        self.stages.append(progress.stage)


def test_a_pretrained_autoencoder_is_used_as_it_is(small, blobs, trained):
    watches, before = Watches(), bits(trained).clone()
    model = small(network=trained, n_rounds=0, members=quick_members(), callbacks=[watches])
    model.fit(blobs.X)
    assert watches.stages == ["confidence", "confidence"]  # nothing is trained
    assert torch.equal(bits(model.autoencoder_), before)
    updated = small(network=trained, n_rounds=1, members=quick_members()).fit(blobs.X)
    assert torch.equal(bits(trained), before)
    assert updated.autoencoder_ is not trained


def test_one_fit_continues_where_another_ended(plain, small, blobs):
    further = small(network=plain.autoencoder_, n_rounds=0, members=quick_members()).fit(blobs.X)
    assert_array_equal(further.transform(blobs.X), plain.transform(blobs.X))


def test_pretraining_grid(small, blobs):
    grid = {"learning_rate": [1e-7, 1e-2], "layers": [(8, 2)]}
    model = small(pretraining__grid=grid, members=quick_members(), n_rounds=0).fit(blobs.X)
    errors = [error for _, error in model.pretraining_search_]
    assert errors[1] < errors[0]
    directly = small(members=quick_members(), n_rounds=0).fit(blobs.X)  # its own rate is 1e-2
    assert_array_equal(model.transform(blobs.X), directly.transform(blobs.X))


# Watching; test_events.py has the rest


def test_verbose_says_a_line_a_round_and_changes_nothing(plain, blobs, capsys):
    assert capsys.readouterr().err == ""
    loud = clone(plain).set_params(verbose=True).fit(blobs.X)
    said = capsys.readouterr().err
    assert "round  0  agreement" in said
    assert "round  1  agreement" in said
    assert_same_fit(plain, loud, blobs.X)


# What is wrong, and what was given


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (sp.csr_matrix([[0.0, np.nan], [1, 2], [3, 4]]), "contains NaN"),
        ([[0.0, np.inf], [1, 2], [3, 4]], "contains infinity"),
        ([0.0, 1, 2, 3], "Expected 2D array, got 1D array"),
        ([[0.0, 1]], "1 sample"),
        (np.empty((0, 2)), "0 sample"),
        (np.empty((5, 0)), "0 feature"),
        ([[0.0, 1], [1, 0]], "n_clusters=3 is more than the number of points, n_samples=2"),
        ([["a", "b"], ["c", "d"], ["e", "f"]], "not compatible with arrays of bytes/strings"),
        (np.ones((5, 2)) * 1j, "Complex data not supported"),
    ],
)
def test_wrong_data_is_named(small, X, words):
    with pytest.raises(ValueError, match=words):
        small().fit(X)


def test_wrong_width_of_new_data(plain, blobs):
    with pytest.raises(ValueError, match="X has 3 features, but DECCS is expecting 4"):
        plain.predict(blobs.X[:, :3])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            {"n_clusters": 0},
            "n_clusters must be a whole number of at least 1, .auto. or a range such as .3-20. or None, got 0",
        ),
        ({"n_clusters": 2.5}, "n_clusters must be .*, got 2.5"),
        ({"n_clusters": 181}, "n_clusters=181 is more than the number of points, n_samples=180"),
        ({"members": [("only", KMeans(3))]}, r"at least two ensemble members, got 1: \['only'\]"),
        (
            {"members": [("a", np.zeros(5)), ("b", KMeans(3))]},
            r"'a'.*shape \(180,\); got ndarray of shape \(5,\)",
        ),
        (
            {"scale": "minmax"},
            "scale must be 'auto' or 'global' or 'columns' or 'robust' or 'rows' or None, got 'minmax'",
        ),
        ({"layers": "wide"}, "network.layers must be 'auto' or a tuple of layer .*, got 'wide'"),
        ({"layers": ()}, r"network.layers must be .*, got \(\)"),
        ({"layers": (8, 0)}, r"network.layers must be .*, got \(8, 0\)"),
        ({"layers": 8}, "network.layers must be .*, got 8"),
        ({"n_rounds": 2.0}, r"rounds.n_rounds must be .*, got 2\.0"),
        ({"n_steps": 0}, "rounds.n_steps must be .*, got 0"),
        ({"batch_size": 1}, "rounds.batch_size must be a whole number of at least 2, got 1"),
        ({"min_cluster_size": 0}, "rounds.min_cluster_size must be .*, got 0"),
        ({"sample_size": "half"}, "rounds.sample_size must be 'auto' or a share in .*got 'half'"),
        ({"lambda_cons": "much"}, "rounds.lambda_cons must be 'auto' or a number .*'much'"),
        ({"learning_rate": -1.0}, r"rounds.learning_rate must be .*, got -1\.0"),
        ({"dropout": 2.0}, r"network.dropout must be a share in \[0, 1\), got 2\.0"),
        ({"random_state": "zero"}, "random_state must be .*, got 'zero'"),
        ({"device": 7}, "device must be 'auto' or the name of a device of torch, got 7"),
        ({"callbacks": print}, "callbacks must be None or a list of callbacks, got <built-in"),
        ({"checkpoint": 7}, "checkpoint must be None or the path of a folder, got 7"),
        ({"n_jobs": 0}, "n_jobs must be None, -1 for all cores, or .*, got 0"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_wrong_settings_are_named(small, blobs, wrong, words):
    with pytest.raises(ValueError, match=words):
        small(**wrong).fit(blobs.X)


def test_wrong_device_is_named(small, blobs):
    with pytest.raises((ValueError, RuntimeError), match="gpu9"):
        small(device="gpu9").fit(blobs.X)


@pytest.mark.parametrize(
    ("encoder", "decoder", "words"),
    [
        (nn.Linear(7, 2), nn.Linear(2, 4), "does not take rows of 4 columns"),
        (nn.Linear(4, 2), nn.Linear(3, 4), "does not take rows of 4 columns"),
        (nn.Linear(4, 2), nn.Linear(2, 5), r"decoder \(n, 4\); got \(2, 2\) and \(2, 5\)"),
        (
            nn.Sequential(nn.Linear(4, 2), nn.Unflatten(1, (1, 2))),
            nn.Sequential(nn.Flatten(), nn.Linear(2, 4)),
            r"encoder must give \(n, n_latent\).*got \(2, 1, 2\)",
        ),
    ],
)
def test_wrong_modules_are_named(small, blobs, encoder, decoder, words):
    with pytest.raises(ValueError, match=words):
        small(network=(encoder, decoder)).fit(blobs.X)


@pytest.mark.parametrize(
    "own", [nn.Linear(4, 2), "deep", (nn.Linear(4, 2),)], ids=["module", "word", "single"]
)
def test_an_autoencoder_that_is_none_is_named(small, blobs, own):
    with pytest.raises(ValueError, match=r"(?s)\(encoder, decoder\).*got"):
        small(network=own).fit(blobs.X)


def test_nothing_before_fit(small):
    for method in (
        "predict",
        "transform",
        "predict_proba",
        "members_predict",
        "consensus_confidence",
    ):
        with pytest.raises(NotFittedError):
            getattr(small(), method)([[0, 0, 0, 0]])


# Small and strange data


def test_one_cluster_is_everything(small, blobs):
    """As in scikit-learn's own clusterers, whose checks ask for it."""
    assert set(small(n_clusters=1).fit(blobs.X).labels_) == {0}


def test_a_handful_of_points(small):
    X = np.array([[0.0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]])
    model = small(n_clusters=2, layers=(4, 2)).fit(X)
    assert model.labels_.shape == (6,)


def test_constant_data_has_no_clusters(small):
    with pytest.warns(MemberWarning), pytest.raises(ValueError, match="members gave a partition"):
        small().fit(np.ones((50, 3)))


def test_constant_data_with_given_labels_is_no_crash(small):
    labels = np.arange(60) % 3
    model = small(members=[("a", labels), ("b", labels)]).fit(np.ones((60, 3)))
    assert np.isfinite(model.transform(np.ones((60, 3)))).all()


def test_one_column(small):
    X = np.concatenate([np.linspace(0, 1, 40), np.linspace(9, 10, 40), np.linspace(20, 21, 40)])[
        :, None
    ]
    model = small(layers=(8, 1), pretraining=Pretraining(n_epochs=60, batch_size=16)).fit(X)
    assert nmi(np.repeat([0, 1, 2], 40), model.labels_) == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device": "cuda:99"}, "device must be 'auto' or one that torch has here, got 'cuda:99'"),
        ({"device": "abacus"}, "device must be 'auto' or one that torch has here, got 'abacus'"),
    ],
)
def test_errors_of_the_network_say_what_was_given(small, blobs, changes, message):
    with pytest.raises(ValueError, match=message):
        small(**changes).fit(blobs.X)
