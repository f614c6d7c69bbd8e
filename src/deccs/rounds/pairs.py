"""Pairs of rows that belong together or apart, as a loss of the classifiers' probabilities.

With p and q the probabilities of both rows for the clusters of a member, s = sum_k p_k q_k says how surely
they are in one cluster. A must-link costs -log s, a cannot-link -log(1 - s), mean over members.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from deccs.constraints.given import Constraints

TINY = 1e-4  # added to s and 1 - s: rows that are surely wrong must not break the training


@dataclass(frozen=True)
class Pairs:
    """Pairs of rows, and whether they belong together."""

    index: torch.Tensor  # (n_pairs, 2) row numbers
    together: torch.Tensor  # (n_pairs,) True for a must-link, False for a cannot-link

    def __len__(self) -> int:
        return len(self.together)

    @classmethod
    def of(cls, constraints: Constraints | None) -> Pairs | None:
        """Those of constraints; None where there are none."""
        if constraints is None or len(constraints.must) + len(constraints.cannot) == 0:
            return None
        must, cannot = (torch.from_numpy(each) for each in (constraints.must, constraints.cannot))
        together = torch.arange(len(must) + len(cannot)) < len(must)
        return cls(torch.cat([must, cannot]), together)


def in_one_cluster(p: torch.Tensor) -> torch.Tensor:
    """s of pairs: (2, n_pairs, n_members, n_clusters) -> (n_pairs, n_members)."""
    return (p[0] * p[1]).sum(2)


def pair_loss(p: torch.Tensor, together: torch.Tensor) -> torch.Tensor:
    """The mean over pairs and members, of the probabilities of both rows (2, n_pairs, n_members, n_clusters).

    >>> p = torch.tensor([[[[0.5, 0.5]]], [[[0.9, 0.1]]]])  # s is 0.5
    >>> float(pair_loss(p, torch.tensor([True]))) == float(pair_loss(p, torch.tensor([False])))
    True
    """
    s = in_one_cluster(p)
    return -torch.where(together[:, None], (s + TINY).log(), (1 - s + TINY).log()).mean()


def pair_gradient(p: torch.Tensor, together: torch.Tensor) -> torch.Tensor:
    """Of that loss in the logits, shaped like p.

    Of -log s in the logits of p it is p - p q / s, of -log(1 - s) it is s / (1 - s) times the opposite: both are
    a multiple of p q - s p.
    """
    s = in_one_cluster(p)  # (n_pairs, n_members)
    multiple = torch.where(together[:, None], -1 / (s + TINY), 1 / (1 - s + TINY)) / s.numel()
    return multiple[None, :, :, None] * (p[0] * p[1] - s[None, :, :, None] * p)
