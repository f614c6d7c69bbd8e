"""The paper's eight data sets, and small generators for its figures.

>>> from deccs import datasets
>>> datasets.names()
('synth', 'mice', 'pendigits', 'har', 'mnist', 'fmnist', 'kmnist', 'usps')
>>> X, y = datasets.load("synth", return_X_y=True)
"""

from deccs.datasets.generators import make_nonlinear, make_rings, make_synth
from deccs.datasets.loading import Dataset, load, names
from deccs.datasets.store import DatasetError

__all__ = ["Dataset", "DatasetError", "load", "make_nonlinear", "make_rings", "make_synth", "names"]
