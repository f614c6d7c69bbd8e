"""Small models of every estimator, as the document and the arrays of their files."""

from __future__ import annotations

import json
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import safetensors.numpy
from sklearn.cluster import AgglomerativeClustering, KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture
from torch import nn

from deccs import DECCS, Network, Pretraining, Rounds, consensus, deep
from deccs.storage.models import estimators
from tests.helpers.frames import mixed

QUICK = {
    "network": Network(layers=(6, 2)),
    "pretraining": Pretraining(n_epochs=1, batch_size=16),
    "rounds": Rounds(n_rounds=1, n_init=1, n_steps=5),
    "n_clusters": 3,
    "n_steps": 3,
    "siamese_steps": 2,
    "batch_size": 16,
    "n_partitions": 3,
    "n_projections": 2,
    "n_resamples": 4,
    "n_components": 2,
    "hidden": (4, 4),
    "layers": (4, 3),
    "n_latent": 3,
    "image_shape": (2, 2),
    "random_state": 0,
}


@dataclass(frozen=True)
class Victim:
    """A saved model, ready to be changed."""

    text: str  # the document; reading it is faster than copying it
    document: dict[str, Any]
    arrays: dict[str, np.ndarray]
    tensors: bytes


def quick(cls: type, **changes: Any) -> Any:
    """An estimator that fits in a moment: each takes those of the settings that it has."""
    accepted = cls().get_params(deep=False)
    return cls(**{name: value for name, value in QUICK.items() if name in accepted} | changes)


def make_rows() -> np.ndarray:
    """(40, 4) rows in three groups."""
    rng = np.random.default_rng(0)
    centers = rng.normal(0, 6, (3, 4))
    return centers[rng.integers(0, 3, 40)] + rng.normal(0, 1, (40, 4))


def make_frame() -> Any:
    """40 rows with a column of each kind, free text, and gaps."""
    frame = mixed(40)
    notes = [f"note {place % 7} of {place % 5}" for place in range(40)]
    return frame.with_columns(note=pl.Series(notes))


def frame_for(model: Any) -> Any:
    """Five rows that a model of a frame can read, whatever columns its file says it has."""
    frame, columns = make_frame()[:5], {}
    for column in model.coding_.columns:
        if column.name in frame.columns and column.kind != "number":
            columns[column.name] = frame[column.name].cast(pl.String)
        elif column.kind == "date":
            columns[column.name] = frame["born"]
        elif column.levels:
            columns[column.name] = pl.Series((5 * column.levels)[:5])
        else:
            columns[column.name] = frame["size"]
    return pl.DataFrame(columns)


def encoder_of_images() -> nn.Sequential:
    """Layers of all sorts that files know."""
    return nn.Sequential(
        nn.Conv2d(1, 2, 2, padding=1, bias=False),
        nn.BatchNorm2d(2),
        nn.ELU(),
        nn.AdaptiveAvgPool2d((2, 2)),
        nn.Flatten(),
        nn.Linear(8, 3),
        nn.GELU(),
    )


def layers_of_all_sorts() -> tuple[nn.Sequential, nn.Sequential]:
    encoder = nn.Sequential(
        nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.1), nn.Linear(4, 2)
    )
    return encoder, nn.Sequential(nn.Sigmoid(), nn.Linear(2, 4), nn.Identity())


MORE = {
    "DECCS, k unknown": partial(quick, DECCS, n_clusters="2-4"),
    "DECCS, frame": partial(quick, DECCS, kinds={"note": "text"}),
    "DECCS, frame, k unknown": partial(quick, DECCS, n_clusters="2-4", views=None),
    "IDEC, frame": partial(quick, deep.IDEC),
    "DECCS, the paper's": partial(quick, DECCS, views=None),
    "DECCS, members of different k": partial(
        quick,
        DECCS,
        members=[("five", KMeans(5)), ("mine", np.arange(40) % 3)],
        network=layers_of_all_sorts(),
        scale="global",
    ),
    "DEC, k unknown": partial(quick, deep.DEC, n_clusters=range(2, 5)),
    "DeepECT, dropout": partial(quick, deep.DeepECT, network=Network(layers=(6, 2), dropout=0.1)),
    "ConCURL, own layers": partial(quick, deep.ConCURL, encoder=encoder_of_images()),
    "mixture": partial(quick, deep.AutoencoderClustering, clusterer=GaussianMixture(3)),
    "spherical": partial(
        quick, deep.AutoencoderClustering, clusterer=GaussianMixture(2, covariance_type="spherical")
    ),
    "mini-batches": partial(quick, deep.AutoencoderClustering, clusterer=MiniBatchKMeans(3)),
    "ward": partial(
        quick, deep.AutoencoderClustering, clusterer=AgglomerativeClustering(3), scale="rows"
    ),
    "tied": partial(quick, consensus.RandomProjectionEM, covariance_type="tied", scale=None),
    "average": partial(quick, consensus.RandomProjectionFCM, version="average"),
    "weights": partial(
        quick,
        consensus.ConsensusClustering,
        members=[("a", KMeans(3)), ("b", KMeans(2))],
        weights=[1, 2.5],
    ),
    "two k": partial(quick, consensus.ConsensusMatrix, n_clusters=(2, 3), function="lwea"),
}


@cache
def victims() -> dict[str, Victim]:
    """All of them, fitted and saved."""
    ours = {
        name: partial(quick, cls)
        for name, cls in estimators().items()
        if cls.__module__.startswith("deccs.")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: saved(make().fit(make_frame() if "frame" in name else make_rows()))
            for name, make in (ours | MORE).items()
        }


def saved(model: Any) -> Victim:
    """What the files of a model hold."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        text = (Path(folder) / "model.json").read_text()
        (path,) = Path(folder).glob("tensors-*")
        tensors = path.read_bytes()
    return Victim(text, json.loads(text), safetensors.numpy.load(tensors), tensors)
