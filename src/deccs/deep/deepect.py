"""DeepECT (Mautz, Plant and Böhm 2019): a binary cluster tree that grows while the embedding is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import nn

from deccs.base import Fit
from deccs.checks import AUTO, number, whole
from deccs.data.rows import Rows
from deccs.deep.base import (
    AutoencoderMethod,
    batches_of,
    one_hot,
    squared_distances,
    typical_deviation,
)
from deccs.deep.coordinates import means_of, round_clusters
from deccs.deep.dcn import nearest
from deccs.network.autoencoder import Autoencoder, encode
from deccs.network.reconstruction import error_for
from deccs.rules import default_leaves, default_split_interval
from deccs.seeds import reproducible_threads, seed_for
from deccs.storage import reals, stored, wholes
from deccs.training.engine import Learner

# A growing tree is the list of its splits in the order they were made: ``sides`` (n_splits, n_leaves) holds 1 for
# the leaves on one side of a split, -1 for those on the other, 0 for all others. A split makes two nodes, so sums
# over nodes are matrix products with ``sides > 0`` and ``sides < 0``.


def split(sides: torch.Tensor, leaf: int) -> torch.Tensor:
    """The tree in which ``leaf`` is split in two: itself and a new last leaf.

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
    splits = torch.arange(len(sides)) != parent
    leaves = torch.arange(sides.shape[1]) != leaf
    return sides[splits][:, leaves]


def node_centers(sides: torch.Tensor, centers: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """(2, n_splits, n_latent): the centers of the two nodes of each split.

    The center of a node is the weighted mean of its children's centers, and so of the leaves below it.

    >>> sides = torch.tensor([[1.0, -1.0, 1.0], [1.0, 0.0, -1.0]])
    >>> node_centers(sides, torch.tensor([[0.0], [9.0], [4.0]]), torch.tensor([3.0, 1.0, 1.0]))[..., 0]
    tensor([[1., 0.],
            [9., 4.]])
    """
    below = torch.stack([sides > 0, sides < 0]) * weights  # (2, n_splits, n_leaves)
    return (below / below.sum(2, keepdim=True)) @ centers


def center_loss(z: torch.Tensor, leaf: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """How far the leaves' centers are from the mean of their points in the batch; it only moves the centers.

    >>> center_loss(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 0]), torch.tensor([[5.0], [7.0]]))  # |5 - 2| / 2
    tensor(1.5000)
    """
    member = nn.functional.one_hot(leaf, len(centers)).to(z.dtype)  # (batch, n_leaves)
    size = member.sum(0)
    means = member.T @ z.detach() / size.clamp(min=1)[:, None]  # (n_leaves, n_latent)
    return torch.linalg.vector_norm(centers - means, dim=1)[size > 0].sum() / len(centers)


def compression_loss(
    z: torch.Tensor, leaf: torch.Tensor, sides: torch.Tensor, nodes: torch.Tensor
) -> torch.Tensor:
    """How far points are from their nodes' centers along the line to the sibling's center; it only moves the points.

    The directions at right angles to that line are left alone: they may hold the structure of later splits. The
    mean over the batch and over all nodes but the root; ``leaf`` (batch,), ``nodes`` (2, n_splits, n_latent).

    >>> z, leaf, sides = torch.tensor([[1.0, 7.0], [4.0, 9.0]]), torch.tensor([0, 1]), torch.tensor([[1.0, -1.0]])
    >>> compression_loss(z, leaf, sides, torch.tensor([[[0.0, 0.0]], [[6.0, 0.0]]]))      # (1 + 2) / (2 x 2)
    tensor(0.7500)
    """
    if not len(sides):
        return z.new_zeros(())
    axis = nn.functional.normalize(nodes[0] - nodes[1], dim=1)  # (n_splits, n_latent)
    along = z @ axis.T  # (batch, n_splits)
    side = sides.T[leaf]  # (batch, n_splits): 1, -1 or 0
    one, other = (nodes * axis).sum(2)  # (n_splits,) positions of the centers along the axes
    distances = (along - torch.where(side > 0, one, other)).abs() * side.abs()
    return distances.sum() / (len(z) * 2 * len(sides))


def widest(Z: torch.Tensor, leaf: torch.Tensor, n_leaves: int) -> int | None:
    """The leaf with the largest sum of squared distances to its mean; None where no leaf has two distinct points.

    >>> widest(torch.tensor([[0.0], [2.0], [9.0], [9.0]]), torch.tensor([0, 0, 1, 1]), n_leaves=2)
    0
    """
    Z = Z.double()
    squares = (Z - means_of(Z, leaf, n_leaves)[leaf]).square().sum(1)  # (n,)
    spread = torch.bincount(leaf, squares, minlength=n_leaves)  # (n_leaves,)
    # Equal points may differ in the last digit of float32, about 1e-7 of their length.
    return int(spread.argmax()) if spread.max() > 1e-12 * Z.square().sum() else None


def two_means(Z: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Centers (2, n_latent) of the halves of Z, and their shares (2,)."""
    with reproducible_threads():
        halves = KMeans(2, n_init=10, random_state=seed).fit(Z.numpy())
    shares = np.bincount(halves.labels_, minlength=2) / len(Z)
    return torch.from_numpy(halves.cluster_centers_).float(), torch.from_numpy(shares).float()


@stored
@dataclass(frozen=True, eq=False)
class ClusterTree:
    """A binary tree of clusters. Node 0 is the root; split number s has made the nodes 2s + 1 and 2s + 2."""

    parents: Annotated[np.ndarray, wholes("n_nodes")]  # -1 for the root
    children: Annotated[np.ndarray, wholes("n_nodes", 2)]  # -1 for a leaf
    centers: Annotated[np.ndarray, reals("n_nodes", "n_latent")]
    # About the points of a batch in the node.
    weights: Annotated[np.ndarray, reals("n_nodes")]

    def check_stored(self) -> None:
        """Raise a ValueError for nodes that are no tree, or are not numbered by the order of splits."""
        n_nodes = len(self.parents)
        inner = np.flatnonzero(self.children[:, 0] != -1)  # nodes that were split
        pairs = self.children[inner]  # (n_splits, 2)
        order = pairs[:, 0].argsort()  # of the splits
        expected = np.arange(1, n_nodes).reshape(-1, 2) if n_nodes % 2 else None
        if (
            expected is None
            or not np.array_equal(pairs[order], expected)
            or not np.array_equal(self.parents, np.append(-1, np.repeat(inner[order], 2)))
            or (self.parents >= np.arange(n_nodes)).any()
            or (self.children[:, 1] < 0).sum() != n_nodes - len(inner)
        ):
            raise ValueError("ClusterTree has parents and children that are not a tree")

    @property
    def leaves(self) -> np.ndarray:
        """(n_leaves,) node numbers."""
        return np.flatnonzero(self.children[:, 0] < 0)

    def cut(self, n_clusters: int) -> np.ndarray:
        """(n_clusters,) node numbers: the leaves of the tree when it had ``n_clusters`` of them."""
        if not 1 <= n_clusters <= len(self.leaves):
            raise ValueError(
                f"The tree has {len(self.leaves)} leaves and cannot be cut into {n_clusters} clusters."
            )
        early = 2 * n_clusters - 1  # nodes, with the root
        return np.array([node for node in range(early) if not 0 <= self.children[node, 0] < early])

    def labels(self, Z: np.ndarray, n_clusters: int) -> np.ndarray:
        """(n,): a point belongs to the nearest leaf, as in training, and so to the node of the cut above it."""
        cluster = np.full(len(self.parents), -1)  # of each node
        cluster[self.cut(n_clusters)] = np.arange(n_clusters)
        for node in range(1, len(cluster)):  # parents come first
            if cluster[node] < 0:
                cluster[node] = cluster[self.parents[node]]
        leaves = self.leaves
        return cluster[leaves][squared_distances(Z, self.centers[leaves]).argmin(axis=1)]


def tree_of(sides: torch.Tensor, centers: torch.Tensor, weights: torch.Tensor) -> ClusterTree:
    """The tree with a number for every node.

    >>> tree = tree_of(torch.tensor([[1.0, -1.0, 1.0], [1.0, 0.0, -1.0]]), torch.zeros(3, 1), torch.ones(3))
    >>> tree.parents, tree.leaves, tree.cut(2)
    (array([-1,  0,  0,  1,  1]), array([2, 3, 4]), array([1, 2]))
    """
    n_nodes = 2 * len(sides) + 1
    parents, children = np.full(n_nodes, -1), np.full((n_nodes, 2), -1)
    for place, row in enumerate(sides):
        above = sides[:place, int(row.nonzero()[0])]  # of any leaf below this split
        last = int(above.nonzero().max()) if above.any() else None
        node = 0 if last is None else 2 * last + (1 if above[last] > 0 else 2)
        children[node] = 2 * place + 1, 2 * place + 2
        parents[children[node]] = node
    centers, weights = centers.double(), weights.double()
    below = torch.stack([sides > 0, sides < 0], dim=1).flatten(0, 1)  # both nodes of each split
    below = torch.cat([torch.ones(1, sides.shape[1]), below]).double() * weights  # with the root
    size = below.sum(1)  # (n_nodes,)
    return ClusterTree(parents, children, (below @ centers / size[:, None]).numpy(), size.numpy())


@dataclass(frozen=True, eq=False)
class Growing:
    """A tree in training: its splits, and of its leaves the centers and the running mean of points in a batch."""

    sides: torch.Tensor  # (n_splits, n_leaves)
    centers: torch.Tensor  # (n_leaves, n_latent)
    weights: torch.Tensor  # (n_leaves,)

    def grown(self, Z: torch.Tensor, seed: int) -> Growing:
        """With its widest leaf split by 2-means on the embedding Z of all points; itself if none can be split."""
        leaf = nearest(Z, self.centers.detach().cpu())  # (n_points,)
        parent = widest(Z, leaf, len(self.centers))
        if parent is None:
            return self
        halves, shares = (
            part.to(self.centers.device) for part in two_means(Z[leaf == parent], seed)
        )
        centers, weights = (
            torch.cat([old, old[-1:]]) for old in (self.centers.detach(), self.weights)
        )
        both = torch.tensor([parent, -1])
        centers[both], weights[both] = halves, shares * self.weights[parent]
        return Growing(split(self.sides, parent), centers, weights)

    def counted(self, leaf: torch.Tensor) -> Growing:
        """With the leaves of a batch (batch,) in the weights: half the old ones plus half the new counts."""
        counts = torch.bincount(leaf, minlength=len(self.weights))
        return replace(self, weights=(0.5 * self.weights + 0.5 * counts).clamp(min=1e-6))

    def pruned(self, threshold: float) -> Growing:
        """Without the leaves below the threshold, removed lightest first; one always stays."""
        tree = self
        while len(tree.weights) > 1 and tree.weights.min() < threshold:
            light = int(tree.weights.argmin())
            keep = torch.arange(len(tree.weights), device=tree.weights.device) != light
            tree = Growing(
                prune(tree.sides, light), tree.centers.detach()[keep], tree.weights[keep]
            )
        return tree


@dataclass(eq=False, repr=False, kw_only=True)
class DeepECT(AutoencoderMethod, method="DeepECT"):
    """Deep embedded cluster tree: a hierarchy, grown by splitting leaves while the embedding adapts to it.

    The tree starts as a single root, the embedding in coordinates in which its clusters are round. At intervals
    the leaf with the largest sum of squared distances is split by 2-means. In between, the leaves' centers follow
    the means of their points, and the encoder draws points to the centers of all the nodes they are in, but
    only along the line to the sibling's center: other directions, which a later split may need, are shaped by the
    reconstruction alone. Leaves that no longer get points are pruned. A point belongs to the nearest leaf. The
    clusters are the leaves after the first ``n_clusters - 1`` splits.

    Parameters
    ----------
    n_clusters : int, "auto" or a range such as "3-20", default=8
    max_leaves : int or "auto"
        The number of leaves at which the tree stops growing. "auto": twice ``n_clusters``, as the authors use.
    split_interval : int or "auto"
        Steps between two splits. "auto": the tree is full after half of the steps.
    pruning_threshold : float, default=0.1
        A leaf is removed when its running mean of points in a batch falls below this.
    lambda_cluster : float, default=5.0
        Weight of the compression, in standard deviations of the pretrained embedding, against the mean squared
        error over columns. The authors use 1 and about 60,000 steps.
    n_steps, learning_rate, batch_size, network, pretraining, scale, device, random_state, verbose, ...
        As for :class:`deccs.deep.DEC`, but all steps are done.

    Attributes
    ----------
    labels_, autoencoder_, scaler_, n_iter_ : as for :class:`deccs.deep.DEC`
    tree_ : ClusterTree
        All nodes, with at least ``n_clusters`` leaves if the data has as many distinct points.
    cluster_centers_ : (n_clusters, n_latent)
        Centers of the nodes that are the clusters.

    Examples
    --------
    >>> from deccs import Pretraining, datasets
    >>> X, y = datasets.make_rings(n_per_cluster=60, random_state=0)
    >>> model = DeepECT(2, n_steps=10, pretraining=Pretraining(n_epochs=2), random_state=0).fit(X)
    >>> len(model.tree_.leaves), bool((model.predict_at(X, 2) == model.labels_).all())
    (4, True)
    """

    LEARNED: ClassVar[Mapping[str, Any]] = {
        "tree_": ClusterTree,
        "cluster_centers_": reals("n_found", "n_latent"),
    }

    max_leaves: Annotated[int | str, AUTO | whole(at_least=1)] = "auto"
    split_interval: Annotated[int | str, AUTO | whole(at_least=1)] = "auto"
    pruning_threshold: Annotated[float, number(at_least=0)] = 0.1
    lambda_cluster: Annotated[float, number(at_least=0)] = 5.0

    def predict_at(self, X: Any, k: int) -> np.ndarray:
        """Labels for any number of clusters up to the number of leaves; those of n are nested in those of n - 1.

        After a fit with n_clusters="auto" they are those of :meth:`labels_at`.
        """
        if hasattr(self, "count_"):
            return super().predict_at(X, k)
        blocks = self._embedded(self._checked(X))
        return np.concatenate([self.tree_.labels(Z, k) for Z in blocks])

    def _check_learned(self) -> None:
        super()._check_learned()
        n_found = len(self.cluster_centers_)
        if not 1 <= n_found <= min(len(self.tree_.leaves), self.n_wanted):
            raise ValueError(f"tree_ cannot be cut into {n_found} clusters")

    def _check(self, n_points: int) -> None:
        super()._check(n_points)
        if self.max_leaves != "auto" and int(self.max_leaves) < self.n_wanted:
            raise ValueError(
                f"max_leaves must be at least n_clusters={self.n_wanted}, got {self.max_leaves}."
            )

    def _train(self, autoencoder: Autoencoder, rows: Rows, fit: Fit) -> None:
        learner = TreeEmbedding(autoencoder, rows, self, fit.root)
        self._run(learner, rows, fit)
        tree = learner.tree
        if len(tree.weights) < self.n_wanted:  # too few steps, or leaves were pruned late
            Z = encode(autoencoder, rows)
            for n_leaves in range(len(tree.weights), self.n_wanted):
                tree = tree.grown(Z, seed_for(fit.root, "last splits", n_leaves))
        self.tree_ = tree_of(tree.sides.cpu(), tree.centers.detach().cpu(), tree.weights.cpu())
        # The data may have fewer distinct points than clusters were asked for.
        n_clusters = min(self.n_wanted, len(tree.weights))
        self.cluster_centers_ = self.tree_.centers[self.tree_.cut(n_clusters)]

    def _most_leaves(self) -> int:
        return default_leaves(self.n_wanted) if self.max_leaves == "auto" else int(self.max_leaves)

    def _split_interval(self, n_points: int) -> int:
        """Steps between two splits."""
        if self.split_interval == "auto":
            return default_split_interval(self._n_steps(n_points), self._most_leaves())
        return int(self.split_interval)

    def _belongs(self, Z: np.ndarray) -> np.ndarray:
        """One for the cluster of the nearest leaf: the assignments of the tree are hard."""
        return one_hot(self.tree_.labels(Z, len(self.cluster_centers_)), self.n_wanted)


class TreeEmbedding(Learner):
    """Draw points to the nodes of a tree that grows meanwhile."""

    stage = "DeepECT"
    learned = ("autoencoder", "sides", "centers", "weights")
    resized = ("sides", "centers", "weights")
    random = ("batches",)

    def __init__(self, autoencoder: Autoencoder, rows: Rows, method: DeepECT, root: int) -> None:
        Z = round_clusters(autoencoder, rows, method.n_wanted, root)  # (n_points, n_latent)
        self.autoencoder, self.rows, self.device = autoencoder, rows, rows.device
        self.error = error_for(rows)
        self.method, self.root = method, root
        self.most_leaves = method._most_leaves()
        self.split_interval = method._split_interval(len(rows))
        self.unit = typical_deviation(Z)
        self.batches = batches_of(rows, method.batch_size, root)
        self._take(sapling(Z.to(rows.device)))
        autoencoder.train()

    def check_learned(self, state: dict[str, Any]) -> None:
        super().check_learned(state)
        n_leaves, n_latent = len(state["weights"]), self.centers.shape[1]
        shapes = [tuple(state[name].shape) for name in self.resized]
        expected = [(n_leaves - 1, n_leaves), (n_leaves, n_latent), (n_leaves,)]
        known = torch.isin(state["sides"].cpu(), torch.tensor([-1.0, 0.0, 1.0])).all()
        if shapes != expected or not known or not 1 <= n_leaves <= max(self.most_leaves, 1):
            raise ValueError(f"No tree has {shapes} as {', '.join(self.resized)}")

    @property
    def tree(self) -> Growing:
        return Growing(self.sides, self.centers, self.weights)

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        self.rate = rate
        return [torch.optim.Adam(self.autoencoder.parameters(), lr=rate), self._center_optimizer()]

    def before_step(self, step: int) -> None:
        done = step - 1
        if done % self.split_interval == 0 and len(self.weights) < self.most_leaves:
            Z = encode(self.autoencoder, self.rows)  # (n_points, n_latent)
            self.autoencoder.train()
            self._replace(self.tree.grown(Z, seed_for(self.root, "split", done)))

    def loss(self, step: int) -> torch.Tensor:
        x = self.rows[next(self.batches)]
        z = self.autoencoder.encoder(x)  # (batch, n_latent)
        self.leaf = nearest(z.detach(), self.centers.detach())  # (batch,)
        nodes = node_centers(self.sides, self.centers.detach(), self.weights)
        error = self.error(self.autoencoder.decoder(z), x)
        compression = compression_loss(z, self.leaf, self.sides, nodes)
        weight = self.method.lambda_cluster / self.unit
        return error + weight * compression + center_loss(z, self.leaf, self.centers)

    def after_step(self, step: int) -> None:
        self._replace(self.tree.counted(self.leaf).pruned(self.method.pruning_threshold))

    def _replace(self, tree: Growing) -> None:
        """Continue with another tree; if its leaves are others, so must their optimizer be."""
        other_leaves = tree.centers is not self.centers
        self._take(tree)
        if other_leaves:
            self.optimizers[1] = self._center_optimizer()

    def _take(self, tree: Growing) -> None:
        self.sides, self.centers, self.weights = tree.sides, tree.centers, tree.weights

    def _center_optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.Adam([self.centers.requires_grad_()], lr=self.rate * self.unit)


def sapling(Z: torch.Tensor) -> Growing:
    """A tree that is only its root, at the mean of Z (n, n_latent)."""
    return Growing(
        torch.zeros(0, 1, device=Z.device), Z.mean(0, keepdim=True), torch.ones(1, device=Z.device)
    )
