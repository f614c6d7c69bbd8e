"""Numbers of any size beside clear clusters: found all the same, and outliers stay finite."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

from deccs import (
    DECCS,
    Autoencoder,
    ConsensusClustering,
    Pretraining,
    RandomProjectionEM,
    Rounds,
    TrainingError,
)
from deccs.data.rows import Rows
from deccs.data.scalers import fit_scaler
from deccs.data.scaling import Scaler
from deccs.data.source import source_of
from deccs.deep import DEC, IEC
from deccs.scores import ari
from tests.helpers.slow import mostly_slow
from tests.helpers.small import small_deccs

N = 120
BLOBS, CLASSES = make_blobs(N, centers=3, n_features=4, cluster_std=0.6, random_state=0)
RNG = np.random.default_rng(0)
STEPS = RNG.integers(0, 1_000, N)
COLUMNS = {
    "order numbers": 1e15 + STEPS,
    "microseconds": 1.7e15 + 1e6 * np.arange(N),
    "keys of 2^60": 2**60 + STEPS,
    "random keys of 2^63": RNG.integers(0, 2**63 - 1, N),
    "unsigned keys": np.uint64(2**63) + STEPS.astype(np.uint64),
    "1e300": 1e300 * RNG.normal(size=N),
    "1e-300": 1e-300 * RNG.normal(size=N),
    "denormal": 5e-324 * RNG.integers(1, 9_999, N),
}
SHORT = {"pretraining": Pretraining(n_steps=200)}
METHODS = {
    "ConsensusClustering": lambda: ConsensusClustering(3, random_state=0),
    "RandomProjectionEM": lambda: RandomProjectionEM(3, random_state=0),
    "IEC": lambda: IEC(3, n_partitions=20, random_state=0),
    "DEC": lambda: DEC(3, n_steps=50, **SHORT, random_state=0),
    "DECCS": lambda: DECCS(3, rounds=Rounds(n_rounds=1, n_steps=20), **SHORT, random_state=0),
}


@pytest.mark.parametrize("method", mostly_slow(METHODS, ("ConsensusClustering", "DEC")))
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_column_of_any_size_does_not_hide_clear_clusters(column, method):
    X = np.column_stack([BLOBS, COLUMNS[column].astype(np.float64)])
    model = METHODS[method]().fit(X)
    assert ari(CLASSES, model.labels_) > 0.95
    outliers = X[:4].copy()
    outliers[0, 0], outliers[1, 1], outliers[2, 4], outliers[3] = 1e9, 1e300, -1.7e308, 1e300
    answer = model.answer(outliers)
    assert np.isfinite(answer.confidence).all() and np.isfinite(answer.Z).all()


def test_whole_numbers_beyond_doubles_are_scaled_as_they_are():
    keys = RNG.integers(2**62, 2**63 - 1, (50, 3))
    for X in (keys, keys.astype(np.uint64) * 2):
        scaled = fit_scaler(source_of(X))(source_of(X).read(slice(0, 50)))
        np.testing.assert_allclose(scaled.std(), 1, rtol=0.1)


def test_networks_are_not_given_what_single_precision_cannot_hold():
    X = BLOBS * 1e60
    with pytest.raises(ValueError, match="scale='auto'"):
        Rows(source_of(X), Scaler("none", np.zeros(()), np.ones(())))
    assert Rows(source_of(X), fit_scaler(source_of(X)))[slice(0, N)].abs().max() < 10


def test_moved_images_keep_their_offset_in_double_precision():
    images = RNG.random((20, 64))
    plain, far = (
        Rows(source_of(X), fit_scaler(source_of(X), "columns"), image_shape=(8, 8))
        for X in (images, 1e12 + images)
    )
    index = torch.arange(20)
    moved, far_moved = (
        rows.moved(index, torch.Generator().manual_seed(0)) for rows in (plain, far)
    )
    torch.testing.assert_close(moved, far_moved, atol=1e-2, rtol=1e-2)


class NanInTraining(torch.nn.Linear):
    """A layer of the user's own that works until it is trained."""

    def forward(self, x):
        return super().forward(x) * (float("nan") if self.training else 1.0)


def test_a_network_that_gives_nan_in_training_is_an_error(blobs):
    network = (NanInTraining(4, 2), torch.nn.Linear(2, 4))
    with pytest.raises(
        TrainingError, match="pretraining: the loss was NaN or infinite at every check"
    ):
        small_deccs(network=network).fit(blobs.X)
    pretrained = Autoencoder(*network, pretrained=True)
    with pytest.raises(TrainingError, match="update: the loss was NaN or infinite at every check"):
        small_deccs(network=pretrained).fit(blobs.X)


def test_one_cluster_is_found_without_training(blobs):
    long = Pretraining(n_epochs=100_000, layerwise_epochs=10, grid={"batch_size": [32, 64]})
    model = DECCS(1, pretraining=long, random_state=0).fit(blobs.X)
    assert set(model.labels_) == set(model.predict(blobs.X)) == {0}
    assert model.n_iter_ == 1 and np.isfinite(model.transform(blobs.X)).all()
