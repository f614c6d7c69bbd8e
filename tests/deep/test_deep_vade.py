"""VaDE: the terms of its bound against torch.distributions and Monte-Carlo, its start, and its guard."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.mixture import GaussianMixture
from torch import nn
from torch.distributions import Normal, kl_divergence

from deccs import Callback, Network, Pretraining, scores
from deccs.deep.vade import (
    Mixture,
    Posterior,
    VaDE,
    VariationalMixture,
    assigned,
    divergence,
    entropy,
    expected_log_normal,
    first_mixture,
    log_normal,
)
from deccs.network.autoencoder import Autoencoder
from deccs.rules import default_output_variance

QUICK = {
    "n_clusters": 3,
    "network": Network(layers=(8, 2)),
    "n_steps": 30,
    "batch_size": 32,
    "random_state": 0,
    "pretraining": Pretraining(n_epochs=30, batch_size=32, learning_rate=1e-2),
}


@pytest.fixture(scope="module")
def fitted(blobs):
    return VaDE(**QUICK).fit(blobs.X)


@pytest.fixture
def mixture():
    """Three clusters in two dimensions."""
    means, variances = [[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0]], [[1.0, 0.5], [0.3, 2.0], [1.5, 0.8]]
    return Mixture(torch.tensor([0.5, 0.3, 0.2]), torch.tensor(means), torch.tensor(variances))


@pytest.fixture
def q():
    """q(z | x) of two points: means, log-variances."""
    return torch.tensor([[0.5, 0.5], [1.0, 2.0]]), torch.tensor([[0.1, 0.4], [0.9, 0.2]]).log()


def normal(mean, log_variance):
    return Normal(mean, (0.5 * log_variance).exp())


def draws(q, n=200_000):
    """(n, 2, 2) of z ~ q(z | x)."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return normal(*q).sample((n,))


def test_density_and_entropy_are_those_of_torch(q):
    x = torch.tensor([[0.0, 3.0], [-1.0, 1.0]])
    assert_allclose(log_normal(x, *q), normal(*q).log_prob(x).sum(1), rtol=1e-6)
    assert_allclose(entropy(q[1]), normal(*q).entropy().sum(1), rtol=1e-6)


def test_one_noise_for_all_columns_is_half_the_squared_error_and_a_constant():
    x, back = torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, 0.0, 4.0]])  # squares 0 + 4 + 1
    expected = -0.5 * 5 / 0.5 - 1.5 * np.log(2 * np.pi * 0.5)
    assert float(log_normal(x, back, torch.tensor(0.5).log())) == pytest.approx(expected)


def test_expected_density_is_the_mean_over_draws(q, mixture):
    mean, log_variance = mixture.means[1].detach(), mixture.log_variances[1].detach()
    by_draws = normal(mean, log_variance).log_prob(draws(q)).sum(2).mean(0)  # (2,)
    assert_allclose(expected_log_normal(*q, mean, log_variance), by_draws, rtol=0.01)


@torch.no_grad()
def test_divergence_of_a_single_cluster_is_that_of_two_gaussians(q):
    single = Mixture(torch.ones(1), torch.tensor([[1.0, -1.0]]), torch.tensor([[0.5, 2.0]]))
    expected = kl_divergence(normal(*q), normal(single.means, single.log_variances)).sum(1)
    assert_allclose(divergence(*q, torch.zeros(2, 1), single), expected, rtol=1e-5)


@torch.no_grad()
def test_divergence_is_the_mean_over_draws(q, mixture):
    """E of log q(z) + log gamma_c - log p(c) - log p(z | c), c ~ gamma."""
    gamma = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])
    z = draws(q)  # (n, 2, 2)
    log_q = normal(*q).log_prob(z).sum(2, keepdim=True)  # (n, 2, 1)
    log_z = normal(mixture.means, mixture.log_variances).log_prob(z[:, :, None]).sum(3)  # (n, 2, 3)
    inside = log_q + gamma.log() - torch.tensor([0.5, 0.3, 0.2]).log() - log_z
    assert_allclose(
        divergence(*q, gamma.log(), mixture), (gamma * inside).sum(2).mean(0), rtol=0.01
    )


@torch.no_grad()
def test_divergence_bounds_that_of_the_embedding_alone(q, mixture):
    """Whatever gamma is, it is at least KL(q(z | x) || p(z)): so the ELBO is a lower bound."""
    z = draws(q)
    log_z = normal(mixture.means, mixture.log_variances).log_prob(z[:, :, None]).sum(3)  # (n, 2, 3)
    log_p = (log_z + torch.tensor([0.5, 0.3, 0.2]).log()).logsumexp(2)
    least = (normal(*q).log_prob(z).sum(2) - log_p).mean(0)  # (2,)
    for gamma in (mixture.log_responsibilities(q[0]), torch.full((2, 3), 1 / 3).log()):
        assert (divergence(*q, gamma, mixture) > least).all()


@torch.no_grad()
def test_responsibilities_are_those_of_scikit_learn(mixture, fitted, blobs):
    reference = GaussianMixture(3, covariance_type="diag")
    reference.weights_ = np.array([0.5, 0.3, 0.2])
    reference.means_ = mixture.means.numpy().astype(float)
    reference.precisions_cholesky_ = np.exp(-0.5 * mixture.log_variances.numpy().astype(float))
    z = torch.tensor([[0.3, 0.2], [2.0, 0.0], [0.0, 5.0]])
    assert_allclose(
        mixture.log_responsibilities(z).exp(), reference.predict_proba(z.numpy()), rtol=1e-4
    )
    assert_array_equal(assigned(z, mixture), reference.predict(z.numpy()))

    reference.weights_, reference.means_ = fitted.weights_, fitted.means_
    reference.precisions_cholesky_ = 1 / np.sqrt(fitted.covariances_)
    Z = fitted.transform(blobs.X)
    assert_allclose(fitted.predict_proba(blobs.X), reference.predict_proba(Z), atol=1e-10)


def test_a_second_head_beside_the_last_layer():
    encoder = nn.Sequential(nn.Linear(3, 5), nn.LeakyReLU(0.01, inplace=True), nn.Linear(5, 2))
    start = torch.tensor([-1.0, -2.0])
    posterior, x = Posterior(encoder, start), torch.randn(4, 3)
    mean, log_variance = posterior(x)
    assert posterior.log_variance.in_features == 5
    assert torch.equal(mean, encoder(x)) and torch.equal(log_variance, start.expand(4, 2))
    mean.sum().backward()
    assert encoder[0].weight.grad is not None  # the same weights, no copy


def test_an_encoder_that_does_not_end_in_a_linear_layer_is_used_whole(blobs):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x).tanh()

    posterior = Posterior(Own(), torch.zeros(2))
    assert (
        posterior.log_variance.in_features == 2 and posterior(torch.randn(3, 4))[0].abs().max() < 1
    )
    torch.manual_seed(0)
    model = VaDE(**(QUICK | {"network": (Own(), nn.Linear(2, 4))})).fit(blobs.X)
    assert scores.ari(blobs.y, model.labels_) == 1
    assert np.abs(model.transform(blobs.X)).max() < 1


def test_the_first_mixture_by_hand():
    Z = torch.tensor([[0.0], [2.0]] * 5 + [[100.0], [106.0]] * 5)  # variances 1 and 9
    mixture = first_mixture(Z, 2, root=0)
    order = mixture.means[:, 0].argsort()
    tiny = 1e-4 * float(Z.var(correction=0))  # what is added to variances
    assert_allclose(mixture.means[order, 0].detach(), [1, 103], rtol=1e-5)
    assert_allclose(mixture.log_weights().exp().detach(), [0.5, 0.5], rtol=1e-6)
    assert_allclose(mixture.log_variances[order, 0].exp().detach(), [1 + tiny, 9 + tiny], rtol=1e-4)


def test_a_constant_embedding_has_a_mixture():
    mixture = first_mixture(torch.ones(100, 2), 2, root=0)
    assert mixture.means.isfinite().all()
    assert mixture.log_variances.isfinite().all() and mixture.log_weights().isfinite().all()


def test_the_variance_is_learned_from_the_last_hidden_layer():
    """Not from the embedding alone: the paper's network gives both from one layer."""
    posterior = Posterior(Autoencoder.feed_forward(5, (8, 2)).encoder, torch.zeros(2))
    assert posterior.log_variance.in_features == 8 and isinstance(posterior.mean, nn.Linear)


def test_the_noise_grows_with_columns_per_dimension_up_to_the_datas_own():
    assert default_output_variance(2.0, 2, 2) == pytest.approx(0.08)
    assert default_output_variance(2.0, 250, 10) == default_output_variance(2.0, 1_000, 10) == 2.0


def test_the_mixture_is_a_mixture(fitted):
    assert fitted.weights_.sum() == pytest.approx(1) and (fitted.weights_ > 0.2).all()
    assert (
        fitted.means_.shape == fitted.covariances_.shape == (3, 2)
        and (fitted.covariances_ > 0).all()
    )
    assert_array_equal(fitted.cluster_centers_, fitted.means_)
    assert fitted.n_iter_ == 30 and fitted.n_collapses_ == 0


class Log(Callback):
    """The progress of the training, without the pretraining."""

    def __init__(self):
        self.parts = []

    def on_progress(self, progress):
        if progress.stage == "VaDE":
            self.parts.append(progress)


def test_training_raises_the_bound(blobs):
    log = Log()
    VaDE(**(QUICK | {"n_steps": 400, "callbacks": [log]})).fit(blobs.X)
    losses = [part.loss for part in log.parts]  # means of 100 steps each
    assert len(losses) == 4 and losses == sorted(losses, reverse=True)


def test_training_that_collapses_goes_back(blobs):
    model = VaDE(**(QUICK | {"learning_rate": 0.5, "n_steps": 200})).fit(blobs.X)  # clusters die
    assert model.n_collapses_ == 2 and model.n_iter_ == 200  # at both of its checks
    assert scores.ari(blobs.y, model.labels_) == 1
    assert np.isfinite(model.predict_proba(blobs.X)).all()


def test_a_cluster_without_points_is_a_collapse(rows, trained):
    learner = VariationalMixture(copy.deepcopy(trained), rows, VaDE(**QUICK), root=0)
    assert not learner.check(100).lost
    with torch.no_grad():
        learner.mixture.logits[0] = -1e6  # nothing can be in the first cluster
    check = learner.check(200)
    assert check.lost and check.changed == pytest.approx(1 / 3)  # 60 of 180 points


@pytest.mark.parametrize("given", [0, -1.0, "much", np.nan, np.inf])
def test_errors_say_what_was_given(blobs, given):
    with pytest.raises(
        ValueError, match=f"output_variance must be 'auto' or a number above 0, got {given!r}"
    ):
        VaDE(**(QUICK | {"output_variance": given})).fit(blobs.X)
