"""DeepECT (Mautz, Plant and Böhm 2019): a binary cluster tree that grows while the embedding is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits
from torch import nn

from deccs.data.rows import Rows
from deccs.deep.base import DeepClustering, embed_all, squared_distances, typical_deviation
from deccs.deep.coordinates import means_of, round_clusters
from deccs.deep.dcn import nearest
from deccs.events import Progress
from deccs.network.autoencoder import Autoencoder
from deccs.seeds import generator_for, seed_for
from deccs.settings import Pretraining
from deccs.storage import stored
from deccs.training.batches import endless_batches

# While it grows, a tree is its splits in the order they were made: ``sides`` (n_splits, n_leaves) holds 1 for the
# leaves on one side of a split, -1 for those on the other, 0 for those elsewhere. A split makes two nodes, so that
# sums over nodes are matrix products with ``sides > 0`` and ``sides < 0``.


def split(sides: torch.Tensor, leaf: int) -> torch.Tensor:
    """The tree in which ``leaf`` has become two: itself and a new last one.

    >>> split(split(torch.zeros(0, 1), 0), 0)       # leaf 1 apart from 0 and 2, then 2 from 0
    tensor([[ 1., -1.,  1.],
            [ 1.,  0., -1.]])
    """
    grown = torch.cat([sides, sides[:, leaf, None]], dim=1)  # the new leaf is where the old was
    apart = torch.zeros(1, grown.shape[1], device=sides.device)
    apart[0, leaf], apart[0, -1] = 1, -1
    return torch.cat([grown, apart])


def prune(sides: torch.Tensor, leaf: int) -> torch.Tensor:
    """The tree without ``leaf``: its sibling, a leaf or a whole branch, takes the place of their parent.

    >>> prune(torch.tensor([[1.0, -1.0, 1.0], [1.0, 0.0, -1.0]]), 1)
    tensor([[ 1., -1.]])
    """
    parent = int(sides[:, leaf].nonzero().max())  # the latest split above it
    splits, leaves = (
        torch.ones(len(sides), dtype=torch.bool),
        torch.ones(sides.shape[1], dtype=torch.bool),
    )
    splits[parent], leaves[leaf] = False, False
    return sides[splits][:, leaves]


def node_centers(sides: torch.Tensor, centers: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """(2, n_splits, n_latent): the centers of the two nodes of each split.

    Of its children's centers a node has the mean weighted by theirs: so of the leaves below it.

    >>> sides = torch.tensor([[1.0, -1.0, 1.0], [1.0, 0.0, -1.0]])
    >>> node_centers(sides, torch.tensor([[0.0], [9.0], [4.0]]), torch.tensor([3.0, 1.0, 1.0]))[..., 0]
    tensor([[1., 0.],
            [9., 4.]])
    """
    below = torch.stack([sides > 0, sides < 0]) * weights  # (2, n_splits, n_leaves)
    return (below / below.sum(2, keepdim=True)) @ centers


def center_loss(z: torch.Tensor, leaf: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """How far the leaves' centers are from the mean of their points in the batch: it moves the centers alone.

    >>> center_loss(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 0]), torch.tensor([[5.0], [7.0]]))  # |5 - 2| / 2
    tensor(1.5000)
    """
    own = nn.functional.one_hot(leaf, len(centers)).to(z.dtype)  # (batch, n_leaves)
    size = own.sum(0)
    means = own.T @ z.detach() / size.clamp(min=1)[:, None]  # (n_leaves, n_latent)
    return torch.linalg.vector_norm(centers - means, dim=1)[size > 0].sum() / len(centers)


def compression_loss(
    z: torch.Tensor, leaf: torch.Tensor, sides: torch.Tensor, nodes: torch.Tensor
) -> torch.Tensor:
    """How far points are from their nodes' centers along the line to the sibling's: it moves the points alone.

    What is at right angles to the line is left alone, for it may hold the structure of later splits. Mean over
    the batch and over all nodes but the root; ``leaf`` (batch,), ``nodes`` (2, n_splits, n_latent).

    >>> z, leaf, sides = torch.tensor([[1.0, 7.0], [4.0, 9.0]]), torch.tensor([0, 1]), torch.tensor([[1.0, -1.0]])
    >>> compression_loss(z, leaf, sides, torch.tensor([[[0.0, 0.0]], [[6.0, 0.0]]]))      # (1 + 2) / (2 x 2)
    tensor(0.7500)
    """
    if not len(sides):
        return z.new_zeros(())
    axis = nn.functional.normalize(nodes[0] - nodes[1], dim=1)  # (n_splits, n_latent)
    along = z @ axis.T  # (batch, n_splits)
    here = sides.T[leaf]  # (batch, n_splits): 1, -1 or 0
    one, other = (nodes * axis).sum(2)  # (n_splits,) where the centers are
    return ((along - torch.where(here > 0, one, other)).abs() * here.abs()).sum() / (
        len(z) * 2 * len(sides)
    )


def widest(Z: torch.Tensor, leaf: torch.Tensor, n_leaves: int) -> int | None:
    """The leaf with the largest sum of squared distances to its mean; None where no leaf has two distinct points.

    >>> widest(torch.tensor([[0.0], [2.0], [9.0], [9.0]]), torch.tensor([0, 0, 1, 1]), n_leaves=2)
    0
    """
    Z = Z.double()
    squares = (Z - means_of(Z, leaf, n_leaves)[leaf]).square().sum(1)  # (n,)
    spread = torch.bincount(leaf, squares, minlength=n_leaves)  # (n_leaves,)
    # Equal points differ in the last digits of float32, some 1e-7 of their length.
    return int(spread.argmax()) if spread.max() > 1e-12 * Z.square().sum() else None


def two_means(Z: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Centers (2, n_latent) of the halves of Z, and their shares (2,)."""
    with threadpool_limits(1, user_api="openmp"):  # it adds up in the order its threads arrive
        halves = KMeans(2, n_init=10, random_state=seed).fit(Z.numpy())
    shares = np.bincount(halves.labels_, minlength=2) / len(Z)
    return torch.from_numpy(halves.cluster_centers_).float(), torch.from_numpy(shares).float()


@stored
@dataclass(frozen=True, eq=False)
class ClusterTree:
    """A binary tree of clusters. Node 0 is the root; split number s has made the nodes 2s + 1 and 2s + 2."""

    parents: np.ndarray  # (n_nodes,), -1 for the root
    children: np.ndarray  # (n_nodes, 2), -1 for a leaf
    centers: np.ndarray  # (n_nodes, n_latent)
    weights: np.ndarray  # (n_nodes,), about the points of a batch in the node

    @property
    def leaves(self) -> np.ndarray:
        """(n_leaves,) node numbers."""
        return np.flatnonzero(self.children[:, 0] < 0)

    def cut(self, n_clusters: int) -> np.ndarray:
        """(n_clusters,) node numbers: the leaves the tree had before its later splits."""
        if not 1 <= n_clusters <= len(self.leaves):
            raise ValueError(
                f"The tree has {len(self.leaves)} leaves and cannot be cut into {n_clusters} clusters."
            )
        early = 2 * n_clusters - 1  # that many nodes with the root
        return np.array([node for node in range(early) if not 0 <= self.children[node, 0] < early])

    def labels(self, Z: np.ndarray, n_clusters: int) -> np.ndarray:
        """Points go to the nearest leaf, as in training, and so to the node of the cut above it: (n,)."""
        number = np.full(len(self.parents), -1)
        number[self.cut(n_clusters)] = np.arange(n_clusters)
        for node in range(len(number)):  # parents come first
            if number[node] < 0 and node > 0:
                number[node] = number[self.parents[node]]
        return number[self.leaves][squared_distances(Z, self.centers[self.leaves]).argmin(axis=1)]


def tree_of(sides: torch.Tensor, centers: torch.Tensor, weights: torch.Tensor) -> ClusterTree:
    """The tree with a number for every node.

    >>> tree = tree_of(torch.tensor([[1.0, -1.0, 1.0], [1.0, 0.0, -1.0]]), torch.zeros(3, 1), torch.ones(3))
    >>> tree.parents, tree.leaves, tree.cut(2)
    (array([-1,  0,  0,  1,  1]), array([2, 3, 4]), array([1, 2]))
    """
    n_nodes = 2 * len(sides) + 1
    parents, children = np.full(n_nodes, -1), np.full((n_nodes, 2), -1)
    for number, row in enumerate(sides):
        above = sides[:number, int(row.nonzero()[0])]  # of any leaf below this split
        last = int(above.nonzero().max()) if above.any() else None
        node = 0 if last is None else 2 * last + (1 if above[last] > 0 else 2)
        children[node] = 2 * number + 1, 2 * number + 2
        parents[children[node]] = node
    centers, weights = centers.double(), weights.double()
    below = torch.stack([sides > 0, sides < 0], dim=1).reshape(
        n_nodes - 1, -1
    )  # both nodes of a split in turn
    below = (
        torch.cat([torch.ones(1, sides.shape[1]), below]).double() * weights
    )  # (n_nodes, n_leaves)
    size = below.sum(1)
    return ClusterTree(parents, children, (below @ centers / size[:, None]).numpy(), size.numpy())


@dataclass(frozen=True, eq=False)
class Growing:
    """A tree in training: its splits, and of its leaves the centers and the running mean of points in a batch."""

    sides: torch.Tensor  # (n_splits, n_leaves)
    centers: torch.Tensor  # (n_leaves, n_latent)
    weights: torch.Tensor  # (n_leaves,)

    def grown(self, Z: torch.Tensor, seed: int) -> Growing:
        """With its widest leaf split by 2-means on the embedding Z of all points; itself where none can be split."""
        leaf = nearest(Z, self.centers.cpu())  # (n_points,)
        which = widest(Z, leaf, len(self.centers))
        if which is None:
            return self
        halves, shares = (
            part.to(self.centers.device) for part in two_means(Z[leaf == which], seed)
        )
        centers, weights = (
            torch.cat([old, old[-1:]]) for old in (self.centers.detach(), self.weights)
        )
        place = torch.tensor([which, -1])
        centers[place], weights[place] = halves, shares * self.weights[which]
        return Growing(split(self.sides, which), centers, weights)

    def counted(self, leaf: torch.Tensor) -> Growing:
        """With the leaves of a batch (batch,) in the weights: half of the old ones, half of the new counts."""
        counts = torch.bincount(leaf, minlength=len(self.weights))
        return replace(self, weights=(0.5 * self.weights + 0.5 * counts).clamp(min=1e-6))

    def pruned(self, threshold: float) -> Growing:
        """Without the leaves below the threshold, the lightest first; one stays."""
        tree = self
        while len(tree.weights) > 1 and tree.weights.min() < threshold:
            light = int(tree.weights.argmin())
            keep = torch.arange(len(tree.weights), device=tree.weights.device) != light
            tree = Growing(
                prune(tree.sides, light), tree.centers.detach()[keep], tree.weights[keep]
            )
        return tree


class DeepECT(DeepClustering):
    """Deep embedded cluster tree: a hierarchy, grown by splitting leaves while the embedding adapts to it.

    The tree starts as its root, the embedding in coordinates in which its clusters are round. At intervals the
    leaf with the largest sum of squared distances is split by 2-means. In between, the leaves' centers follow
    the means of their points, and the encoder draws points to the centers of all the nodes they are in, but
    only along the line to the sibling's center: directions a later split may need stay as the reconstruction
    wants them. Leaves that no longer get points are pruned. Points belong to the nearest leaf. The clusters are
    the leaves before all splits but the first ``n_clusters - 1``.

    Parameters
    ----------
    n_clusters : int, default=8
    max_leaves : int or "auto"
        Leaves at which the tree stops growing. "auto": twice ``n_clusters``, as the authors have it.
    split_interval : int or "auto"
        Steps between two splits. "auto": the tree is full after half of the steps.
    pruning_threshold : float, default=0.1
        A leaf goes when its running mean of points in a batch falls below.
    lambda_cluster : float, default=5.0
        Weight of the compression, in standard deviations of the pretrained embedding, against the mean squared
        error over columns. The authors have 1 and some 60,000 steps.
    n_steps : int or "auto"
        "auto": 30 passes over the data, at least 1,000 and at most 4,000 steps.
    learning_rate : float or "auto"
        Adam's. "auto": see :func:`deccs.rules.default_rate`.
    batch_size : int, default=256
    autoencoder, layers, dropout, pretraining, scale, device, random_state, verbose, callbacks
        As for :class:`deccs.deep.DEC`.

    Attributes
    ----------
    labels_, autoencoder_, scaler_ : as for :class:`deccs.DECCS`
    tree_ : ClusterTree
        All nodes, with at least ``n_clusters`` leaves if the data has as many distinct points.
    cluster_centers_ : (n_clusters, n_latent)
        Of the nodes that are the clusters.
    n_iter_ : steps trained

    Examples
    --------
    >>> from deccs import datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = DeepECT(2, n_steps=10, pretraining=Pretraining(epochs=2), random_state=0).fit(X)
    >>> len(model.tree_.leaves), bool((model.labels_at(X, 2) == model.labels_).all())
    (4, True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        max_leaves: int | str = "auto",
        split_interval: int | str = "auto",
        pruning_threshold: float = 0.1,
        lambda_cluster: float = 5.0,
        autoencoder: Autoencoder | tuple[Any, Any] | None = None,
        layers: Sequence[int] | str = "auto",
        dropout: float = 0.0,
        pretraining: Pretraining | None = None,
        n_steps: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float | str = "auto",
        scale: str | None = "auto",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_leaves = max_leaves
        self.split_interval = split_interval
        self.pruning_threshold = pruning_threshold
        self.lambda_cluster = lambda_cluster
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

    def labels_at(self, X: Any, n_clusters: int) -> np.ndarray:
        """Flat labels for any number of clusters up to that of the leaves: those of n are nested in those of n - 1."""
        return np.concatenate(
            [self.tree_.labels(Z, n_clusters) for Z in self._embedded(self._checked(X))]
        )

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        leaves = self.max_leaves
        if leaves != "auto" and (
            not isinstance(leaves, int | np.integer) or leaves < self.n_clusters
        ):
            raise ValueError(
                f'max_leaves is "auto" or a whole number of at least n_clusters={self.n_clusters}, '
                f"got {leaves!r}."
            )

    def _train(
        self,
        autoencoder: Autoencoder,
        rows: Rows,
        root: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        n_steps, n_leaves, interval = self._lengths(len(rows))
        batches = endless_batches(
            torch.arange(len(rows)), self.batch_size, generator_for(root, "batches")
        )
        rate = self._rate(autoencoder)
        optimizer = torch.optim.Adam(autoencoder.parameters(), lr=rate)
        Z = round_clusters(autoencoder, rows, self.n_clusters, root)  # (n_points, n_latent)
        tree, unit = sapling(Z.to(rows.device)), typical_deviation(Z)
        planted, total = None, torch.zeros(())
        for step in range(n_steps):
            if step % interval == 0 and len(tree.weights) < n_leaves:
                tree = tree.grown(embed_all(autoencoder, rows), seed_for(root, "split", step))
                autoencoder.train()
            if tree.centers is not planted:  # other leaves, another optimizer
                planted = tree.centers.requires_grad_()
                mover = torch.optim.Adam([planted], lr=rate * unit)
            x = rows[next(batches)]
            z = autoencoder.encoder(x)  # (batch, n_latent)
            leaf = nearest(z.detach(), tree.centers.detach())  # (batch,)
            nodes = node_centers(tree.sides, tree.centers.detach(), tree.weights)
            loss = (
                (autoencoder.decoder(z) - x).square().mean()
                + self.lambda_cluster / unit * compression_loss(z, leaf, tree.sides, nodes)
                + center_loss(z, leaf, tree.centers)
            )
            for part in (optimizer, mover):
                part.zero_grad(set_to_none=True)
            loss.backward()
            for part in (optimizer, mover):
                part.step()
            tree = tree.counted(leaf).pruned(self.pruning_threshold)
            total += loss.detach().cpu()
            if (step + 1) % 100 == 0 or step + 1 == n_steps:
                on_progress(
                    Progress(
                        "DeepECT", step + 1, n_steps, float(total) / (step % 100 + 1), math.nan
                    )
                )
                total = torch.zeros(())
        self.n_iter_ = n_steps
        self.autoencoder_ = autoencoder
        tree = self._with_enough_leaves(tree, autoencoder, rows, root)
        self.tree_ = tree_of(tree.sides.cpu(), tree.centers.detach().cpu(), tree.weights.cpu())
        self.cluster_centers_ = self.tree_.centers[
            self.tree_.cut(min(self.n_clusters, len(tree.weights)))
        ]

    def _with_enough_leaves(
        self, tree: Growing, autoencoder: Autoencoder, rows: Rows, root: int
    ) -> Growing:
        """Few steps or late pruning may leave less than the clusters asked for; so may the data, and then no more."""
        if len(tree.weights) < self.n_clusters:
            Z = embed_all(autoencoder, rows)
            for number in range(len(tree.weights), self.n_clusters):
                tree = tree.grown(Z, seed_for(root, "last splits", number))
        return tree

    def _lengths(self, n_points: int) -> tuple[int, int, int]:
        """Steps, leaves at most, and steps between two splits."""
        n_steps = self._steps(n_points)
        n_leaves = 2 * self.n_clusters if self.max_leaves == "auto" else int(self.max_leaves)
        interval = (
            n_steps // (2 * n_leaves) if self.split_interval == "auto" else int(self.split_interval)
        )
        return n_steps, n_leaves, max(1, interval)

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        """One for the cluster of the nearest leaf: the assignments of the tree are hard."""
        return np.eye(self.n_clusters)[self.tree_.labels(Z, len(self.cluster_centers_))]


def sapling(Z: torch.Tensor) -> Growing:
    """A tree that is its root alone, at the mean of Z (n, n_latent)."""
    return Growing(
        torch.zeros(0, 1, device=Z.device), Z.mean(0, keepdim=True), torch.ones(1, device=Z.device)
    )
