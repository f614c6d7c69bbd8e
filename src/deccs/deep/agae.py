"""AGAE (Tao, Liu, Li, Wang and Fu 2019): an adversarial graph autoencoder on the consensus graph."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from torch import nn
from torch.nn.functional import embedding_bag, softplus

from deccs.consensus.partitions import DistinctRows
from deccs.consensus.projections import check_at_least
from deccs.data.scaling import Scaler
from deccs.data.source import blocks, dense_block, rows_at_once
from deccs.deep.base import first_centers
from deccs.deep.base_partitions import EnsembleEmbedding
from deccs.events import Progress
from deccs.network.by_hand import feed_forward
from deccs.network.device import pick_device, threads_for
from deccs.seeds import torch_seeded


@dataclass(frozen=True, eq=False)
class Graph:
    """The consensus graph: every row with those it is most often put together with."""

    neighbors: np.ndarray  # (n, n_neighbors) rows, the first of equals
    weights: (
        np.ndarray
    )  # (n, n_neighbors) co-association times points of the neighbor, rows sum to 1

    def spread(self, values: np.ndarray) -> np.ndarray:
        """The weighted mean over the neighbors: (n_rows, d) -> (n, d), each row by itself."""
        return np.concatenate(
            [
                np.einsum("nm,nmd->nd", self.weights[some], values[self.neighbors[some]])
                for some in blocks(
                    len(self.weights), max(64, 2**22 // (self.weights.shape[1] * values.shape[1]))
                )
            ]
        )


def consensus_graph(H: csr_array, rows: csr_array, counts: np.ndarray, n_neighbors: int) -> Graph:
    """Connect points (n, D) with the ``n_neighbors`` rows (n_rows, D) that most members put together with them.

    The co-association is counted exactly, block by block: never n x n. Among equals the first come first,
    so that a point has the same neighbors alone as among many; a row is the first of its own neighbors,
    unless others have the same labels, which is all the same.

    >>> from deccs.deep.base_partitions import membership
    >>> H = membership(np.array([[0, 0], [0, 1], [1, 1]]), n_clusters=np.array([2, 2]))
    >>> graph = consensus_graph(H, H, counts=np.array([1, 1, 2]), n_neighbors=2)
    >>> graph.neighbors.tolist(), graph.weights.round(3).tolist()         # 1 and 1/2; 1 and 1/2; 1 * 2 and 1/2
    ([[0, 1], [1, 0], [2, 1]], [[0.667, 0.333], [0.667, 0.333], [0.8, 0.2]])
    """
    n_rows = rows.shape[0]
    n_neighbors = min(n_neighbors, n_rows)
    neighbors = np.empty((H.shape[0], n_neighbors), dtype=np.int64)
    together = np.empty(neighbors.shape)
    transposed = csr_array(rows.T)
    for some in blocks(H.shape[0], rows_at_once(n_rows)):
        # Members who agree, and the row's number to tell equals apart, in one whole number.
        key = (
            np.rint((H[some] @ transposed).toarray()).astype(np.int64) * n_rows
            + np.arange(n_rows)[::-1]
        )
        best = np.argpartition(key, n_rows - n_neighbors, axis=1)[:, n_rows - n_neighbors :]
        strength = np.take_along_axis(key, best, axis=1)
        order = np.argsort(-strength, axis=1)
        neighbors[some] = np.take_along_axis(best, order, axis=1)
        together[some] = np.take_along_axis(strength, order, axis=1) // n_rows
    weights = together * counts[neighbors]
    # A point in clusters that no training point is in has no neighbors; any are as good.
    return Graph(neighbors, weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12))


def row_means(X: Any, scaler: Scaler, rows: DistinctRows) -> np.ndarray:
    """(n_rows, n_features) float32: the mean of the scaled points with the same base labels."""
    total = np.zeros((len(rows), X.shape[1]))
    for some in blocks(X.shape[0], rows_at_once(X.shape[1])):
        row_of = rows.row_of[some]
        has = csr_array(
            (np.ones(len(row_of)), (row_of, np.arange(len(row_of)))), shape=(len(rows), len(row_of))
        )
        total += has @ scaler(dense_block(X, some))
    return (total / rows.counts[:, None]).astype(np.float32)


class GraphEncoder(nn.Module):
    """Two graph convolutions: features and graph -> mean and deviation of each row's embedding."""

    neighbors: torch.Tensor
    weights: torch.Tensor
    features: torch.Tensor

    def __init__(self, features: np.ndarray, graph: Graph, layers: Sequence[int]) -> None:
        super().__init__()
        n_hidden, n_latent = layers
        self.register_buffer("neighbors", torch.from_numpy(graph.neighbors))
        self.register_buffer("weights", torch.from_numpy(graph.weights).float())
        # The first convolution spreads the raw features, which never change: once is enough.
        self.register_buffer(
            "features", torch.from_numpy(graph.spread(features)).float()
        )  # (n_rows, n_features)
        self.hidden = nn.Linear(features.shape[1], n_hidden)
        self.code = nn.Linear(n_hidden, 2 * n_latent)

    def codes(self) -> torch.Tensor:
        """Means and log deviations before the second convolution: (n_rows, 2 * n_latent)."""
        return self.code(self.hidden(self.features).relu())

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        spread = embedding_bag(
            self.neighbors, self.codes(), per_sample_weights=self.weights, mode="sum"
        )
        mean, log_deviation = spread.chunk(2, dim=1)  # (n_rows, n_latent) each
        return mean, log_deviation.clamp(max=3).exp()

    def draw_neighbors(self) -> torch.Tensor:
        """(n_rows,): one of each row, the heavier the likelier."""
        place = torch.multinomial(self.weights, 1)  # (n_rows, 1)
        return self.neighbors.gather(1, place)[:, 0]


def link_loss(
    z: torch.Tensor, neighbor: torch.Tensor, other: torch.Tensor, shares: torch.Tensor
) -> torch.Tensor:
    """The inner product decoder: -log s(z_i z_j) for a neighbor j of each row i, -log(1 - s(z_i z_k)) for any k.

    As many pairs that are linked as pairs that need not be, so both count alike, whatever the number of rows.

    >>> z, one = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), torch.tensor([1, 1, 1])
    >>> link_loss(z, one, torch.tensor([2, 2, 2]), shares=torch.tensor([1.0, 0.0, 0.0]))   # log(1 + e^-2) + log(1 + 1)
    tensor(0.8201)
    """
    linked, unlinked = (z * z[neighbor]).sum(1), (z * z[other]).sum(1)  # (n_rows,)
    return (shares * (softplus(-linked) + softplus(unlinked))).sum()


@dataclass(frozen=True, eq=False)
class Prior:
    """Where the embedding should be, by a partition of where it is: a Gaussian around each cluster."""

    centers: torch.Tensor  # (n_clusters, n_latent)
    deviations: torch.Tensor  # (n_clusters, n_latent)
    shares: torch.Tensor  # (n_clusters,) of the points

    def draw(self, n: int) -> torch.Tensor:
        """(n, n_latent)"""
        cluster = torch.multinomial(self.shares, n, replacement=True)
        return self.centers[cluster] + self.deviations[cluster] * torch.randn_like(
            self.centers[cluster]
        )


def partition_prior(Z: torch.Tensor, shares: torch.Tensor, centers: torch.Tensor) -> Prior:
    """k-means from ``centers`` on, and mean and deviation of the rows in each cluster.

    >>> Z, centers = torch.tensor([[0.0], [2.0], [9.0]]), torch.tensor([[0.0], [8.0]])
    >>> prior = partition_prior(Z, torch.tensor([0.25, 0.25, 0.5]), centers)
    >>> prior.centers.tolist(), prior.deviations.tolist(), prior.shares.tolist()
    ([[1.0], [9.0]], [[1.0], [0.0]], [0.5, 0.5])
    """
    with warnings.catch_warnings(), threadpool_limits(1, user_api="openmp"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows
        kmeans = KMeans(len(centers), init=centers.cpu().numpy(), n_init=1).fit(
            Z.cpu().numpy(), None, shares.cpu()
        )
    labels = torch.from_numpy(kmeans.labels_).long().to(Z.device)
    belongs = torch.eye(len(centers), device=Z.device)[labels].T * shares  # (n_clusters, n_rows)
    size = belongs.sum(1, keepdim=True)
    mean = belongs @ Z / size.clamp(min=1e-12)
    variance = belongs @ (Z - mean[labels]).square() / size.clamp(min=1e-12)
    return Prior(
        torch.from_numpy(kmeans.cluster_centers_).to(Z.device), variance.sqrt(), size[:, 0]
    )


class AGAE(EnsembleEmbedding):
    """Adversarial graph autoencoder: k-means on an embedding of the data and of the consensus graph together.

    Many k-means with random numbers of clusters label the raw data, and every point is linked to those it is
    most often put together with. Two graph convolutions embed points and links (as a mean and a deviation,
    of which a sample is drawn in training); inner products of embedded points have to tell who is linked. A
    critic learns to tell the embedding from a prior, and the encoder to deceive it: the prior is a Gaussian around
    each cluster of the present embedding, which so becomes one of round clusters. k-means on the means
    gives the labels.

    Parameters
    ----------
    n_clusters : int, default=8
    n_partitions : int, default=50
        Base partitions. Their numbers of clusters are drawn from n_clusters to 2 sqrt(n_points): small clusters
        tell which points are near, large ones which are not too far.
    n_neighbors : int, default=20
        Links of each point, itself among them.
    layers : (n_hidden, n_latent), default=(64, 16)
        Widths of the two graph convolutions.
    adversarial_weight : float, default=0.1
        Weight of deceiving the critic, against telling links; 0 for a plain graph autoencoder.
    n_steps : int, default=400
        Of the encoder, each on the whole graph. The critic takes part after the first third, and the prior's
        partition is worked out anew every ``update_interval`` steps.
    update_interval : int, default=20
    learning_rate : float, default=0.01
        Adam's; the critic's is a tenth of it.
    scale, device, random_state, verbose, callbacks
        As for :class:`deccs.DECCS`; callbacks get ``on_progress``.

    Attributes
    ----------
    labels_ : (n_points,)
    cluster_centers_ : (n_clusters, n_latent)
    ensemble_, base_partitions_ : the centers of the members, and their labels (n_partitions, n_points)
    codes_ : (n_rows, n_latent), what the second convolution spreads along the links
    n_iter_ : steps trained
    scaler_ : what was learned about the columns' scale

    Notes
    -----
    The graph has a node for every distinct vector of base labels, and its links are exact: the co-association
    is counted block by block, never for all pairs at once. A new point is linked by its base labels, as an old
    one is, and gets the mean of its neighbors' codes: nothing is trained anew, and an old point gets exactly
    what it had. The paper has no public code. How links, pairs and critic are trained is ours.

    Examples
    --------
    >>> from deccs import datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = AGAE(2, n_partitions=10, n_steps=20, random_state=0).fit(X)
    >>> model.labels_.shape, bool((model.predict(X) == model.labels_).all())
    ((120,), True)
    """

    layers: Sequence[int]

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_partitions: int = 50,
        n_neighbors: int = 20,
        layers: Sequence[int] = (64, 16),
        adversarial_weight: float = 0.1,
        n_steps: int = 400,
        update_interval: int = 20,
        learning_rate: float = 1e-2,
        scale: str | None = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_partitions = n_partitions
        self.n_neighbors = n_neighbors
        self.layers = layers
        self.adversarial_weight = adversarial_weight
        self.n_steps = n_steps
        self.update_interval = update_interval
        self.learning_rate = learning_rate
        self.scale = scale
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        for name in ("n_neighbors", "n_steps", "update_interval"):
            check_at_least(name, getattr(self, name), 1)
        if isinstance(self.layers, str) or len(self.layers) != 2 or min(self.layers) < 1:
            raise ValueError(
                f"layers must be two widths of at least 1, (n_hidden, n_latent), got {self.layers!r}."
            )

    def _most_clusters(self, n_points: int) -> int:
        return max(self.n_clusters, int(2 * math.sqrt(n_points)))

    def _learn(
        self, rows: DistinctRows, X: Any, root: int, on_progress: Callable[[Progress], None]
    ) -> np.ndarray:
        self._rows, self._counts = rows.membership, rows.counts
        graph = self._graph(rows.membership)
        with torch_seeded(root, "AGAE"):
            encoder = GraphEncoder(row_means(X, self.scaler_, rows), graph, self.layers).to(
                pick_device(self.device)
            )
            with threads_for(encoder, len(rows)):
                self._train_encoder(encoder, root, on_progress)
        codes = encoder.codes()[:, : self.layers[1]]
        self.codes_ = codes.detach().cpu().double().numpy()  # (n_rows, n_latent)
        return graph.spread(self.codes_)

    def _train_encoder(
        self, encoder: GraphEncoder, root: int, on_progress: Callable[[Progress], None]
    ) -> None:
        device, n_rows = encoder.features.device, len(self._counts)
        shares = (
            torch.from_numpy(self._counts / self._counts.sum()).float().to(device)
        )  # (n_rows,) of the points
        critic = feed_forward((self.layers[1], 64, 64, 1)).to(device)
        optimizer = torch.optim.Adam(encoder.parameters(), lr=self.learning_rate)
        critics = torch.optim.Adam(critic.parameters(), lr=self.learning_rate / 10)
        first_adversarial = self.n_steps // 3 + 1 if self.adversarial_weight else self.n_steps + 1
        centers, total = None, 0.0
        for step in range(1, self.n_steps + 1):
            mean, deviation = encoder()  # (n_rows, n_latent) each
            z = mean + deviation * torch.randn_like(mean)
            loss = link_loss(
                z,
                encoder.draw_neighbors(),
                torch.multinomial(shares, n_rows, replacement=True),
                shares,
            )
            if step >= first_adversarial:
                if (step - first_adversarial) % self.update_interval == 0:
                    if centers is None:
                        centers = first_centers(
                            mean.detach().cpu(), min(self.n_clusters, n_rows), root
                        )
                    prior = partition_prior(mean.detach(), shares, centers)
                    centers = prior.centers
                real, false = (
                    softplus(-critic(prior.draw(n_rows))[:, 0]),
                    softplus(critic(z.detach())[:, 0]),
                )
                descend(critics, real.mean() + (shares * false).sum())
                loss = loss + self.adversarial_weight * (shares * softplus(-critic(z)[:, 0])).sum()
            descend(optimizer, loss)
            total += loss.item()
            if step % 20 == 0 or step == self.n_steps:
                on_progress(
                    Progress("AGAE", step, self.n_steps, total / ((step - 1) % 20 + 1), math.nan)
                )
                total = 0.0
        self.n_iter_ = self.n_steps

    def _embed(self, H: csr_array) -> np.ndarray:
        return self._graph(H).spread(self.codes_)

    def _graph(self, H: csr_array) -> Graph:
        return consensus_graph(H, self._rows, self._counts, self.n_neighbors)


def descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
