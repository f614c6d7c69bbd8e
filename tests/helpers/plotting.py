"""Reading colors off matplotlib axes."""

import numpy as np
from matplotlib.colors import to_hex


def points_of(ax):
    """Colors of the points of an axes, in the order of their places from left to right."""
    drawn = ax.collections[0]
    order = np.argsort(drawn.get_offsets()[:, 0])
    return [to_hex(color).upper() for color in drawn.get_facecolors()[order]]
