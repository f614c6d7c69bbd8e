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
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import deccs
from deccs import DECCS, Autoencoder, Pretraining, consensus, deep
from deccs.files import ModelFileError, container, load, read_preprocessing, save
from deccs.files.values import KINDS, Reader, Writer

SHORT = Pretraining(epochs=2, batch_size=32)
NETWORK = {"layers": (8, 2), "pretraining": SHORT}
STEPS = {**NETWORK, "n_steps": 5, "batch_size": 32}

ESTIMATORS = {
    "consensus": lambda: consensus.ConsensusClustering(3),
    "consensus of an embedding": lambda: consensus.AutoencoderConsensus(3, **NETWORK),
    "own function": lambda: consensus.ConsensusClustering(3, function=lambda labels, k, **_: labels[0]),
    "mixtures": lambda: consensus.RandomProjectionEM(3, n_projections=3, n_components=2),
    "tied mixtures": lambda: consensus.RandomProjectionEM(3, n_projections=3, n_components=2, covariance_type="tied"),
    "fuzzy": lambda: consensus.RandomProjectionFCM(3, n_projections=3, n_components=2),
    "fuzzy average": lambda: consensus.RandomProjectionFCM(3, n_projections=3, n_components=2, version="average"),
    "k-means": lambda: deep.AutoencoderClustering(3, **NETWORK),
    "mixture": lambda: deep.AutoencoderClustering(clusterer=GaussianMixture(3), **NETWORK),
    "ward": lambda: deep.AutoencoderClustering(clusterer=AgglomerativeClustering(3), **NETWORK),
    "dec": lambda: deep.DEC(3, **STEPS),
    "idec": lambda: deep.IDEC(3, dropout=0.1, **STEPS),
    "dcn": lambda: deep.DCN(3, **STEPS),
    "vade": lambda: deep.VaDE(3, **STEPS),
    "deepect": lambda: deep.DeepECT(3, **STEPS),
    "iec": lambda: deep.IEC(3, n_partitions=5),
    "agae": lambda: deep.AGAE(3, n_partitions=5, n_steps=5),
    "concurl": lambda: deep.ConCURL(3, n_steps=4, image_shape=(2, 2)),
    "deccs": lambda: DECCS(3, n_rounds=2, n_init=1, n_steps=10, **NETWORK),
    "deccs, members of different k": lambda: DECCS(
        3, n_rounds=1, n_init=1, n_steps=10, scale="columns", pretraining_grid={"layers": [(8, 2), (4, 3)]},
        pretraining=SHORT, members=[("five", KMeans(5)), ("two", KMeans(2)), ("mine", np.arange(180) % 3)],
        callbacks=[lambda finished: None]),
}
METHODS = ("predict", "predict_proba", "transform", "members_predict", "consensus_confidence", "get_feature_names_out")


def answers(model, X):
    """All that a fitted model says of X, by method and attribute."""
    said = {name: getattr(model, name)(*([] if name.startswith("get") else [X]))
            for name in METHODS if hasattr(model, name)}
    found = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    return said | {name: value for name, value in found.items() if name not in ("autoencoder_", "clusterer_")}


def assert_same(one, other):
    """Equal to the last bit, whatever they are made of."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray | torch.Tensor):
        assert one.dtype == other.dtype
        one, other = (value.detach() if isinstance(value, torch.Tensor) else value for value in (one, other))
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
        model = FITTED.setdefault(name, None) or ESTIMATORS[name]().set_params(random_state=0).fit(blobs.X)
    FITTED[name] = model
    path = tmp_path / f"model{ending}"
    model.save(path)
    loaded = type(model).load(path)
    assert_same(answers(loaded, blobs.X), answers(model, blobs.X))
    assert_same(loaded.predict(blobs.X[:1]), model.predict(blobs.X[:1]))
    assert set(loaded.get_params(False)) == set(model.get_params(False)) and repr(loaded) and clone(loaded)
    loaded.save(tmp_path / "again.zip")
    model.save(tmp_path / "first.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "first.zip").read_bytes()


FITTED = {}


def test_the_list_of_estimators_is_complete():
    from sklearn.base import BaseEstimator

    from deccs.files.models import ESTIMATORS as known

    public = {name for package in (deccs, consensus, deep) for name, value in vars(package).items()
              if isinstance(value, type) and issubclass(value, BaseEstimator)}
    assert public == set(known) == {type(make()).__name__ for make in ESTIMATORS.values()}
