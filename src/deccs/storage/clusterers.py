"""The clusterers of scikit-learn whose fitted state a file can hold: parameters and learned arrays."""

from __future__ import annotations

from typing import Annotated, Any

from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture

from deccs.checks import whole
from deccs.storage.schema import Maybe, check_fields, reals, wholes
from deccs.storage.values import Fields, NotKept, register

CENTERS: dict[str, Any] = {
    "n_features_in_": Annotated[int, whole(at_least=1)],
    "cluster_centers_": reals("n_clusters", "n_features"),
    "labels_": Maybe(wholes("n_points", least=0, below="n_clusters")),
    "inertia_": Maybe(float),
    "n_iter_": Maybe(int),
}
MIXTURE: dict[str, Any] = {
    "n_features_in_": Annotated[int, whole(at_least=1)],
    "weights_": reals("n_clusters", least=0),
    "means_": reals("n_clusters", "n_features"),
    "covariances_": Any,
    "precisions_": Any,
    "precisions_cholesky_": Any,
    "converged_": bool,
    "n_iter_": int,
    "lower_bound_": float,
    "lower_bounds_": Maybe(list[float]),
}
SHAPES = {  # of the three matrices of a mixture
    "full": ("n_clusters", "n_features", "n_features"),
    "tied": ("n_features", "n_features"),
    "diag": ("n_clusters", "n_features"),
    "spherical": ("n_clusters",),
}


def keep(cls: type, learned: dict[str, Any]) -> None:
    """Let files hold clusterers of this class; ``learned`` says what they learn."""

    def take(clusterer: Any) -> Fields:
        found = {name: getattr(clusterer, name) for name in learned if hasattr(clusterer, name)}
        return {"params": clusterer.get_params(deep=False), "learned": found}

    def make(fields: Fields) -> Any:
        params = fields["params"].items()
        clusterer = cls(**{name: part for name, part in params if not isinstance(part, NotKept)})
        clusterer._validate_params()
        values, hints = fields["learned"], dict(learned)
        if cls is GaussianMixture:
            shape = SHAPES[clusterer.covariance_type]
            matrices = ("covariances_", "precisions_", "precisions_cholesky_")
            hints |= dict.fromkeys(matrices, reals(*shape))
        n_clusters = clusterer.n_components if cls is GaussianMixture else clusterer.n_clusters
        sizes = {"n_features": values["n_features_in_"], "n_clusters": n_clusters}
        check_fields(cls.__name__, values, hints, sizes)
        for name in hints:
            if name in values:
                setattr(clusterer, name, values[name])
        if learned is CENTERS:
            clusterer._n_threads = 1  # its predict asks for it
        return clusterer

    register(cls, take, make)


keep(KMeans, CENTERS)
keep(MiniBatchKMeans, CENTERS)
keep(GaussianMixture, MIXTURE)
