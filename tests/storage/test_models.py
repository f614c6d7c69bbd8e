"""Model files: every estimator comes back with the same bits, and no file can do harm."""

import io
import json
import os
import re
import struct
import subprocess
import sys
import warnings
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import deccs
from deccs import DECCS, Network, Pretraining, Rounds, consensus, deep
from deccs.storage import ModelFileError, container, load, read_preprocessing, save
from deccs.storage.models import FORMAT_VERSION, estimators
from deccs.storage.values import KINDS, Reader, Writer

pytestmark = pytest.mark.usefixtures("quick_classifiers")

SHORT = Pretraining(n_epochs=2, batch_size=32)
NETWORK = {"network": Network(layers=(8, 2)), "pretraining": SHORT}
QUICK = {
    **NETWORK,
    "n_clusters": 3,
    "n_steps": 5,
    "batch_size": 32,
    "n_partitions": 5,
    "n_projections": 3,
    "n_components": 2,
    "image_shape": (2, 2),
    "rounds": Rounds(n_rounds=2, n_init=1, n_steps=10),
}


def quick(cls, **changes):
    """An estimator that fits within a second: each takes those of the settings that it has."""
    accepted = cls().get_params(deep=False)
    given = {name: value for name, value in QUICK.items() if name in accepted}
    return cls(**given | changes)


OURS = [cls for cls in estimators().values() if cls.__module__.startswith("deccs.")]
SOME = {  # with other settings than the default, which are stored in another way
    "own function": partial(
        quick, consensus.ConsensusClustering, function=lambda labels, k, **_: labels[0]
    ),
    "tied mixtures": partial(quick, consensus.RandomProjectionEM, covariance_type="tied"),
    "fuzzy average": partial(quick, consensus.RandomProjectionFCM, version="average"),
    "mixture": partial(quick, deep.AutoencoderClustering, clusterer=GaussianMixture(3)),
    "ward": partial(quick, deep.AutoencoderClustering, clusterer=AgglomerativeClustering(3)),
    "rows of one length": partial(quick, deep.AutoencoderClustering, scale="rows"),
    "dropout": partial(quick, deep.IDEC, network=Network(layers=(8, 2), dropout=0.1)),
    "deccs, members of different k": partial(
        quick,
        DECCS,
        rounds=Rounds(n_rounds=1, n_init=1, n_steps=10),
        scale="columns",
        pretraining=Pretraining(n_epochs=2, batch_size=32, grid={"layers": [(8, 2), (4, 3)]}),
        members=[("five", KMeans(5)), ("two", KMeans(2)), ("mine", np.arange(180) % 3)],
        callbacks=[lambda finished: None],
    ),
}
ESTIMATORS = {cls.__name__: partial(quick, cls) for cls in (*OURS, *deep.METHODS.values())} | SOME
METHODS = (
    "predict",
    "predict_proba",
    "transform",
    "members_predict",
    "consensus_confidence",
    "get_feature_names_out",
)


def answers(model, X):
    """All that a fitted model says of X, by method and attribute."""
    said = {
        name: getattr(model, name)(*([] if name.startswith("get") else [X]))
        for name in METHODS
        if hasattr(model, name)
    }
    found = {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_")
    }
    return said | {
        name: value for name, value in found.items() if name not in ("autoencoder_", "clusterer_")
    }


def assert_same(one, other):
    """Equal to the last bit, whatever they are made of."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray | torch.Tensor):
        assert one.dtype == other.dtype
        one, other = (
            value.detach() if isinstance(value, torch.Tensor) else value for value in (one, other)
        )
        assert_array_equal(np.asarray(one), np.asarray(other))
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            assert_same(first, second)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        assert_same(list(one.values()), list(other.values()))
    elif type(one).__name__ in KINDS:
        take = KINDS[type(one).__name__].take
        assert_same(take(one), take(other))
    else:
        assert one == other or (one != one and other != other)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("ending", ["", ".zip"])
def test_every_estimator_comes_back_with_the_same_bits(name, ending, blobs, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FITTED.setdefault(name, None) or ESTIMATORS[name]().set_params(random_state=0).fit(
            blobs.X
        )
    FITTED[name] = model
    path = tmp_path / f"model{ending}"
    model.save(path)
    loaded = type(model).load(path)
    assert_same(answers(loaded, blobs.X), answers(model, blobs.X))
    assert_same(loaded.predict(blobs.X[:1]), model.predict(blobs.X[:1]))
    assert (
        set(loaded.get_params(False)) == set(model.get_params(False))
        and repr(loaded)
        and clone(loaded)
    )
    loaded.save(tmp_path / "again.zip")
    model.save(tmp_path / "first.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "first.zip").read_bytes()


FITTED = {}


def test_every_estimator_is_public():
    """Each of them is saved and loaded above, as are deep methods of others."""
    public = {
        name
        for package in (deccs, consensus, deep)
        for name in package.__all__
        if isinstance(value := getattr(package, name), type) and issubclass(value, BaseEstimator)
    } - {"Network", "Pretraining", "Rounds"}
    assert public == {cls.__name__ for cls in OURS}


@pytest.mark.parametrize("name", ["Clusterer", "Embedder", "DeepClustering", "RandomProjections"])
def test_a_base_class_is_no_estimator(name, folder):
    forge(folder, lambda document: document.update({"class": name}))
    with pytest.raises(ModelFileError, match="no estimator of deccs"):
        load(folder)


@pytest.fixture(scope="module")
def model(fitted):
    return fitted


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def archive(model, tmp_path):
    model.save(tmp_path / "model.zip")
    return tmp_path / "model.zip"


def arrays_of(folder):
    (path,) = folder.glob("tensors-*.safetensors")
    return path


def forge(folder, change):
    """A stranger who changes the document and puts all checksums right."""
    path = folder / "model.json"
    document = json.loads(path.read_text())
    del document["checksum"]
    change(document)
    path.write_bytes(container.sealed(document))


def forge_arrays(folder, content):
    """... and one who changes the arrays, too."""
    old = arrays_of(folder)
    digest = container.sha256(content)
    name = f"tensors-{digest[:16]}.safetensors"
    old.unlink()
    (folder / name).write_bytes(content)
    forge(
        folder,
        lambda document: document.update(files={name: {"bytes": len(content), "sha256": digest}}),
    )


def safetensors_file(header, data=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


# What is in a file


def test_the_document_can_be_read_by_people(folder):
    document = json.loads((folder / "model.json").read_text())
    assert (
        document["format"] == "deccs model"
        and document["format_version"] == FORMAT_VERSION
        and document["class"] == "DECCS"
    )
    assert document["versions"]["deccs"] == deccs.__version__
    assert torch.__version__.startswith(document["versions"]["torch"])  # 2.4.0+cpu
    assert document["parameters"]["n_clusters"] == 3 and document["feature_names"] is None
    (facts,) = document["files"].values()
    assert facts["bytes"] == arrays_of(folder).stat().st_size


def test_preprocessing_is_given_back(model, tmp_path):
    for path in (tmp_path / "m", tmp_path / "m.zip"):
        save(model, path, preprocessing={"columns": ["a", "b"], "missing": {"a": 1.5}})
        assert read_preprocessing(path) == {"columns": ["a", "b"], "missing": {"a": 1.5}}
        model.save(path)
        assert read_preprocessing(path) == {}
    with pytest.raises(ModelFileError, match="preprocessing must be plain JSON"):
        save(model, tmp_path / "n", preprocessing={"mean": np.zeros(2)})
    assert not (tmp_path / "n").exists()


def test_feature_names_come_back(model, blobs, tmp_path):
    pandas = pytest.importorskip("pandas")
    named = pandas.DataFrame(blobs.X, columns=["länge", "b", "c", "d"])
    first = consensus.RandomProjectionFCM(3, n_projections=2, n_components=2, random_state=0).fit(
        named
    )
    first.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert_array_equal(loaded.feature_names_in_, first.feature_names_in_)
    assert_array_equal(loaded.predict(named), first.labels_)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(named[["b", "c", "d", "länge"]])


def test_values_of_all_sorts_come_back():
    value = {
        "a": [1, (2.5, None), True],
        3: np.float32(0.1),
        "nan": [float("nan"), float("inf"), -float("inf")],
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "0-d": np.array(7),
        "none": np.zeros((0, 3)),
        "b": np.array([True, False]),
        "big": np.arange(3, dtype=">i4"),
        "words": np.array(["x"], dtype=object),
        "t": torch.arange(4, dtype=torch.uint8),
        "part": np.arange(20).reshape(4, 5)[::2, ::2],
        "huge": 10**30,
    }
    writer = Writer()
    tree = json.loads(json.dumps(writer.tree(value, "value"), allow_nan=False))
    found = Reader(container.arrays_in(container.safetensors.numpy.save(writer.arrays))).value(tree)
    assert found["f"].flags.f_contiguous and found["big"].dtype == np.int32
    assert_same(found, value | {"big": np.arange(3, dtype=np.int32)})


def test_what_cannot_be_kept_is_said_at_once(blobs, tmp_path):
    pipeline = make_pipeline(StandardScaler(), KMeans(3))
    model = deep.AutoencoderClustering(clusterer=pipeline, random_state=0, **NETWORK).fit(blobs.X)
    with pytest.raises(ModelFileError, match="clusterer_ is a Pipeline, which a file cannot hold"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()
    with pytest.raises(NotFittedError):
        DECCS(3).save(tmp_path / "m")


def test_members_come_back_as_their_names(small, blobs, tmp_path):
    members = [("km", KMeans(3)), ("gm", GaussianMixture(3)), ("given", blobs.y)]
    small(members=members, callbacks=[print], random_state=np.random.RandomState(0)).fit(
        blobs.X
    ).save(tmp_path / "m")
    loaded = DECCS.load(tmp_path / "m")
    assert [name for name, _ in loaded.members] == [
        "km",
        "gm",
        "given",
    ] and loaded.callbacks is None
    assert "KMeans(n_clusters=3), not kept" in repr(loaded.members[0])
    assert_array_equal(loaded.members[2][1], blobs.y)
    with pytest.raises(
        ValueError, match=r"Member 'km' .*KMeans\(n_clusters=3\), not kept in the model file"
    ):
        clone(loaded).set_params(random_state=0).fit(blobs.X)


class Own(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.map = nn.Linear(n_in, n_out)

    def forward(self, x):
        return self.map(x)


def test_a_users_own_modules_get_their_weights_back(small, blobs, tmp_path):
    first = small(network=(Own(4, 2), Own(2, 4))).fit(blobs.X)
    first.save(tmp_path / "m")
    with pytest.raises(
        ModelFileError, match=r"(?s)modules of your own.*network=\(encoder, decoder\).*Own\("
    ):
        DECCS.load(tmp_path / "m")
    with pytest.raises(ModelFileError, match="encoder given is not the one that was saved"):
        DECCS.load(tmp_path / "m", network=(Own(4, 3), Own(3, 4)))
    given = Own(4, 2), Own(2, 4)
    before = given[0].map.weight.clone()
    loaded = DECCS.load(tmp_path / "m", network=given)
    assert_same(answers(loaded, blobs.X), answers(first, blobs.X))
    assert torch.equal(given[0].map.weight, before)
    assert clone(loaded).fit(blobs.X)


def test_a_users_own_chain_of_known_layers_needs_no_help(small, blobs, tmp_path):
    encoder = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))
    first = small(network=(encoder, nn.Sequential(nn.Linear(2, 4)))).fit(blobs.X)
    first.save(tmp_path / "m")
    assert_same(answers(DECCS.load(tmp_path / "m"), blobs.X), answers(first, blobs.X))


def test_the_class_is_checked(folder):
    assert isinstance(load(folder), DECCS) and isinstance(load(folder, kind=DECCS), DECCS)
    with pytest.raises(
        ModelFileError, match=r"holds a DECCS, not a IEC. Load it with DECCS.load\(path\)"
    ):
        deep.IEC.load(folder)


def test_a_users_own_subclass(blobs, tmp_path):
    class Mine(consensus.RandomProjectionFCM):
        pass

    Mine(3, n_projections=2, n_components=2, random_state=0).fit(blobs.X).save(tmp_path / "m")
    assert type(Mine.load(tmp_path / "m")) is Mine
    assert type(load(tmp_path / "m")) is Mine  # the class has registered itself
    forge(tmp_path / "m", lambda document: document.update({"class": "Unknown"}))
    with pytest.raises(ModelFileError, match=r"holds a 'Unknown'.*YourClass.load"):
        load(tmp_path / "m")


# A crash while saving leaves the old model whole


@pytest.mark.parametrize("ending", ["", ".zip"])
def test_a_crash_while_saving_leaves_the_old_or_the_new_model(
    ending, model, blobs, tmp_path, monkeypatch
):
    path = tmp_path / f"model{ending}"
    old = consensus.RandomProjectionFCM(3, n_projections=2, n_components=2, random_state=0).fit(
        blobs.X
    )
    crashes = 0
    for function, real in (("fsync", os.fsync), ("replace", os.replace)):
        for number in range(10):
            old.save(path)
            calls = []

            def crash(*given, real=real, number=number, calls=calls):
                calls.append(given)
                if len(calls) == number + 1:
                    raise KeyboardInterrupt
                return real(*given)

            with monkeypatch.context() as patched:
                patched.setattr(os, function, crash)
                try:
                    model.save(path)
                except KeyboardInterrupt:
                    crashes += 1
                else:
                    break
            found = load(path)
            assert_array_equal(
                found.predict(blobs.X),
                (old if type(found) is type(old) else model).predict(blobs.X),
            )
            assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
    assert crashes >= (6 if not ending else 3)
    assert isinstance(load(path), DECCS)
    if not ending:
        assert len(os.listdir(path)) == 2  # nothing is left lying about


def test_strange_places_are_not_written_to(model, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "model.json").write_text('{"other": 1}')
    (tmp_path / "file").write_text("text")
    (tmp_path / "folder.zip").mkdir()
    for name in ("theirs", "file", "folder.zip"):
        with pytest.raises(ModelFileError, match="Give"):
            model.save(tmp_path / name)
    assert (tmp_path / "theirs" / "model.json").read_text() == '{"other": 1}'


# Damage


@pytest.fixture(scope="module")
def lean(blobs):
    """A model whose files are read in a moment."""
    return consensus.RandomProjectionFCM(3, n_projections=4, n_components=2, random_state=0).fit(
        blobs.X
    )


@pytest.mark.parametrize("part", ["model.json", "arrays", "zip"])
def test_truncated_files_are_refused(part, model, tmp_path):
    path = tmp_path / ("m.zip" if part == "zip" else "m")
    model.save(path)
    file = {"model.json": path / "model.json", "zip": path}.get(part) or arrays_of(path)
    whole = file.read_bytes()
    assert len(whole) > 10_000
    for length in [*range(0, len(whole), 1_000), len(whole) - 1]:
        file.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match=re.escape(str(path))):
            load(path)
    file.write_bytes(whole + b"\0")
    with pytest.raises(ModelFileError):
        load(path)
    file.write_bytes(whole)
    load(path)


@pytest.mark.parametrize("part", ["model.json", "arrays", "zip"])
def test_flipped_bytes_are_found(part, lean, tmp_path):
    path = tmp_path / ("m.zip" if part == "zip" else "m")
    lean.save(path)
    file = {"model.json": path / "model.json", "zip": path}.get(part) or arrays_of(path)
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    missed = []
    for place in rng.choice(len(whole), 150, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        file.write_bytes(damaged)
        try:
            load(path)
        except ModelFileError:
            continue
        missed.append(place)
    if part != "zip":
        assert not missed
    for place in (
        missed
    ):  # a zip file has bytes that mean nothing, such as times; no byte of the model is among them
        with zipfile.ZipFile(file) as archive:
            inside = [
                range(
                    one.header_offset + 30 + len(one.filename),
                    one.header_offset + 30 + len(one.filename) + one.file_size,
                )
                for one in archive.infolist()
            ]
        assert not any(place in span for span in inside)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "damaged or not JSON"),
        ("{", "damaged or not JSON"),
        ("[" * 100_000, "damaged or not JSON"),
        ("[1]", "not a deccs model"),
        ('{"format": "other"}', "not a deccs model"),
        ("9" * 5_000, "damaged or not JSON"),
        ('{"format": "deccs model", "format_version": 1}', "no checksum"),
        (" " * (container.MOST_DOCUMENT + 1), "may have at most"),
    ],
)
def test_other_documents_are_refused(content, message, folder):
    (folder / "model.json").write_text(content)
    with pytest.raises(ModelFileError, match=message):
        load(folder)


def test_missing_files(folder, tmp_path):
    arrays_of(folder).unlink()
    with pytest.raises(ModelFileError, match="has no file tensors"):
        load(folder)
    (folder / "model.json").unlink()
    with pytest.raises(ModelFileError, match="has no file model.json"):
        load(folder)
    with pytest.raises(ModelFileError, match="There is no model at"):
        load(tmp_path / "nowhere")
    os.mkfifo(folder / "model.json")
    with pytest.raises(ModelFileError, match="has no file model.json"):
        load(folder)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match="not a zip file"):
        load(tmp_path / "text")


def test_a_later_format_says_what_to_install(folder):
    later = {"format_version": FORMAT_VERSION + 1, "versions": {"deccs": "9.1"}}
    forge(folder, lambda document: document.update(later))
    for read in (load, read_preprocessing):
        with pytest.raises(
            ModelFileError, match=r"version 3 .* reads up to 2. .*pip install 'deccs>=9.1'"
        ):
            read(folder)


# Strangers


def put(value, *path):
    """A change of the document at one place."""

    def change(document):
        *way, last = path
        for key in way:
            document = document[key]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("os.system", "class"), "no estimator of deccs"),
        (put("Pretraining", "class"), "no estimator of deccs"),
        (
            put({"kind": "os.system", "fields": {}}, "learned", "labels_"),
            "this deccs does not know",
        ),
        (put(1, "learned", "__class__"), "nothing that a DECCS learns"),
        (put(1, "learned", "predict"), "nothing that a DECCS learns"),
        (put(1, "learned", "n_clusters"), "nothing that a DECCS learns"),
        (put(1, "parameters", "later"), "unexpected keyword"),
        (put(None, "parameters"), "can load"),
        (put(10**15, "learned", "labels_", "shape", 0), "should be of shape"),
        (put([], "learned", "labels_", "shape"), "should be of shape"),
        (put("object", "learned", "labels_", "dtype"), "no type of numbers"),
        (put("float32", "learned", "labels_", "dtype"), "should be of shape"),
        (put("nowhere", "learned", "labels_", "name"), "missing, or asked for twice"),
        (put("parameters/../x", "learned", "labels_", "name"), "missing, or asked for twice"),
        (put(3, "learned", "labels_"), "nothing asks for"),
        (put({"kind": "dict", "items": [[[], 1]]}, "learned", "n_iter_"), "cannot be a key"),
        (
            put({"../../etc/passwd": {"bytes": 1, "sha256": ""}}, "files"),
            "must name one file of arrays",
        ),
        (put({}, "files"), "must name one file of arrays"),
    ],
)
def test_forged_documents_are_refused(change, message, folder):
    forge(folder, change)
    with pytest.raises(ModelFileError, match=message):
        load(folder)


def layers_of(document):
    """The description of the encoder's layers, as pairs."""
    encoder = document["learned"]["autoencoder_"]["fields"]["encoder"]["items"]
    return dict(encoder)["layers"]["items"]


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [["layer", "Linear"], ["in_features", 10**9], ["out_features", 10**9], ["bias", True]],
            "can load",
        ),
        (
            [
                ["layer", "Linear"],
                ["in_features", 10**18],
                ["out_features", 10**18],
                ["bias", True],
            ],
            "can load",
        ),
        ([["layer", "Module"]], "layer 'Module', which this deccs does not know"),
        (
            [
                ["layer", "Sequential"],
                ["parts", [{"kind": "dict", "items": [["layer", "Tanh"]]}] * 5_000],
            ],
            "1000 layers",
        ),
    ],
)
def test_absurd_networks_are_refused_before_anything_is_allocated(layers, message, folder):
    forge(folder, lambda document: layers_of(document).__setitem__(slice(None), layers))
    with pytest.raises(ModelFileError, match=message):
        load(folder)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        struct.pack("<Q", 2**62) + b"{}",
        safetensors_file(
            {"labels_": {"dtype": "I64", "shape": [2**40, 2**40], "data_offsets": [0, 8]}}, b"x" * 8
        ),
        safetensors_file(
            {"labels_": {"dtype": "I64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]}},
            b"x" * 8,
        ),
        safetensors_file(
            {"labels_": {"dtype": "I64", "shape": [-1], "data_offsets": [0, 8]}}, b"x" * 8
        ),
        safetensors_file(
            {"labels_": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}, b"x" * 8
        ),
        safetensors_file(
            {"labels_": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}, b"x" * 16
        ),
        safetensors_file(
            {
                "a": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
                "b": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
            },
            b"x" * 8,
        ),
    ],
)
def test_absurd_arrays_are_refused(content, folder):
    forge_arrays(folder, content)
    with pytest.raises(ModelFileError, match="safetensors|BF16"):
        load(folder)


def test_a_file_of_a_terabyte_is_not_read(folder):
    os.truncate(arrays_of(folder), 2**40)  # sparse: it takes no room
    with pytest.raises(ModelFileError, match="1,099,511,627,776 bytes"):
        load(folder)


def test_a_sparse_matrix_with_indices_out_of_range_is_refused():
    fields = {
        "data": np.ones(1),
        "indices": np.array([10**6], np.int32),
        "indptr": np.array([0, 1], np.int32),
    }
    with pytest.raises(ValueError, match="indices|index"):
        KINDS["csr_array"].make({**fields, "shape": (1, 3)})


def zip_of(contents, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", compression) as archive:
        warnings.simplefilter("ignore")
        for name, content in contents:
            archive.writestr(name, content)
    return bytearray(out.getvalue())


def link(name):
    info = zipfile.ZipInfo(name)
    info.external_attr = 0o120777 << 16
    return info


ARRAYS = "tensors-0123456789abcdef.safetensors"


def test_zip_files_of_strangers_are_refused(archive, tmp_path):
    with zipfile.ZipFile(archive) as good:
        names = {name: good.read(name) for name in good.namelist()}
    document, (arrays, content) = (
        names["model.json"],
        next(item for item in names.items() if "tensors" in item[0]),
    )
    bomb = zip_of([("model.json", b"\0" * 10**7), (ARRAYS, b"")], zipfile.ZIP_DEFLATED)
    larger = bytearray(archive.read_bytes())
    central = larger.rindex(b"PK\1\2")
    larger[central + 20 : central + 28] = struct.pack("<LL", 2**31, 2**31)  # says it is 2 GB
    cases = {
        "traversal": (zip_of([("model.json", document), ("../../evil", b"x")]), "holds"),
        "absolute": (zip_of([("/etc/evil", b"x"), (arrays, content)]), "holds"),
        "three": (
            zip_of([("model.json", document), (arrays, content), ("../evil", b"x")]),
            "holds 3 files",
        ),
        "twice": (zip_of([("model.json", document), ("model.json", document)]), "holds"),
        "many": (zip_of([(str(number), b"") for number in range(5_000)]), "holds 5000 files"),
        "bomb": (bomb, "compressed"),
        "larger": (larger, "larger than the whole file|damaged"),
        "link": (zip_of([(link("model.json"), b"/etc/passwd"), (arrays, content)]), "a link"),
        "packed": (zip_of(names.items(), zipfile.ZIP_DEFLATED), "compressed"),
        "empty": (zip_of([]), "holds 0 files"),
        "comment": (archive.read_bytes() + b"some words after the end", "not a zip file"),
        "other": (zip_of([("model.json", b"{}"), (ARRAYS, b"")]), "not a deccs model"),
    }
    before = set(tmp_path.rglob("*"))
    for name, (damaged, message) in cases.items():
        archive.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=message):
            load(archive)
        assert set(tmp_path.rglob("*")) == before, name


def test_a_model_loads_where_its_members_cannot_be_imported(small, blobs, tmp_path):
    """In a process that has neither the members' modules nor pickle at hand."""
    (tmp_path / "mine.py").write_text(
        "from sklearn.base import BaseEstimator, ClusterMixin\nfrom sklearn.cluster import KMeans\n"
        "class Mine(ClusterMixin, BaseEstimator):\n"
        "    def fit(self, X, y=None):\n        self.labels_ = KMeans(3, n_init=3, random_state=0).fit_predict(X)\n"
        "        return self\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        from mine import Mine
    finally:
        sys.path.remove(str(tmp_path))
    first = small(members=[("mine", Mine()), ("km", KMeans(3))]).fit(blobs.X)
    first.save(tmp_path / "m.zip")
    np.save(tmp_path / "X.npy", blobs.X)
    program = (
        "import sys, numpy as np, pickle, torch, deccs\n"
        "def refuse(*given, **named): raise AssertionError('unpickled')\n"
        "pickle.load = pickle.loads = pickle.Unpickler = torch.load = refuse\n"
        "model = deccs.DECCS.load('m.zip')\n"
        "assert 'mine' not in sys.modules and model.members[0][0] == 'mine'\n"
        "X = np.load('X.npy')\n"
        "np.savez('said.npz', labels=model.predict(X), p=model.predict_proba(X), says=model.members_predict(X),\n"
        "         Z=model.transform(X), c=model.consensus_confidence(X))\n"
    )
    where = {**os.environ, "PYTHONPATH": str(Path(deccs.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=where, check=True)
    said = np.load(tmp_path / "said.npz")
    expected = {
        "labels": first.labels_,
        "p": first.predict_proba(blobs.X),
        "Z": first.transform(blobs.X),
        "says": first.members_predict(blobs.X),
        "c": first.consensus_confidence(blobs.X),
    }
    for name, values in expected.items():
        assert_array_equal(said[name], values)
