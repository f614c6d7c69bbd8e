"""Fits of more rows than they learn from: a sample teaches them, and all rows are labeled in parts."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deccs.scores import ari
from tests.helpers.large import N_LEARNED, N_PART, blobs_of, frame_of, lower_limits


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
