"""What a value is, of libraries that take a second to load: whose values nobody can have before they are loaded."""

from __future__ import annotations

import sys
from typing import Any


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch.

    >>> is_tensor([1.0])
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_sparse(value: Any) -> bool:
    """Whether this is a sparse matrix or array of SciPy.

    >>> is_sparse([1.0])
    False
    """
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(value))


def is_module(value: Any) -> bool:
    """Whether this is a module of torch.

    >>> is_module([1.0])
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
