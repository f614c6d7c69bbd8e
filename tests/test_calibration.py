"""Confidence against the truth, by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deccs.calibration import bins_of, calibration_error


def test_bins_by_hand():
    bins = bins_of([0.05, 0.31, 0.39, 1.0], [False, True, False, True])
    assert bins.counts.tolist() == [1, 0, 0, 2, 0, 0, 0, 0, 0, 1]
    assert_allclose(bins.confidence[[0, 3, 9]], [0.05, 0.35, 1.0])
    assert_allclose(bins.share_right[[0, 3, 9]], [0, 0.5, 1])
    assert bins.error == pytest.approx((0.05 + 2 * 0.15 + 0) / 4)


def test_equal_to_a_slow_loop():
    rng = np.random.default_rng(0)
    values, right = rng.uniform(size=500), rng.uniform(size=500) < 0.6
    gaps = 0.0
    for place in range(7):
        inside = (values >= place / 7) & (values < (place + 1) / 7)
        gaps += abs(values[inside].sum() - right[inside].sum())
    assert calibration_error(values, right, n_bins=7) == pytest.approx(gaps / 500)


def test_a_constant_that_is_the_share_of_right_rows_is_calibrated():
    assert calibration_error(np.full(10, 0.7), np.arange(10) < 7) == pytest.approx(0)


@pytest.mark.parametrize(
    ("confidence", "is_right", "message"),
    [
        ([0.5, 0.5], [True], "one value for each"),
        ([], [], "at least one row"),
        ([1.2], [True], "from 0 to 1, got 1.2"),
        ([np.nan], [True], "from 0 to 1"),
        ([0.5], [2], "True or False"),
    ],
)
def test_what_cannot_be_compared_is_said(confidence, is_right, message):
    with pytest.raises(ValueError, match=message):
        calibration_error(confidence, is_right)
