"""Moved images: where every pixel goes, worked out by hand."""

import pytest
import torch
from numpy.testing import assert_allclose

from deccs.data.augment import Motion, draw_motion, draw_small_motion, move


def motion(rotation=0.0, shear=0.0, shift_x=0.0, shift_y=0.0, scale=1.0):
    return Motion(
        *(torch.tensor([float(value)]) for value in (rotation, shear, shift_x, shift_y, scale))
    )


def image(*lines):
    return torch.tensor(lines, dtype=torch.float32)[None, None]


CORNER = image([0, 0, 0, 0], [0, 1, 2, 0], [0, 3, 4, 0], [0, 0, 0, 0])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (motion(), CORNER),
        (
            motion(shift_x=0.25),
            image([0, 0, 0, 0], [0, 0, 1, 2], [0, 0, 3, 4], [0, 0, 0, 0]),
        ),  # a pixel to the right
        (
            motion(shift_y=-0.25),
            image([0, 1, 2, 0], [0, 3, 4, 0], [0, 0, 0, 0], [0, 0, 0, 0]),
        ),  # a pixel up
        (
            motion(rotation=90),
            image([0, 0, 0, 0], [0, 3, 1, 0], [0, 4, 2, 0], [0, 0, 0, 0]),
        ),  # clockwise
        (
            motion(shear=45),
            image([0, 0, 0, 0], [0.5, 1.5, 1, 0], [0, 1.5, 3.5, 2], [0, 0, 0, 0]),
        ),  # half a pixel each
        (
            motion(scale=0.5),
            image([0, 0, 0, 0], [0, 0.25, 0.5, 0], [0, 0.75, 1, 0], [0, 0, 0, 0]),
        ),  # means of four
    ],
)
def test_an_image_moves_as_told(how, expected):
    assert_allclose(move(CORNER, how), expected, atol=1e-5)


def test_what_comes_into_sight_is_like_the_edge():
    assert_allclose(move(image([1, 2, 3, 4]), motion(shift_x=0.5)), image([1, 1, 1, 2]))


def test_a_rotation_turns_pixels_also_where_the_image_is_wide():
    wide = torch.zeros(1, 1, 5, 9)
    wide[0, 0, 2, 3:6] = 1  # a line of three pixels in the middle
    turned = torch.zeros(1, 1, 5, 9)
    turned[0, 0, 1:4, 4] = 1
    assert_allclose(move(wide, motion(rotation=90)), turned, atol=1e-5)


def test_motions_stay_within_the_bounds_and_use_them():
    drawn = draw_motion(10_000, torch.Generator().manual_seed(0))
    bounds = {
        "rotation": (-10, 10),
        "shear": (-10, 10),
        "shift_x": (-0.1, 0.1),
        "shift_y": (-0.1, 0.1),
        "scale": (0.6, 1.2),
    }
    for name, (low, high) in bounds.items():
        values, slack = getattr(drawn, name), 0.01 * (high - low)
        assert low <= values.min() < low + slack and high - slack < values.max() <= high


def test_a_small_motion_is_small():
    drawn = draw_small_motion(1_000, torch.Generator().manual_seed(0))
    assert not drawn.shear.any()
    assert drawn.rotation.abs().max() <= 10
    assert max(drawn.shift_x.abs().max(), drawn.shift_y.abs().max()) <= 0.1
    assert 0.9 <= drawn.scale.min() < drawn.scale.max() <= 1.1
