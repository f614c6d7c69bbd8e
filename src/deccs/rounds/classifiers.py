"""The members' linear classifiers g_i, all in one matrix."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from deccs.rounds.losses import cross_entropy
from deccs.storage import register
from deccs.training.batches import endless_batches
from deccs.training.best import Best

NEVER = -1e9  # the bias of a padded cluster: its probability is 0 and stays 0


class Classifiers(nn.Module):
    """``softmax(W_i z + b_i)`` for every member i.

    ``present`` is (n_members, widest): which cluster numbers a member has. The others are padding.
    """

    def __init__(self, n_latent: int, present: torch.Tensor) -> None:
        super().__init__()
        self.n_clusters: list[int] = present.sum(1).tolist()
        self.weight = nn.Parameter(torch.zeros(*present.shape, n_latent))
        self.bias = nn.Parameter(torch.zeros(present.shape).masked_fill(~present, NEVER))

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        """Logits: (batch, n_latent) -> (batch, n_members, n_clusters)."""
        n_members, widest, n_latent = self.weight.shape
        flat = torch.addmm(self.bias.view(-1), z, self.weight.view(-1, n_latent).T)
        return flat.view(-1, n_members, widest)

    def set_gradients(self, to_logits: torch.Tensor, z: torch.Tensor) -> None:
        """``.grad`` of the weights from that of the logits, (batch, n_members, n_clusters)."""
        self.weight.grad = (to_logits.flatten(1).T @ z).view_as(self.weight)
        self.bias.grad = to_logits.sum(0)


def take_classifiers(classifiers: Classifiers) -> dict[str, Any]:
    return {
        "weight": classifiers.weight,
        "bias": classifiers.bias,
        "n_clusters": classifiers.n_clusters,
    }


def make_classifiers(fields: dict[str, Any]) -> Classifiers:
    classifiers = Classifiers(
        fields["weight"].shape[2], torch.ones_like(fields["bias"], dtype=torch.bool)
    )
    classifiers.load_state_dict({name: fields[name] for name in ("weight", "bias")})
    classifiers.n_clusters = fields["n_clusters"]
    return classifiers


register(Classifiers, take_classifiers, make_classifiers)


def cross_entropy_gradient(p: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Of the cross-entropy in the logits: (p - 1 for the own cluster) times the weight of the point for the member.

    p is (batch, n_members, n_clusters), y and weight are (batch, n_members); y is -1 where the weight is 0.

    >>> cross_entropy_gradient(torch.tensor([[[0.75, 0.25]]]), torch.tensor([[1]]), torch.tensor([[2.0]]))
    tensor([[[ 1.5000, -1.5000]]])
    """
    own = y.clamp(min=0)[:, :, None]
    return p.scatter_add(2, own, p.new_full((), -1).expand_as(own)) * weight[:, :, None]


def present_clusters(labels: torch.Tensor) -> torch.Tensor:
    """Which cluster numbers each member uses: (n_points, n_members) -> (n_members, widest).

    >>> present_clusters(torch.tensor([[0, 0], [1, 2], [-1, 2]]))
    tensor([[ True,  True, False],
            [ True, False,  True]])
    """
    clusters = torch.arange(int(labels.max()) + 1)
    return (labels[:, :, None] == clusters).any(0)


def classify(
    Z: torch.Tensor,
    labels: torch.Tensor,
    train: torch.Tensor,
    held_out: torch.Tensor,
    generator: torch.Generator,
    *,
    learning_rate: float = 0.1,
    batch_size: int = 256,
    max_steps: int = 300,
    check_every: int = 25,
    patience: int = 2,
) -> Classifiers:
    """Train linear heads to tell the clusters of every member from the frozen embedding.

    Z is (n_sample, n_latent), labels (n_sample, n_members). The heads learn on standardised
    columns, so that one learning rate fits every embedding, and are folded back to Z after.
    The weights with the least held-out loss stay.
    """
    mean, deviation = Z.mean(0), Z.std(0).clamp(min=1e-6)
    standard = (Z - mean) / deviation
    heads = Classifiers(Z.shape[1], present_clusters(labels))
    optimiser = torch.optim.SGD(heads.parameters(), lr=learning_rate, momentum=0.9, fused=True)
    best = Best(heads)
    batches = endless_batches(train, batch_size, generator)
    for step in range(max_steps):
        batch = next(batches)
        z, y = standard[batch], labels[batch]
        with torch.no_grad():
            known = (y >= 0).float()
            to_logits = cross_entropy_gradient(
                heads(z).softmax(2), y, known / known.sum(0).clamp(min=1)
            )
            heads.set_gradients(to_logits, z)
        optimiser.step()
        if (step + 1) % check_every == 0:
            with torch.no_grad():
                best.offer(float(cross_entropy(heads(standard[held_out]), labels[held_out]).sum()))
            if best.age >= patience:
                break
    best.restore()
    with (
        torch.no_grad()
    ):  # W (z - mean) / deviation + b  =  (W / deviation) z + (b - W mean / deviation)
        heads.weight.div_(deviation)
        heads.bias.sub_(heads.weight @ mean)
    return heads
