"""The autoencoder: ``enc`` embeds a point, ``dec`` gives it back."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from deccs.files import make_network, register, stored_layer, take_network
from deccs.rows import Rows, Scaler, blocks, dense_block, rows_at_once


def default_layers(n_points: int, n_features: int) -> tuple[int, ...]:
    """The paper's encoders, chosen by the size of the data.

    A plane or space needs no more than 20-20 units (SYNTH); up to 2,000 points the network is
    256-128-64 (MICE), above it is 500-500-2000-10, with an embedding no wider than the data.

    >>> default_layers(2_000, 2), default_layers(552, 77), default_layers(70_000, 784)
    ((20, 20, 2), (256, 128, 64), (500, 500, 2000, 10))
    """
    if n_features <= 3:
        return 20, 20, n_features
    hidden = (256, 128, 64) if n_points <= 2_000 else (500, 500, 2000, 10)
    return *hidden[:-1], min(hidden[-1], n_features)


SLOPE = 0.01  # of LeakyReLU below 0


def feed_forward(widths: Sequence[int], dropout: float = 0.0) -> nn.Sequential:
    """Linear layers with LeakyReLU(0.01) and dropout between them, none after the last."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.LeakyReLU(SLOPE, inplace=True), nn.Dropout(dropout)]
    return (FeedForward if dropout == 0 else nn.Sequential)(*layers[:-2])


@stored_layer
class FeedForward(nn.Sequential):
    """Linear layers with LeakyReLU between them, whose gradient can be had without autograd.

    A step of a tiny network is all overhead, and autograd's is most of it. In a large one points are columns
    in between: two threads share W @ x better than x @ W^T, which makes a step a tenth faster.
    """

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.linear = [layer for layer in layers if isinstance(layer, nn.Linear)]

    def forward_by_hand(self, x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """What comes out, (batch, n_out), and what each layer was given, (n_in, batch)."""
        seen: list[torch.Tensor] = []
        columns = x.T
        for layer in self.linear:
            if seen:
                columns = nn.functional.leaky_relu_(columns, SLOPE)
            seen.append(columns)
            columns = torch.addmm(layer.bias[:, None], layer.weight, columns)
        return columns.T, seen

    def backward_by_hand(
        self, gradient: torch.Tensor, seen: list[torch.Tensor], to_input: bool = True
    ) -> torch.Tensor:
        """Sets ``.grad`` of the weights; the gradient of the input comes back: (batch, n_out) -> (batch, n_in)."""
        columns = gradient.T
        for number in reversed(range(len(self.linear))):
            layer = self.linear[number]
            # Written where the last one was: new megabytes in each step cost more than it seems.
            layer.weight.grad = torch.mm(columns, seen[number].T, out=layer.weight.grad)
            layer.bias.grad = torch.sum(columns, 1, out=layer.bias.grad)
            if number or to_input:
                columns = torch.mm(layer.weight.T, columns)
            if number:
                columns = torch.ops.aten.leaky_relu_backward(columns, seen[number], SLOPE, True)
        return columns.T


class Autoencoder(nn.Module):
    """An encoder and a decoder; any two modules whose shapes fit each other will do.

    Build the paper's with :meth:`feed_forward`, or bring your own. ``pretrained`` says whether
    training may be skipped: :func:`deccs.training.pretrain` sets it, and so can you.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module, pretrained: bool = False) -> None:
        super().__init__()
        self.encoder, self.decoder, self.pretrained = encoder, decoder, pretrained

    @classmethod
    def feed_forward(cls, n_features: int, layers: Sequence[int], dropout: float = 0.0) -> Autoencoder:
        if not isinstance(layers, Sequence) or not layers or any(int(width) != width or width < 1 for width in layers):
            raise ValueError(f"layers must be the widths of the encoder, each at least 1, got {layers!r}.")
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
        z = self.encoder(x)            # (batch, n_latent)
        return z, self.decoder(z)      # ... and (batch, n_features)


def take_autoencoder(autoencoder: Autoencoder) -> dict[str, Any]:
    return {"encoder": take_network(autoencoder.encoder), "decoder": take_network(autoencoder.decoder),
            "pretrained": autoencoder.pretrained}


def make_autoencoder(fields: dict[str, Any]) -> Autoencoder:
    return Autoencoder(make_network(fields["encoder"]), make_network(fields["decoder"]), fields["pretrained"]).eval()


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
