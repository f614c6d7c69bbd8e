"""SpectralNet (Shaham, Stanton, Li, Nadler, Basri and Kluger 2018): spectral clustering learned by a network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import softmax
from sklearn.neighbors import NearestNeighbors
from torch import nn

from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.deep.base import DeepClustering, embed_all, first_centers, squared_distances
from deccs.events import Progress
from deccs.network.autoencoder import Autoencoder, encode_exactly
from deccs.network.by_hand import feed_forward
from deccs.seeds import generator_for
from deccs.settings import Pretraining

STEPS = (
    1_500  # of each network; the graph has at most sample_size points, so large data needs no more
)


def neighbors(Z: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Row numbers of the nearest other points, nearest first: (n, d) -> (n, at most n_neighbors)."""
    search = NearestNeighbors(
        n_neighbors=min(n_neighbors, len(Z) - 1)
    )  # a tree up to 15 columns, else blocks
    return search.fit(Z).kneighbors(return_distance=False)


def affinity(distances: np.ndarray, index: np.ndarray, scale_neighbors: int) -> sp.csr_array:
    """W: exp(-d^2 / (s_i s_j)) between neighbors, where s_i is the scale_neighbors-th distance of i; else 0.

    Symmetric and sparse: (n, n) with n_neighbors to 2 n_neighbors entries a row. A scale for each point, not
    the median over all, lets a dense and a thin cluster be equally well connected.
    """
    n_points, n_found = index.shape
    scale = np.sort(distances, axis=1)[:, min(scale_neighbors, n_found) - 1]  # (n,)
    scale = np.maximum(scale, 1e-12)  # 0 among equal points
    weights = np.exp(-(distances**2) / (scale[:, None] * scale[index]))  # (n, n_neighbors)
    starts = np.arange(0, n_points * n_found + 1, n_found)
    W = sp.csr_array((weights.ravel(), index.ravel(), starts), shape=(n_points, n_points))
    return (W + W.T) / 2


def orthonormalizer(y: torch.Tensor, jitter: float = 1e-7) -> torch.Tensor:
    """R for which the columns of y R are orthonormal (mean of their products 1 and 0): (n, k) -> (k, k).

    By the Cholesky factor of the Gram matrix. The jitter is for fewer than k distinct points.

    >>> orthonormalizer(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), jitter=0)     # mean squares 2 and 8
    tensor([[0.7071, 0.0000],
            [0.0000, 0.3536]])
    """
    gram = y.T @ y / len(y)  # (k, k)
    one = torch.eye(len(gram), dtype=y.dtype)
    factor = torch.linalg.cholesky(gram + (jitter * gram.diagonal().mean() + 1e-30) * one)
    return torch.linalg.solve_triangular(factor, one, upper=False).T


def spectral_loss(start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """Mean squared distance between the outputs of pairs, (m, k) each: the loss of the paper if pairs follow W."""
    return (start - end).square().sum(1).mean()


def contrastive_loss(
    distance: torch.Tensor, near: torch.Tensor, margin: float = 1.0
) -> torch.Tensor:
    """Of the siamese network: near pairs together, others at least ``margin`` apart; mean over pairs.

    >>> contrastive_loss(torch.tensor([0.5, 0.5, 2.0]), torch.tensor([True, False, False]))     # 0.25, 0.25 and 0
    tensor(0.1667)
    """
    return torch.where(near, distance, (margin - distance).clamp(min=0)).square().mean()


class RandomWalk:
    """Walks on a graph: each step goes to a neighbor in proportion to the affinity."""

    def __init__(self, W: sp.csr_array) -> None:
        self.first = torch.from_numpy(W.indptr.astype(np.int64))  # (n + 1,) of each row's edges
        self.to = torch.from_numpy(W.indices.astype(np.int64))  # (n_edges,)
        self.reached = torch.from_numpy(
            np.concatenate([[0.0], np.cumsum(W.data)])
        )  # (n_edges + 1,)

    def pairs(
        self, size: int, length: int, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Row numbers of where ``size`` walks begin and where they are ``length`` steps later."""
        everywhere = self.reached[-1].expand(size)
        start = (
            torch.searchsorted(
                self.first, self._edge(torch.zeros(size), everywhere, generator), right=True
            )
            - 1
        )
        at = start  # drawn by degree
        for _ in range(length):
            at = self.to[
                self._edge(
                    self.reached[self.first[at]], self.reached[self.first[at + 1]], generator
                )
            ]
        return start, at

    def _edge(
        self, low: torch.Tensor, high: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """An edge for each stretch of the summed affinities."""
        where = low + (high - low) * torch.rand(len(low), generator=generator, dtype=torch.float64)
        where = torch.minimum(where, torch.nextafter(high, low))  # rounding could reach the end
        return torch.searchsorted(self.reached, where, right=True) - 1


def distances_to(places: np.ndarray, index: np.ndarray) -> np.ndarray:
    """From each point to those of its row in ``index``: (n, d), (n, m) -> (n, m), a column at a time.

    >>> distances_to(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[1], [0]]))
    array([[5.],
           [5.]])
    """
    return np.stack([np.linalg.norm(places - places[column], axis=1) for column in index.T], axis=1)


def siamese_pairs(
    index: torch.Tensor, size: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Row numbers of two points and whether they are near: ``size`` neighbors, then as many that are not.

    ``index`` is (n, n_neighbors). A random point that is a neighbor after all is left out.
    """
    n_points, n_found = index.shape
    first = torch.randint(n_points, (size,), generator=generator)
    second = index[first, torch.randint(n_found, (size,), generator=generator)]
    other = torch.randint(n_points, (size,), generator=generator)
    far = (other != first) & (other[:, None] != index[first]).all(1)
    near = torch.arange(size + int(far.sum())) < size
    return torch.cat([first, first[far]]), torch.cat([second, other[far]]), near


def minimize(
    loss: Callable[[], torch.Tensor],
    network: nn.Module,
    n_steps: int,
    learning_rate: float,
    stage: str,
    on_progress: Callable[[Progress], None],
) -> None:
    """Adam with a rate that falls to 0 along a cosine; ``loss`` draws its own batch."""
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(n_steps, 1))
    total, last = 0.0, 0
    for step in range(1, n_steps + 1):
        value = loss()
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        optimizer.step()
        schedule.step()
        total += float(value.detach())
        if step % 100 == 0 or step == n_steps:
            on_progress(Progress(stage, step, n_steps, total / (step - last), math.nan))
            total, last = 0.0, step


def standardizing(Z: torch.Tensor) -> nn.Linear:
    """(n, d) -> a layer that brings Z to mean 0 and, with one number for all columns, to deviation 1.

    >>> layer = standardizing(torch.tensor([[1.0, 0.0], [5.0, 0.0]]))          # deviation: sqrt((4 + 4) / 4)
    >>> layer(torch.tensor([[1.0, 0.0]])).detach()
    tensor([[-1.4142,  0.0000]])
    """
    mean = Z.mean(0)
    deviation = (Z - mean).square().mean().sqrt().clamp(min=1e-12)
    layer = nn.utils.skip_init(nn.Linear, Z.shape[1], Z.shape[1]).requires_grad_(False)
    layer.weight.copy_(torch.eye(Z.shape[1]) / deviation)
    layer.bias.copy_(-mean / deviation)
    return layer


class SpectralNet(DeepClustering):
    """Spectral clustering whose eigenvectors are a network's output, so that new points have them, too.

    1. On the pretrained embedding a siamese network learns a distance: nearest neighbors come together,
       other points move a margin apart.
    2. Neighbors in the embedding make the affinity graph, its weights are Gaussians of the learned distance.
       The spectral network learns to give points that a short walk on the graph joins the same output, while
       its outputs stay orthonormal.
    3. k-means on the outputs gives the clusters.

    Some things are not as in the authors' program, each for better outputs with fewer steps:

    - A point's near pairs are its ten neighbors, not two. Two are hardly farther than the noise and tell
      nothing of the gap between clusters, which the network then closes: of two rings of 100 points it
      makes the normalized cut 6 times as large.
    - The graph joins neighbors in the embedding. In the siamese space points can be neighbors that no pair
      ever put together; with two near pairs that cut is then 13 times as large.
    - The graph is that of a large sample. Neighbors within a small batch are not neighbors at all.
    - A batch holds the two ends of random walks. They start from a point as often as its degree says, which
      gives the eigenvectors of the *normalized* Laplacian. Those of many steps are the same as those of one,
      but their eigenvalues are far apart, and the network does not stop at a function that is only smooth.
    - A batch is made orthonormal by its own Cholesky factor and the gradient passes through it. Held fixed
      from the batch before, it makes shrinking the easiest way down.

    Parameters
    ----------
    n_clusters : int, default=8
        Also the number of outputs.
    n_neighbors, scale_neighbors : int
        Of the graph; and which of them is as far away as the Gaussian affinity of a point is wide.
    walk_length : int, default=4
        Steps between the two points of a pair.
    siamese_steps : int or "auto"
        "auto": as many as of the spectral network. With 0 distances are those of the embedding.
    siamese_neighbors : int
        Of a point that count as near; at most those of the graph.
    n_steps : int or "auto"
        Of the spectral network. "auto" is 1,500.
    sample_size : int
        The graph, the last orthonormalization and k-means have at most so many points.
    hidden : widths of the hidden layers of both networks.
    batch_size : points in a batch, two for each pair; should be far above n_clusters.
    learning_rate : Adam's at the start, falling to 0.
    autoencoder, layers, dropout, pretraining, scale, device, random_state, verbose, callbacks
        As for :class:`deccs.deep.DEC`. The autoencoder is not trained further; ``device`` is for it alone,
        the two small networks are on the CPU.

    Attributes
    ----------
    labels_, autoencoder_, scaler_ : as for :class:`deccs.DECCS`
    network_ : from the embedding to the spectral map, orthonormal on the sample
    cluster_centers_ : (n_clusters, n_clusters), in the spectral map, which is what ``transform`` gives
    variance_ : of a coordinate within clusters; ``predict_proba`` takes each for a round Gaussian of it
    n_iter_ : steps trained

    Examples
    --------
    >>> from deccs import datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = SpectralNet(2, n_steps=10, siamese_steps=0, pretraining=Pretraining(epochs=2), random_state=0).fit(X)
    >>> model.transform(X).shape, bool((model.predict(X) == model.labels_).all())
    ((120, 2), True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 20,
        scale_neighbors: int = 10,
        walk_length: int = 4,
        siamese_steps: int | str = "auto",
        siamese_neighbors: int = 10,
        sample_size: int = 20_000,
        hidden: Sequence[int] = (128, 128),
        autoencoder: Autoencoder | tuple[Any, Any] | None = None,
        layers: Sequence[int] | str = "auto",
        dropout: float = 0.0,
        pretraining: Pretraining | None = None,
        n_steps: int | str = "auto",
        batch_size: int = 1024,
        learning_rate: float = 5e-3,
        scale: str | None = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.scale_neighbors = scale_neighbors
        self.walk_length = walk_length
        self.siamese_steps = siamese_steps
        self.siamese_neighbors = siamese_neighbors
        self.sample_size = sample_size
        self.hidden = hidden
        self.autoencoder = autoencoder
        self.layers = layers
        self.dropout = dropout
        self.pretraining = pretraining
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.scale = scale
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        for name in ("n_neighbors", "scale_neighbors", "walk_length", "siamese_neighbors"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)!r}.")
        if n_points < 2:
            raise ValueError(f"A graph needs at least two points, got {n_points}.")
        if self.sample_size < max(2, self.n_clusters):
            raise ValueError(
                f"sample_size={self.sample_size} is too small for {self.n_clusters} clusters."
            )

    def _train(
        self,
        autoencoder: Autoencoder,
        rows: Rows,
        root: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        Z = embed_all(autoencoder, rows)  # (n_points, n_latent)
        Z = Z[
            draw_rows(len(Z), self.sample_size, generator_for(root, "sample"))
        ]  # (n_sample, n_latent)
        standardize = standardizing(Z)
        self.n_iter_ = STEPS if self.n_steps == "auto" else int(self.n_steps)
        index = neighbors(standardize(Z).numpy(), self.n_neighbors)  # (n_sample, n_neighbors)
        places = self._learn_distance(
            standardize(Z), index, root, on_progress
        )  # (n_sample, n_latent)
        W = affinity(
            distances_to(places, index), index, self.scale_neighbors
        )  # (n_sample, n_sample), sparse
        spectral = self._learn_map(standardize(Z), RandomWalk(W), root, on_progress)
        with torch.no_grad():
            network = nn.Sequential(standardize, spectral).double()
            last = nn.Linear(self.n_clusters, self.n_clusters, bias=False).double()
            last.weight.copy_(orthonormalizer(network(Z.double())).T)
            self.network_ = nn.Sequential(network, last).eval()
            Y = self.network_(Z.double())  # (n_sample, n_clusters)
        self.cluster_centers_ = first_centers(Y, self.n_clusters, root).double().numpy()
        nearest = squared_distances(Y.numpy(), self.cluster_centers_).min(axis=1)  # (n_sample,)
        self.variance_ = max(float(nearest.mean()) / self.n_clusters, 1e-12)
        self.autoencoder_ = autoencoder

    def _learn_distance(
        self, Z: torch.Tensor, index: np.ndarray, root: int, on_progress: Callable[[Progress], None]
    ) -> np.ndarray:
        """Where the siamese network puts the points: (n_sample, n_latent)."""
        n_steps = self.n_iter_ if self.siamese_steps == "auto" else int(self.siamese_steps)
        if not n_steps:
            return Z.numpy()
        network = feed_forward((Z.shape[1], *self.hidden, Z.shape[1]))
        nearest = torch.from_numpy(
            index[:, : self.siamese_neighbors]
        )  # (n_sample, siamese_neighbors)
        generator = generator_for(root, "siamese pairs")

        def loss() -> torch.Tensor:
            first, second, near = siamese_pairs(nearest, self.batch_size // 2, generator)
            squared = (network(Z[first]) - network(Z[second])).square().sum(1)
            return contrastive_loss(squared.clamp(min=1e-12).sqrt(), near)  # no slope at 0 without

        minimize(loss, network, n_steps, self.learning_rate, "SpectralNet, siamese", on_progress)
        with torch.no_grad():
            return network(Z).numpy()

    def _learn_map(
        self, Z: torch.Tensor, walk: RandomWalk, root: int, on_progress: Callable[[Progress], None]
    ) -> nn.Module:
        """The spectral network without its last layer, the one that makes the outputs orthonormal."""
        network = feed_forward((Z.shape[1], *self.hidden, self.n_clusters))
        generator = generator_for(root, "walks")

        def loss() -> torch.Tensor:
            pairs = walk.pairs(self.batch_size // 2, self.walk_length, generator)
            y = network(Z[torch.cat(pairs)]).double()  # (batch, n_clusters)
            return spectral_loss(*(y @ orthonormalizer(y)).chunk(2))

        minimize(loss, network, self.n_iter_, self.learning_rate, "SpectralNet", on_progress)
        return network

    def _embedded(self, X: Any) -> Iterator[np.ndarray]:
        with torch.no_grad():
            for Z in encode_exactly(self.autoencoder_, X, self.scaler_):
                yield self.network_(torch.from_numpy(Z)).numpy()  # network_ has doubles

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        return softmax(-squared_distances(Z, self.cluster_centers_) / (2 * self.variance_), axis=1)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters
