"""Scaling, and rows read from an array, a file or a sparse matrix."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal

from deccs.data.rows import Rows
from deccs.data.scaling import fit_scaler, share_one_range
from deccs.data.source import blocks, dense_block, is_memory_map


def pixels(n=50, d=9, seed=0):
    X = np.random.default_rng(seed).integers(0, 256, (n, d))
    X[0], X[1] = 0, 255  # every pixel is black once and white once
    return X


def mixed(n=50, seed=0):
    """Age, income and a share: three columns on three scales."""
    return np.random.default_rng(seed).uniform(size=(n, 3)) * [80, 1e5, 1] + [0, 1e4, 0]


def test_pixels_get_one_mean_and_deviation():
    X = pixels()
    scaler = fit_scaler(X)
    assert scaler.kind == "global"
    assert_allclose([scaler.mean, scaler.deviation], [X.mean(), X.std()])
    assert_allclose([scaler(X).mean(), scaler(X).std()], [0, 1], atol=1e-12)


def test_pixels_with_black_borders_are_still_pixels():
    X = pixels()
    X[:, :3] = 0
    scaler = fit_scaler(X)
    assert scaler.kind == "global"
    assert_allclose([scaler.mean, scaler.deviation], [X.mean(), X.std()])


def test_mixed_columns_get_their_own():
    X = mixed()
    scaler = fit_scaler(X)
    assert scaler.kind == "columns"
    assert_allclose(scaler(X).mean(axis=0), 0, atol=1e-12)
    assert_allclose(scaler(X).std(axis=0), 1)


def test_standardized_data_is_left_alone():
    for X, scale in ((mixed(), "columns"), (pixels(), "global")):
        standard = fit_scaler(X, scale)(X)
        again = fit_scaler(standard)
        assert again.kind == "none"
        assert again(standard) is standard


def test_the_user_decides():
    assert fit_scaler(pixels(), "columns").kind == "columns"
    assert fit_scaler(mixed(), "global").kind == "global"
    assert fit_scaler(mixed(), None).kind == "none"
    with pytest.raises(
        ValueError,
        match=r"scale must be one of \('auto', 'global', 'columns', None\), got 'minmax'",
    ):
        fit_scaler(mixed(), "minmax")


def test_share_one_range():
    assert share_one_range(np.array([0, 0, 0]), np.array([1, 1, 0.96]))
    assert not share_one_range(np.array([0, 0, 0]), np.array([1, 1, 9]))  # one column sticks out
    assert not share_one_range(np.array([0, 0]), np.array([1, 1]))  # two columns are a coincidence


def test_a_constant_column_is_centered_and_not_blown_up():
    X = mixed()
    X[:, 1] = 1e6 / 3
    scaled = fit_scaler(X, "columns")(X)
    assert_allclose(scaled[:, 1], 0, atol=1e-6)
    assert np.isfinite(fit_scaler(np.full((4, 3), 5.0))(np.full((4, 3), 5.0))).all()


def test_a_column_with_a_large_mean_keeps_its_digits():
    """Seconds since 1970, an hour apart: the mean is a million deviations."""
    steps = np.random.default_rng(0).normal(size=(6_000, 1))
    scaler = fit_scaler(np.hstack([1.7e9 + 1000 * steps, steps]), "columns")
    scaled = scaler(np.hstack([1.7e9 + 1000 * steps, steps]))
    assert_allclose(scaled[:, 0], scaled[:, 1], atol=1e-8)


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6, 1e12])
def test_the_unit_of_a_column_changes_nothing(unit):
    X = mixed()
    assert_allclose(fit_scaler(X * unit, "columns")(X * unit), fit_scaler(X, "columns")(X))


def test_moments_over_many_blocks_equal_numpy():
    X = np.random.default_rng(0).normal(3, 2, (8_199, 2)) * [1, 10]
    scaler = fit_scaler(X, "columns")
    assert_allclose(scaler.mean, X.mean(axis=0))
    assert_allclose(scaler.deviation, X.std(axis=0))
    assert_allclose(fit_scaler(X, "global").deviation, X.std())


def test_blocks_cover_every_row_once():
    assert blocks(5, 2) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert blocks(0, 2) == []


def test_array_file_and_sparse_matrix_give_equal_rows(tmp_path):
    X = mixed() * (np.random.default_rng(1).uniform(size=(50, 3)) > 0.5)
    np.save(tmp_path / "X.npy", X)
    file = np.load(tmp_path / "X.npy", mmap_mode="r")
    kinds = {
        "array": X,
        "file": file,
        "view of a file": np.asarray(file)[:],
        "sparse": sp.csr_matrix(X),
        "sparse array": sp.csr_array(X),
    }
    some = torch.tensor([3, 3, 49, 0])
    for name, kind in kinds.items():
        rows = Rows(kind, fit_scaler(kind))
        assert len(rows) == 50
        assert rows[some].dtype == torch.float32
        assert_array_equal(rows[some], Rows(X, fit_scaler(X))[some], err_msg=name)
        assert_array_equal(rows[slice(10, 20)], Rows(X, fit_scaler(X))[slice(10, 20)], err_msg=name)


def test_a_file_is_not_read_into_memory(tmp_path):
    np.save(tmp_path / "X.npy", mixed())
    file = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert is_memory_map(file)
    assert is_memory_map(np.asarray(file)[:10])
    assert not is_memory_map(mixed())
    rows = Rows(file, fit_scaler(file))
    assert rows._table is None
    assert Rows(mixed(), fit_scaler(mixed()))._table is not None


def test_rows_are_scaled_by_hand():
    X = np.array([[0.0, 10], [2, 30]])
    assert_array_equal(Rows(X, fit_scaler(X, "columns"))[torch.tensor([0, 1])], [[-1, -1], [1, 1]])
    assert_array_equal(dense_block(sp.csr_matrix(X), slice(1, 2)), [[2, 30]])
