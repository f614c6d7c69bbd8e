"""The columns of a fit as they can be described: from coded rows back to what people know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deccs.data.coding import Coding
from deccs.describing.columns import Described


def described_columns(
    cells: np.ndarray, coding: Coding | None, names: Sequence[str] = ()
) -> list[Described]:
    """The columns of coded rows, (n, n_cells); of an array, columns of numbers with these names.

    Free text is left out: nothing short can be said of it.

    >>> [column.name for column in described_columns(np.zeros((2, 2)), None, ("size", "weight"))]
    ['size', 'weight']
    """
    if coding is None:
        return [
            Described(str(name), "number", values)
            for name, values in zip(names, cells.T, strict=True)
        ]
    return [
        Described(column.name, column.kind, cells[:, place], column.levels, column.is_whole)
        for column, place in zip(coding.columns, coding.first_cells, strict=True)
        if column.kind != "text"
    ]
