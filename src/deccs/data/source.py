"""Where the rows are read from."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def dense_block(X: Any, index: Any) -> np.ndarray:
    """Some rows of an array, a memory map or a sparse matrix as a dense array of doubles."""
    block: Any = X[index]
    return (block.toarray() if sp.issparse(X) else np.asarray(block)).astype(np.float64, copy=False)


def rows_at_once(n_features: int) -> int:
    """As many as fit into 32 MB of doubles: wide sparse data must not become gigabytes.

    >>> rows_at_once(784), rows_at_once(50_000)
    (4096, 83)
    """
    return max(64, min(4096, 2**22 // n_features))


def blocks(n_rows: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def is_memory_map(X: Any) -> bool:
    """Whether the array, or what it is a view of, lives in a file."""
    while X is not None:
        if isinstance(X, np.memmap):
            return True
        X = getattr(X, "base", None)
    return False
