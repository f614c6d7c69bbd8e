"""The three losses of an update, term by term, for all members at once.

Members may have different numbers of clusters: everything per cluster is padded to the largest,
(n_members, n_clusters). A label of -1 (noise) takes no part.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """CE_i (Eq. 4): (batch, n_members, n_clusters), (batch, n_members) -> (n_members,)."""
    losses = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-1, reduction="none")
    return mean_over_labeled(losses, labels)


def mean_over_labeled(values: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean per member over the points it has labeled: (batch, n_members) -> (n_members,)."""
    labeled = (labels >= 0).to(values.dtype)
    return (values * labeled).sum(0) / labeled.sum(0).clamp(min=1)


def consensus(
    z: torch.Tensor, labels: torch.Tensor, centers: torch.Tensor, probabilities: torch.Tensor | None
) -> torch.Tensor:
    """cons_i (Eq. 5) of one batch: (batch, n_latent), (batch, n_members), ... -> (n_members,)."""
    return mean_over_labeled(distances_to_centers(z, labels, centers, probabilities), labels)


def distances_to_centers(
    z: torch.Tensor, labels: torch.Tensor, centers: torch.Tensor, probabilities: torch.Tensor | None
) -> torch.Tensor:
    """(batch, n_members): how far a point is from the center of its cluster.

    The squared distance, averaged over dimensions as in the authors' program (the paper writes a sum), times the
    classifier's probability for that cluster (alpha, the second heuristic; None switches it off). No gradient
    through centers and probability.
    """
    n_members, n_clusters, n_latent = centers.shape
    own = labels.clamp(min=0)  # (batch, n_members)
    place = own + torch.arange(0, n_members * n_clusters, n_clusters, device=own.device)
    near = centers.view(-1, n_latent).index_select(0, place.view(-1)).view(*own.shape, n_latent)
    distances = (z[:, None, :] - near).square().mean(2)
    if probabilities is not None:
        distances = distances * probabilities.gather(2, own[:, :, None])[:, :, 0].detach()
    return distances


def cluster_sums(
    z: torch.Tensor, labels: torch.Tensor, n_clusters: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Per member and cluster the sum of the points and their number, in one scatter."""
    n_members = labels.shape[1]
    labeled = (labels >= 0).to(z.dtype)  # (n_points, n_members)
    place = (labels.clamp(min=0) + torch.arange(n_members, device=z.device) * n_clusters).T.reshape(
        -1
    )
    sums = z.new_zeros(n_members * n_clusters, z.shape[1])
    counts = z.new_zeros(n_members * n_clusters)
    sums.index_add_(0, place, (z[None] * labeled.T[:, :, None]).reshape(-1, z.shape[1]))
    counts.index_add_(0, place, labeled.T.reshape(-1))
    return sums.view(n_members, n_clusters, -1), counts.view(n_members, n_clusters)


@torch.no_grad()
def cluster_centers(
    z: torch.Tensor, labels: torch.Tensor, n_clusters: int, center: str = "mean"
) -> tuple[torch.Tensor, torch.Tensor]:
    """The clusters' representatives and sizes: (n_members, n_clusters, n_latent), (n_members, n_clusters)."""
    sums, counts = cluster_sums(z, labels, n_clusters)
    centers = sums / counts.clamp(min=1)[:, :, None]
    if center == "median":
        for member, cluster in (counts > 0).nonzero().tolist():
            centers[member, cluster] = z[labels[:, member] == cluster].quantile(0.5, dim=0)
    return centers, counts


@torch.no_grad()
def move_centers(
    centers: torch.Tensor, z: torch.Tensor, labels: torch.Tensor, center: str = "mean"
) -> torch.Tensor:
    """Half the old center, half the batch's, for the clusters the batch has points of."""
    batch_centers, counts = cluster_centers(z, labels, centers.shape[1], center)
    return torch.where(counts[:, :, None] > 0, 0.5 * centers + 0.5 * batch_centers, centers)


def ramp_up(number: int, n_rounds: int) -> float:
    """Sigmoid ramp-up of the consensus weight (third heuristic), constant within a round.

    >>> [round(ramp_up(t, 10), 3) for t in range(7)]
    [0.007, 0.016, 0.071, 0.226, 0.516, 0.848, 1.0]
    """
    progress = min(max(2 * number - 1, 0), n_rounds + 1) / (n_rounds + 1)
    return math.exp(-5 * (1 - progress) ** 2)
