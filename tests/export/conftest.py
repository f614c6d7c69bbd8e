"""Tiny models of every method, fitted once."""

import warnings
from functools import partial

import numpy as np
import pytest


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Fits and edits in a tenth of their time: what they are worth does not matter here."""
    from deccs.counting import cluster_stability
    from deccs.members import views
    from deccs.rounds import classifiers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifiers, "MOST_STEPS", 50)
        patch.setattr(views, "manifold_embedding", partial(views.manifold_embedding, n_steps=40))
        patch.setattr(cluster_stability, "N_RESAMPLES", 1)
        patch.setattr(cluster_stability, "RESAMPLE_STEPS", 20)
        yield


@pytest.fixture(scope="module")
def table():
    """A frame with columns of every kind, with gaps, and a column named like an output."""
    import datetime

    import polars as pl

    rng = np.random.default_rng(0)
    n = 150
    group = rng.integers(3, size=n)
    start = datetime.datetime(2015, 1, 1)
    days = rng.integers(0, 900, n)
    columns = {
        "income": np.where(rng.random(n) < 0.1, np.nan, np.exp(2 * rng.normal(group, 1))),
        "age": rng.integers(18, 90, n),
        "color": [
            None if day % 20 == 0 else ["red", "green", "teal"][g]
            for g, day in zip(group, days, strict=True)
        ],
        "size": [["small", "medium", "large"][g] for g in group],
        "member": [["yes", "no"][int(g > 0)] for g in group],
        "since": [
            start + datetime.timedelta(days=3.25 * int(day)) if day > 30 else None for day in days
        ],
        "flag": ["x" if g == 1 else None for g in group],
        "labels": rng.normal(4 * group, 1),
    }
    return pl.DataFrame(columns)


@pytest.fixture(scope="module")
def with_gaps(blobs):
    X = blobs.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return X


@pytest.fixture(scope="module")
def fitted_models(blobs, table, with_gaps):
    """``fitted_models("DEC")``: a model and the rows of its fit."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.mixture import GaussianMixture

    from deccs import DECCS, Network, Pretraining, Rounds, deep
    from deccs.consensus import AutoencoderConsensus, ConsensusClustering

    training = {"network": Network(layers=(8, 2)), "pretraining": Pretraining(n_epochs=1)}
    few = {**training, "random_state": 0}
    rounds = Rounds(n_rounds=1, n_init=1, n_steps=5)
    words = np.random.default_rng(1).poisson(0.3, (60, 120)).astype(float)
    words[:, :40] *= np.arange(60)[:, None] % 3
    pixels = np.random.default_rng(1).random((60, 64))
    X = blobs.X
    made = {
        "DECCS": (DECCS(3, views=None, rounds=rounds, **few), X),
        "DECCS of a table": (DECCS(3, rounds=rounds, **few), table),
        "DEC": (deep.DEC(3, n_steps=5, **few), X),
        "IDEC": (deep.IDEC(3, n_steps=5, **few), X),
        "DCN": (deep.DCN(3, n_steps=5, **few), X),
        "VaDE": (deep.VaDE(3, n_steps=5, **few), X),
        "DeepECT": (deep.DeepECT(3, n_steps=5, **few), X),
        "SpectralNet": (deep.SpectralNet(3, n_steps=5, siamese_steps=0, hidden=(8,), **few), X),
        "ConCURL": (deep.ConCURL(3, n_steps=2, n_latent=8, random_state=0), pixels),
        "IEC": (deep.IEC(3, n_partitions=5, random_state=0), X),
        "k-means": (deep.AutoencoderClustering(3, **few), X),
        "mixture": (deep.AutoencoderClustering(clusterer=GaussianMixture(3), **few), X),
        "diagonal": (
            deep.AutoencoderClustering(clusterer=GaussianMixture(2, covariance_type="diag"), **few),
            X,
        ),
        "tied": (
            deep.AutoencoderClustering(clusterer=GaussianMixture(2, covariance_type="tied"), **few),
            X,
        ),
        "no predict": (
            deep.AutoencoderClustering(clusterer=AgglomerativeClustering(3), **few),
            X,
        ),
        "AutoencoderConsensus": (
            AutoencoderConsensus(3, members=["kmeans", "agglomerative"], **few),
            X,
        ),
        "ConsensusClustering": (
            ConsensusClustering(3, members=["kmeans", "agglomerative"], random_state=0),
            X,
        ),
        "gaps": (deep.DEC(3, n_steps=5, **few), with_gaps),
        "words": (deep.DEC(3, n_steps=5, **few), words),
        "pixels": (deep.DEC(3, n_steps=5, **few), pixels),
        "unscaled": (deep.DEC(3, n_steps=5, scale=None, **few), X),
        "huge": (deep.DEC(3, n_steps=5, scale="columns", **few), X * 1e305),
        "table": (deep.DEC(3, n_steps=5, **few), table),
        "AGAE": (deep.AGAE(3, n_partitions=3, n_steps=2, random_state=0), X),
    }
    known = {}

    def fitted(name):
        if name not in known:
            model, rows = made[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                known[name] = model.fit(rows), rows
        return known[name]

    return fitted
