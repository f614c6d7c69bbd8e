"""The real data, where DECCS_DATA has it: sizes, class counts, moments and checksums of the content."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from deccs import datasets
from deccs.datasets import store
from deccs.datasets.sources import SOURCES, content_sha256

FOLDER = Path(os.environ.get("DECCS_DATA") or "/nowhere")
pytestmark = pytest.mark.skipif(
    "DECCS_DATA" not in os.environ, reason="set DECCS_DATA to test the real data"
)

COUNTS = {
    "synth": [500] * 4,
    "mice": [45, 60, 75, 75, 90, 60, 75, 72],
    "pendigits": [1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055],
    "har": [1722, 1544, 1406, 1777, 1906, 1944],
    "mnist": [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958],
    "fmnist": [7000] * 10,
    "usps": [1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821],
}


def need(name):
    if not (FOLDER / f"{name}.npz").is_file():
        pytest.skip(f"no {name}.npz in DECCS_DATA")


@pytest.mark.parametrize("name", datasets.names())
def test_shape_labels_and_scaling(name):
    need(name)
    data, source = datasets.load(name), SOURCES[name]
    assert data.X.shape == (data.n, source.d) and data.X.dtype == np.float32
    assert data.source == str(FOLDER / f"{name}.npz")
    if name != "kmnist":  # its file may hold a part
        assert data.n == source.n
        assert_array_equal(np.bincount(data.y), COUNTS[name])
    if source.scaling == "global":
        assert data.X.mean(dtype=np.float64) == pytest.approx(0, abs=1e-5)
        mean_square = np.einsum("ij,ij->", data.X, data.X, dtype=np.float64) / data.X.size
        assert mean_square == pytest.approx(1, abs=1e-5)
        assert np.prod(data.image_shape) == data.d
    if source.scaling == "feature":
        assert_allclose(data.X.mean(axis=0, dtype=np.float64), 0, atol=1e-5)
        assert_allclose(data.X.std(axis=0, dtype=np.float64), 1, atol=1e-5)


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.content])
def test_content_is_what_a_download_is_checked_against(name):
    need(name)
    source = SOURCES[name]
    assert content_sha256(*store.read(FOLDER / f"{name}.npz", source)) == source.content


def test_usps_has_the_moments_of_the_copy_the_paper_used():
    need("usps")
    X, _ = datasets.load("usps", return_X_y=True, normalize=False)
    pixels = ((X + 1) / 2 * 255).astype(np.uint8) / 255
    assert pixels.mean() == pytest.approx(0.2497, abs=5e-5)
    assert pixels.std() == pytest.approx(0.3010, abs=5e-5)


def test_the_generated_synth_looks_like_the_authors():
    need("synth")
    theirs, made = datasets.load("synth"), datasets.make_synth()
    for label in range(4):
        ours, file = made[0][made[1] == label], theirs.X[theirs.y == label]
        assert_allclose(ours.mean(axis=0), file.mean(axis=0), atol=0.01)
        assert_allclose(np.cov(ours.T), np.cov(file.T), atol=0.01)
