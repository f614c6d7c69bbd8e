"""AGAE (Tao, Liu, Li, Wang and Fu 2019): an adversarial graph autoencoder on the consensus graph."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import nn
from torch.nn.functional import embedding_bag, softplus

from deccs.base import Fit, TrainedEmbedder
from deccs.checks import Rule, is_widths, number, whole
from deccs.consensus.partitions import DistinctRows
from deccs.data.scaling import Scaler, widths_of
from deccs.data.source import RowSource, blocks, each_block, rows_at_once
from deccs.deep.base import first_centers
from deccs.deep.base_partitions import EnsembleEmbedding
from deccs.network.by_hand import feed_forward
from deccs.network.device import pick_device, threads_for
from deccs.seeds import reproducible_threads, torch_seeded
from deccs.storage import Maybe, reals, wholes
from deccs.training.engine import Learner, train

TWO_WIDTHS = Rule(
    "two layer widths (n_hidden, n_latent), each a whole number of at least 1",
    lambda value: is_widths(value) and len(value) == 2,
)
CHECK_EVERY = 20  # steps; each is on the whole graph


@dataclass(frozen=True, eq=False)
class Graph:
    """The consensus graph: every row with those it is most often put together with."""

    neighbors: np.ndarray  # (n, n_neighbors) rows; the first where several are tied
    # (n, n_neighbors) co-association times the neighbor's number of points; rows sum to 1
    weights: np.ndarray

    def spread(self, values: np.ndarray) -> np.ndarray:
        """The weighted mean over the neighbors: (n_rows, d) -> (n, d), each row by itself."""
        at_once = max(64, 2**22 // (self.weights.shape[1] * values.shape[1]))
        return np.concatenate(
            [
                np.einsum("nm,nmd->nd", self.weights[place], values[self.neighbors[place]])
                for place in blocks(len(self.weights), at_once)
            ]
        )


def consensus_graph(H: csr_array, rows: csr_array, counts: np.ndarray, n_neighbors: int) -> Graph:
    """Connect points (n, D) with the ``n_neighbors`` rows (n_rows, D) that most members put together with them.

    The co-association is counted exactly, block by block, never n x n. Ties go to the first rows,
    so a point has the same neighbors alone as among many. A row is the first of its neighbors.

    >>> from deccs.consensus.partitions import membership
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
    for place in blocks(H.shape[0], rows_at_once(n_rows)):
        # How many members agree, and the row's number to break ties, in one whole number.
        agreeing = np.rint((H[place] @ transposed).toarray()).astype(np.int64)
        key = agreeing * n_rows + np.arange(n_rows)[::-1]
        best = np.argpartition(key, n_rows - n_neighbors, axis=1)[:, n_rows - n_neighbors :]
        strength = np.take_along_axis(key, best, axis=1)
        order = np.argsort(-strength, axis=1)
        neighbors[place] = np.take_along_axis(best, order, axis=1)
        together[place] = np.take_along_axis(strength, order, axis=1) // n_rows
    weights = together * counts[neighbors]
    # A point in clusters without training points has no neighbors; any weights will do.
    return Graph(neighbors, weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12))


def row_means(source: RowSource, scaler: Scaler, rows: DistinctRows) -> np.ndarray:
    """(n_rows, n_features) float32: the mean of the scaled points with the same base labels."""
    total = np.zeros((len(rows), widths_of(scaler, source.shape[1])[0]))
    for place, block in each_block(source):
        row_of = rows.row_of[place]
        point = np.arange(len(row_of))
        belongs = csr_array((np.ones(len(row_of)), (row_of, point)), shape=(len(rows), len(row_of)))
        total += belongs @ scaler(block)
    return (total / rows.counts[:, None]).astype(np.float32)


class GraphEncoder(nn.Module):
    """Two graph convolutions: features and graph -> mean and deviation of each row's embedding."""

    neighbors: torch.Tensor
    weights: torch.Tensor
    features: torch.Tensor

    def __init__(self, features: np.ndarray, graph: Graph, layers: Sequence[int]) -> None:
        super().__init__()
        n_hidden, n_latent = layers
        # The first convolution spreads the raw features, which never change: once is enough.
        spread = torch.from_numpy(graph.spread(features)).float()  # (n_rows, n_features)
        # The graph follows from the data: a checkpoint need not hold it.
        self.register_buffer("neighbors", torch.from_numpy(graph.neighbors), persistent=False)
        self.register_buffer("weights", torch.from_numpy(graph.weights).float(), persistent=False)
        self.register_buffer("features", spread, persistent=False)
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
        """(n_rows,): one neighbor of each row, drawn by weight."""
        place = torch.multinomial(self.weights, 1)  # (n_rows, 1)
        return self.neighbors.gather(1, place)[:, 0]


def link_loss(
    z: torch.Tensor, neighbor: torch.Tensor, other: torch.Tensor, shares: torch.Tensor
) -> torch.Tensor:
    """The inner product decoder: -log s(z_i z_j) for a neighbor j of each row i, -log(1 - s(z_i z_k)) for any k.

    There are as many linked pairs as random ones, so both count the same for any number of rows.

    >>> z, one = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), torch.tensor([1, 1, 1])
    >>> shares = torch.tensor([1.0, 0.0, 0.0])
    >>> link_loss(z, one, torch.tensor([2, 2, 2]), shares)  # log(1 + e^-2) + log(1 + 1)
    tensor(0.8201)
    """
    linked, unlinked = (z * z[neighbor]).sum(1), (z * z[other]).sum(1)  # (n_rows,)
    return (shares * (softplus(-linked) + softplus(unlinked))).sum()


@dataclass(frozen=True, eq=False)
class Prior:
    """Where the embedding should be: a Gaussian around each cluster of where it is now."""

    centers: torch.Tensor  # (n_clusters, n_latent)
    deviations: torch.Tensor  # (n_clusters, n_latent)
    shares: torch.Tensor  # (n_clusters,) of the points

    def draw(self, n: int) -> torch.Tensor:
        """Points of the mixture: (n, n_latent)."""
        cluster = torch.multinomial(self.shares, n, replacement=True)
        centers = self.centers[cluster]
        return centers + self.deviations[cluster] * torch.randn_like(centers)


def partition_prior(Z: torch.Tensor, shares: torch.Tensor, centers: torch.Tensor) -> Prior:
    """k-means, started at ``centers``, and the mean and deviation of the rows in each cluster.

    >>> Z, centers = torch.tensor([[0.0], [2.0], [9.0]]), torch.tensor([[0.0], [8.0]])
    >>> prior = partition_prior(Z, torch.tensor([0.25, 0.25, 0.5]), centers)
    >>> prior.centers.tolist(), prior.deviations.tolist(), prior.shares.tolist()
    ([[1.0], [9.0]], [[1.0], [0.0]], [0.5, 0.5])
    """
    kmeans = KMeans(len(centers), init=centers.cpu().numpy(), n_init=1)
    with warnings.catch_warnings(), reproducible_threads():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than centers
        kmeans.fit(Z.cpu().numpy(), None, shares.cpu())
    labels = torch.from_numpy(kmeans.labels_).long().to(Z.device)
    belongs = torch.eye(len(centers), device=Z.device)[labels].T * shares  # (n_clusters, n_rows)
    size = belongs.sum(1, keepdim=True)
    mean = belongs @ Z / size.clamp(min=1e-12)
    variance = belongs @ (Z - mean[labels]).square() / size.clamp(min=1e-12)
    new_centers = torch.from_numpy(kmeans.cluster_centers_).to(Z.device)
    return Prior(new_centers, variance.sqrt(), size[:, 0])


class AdversarialGraph(Learner):
    """Tell which rows are linked, and make the embedding look like the prior to a critic."""

    stage = "AGAE"
    learned = ("encoder", "critic", "centers", "deviations", "cluster_shares")
    resized = ("centers", "deviations", "cluster_shares")

    def __init__(self, encoder: GraphEncoder, counts: np.ndarray, method: AGAE, root: int) -> None:
        self.encoder, self.method, self.root = encoder, method, root
        self.device = encoder.features.device
        self.n_rows = len(counts)
        # (n_rows,) of the points
        self.shares = torch.from_numpy(counts / counts.sum()).float().to(self.device)
        self.critic = feed_forward((method.layers[1], 64, 64, 1)).to(self.device)
        # Of the prior; empty until the critic takes part.
        self.centers = self.deviations = self.cluster_shares = torch.empty(0, device=self.device)

    def check_learned(self, state: dict[str, Any]) -> None:
        super().check_learned(state)
        shapes = [tuple(state[name].shape) for name in self.resized]
        k, d = min(self.method.n_wanted, self.n_rows), self.method.layers[1]
        if shapes not in ([(0,)] * 3, [(k, d), (k, d), (k,)]):
            raise ValueError(f"No prior has {shapes} as {', '.join(self.resized)}")

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=rate / 10)
        return [torch.optim.Adam(self.encoder.parameters(), lr=rate), self.critic_optimizer]

    def loss(self, step: int) -> torch.Tensor:
        mean, deviation = self.encoder()  # (n_rows, n_latent) each
        z = mean + deviation * torch.randn_like(mean)
        neighbor = self.encoder.draw_neighbors()
        other = torch.multinomial(self.shares, self.n_rows, replacement=True)
        loss = link_loss(z, neighbor, other, self.shares)
        since_first = step - self.method.n_steps // 3 - 1  # the critic takes part after a third
        if since_first < 0 or not self.method.adversarial_weight:
            return loss
        if since_first % self.method.update_interval == 0 or not len(self.centers):
            self._renew_prior(mean.detach())
        self._train_critic(z.detach())
        self.critic.requires_grad_(False)  # here only the encoder learns
        deceived = (self.shares * softplus(-self.critic(z)[:, 0])).sum()
        self.critic.requires_grad_(True)
        return loss + self.method.adversarial_weight * deceived

    def _renew_prior(self, mean: torch.Tensor) -> None:
        if not len(self.centers):
            n_clusters = min(self.method.n_wanted, self.n_rows)
            self.centers = first_centers(mean.cpu(), n_clusters, self.root)
        prior = partition_prior(mean, self.shares, self.centers)
        self.centers, self.deviations = prior.centers, prior.deviations
        self.cluster_shares = prior.shares

    def _train_critic(self, z: torch.Tensor) -> None:
        """One step, before the encoder's: the encoder learns from the critic after it.

        Every process has the whole graph and the same seed, so there is nothing to synchronize.
        """
        prior = Prior(self.centers, self.deviations, self.cluster_shares)
        real = softplus(-self.critic(prior.draw(self.n_rows))[:, 0])  # (n_rows,)
        false = softplus(self.critic(z)[:, 0])  # (n_rows,)
        (real.mean() + (self.shares * false).sum()).backward()
        self.critic_optimizer.step()
        self.critic_optimizer.zero_grad(set_to_none=True)  # the engine's step then changes nothing


@dataclass(eq=False, repr=False, kw_only=True)
class AGAE(EnsembleEmbedding, TrainedEmbedder, method="AGAE"):
    """Adversarial graph autoencoder: k-means on a joint embedding of the data and the consensus graph.

    Many k-means with random numbers of clusters label the raw data, and every point is linked to
    those it is most often put together with. Two graph convolutions embed points and links, as a
    mean and a deviation from which training draws a sample. Inner products of embedded points have
    to tell which points are linked. A critic learns to tell the embedding from a prior, and the
    encoder learns to deceive it. The prior is a Gaussian around each cluster of the current
    embedding, so clusters become round. k-means on the means gives the labels.

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
    n_partitions : int, default=50
        Base partitions. Their numbers of clusters are drawn from n_clusters to 2 sqrt(n_points):
        small clusters tell which points are near, large ones which are not too far.
    n_neighbors : int, default=20
        Links of each point, including the one to itself.
    layers : (n_hidden, n_latent), default=(64, 16)
        Widths of the two graph convolutions.
    adversarial_weight : float, default=0.1
        Weight of deceiving the critic, against telling links; 0 for a plain graph autoencoder.
    n_steps : int, default=400
        Of the encoder, each on the whole graph. The critic takes part after the first third.
    update_interval : int, default=20
        Steps between two computations of the prior.
    learning_rate : float, default=0.01
        Adam's; the critic's is a tenth of it.
    scale, device, random_state, verbose, checkpoint, callbacks
        As for :class:`deccs.DECCS`.

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
    The graph has a node for every distinct vector of base labels. Its links are exact: the
    co-association is counted block by block, never for all pairs at once. A new point is linked by
    its base labels, like an old one, and gets the mean of its neighbors' codes. So nothing is
    trained for new points, and an old point gets exactly what it had. The paper has no public code.
    How links, pairs and critic are trained is ours.

    Examples
    --------
    >>> from deccs import datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = AGAE(2, n_partitions=10, n_steps=20, random_state=0).fit(X)
    >>> model.labels_.shape, bool((model.predict(X) == model.labels_).all())
    ((120,), True)
    """

    RENAMED: ClassVar[dict[str, str]] = {"n_neighbours": "n_neighbors"}

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "_rows": csr_array,
        "_counts": wholes("n_rows", least=1),
        "codes_": reals("n_rows", "n_components"),
        "n_iter_": int,
        "autoencoder_": Maybe(None),  # it has none
    }

    n_partitions: Annotated[int, whole(at_least=1)] = 50
    n_neighbors: Annotated[int, whole(at_least=1)] = 20
    layers: Annotated[Sequence[int], TWO_WIDTHS] = (64, 16)
    adversarial_weight: Annotated[float, number(at_least=0)] = 0.1
    n_steps: Annotated[int, whole(at_least=1)] = 400
    update_interval: Annotated[int, whole(at_least=1)] = 20
    learning_rate: Annotated[float, number(above=0)] = 1e-2

    def _most_clusters(self, n_points: int) -> int:
        return max(self.n_wanted, int(2 * math.sqrt(n_points)))

    def _learn_embedding(self, rows: DistinctRows, fit: Fit) -> np.ndarray:
        self._rows, self._counts = rows.membership, rows.counts
        graph = self._graph(rows.membership)
        features = row_means(fit.source, fit.scaler, rows)  # (n_rows, n_features)
        with torch_seeded(fit.root, "AGAE"):
            encoder = GraphEncoder(features, graph, self.layers).to(pick_device(self.device))
            with threads_for(encoder, len(rows)):
                trained = train(
                    AdversarialGraph(encoder, rows.counts, self, fit.root),
                    self.n_steps,
                    rate=self.learning_rate,
                    check_every=CHECK_EVERY,
                    listeners=fit.listeners,
                    checkpoint=fit.checkpoint,
                )
        self.n_iter_ = trained.n_steps
        codes = encoder.codes()[:, : self.layers[1]]
        self.codes_ = codes.detach().cpu().double().numpy()  # (n_rows, n_latent)
        return graph.spread(self.codes_)

    def _check_learned(self) -> None:
        super()._check_learned()
        expected = len(self._counts), int(self.ensemble_.n_clusters.sum())
        if self._rows.shape != expected or not len(self._counts):
            raise ValueError(f"_rows must be of shape {expected}, got {self._rows.shape}")
        if len(self._rows.data) and not np.array_equal(np.unique(self._rows.data), [1.0]):
            raise ValueError("_rows must hold ones")

    def _embed(self, H: csr_array) -> np.ndarray:
        return self._graph(H).spread(self.codes_)

    def _graph(self, H: csr_array) -> Graph:
        return consensus_graph(H, self._rows, self._counts, self.n_neighbors)
