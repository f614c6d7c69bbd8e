"""Members that change what they should not."""

import os
import random
import warnings

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClusterMixin


class Meddles(ClusterMixin, BaseEstimator):
    """Splits by the first column, after doing what it should not."""

    def __init__(self, meddle):
        self.meddle = meddle

    def fit(self, X, y=None):
        labels = (X[:, 0] > np.median(X[:, 0])).astype(int)
        self.meddle(X)
        self.labels_ = labels
        return self


def global_state():
    return {
        "random": random.getstate(),
        "numpy": str(np.random.get_state()),  # noqa: NPY002
        "torch": torch.get_rng_state().tolist(),
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "filters": list(warnings.filters),
        "errors": np.geterr(),
        "variables": dict(os.environ),
        "folder": os.getcwd(),
    }


def change_everything(X):
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_num_threads(torch.get_num_threads() + 1)
    warnings.simplefilter("error")
    np.seterr(all="raise")
    os.environ["OMP_NUM_THREADS"] = "64"
    os.environ.pop("PATH")
    os.chdir("/")
