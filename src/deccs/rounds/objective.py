"""L of the paper's Eq. 6 for one round: its value, and its gradient with autograd or without."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from deccs.network.autoencoder import Autoencoder
from deccs.network.by_hand import FeedForward
from deccs.network.device import precision_for
from deccs.network.reconstruction import SQUARED, ReconstructionError
from deccs.rounds.classifiers import Classifiers, cross_entropy_gradient
from deccs.rounds.losses import (
    cross_entropy,
    distances_to_centers,
    mean_over_labeled,
    move_centers,
)
from deccs.rounds.pairs import pair_gradient, pair_loss


@dataclass(frozen=True)
class Objective:
    """L of the paper's Eq. 6 for one round, in the form of the authors' program."""

    member_weights: torch.Tensor  # (n_members,) lambda_i / n_members
    lambda_ce: float
    consensus_weight: float  # w(t)
    rec_weight: float  # lambda_rec (1 - agreement)
    weight_by_probability: bool
    moving: str | None = None  # centers follow the batches by their "mean" or "median", or stay
    error: ReconstructionError = SQUARED
    lambda_pairs: float = 0.0

    def __call__(
        self,
        autoencoder: Autoencoder,
        logits: torch.Tensor,
        x: torch.Tensor,
        z: torch.Tensor,
        y: torch.Tensor,
        centers: torch.Tensor,
    ) -> torch.Tensor:
        """Reconstruction, classification, consensus and total: (4,). The clustered points come first."""
        ce = (self.member_weights * cross_entropy(logits[: len(y)], y)).sum()
        cons = (
            self.member_weights
            * consensus_of_batch(z, logits, y, centers, self.weight_by_probability)
        ).sum()
        rec = self.error(autoencoder.decoder(z), x) if self.rec_weight else z.new_zeros(())
        total = self.lambda_ce * ce + self.consensus_weight * cons + self.rec_weight * rec
        return torch.stack([rec, ce, cons, total])

    def of_pairs(self, logits: torch.Tensor, together: torch.Tensor) -> torch.Tensor:
        """What pairs add to L; logits are (2 pairs, n_members, n_clusters), the first rows of all pairs first."""
        p = logits.softmax(2).view(2, len(together), *logits.shape[1:])
        return self.lambda_pairs * pair_loss(p, together)

    def gradients(
        self,
        autoencoder: Autoencoder,
        classifiers: Classifiers,
        x: torch.Tensor,
        y: torch.Tensor,
        centers: torch.Tensor,
        together: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Move the centers, set ``.grad`` of every weight; the centers and the terms come back.

        With ``together`` (pairs,) x ends with the first rows of pairs and then their second rows.
        """
        parts = autoencoder.by_hand()
        if parts:
            return self.gradients_by_hand(*parts, classifiers, x, y, centers, together)
        autoencoder.zero_grad(set_to_none=True)
        classifiers.zero_grad(set_to_none=True)
        with precision_for(x.device):
            z = autoencoder.encoder(x).float()  # (2 batch, n_latent)
            logits = classifiers(z)  # (2 batch, n_members, n_clusters)
            if self.moving:
                centers = move_centers(centers, z[: len(y)].detach(), y, self.moving)
            n = len(x) - (0 if together is None else 2 * len(together))
            terms = self(autoencoder, logits[:n], x[:n], z[:n], y, centers)
            if together is not None:
                of_pairs = self.of_pairs(logits[n:], together)
                terms = torch.cat([terms[:3], (terms[3] + of_pairs)[None]])
        terms[3].backward()
        return centers, terms.detach()

    @torch.no_grad()
    def gradients_by_hand(
        self,
        encoder: FeedForward,
        decoder: FeedForward,
        classifiers: Classifiers,
        x: torch.Tensor,
        y: torch.Tensor,
        centers: torch.Tensor,
        together: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same without autograd, whose overhead is most of a tiny network's step."""
        n_clustered = len(y)
        every_z, into = encoder.forward_by_hand(x)
        z, of_pairs = every_z, every_z[:0]
        if together is not None:
            n_points = len(x) - 2 * len(together)
            x, z, of_pairs = x[:n_points], every_z[:n_points], every_z[n_points:]
        n_points, n_latent = z.shape
        logits = classifiers(z)
        if self.moving:
            centers = move_centers(centers, z[:n_clustered], y, self.moving)
        log_p = logits.log_softmax(2)  # (2 batch, n_members, n_clusters)
        p = log_p.exp()
        labels = torch.cat([y, p[n_clustered:].argmax(2)])  # (2 batch, n_members)
        own = labels.clamp(min=0)[:, :, None]
        known = (y >= 0).float()
        share = torch.cat(
            [
                known / known.sum(0).clamp(min=1),  # of a point in its member's mean ...
                known.new_full(
                    (n_points - n_clustered, y.shape[1]), 1 / max(n_points - n_clustered, 1)
                ),
            ]
        )
        weight = share * self.member_weights  # ... times that of the member

        ce = -(
            log_p[:n_clustered].gather(2, own[:n_clustered])[:, :, 0] * weight[:n_clustered]
        ).sum()
        apart = z[:, None, :] - centers.gather(
            1, own.permute(1, 0, 2).expand(-1, -1, n_latent)
        ).transpose(0, 1)
        pull = weight * p.gather(2, own)[:, :, 0] if self.weight_by_probability else weight
        cons = (apart.square().mean(2) * pull).sum()
        rec = z.new_zeros(())

        to_z = (apart * (pull * (2 * self.consensus_weight / n_latent))[:, :, None]).sum(1)
        to_logits = cross_entropy_gradient(
            p[:n_clustered], y, weight[:n_clustered] * self.lambda_ce
        )
        classifiers.set_gradients(to_logits, z[:n_clustered])
        to_z[:n_clustered] += to_logits.flatten(1) @ classifiers.weight.view(-1, n_latent)
        if together is not None:
            pair_logits = classifiers(of_pairs)  # (2 pairs, n_members, n_clusters)
            both = pair_logits.softmax(2).view(2, len(together), *logits.shape[1:])
            total_of_pairs = self.lambda_pairs * pair_loss(both, together)
            to_pairs = self.lambda_pairs * pair_gradient(both, together).flatten(0, 1)
            classifiers.set_gradients(
                torch.cat([to_logits, to_pairs]), torch.cat([z[:n_clustered], of_pairs])
            )
        if self.rec_weight:
            back, out = decoder.forward_by_hand(z)
            rec = self.error(back, x)
            to_z += decoder.backward_by_hand(self.error.gradient(back, x, self.rec_weight), out)
        if together is not None:
            to_z = torch.cat([to_z, to_pairs.flatten(1) @ classifiers.weight.view(-1, n_latent)])
        encoder.backward_by_hand(to_z, into, to_input=False)
        total = self.lambda_ce * ce + self.consensus_weight * cons + self.rec_weight * rec
        if together is not None:
            total = total + total_of_pairs
        return centers, torch.stack([rec, ce, cons, total])


def consensus_of_batch(
    z: torch.Tensor,
    logits: torch.Tensor,
    y: torch.Tensor,
    centers: torch.Tensor,
    weight_by_probability: bool,
) -> torch.Tensor:
    """cons_i over the clustered points, which come first, plus that over the unclustered ones."""
    labels, n_clustered = y, len(y)
    if len(z) > n_clustered:  # unclustered points: what their classifier says now
        labels = torch.cat([y, logits[n_clustered:].detach().argmax(2)])
    probabilities = logits.detach().softmax(2) if weight_by_probability else None
    distances = distances_to_centers(z, labels, centers, probabilities)  # (2 batch, n_members)
    total = mean_over_labeled(distances[:n_clustered], y)
    return total + distances[n_clustered:].mean(0) if len(z) > n_clustered else total
