"""Images rotated, sheared, shifted and scaled at random: two views of one image show the same thing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional


@dataclass(frozen=True)
class Motion:
    """How each image is moved; every field is (n,)."""

    rotation: torch.Tensor  # degrees, clockwise on the screen (y points down)
    shear: torch.Tensor  # degrees, along x
    shift_x: torch.Tensor  # share of the width
    shift_y: torch.Tensor  # share of the height
    scale: torch.Tensor  # 0.5: half as large


def draw_motion(
    n: int,
    generator: torch.Generator,
    *,
    rotation: float = 10.0,
    shear: float = 10.0,
    shift: float = 0.1,
    scale: tuple[float, float] = (0.6, 1.2),
) -> Motion:
    """Uniform within the bounds, in both directions; the defaults are those of ConCURL's paper."""

    def between(low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(n, generator=generator)

    return Motion(
        between(-rotation, rotation),
        between(-shear, shear),
        between(-shift, shift),
        between(-shift, shift),
        between(*scale),
    )


def draw_small_motion(n: int, generator: torch.Generator) -> Motion:
    """So small that the image still shows the same thing: no shear, hardly another size."""
    return draw_motion(n, generator, rotation=10.0, shear=0.0, shift=0.1, scale=(0.9, 1.1))


def inverse_map(motion: Motion, height: int, width: int) -> torch.Tensor:
    """(n, 2, 3): where each point of the moved image comes from, in torch's coordinates (-1 to 1 across).

    A point p goes to ``scale * rotation @ shear @ p + shift``; this is the inverse.
    """
    angle, slope = motion.rotation.deg2rad(), motion.shear.deg2rad().tan()
    cos, sin = angle.cos(), angle.sin()
    # A rotation acts on pixels, and -1 to 1 may be more pixels in one direction than in the other.
    aspect = height / width
    to_x = torch.stack([cos + slope * sin, (sin - slope * cos) * aspect], 1)  # (n, 2)
    to_y = torch.stack([-sin / aspect, cos], 1)
    back = torch.stack([to_x, to_y], 1) / motion.scale[:, None, None]  # (n, 2, 2)
    shift = 2 * torch.stack([motion.shift_x, motion.shift_y], 1)[:, :, None]  # (n, 2, 1)
    return torch.cat([back, -back @ shift], 2)


def move(images: torch.Tensor, motion: Motion) -> torch.Tensor:
    """(n, channels, height, width) -> the same shape. What comes into view repeats the pixel at the edge."""
    n, _, height, width = images.shape
    back = inverse_map(motion, height, width).to(images)
    # One product for all images: three times as fast as torch's affine_grid.
    come_from = back.flatten(0, 1) @ pixel_centers(height, width).to(images)  # (2 n, pixels)
    grid = come_from.view(n, 2, height, width).permute(0, 2, 3, 1)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def pixel_centers(height: int, width: int) -> torch.Tensor:
    """(3, pixels): x, y and 1 of each pixel's center, line by line, in torch's coordinates.

    >>> pixel_centers(1, 2)
    tensor([[-0.5000,  0.5000],
            [ 0.0000,  0.0000],
            [ 1.0000,  1.0000]])
    """
    x = (2 * torch.arange(width) + 1) / width - 1
    y = (2 * torch.arange(height) + 1) / height - 1
    return torch.stack([x.repeat(height), y.repeat_interleave(width), torch.ones(height * width)])
