"""The autoencoder: ``enc`` embeds a point, ``dec`` gives it back."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from deccs.data.rows import Rows
from deccs.data.scaling import Scaler
from deccs.data.source import blocks, dense_block, rows_at_once
from deccs.network.by_hand import FeedForward, feed_forward
from deccs.storage import make_network, register, take_network


class Autoencoder(nn.Module):
    """An encoder and a decoder; any two modules whose shapes fit each other will do.

    Build the paper's with :meth:`feed_forward`, or bring your own. ``pretrained`` says whether
    training may be skipped: :func:`deccs.training.pretraining.pretrain` sets it, and so can you.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module, pretrained: bool = False) -> None:
        super().__init__()
        self.encoder, self.decoder, self.pretrained = encoder, decoder, pretrained

    @classmethod
    def feed_forward(
        cls, n_features: int, layers: Sequence[int], dropout: float = 0.0
    ) -> Autoencoder:
        if (
            not isinstance(layers, Sequence)
            or not layers
            or any(int(width) != width or width < 1 for width in layers)
        ):
            raise ValueError(
                f"layers must be the widths of the encoder, each at least 1, got {layers!r}."
            )
        if not isinstance(dropout, int | float) or not 0 <= dropout < 1:
            raise ValueError(f"dropout must be a share in [0, 1), got {dropout!r}.")
        widths = (n_features, *(int(width) for width in layers))
        return cls(feed_forward(widths, dropout), feed_forward(widths[::-1], dropout))

    def by_hand(self) -> tuple[FeedForward, FeedForward] | None:
        """Encoder and decoder, if their gradients can be had without autograd."""
        encoder, decoder = self.encoder, self.decoder
        if not isinstance(encoder, FeedForward) or not isinstance(decoder, FeedForward):
            return None
        return (encoder, decoder) if encoder.linear[0].weight.device.type == "cpu" else None

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = self.encoder(x)  # (batch, n_latent)
        return z, self.decoder(z)  # ... and (batch, n_features)


def take_autoencoder(autoencoder: Autoencoder) -> dict[str, Any]:
    return {
        "encoder": take_network(autoencoder.encoder),
        "decoder": take_network(autoencoder.decoder),
        "pretrained": autoencoder.pretrained,
    }


def make_autoencoder(fields: dict[str, Any]) -> Autoencoder:
    return Autoencoder(
        make_network(fields["encoder"]), make_network(fields["decoder"]), fields["pretrained"]
    ).eval()


register(Autoencoder, take_autoencoder, make_autoencoder)


@torch.no_grad()
def encode(autoencoder: Autoencoder, rows: Rows, index: torch.Tensor) -> torch.Tensor:
    """Embed some rows: (n_rows, n_latent), float32, on the CPU."""
    autoencoder.eval()
    wanted = blocks(len(index), rows_at_once(rows.n_features))
    return torch.cat([autoencoder.encoder(rows[index[block]]).cpu() for block in wanted])


@torch.no_grad()
def encode_exactly(autoencoder: Autoencoder, X: Any, scaler: Scaler) -> Iterator[np.ndarray]:
    """Embed raw rows block by block in double precision.

    A float32 matrix product gives a row another last digit in another batch. Whoever predicts
    one point alone must get what it got among thousands, so public results are computed so.
    """
    # A copy, since other threads may be predicting too; on the CPU, since not every device has doubles.
    encoder = copy.deepcopy(autoencoder.encoder).cpu().double().eval()
    for index in blocks(X.shape[0], rows_at_once(X.shape[1]) // 4):
        yield encoder(torch.tensor(scaler(dense_block(X, index)))).numpy()
