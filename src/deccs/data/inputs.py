"""What users hand in -- arrays, frames, tensors, images, sparse matrices, sources -- as one source of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.validation import validate_data

from deccs.data.source import RowSource, source_of


def as_source(estimator: Any, X: Any, *, reset: bool) -> RowSource:
    """Check X and make it a source of rows. Images (n, h, w) are flattened; nothing is copied in vain."""
    if isinstance(X, RowSource):
        return checked_source(estimator, X, reset=reset)
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu().numpy()
    if hasattr(X, "ndim") and not sp.issparse(X) and X.ndim > 2:
        X = X.reshape(len(X), -1)
    least = 2 if reset else 1
    table = validate_data(
        estimator, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_min_samples=least
    )
    return source_of(table)


def checked_source(estimator: Any, source: RowSource, *, reset: bool) -> RowSource:
    """The checks scikit-learn would make; values are checked when they are read."""
    n_rows, n_features = source.shape
    if n_rows < (2 if reset else 1):
        raise ValueError(f"Found a source with {n_rows} row(s); a fit needs at least 2.")
    if reset:
        estimator.n_features_in_ = n_features
    elif n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return source


def output_dtype(source: RowSource) -> type:
    """float32 in, float32 out; double otherwise."""
    return np.float32 if source.dtype == np.float32 else np.float64
