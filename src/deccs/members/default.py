"""The default members of an ensemble."""

from __future__ import annotations

from typing import Any

from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from deccs.members.agglomerative import Agglomerative
from deccs.members.spectral import NeighborSpectral

Member = tuple[str, Any]  # (name, anything with fit_predict) or (name, labels of all points)


def default_members(n_clusters: int) -> list[Member]:
    """The paper's heterogeneous ensemble: k-means, spectral, agglomerative, Gaussian mixture."""
    return [
        ("kmeans", KMeans(n_clusters, n_init=10)),
        ("spectral", NeighborSpectral(n_clusters)),
        ("agglomerative", Agglomerative(n_clusters)),
        ("mixture", GaussianMixture(n_clusters, covariance_type="full", reg_covar=1e-5, n_init=3)),
    ]
