"""Small data, small settings, and one model fitted once for all tests that only look at it."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs

from deccs import DECCS, Autoencoder, Network, Pretraining, Rounds, datasets
from deccs.data.rows import Rows
from deccs.data.scaling import fit_scaler
from deccs.data.source import source_of
from deccs.labels import canonical
from deccs.training.pretraining import pretrain

SMALL = {
    "n_clusters": 3,
    "network": Network(layers=(8, 2)),
    "pretraining": Pretraining(n_epochs=15, batch_size=32, learning_rate=1e-2),
    "rounds": Rounds(n_rounds=1, n_init=1, n_steps=10, batch_size=64),
    "random_state": 0,
}


def small_deccs(**changes):
    """A DECCS that fits in less than a second; settings may be given without their prefix.

    ``small_deccs(n_rounds=2)`` sets ``rounds__n_rounds``, ``small_deccs(dropout=0.1)``
    ``network__dropout``. Those of ``Pretraining`` need it: ``pretraining__batch_size``.
    """
    homes = dict.fromkeys(Network().get_params(), "network")
    homes |= dict.fromkeys(Rounds().get_params(), "rounds")
    full = {
        f"{homes[name]}__{name}" if name in homes else name: value
        for name, value in changes.items()
    }
    return clone(DECCS(**SMALL)).set_params(**full)


@pytest.fixture
def load_real():
    """``datasets.load`` where the data sets are at hand; elsewhere the test is skipped, for it must not download."""
    if not os.environ.get("DECCS_DATA"):
        pytest.skip("set DECCS_DATA to run on real data")
    return datasets.load


@pytest.fixture(scope="session")
def blobs():
    """Three far blobs of 60 points in four dimensions, in a mixed order, numbered by first appearance."""
    centers = np.array([[0, 0, 0, 0], [8, 0, 8, 0], [0, 8, 0, 8]], dtype=float)
    X, y = make_blobs([60, 60, 60], centers=centers, cluster_std=0.7, random_state=0)
    return SimpleNamespace(X=X, y=canonical(y))


@pytest.fixture(scope="session")
def small():
    """``small(n_rounds=2)``: a DECCS that fits in less than a second."""
    return small_deccs


@pytest.fixture(scope="session")
def fitted(small, blobs):
    """The small model fitted on the blobs. Do not change it."""
    return small(n_rounds=2).fit(blobs.X)


@pytest.fixture(scope="session")
def rows(blobs):
    source = source_of(blobs.X)
    return Rows(source, fit_scaler(source))


@pytest.fixture(scope="session")
def trained(rows):
    """A small autoencoder of the blobs. Do not change it."""
    return pretrain(new_autoencoder(), rows, Pretraining(n_epochs=20, batch_size=64), root=0)


def new_autoencoder():
    torch.manual_seed(0)
    return Autoencoder.feed_forward(4, (8, 2))
