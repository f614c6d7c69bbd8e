"""IEC (Liu, Shao, Li and Fu 2016): infinite ensemble clustering, many base partitions denoised in closed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.linalg import solve
from scipy.sparse import csr_array

from deccs.base import Fit
from deccs.checks import share, whole
from deccs.consensus.partitions import DistinctRows
from deccs.deep.base_partitions import EnsembleEmbedding
from deccs.storage import reals

MOST_COLUMNS = 20_000  # clusters of all partitions: a matrix of their pairs has 3.2 GB


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
    """W = E[P] E[Q]^-1 (Chen et al. 2012): the linear map that best undoes ``noise``, averaged over all noise.

    Each column but the last, the constant, is set to 0 with probability ``noise``, independently,
    as if the ensemble lost that cluster. With x~ the corrupted row x, Q = sum x~ x~^T and
    P = sum x x~^T. Their expectations follow from the scatter sum x x^T alone: no noise is drawn,
    and the rows are not needed.

    (D + 1, D + 1) -> (D, D + 1)

    >>> denoising_map(np.array([[4.0, 0.0], [0.0, 4.0]]), noise=0.5)  # 0.5 * 4 / (0.5 * 4)
    array([[1., 0.]])
    """
    # (D + 1,) the probability that a column stays
    kept = np.append(np.full(len(scatter) - 1, 1 - noise), 1.0)
    P = scatter * kept
    Q = scatter * np.outer(kept, kept)
    np.fill_diagonal(Q, np.diag(scatter) * kept)  # one draw, not two, for a column with itself
    return solve(Q, P.T, assume_a="pos").T[:-1]


def stacked_maps(scatter: np.ndarray, noise: float, n_layers: int) -> list[np.ndarray]:
    """From the memberships to each layer: n_layers times (D, D + 1). A layer denoises the output of the one before."""
    constant = np.eye(len(scatter))[-1:]
    maps, to_layer = [], np.eye(len(scatter))  # to_layer: (D + 1, D + 1)
    for _ in range(n_layers):
        W = denoising_map(to_layer @ scatter @ to_layer.T, noise)
        to_layer = np.vstack([W @ to_layer, constant])
        maps.append(to_layer[:-1])
    return maps


def principal_part(maps: Sequence[np.ndarray], scatter: np.ndarray, share: float) -> np.ndarray:
    """B, (D, n_components): rows of H B are as far apart as those of all layers side by side.

    The components hold ``share`` of the variance. The layers side by side have n_layers * D columns,
    most of them nearly constant. k-means looks only at distances, so their principal components
    will do, and those follow from D x D matrices.
    """
    # (D, D); without the constant, since shifts do not change distances
    gram = sum(weights[:, :-1].T @ weights[:, :-1] for weights in maps)
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0))  # (D, D), root root^T = gram
    mean = scatter[:-1, -1] / scatter[-1, -1]
    covariance = scatter[:-1, :-1] / scatter[-1, -1] - np.outer(mean, mean)  # of H, (D, D)
    variances, directions = np.linalg.eigh(root.T @ covariance @ root)  # ascending
    variances, directions = np.maximum(variances[::-1], 0), directions[:, ::-1]
    enough = np.searchsorted(np.cumsum(variances), share * variances.sum()) + 1
    return root @ directions[:, :enough]


@dataclass(eq=False, repr=False, kw_only=True)
class IEC(EnsembleEmbedding, method="IEC"):
    """Infinite ensemble clustering: k-means on base partitions that a marginalized autoencoder has denoised.

    Many k-means with random numbers of clusters label the raw data. Their one-hot labels side by
    side are the input of a denoising autoencoder whose noise removes clusters. It is linear, so the
    weights for infinitely many noisy copies, which is an infinite ensemble, have a closed form.
    k-means on its stacked layers gives the clusters. Only sparse labels of the points are held.

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
    n_partitions : int, default=100
        Base partitions. Their numbers of clusters are drawn from n_clusters to twice that. Memory
        and time of the closed form grow with the square and the cube of the number of all clusters,
        which is about 150 * n_clusters.
    noise : float between 0 and 1, default=0.2
        Probability that a cluster is removed.
    n_layers : int, default=5
        Maps on top of each other; k-means sees all of them side by side.
    scale, random_state, verbose, callbacks
        As for :class:`deccs.DECCS`.

    Attributes
    ----------
    labels_ : (n_points,)
    cluster_centers_ : (n_clusters, n_components)
    components_ : (n_all_clusters, n_components), from memberships to the embedding
    ensemble_, base_partitions_ : the centers of the members, and their labels (n_partitions, n_points)
    scaler_ : what was learned about the columns' scale

    Notes
    -----
    ``predict`` labels a new point by the centers of the base partitions, and embeds these labels
    with the same map. The embedding keeps the principal components with 99.9 % of the variance of
    all layers.

    Examples
    --------
    >>> from deccs import datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = IEC(2, n_partitions=10, random_state=0).fit(X)
    >>> model.labels_.shape, bool((model.predict(X) == model.labels_).all())
    ((120,), True)
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "components_": reals("n_all_clusters", "n_components"),
    }

    noise: Annotated[float, share()] = 0.2
    n_layers: Annotated[int, whole(at_least=1)] = 5

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        n_columns = self.n_partitions * 1.5 * self.n_wanted
        if n_columns > MOST_COLUMNS:
            raise ValueError(
                f"n_clusters={self.n_wanted} and n_partitions={self.n_partitions} make about "
                f"{n_columns:,.0f} clusters in all, and IEC holds a matrix of all their pairs: at most "
                f"{MOST_COLUMNS:,}. Set n_partitions to at most {MOST_COLUMNS // (2 * self.n_wanted)}."
            )

    def _most_clusters(self, n_points: int) -> int:
        return 2 * self.n_wanted

    def _learn_embedding(self, rows: DistinctRows, fit: Fit) -> np.ndarray:
        scatter = with_constant(rows.overlaps, len(rows.row_of))  # (D + 1, D + 1)
        maps = stacked_maps(scatter, self.noise, self.n_layers)
        self.components_ = principal_part(maps, scatter, share=0.999)
        return self._embed(rows.membership)

    def _embed(self, H: csr_array) -> np.ndarray:
        Z: np.ndarray = H @ self.components_
        return Z
