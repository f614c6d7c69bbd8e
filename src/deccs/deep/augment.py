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
    """Uniform within the bounds, in both directions; the defaults are the paper's."""

    def between(low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(n, generator=generator)

    return Motion(
        between(-rotation, rotation),
        between(-shear, shear),
        between(-shift, shift),
        between(-shift, shift),
        between(*scale),
    )


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
    back = inverse_map(motion, *images.shape[2:]).to(images)
    grid = functional.affine_grid(back, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
