"""AGAE: its graph against the whole co-association, its losses by hand, and the contract of the deep methods."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn.functional import softplus

from deccs import scores
from deccs.consensus import co_association
from deccs.consensus.partitions import distinct_rows
from deccs.data.scalers import fit_scaler
from deccs.data.source import ArrayRows
from deccs.deep.agae import (
    AGAE,
    AdversarialGraph,
    Graph,
    GraphEncoder,
    Prior,
    consensus_graph,
    link_loss,
    partition_prior,
    row_means,
)
from deccs.deep.base import first_centers
from deccs.network.by_hand import feed_forward
from deccs.training.engine import train

QUICK = {
    "n_clusters": 3,
    "n_partitions": 10,
    "n_neighbors": 10,
    "layers": (8, 4),
    "n_steps": 100,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def fitted(blobs):
    return AGAE(**QUICK).fit(blobs.X)


def some_partitions(n_points=80, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(k, size=n_points) for k in (2, 3, 5, 5, 7)])


def test_the_graph_has_the_strongest_links_of_the_whole_co_association():
    partitions = some_partitions()
    rows = distinct_rows(partitions)
    graph = consensus_graph(rows.membership, rows.membership, rows.counts, n_neighbors=6)
    first = [
        int(np.flatnonzero(rows.row_of == row)[0]) for row in range(len(rows))
    ]  # a point of each row
    whole = co_association(partitions).toarray()[np.ix_(first, first)]  # (n_rows, n_rows)
    for row, strengths in enumerate(whole):
        slow = np.argsort(-np.round(strengths, 9), kind="stable")[:6]
        assert_array_equal(graph.neighbors[row], slow)
        weights = strengths[slow] * rows.counts[slow]
        assert_allclose(graph.weights[row], weights / weights.sum())
        assert graph.neighbors[row, 0] == row  # itself, before all others


def test_a_point_has_the_same_neighbors_alone_as_among_many():
    rows = distinct_rows(some_partitions())
    H = rows.membership
    together = consensus_graph(H, H, rows.counts, n_neighbors=7)
    alone = [consensus_graph(H[[row]], H, rows.counts, n_neighbors=7) for row in range(len(rows))]
    assert_array_equal(together.neighbors, np.concatenate([graph.neighbors for graph in alone]))
    assert_array_equal(together.weights, np.concatenate([graph.weights for graph in alone]))


def test_the_encoder_is_two_graph_convolutions():
    rng = np.random.default_rng(0)
    graph = Graph(
        np.array([[0, 1], [1, 2], [2, 0], [3, 2]]),
        np.array([[0.5, 0.5], [0.9, 0.1], [1, 0], [0.7, 0.3]]),
    )
    A = np.zeros((4, 4))
    np.put_along_axis(A, graph.neighbors, graph.weights, axis=1)
    X = rng.normal(size=(4, 3)).astype(np.float32)
    torch.manual_seed(0)
    encoder = GraphEncoder(X, graph, layers=(5, 2))
    W, b, V, c = (parameter.detach().numpy() for parameter in encoder.parameters())
    slow = A @ (np.maximum(A @ X @ W.T + b, 0) @ V.T + c)  # (4, 2 + 2)
    mean, deviation = encoder()
    assert_allclose(mean.detach(), slow[:, :2], atol=1e-6)
    assert_allclose(deviation.detach(), np.exp(slow[:, 2:]), rtol=1e-5)
    drawn = torch.stack([encoder.draw_neighbors() for _ in range(2_000)])  # (2000, 4)
    assert set(drawn[:, 2].tolist()) == {2}  # weights 1 and 0
    assert float((drawn[:, 3] == 2).float().mean()) == pytest.approx(
        0.3, abs=0.04
    )  # 4 deviations of 0.01


def test_rows_are_the_means_of_their_points():
    source = ArrayRows(np.array([[0.0, 0], [2, 4], [5, 5]]))
    rows = distinct_rows([[0, 0, 1], [1, 1, 1]])
    assert_array_equal(row_means(source, fit_scaler(source, None), rows), [[1, 2], [5, 5]])


def test_link_loss_by_hand():
    z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    neighbor, other, shares = (
        torch.tensor([1, 0, 2]),
        torch.tensor([2, 2, 0]),
        torch.tensor([0.5, 0.25, 0.25]),
    )
    log = lambda x: np.log(1 + np.exp(x))  # noqa: E731
    by_hand = 0.5 * (log(-2) + log(0)) + 0.25 * (log(-2) + log(0)) + 0.25 * (log(-9) + log(0))
    assert float(link_loss(z, neighbor, other, shares)) == pytest.approx(by_hand)


def test_the_prior_draws_around_its_clusters():
    centers, deviations = (
        torch.tensor([[0.0, 0.0], [9.0, 9.0]]),
        torch.tensor([[1.0, 0.0], [0.0, 2.0]]),
    )
    prior = Prior(centers, deviations, shares=torch.tensor([0.75, 0.25]))
    torch.manual_seed(0)
    drawn = prior.draw(20_000)
    second = drawn[:, 0] > 6
    assert float(second.float().mean()) == pytest.approx(0.25, abs=0.015)  # 5 deviations of 0.003
    assert drawn[second].std(0).tolist() == pytest.approx([0, 2], abs=0.1)
    assert drawn[~second].mean(0).tolist() == pytest.approx([0, 0], abs=0.05)


def test_an_empty_cluster_of_the_prior_is_never_drawn():
    Z = torch.tensor([[0.0], [1.0], [1.0]])
    prior = partition_prior(Z, torch.tensor([0.5, 0.25, 0.25]), torch.tensor([[0.0], [1.0], [1.0]]))
    assert torch.isfinite(prior.draw(100)).all() and set(prior.draw(100).flatten().tolist()) == {
        0.0,
        1.0,
    }


def test_without_the_adversary_the_clusters_still_come_and_the_adversary_changes_the_embedding(
    fitted, blobs
):
    plain = AGAE(**(QUICK | {"adversarial_weight": 0.0})).fit(blobs.X)
    assert scores.ari(blobs.y, plain.labels_) == 1
    assert_array_equal(plain.base_partitions_, fitted.base_partitions_)
    assert np.abs(plain.codes_ - fitted.codes_).max() > 0.01


def slow_training(encoder, counts, method, root):
    """The steps as the paper says them: the critic's, then the encoder's, each by its own optimizer."""
    shares = torch.from_numpy(counts / counts.sum()).float()
    critic = feed_forward((method.layers[1], 64, 64, 1))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=method.learning_rate)
    critics = torch.optim.Adam(critic.parameters(), lr=method.learning_rate / 10)
    centers = None
    for step in range(method.n_steps):
        mean, deviation = encoder()
        z = mean + deviation * torch.randn_like(mean)
        neighbor = encoder.draw_neighbors()
        other = torch.multinomial(shares, len(counts), replacement=True)
        loss = link_loss(z, neighbor, other, shares)
        since_first = step - method.n_steps // 3
        if since_first >= 0:
            if since_first % method.update_interval == 0:
                if centers is None:
                    centers = first_centers(mean.detach(), method.n_clusters, root)
                prior = partition_prior(mean.detach(), shares, centers)
                centers = prior.centers
            real = softplus(-critic(prior.draw(len(counts)))[:, 0]).mean()
            false = (shares * softplus(critic(z.detach())[:, 0])).sum()
            critics.zero_grad()
            (real + false).backward()
            critics.step()
            deceived = (shares * softplus(-critic(z)[:, 0])).sum()
            loss = loss + method.adversarial_weight * deceived
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return critic


def test_the_engine_trains_encoder_and_critic_as_two_optimizers_by_turns():
    rows = distinct_rows(some_partitions())
    graph = consensus_graph(rows.membership, rows.membership, rows.counts, n_neighbors=6)
    features = np.random.default_rng(0).normal(size=(len(rows), 5)).astype(np.float32)
    method = AGAE(3, n_steps=30, layers=(8, 4), update_interval=7)
    torch.manual_seed(0)
    slow = GraphEncoder(features, graph, method.layers)
    slow_critic = slow_training(slow, rows.counts, method, root=0)
    torch.manual_seed(0)
    encoder = GraphEncoder(features, graph, method.layers)
    learner = AdversarialGraph(encoder, rows.counts, method, root=0)
    train(learner, method.n_steps, rate=method.learning_rate)
    assert_same_weights(encoder, slow)
    assert_same_weights(learner.critic, slow_critic)


def assert_same_weights(one, other):
    for weight, other_weight in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(weight, other_weight)


def test_a_checkpoint_holds_what_is_learned_and_not_the_graph(fitted):
    rows = distinct_rows(fitted.base_partitions_)
    graph = fitted._graph(rows.membership)
    encoder = GraphEncoder(np.ones((len(rows), 4), dtype=np.float32), graph, layers=(8, 4))
    assert set(encoder.state_dict()) == {"hidden.weight", "hidden.bias", "code.weight", "code.bias"}


def test_a_loss_that_is_not_finite_when_the_critic_starts_is_survived(monkeypatch, blobs):
    """The training goes back to before the prior, and makes it when it gets there again."""
    draw, calls = Prior.draw, []

    def spoiled(self, n):
        calls.append(n)
        return draw(self, n) * (float("nan") if len(calls) <= 3 else 1)

    monkeypatch.setattr(Prior, "draw", spoiled)
    model = AGAE(**QUICK).fit(blobs.X)
    assert np.isfinite(model.codes_).all() and len(calls) > 3
    assert_array_equal(model.predict(blobs.X), model.labels_)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"n_clusters": 0},
            "n_clusters must be a whole number of at least 1, 'auto' or a range such as '3-20', got 0",
        ),
        ({"n_clusters": 1_000}, "n_clusters=1000 is more than the number of points"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1, got 0"),
        ({"layers": (8,)}, r"layers must be two layer widths \(n_hidden, n_latent\)"),
    ],
)
def test_errors_say_what_was_given(blobs, changes, message):
    with pytest.raises(ValueError, match=message):
        AGAE(**(QUICK | changes)).fit(blobs.X)
