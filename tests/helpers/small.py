"""Small data, small settings and small models, which fit in less than a second."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch
from sklearn.base import clone
from sklearn.datasets import make_blobs

from deccs import DECCS, Autoencoder, Network, Pretraining, Rounds
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import source_of
from deccs.labels import canonical
from deccs.training.pretraining import pretrain

SMALL = {
    "n_clusters": 3,
    "views": None,
    "network": Network(layers=(8, 2)),
    "pretraining": Pretraining(n_epochs=15, batch_size=32, learning_rate=1e-2),
    "rounds": Rounds(n_rounds=1, n_init=1, n_steps=10, batch_size=64),
    "random_state": 0,
}


def small_deccs(**changes):
    """The paper's DECCS, without views, that fits in less than a second.

    Settings may be given without their prefix:

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


def far_blobs():
    """Three far blobs of 60 points in four dimensions, in a mixed order, numbered by first appearance."""
    centers = np.array([[0, 0, 0, 0], [8, 0, 8, 0], [0, 8, 0, 8]], dtype=float)
    X, y = make_blobs([60, 60, 60], centers=centers, cluster_std=0.7, random_state=0)
    return SimpleNamespace(X=X, y=canonical(y))


def rows_of(X):
    source = source_of(X)
    return Rows(source, fit_scaler(source))


def trained_on(rows):
    """A small autoencoder of the rows."""
    torch.manual_seed(0)
    autoencoder = Autoencoder.feed_forward(4, (8, 2))
    return pretrain(autoencoder, rows, Pretraining(n_epochs=20, batch_size=64), root=0)
