"""DeepECT: its tree and its losses on numbers worked out by hand, and against slow references."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from deccs import Network, Pretraining, scores
from deccs.deep.deepect import (
    DeepECT,
    Growing,
    TreeEmbedding,
    center_loss,
    compression_loss,
    node_centers,
    prune,
    sapling,
    split,
    tree_of,
    two_means,
    widest,
)

QUICK = {
    "n_clusters": 3,
    "network": Network(layers=(8, 2)),
    "n_steps": 30,
    "batch_size": 32,
    "random_state": 0,
    "pretraining": Pretraining(n_epochs=30, batch_size=32, learning_rate=1e-2),
}

# Leaf 1 was split off from the root, then 2 from 0, then 3 from 1:   (0 2) (1 3)
FOUR = torch.tensor([[1.0, -1.0, 1.0, -1.0], [1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, -1.0]])


def random_tree(n_leaves, n_latent=3, seed=0):
    rng = torch.Generator().manual_seed(seed)
    sides = torch.zeros(0, 1)
    while sides.shape[1] < n_leaves:
        sides = split(sides, int(torch.randint(sides.shape[1], (1,), generator=rng)))
    centers = torch.randn(n_leaves, n_latent, generator=rng)
    return Growing(sides, centers, torch.rand(n_leaves, generator=rng) + 0.1)


@pytest.fixture(scope="module")
def fitted(blobs):
    return DeepECT(**QUICK).fit(blobs.X)


def test_a_split_leaf_keeps_its_place_and_gets_a_sibling():
    sides = torch.zeros(0, 1)
    for leaf in (0, 0, 1):
        sides = split(sides, leaf)
    assert torch.equal(sides, FOUR)


def test_the_sibling_of_a_pruned_leaf_moves_up():
    assert torch.equal(prune(FOUR, 3), FOUR[:2, :3])  # leaf 1 alone on its side again
    without_2_and_0 = prune(prune(FOUR, 2), 0)  # the branch (1 3) is all that is left
    assert torch.equal(without_2_and_0, torch.tensor([[1.0, -1.0]]))


@pytest.mark.parametrize("leaf", range(7))
def test_pruning_a_leaf_just_split_off_undoes_the_split(leaf):
    sides = random_tree(7).sides
    assert torch.equal(prune(split(sides, leaf), 7), sides)


def test_a_pruned_tree_is_a_tree():
    tree = random_tree(12)
    sides = tree.sides
    for leaf in (3, 0, 5, 1):
        sides = prune(sides, leaf)
        nodes = tree_of(sides, tree.centers[: sides.shape[1]], tree.weights[: sides.shape[1]])
        assert len(nodes.leaves) == sides.shape[1] == len(sides) + 1
        assert all(
            child > node for node, both in enumerate(nodes.children) for child in both if child >= 0
        )
        assert_array_equal(
            [node in nodes.children[nodes.parents[node]] for node in range(1, len(nodes.parents))],
            True,
        )


def test_two_means_and_the_widest_leaf_by_hand():
    Z = torch.tensor([[0.0], [1.0], [10.0], [11.0], [11.0], [13.0]])
    centers, shares = two_means(Z[:4], seed=0)
    assert_allclose(np.sort(centers[:, 0]), [0.5, 10.5])
    assert_allclose(shares, [0.5, 0.5])
    assert widest(Z, torch.tensor([0, 0, 1, 1, 1, 1]), 2) == 1  # 0.5 against 4.75 (mean 11.25)
    assert widest(Z, torch.tensor([0, 0, 0, 0, 1, 1]), 2) == 0  # 101 against 2
    assert widest(torch.ones(5, 2), torch.zeros(5, dtype=torch.long), 1) is None


def test_growing_by_hand():
    Z = torch.tensor([[0.0], [1.0], [10.0], [11.0], [12.0]])
    tree = sapling(Z)
    assert float(tree.centers) == pytest.approx(6.8)
    tree = tree.grown(Z, seed=0)
    order = tree.centers[:, 0].argsort()
    assert_allclose(tree.centers[order, 0], [0.5, 11])
    assert_allclose(tree.weights[order], [0.4, 0.6])
    tree = tree.grown(Z, seed=0)  # 2 around 11, 0.5 around 0.5
    assert_allclose(sorted(tree.centers[:, 0].tolist())[0], 0.5)
    assert len(tree.sides) == 2 and float(tree.weights.sum()) == pytest.approx(1)


def test_points_all_alike_are_not_split():
    tree = sapling(torch.ones(4, 2))
    assert tree.grown(torch.ones(4, 2), seed=0) is tree


def test_weights_are_running_means_of_the_counts():
    tree = Growing(FOUR[:1, :2], torch.zeros(2, 1), torch.tensor([4.0, 2.0])).counted(
        torch.tensor([0, 0, 0, 1])
    )
    assert_allclose(tree.weights, [3.5, 1.5])


def test_leaves_without_points_are_pruned_and_one_stays():
    tree = Growing(FOUR, torch.arange(4.0)[:, None], torch.tensor([3.0, 1.0, 1.0, 1.0]))
    for _ in range(4):  # 1, 1/2, 1/4, 1/8, 1/16
        assert len(tree.pruned(0.1).weights) == 4
        tree = tree.counted(torch.tensor([0, 0, 0, 1, 1]))
    left = tree.pruned(0.1)
    assert_array_equal(left.centers[:, 0], [0, 1])
    assert torch.equal(left.sides, torch.tensor([[1.0, -1.0]]))
    alone = tree.pruned(1_000)
    assert alone.sides.shape == (0, 1) and float(alone.centers) == 0  # the heaviest
    z, leaf = torch.ones(2, 1), torch.zeros(2, dtype=torch.long)
    assert (
        float(
            compression_loss(
                z, leaf, alone.sides, node_centers(alone.sides, alone.centers, alone.weights)
            )
        )
        == 0
    )


def test_the_center_of_an_inner_node_is_the_weighted_mean_of_its_childrens():
    nodes = node_centers(
        FOUR, torch.tensor([[0.0], [1.0], [4.0], [6.0]]), torch.tensor([1.0, 2.0, 3.0, 2.0])
    )
    assert_allclose(nodes[..., 0], [[3, 0, 1], [3.5, 4, 6]])  # (0 + 12) / 4 and (2 + 12) / 4 first
    grown = random_tree(9)
    tree = tree_of(grown.sides, grown.centers, grown.weights)
    for node, both in enumerate(tree.children):
        if both[0] >= 0:
            assert tree.weights[node] == pytest.approx(tree.weights[both].sum())
            assert_allclose(
                tree.centers[node],
                np.average(tree.centers[both], axis=0, weights=tree.weights[both]),
            )
    pairs = node_centers(grown.sides, grown.centers, grown.weights).transpose(0, 1).reshape(-1, 3)
    assert_allclose(tree.centers[1:], pairs, rtol=1e-4, atol=1e-6)


def test_center_loss_by_hand_moves_centers_and_not_points():
    z = torch.tensor([[2.0, 4.0], [4.0, 4.0], [9.0, 9.0]], requires_grad=True)
    centers = torch.tensor([[0.0, 0.0], [9.0, 9.0], [1.0, 1.0]], requires_grad=True)
    loss = center_loss(z, torch.tensor([0, 0, 1]), centers)  # (3, 4) is 5 off, 0 off, no points
    assert loss.item() == pytest.approx(5 / 3)
    loss.backward()
    assert z.grad is None
    assert_allclose(centers.grad, np.array([[-0.6, -0.8], [0, 0], [0, 0]]) / 3, atol=1e-6)


def test_compression_by_hand_is_along_the_line_between_the_centers_only():
    nodes = torch.tensor([[[0.0, 0.0]], [[3.0, 4.0]]])  # the line is (0.6, 0.8)
    z = torch.tensor([[1.0, 2.0], [4.0, -3.0], [3.0, 5.0]], requires_grad=True)
    loss = compression_loss(z, torch.tensor([0, 0, 1]), FOUR[:1, :2], nodes)
    assert loss.item() == pytest.approx((2.2 + 0 + 0.8) / 6)  # 3 points, 2 nodes
    loss.backward()
    assert_allclose(z.grad[[0, 2]], np.array([[0.6, 0.8], [0.6, 0.8]]) / 6, atol=1e-6)


def test_compression_is_the_sum_over_nodes_point_by_point():
    grown = random_tree(8)
    tree = tree_of(grown.sides, grown.centers, grown.weights)
    z = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))
    leaf = torch.cdist(z, grown.centers).argmin(1)
    slow = 0.0
    for point, node in zip(
        z.double().numpy(), tree.leaves[leaf_order(grown, tree)][leaf], strict=True
    ):
        while node > 0:
            left, right = tree.children[tree.parents[node]]
            axis = tree.centers[left] - tree.centers[right]
            slow += abs((tree.centers[node] - point) @ axis) / np.linalg.norm(axis)
            node = tree.parents[node]
    nodes = node_centers(grown.sides, grown.centers, grown.weights)
    assert float(compression_loss(z, leaf, grown.sides, nodes)) == pytest.approx(
        slow / (20 * 14), rel=1e-5
    )


def leaf_order(grown, tree):
    """Which leaf of the numbered tree each of the growing one's is."""
    return (
        torch.cdist(grown.centers.double(), torch.from_numpy(tree.centers[tree.leaves]))
        .argmin(1)
        .numpy()
    )


def test_the_cut_undoes_the_latest_splits():
    tree = tree_of(FOUR, torch.tensor([[0.0], [10.0], [4.0], [16.0]]), torch.ones(4))
    assert_array_equal(tree.parents, [-1, 0, 0, 1, 1, 2, 2])
    assert_array_equal(tree.children[:3], [[1, 2], [3, 4], [5, 6]])
    assert_array_equal(tree.centers[:, 0], [7.5, 2, 13, 0, 4, 10, 16])
    Z = np.array([[-1.0], [3.0], [9.0], [20.0]])
    assert [tree.cut(k).tolist() for k in (1, 2, 3, 4)] == [[0], [1, 2], [2, 3, 4], [3, 4, 5, 6]]
    assert [tree.labels(Z, k).tolist() for k in (1, 2, 3, 4)] == [
        [0] * 4,
        [0, 0, 1, 1],
        [1, 2, 0, 0],
        [0, 1, 2, 3],
    ]
    with pytest.raises(ValueError, match="The tree has 4 leaves and cannot be cut into 5 clusters"):
        tree.cut(5)


def test_points_go_to_the_nearest_leaf_and_not_down_the_nearest_nodes():
    tree = tree_of(FOUR[:2, :3], torch.tensor([[0.0], [10.0], [8.0]]), torch.ones(3))
    assert_array_equal(tree.centers[1:3, 0], [4, 10])
    assert_array_equal(
        tree.labels(np.array([[8.4]]), 2), [0]
    )  # nearer to 10 than to 4, but 8 is a leaf


def test_labels_for_every_k_are_nested(fitted, blobs):
    n_leaves = len(fitted.tree_.leaves)
    assert 3 < n_leaves <= 6
    assert_array_equal(fitted.predict_at(blobs.X, 3), fitted.labels_)
    assert_array_equal(fitted.predict_proba(blobs.X), np.eye(3)[fitted.labels_])
    for k in range(1, n_leaves):
        coarse, fine = fitted.predict_at(blobs.X, k), fitted.predict_at(blobs.X, k + 1)
        assert len(np.unique(np.stack([coarse, fine]), axis=1).T) == k + 1 == len(np.unique(fine))


@pytest.mark.parametrize(
    "changes", [{"n_steps": 0}, {"max_leaves": 3}, {"pruning_threshold": 1_000.0}]
)
def test_there_are_as_many_clusters_as_asked_for(blobs, changes):
    model = DeepECT(**(QUICK | changes)).fit(blobs.X)
    assert scores.ari(blobs.y, model.labels_) == 1
    assert model.cluster_centers_.shape == (3, 2)


def test_one_cluster_and_fewer_points_than_clusters(blobs):
    assert not DeepECT(**(QUICK | {"n_clusters": 1})).fit(blobs.X).labels_.any()
    X = np.repeat(np.eye(4), 10, axis=0)  # four distinct points
    model = DeepECT(**(QUICK | {"n_clusters": 6})).fit(X)
    assert (
        len(model.tree_.leaves) == len(model.cluster_centers_) == len(np.unique(model.labels_)) == 4
    )
    assert model.predict_proba(X).shape == (40, 6)


def test_fewer_leaves_than_clusters_are_refused(blobs):
    with pytest.raises(ValueError, match="max_leaves must be at least n_clusters=3, got 2"):
        DeepECT(**(QUICK | {"max_leaves": 2})).fit(blobs.X)


def test_other_leaves_get_another_optimizer_and_the_same_leaves_keep_theirs(rows, trained):
    method = DeepECT(**(QUICK | {"max_leaves": 3, "split_interval": 2}))
    learner = TreeEmbedding(copy.deepcopy(trained), rows, method, root=0)
    learner.optimizers = learner.start(1e-3)
    network = learner.optimizers[0]
    seen, n_leaves = [], []
    for step in range(1, 6):
        learner.before_step(step)
        seen.append(learner.optimizers[1])
        n_leaves.append(len(learner.centers))
        assert learner.optimizers[0] is network
        assert learner.optimizers[1].param_groups[0]["params"] == [learner.centers]
    assert n_leaves == [2, 2, 3, 3, 3]  # splits before steps 1 and 3; then the tree is full
    assert seen[0] is seen[1] is not seen[2] and seen[2] is seen[3] is seen[4]
    rate = seen[4].param_groups[0]["lr"]  # centers move in units of the embedding
    assert rate == pytest.approx(1e-3 * learner.unit) and learner.unit != 1


def test_going_back_brings_back_the_leaves(rows, trained):
    method = DeepECT(**(QUICK | {"split_interval": 1}))
    learner = TreeEmbedding(copy.deepcopy(trained), rows, method, root=0)
    learner.optimizers = learner.start(1e-3)
    learner.before_step(1)
    before = copy.deepcopy(learner.learned_state())
    learner.before_step(2)
    assert len(learner.centers) == 3
    learner.load_learned(before)
    learner.optimizers = learner.start(5e-4)
    assert torch.equal(learner.centers, before["centers"]) and len(learner.tree.sides) == 1
    assert learner.optimizers[1].param_groups[0]["params"] == [learner.centers]
