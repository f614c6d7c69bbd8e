"""Made-up images."""

from __future__ import annotations

import numpy as np


def blots(n=60, height=8, width=8, seed=0):
    """(n, height, width): a soft round blot in each image, on the left or on the right."""
    rng = np.random.default_rng(seed)
    side = np.where(np.arange(n) % 2, 0.25, 0.75)
    x = (side + rng.uniform(-0.1, 0.1, n)) * width  # (n,)
    y = rng.random(n) * height
    across = np.exp(-((np.arange(width) + 0.5 - x[:, None]) ** 2) / 3)  # (n, width)
    down = np.exp(-((np.arange(height) + 0.5 - y[:, None]) ** 2) / 3)
    return down[:, :, None] * across[:, None, :]
