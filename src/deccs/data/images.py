"""Whether the rows of a source are images, and of which shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from deccs.data.source import RowSource
from deccs.rules import LEAST_SIDE, image_shape_of_rows

MOST_LOOKED_AT = 1_000  # rows are enough to tell


def image_shape_of(
    source: RowSource, given: Sequence[int] | str | None = "auto"
) -> tuple[int, int] | None:
    """(height, width) of the image in each row, None where rows are no images.

    ``given`` is the user's setting. "auto" takes the shape of an array (n, height, width), or looks
    at the pixels of a flat one.
    """
    n_rows, n_features = source.shape
    if given is None:
        return None
    if not isinstance(given, str):
        height, width = given
        if height * width != n_features:
            raise ValueError(
                f"image_shape must be (height, width) with height x width = {n_features} columns, "
                f"got {given!r}."
            )
        return int(height), int(width)
    shape: tuple[int, int] | None = getattr(source, "image_shape", None)
    if shape is not None:
        return shape if min(shape) >= LEAST_SIDE else None
    side = math.isqrt(n_features)
    if side * side != n_features or side < LEAST_SIDE:
        return None  # no row needs to be read
    looked_at = np.linspace(0, n_rows - 1, min(n_rows, MOST_LOOKED_AT)).astype(np.int64)
    rows = source.read(looked_at)
    # In units of the largest value: the square of any pixel can be computed, and no digit changes.
    return image_shape_of_rows(np.ldexp(rows, -np.frexp(np.abs(rows).max())[1]))
