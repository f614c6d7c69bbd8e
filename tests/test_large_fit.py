"""Fits of more rows than they learn from: a sample teaches them, and all rows are labeled in parts."""

from copy import copy
from functools import cache

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from deccs import DECCS, Network, Pretraining, Rounds, deep
from deccs.answer import Answer
from deccs.base import TrainedEmbedder
from deccs.data.tabulate import TableWarning
from deccs.events import Callback
from deccs.group.group import ALONE
from deccs.inference.fast import FastEncoder
from deccs.labeling import PartLabels, by_part, own_parts, spans_of
from deccs.network.autoencoder import dense_encoder, exact_encoder
from deccs.rounds.classifiers import logits
from deccs.scores import ari
from deccs.storage import FolderCheckpoint
from deccs.storage.checkpoints import CheckpointWarning
from tests.helpers.large import N_LEARNED, N_PART, blobs_of, frame_of, lower_limits

METHODS = {
    name: getattr(deep, name)
    for name in deep.__all__
    if isinstance(getattr(deep, name), type) and issubclass(getattr(deep, name), TrainedEmbedder)
}


pytestmark = [
    pytest.mark.usefixtures("quick_classifiers"),
    pytest.mark.filterwarnings("ignore::deccs.OneGroupWarning"),
]


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    lower_limits(monkeypatch)


N_ROWS = 3 * N_PART + 41
X, TRUTH = blobs_of(N_ROWS)


def exact_labels(model, rows):
    """By the way that takes double precision all along."""
    source = model._checked(rows)
    return np.concatenate([answer.labels for answer in model._answers(source)])


@pytest.fixture(params=["array", "memory map", "parquet", "parts", "csv", "frame"])
def given(request, tmp_path):
    """The same rows in another form."""
    if request.param == "array":
        return X
    if request.param == "frame":
        return frame_of(X)
    if request.param == "memory map":
        np.save(tmp_path / "x.npy", X)
        return np.load(tmp_path / "x.npy", mmap_mode="r")
    frame = frame_of(X)
    if request.param == "csv":
        frame.write_csv(tmp_path / "x.csv")
        return tmp_path / "x.csv"
    if request.param == "parquet":
        frame.write_parquet(tmp_path / "x.parquet", row_group_size=50)
        return tmp_path / "x.parquet"
    for number in range(4):
        frame[number * 250 : (number + 1) * 250].write_parquet(tmp_path / f"x{number}.parquet")
    return str(tmp_path / "x*.parquet")


def test_labels_of_a_fit_in_parts_are_those_of_predict_and_of_the_exact_way(small, given):
    model = small().fit(given)
    assert len(model.learning_rows_) == N_LEARNED and model.labels_.shape == (N_ROWS,)
    assert ari(TRUTH, model.labels_) == 1
    assert_array_equal(model.predict(given), model.labels_)
    assert_array_equal(exact_labels(model, given), model.labels_)


def test_labels_near_borders_are_those_of_double_precision(small):
    """Rows without any cluster: many lie near a border of two labels."""
    noise = np.random.default_rng(0).random((2_000, 4))
    model = small(n_clusters=5).fit(noise)
    labels = exact_labels(model, noise)
    assert_array_equal(model.labels_, labels)
    assert_array_equal(model.predict(noise), labels)
    fast = [answer.labels for answer in model._fast_answers(model._checked(noise))]
    assert_array_equal(np.concatenate(fast), labels)
    assert len(set(labels)) == 5


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_single_precision_differs_from_double_only_where_two_classes_are_near(small, dropout):
    noise = np.random.default_rng(1).random((5_000, 4))
    model = small(n_clusters=5, dropout=dropout).fit(noise)
    inputs = model.scaler_.inputs(noise)
    Z = dense_encoder(model.autoencoder_.encoder).in_single_precision(inputs).astype(float)
    exactly = exact_encoder(model.autoencoder_)(inputs)
    single, double = (logits(model.label_classifier_, each)[:, 0] for each in (Z, exactly))
    second, first = np.sort(double, axis=1)[:, -2:].T
    is_clear = first - second > 1e-5
    assert is_clear.mean() > 0.99
    assert_array_equal(single.argmax(1)[is_clear], double.argmax(1)[is_clear])
    fast = FastEncoder(dense_encoder(model.autoencoder_.encoder), [model.label_classifier_.heads()])
    assert_array_equal(fast.labels(inputs), double.argmax(1))
    _, near = fast._embedded(inputs)
    assert near[first - second < 1e-5].all() and near.mean() < 0.01


def test_networks_of_other_layers_are_embedded_in_double_precision():
    encoder = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    assert dense_encoder(encoder) is None
    steep = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LeakyReLU(0.3))
    assert dense_encoder(torch.nn.Sequential(*steep, torch.nn.Linear(8, 2))) is None


def test_the_confidence_in_single_precision_is_about_that_in_double_precision(quick_manifold):
    model = DECCS(3, rounds=Rounds(n_rounds=0), pretraining=Pretraining(n_epochs=2), random_state=0)
    model.fit(X)
    source = model._checked(X)
    fast, exact = Answer.joined(model._fast_answers(source)), Answer.joined(model._answers(source))
    assert_array_equal(fast.labels, exact.labels)
    np.testing.assert_allclose(fast.confidence, exact.confidence, atol=0.05)
    assert np.abs(fast.confidence - exact.confidence).mean() < 1e-3


@cache
def one_fit(small):
    """A model that was not disturbed. Do not change it."""
    return small().fit(X)


class Stop(Callback):
    """Ends a fit when so many parts are labeled; keeps what it was told."""

    def __init__(self, n_parts=None):
        self.n_parts, self.n_known, self.parts, self.answers = n_parts, None, [], []

    def on_parts(self, n_known):
        self.n_known = n_known
        if self.n_parts == 0:
            raise KeyboardInterrupt

    def on_part(self, rows):
        self.parts.append(rows)
        if len(self.parts) == self.n_parts:
            raise KeyboardInterrupt

    def on_answer(self, answer):
        self.answers.append(answer)


@pytest.mark.parametrize("n_parts", [0, 1, 3])
def test_a_fit_killed_while_labeling_goes_on_with_the_same_bits(small, tmp_path, n_parts):
    """A part counts once all listeners know of it: the one told last is labeled again."""
    straight = one_fit(small)
    with pytest.raises(KeyboardInterrupt):
        small(checkpoint=tmp_path, callbacks=[Stop(n_parts)]).fit(X)
    callback = Stop()
    model = small(checkpoint=tmp_path, callbacks=[callback]).fit(X)
    begin = max(0, n_parts - 1) * N_PART
    assert callback.n_known * N_PART == begin and callback.parts == own_parts(N_ROWS, ALONE)
    assert sum(map(len, callback.answers)) == N_ROWS - begin
    assert_array_equal(model.labels_, straight.labels_)
    assert_array_equal(model.transform(X), straight.transform(X))
    assert not tmp_path.exists()


def test_answers_never_belong_to_two_parts():
    answer = Answer(np.zeros((1_000, 2)), np.arange(1_000))
    parts = [range(256, 512), range(512, 768), range(768, 1_024), range(1_024, 1_356)]
    split = list(by_part([answer, answer.rows(np.arange(100))], parts))
    assert [(part.start, len(rows)) for part, rows in split] == [
        (256, 256),
        (512, 256),
        (768, 256),
        (1_024, 232),
        (1_024, 100),
    ]
    labels = np.concatenate([rows.labels for _, rows in split])
    assert_array_equal(labels, [*range(1_000), *range(100)])


class Third(type(ALONE)):
    """One of three processes."""

    size = 3

    def __init__(self, rank):
        self.rank = rank


def test_every_row_is_in_a_part_of_one_process():
    parts = [own_parts(N_ROWS, Third(rank)) for rank in range(3)]
    assert [row for own in parts for part in own for row in part] == list(range(N_ROWS))
    assert own_parts(N_PART, Third(0)) == [] and own_parts(N_PART, Third(2)) == [range(N_PART)]
    assert list(spans_of([])) == [] and list(spans_of(parts[0])) == [parts[0]]


@pytest.mark.parametrize("labels", [np.zeros(3), np.zeros(N_PART, np.int64), [0] * N_PART])
def test_a_state_with_other_labels_is_not_used(tmp_path, labels):
    checkpoint = FolderCheckpoint(tmp_path)
    PartLabels(N_ROWS, ALONE, checkpoint).keep(range(N_PART), np.arange(N_PART))
    checkpoint.save("labels-1", {"labels": labels})
    with pytest.warns(CheckpointWarning):
        known = PartLabels(N_ROWS, ALONE, checkpoint)
    assert list(known.known) == [range(N_PART)] and known.unknown == own_parts(N_ROWS, ALONE)[1:]
    assert_array_equal(known.known[range(N_PART)], np.arange(N_PART))


def test_files_and_frames_give_the_same_model(small, tmp_path):
    frame = frame_of(X)
    frame.write_parquet(tmp_path / "x.parquet")
    by_file, by_frame = small().fit(tmp_path / "x.parquet"), small().fit(frame)
    assert_array_equal(by_file.labels_, by_frame.labels_)
    assert_array_equal(by_file.learning_rows_, by_frame.learning_rows_)
    np.testing.assert_allclose(by_file.transform(frame), by_frame.transform(frame), atol=1e-12)


def test_a_model_of_a_sample_is_saved_and_loaded(small, tmp_path):
    model = one_fit(small)
    model.save(tmp_path / "model")
    loaded = DECCS.load(tmp_path / "model")
    assert_array_equal(loaded.learning_rows_, model.learning_rows_)
    assert_array_equal(loaded.predict(X), model.labels_)


@pytest.mark.parametrize("change", [lambda rows: rows[::-1], lambda rows: rows + N_ROWS])
def test_a_model_with_impossible_learning_rows_is_refused(small, tmp_path, change):
    model = copy(one_fit(small))
    model.learning_rows_ = change(model.learning_rows_)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="learning_rows_ must be row numbers of labels_, in order"):
        DECCS.load(tmp_path / "model")


def test_other_numbers_of_clusters_are_known_of_the_sample_alone(tmp_path, quick_manifold):
    model = DECCS("auto", rounds=Rounds(n_rounds=0), pretraining=Pretraining(n_epochs=1))
    model.set_params(random_state=0).fit(X)
    with pytest.raises(AttributeError, match=r"learned from 300 of 809 rows.*predict_at"):
        model.labels_at(2)
    assert model.predict_at(X, 2).shape == (N_ROWS,)


# Paths in Python.


def test_what_is_left_out_of_a_file_is_told(small, tmp_path):
    frame_of(X, key=[f"k{row}" for row in range(N_ROWS)]).write_parquet(tmp_path / "x.parquet")
    with pytest.warns(TableWarning, match=r"Left out: 'key' \(id: "):
        model = small().fit(tmp_path / "x.parquet")
    assert list(model.feature_names_in_) == list("abcd")


def test_a_model_of_an_array_labels_a_file(small, tmp_path):
    model = one_fit(small)
    frame_of(X).write_csv(tmp_path / "x.csv")
    np.save(tmp_path / "x.npy", X)
    for name in ("x.csv", "x.npy"):
        assert_array_equal(model.predict(tmp_path / name), model.labels_)
    frame_of(X[:1]).write_csv(tmp_path / "one.csv")
    assert_array_equal(model.predict(tmp_path / "one.csv"), model.labels_[:1])
    frame_of(X[:5]).drop("d").write_csv(tmp_path / "narrow.csv")
    with pytest.raises(ValueError, match="X has 3 features, but DECCS is expecting 4"):
        model.predict(tmp_path / "narrow.csv")


def test_a_pattern_without_a_file_is_told(small):
    with pytest.raises(ValueError, match=r"none\*\.parquet must name Parquet files, but no file"):
        small().fit("none*.parquet")


# Other methods.


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_that_learns_from_a_sample_labels_all_rows(method):
    kind = METHODS[method]
    model = kind(3, random_state=0)
    if "pretraining" in model.get_params(deep=False):
        model.set_params(pretraining=Pretraining(n_epochs=2), network=Network(layers=(8, 2)))
    for name in ("n_steps", "siamese_steps", "n_epochs"):
        if name in model.get_params(deep=False):
            model.set_params(**{name: 20})
    model.fit(X)
    assert model.labels_.shape == (N_ROWS,) and len(model.learning_rows_) == N_LEARNED
    assert_array_equal(model.predict(X), model.labels_)
