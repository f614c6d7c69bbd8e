"""The clusterers of scikit-learn whose fitted state a file can hold: parameters and learned arrays."""

from __future__ import annotations

from typing import Any

from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture

from deccs.storage.values import Fields, register

CENTERS = ("n_features_in_", "cluster_centers_", "labels_", "inertia_", "n_iter_")
MIXTURE = (
    "n_features_in_",
    "weights_",
    "means_",
    "covariances_",
    "precisions_",
    "precisions_cholesky_",
    "converged_",
    "n_iter_",
    "lower_bound_",
    "lower_bounds_",
)


def keep(cls: type, learned: tuple[str, ...]) -> None:
    def take(clusterer: Any) -> Fields:
        found = {name: getattr(clusterer, name) for name in learned if hasattr(clusterer, name)}
        return {"params": clusterer.get_params(deep=False), "learned": found}

    def make(fields: Fields) -> Any:
        clusterer = cls(**fields["params"])
        for name in learned:
            if name in fields["learned"]:
                setattr(clusterer, name, fields["learned"][name])
        if learned is CENTERS:
            clusterer._n_threads = 1  # its predict asks for it
        return clusterer

    register(cls, take, make)


keep(KMeans, CENTERS)
keep(MiniBatchKMeans, CENTERS)
keep(GaussianMixture, MIXTURE)
