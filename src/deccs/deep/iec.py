"""IEC (Liu, Shao, Li and Fu 2016): infinite ensemble clustering, many base partitions denoised in closed form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import solve

from deccs.consensus.partitions import DistinctRows
from deccs.consensus.projections import check_at_least
from deccs.deep.base_partitions import EnsembleEmbedding
from deccs.events import Progress


def with_constant(overlaps: np.ndarray, n_points: int) -> np.ndarray:
    """Scatter of the memberships and a constant one: (D, D) points shared -> (D + 1, D + 1).

    >>> with_constant(np.array([[2.0, 1.0], [1.0, 3.0]]), n_points=4)
    array([[2., 1., 2.],
           [1., 3., 3.],
           [2., 3., 4.]])
    """
    sizes = np.diag(overlaps)[:, None]
    return np.block([[overlaps, sizes], [sizes.T, np.full((1, 1), float(n_points))]])


def denoising_map(scatter: np.ndarray, noise: float) -> np.ndarray:
    """W = E[P] E[Q]^-1 (Chen et al. 2012): the linear map that best undoes ``noise`` on average over all noise.

    Each column but the last, the constant, is set to 0 with probability ``noise``, independently: as if the
    ensemble lost that cluster. With x~ the row x so corrupted, Q = sum x~ x~^T and P = sum x x~^T, and their
    expectations follow from the scatter sum x x^T alone: no noise is drawn and no row is looked at.

    (D + 1, D + 1) -> (D, D + 1)

    >>> denoising_map(np.array([[4.0, 0.0], [0.0, 4.0]]), noise=0.5)     # 0.5 * 4 / (0.5 * 4): what is left is it
    array([[1., 0.]])
    """
    kept = np.append(
        np.full(len(scatter) - 1, 1 - noise), 1.0
    )  # (D + 1,) chance that a column stays
    P = scatter * kept
    Q = scatter * np.outer(kept, kept)
    np.fill_diagonal(Q, np.diag(scatter) * kept)  # a column is kept with itself, or not
    return solve(Q, P.T, assume_a="pos").T[:-1]


def stacked_maps(scatter: np.ndarray, noise: float, n_layers: int) -> list[np.ndarray]:
    """From the memberships to each layer: n_layers times (D, D + 1). A layer denoises what the one before gives."""
    constant = np.eye(len(scatter))[-1:]
    maps, to_layer = [], np.eye(len(scatter))  # to_layer: (D + 1, D + 1)
    for _ in range(n_layers):
        W = denoising_map(to_layer @ scatter @ to_layer.T, noise)
        to_layer = np.vstack([W @ to_layer, constant])
        maps.append(to_layer[:-1])
    return maps


def principal_part(maps: Sequence[np.ndarray], scatter: np.ndarray, share: float) -> np.ndarray:
    """(D, n_components) B: rows of H B lie to one another as those of all layers side by side, to 1 - ``share``.

    The layers side by side have n_layers * D columns, most of them next to constant. Distances are all
    k-means looks at, so their principal components will do, and those follow from D x D matrices.
    """
    gram = sum(
        weights[:, :-1].T @ weights[:, :-1] for weights in maps
    )  # (D, D); shifts change nothing
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0))  # (D, D), root root^T = gram
    mean = scatter[:-1, -1] / scatter[-1, -1]
    covariance = scatter[:-1, :-1] / scatter[-1, -1] - np.outer(mean, mean)  # of H, (D, D)
    variances, directions = np.linalg.eigh(root.T @ covariance @ root)  # rising
    variances, directions = np.maximum(variances[::-1], 0), directions[:, ::-1]
    enough = np.searchsorted(np.cumsum(variances), share * variances.sum()) + 1
    return root @ directions[:, :enough]


class IEC(EnsembleEmbedding):
    """Infinite ensemble clustering: k-means on base partitions that a marginalized autoencoder has denoised.

    Many k-means with random numbers of clusters label the raw data. The one-hot labels side by side are the
    input of a denoising autoencoder whose noise takes clusters away; since it is linear, the weights for
    infinitely many noisy copies, that is for an ensemble without end, are known in closed form. k-means on
    its stacked layers gives the clusters. All that is held of the points are sparse labels.

    Parameters
    ----------
    n_clusters : int, default=8
    n_partitions : int, default=100
        Base partitions. Their numbers of clusters are drawn from n_clusters to twice that. Memory and time of
        the closed form grow with the square and the cube of all clusters together, some 150 * n_clusters.
    noise : float between 0 and 1, default=0.2
        Chance that a cluster is taken away.
    n_layers : int, default=5
        Maps on top of each other; k-means sees all of them side by side.
    scale, random_state, verbose, callbacks
        As for :class:`deccs.DECCS`; callbacks get ``on_progress``.

    Attributes
    ----------
    labels_ : (n_points,)
    cluster_centers_ : (n_clusters, n_components)
    components_ : (n_all_clusters, n_components), from memberships to the embedding
    ensemble_, base_partitions_ : the centers of the members, and their labels (n_partitions, n_points)
    scaler_ : what was learned about the columns' scale

    Notes
    -----
    ``predict`` asks the base partitions' centers for the labels of a new point, and embeds them with the
    same map. The embedding keeps the principal components with 99.9 % of the variance of all layers.

    Examples
    --------
    >>> from deccs import datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = IEC(2, n_partitions=10, random_state=0).fit(X)
    >>> model.labels_.shape, bool((model.predict(X) == model.labels_).all())
    ((120,), True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_partitions: int = 100,
        noise: float = 0.2,
        n_layers: int = 5,
        scale: str | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_partitions = n_partitions
        self.noise = noise
        self.n_layers = n_layers
        self.scale = scale
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        check_at_least("n_layers", self.n_layers, 1)
        if isinstance(self.noise, bool | str) or not 0 < self.noise < 1:
            raise ValueError(f"noise is a chance between 0 and 1, got {self.noise!r}.")

    def _most_clusters(self, n_points: int) -> int:
        return 2 * self.n_clusters

    def _learn(
        self, rows: DistinctRows, X: Any, root: int, on_progress: Callable[[Progress], None]
    ) -> np.ndarray:
        scatter = with_constant(rows.overlaps, len(rows.row_of))  # (D + 1, D + 1)
        self.components_ = principal_part(
            stacked_maps(scatter, self.noise, self.n_layers), scatter, share=0.999
        )
        return self._embed(rows.membership)

    def _embed(self, H: Any) -> np.ndarray:
        return H @ self.components_
