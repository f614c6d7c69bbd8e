"""SpectralNet (Shaham, Stanton, Li, Nadler, Basri and Kluger 2018): spectral clustering learned by a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import softmax
from sklearn.neighbors import NearestNeighbors
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler

from deccs.base import Fit
from deccs.checks import AUTO, WIDTHS, number, whole
from deccs.data.rows import Rows
from deccs.data.sampling import draw_rows
from deccs.data.source import RowSource
from deccs.deep.base import AutoencoderMethod, first_centers, squared_distances
from deccs.network.autoencoder import Autoencoder, encode
from deccs.network.by_hand import feed_forward
from deccs.rules import default_spectral_steps
from deccs.seeds import generator_for
from deccs.storage import reals
from deccs.storage.networks import check_width
from deccs.training.engine import Learner, train


def neighbors(Z: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Row numbers of the nearest other points, nearest first: (n, d) -> (n, at most n_neighbors)."""
    search = NearestNeighbors(n_neighbors=min(n_neighbors, len(Z) - 1))
    index: np.ndarray = search.fit(Z).kneighbors(return_distance=False)
    return index


def affinity(distances: np.ndarray, index: np.ndarray, scale_neighbors: int) -> sp.csr_array:
    """W: exp(-d^2 / (s_i s_j)) between neighbors, where s_i is the scale_neighbors-th distance of i; else 0.

    Symmetric and sparse: (n, n) with n_neighbors to 2 n_neighbors entries per row on average. With
    a scale for each point, instead of one median, dense and sparse clusters are equally well
    connected.
    """
    n_points, n_neighbors = index.shape
    scale = np.sort(distances, axis=1)[:, min(scale_neighbors, n_neighbors) - 1]  # (n,)
    scale = np.maximum(scale, 1e-12)  # 0 among equal points
    weights = np.exp(-(distances**2) / (scale[:, None] * scale[index]))  # (n, n_neighbors)
    starts = np.arange(0, n_points * n_neighbors + 1, n_neighbors)
    W = sp.csr_array((weights.ravel(), index.ravel(), starts), shape=(n_points, n_points))
    return (W + W.T) / 2


def orthonormalizer(y: torch.Tensor, jitter: float = 1e-7) -> torch.Tensor:
    """R for which the columns of y R are orthonormal (mean of their products 1 and 0): (n, k) -> (k, k).

    From the Cholesky factor of the Gram matrix. The jitter is for fewer than k distinct points.

    >>> orthonormalizer(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), jitter=0)     # mean squares 2 and 8
    tensor([[0.7071, 0.0000],
            [0.0000, 0.3536]])
    """
    gram = y.T @ y / len(y)  # (k, k)
    identity = torch.eye(len(gram), dtype=y.dtype)
    factor = torch.linalg.cholesky(gram + (jitter * gram.diagonal().mean() + 1e-30) * identity)
    inverse: torch.Tensor = torch.linalg.solve_triangular(factor, identity, upper=False)
    return inverse.T


def spectral_loss(start: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """Mean squared distance between the outputs of pairs, (m, k) each: the paper's loss if pairs follow W."""
    return (start - end).square().sum(1).mean()


def contrastive_loss(
    distance: torch.Tensor, near: torch.Tensor, margin: float = 1.0
) -> torch.Tensor:
    """The loss of the siamese network: near pairs together, others at least ``margin`` apart.

    >>> distance, near = torch.tensor([0.5, 0.5, 2.0]), torch.tensor([True, False, False])
    >>> contrastive_loss(distance, near)  # the mean of 0.25, 0.25 and 0
    tensor(0.1667)
    """
    return torch.where(near, distance, (margin - distance).clamp(min=0)).square().mean()


class RandomWalk:
    """Walks on a graph: each step goes to a neighbor with a probability in proportion to the affinity."""

    def __init__(self, W: sp.csr_array) -> None:
        self.first = torch.from_numpy(W.indptr.astype(np.int64))  # (n + 1,) of each row's edges
        self.to = torch.from_numpy(W.indices.astype(np.int64))  # (n_edges,)
        # (n_edges + 1,) summed affinities up to each edge
        self.sums = torch.from_numpy(np.concatenate([[0.0], np.cumsum(W.data)]))

    def pairs(
        self, size: int, length: int, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Row numbers of where ``size`` walks begin and where they are ``length`` steps later."""
        edge = self._edge(torch.zeros(size), self.sums[-1].expand(size), generator)
        start = torch.searchsorted(self.first, edge, right=True) - 1  # drawn by degree
        end = start
        for _ in range(length):
            low, high = self.sums[self.first[end]], self.sums[self.first[end + 1]]
            end = self.to[self._edge(low, high, generator)]
        return start, end

    def _edge(
        self, low: torch.Tensor, high: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """An edge for each range of the summed affinities."""
        place = low + (high - low) * torch.rand(len(low), generator=generator, dtype=torch.float64)
        place = torch.minimum(place, torch.nextafter(high, low))  # rounding could reach the end
        return torch.searchsorted(self.sums, place, right=True) - 1


def distances_to(Z: np.ndarray, index: np.ndarray) -> np.ndarray:
    """From each point to those of its row in ``index``: (n, d), (n, m) -> (n, m), a column at a time.

    >>> distances_to(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[1], [0]]))
    array([[5.],
           [5.]])
    """
    return np.stack([np.linalg.norm(Z - Z[column], axis=1) for column in index.T], axis=1)


def siamese_pairs(
    index: torch.Tensor, size: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Row numbers of two points and whether they are near: ``size`` neighbors, then as many that are not.

    ``index`` is (n, n_neighbors). A random point that happens to be a neighbor is left out.
    """
    n_points, n_neighbors = index.shape
    first = torch.randint(n_points, (size,), generator=generator)
    second = index[first, torch.randint(n_neighbors, (size,), generator=generator)]
    other = torch.randint(n_points, (size,), generator=generator)
    far = (other != first) & (other[:, None] != index[first]).all(1)
    near = torch.arange(size + int(far.sum())) < size
    return torch.cat([first, first[far]]), torch.cat([second, other[far]]), near


def standardizing(Z: torch.Tensor) -> nn.Linear:
    """(n, d) -> a layer that gives Z mean 0 and, with one number for all columns, deviation 1.

    >>> layer = standardizing(torch.tensor([[1.0, 0.0], [5.0, 0.0]]))  # deviation: sqrt((4 + 4) / 4)
    >>> layer(torch.tensor([[1.0, 0.0]])).detach()
    tensor([[-1.4142,  0.0000]])
    """
    mean = Z.mean(0)
    deviation = (Z - mean).square().mean().sqrt().clamp(min=1e-12)
    layer = nn.utils.skip_init(nn.Linear, Z.shape[1], Z.shape[1]).requires_grad_(False)
    layer.weight.copy_(torch.eye(Z.shape[1]) / deviation)
    layer.bias.copy_(-mean / deviation)
    return layer


class MapOfPoints(Learner):
    """A small network on embedded points, trained by Adam at a rate that falls to 0 along a cosine."""

    learned = ("network",)
    random = ("generator",)

    def __init__(self, Z: torch.Tensor, widths: Sequence[int], n_pairs: int) -> None:
        self.Z, self.n_pairs = Z, n_pairs  # (n_sample, n_latent), and pairs in a batch
        self.network = feed_forward((Z.shape[1], *widths))

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam(self.network.parameters(), lr=rate)]

    def schedule(self, optimizer: torch.optim.Optimizer, n_steps: int) -> LRScheduler:
        return CosineAnnealingLR(optimizer, n_steps)


class SiameseMap(MapOfPoints):
    """Neighbors come together, other points move apart: a distance is learned."""

    stage = "SpectralNet, siamese"

    def __init__(self, Z: torch.Tensor, index: np.ndarray, method: SpectralNet, root: int) -> None:
        super().__init__(Z, (*method.hidden, Z.shape[1]), method.batch_size // 2)
        # (n_sample, siamese_neighbors)
        self.nearest = torch.from_numpy(index[:, : method.siamese_neighbors])
        self.generator = generator_for(root, "siamese pairs")

    def loss(self, step: int) -> torch.Tensor:
        first, second, near = siamese_pairs(self.nearest, self.n_pairs, self.generator)
        squared = (self.network(self.Z[first]) - self.network(self.Z[second])).square().sum(1)
        return contrastive_loss(squared.clamp(min=1e-12).sqrt(), near)  # the root has no slope at 0


class SpectralMap(MapOfPoints):
    """Points that a walk joins get the same output, and outputs stay orthonormal."""

    stage = "SpectralNet"

    def __init__(self, Z: torch.Tensor, W: sp.csr_array, method: SpectralNet, root: int) -> None:
        super().__init__(Z, (*method.hidden, method.n_wanted), method.batch_size // 2)
        self.walk, self.walk_length = RandomWalk(W), method.walk_length
        self.generator = generator_for(root, "walks")

    def loss(self, step: int) -> torch.Tensor:
        pairs = self.walk.pairs(self.n_pairs, self.walk_length, self.generator)
        y = self.network(self.Z[torch.cat(pairs)]).double()  # (batch, n_clusters)
        start, end = (y @ orthonormalizer(y)).chunk(2)
        return spectral_loss(start, end)


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralNet(AutoencoderMethod, method="SpectralNet"):
    """Spectral clustering whose eigenvectors are a network's output, so that new points have them, too.

    1. On the pretrained embedding a siamese network learns a distance: nearest neighbors come
       together, other points move a margin apart.
    2. Neighbors in the embedding make the affinity graph; its weights are Gaussians of the learned
       distance. The spectral network learns to give points that a short walk on the graph joins the
       same output, while its outputs stay orthonormal.
    3. k-means on the outputs gives the clusters.

    It differs from the authors' program where that gives better outputs with fewer steps:

    - The near pairs of a point are its ten neighbors, not two. Two are hardly farther away than the
      noise and say nothing about the gap between clusters, which the network then closes: for two
      rings of 100 points the normalized cut is 6 times as large.
    - The graph joins neighbors in the embedding. In the siamese space points can be neighbors that
      no pair ever put together; with two near pairs that cut is then 13 times as large.
    - The graph is that of a large sample. Neighbors within a small batch are not neighbors at all.
    - A batch holds the two ends of random walks. They start from a point as often as its degree
      says, which gives the eigenvectors of the *normalized* Laplacian. Those of many steps are the
      same as those of one, but their eigenvalues are far apart, and the network does not stop at a
      function that is only smooth.
    - A batch is made orthonormal by its own Cholesky factor, and the gradient passes through it. If
      it were fixed from the batch before, shrinking would be the easiest way to a lower loss.

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
        Also the number of outputs.
    n_neighbors : int, default=20
        Neighbors of a point in the graph.
    scale_neighbors : int, default=10
        The distance to this neighbor is the width of a point's Gaussian affinity.
    walk_length : int, default=4
        Steps between the two points of a pair.
    siamese_steps : int or "auto"
        "auto": as many as for the spectral network. With 0, distances are those of the embedding.
    siamese_neighbors : int, default=10
        Neighbors of a point that count as near; at most those of the graph.
    n_steps : int or "auto"
        Of the spectral network. "auto": see :func:`deccs.rules.default_spectral_steps`.
    sample_size : int, default=20_000
        Points of the graph, of the last orthonormalization and of k-means, at most.
    hidden : tuple of int, default=(128, 128)
        Widths of the hidden layers of both networks.
    batch_size : int, default=1024
        Points in a batch, two for each pair; should be far above n_clusters.
    learning_rate : float, default=0.005
        Adam's at the start; it falls to 0.
    network, pretraining, scale, device, random_state, verbose, checkpoint, callbacks
        As for :class:`deccs.DECCS`. The autoencoder is not trained further. ``device`` is for the
        autoencoder alone, the two small networks are on the CPU.

    Attributes
    ----------
    labels_, autoencoder_, scaler_ : as for :class:`deccs.DECCS`
    network_ : from the embedding to the spectral map, orthonormal on the sample
    cluster_centers_ : (n_clusters, n_clusters), in the spectral map, which ``transform`` gives
    variance_ : of a coordinate within clusters; for ``predict_proba`` each cluster is a round Gaussian
    n_iter_ : steps trained

    Examples
    --------
    >>> from deccs import Pretraining, datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> few = {"n_steps": 10, "siamese_steps": 0, "pretraining": Pretraining(n_epochs=2)}
    >>> model = SpectralNet(2, **few, random_state=0).fit(X)
    >>> model.transform(X).shape, bool((model.predict(X) == model.labels_).all())
    ((120, 2), True)
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "network_": nn.Sequential,
        "cluster_centers_": reals("n_wanted", "n_wanted"),
        "variance_": Annotated[float, number(at_least=1e-12)],
    }

    n_neighbors: Annotated[int, whole(at_least=1)] = 20
    scale_neighbors: Annotated[int, whole(at_least=1)] = 10
    walk_length: Annotated[int, whole(at_least=1)] = 4
    siamese_steps: Annotated[int | str, AUTO | whole(at_least=0)] = "auto"
    siamese_neighbors: Annotated[int, whole(at_least=1)] = 10
    sample_size: Annotated[int, whole(at_least=2)] = 20_000
    hidden: Annotated[Sequence[int], WIDTHS] = (128, 128)
    batch_size: Annotated[int, whole(at_least=2)] = 1024
    learning_rate: Annotated[float, number(above=0)] = 5e-3

    def _check_learned(self) -> None:
        super()._check_learned()
        n_latent = check_width(self.autoencoder_.encoder, self._widths[1])
        if n_latent is not None:
            check_width(self.network_, n_latent)

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        if self.sample_size < self.n_wanted:
            raise ValueError(
                f"sample_size must be at least n_clusters={self.n_wanted}, got {self.sample_size}."
            )

    def _n_steps(self, n_points: int) -> int:
        if self.n_clusters == 1:
            return 0
        return default_spectral_steps() if self.n_steps == "auto" else int(self.n_steps)

    def _train(self, autoencoder: Autoencoder, rows: Rows, fit: Fit) -> None:
        sample = draw_rows(len(rows), self.sample_size, generator_for(fit.root, "sample"))
        Z = encode(autoencoder, rows, sample)  # (n_sample, n_latent)
        standardize = standardizing(Z)
        standard = standardize(Z)
        index = neighbors(standard.numpy(), self.n_neighbors)  # (n_sample, n_neighbors)
        distances = distances_to(self._learn_distance(standard, index, fit), index)
        W = affinity(distances, index, self.scale_neighbors)  # (n_sample, n_sample), sparse
        spectral = SpectralMap(standard, W, self, fit.root)
        self.n_iter_ = self._descend(spectral, self._n_steps(len(rows)), fit, "spectral")
        with torch.no_grad():
            network = nn.Sequential(standardize, spectral.network).double()
            last = nn.Linear(self.n_wanted, self.n_wanted, bias=False).double()
            last.weight.copy_(orthonormalizer(network(Z.double())).T)
            self.network_ = nn.Sequential(network, last).eval()
            Y = self.network_(Z.double())  # (n_sample, n_clusters)
        self.cluster_centers_ = first_centers(Y, self.n_wanted, fit.root).double().numpy()
        nearest = squared_distances(Y.numpy(), self.cluster_centers_).min(axis=1)  # (n_sample,)
        self.variance_ = max(float(nearest.mean()) / self.n_wanted, 1e-12)

    def _learn_distance(self, Z: torch.Tensor, index: np.ndarray, fit: Fit) -> np.ndarray:
        """Where the siamese network puts the points: (n_sample, n_latent)."""
        n_steps = self._n_steps(len(Z)) if self.siamese_steps == "auto" else int(self.siamese_steps)
        if not n_steps or self.n_clusters == 1:
            return Z.numpy()
        siamese = SiameseMap(Z, index, self, fit.root)
        self._descend(siamese, n_steps, fit, "siamese")
        with torch.no_grad():
            placed: np.ndarray = siamese.network(Z).numpy()
        return placed

    def _descend(self, learner: Learner, n_steps: int, fit: Fit, place: str) -> int:
        """Train one of the two networks; the number of steps."""
        trained = train(
            learner,
            n_steps,
            rate=self.learning_rate,
            listeners=fit.listeners,
            checkpoint=fit.checkpoint.at(place),
        )
        return trained.n_steps

    @torch.no_grad()
    def _embedded(self, source: RowSource) -> Iterator[np.ndarray]:
        for Z in super()._embedded(source):
            yield self.network_(torch.from_numpy(Z)).numpy()  # network_ has doubles

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        distances = squared_distances(Z, self.cluster_centers_)
        belongs: np.ndarray = softmax(-distances / (2 * self.variance_), axis=1)
        return belongs

    @property
    def _n_features_out(self) -> int:
        return self.n_wanted
