"""What users hand in -- arrays, memory maps, sparse matrices, tensors, data frames, images -- as one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.validation import validate_data


def as_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check X and give it back as (n_points, n_features): an array, a memory map or a CSR matrix.

    Images (n, h, w) are flattened. Nothing is copied that need not be.
    """
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu().numpy()
    if hasattr(X, "ndim") and not sp.issparse(X) and X.ndim > 2:
        X = X.reshape(len(X), -1)
    return validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype="numeric",
        ensure_min_samples=2 if reset else 1,
    )


def output_dtype(X: Any) -> type:
    """float32 in, float32 out; double otherwise."""
    return np.float32 if X.dtype == np.float32 else np.float64
