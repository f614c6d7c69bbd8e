"""The members' linear classifiers g_i, all in one matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from deccs.inference.heads import LinearHeads, check_heads
from deccs.rounds.losses import cross_entropy
from deccs.storage import register
from deccs.training.batches import Batches
from deccs.training.engine import Check, Learner, train

MOST_STEPS = 300  # of their training
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

    def heads(self) -> LinearHeads:
        """The classifiers as they answer for rows, without torch."""
        return LinearHeads(self.weight.detach().cpu().numpy(), self.bias.detach().cpu().numpy())

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
    arrays = {name: fields[name].detach().numpy() for name in ("weight", "bias")}
    check_heads({**fields, **arrays})
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
    train_on: torch.Tensor,
    held_out: torch.Tensor,
    generator: torch.Generator,
) -> Classifiers:
    """Train linear heads to tell the clusters of every member from the frozen embedding.

    Z is (n_sample, n_latent), labels (n_sample, n_members). The heads learn on standardized
    columns, so that one learning rate fits every embedding, and are folded back to Z afterwards.
    The weights with the least held-out loss stay.
    """
    mean, deviation = Z.mean(0), Z.std(0).clamp(min=1e-6)
    heads = Classifiers(Z.shape[1], present_clusters(labels))
    learner = Heads(heads, (Z - mean) / deviation, labels, train_on, held_out, generator)
    train(learner, n_steps=MOST_STEPS, rate=0.1, check_every=25, patience=2)
    with torch.no_grad():
        # W (z - mean) / deviation + b  =  (W / deviation) z + (b - W mean / deviation)
        heads.weight.div_(deviation)
        heads.bias.sub_(heads.weight @ mean)
    return heads


class Heads(Learner):
    """The cross-entropy of all members' heads on batches of the sample."""

    stage = "classifiers"
    learned = ("heads",)
    random = ("batches",)
    keeps_best = True

    def __init__(
        self,
        heads: Classifiers,
        Z: torch.Tensor,
        labels: torch.Tensor,
        train_on: torch.Tensor,
        held_out: torch.Tensor,
        generator: torch.Generator,
    ) -> None:
        self.heads, self.Z, self.labels, self.held_out = heads, Z, labels, held_out
        self.batches = Batches(train_on, 256, generator)

    def start(self, rate: float) -> list[torch.optim.Optimizer]:
        return [torch.optim.SGD(self.heads.parameters(), lr=rate, momentum=0.9, fused=True)]

    @torch.no_grad()
    def gradients(self, step: int) -> None:
        batch = next(self.batches)
        z, y = self.Z[batch], self.labels[batch]  # (batch, n_latent), (batch, n_members)
        known = (y >= 0).float()
        weight = known / known.sum(0).clamp(min=1)
        self.heads.set_gradients(cross_entropy_gradient(self.heads(z).softmax(2), y, weight), z)

    @torch.no_grad()
    def check(self, step: int) -> Check:
        logits = self.heads(self.Z[self.held_out])
        return Check(held_out=float(cross_entropy(logits, self.labels[self.held_out]).sum()))


def split_sample(
    base_partitions: np.ndarray, share: float, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Places in the sample to train on and to hold out.

    A cluster missing on one side has its points on both: a classifier cannot learn what it
    never sees, nor be judged on it.
    """
    n_sample = base_partitions.shape[1]
    order = torch.randperm(n_sample, generator=generator)
    is_held_out = np.zeros(n_sample, dtype=bool)
    is_held_out[order[: int(share * n_sample)].numpy()] = True
    in_train, in_held_out = ~is_held_out, is_held_out.copy()
    for partition in base_partitions:
        n_clusters = len(np.bincount(partition[partition >= 0]))
        for side in (~is_held_out, is_held_out):
            sizes = np.bincount(partition[side & (partition >= 0)], minlength=n_clusters)
            missing = np.isin(partition, np.flatnonzero(sizes == 0))
            in_train |= missing
            in_held_out |= missing
    return torch.from_numpy(np.flatnonzero(in_train)), torch.from_numpy(np.flatnonzero(in_held_out))


def logits(classifiers: Classifiers, Z: np.ndarray) -> np.ndarray:
    """(n, n_latent) -> (n, n_members, widest), in double precision."""
    return classifiers.heads().logits(Z)


def renumbered(classifiers: Classifiers, number_of: np.ndarray) -> Classifiers:
    """The same classifier of one member, whose cluster c has the number ``number_of[c]``: (n_clusters,)."""
    order = torch.from_numpy(np.argsort(number_of))
    other = Classifiers(classifiers.weight.shape[2], torch.ones(1, len(order), dtype=torch.bool))
    with torch.no_grad():
        other.weight.copy_(classifiers.weight[:, order])
        other.bias.copy_(classifiers.bias[:, order])
    return other


def only_member(classifiers: Classifiers, member: int) -> Classifiers:
    """The classifier of one member by itself."""
    present = classifiers.bias[member] > NEVER / 2  # (widest,), no padding
    single = Classifiers(classifiers.weight.shape[2], present[present][None])
    with torch.no_grad():
        single.weight[0] = classifiers.weight[member, present]
        single.bias[0] = classifiers.bias[member, present]
    return single
